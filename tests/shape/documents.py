"""The documents speak of what is there: commands of ./dev, files, links; and the presets are valid."""

import json
import re
from typing import Iterator

import sources
from sources import Finding

FOLDERS = "espalier|tests|docs|cmake|python|tools|bench"
DEV_COMMAND = re.compile(r"(?<![\w/])\./dev ([a-z]+)")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]*\w|\w+\.md)`")


def check() -> Iterator[Finding]:
    commands = set(re.findall(r"[a-z]+", " ".join(re.findall(r"^  ([a-z| -]+)\) ", sources.read("dev"), re.MULTILINE))))
    for path in sources.files(".md"):
        text = sources.read(path)
        for match in DEV_COMMAND.finditer(text):
            if match.group(1) not in commands:
                line = sources.line_of(text, match.start())
                yield Finding(path, line, f"./dev has no command '{match.group(1)}'", "Correct the document, or add it to ./dev.")
        yield from check_paths(path, text)
    yield from check_presets()


def check_paths(path: str, text: str) -> Iterator[Finding]:
    folder = (sources.ROOT / path).parent
    for match in [*LINK.finditer(text), *PATH.finditer(text)]:
        name = match.group(1)
        if name.startswith(("http:", "https:", "mailto:")):
            continue
        if not (folder / name).exists() and not (sources.ROOT / name).exists():
            line = sources.line_of(text, match.start())
            yield Finding(path, line, f"{name} does not exist", "Correct the document.")


def check_presets() -> Iterator[Finding]:
    text = sources.read("CMakePresets.json")
    try:
        names = {preset["name"] for preset in json.loads(text)["configurePresets"]}
    except (ValueError, KeyError, TypeError) as error:
        yield Finding("CMakePresets.json", getattr(error, "lineno", 1), f"not valid: {error}", "Correct it.")
        return
    missing = {"release", "debug", "thread", "portable", "fuzz"} - names
    for name in sorted(missing):
        yield Finding("CMakePresets.json", 1, f"the preset '{name}' is missing", "./dev build needs it.")
