"""Every C++ file is as clang-format 14 leaves it. One version, because versions differ; ./dev fmt formats in place."""

import os
import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Iterator

import sources
from sources import Finding

VERSION = "14."


class NoFormatter(Exception):
    pass


def formatter() -> str:
    local = sources.ROOT / ".venv/bin/clang-format"
    for candidate in (shutil.which("clang-format-14"), str(local), shutil.which("clang-format")):
        if candidate and pathlib.Path(candidate).exists():
            said = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=True).stdout
            if f"version {VERSION}" in said:
                return candidate
    raise NoFormatter(f"clang-format {VERSION}x is not installed: ./dev fmt installs it")


def run_on_all(*arguments: str) -> str:
    """What clang-format says about all files, in batches on all cores."""
    tool, paths = formatter(), [str(sources.ROOT / path) for path in sources.files(*sources.CPP)]
    batches = [paths[start : start + 8] for start in range(0, len(paths), 8)]

    def run(batch: list[str]) -> str:
        return subprocess.run([tool, *arguments, *batch], capture_output=True, text=True, check=False).stderr

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return "".join(pool.map(run, batches))


def check() -> Iterator[Finding]:
    said = run_on_all("--dry-run", "--ferror-limit=1", "-Werror")
    for path, line in re.findall(r"^(.*?):(\d+):\d+: error: ", said, re.MULTILINE):
        relative = pathlib.Path(path).relative_to(sources.ROOT).as_posix()
        yield Finding(relative, int(line), "not as clang-format leaves it", "Run ./dev fmt.")


def write() -> None:
    run_on_all("-i")
