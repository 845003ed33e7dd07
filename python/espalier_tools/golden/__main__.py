"""Makes the golden vectors anew: python -m espalier_tools.golden [--write] [area ...]

Each module of this package writes tests/golden/<area>. Without --write the committed files are compared with the new ones
and put back; numbers may differ by rounding (other processors, other library builds), everything else may not.
"""

import argparse
import json
import math
import pathlib
import pkgutil
import shutil
import subprocess
import sys
import tempfile

import espalier_tools.golden
from espalier_tools.golden import GOLDEN

PYTHON_ROOT = pathlib.Path(__file__).resolve().parents[2]
RELATIVE_TOLERANCE = 1e-4
ABSOLUTE_TOLERANCE = 1e-5


def areas() -> list[str]:
    modules = pkgutil.iter_modules(espalier_tools.golden.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def close(old: object, new: object) -> bool:
    if isinstance(old, float) and isinstance(new, (int, float)):
        return old == new or math.isclose(old, new, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(close(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(close, old, new))
    return old == new


def same_content(old: pathlib.Path, new: pathlib.Path) -> bool:
    if old.read_bytes() == new.read_bytes():
        return True
    if old.suffix == ".json":
        return close(json.loads(old.read_text()), json.loads(new.read_text()))
    if old.suffix == ".safetensors":
        from safetensors.numpy import load_file  # here: comparing needs it only for these files

        olds, news = load_file(old), load_file(new)
        return olds.keys() == news.keys() and all(close(olds[key].tolist(), news[key].tolist()) for key in olds)
    return False


def differences(old: pathlib.Path, new: pathlib.Path) -> list[str]:
    paths = {path.relative_to(base) for base in (old, new) for path in base.rglob("*") if path.is_file()}
    found = []
    for path in sorted(paths):
        if not (new / path).exists():
            found.append(f"{path}: no longer written")
        elif not (old / path).exists():
            found.append(f"{path}: not committed")
        elif not same_content(old / path, new / path):
            found.append(f"{path}: other content")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the new files")
    parser.add_argument("area", nargs="*", help=", ".join(areas()))
    arguments = parser.parse_args()
    if unknown := set(arguments.area) - set(areas()):
        parser.error(f"no area {', '.join(sorted(unknown))}; there is: {', '.join(areas())}")
    changed = 0
    for area in arguments.area or areas():
        with tempfile.TemporaryDirectory() as temporary:
            committed = pathlib.Path(temporary) / "golden"
            shutil.copytree(GOLDEN, committed)
            try:
                subprocess.run([sys.executable, "-m", f"espalier_tools.golden.{area}"], cwd=PYTHON_ROOT, check=True)
                found = differences(committed, GOLDEN)
            finally:
                if not arguments.write:
                    shutil.rmtree(GOLDEN)
                    shutil.copytree(committed, GOLDEN)
        print(f"{area}: {'as committed' if not found else ', '.join(found)}")
        changed += len(found)
    return 1 if changed and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
