"""The settings that turbo uses in a repository, and where each comes from (docs/clients/turbo.md#settings)."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from larder_cli.doctor import jsonc
from larder_cli.doctor.findings import Finding

DEFAULT = "turbo's default"
OPTION = "--api"
_LOGIN = "turbo login"
_OF_THE_REPOSITORY = ".turbo/config.json"
_NAMED_BY_THE_USER = (OPTION, "TURBO_API", _LOGIN)
"""Where an address comes from that the files of a repository cannot change."""

SECONDS = {"timeout": 30, "uploadTimeout": 60}
"""turbo's own limits for a download and an upload. 0 means none."""

_VARIABLES = {
    "TURBO_API": "apiUrl",
    "TURBO_LOGIN": "loginUrl",
    "TURBO_TEAM": "teamSlug",
    "TURBO_TEAMID": "teamId",
    "TURBO_TOKEN": "token",
    "TURBO_PREFLIGHT": "preflight",
    "TURBO_RUN_SUMMARY": "runSummary",
    "TURBO_REMOTE_CACHE_TIMEOUT": "timeout",
    "TURBO_REMOTE_CACHE_UPLOAD_TIMEOUT": "uploadTimeout",
}
_FLAGS = {"1": True, "true": True, "0": False, "false": False}
_OF_TURBO_JSON = (
    *("apiUrl", "loginUrl", "teamSlug", "teamId", "signature", "preflight", "timeout"),
    *("uploadTimeout", "enabled"),
)
"""Not the token: turbo does not read it from turbo.json."""
_OF_CONFIG_FILES = ("apiUrl", "loginUrl", "teamSlug", "teamId", "token", "runSummary")
_SWITCH_OF_CONFIG_FILES = "runSummary"


class NoRepository(Exception):
    """There is no turbo.json that doctor can read. The message says where it looked."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a setting, and the file or variable that has it."""

    value: Any
    where: str


@dataclass(kw_only=True)
class Client:
    """What turbo finds in a repository and its environment."""

    root: Path
    file: Path
    """turbo.json or turbo.jsonc."""
    document: Mapping[str, Any]
    environment: Mapping[str, str]
    values: dict[str, list[Value]] = field(default_factory=dict)
    """By setting, the one that turbo uses first."""
    invalid: list[Finding] = field(default_factory=list)

    def value(self, name: str) -> Value:
        """The value that turbo uses. An empty text counts as none, but still hides the next one."""
        first, *_ = self.values.get(name) or [Value(None, DEFAULT)]
        return first if first.value != "" else Value(None, first.where)

    def text(self, name: str) -> str | None:
        value = self.value(name).value
        return None if value is None else str(value)

    def is_on(self, name: str, *, default: bool = False) -> bool:
        value = self.value(name).value
        return default if value is None else bool(value)

    def seconds(self, name: str) -> int:
        value = self.value(name).value
        return SECONDS[name] if value is None else int(value)

    @property
    def api(self) -> str | None:
        """The address without a slash at the end."""
        address = self.text("apiUrl")
        return address.rstrip("/") if address else None

    @property
    def gives_token(self) -> bool:
        """Whether the token may go to the address. Not if only the repository names the address, and not the token.

        Otherwise a repository that someone has cloned could name a server that collects tokens.
        """
        if self.value("token").where == _OF_THE_REPOSITORY:
            return True
        named = [one for one in self.values.get("apiUrl", ()) if one.where in _NAMED_BY_THE_USER]
        return any(str(one.value).rstrip("/") == self.api for one in named)

    @property
    def team(self) -> dict[str, str]:
        """What turbo sends to name the team."""
        id, slug = self.text("teamId"), self.text("teamSlug")
        named = {"teamId": id} if id and id.startswith("team_") else {}
        return named | ({"slug": slug} if slug else {})

    def line(self, *path: str) -> str:
        """The name of turbo.json with the line of a property, or without if it has none."""
        return _place(self.file, self.file.read_text(encoding="utf-8-sig"), *path)


def read_client(folder: Path, environment: Mapping[str, str], api: str | None = None) -> Client:
    """`api` replaces the address that turbo uses. Raises NoRepository."""
    # turbo ignores the case of a variable's name.
    environment = {name.upper(): value for name, value in environment.items()}
    file = _configuration(folder, environment.get("TURBO_ROOT_TURBO_JSON"))
    client = Client(root=file.parent, file=file, document=_document(file), environment=environment)
    for name, value in (
        *((("apiUrl", Value(api, OPTION)),) if api else ()),
        *_from_variables(client),
        *_from_file(client.root / ".turbo" / "config.json", _OF_THE_REPOSITORY),
        *_from_login(environment),
        *_from_turbo_json(client),
    ):
        client.values.setdefault(name, []).append(value)
    return client


