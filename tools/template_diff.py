"""Show what deploying template.yaml would change, compared with the template of another revision.

Run by `make template-diff BASE=<revision>`. Compares the parsed YAML, so comments, order and layout do not
count. Changed descriptions of parameters, outputs and the template are listed separately, because they change no
resource. The exit status is 1 if there is any other difference.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.cloudformation import TemplateError, read_template

ROOT = Path(__file__).resolve().parent.parent

Difference = tuple[str, Any, Any]
"""The path to a value, its value in the base and its value now. `ABSENT` stands for a missing value."""


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


def differences(base: Any, now: Any, path: str = "") -> Iterator[Difference]:
    """Yield every value that differs. Descends as long as both sides have the same type."""
    if isinstance(base, dict) and isinstance(now, dict):
        for key in base | now:
            yield from differences(base.get(key, ABSENT), now.get(key, ABSENT), f"{path}/{key}")
    elif isinstance(base, list) and isinstance(now, list) and len(base) == len(now):
        for index, (one, other) in enumerate(zip(base, now, strict=True)):
            yield from differences(one, other, f"{path}/{index}")
    elif type(base) is not type(now) or base != now:
        yield path, base, now


def is_description(difference: Difference) -> bool:
    """Whether only the description of a parameter, an output or the template has changed."""
    path, base, now = difference
    described = re.fullmatch(r"(/(Parameters|Outputs)/\w+)?/Description", path)
    return described is not None and isinstance(base, str) and isinstance(now, str)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: make template-diff BASE=<revision>", file=sys.stderr)
        return 2
    try:
        found = list(differences(_template_of(arguments[0]), read_template(ROOT / "template.yaml")))
    except (subprocess.CalledProcessError, TemplateError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    descriptions = [one for one in found if is_description(one)]
    others = [one for one in found if not is_description(one)]
    for title, listed in (("Descriptions", descriptions), ("Other differences", others)):
        print(f"{title}: {len(listed)}")
        for path, base, now in listed:
            print(f"  {path}\n    - {base}\n    + {now}")
    return 1 if others else 0


def _template_of(revision: str) -> dict[str, Any]:
    shown = subprocess.run(
        ["git", "show", f"{revision}:template.yaml"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "template.yaml"
        copy.write_bytes(shown.stdout)
        return read_template(copy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
