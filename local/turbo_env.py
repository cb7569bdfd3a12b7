"""turbo.env: the environment variables for turbo. The key is stored nowhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from larder_cli.files import write_private

_LINE = re.compile(r"(?:# )?(\w+)=(\S*)")


@dataclass(frozen=True, slots=True)
class TurboEnv:
    """The environment variables for turbo, and the id of the key, with which you can revoke it."""

    api_url: str
    token: str
    team: str
    key_id: str

    def lines(self) -> list[str]:
        return [f"TURBO_API={self.api_url}", f"TURBO_TOKEN={self.token}", f"TURBO_TEAM={self.team}"]


def read_turbo_env(path: Path) -> TurboEnv | None:
    """None if the file is missing or lacks a line."""
    try:
        matches = (_LINE.fullmatch(line.strip()) for line in path.read_text().splitlines())
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    values = {match[1]: match[2] for match in matches if match}
    try:
        return TurboEnv(
            values["TURBO_API"], values["TURBO_TOKEN"], values["TURBO_TEAM"], values["KEY_ID"]
        )
    except KeyError:
        return None


def write_turbo_env(path: Path, turbo: TurboEnv) -> None:
    write_private(path, "\n".join([*turbo.lines(), f"# KEY_ID={turbo.key_id}"]) + "\n")
