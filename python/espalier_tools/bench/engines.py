"""The engines that `peers` compares: how each is run once and what it says, as tokens per second of each work.

A work is spelled as bench/model_work.h spells it: prefill:N is a text of N tokens, generate:N is N tokens one by one,
call:N is one call of N rows, batch:N is a token for each of N sequences in one call. One measurement is one process,
which loads the model, warms up, and measures each work once; loading is not counted.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Iterable, Sequence

TIMEOUT_S = 900
BATCH_TEXT, BATCH_TOKENS = 32, 16  # tokens of each sequence before and while it is measured

Rates = dict[str, float]


def kind_of(work: str) -> str:
    return work.split(":")[0]


def amount_of(work: str) -> int:
    return int(work.split(":")[1])


def absolute(path: str) -> str:
    return str(pathlib.Path(path).resolve())


class Failed(Exception):
    """The engine did not do the work: its words."""


def parsed(text: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Failed(f"no JSON but {text[:80]!r}") from error


class Engine:
    """`flag_sets` are ways to run it; which one is best for a work is found by trying all of them."""

    name: str
    ours = False
    flag_sets: list[list[str]]

    def __init__(self, model: str, threads: int, launcher: Sequence[str]):
        self.model, self.threads, self.launcher = absolute(model), threads, list(launcher)

    def can(self, work: str) -> bool:
        return True

    def rates(self, works: Sequence[str], flags: Sequence[str]) -> Rates:
        raise NotImplementedError

    def output(self, command: Iterable[object], with_errors: bool = False) -> str:
        words = self.launcher + [str(word) for word in command]
        try:
            with tempfile.TemporaryDirectory() as folder:  # some peers leave a log where they run
                done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=folder)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout + (done.stderr if with_errors else "")


class Espalier(Engine):
    ours = True

    def __init__(self, binary: str, activations: int, weights: str, *common):
        super().__init__(*common)
        self.binary, self.name = absolute(binary), f"espalier, {activations}-bit activations"
        self.fixed = ["--activations", activations, "--weights", weights, "--threads", self.threads]
        self.flag_sets = [["--window", "128"], ["--window", "64"], ["--window", "256"]]
        if activations == 8:  # as the peers, which may keep K and V in 8 bits, too
            self.flag_sets += [["--window", "128", "--kv", "8"], ["--window", "64", "--kv", "8"]]

    def rates(self, works, flags):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            common = ["--model", self.model, "--rounds", 1, "--floor", 0, "--json", path]
            self.output([self.binary, *common, *self.fixed, *flags, "--work", ",".join(works)])
            rows = json.loads(path.read_text())
        amounts = {row["work"]: amount_of(row["work"]) for row in rows}
        return {
            row["work"]: row["value"] if row["unit"] == "tokens/s" else amounts[row["work"]] * 1e3 / row["value"]
            for row in rows
        }


class LlamaBench(Engine):
    """llama-bench of llama.cpp or of a fork; llama-batched-bench beside it, where it is."""

    def __init__(self, name: str, binary: str, *common):
        super().__init__(*common)
        self.name, self.binary = name, pathlib.Path(absolute(binary))
        self.batched = self.binary.with_name("llama-batched-bench")
        help_text = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=60).stdout
        on, off = ("on", "off") if "<on|off|auto>" in help_text else ("1", "0")
        repacks = [["--repack", "1"], ["--repack", "0"]] if "--repack" in help_text else [[]]
        if "--run-time-repack" in help_text:
            repacks = [["-rtr", "1"], ["-rtr", "0"]]
        self.flag_sets = [[*repack, "-fa", attention] for repack in repacks for attention in (on, off)]
        self.flag_sets.append([*repacks[0], "-fa", on, "-ctk", "q8_0", "-ctv", "q8_0"])

    def can(self, work):
        return kind_of(work) != "batch" or self.batched.exists()

    def rates(self, works, flags):
        result: Rates = {}
        prompts = [work for work in works if kind_of(work) in ("prefill", "call")]
        answers = [work for work in works if kind_of(work) == "generate"]
        if prompts or answers:
            result |= self.bench_rates(prompts, answers, flags)
        for work in works:
            if kind_of(work) == "batch":
                result[work] = self.batch_rate(amount_of(work), flags)
        return result

    def bench_rates(self, prompts, answers, flags) -> Rates:
        sizes = {"-p": prompts, "-n": answers}
        lists = [part for flag, works in sizes.items() for part in (flag, ",".join(str(amount_of(w)) for w in works) or "0")]
        common = ["-m", self.model, "-t", self.threads, "-r", 1, "-o", "json"]
        rows = parsed(self.output([self.binary, *common, *lists, *flags]))
        by_size = {(row["n_prompt"], row["n_gen"]): row["avg_ts"] for row in rows}
        sizes_of = {work: (amount_of(work), 0) for work in prompts} | {work: (0, amount_of(work)) for work in answers}
        missing = [work for work, size in sizes_of.items() if size not in by_size]
        if missing:
            raise Failed(f"{self.binary} did not measure {', '.join(missing)}")
        return {work: by_size[size] for work, size in sizes_of.items()}

    def batch_rate(self, sequences: int, flags) -> float:
        switches = {("--repack", "0"): ["--no-repack"], ("--repack", "1"): [], ("-rtr", "0"): [], ("-rtr", "1"): ["-rtr"]}
        flags = [*switches.get(tuple(flags[:2]), flags[:2]), *flags[2:]]
        context = sequences * (BATCH_TEXT + BATCH_TOKENS)
        sizes = ["-npp", BATCH_TEXT, "-ntg", BATCH_TOKENS, "-npl", sequences, "-c", context]
        command = [self.batched, "-m", self.model, "-t", self.threads, *sizes, *flags]
        text = self.output(command, with_errors=True)  # where forks print the table
        rows = re.findall(r"^\|" + r"\s*([\d.]+)\s*\|" * 8, text, re.MULTILINE)  # PP TG B N_KV T_PP S_PP T_TG S_TG
        if not rows:
            raise Failed(f"{self.batched} printed no table")
        return float(rows[-1][7])


class OpenVino(Engine):
    """OpenVINO GenAI in a virtual environment of its own; reads GGUF files of the Llama architecture."""

    name = "openvino-genai"
    flag_sets: list[list[str]] = [[]]

    def __init__(self, python: str, *common):
        super().__init__(*common)
        self.python = python

    def rates(self, works, flags):
        script = pathlib.Path(__file__).with_name("openvino_run.py")
        lines = self.output([self.python, script, self.model, self.threads, *works]).splitlines()
        return parsed(lines[-1] if lines else "")


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
