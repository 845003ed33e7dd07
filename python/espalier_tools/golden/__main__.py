"""Makes the golden vectors anew: python -m espalier_tools.golden [--write] [area ...]

Each module of this package writes tests/golden/<area> or a generated source. Without --write the new files are compared with
the committed ones and put back; numbers may differ by rounding (other processors, other library builds), all else may not.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

import safetensors.torch
import torch

from espalier_tools.golden import GOLDEN

PYTHON_ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOT = PYTHON_ROOT.parent
GENERATED_SOURCES = ["espalier/text/unicode_tables.cc"]
RELATIVE_TOLERANCE = 1e-4
ABSOLUTE_TOLERANCE = 1e-5


def areas() -> list[str]:
    """The modules that can be run; the others serve them, or compare at random by hand (_names)."""
    modules = pathlib.Path(__file__).parent.glob("[a-z]*.py")
    return sorted(path.stem for path in modules if "__main__" in path.read_text())


def snapshot() -> dict[pathlib.Path, bytes]:
    paths = [path for path in GOLDEN.rglob("*") if path.is_file()]
    paths += [ROOT / name for name in GENERATED_SOURCES]
    return {path: path.read_bytes() for path in paths}


def close(old: object, new: object) -> bool:
    if isinstance(old, float) and isinstance(new, (int, float)):
        return old == new or math.isclose(old, new, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(close(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(close, old, new))
    return old == new


def close_tensors(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.dtype != new.dtype or old.shape != new.shape:
        return False
    if not old.is_floating_point():
        return torch.equal(old, new)
    return torch.allclose(old.double(), new.double(), RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE, equal_nan=True)


def same_content(kind: str, old: bytes, new: bytes) -> bool:
    if old == new:
        return True
    if kind == ".json":
        return close(json.loads(old), json.loads(new))
    if kind == ".safetensors":
        olds, news = safetensors.torch.load(old), safetensors.torch.load(new)
        return olds.keys() == news.keys() and all(close_tensors(olds[key], news[key]) for key in olds)
    return False


def differences(old: dict[pathlib.Path, bytes], new: dict[pathlib.Path, bytes]) -> list[str]:
    found = []
    for path in sorted(old.keys() | new.keys()):
        if path not in old:
            found.append(f"{path.relative_to(ROOT)}: not committed")
        elif path not in new or not same_content(path.suffix, old[path], new[path]):
            found.append(f"{path.relative_to(ROOT)}: other content")
    return found


def put_back(old: dict[pathlib.Path, bytes], new: dict[pathlib.Path, bytes]) -> None:
    for path in new.keys() - old.keys():
        path.unlink()
    for path, content in old.items():
        if new.get(path) != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the new files")
    parser.add_argument("area", nargs="*", help=", ".join(areas()))
    arguments = parser.parse_args()
    if unknown := set(arguments.area) - set(areas()):
        parser.error(f"no area {', '.join(sorted(unknown))}; there is: {', '.join(areas())}")
    changed = 0
    for area in arguments.area or areas():
        committed = snapshot()
        try:
            subprocess.run([sys.executable, "-m", f"espalier_tools.golden.{area}"], cwd=PYTHON_ROOT, check=True)
        finally:
            new = snapshot()
            if not arguments.write:
                put_back(committed, new)
        found = differences(committed, new)
        print(f"{area}: {'as committed' if not found else ', '.join(found)}", flush=True)
        changed += len(found)
    return 1 if changed and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
