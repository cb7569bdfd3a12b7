"""Files of the sidecar's own."""

from __future__ import annotations

import json
import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write_private(file: str, value: Any, *, indent: int | None = None) -> None:
    """Replace a file at once, as JSON that only this user can read. Its folder is made.

    Raises OSError. The former file is kept then.
    """
    # People keep files of ~/.config elsewhere, with a link to them.
    file = os.path.realpath(file)
    os.makedirs(os.path.dirname(file), 0o700, exist_ok=True)
    part = f"{file}.{os.getpid()}"
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
            json.dump(value, output, indent=indent)
        os.replace(part, file)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise
