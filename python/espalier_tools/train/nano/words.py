"""The large word list from which random word sequences are drawn: every ordinary word of some text files."""

import pathlib
import re
from collections import Counter
from typing import Iterable

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def read_words(paths: Iterable[str | pathlib.Path], least_count: int = 2) -> list[str]:
    """Distinct lower-case words of text and JSON files, or of all such files in folders; sorted, so order never varies.

    Words met once are mostly errors of scanning or identifiers, hence least_count.
    """
    counts: Counter[str] = Counter()
    for path in map(pathlib.Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.suffix in (".txt", ".json", ".md"):
                counts.update(word.lower() for word in WORD.findall(file.read_text("utf-8", "replace")))
    return sorted(word for word, count in counts.items() if count >= least_count and 2 <= len(word) <= 14)
