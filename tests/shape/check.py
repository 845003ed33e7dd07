"""Checks of the code's shape: python3 check.py CHECK, where CHECK is one of the names in CHECKS, or `all`.

Each check is a function that yields findings; a finding names file and line, the rule, and what to do. Exit 0 means no
finding, 1 means findings, 77 means that the check needs a tool that is not here. Standard library only.
"""

import sys
from typing import Callable, Iterator

import documents
import duplicates
import formatting
import includes
import limits
import voice
from sources import Finding

CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "includes": includes.check,
    "limits": limits.check,
    "duplicates": duplicates.check,
    "format": formatting.check,
    "documents": documents.check,
    "voice": voice.check,
}


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "all"
    if sys.argv[1:] == ["format", "--write"]:
        formatting.write()
        return 0
    if name != "all" and name not in CHECKS:
        print(f"no check '{name}'; there is: all, {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    try:
        findings = [finding for key in CHECKS if name in (key, "all") for finding in CHECKS[key]()]
    except formatting.NoFormatter as missing:
        print(missing)
        return 77
    for finding in findings:
        print(finding)
    print(f"shape {name}: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
