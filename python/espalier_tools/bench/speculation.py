"""What speculation gains: the same answers with and without it, in turns, one process each.

Greedy answers to prompts of several classes, every way of speculating against plain decoding within each round; the tokens
must be the same. Rows: {model, class, way, ratio, ratio_low, ratio_high, tokens_per_cycle, verify_share, draft_share, tok_s,
plain_tok_s, answers}: `ratio` is plain decoding's time over this way's, from the first token to the last.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import subprocess
import sys
from typing import Sequence

from espalier_tools.bench.statistics import median, paired_ratio

PROMPTS = pathlib.Path(__file__).with_name("speculation_prompts.json")  # class -> prompts
PLAIN = "off"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="what espalier run takes")
    parser.add_argument("--drafter", help="DSpark checkpoint; adds ways with it")
    parser.add_argument("--prompts", type=pathlib.Path, default=PROMPTS, help="JSON object: class -> list of prompts")
    parser.add_argument("--ways", default="auto,tree:16", help="MODE or MODE:DRAFT_TOKENS, as a list (auto,tree:16)")
    parser.add_argument("--answers", type=int, default=40, help="of each class; prompts come again where there are fewer (40)")
    parser.add_argument("--max-tokens", type=int, default=128, help="of an answer (128)")
    parser.add_argument("--threads", type=int, help="of the engine (all processors)")


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    flags: tuple[str, ...]

    @staticmethod
    def of(text: str, drafter: str | None) -> "Way":
        mode, _, nodes = text.partition(":")
        flags = ["--speculate", mode] + (["--draft-tokens", nodes] if nodes else [])
        return Way(text + (" + drafter" if drafter else ""), tuple(flags + (["--drafter", drafter] if drafter else [])))


def answer(binary: str, options: argparse.Namespace, prompt: str, way: Way) -> dict:
    """The JSON of `espalier run`."""
    command = [binary, "run", "-m", options.model, "--greedy", "--json", "-n", str(options.max_tokens), *way.flags]
    command += ["--threads", str(options.threads)] if options.threads else []
    done = subprocess.run([*command, "--", prompt], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def decode_ms(report: dict) -> float:
    return 1000 * (len(report["token_ids"]) - 1) / report["timings"]["decode_tok_s"]


def answers(binary: str, options: argparse.Namespace, prompts: Sequence[str], ways: Sequence[Way]) -> dict[str, list[dict]]:
    """Way -> reports, one for each round; plain decoding is among them. Answers of one token are left out."""
    found: dict[str, list[dict]] = collections.defaultdict(list)
    for number in range(options.answers):
        prompt = prompts[number % len(prompts)]
        turns = ways[number % len(ways) :] + ways[: number % len(ways)]
        reports = {way.name: answer(binary, options, prompt, way) for way in turns}
        plain = reports[PLAIN]["token_ids"]
        for name, report in reports.items():
            if report["token_ids"] != plain:
                sys.exit(f"{name}: other tokens than plain decoding for {prompt!r}")
            if len(plain) > 1:
                found[name].append(report)
    return found


def row(options: argparse.Namespace, kind: str, way: Way, reports: list[dict], plain: list[dict]) -> dict:
    times, plain_times = [decode_ms(r) for r in reports], [decode_ms(r) for r in plain]
    ratio, low, high = paired_ratio(plain_times, times)
    sums = collections.Counter()
    for report in reports:
        sums.update({key: report["speculation"][key] for key in ("cycles", "accepted_tokens", "verify_ms", "draft_ms")})
    return {
        "model": pathlib.Path(options.model).name, "class": kind, "way": way.name,
        "ratio": ratio, "ratio_low": low, "ratio_high": high,
        "tokens_per_cycle": 1 + sums["accepted_tokens"] / max(sums["cycles"], 1),
        "verify_share": sums["verify_ms"] / sum(times), "draft_share": sums["draft_ms"] / sum(times),
        "tok_s": median([r["timings"]["decode_tok_s"] for r in reports]),
        "plain_tok_s": median([r["timings"]["decode_tok_s"] for r in plain]),
        "answers": len(reports),
    }


def table(rows: Sequence[dict]) -> str:
    """In Markdown."""
    lines = ["| class | way | speed-up (95 %) | tokens a cycle | calls | guessing | tokens/s | plain |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['class']} | {r['way']} | {r['ratio']:.2f} ({r['ratio_low']:.2f} to {r['ratio_high']:.2f}) "
            f"| {r['tokens_per_cycle']:.2f} | {100 * r['verify_share']:.0f} % | {100 * r['draft_share']:.1f} % "
            f"| {r['tok_s']:.1f} | {r['plain_tok_s']:.1f} |"
        )
    return "\n".join(lines)


def measure(options: argparse.Namespace, binary: str) -> list[dict]:
    """All rows; each class is printed when it is done."""
    classes = json.loads(options.prompts.read_text())
    ways = [Way(PLAIN, ("--speculate", PLAIN))]
    for drafter in [None] + ([options.drafter] if options.drafter else []):
        ways += [Way.of(text, drafter) for text in options.ways.split(",")]
    rows = []
    for kind, prompts in classes.items():
        found = answers(binary, options, prompts, ways)
        rows += [row(options, kind, way, found[way.name], found[PLAIN]) for way in ways[1:]]
        print(table(rows[-len(ways) + 1 :]), flush=True)
    return rows
