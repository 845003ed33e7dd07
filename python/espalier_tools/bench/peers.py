"""All engines on one model in one run, round by round, and the ratio of ours to each of theirs.

Every engine is first run once with each of its flag sets; for each work the best set counts from then on. Then all run in
turns, in another order each round, and ratios are formed within rounds (statistics.paired_ratio). Rows: {model, work,
engine, value, unit, ratio, ratio_low, ratio_high, against}: `value` is the engine's median, `ratio` is ours over theirs,
above 1 is faster, and `against` says which of ours it is.
"""

import argparse
import collections
import json
import pathlib
import re
import shlex
import sys
from typing import Sequence

from espalier_tools.bench import install
from espalier_tools.bench.engines import Engine, Espalier, Failed, LlamaBench, OpenVino, complain
from espalier_tools.bench.statistics import median, paired_ratio

DEFAULT_WORKS = "prefill:512,generate:64,call:4,call:8,batch:16"
UNIT = "tokens/s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="GGUF file that all engines read")
    parser.add_argument("--work", default=DEFAULT_WORKS, help=f"list ({DEFAULT_WORKS})")
    parser.add_argument("--rounds", type=int, default=7, help="after the round that chooses flags (7)")
    parser.add_argument("--flags", default="all", choices=["all", "first"],
                        help="first: do not try an engine's other flags, its usual best are its first (all)")
    parser.add_argument("--threads", type=int, default=install.processor_count(), help="of every engine (all processors)")
    parser.add_argument("--weights", default="int8", choices=["int8", "keep"], help="ours, for plain float checkpoints")
    parser.add_argument("--llama-bench", action="append", default=[], metavar="NAME=PATH",
                        help="another llama-bench binary, a fork's for instance (repeatable)")
    parser.add_argument("--llama-sdist", metavar="PATH", help="llama-cpp-python's sdist, if it is there already")
    parser.add_argument("--without", action="append", default=[], choices=["llama.cpp", "openvino"],
                        help="leave a peer out (repeatable)")
    parser.add_argument("--jobs", type=int, default=1, help="of building llama.cpp (1)")
    parser.add_argument("--launcher", default="", help="words in front of every measured process (taskset -c 0-7)")


def named_binary(text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    return (name, path) if separator else (pathlib.Path(text).parent.parent.name, text)


def check(options: argparse.Namespace) -> None:
    """Ends with a sentence where an hour of measuring would end in nothing."""
    for work in options.work.split(","):
        if not re.fullmatch(r"(prefill|generate|call|batch):[1-9]\d*", work):
            sys.exit(f"--work: expected a list like {DEFAULT_WORKS}, got '{work}'")
    for path in [options.model, *(path for _, path in map(named_binary, options.llama_bench))]:
        if not pathlib.Path(path).is_file():
            sys.exit(f"'{path}' is not a file")


def make_engines(options: argparse.Namespace, binary: str) -> list[Engine]:
    common = (options.model, options.threads, shlex.split(options.launcher))
    engines: list[Engine] = [Espalier(binary, bits, options.weights, *common) for bits in (16, 8)]
    binaries: list[tuple[str, str]] = []
    if "llama.cpp" not in options.without:
        binaries += install.llama_binaries(options.llama_sdist, options.jobs).items()
    binaries += map(named_binary, options.llama_bench)
    engines += [LlamaBench(name, path, *common) for name, path in binaries]
    if "openvino" not in options.without:
        engines.append(OpenVino(install.openvino_python(), *common))
    return engines


def rates_of_what_works(engine: Engine, works: list[str], flags: list[str]) -> dict[str, float]:
    """All works in one process; where that fails, each alone, so that one bad work costs no other."""
    try:
        return engine.rates(works, flags)
    except Failed as failure:
        if len(works) == 1:
            complain(f"{engine.name} {' '.join(flags)}: {works[0]}: {failure}")
            return {}
    rates: dict[str, float] = {}
    for work in works:
        rates |= rates_of_what_works(engine, [work], flags)
    return rates


def best_flags(engine: Engine, works: Sequence[str], flag_sets: list[list[str]]) -> dict[str, list[str]]:
    """Work -> the flag set that is fastest for it; without the works that the engine cannot do."""
    best: dict[str, tuple[float, list[str]]] = {}
    for flags in flag_sets:
        for work, rate in rates_of_what_works(engine, list(filter(engine.can, works)), flags).items():
            if work not in best or rate > best[work][0]:
                best[work] = (rate, flags)
    for work, (rate, flags) in best.items():
        complain(f"{engine.name}: {work}: {rate:.1f} {UNIT} with {' '.join(flags) or 'no flags'}")
    return {work: flags for work, (_, flags) in best.items()}


def measure_round(engine: Engine, flags_of: dict[str, list[str]]) -> dict[str, float]:
    works_of = collections.defaultdict(list)  # one process for the works that want the same flags
    for work, flags in flags_of.items():
        works_of[tuple(flags)].append(work)
    rates: dict[str, float] = {}
    for flags, works in works_of.items():
        rates |= engine.rates(works, flags)
    return rates


def rows_of(model: str, engines: Sequence[Engine], samples: dict[str, dict[str, list[float]]]) -> list[dict]:
    rows = []
    for engine in engines:
        for work, theirs in samples[engine.name].items():
            row = {"model": model, "work": work, "engine": engine.name, "value": median(theirs), "unit": UNIT}
            if engine.ours:
                rows.append(row | {"ratio": None, "ratio_low": None, "ratio_high": None, "samples": theirs})
                continue
            for ours in filter(lambda candidate: candidate.ours, engines):
                if work in samples[ours.name]:
                    ratio, low, high = paired_ratio(samples[ours.name][work], theirs)
                    ratios = {"ratio": ratio, "ratio_low": low, "ratio_high": high}
                    rows.append(row | ratios | {"against": ours.name, "samples": theirs})
    return rows


def measure(options: argparse.Namespace, binary: str) -> list[dict]:
    check(options)
    works = options.work.split(",")
    engines = make_engines(options, binary)
    tried = slice(1 if options.flags == "first" else None)
    flags = {engine.name: best_flags(engine, works, engine.flag_sets[tried]) for engine in engines}
    engines = [engine for engine in engines if flags[engine.name]]
    samples: dict = {engine.name: collections.defaultdict(list) for engine in engines}
    for round_index in range(options.rounds):
        if not any(engine.ours for engine in engines):
            complain("nothing of ours is left to compare")
            break
        turn = round_index % len(engines)
        for engine in engines[turn:] + engines[:turn]:
            try:
                rates = measure_round(engine, flags[engine.name])
            except Failed as failure:  # rounds are pairs: an engine that misses one is out
                complain(f"{engine.name} is left out: {failure}")
                engines = [other for other in engines if other is not engine]
                continue
            for work, rate in rates.items():
                samples[engine.name][work].append(rate)
        complain(f"round {round_index + 1} of {options.rounds}")
    rows = rows_of(pathlib.Path(options.model).stem, engines, samples)
    for row in rows:
        row["flags"] = " ".join(flags[row["engine"]][row["work"]])
        print_row(row)
    return rows


def print_row(row: dict) -> None:
    text = f"{row['work']:14} {row['engine']:30} {row['value']:10.1f} {row['unit']}"
    if row["ratio"] is not None:
        text += f"   {row['against']}: {row['ratio']:.2f}x ({row['ratio_low']:.2f} - {row['ratio_high']:.2f})"
    print(text, flush=True)


def write_rows(rows: list[dict], path: str) -> None:
    pathlib.Path(path).write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
