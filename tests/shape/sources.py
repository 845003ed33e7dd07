"""The source files of the repository and how to read them; shared by the checks of the code's shape."""

import os
import pathlib
import re
from typing import Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS = {".git", ".venv", ".cache", "build", "__pycache__"}

# Tables written by a program: exempt from the limits on size and repetition, by name, here and nowhere else.
GENERATED = {"espalier/text/unicode_tables.cc", "espalier/text/jinja/unicode_table.cc"}

CPP = (".h", ".cc")
PYTHON = (".py",)
CMAKE = ("CMakeLists.txt", ".cmake")


class Finding(NamedTuple):
    """A broken rule: where, which, and what to do about it."""

    path: str
    line: int
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}. {self.advice}"


def files(*endings: str) -> Iterator[str]:
    """Paths relative to the root, in order, of the files whose names end in one of `endings`."""
    found = []
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
        relative = pathlib.Path(folder).relative_to(ROOT)
        found += [(relative / name).as_posix() for name in names if name.endswith(endings)]
    return iter(sorted(found))


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


_CPP_LEXEMES = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>\bR"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<character>(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+')
      | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def blank_cpp(text: str, *kinds: str) -> str:
    """`text` with these lexemes (comment, string, raw, character, directive) turned into spaces; lines stay put."""

    def blank(match: re.Match) -> str:
        if match.lastgroup not in kinds:
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return _CPP_LEXEMES.sub(blank, text)
