"""Runs the libFuzzer targets of a build folder, two at a time: run.py --build FOLDER --seconds N [target ...].

New inputs gather in FOLDER/corpus/<target>, beside the committed corpus, which is only read. An input that crashes, hangs
or leaks stays in FOLDER/findings. Exit 1 when a target found something.
"""

import argparse
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
PARALLEL = 2
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024"]  # an input is a finding above these


def targets(build: pathlib.Path) -> dict[str, pathlib.Path]:
    return {path.name.removesuffix("_fuzz"): path for path in sorted((build / "tests/fuzz").glob("*_fuzz"))}


def fuzz(name: str, program: pathlib.Path, build: pathlib.Path, seconds: int) -> bool:
    """Fuzzes one target, prints one line about it, and says whether it is clean."""
    gathered, findings, log = build / "corpus" / name, build / "findings", build / f"{name}.log"
    gathered.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    command = [program, f"-max_total_time={seconds}", f"-artifact_prefix={findings}/{name}-", "-print_final_stats=1"]
    dictionary = HERE / f"{name}.dict"
    command += LIMITS + [f"-dict={dictionary}"] * dictionary.exists() + [gathered, HERE / "corpus" / name]
    with log.open("wb") as output:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
    said = log.read_text(errors="replace")
    executed = re.search(r"number_of_executed_units: (\d+)", said)
    covered = re.findall(r" cov: (\d+)", said)
    print(f"fuzz {name}: {'clean' if status.returncode == 0 else 'FOUND SOMETHING'}, {seconds} s,"
          f" {executed.group(1) if executed else '?'} inputs, {covered[-1] if covered else '?'} edges covered", flush=True)
    if status.returncode != 0:
        print("\n".join(said.splitlines()[-40:]), f"\nlog: {log}\ninputs: {findings}", flush=True)
    return status.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("target", nargs="*")
    arguments = parser.parse_args()
    present = targets(arguments.build)
    unknown = set(arguments.target) - set(present)
    if unknown or not present:
        print(f"no fuzz target {', '.join(sorted(unknown))}; there is: {', '.join(present) or 'none'}")
        return 2
    chosen = arguments.target or list(present)
    with ThreadPoolExecutor(PARALLEL) as pool:
        clean = list(pool.map(lambda name: fuzz(name, present[name], arguments.build, arguments.seconds), chosen))
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
