"""Write files of the local cloud."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically. Only the owner can read it, from the first byte on."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
