"""The contents of $DATA, which only its owner can read.

turbo.env    the environment variables for turbo: URL, key, team
cloud.json   how to reach the running local cloud; deleted when it stops
local.json   the credentials and ports of its services, the signing secret (after `larder rotate-signing-secret` two,
             separated by a comma)
dynamodb/    the tables        s3/      the objects
edge/        the keys, the switch and the states of the edge
events/      events of objects that are not delivered yet
invocations/ asynchronous invocations that are not done yet
logs/        functions.log  s3.log  dynamodb.log
lock         held while the local cloud runs
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from larder_cli.files import write_private

_MAX_LOG_BYTES = 50 * 2**20


class DataFolderError(Exception):
    """The folder cannot be used. The message says why and what to do."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder, locked by this process."""

    path: Path
    access_key_id: str
    secret_access_key: str
    signing_secret: str

    @property
    def dynamodb(self) -> Path:
        return self.path / "dynamodb"

    @property
    def s3(self) -> Path:
        return self.path / "s3"

    @property
    def edge(self) -> Path:
        return self.path / "edge"

    @property
    def provider_key(self) -> Path:
        return self.path / "provider.pem"

    @property
    def events(self) -> Path:
        return self.path / "events"

    @property
    def invocations(self) -> Path:
        return self.path / "invocations"

    @property
    def turbo_env(self) -> Path:
        return self.path / "turbo.env"

    @property
    def cloud_json(self) -> Path:
        return self.path / "cloud.json"

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    def ports(self) -> dict[str, int]:
        """The ports of the last start, by service."""
        ports: dict[str, int] = _read_local(self.path).get("ports", {})
        return ports

    def remember_ports(self, ports: dict[str, int]) -> None:
        _write_local(self.path, {**_read_local(self.path), "ports": ports})


def open_data_folder(path: Path) -> DataFolder:
    """Open or create the folder and lock it until this process ends. Raises DataFolderError."""
    path = path.absolute()
    try:
        _make_private(path)
        _lock(path)
        _make_logs(path / "logs")
        local = _read_local(path)
        if "access_key_id" not in local:
            local["access_key_id"] = "LOCAL" + secrets.token_hex(8).upper()
            local["secret_access_key"] = secrets.token_hex(32)
        if "signing_secret" not in local:
            local["signing_secret"] = secrets.token_hex(32)
            _write_local(path, local)
    except OSError as error:
        raise DataFolderError(f"cannot use {path}: {error.strerror}") from error
    if local.get("engine") == "dynamodb-local":
        raise DataFolderError(
            f"the tables in {path} are in DynamoDB Local, which this version does not start: choose another folder"
            " with DATA=..."
        )
    return DataFolder(
        path, local["access_key_id"], local["secret_access_key"], local["signing_secret"]
    )


def _make_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
        return
    except FileExistsError:
        pass
    if not path.is_dir():
        raise DataFolderError(f"{path} is not a folder")
    if any(path.iterdir()) and not (path / "lock").exists():
        raise DataFolderError(
            f"{path} contains other files: choose an empty or new folder with DATA=..."
        )
    path.chmod(0o700)


def _lock(path: Path) -> None:
    descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise DataFolderError(
            f"a local cloud already runs on {path}: stop it, or choose another folder with DATA=..."
        ) from None


def _make_logs(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for log in folder.glob("*.log"):
        if log.stat().st_size > _MAX_LOG_BYTES:
            log.replace(log.with_suffix(".log.old"))


def _read_local(path: Path) -> dict[str, Any]:
    try:
        local: dict[str, Any] = json.loads((path / "local.json").read_text())
        return local
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataFolderError(f"{path / 'local.json'} is damaged: {error}") from error


def _write_local(path: Path, local: dict[str, Any]) -> None:
    write_private(path / "local.json", json.dumps(local, indent=2) + "\n")
