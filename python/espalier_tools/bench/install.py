"""Brings the peers into the cache folder: llama.cpp out of an sdist on PyPI, OpenVINO GenAI as wheels. Once each.

The sdist is only downloaded and unpacked (pip asks its build for metadata): llama.cpp in it is built by CMake for this machine,
by every compiler that is there.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

LLAMA_PACKAGE = "llama-cpp-python==0.3.36"
OPENVINO_PACKAGE = "openvino-genai==2026.4.1"
INSTALL_TIMEOUT_S = 1800
COMPILERS = {"g++": ("gcc", "g++"), "clang": ("clang", "clang++")}
LLAMA_TARGETS = ["llama-bench", "llama-batched-bench"]
# Everything that is not the two programs stays out: no server, no tests, no downloads.
LLAMA_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",
    "BUILD_SHARED_LIBS": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
}


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("ESPALIER_CACHE", pathlib.Path(base) / "espalier"))


def processor_count() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(*words: object) -> None:
    print("==> " + " ".join(map(str, words)), file=sys.stderr, flush=True)
    try:
        subprocess.run(list(map(str, words)), check=True, stdout=sys.stderr, timeout=INSTALL_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"bench peers: {words[0]} failed ({error}). See above, or leave that peer out (--without).")


def unpack_llama(sdist: pathlib.Path, target: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, tarfile.open(sdist) as archive:
        vendored = [member for member in archive if "/vendor/llama.cpp/" in member.name]
        archive.extractall(folder, members=vendored)
        (source,) = pathlib.Path(folder).glob("*/vendor/llama.cpp")
        shutil.move(source, target)


def llama_source(sdist: str | None) -> pathlib.Path:
    target = cache_folder() / "peers" / "llama.cpp"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if sdist is None:
            only_source = ["--no-deps", "--no-binary", LLAMA_PACKAGE.split("==")[0]]
            run(sys.executable, "-m", "pip", "download", "-q", *only_source, "-d", folder, LLAMA_PACKAGE)
            (sdist,) = map(str, pathlib.Path(folder).glob("*.tar.gz"))
        unpack_llama(pathlib.Path(sdist), target)
    return target


def llama_binaries(sdist: str | None, jobs: int) -> dict[str, str]:
    """Name -> llama-bench, of each compiler that is installed."""
    result = {}
    for name, (c, cxx) in COMPILERS.items():
        if shutil.which(cxx) is None:
            continue
        folder = cache_folder() / "peers" / f"llama.cpp-{name}"
        binary = folder / "bin" / "llama-bench"
        if not binary.exists():
            options = [f"-D{key}={value}" for key, value in LLAMA_OPTIONS.items()]
            compilers = [f"-DCMAKE_C_COMPILER={c}", f"-DCMAKE_CXX_COMPILER={cxx}"]
            run("cmake", "-S", llama_source(sdist), "-B", folder, *compilers, *options)
            run("nice", "-n", 15, "cmake", "--build", folder, "-j", jobs, "--target", *LLAMA_TARGETS)
        result[f"llama.cpp, {name}"] = str(binary)
    return result


def openvino_python() -> str:
    folder = cache_folder() / "openvino"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        run(sys.executable, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "-q", OPENVINO_PACKAGE)
        (folder / "installed").write_text(OPENVINO_PACKAGE + "\n")
    return str(python)
