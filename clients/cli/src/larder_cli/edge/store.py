"""The key-value store that the edge reads (docs/edge.md#how-the-command-switches-the-edge)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import click

from larder import aws
from larder_cli.files import write_private

_TRIES = 5


class KeyStore(Protocol):
    def read(self) -> dict[str, str]: ...

    def put(self, name: str, value: str) -> None: ...

    def delete(self, name: str) -> None:
        """No error if it does not exist."""


class FileStore:
    """That of a local cloud. The edge reads the file at each request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, str]:
        try:
            stored: dict[str, str] = json.loads(self._path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise click.ClickException(f"cannot read {self._path}: {error}") from error
        return stored

    def put(self, name: str, value: str) -> None:
        self._write(self.read() | {name: value})

    def delete(self, name: str) -> None:
        self._write({key: value for key, value in self.read().items() if key != name})

    def _write(self, stored: dict[str, str]) -> None:
        write_private(self._path, json.dumps(stored, indent=2) + "\n")


class CloudFrontStore:
    """That of a stack. Each change names the version that it is based on."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn

    def read(self) -> dict[str, str]:
        stored: dict[str, str] = {}
        token: dict[str, str] = {}
        while True:
            page = self._client.list_keys(KvsARN=self._arn, **token)
            stored |= {item["Key"]: item["Value"] for item in page.get("Items", [])}
            if not page.get("NextToken"):
                return stored
            token = {"NextToken": page["NextToken"]}

    def put(self, name: str, value: str) -> None:
        self._change(
            lambda etag: self._client.put_key(KvsARN=self._arn, Key=name, Value=value, IfMatch=etag)
        )

    def delete(self, name: str) -> None:
        if name in self.read():
            self._change(
                lambda etag: self._client.delete_key(KvsARN=self._arn, Key=name, IfMatch=etag)
            )

    def _change(self, change: Callable[[str], object]) -> None:
        for left in reversed(range(_TRIES)):
            etag = self._client.describe_key_value_store(KvsARN=self._arn)["ETag"]
            try:
                change(etag)
            except aws.ClientError as error:
                # Another command has changed the store in between.
                if aws.error_code(error) != "ConflictException" or not left:
                    raise
            else:
                return
