"""Includes go one way: the table below, and nothing else. docs/architecture.md says why each edge is there."""

import re
from typing import Iterator, Optional

import sources
from sources import Finding

# folder under espalier/ -> what it may include besides base and itself. "units" is units/unit.h and units/registry.*;
# "units/x" stands for each unit's own folder, which never sees another unit.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "formats": set(),
    "text": set(),
    "program": set(),
    "models": {"program"},
    "units": {"program"},
    "units/x": {"program", "units/unit.h"},
    "decode": set(),
    "placement": {"program", "units/unit.h"},
    "engine": {"formats", "program", "models", "units", "decode", "placement"},
    "measure": {"program"},
    "serve": {"text", "engine", "measure"},
}
EVERYTHING = {"cli"}  # as are bench/ and tests/, which are not under espalier/
# units/registry.cc is the one table that names every unit.
EXCEPTIONS = {("espalier/units/registry.cc", "units/x")}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def folder_of(path: str) -> Optional[str]:
    """espalier/units/cpu/linear.h -> units/cpu; espalier/units/unit.h -> units; None outside espalier/."""
    parts = path.split("/")
    if parts[0] != "espalier" or len(parts) < 3:
        return None
    return "/".join(parts[1:3]) if parts[1] == "units" and len(parts) > 3 else parts[1]


def allowed(path: str, target: str) -> bool:
    here, there = folder_of(path), folder_of(target)
    if here in EVERYTHING or there in ("base", here):
        return True
    kind = "units/x" if here.startswith("units/") else here
    there_kind = "units/x" if there.startswith("units/") else there
    return bool(
        (path, there_kind) in EXCEPTIONS
        or ALLOWED.get(kind, set()) & {there, target.removeprefix("espalier/")}
    )


def check() -> Iterator[Finding]:
    for path in sources.files(*sources.CPP):
        text = sources.read(path)
        if path.endswith(".h") and "#pragma once" not in text:
            yield Finding(path, 1, "a header without #pragma once", "Add it below the opening comment.")
        if folder_of(path) is None:
            continue
        for match in INCLUDE.finditer(sources.blank_cpp(text, "comment")):
            yield from check_edge(path, sources.line_of(text, match.start(1)), match.group(1))


def check_edge(path: str, line: int, target: str) -> Iterator[Finding]:
    here, there = folder_of(path), folder_of(target)
    if there is None:
        rule = f'"{target}" is not a path from the root of the repository'
        yield Finding(path, line, rule, 'Write "espalier/<folder>/<file>.h", or <angle brackets> for a library.')
    elif here not in EVERYTHING and here not in ALLOWED and not here.startswith("units/"):
        yield Finding(path, line, f"the folder {here} is not in the include table", "Add its row to tests/shape/includes.py.")
    elif not allowed(path, target):
        advice = "Move the shared part to base/, or pass it in through an interface of this folder."
        yield Finding(path, line, f"espalier/{here} may not include espalier/{there}", advice)
