"""No block of eight lines or more stands twice. Blank lines, comments, includes and lone punctuation do not count."""

import re
from typing import Iterator

import sources
from sources import Finding

BLOCK_LINES = 8
IGNORED = re.compile(r"^(#include\b|#pragma\b|import\b|from\b.*\bimport\b|using\b|[^\w\"']*$)")


def counted_lines(path: str) -> list[tuple[int, str]]:
    """(line number, text with white space folded) of the lines that count."""
    text = sources.read(path)
    if path.endswith(sources.CPP):
        text = sources.blank_cpp(text, "comment")
    else:
        text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    folded = ((number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in folded if not IGNORED.match(line)]


def check() -> Iterator[Finding]:
    seen: dict[tuple[str, ...], tuple[str, int]] = {}  # block -> where it stood first
    for path in sources.files(*sources.CPP, *sources.PYTHON, *sources.CMAKE):
        if path in sources.GENERATED:
            continue
        lines = counted_lines(path)
        skip_until = 0
        for start in range(len(lines) - BLOCK_LINES + 1):
            block = tuple(line for _, line in lines[start : start + BLOCK_LINES])
            first = seen.setdefault(block, (path, lines[start][0]))
            if first == (path, lines[start][0]) or start < skip_until:
                continue
            skip_until = start + BLOCK_LINES
            rule = f"{BLOCK_LINES} or more lines that stand at {first[0]}:{first[1]} already"
            yield Finding(path, lines[start][0], rule, "Give the shared part one name and one place.")
