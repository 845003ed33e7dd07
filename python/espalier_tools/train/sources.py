"""Text from packages of PyPI: pinned versions, checked hashes, unpacked into a folder and never imported."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from espalier_tools.bench.install import cache_folder

# name -> version and SHA-256 of the file
PACKAGES = {
    "bfcl-eval": ("2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"),
    "shakespeare": ("0.6", "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"),
    "chatterbot-corpus": ("1.3.3", "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154"),
}


def source(name: str) -> pathlib.Path:
    """The folder of an unpacked package; fetched if it is not there. RuntimeError if it cannot be had or is another file."""
    version, digest = PACKAGES[name]
    cache = cache_folder() / "sources"
    folder = cache / f"{name}-{version}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as temporary:
        unpacked = pathlib.Path(temporary) / "unpacked"
        shutil.unpack_archive(_fetched(name, version, digest, pathlib.Path(temporary)), unpacked)
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster
                raise
    return folder


def _fetched(name: str, version: str, digest: str, folder: pathlib.Path) -> pathlib.Path:
    """The package's file. pip has to check the hash before it looks inside: an sdist tells its metadata by running code."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{name}=={version} --hash=sha256:{digest}\n")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation", "--require-hashes"]
    target = folder / "fetched"
    done = subprocess.run([*command, "-d", target, "-r", wanted], capture_output=True, text=True)
    files = list(target.iterdir()) if target.is_dir() else []
    if done.returncode != 0 or len(files) != 1:
        raise RuntimeError(f"cannot fetch {name} {version} of SHA-256 {digest} from PyPI: {done.stderr.strip()[-500:]}")
    return files[0].rename(files[0].with_suffix(".zip")) if files[0].suffix == ".whl" else files[0]


def bfcl_folder() -> pathlib.Path:
    """Function-calling records of bfcl-eval, one JSON object a line."""
    return source("bfcl-eval") / "bfcl_eval" / "data"


def dialogue_folder() -> pathlib.Path:
    """Short dialogues in YAML."""
    return source("chatterbot-corpus") / "chatterbot_corpus" / "data" / "english"


def passages(characters: int = 600) -> list[str]:
    """Prose and verse of Project Gutenberg in pieces that end with a paragraph, licence text removed, each once."""
    pieces = []
    for path in sorted(source("shakespeare").rglob("*_gut.txt")):
        text = path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
        text = re.split(r"\*\*\* ?END OF TH", text.split("*END*")[-1])[0]
        piece = ""
        for paragraph in re.split(r"\n\s*\n", text):
            piece += paragraph.strip("\n") + "\n\n"
            if len(piece) >= characters:
                pieces.append(piece.strip()[: 3 * characters])
                piece = ""
    return list(dict.fromkeys(pieces))
