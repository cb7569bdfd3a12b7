"""The files of the edge in the data folder, which the operator's command changes while the local cloud runs."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from larder_cli.files import write_private

_ENGINE = "quickjs"
_KEY_BYTES = 32
_ID_BYTES = 4


def has_engine() -> bool:
    """Whether the package that runs the functions is installed. It has none for Macs with processors of Intel."""
    return find_spec(_ENGINE) is not None


@dataclass(frozen=True, slots=True)
class EdgeFiles:
    """docs/edge.md#how-the-command-switches-the-edge describes each file."""

    folder: Path

    @property
    def keys(self) -> Path:
        return self.folder / "keys.json"

    @property
    def switch(self) -> Path:
        return self.folder / "switch.json"

    @property
    def states(self) -> Path:
        return self.folder / "states.json"

    def prepare(self) -> None:
        """At the first start, make a key and switch the edge on. Later, it stays as the operator's command left it."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.keys.exists():
            return
        id, key = secrets.token_hex(_ID_BYTES), secrets.token_hex(_KEY_BYTES)
        write_private(self.switch, json.dumps({"id": id, "key": key}) + "\n")
        # Last, because the next start looks for it.
        write_private(self.keys, json.dumps({f"key-{id}": f"{key} once"}) + "\n")
