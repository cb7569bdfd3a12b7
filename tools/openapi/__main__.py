"""`python -m tools.openapi` writes the document; with --check it says whether what is there is stale."""

from __future__ import annotations

import sys

from tools.openapi import Undocumented
from tools.openapi.files import differing, write


def main(arguments: list[str]) -> int:
    try:
        if "--check" not in arguments:
            write()
            return 0
        stale = differing()
    except Undocumented as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in stale:
        print(f"error: {path} is not what the handlers say: make openapi", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