def _configuration(folder: Path, named: str | None) -> Path:
    """turbo.json of the root: the first one above `folder` that does not extend another."""
    if named:
        path = folder / named
        if not path.is_file():
            raise NoRepository(f"TURBO_ROOT_TURBO_JSON: there is no file {path}")
        return path
    for parent in (folder, *folder.parents):
        both = [path for name in ("turbo.json", "turbo.jsonc") if (path := parent / name).is_file()]
        if len(both) == 2:
            raise NoRepository(f"{parent} has turbo.json and turbo.jsonc: turbo stops. Delete one")
        if both and not is_of_package(both[0]):
            return both[0]
    raise NoRepository(
        f"there is no turbo.json in {folder} or above it: run this in a repository of turbo"
    )


def is_of_package(file: Path) -> bool:
    """Whether the file extends that of the root (`"extends": ["//"]`)."""
    return bool(_document(file).get("extends"))


def _document(file: Path) -> dict[str, Any]:
    try:
        document = jsonc.parse(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise NoRepository(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise NoRepository(f"{file} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise NoRepository(f"{file} is not a JSON object")
    return document


def _from_variables(client: Client) -> Iterator[tuple[str, Value]]:
    environment = client.environment
    for variable, name in _VARIABLES.items():
        if variable in environment:
            yield from _from_variable(client, variable, name, environment[variable])
    # Vercel sets both for the builds that it runs. turbo uses them without a token and a team of your own.
    token, owner = (environment.get(f"VERCEL_ARTIFACTS_{part}") for part in ("TOKEN", "OWNER"))
    if token and owner and not environment.get("TURBO_TOKEN"):
        yield "token", Value(token, "VERCEL_ARTIFACTS_TOKEN")
        yield "teamId", Value(owner, "VERCEL_ARTIFACTS_OWNER")


def _from_variable(
    client: Client, variable: str, name: str, text: str
) -> Iterator[tuple[str, Value]]:
    if name == "preflight":
        if text in _FLAGS:
            yield name, Value(_FLAGS[text], variable)
        elif text:
            client.invalid.append(_invalid(variable, text, "1 or 0", f"{variable}=1"))
    elif name == "runSummary":
        # Every other text turns it off.
        yield name, Value(_FLAGS.get(text, False), variable)
    elif name in SECONDS:
        if text.isascii() and text.isdigit():
            yield name, Value(int(text), variable)
        else:
            seconds = f"{variable}={SECONDS[name]}"
            client.invalid.append(_invalid(variable, text, "a number of seconds", seconds))
    else:
        yield name, Value(text, variable)


def _invalid(where: str, text: str, wanted: str, paste: str) -> Finding:
    return Finding(id="invalid-value", where=where, found=f"{text!r} is not {wanted}.", paste=paste)


def _from_file(
    path: Path, where: str, names: Sequence[str] = _OF_CONFIG_FILES
) -> Iterator[tuple[str, Value]]:
    """The values of a file that turbo itself writes. One that cannot be read has none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if not isinstance(document, dict):
        return
    lower = {str(name).lower(): value for name, value in document.items()}
    for name in names:
        kind = bool if name == _SWITCH_OF_CONFIG_FILES else str
        if isinstance(value := lower.get(name.lower()), kind):
            yield name, Value(value, where)


def _from_login(environment: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    """What `turbo login` has stored for the user. The token is in auth.json since 2.9, in config.json before."""
    folder = _config_folder(environment)
    if folder is None:
        return
    turbo = folder / "turborepo"
    yield from _from_file(turbo / "auth.json", _LOGIN, ("token",))
    yield from _from_file(turbo / "config.json", _LOGIN)


def _config_folder(environment: Mapping[str, str]) -> Path | None:
    if named := environment.get("TURBO_CONFIG_DIR_PATH"):
        return Path(named)
    if sys.platform == "win32":
        return Path(data) if (data := environment.get("APPDATA")) else None
    home = environment.get("HOME")
    if sys.platform == "darwin":
        return Path(home, "Library", "Application Support") if home else None
    if named := environment.get("XDG_CONFIG_HOME"):
        return Path(named)
    return Path(home, ".config") if home else None


def _from_turbo_json(client: Client) -> Iterator[tuple[str, Value]]:
    settings = client.document.get("remoteCache")
    if not isinstance(settings, dict):
        return
    for name in _OF_TURBO_JSON:
        value, where = settings.get(name), client.line("remoteCache", name)
        if value is None:
            continue
        wanted, is_right = _type_of(name, value)
        if is_right:
            yield name, Value(value, where)
        else:
            client.invalid.append(_invalid(where, json.dumps(value), wanted, ""))


def _type_of(name: str, value: object) -> tuple[str, bool]:
    if name in ("signature", "preflight", "enabled"):
        return "true or false", isinstance(value, bool)
    if name in SECONDS:
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "a number of seconds", is_number
    return "a text", isinstance(value, str)


def _place(file: Path, text: str, *path: str) -> str:
    line = jsonc.line_of(text, *path)
    return file.name if line is None else f"{file.name}:{line}"
