"""Files that are whole or not there: written beside and renamed, with a clear error when the disk is full."""

import contextlib
import errno
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import BinaryIO


class DiskFull(RuntimeError):
    """No space for a file; what was there before is untouched."""


@contextlib.contextmanager
def _space_for(path: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"{path}: no space left; free some and run the same command to go on") from error
        raise


def write_whole(path: pathlib.Path, write: Callable[[BinaryIO], None]) -> None:
    """Lets `write` fill a new file and puts it in the place of `path` once it is on the disk.

    A reader, or a process killed at any time, sees the old file or the new one. DiskFull if there is no space.
    """
    with _space_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with temporary.open("wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def remove_parts(folder: pathlib.Path, name: str) -> None:
    """Removes what processes killed while writing `name` left beside it; only for a file that no other process writes."""
    for part in folder.glob(f".{name}.*.part"):
        part.unlink(missing_ok=True)


def append_line(path: pathlib.Path, line: str) -> None:
    """DiskFull if there is no space; the file may then end in a part of the line."""
    with _space_for(path), path.open("a") as file:
        file.write(line + "\n")


def write_json(path: pathlib.Path, value: object) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))
