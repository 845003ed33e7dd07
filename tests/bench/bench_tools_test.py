"""The arithmetic of python/espalier_tools/bench: statistics, the choice of flags, the ledger, plots."""

import io
import json
import pathlib
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

from espalier_tools.bench import engines, ledger, peers, plots, random_model, statistics, svg


class Statistics(unittest.TestCase):
    def test_quantiles_lie_between_the_neighbouring_samples(self):
        self.assertEqual(statistics.quantile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(statistics.quantile([10, 20], 0.25), 12.5)
        self.assertEqual(statistics.quantile([7], 0.9), 7)

    def test_a_machine_that_slows_down_for_both_leaves_no_uncertainty(self):
        theirs = [100.0, 50.0, 25.0, 80.0, 10.0]
        self.assertEqual(statistics.paired_ratio([2 * rate for rate in theirs], theirs), (2.0, 2.0, 2.0))

    def test_the_interval_holds_the_median_and_grows_with_the_spread(self):
        ones = [1.0] * 9
        ratio, low, high = statistics.paired_ratio([1.0, 1.1, 0.9, 1.05, 0.95, 1.2, 0.8, 1.0, 1.02], ones)
        self.assertLess(low, ratio)
        self.assertLess(ratio, high)
        _, wide_low, wide_high = statistics.paired_ratio([1.0, 2.0, 0.5, 1.5, 0.6, 3.0, 0.3, 1.0, 1.2], ones)
        self.assertGreater(wide_high - wide_low, high - low)

    def test_a_95_percent_interval_holds_the_truth_about_as_often(self):
        draw, held = statistics.random.Random(7), 0
        for _ in range(100):
            ratios = [draw.lognormvariate(0, 0.2) for _ in range(15)]
            _, low, high = statistics.paired_ratio(ratios, [1.0] * 15)
            held += low <= 1.0 <= high
        self.assertGreaterEqual(held, 86)  # four deviations of a binomial of 100 at 0.95 below it

    def test_rounds_that_are_not_paired_are_refused(self):
        with self.assertRaises(ValueError):
            statistics.paired_ratio([1.0, 2.0], [1.0])


class FakeEngine(engines.Engine):
    def __init__(self, name, table, ours=False):
        self.name, self.table, self.ours = name, table, ours
        self.flag_sets = [[flag] for flag in table]

    def rates(self, works, flags):
        for work in works:
            if work not in self.table[flags[0]]:
                raise engines.Failed("cannot")
        return {work: self.table[flags[0]][work] for work in works}


class Peers(unittest.TestCase):
    def setUp(self):
        silence = unittest.mock.patch("sys.stderr", io.StringIO())
        silence.start()
        self.addCleanup(silence.stop)

    def test_each_work_gets_its_best_flags_and_one_that_fails_costs_no_other(self):
        engine = FakeEngine("x", {"a": {"prefill:4": 1, "call:4": 9}, "b": {"prefill:4": 2}})
        self.assertEqual(peers.best_flags(engine, ["prefill:4", "call:4"], engine.flag_sets), {"prefill:4": ["b"], "call:4": ["a"]})

    def test_ratios_are_ours_over_theirs(self):
        ours, theirs = FakeEngine("ours", {"a": {}}, ours=True), FakeEngine("theirs", {"a": {}})
        samples = {"ours": {"call:4": [30.0, 60.0, 90.0]}, "theirs": {"call:4": [10.0, 20.0, 30.0]}}
        mine, other = peers.rows_of("m", [ours, theirs], samples)
        self.assertIsNone(mine["ratio"])
        self.assertEqual((other["ratio"], other["ratio_low"], other["ratio_high"], other["against"]), (3, 3, 3, "ours"))


LIMITS_ROW = {"kernel": "avx2", "encoding": "int8", "planes": 2, "rows": 1, "ms": 2.0, "floor_ms": 1.0, "fraction": 0.5}


class Ledger(unittest.TestCase):
    def test_it_is_only_appended_to_and_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ledger.jsonl"
            ledger.append({"a": 1}, path)
            before = path.read_bytes()
            ledger.append({"b": [1, 2]}, path)
            self.assertTrue(path.read_bytes().startswith(before))
            self.assertEqual(list(ledger.entries(path)), [{"a": 1}, {"b": [1, 2]}])

    def test_an_entry_names_the_model_by_its_content(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(b"abc")
            file.flush()
            entry = ledger.entry("model", ["model"], file.name, [])
        abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        self.assertEqual(entry["model"]["sha256"], abc)

    def test_a_damaged_line_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ledger.jsonl"
            path.write_text('{"a": 1}\n{"a":')
            with self.assertRaisesRegex(SystemExit, ":2: not a line of JSON"):
                list(ledger.entries(path))

    def test_the_committed_ledger_can_be_read(self):
        for entry in ledger.entries():
            self.assertIn(entry["benchmark"], plots.SECTIONS)


class Plots(unittest.TestCase):
    def test_charts_are_xml_whatever_the_labels_say(self):
        bars = [svg.Bar("a & <b>", 1.5, 1.2, 1.9), svg.Bar("c", 0.5)]
        for chart in (svg.bar_chart("x < y", bars, 1.0), svg.line_chart("t", ["1", "2"], {"s": [0.5, None]}, 1.0, 0.2)):
            xml.etree.ElementTree.fromstring(chart)

    def test_the_newest_cell_counts_and_of_peers_the_newest_run(self):
        def entry(benchmark: str, fraction: float, rows: int) -> dict:
            row = LIMITS_ROW | {"fraction": fraction, "rows": rows, "work": f"call:{rows}"}
            entry = {"benchmark": benchmark, "machine": {"Model name": "m"}, "model": None, "rows": [row], "command": []}
            return entry | {"commit": f"c{fraction}", "dirty": False}

        runs = [(0.1, 1), (0.2, 1), (0.3, 8)]
        entries = [entry(kind, *run) for kind in ("limits", "model", "peers") for run in runs]
        fractions = [[row["fraction"] for row in chosen["rows"]] for chosen in plots.merged(entries)]
        self.assertEqual(fractions, [[0.2, 0.3], [0.2, 0.3], [0.3]])
        commits = [[row["commit"] for row in chosen["rows"]] for chosen in plots.merged(entries)]
        self.assertEqual(commits, [["c0.2", "c0.3"], ["c0.2", "c0.3"], ["c0.3"]])

    def test_a_table_row_says_the_fraction(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(plots, "FOLDER", pathlib.Path(folder)):
            text = plots.limits_section({"machine": {"Model name": "m"}, "rows": [LIMITS_ROW]})
            self.assertIn("| int8, 2 planes | 0.50 |", text)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["limits-m-avx2.svg"])


class RandomModel(unittest.TestCase):
    def test_the_shape_is_that_of_the_published_parameter_count(self):
        tensors = random_model.model_tensors(random_model.SHAPES["lfm2"], random_model.RECIPES["q8_0"])
        self.assertEqual(sum(tensor.blocks() * tensor.encoding.elements for tensor in tensors), 2_697_198_592)

    def test_the_same_file_comes_out_each_time(self):
        shape, recipe = random_model.SHAPES["tiny-lfm2"], random_model.RECIPES["q4_0"]
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("a.gguf", "b.gguf")]
            for path in paths:
                random_model.write_model(path, shape, recipe)
            self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())


if __name__ == "__main__":
    unittest.main()
