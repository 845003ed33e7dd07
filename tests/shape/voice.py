"""Errors speak in one voice: what to do is a sentence, so it begins with a capital letter."""

import re
from typing import Iterator

import sources
from sources import Finding

# A text that is given to `fix`, and its first character: a letter, or the quote or brace of a name that comes first.
FIX = re.compile(r'\bfix\s*=\s*(?:fmt::format\(\s*)?"([^"])')


def bad_fixes(text: str) -> Iterator[int]:
    """Offsets of the texts that begin otherwise."""
    for match in FIX.finditer(text):
        if match.group(1).isalpha() and not match.group(1).isupper():
            yield match.start()


def check() -> Iterator[Finding]:
    for path in sources.files(*sources.CPP):
        text = sources.read(path)
        for offset in bad_fixes(text) if path.startswith("espalier/") else ():
            rule = "what to do about an error begins with a small letter"
            yield Finding(path, sources.line_of(text, offset), rule, "Make it a sentence.")
