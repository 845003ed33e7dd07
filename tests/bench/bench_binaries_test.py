"""limits_bench and model_bench once on something small: rows of the documented form, and errors that help."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from espalier_tools.bench import random_model

BINARIES = pathlib.Path(sys.argv.pop(1))


def run(name: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARIES / name, *words], capture_output=True, text=True)


def rows_of(name: str, *words: str) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.json"
        done = run(name, *words, "--json", str(path))
        assert done.returncode == 0, done.stderr
        return json.loads(path.read_text())


class Limits(unittest.TestCase):
    def test_a_row_for_each_cell_with_a_floor_that_is_the_slower_of_the_two(self):
        rows = rows_of("limits_bench", "--megabytes", "1", "--rounds", "1", "--encoding", "q4_0", "--rows", "1,3", "--threads", "1")
        self.assertTrue(rows)
        for row in rows:
            self.assertLessEqual({"kernel", "encoding", "planes", "rows", "ms", "floor_ms", "fraction"}, row.keys())
            self.assertEqual(row["fraction"], row["floor_ms"] / row["ms"])
            self.assertGreaterEqual(row["floor_ms"], row["bytes"] / row["read_gb_s"] * 1e-6 * (1 - 1e-9))
        for kernel in {row["kernel"] for row in rows}:
            cells = [(row["planes"], row["rows"]) for row in rows if row["kernel"] == kernel]
            self.assertEqual(cells, [(2, 1), (2, 3), (1, 1), (1, 3)])

    def test_wrong_use_is_an_error_that_says_what_was_expected(self):
        for words, expected in ((["--row", "1"], "no flag '--row'"), (["--rows", "1,x"], "a whole number from 1"),
                                (["--encoding", "q9"], "q4_k"), (["--rows"], "has no value"),
                                (["--cpu-time", "2"], "from 0 to 1")):
            done = run("limits_bench", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(expected, done.stderr)


class Model(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def model(self, shape: str) -> str:
        path = self.folder / "model.gguf"
        random_model.write_model(path, random_model.SHAPES[shape], random_model.RECIPES["q8_0"])
        return str(path)

    def test_every_kind_of_work_runs_on_both_architectures(self):
        works = "prefill:70,generate:3,decode:100,call:4,verify:1,verify:2,verify:3,batch:5"
        for shape in ("tiny-lfm2", "tiny-llama"):
            rows = rows_of("model_bench", "--model", self.model(shape), "--work", works, "--rounds", "1")
            values = {row["work"]: row for row in rows}
            self.assertLessEqual({"load", "memory", "verify:T*", "verify:3/1", *works.split(",")}, values.keys())
            self.assertTrue(all(row["model"].startswith("random weights") for row in rows))
            self.assertTrue(all(row["value"] > 0 for row in rows))
            call = values["call:4"]
            self.assertEqual(call["fraction"], call["floor"] / call["value"])

    def test_work_that_does_not_fit_says_what_would(self):
        for works, expected in (("call:65", "at most 64 rows"), ("prefill:9999", "context"), ("decode", "KIND:N")):
            done = run("model_bench", "--model", self.model("tiny-llama"), "--work", works, "--rounds", "1")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()
