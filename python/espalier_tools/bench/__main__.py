"""python -m espalier_tools.bench limits|model|peers|speculation|plots [--json FILE] [--record] [flags]; ./dev bench calls it.

limits and model are the binaries of the release build, whose flags go to them; --record appends what they measured to the
ledger, and plots draws docs/performance from that.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from espalier_tools.bench import ledger, peers, plots, speculation

BENCHMARKS = ("limits", "model", "peers", "speculation", "plots")
BINARIES = ledger.ROOT / "build" / "release" / "bench"


def value_of(flag: str, words: list[str]) -> str | None:
    return words[words.index(flag) + 1] if flag in words[:-1] else None


def run_binary(benchmark: str, words: list[str], json_path: str) -> list[dict]:
    done = subprocess.run([BINARIES / f"{benchmark}_bench", *words, "--json", json_path])
    if done.returncode != 0 or not {"-h", "--help"}.isdisjoint(words):
        sys.exit(done.returncode)
    return json.loads(pathlib.Path(json_path).read_text())


def run_peers(words: list[str], json_path: str) -> list[dict]:
    parser = argparse.ArgumentParser("bench peers", description=peers.__doc__.splitlines()[0])
    peers.add_arguments(parser)
    rows = peers.measure(parser.parse_args(words), str(BINARIES / "model_bench"))
    peers.write_rows(rows, json_path)
    return rows


def run_speculation(words: list[str], json_path: str) -> list[dict]:
    parser = argparse.ArgumentParser("bench speculation", description=speculation.__doc__.splitlines()[0])
    speculation.add_arguments(parser)
    rows = speculation.measure(parser.parse_args(words), str(ledger.ROOT / "build" / "release" / "bin" / "espalier"))
    peers.write_rows(rows, json_path)
    return rows


def split_word(word: str) -> list[str]:
    """--flag=value and -m are understood as espalier understands them."""
    if word == "-m":
        return ["--model"]
    return word.split("=", 1) if word.startswith("--") and "=" in word else [word]


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in BENCHMARKS:
        sys.exit(f"usage: ./dev bench {'|'.join(BENCHMARKS)} [flags]")
    benchmark, words = sys.argv[1], list(itertools.chain.from_iterable(map(split_word, sys.argv[2:])))
    if benchmark == "plots":
        return plots.main()
    if words[-1:] == ["--json"]:
        sys.exit("--json: expected a file behind it")
    record = "--record" in words
    words = [word for word in words if word != "--record"]
    json_path = value_of("--json", words)
    if json_path is not None:
        at = words.index("--json")
        del words[at : at + 2]
    with tempfile.TemporaryDirectory() as folder:
        path = json_path or os.path.join(folder, "rows.json")
        ours = {"peers": run_peers, "speculation": run_speculation}
        rows = ours[benchmark](words, path) if benchmark in ours else run_binary(benchmark, words, path)
    if record:
        ledger.append(ledger.entry(benchmark, [benchmark, *words], value_of("--model", words), rows))


if __name__ == "__main__":
    main()
