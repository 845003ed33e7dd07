"""Golden vectors: what other implementations say, committed under tests/golden/<area> and read by the C++ tests.

One module an area; each is deterministic and writes only its own folder. `python -m espalier_tools.golden` runs them.
"""

import pathlib

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "tests/golden"
