"""The inputs in a report of a run, and the body of a report: compressed, and much larger than others.

Unknown fields of the inputs get 400, so that no client sends what Larder must not have, such as values of variables.
"""

import zlib
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from larder.errors import RunTooLarge
from larder.web.bodies.raw import sent_bytes
from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Request
from larder.why.inputs import MAX_ANCESTORS, MAX_FILES, MAX_HINTS
from larder.why.models import MAX_TASKS, MAX_UNPACKED

MAX_PACKED = 4_000_000
"""The most bytes of a compressed body."""

MAX_VALUES = 3_000_000
"""The most commas and brackets of a body. Python takes 60 bytes and more for each empty list in 3 bytes of JSON."""

_MAX_NAMES = 1_000
_MAX_PATH = 1_024
_MAX_NAME = 255

_Name = Annotated[str, Field(max_length=_MAX_NAME)]
_Path = Annotated[str, Field(max_length=_MAX_PATH)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{0,12}$")]
"""Of a file or a text."""

_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{0,64}$")]
"""turbo's hash of packages."""

_ValueDigest = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
"""turbo's SHA-256 of a value, empty for an empty one."""

_Names = Annotated[list[_Name], Field(max_length=_MAX_NAMES)]
_Values = Annotated[dict[_Name, _ValueDigest], Field(max_length=_MAX_NAMES)]
_Paths = Annotated[list[_Path], Field(max_length=_MAX_NAMES)]
_FileList = Annotated[dict[_Path, _Digest], Field(max_length=MAX_FILES)]

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")]
Ancestors = Annotated[list[Commit], Field(max_length=MAX_ANCESTORS)]

_FileHint = Literal["ignored", "untracked", "uncommitted", "line_endings"]
_Hinted = Annotated[list[_Name], Field(max_length=MAX_HINTS)]

_GZIP = 31
"""zlib's number for the format."""

_MAGIC = b"\x1f\x8b"
"""How gzip begins, and no JSON."""

_BROKEN = "is damaged gzip"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Specified(_Strict):
    env: _Names
    passThroughEnv: _Names | None  # noqa: N815  # the names on the wire


class _Global(_Strict):
    rootKey: _Digest  # noqa: N815
    files: _FileList
    external: _Hash
    internal: _Hash
    env: _Values
    inferred: _Names
    specified: _Specified
    dotEnv: _Paths = Field(default_factory=list)  # noqa: N815
    engines: _Digest
    envMode: _Name  # noqa: N815
    frameworkInference: bool  # noqa: N815


class _Files(_Strict):
    directory: _Path
    files: _FileList


class _Definition(_Strict):
    outputs: _Paths
    env: _Names
    passThroughEnv: _Names  # noqa: N815
    dotEnv: _Paths = Field(default_factory=list)  # noqa: N815
    dependsOn: _Names  # noqa: N815
    cache: bool


class _TaskInputs(_Strict):
    files: int
    definition: int
    external: _Hash
    env: _Values
    inferred: _Names
    dependencies: Annotated[list[_Path], Field(max_length=MAX_TASKS)]
    script: _Digest
    arguments: _Digest
    envMode: _Name  # noqa: N815


class Inputs(_Strict):
    """`tasks` are in the order of those of the report."""

    version: Annotated[int, Field(ge=1, le=1)]  # Literal[1] accepts true
    shared: _Global = Field(alias="global")
    files: Annotated[list[_Files], Field(max_length=MAX_TASKS)]
    definitions: Annotated[list[_Definition], Field(max_length=MAX_TASKS)]
    tasks: Annotated[list[_TaskInputs], Field(max_length=MAX_TASKS)]


class SentHints(_Strict):
    """What git says in CI. `packages` has the changed external packages by the folder of the workspace."""

    files: Annotated[dict[_Path, _FileHint], Field(max_length=MAX_HINTS)] = Field(
        default_factory=dict
    )
    packages: Annotated[dict[_Path, _Hinted], Field(max_length=MAX_HINTS)] = Field(
        default_factory=dict
    )


def report_bytes(request: Request) -> bytes:
    """The body, unpacked if it is compressed. Raises RunTooLarge, InvalidRequest."""
    body = sent_bytes(request)
    # Not by Content-Encoding: a proxy may unpack the body and leave the header.
    if body.startswith(_MAGIC):
        body = _unpacked(body)
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise RunTooLarge
    return body


def check_files(inputs: Inputs) -> None:
    """Raises RunTooLarge."""
    files = len(inputs.shared.files) + sum(len(group.files) for group in inputs.files)
    if files > MAX_FILES:
        raise RunTooLarge


def _unpacked(body: bytes) -> bytes:
    if len(body) > MAX_PACKED:
        raise RunTooLarge
    unpacking = zlib.decompressobj(_GZIP)
    try:
        unpacked = unpacking.decompress(body, MAX_UNPACKED + 1)
    except zlib.error:
        raise InvalidRequest("body", _BROKEN) from None
    if len(unpacked) > MAX_UNPACKED:
        raise RunTooLarge
    if not unpacking.eof:
        raise InvalidRequest("body", _BROKEN)
    return unpacked
