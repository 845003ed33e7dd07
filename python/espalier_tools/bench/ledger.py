"""The ledger of results: bench/ledger.jsonl, one line a run, only ever appended to.

An entry says when, on which machine, of which source and model, by which command, and what came out: whoever doubts a figure
can repeat it.
"""

import datetime
import hashlib
import json
import pathlib
import subprocess
import sys
from typing import Iterator, Optional

ROOT = pathlib.Path(__file__).resolve().parents[3]
LEDGER = ROOT / "bench" / "ledger.jsonl"
MACHINE_FIELDS = ["Model name", "CPU family", "Model", "Stepping", "CPU(s)", "Hypervisor vendor", "L2 cache", "L3 cache"]
FLAGS_THAT_MATTER = ["avx2", "avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm", "sme"]
NOT_SOURCE = [":!bench/ledger.jsonl", ":!docs"]  # measuring changes them
CHUNK_BYTES = 1 << 24


def first_line(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip().split("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine() -> dict:
    """Of lscpu; empty where there is none."""
    try:
        text = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    fields = dict((part.strip() for part in line.split(":", 1)) for line in text.splitlines() if ":" in line)
    present = set(fields.get("Flags", fields.get("Features", "")).split())
    chosen = {name: fields[name] for name in MACHINE_FIELDS if name in fields}
    return chosen | {"features": [flag for flag in FLAGS_THAT_MATTER if flag in present]}


def file_hash(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def compiler(build: pathlib.Path) -> str:
    """The first line of the version of the compiler that the build folder was configured with."""
    cache = build / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    paths = [line.split("=", 1)[1] for line in lines if line.startswith("CMAKE_CXX_COMPILER:")]
    return first_line(paths[0], "--version") if paths else ""


def git(*words: str) -> str:
    return first_line("git", "-c", "safe.directory=*", "-C", str(ROOT), *words)


def entry(benchmark: str, command: list[str], model: Optional[str], rows: list[dict]) -> dict:
    hashed = pathlib.Path(model) if model else None
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "benchmark": benchmark,
        "machine": machine(),
        "commit": git("rev-parse", "HEAD"),
        "source": git("rev-parse", "HEAD:espalier"),  # by content: it outlives a rebase
        "dirty": git("status", "--porcelain", "--untracked-files=no", "--", ".", *NOT_SOURCE) != "",
        "compiler": compiler(ROOT / "build" / "release"),
        "model": {"file": hashed.name, "sha256": file_hash(hashed)} if hashed and hashed.is_file() else None,
        "command": command,
        "rows": rows,
    }


def append(line: dict, path: pathlib.Path = LEDGER) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line, sort_keys=True) + "\n")


def entries(path: pathlib.Path = LEDGER) -> Iterator[dict]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            sys.exit(f"{path}:{number}: not a line of JSON ({error}). Restore the file: it is only ever appended to.")
