"""The settings that turbo uses, where each comes from (docs/clients/turbo.md#settings), and which address gets a token.

Every command that needs them reads them here. A repository can name an address. It gets a token only if the user's own
settings have it, too, or after `larder accept`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from larder_proxy import jsonc
from larder_proxy.files import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT = "turbo's default"
OPTION = "--api"
_LOGIN = "turbo login"
OF_THE_REPOSITORY = ".turbo/config.json"
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
_OF_CONFIG_FILES = ("apiUrl", "loginUrl", "teamSlug", "teamId", "token", "runSummary")
_OF_TURBO_JSON = {
    **dict.fromkeys(("apiUrl", "loginUrl", "teamSlug", "teamId"), "a text"),
    **dict.fromkeys(("signature", "preflight", "enabled"), "true or false"),
    **dict.fromkeys(SECONDS, "a number of seconds"),
}
"""What each must be. Not the token: turbo does not read it from turbo.json."""


class Value:
    """A value of a setting, and the file or variable that has it."""

    def __init__(self, value: Any, where: str) -> None:
        self.value, self.where = value, where


class Invalid:
    """A value that turbo ignores, and what to write in its place."""

    def __init__(self, where: str, found: str, paste: str) -> None:
        self.where, self.found, self.paste = where, found, paste


class Settings:
    """What turbo finds above `folder` and in an environment. Without a folder, only the user's own settings.

    `api` replaces the address. `root` and `file` are those of turbo.json. Without one, `problem` says why, and `root`
    is the folder that has `.turbo/config.json`.
    """

    def __init__(
        self, folder: str | None, environment: Mapping[str, str], api: str | None = None
    ) -> None:
        # turbo ignores the case of a variable's name.
        self.environment = {name.upper(): value for name, value in environment.items()}
        self.root, self.file, self.problem = folder or "", "", ""
        self.document: dict[str, Any] = {}
        self.values: dict[str, list[Value]] = {}
        self.invalid: list[Invalid] = []
        self._text = ""
        if folder is not None:
            self._find(folder)
        if api:
            self.values["apiUrl"] = [Value(api, OPTION)]
        self._add(self._from_variables())
        if folder is not None:
            file = os.path.join(self.root, ".turbo", "config.json")
            if is_trusted(file, folder):
                self._add(_from_file(file, OF_THE_REPOSITORY))
        self._add(_from_login(self.environment))
        self._add(self._from_turbo_json())

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

        Otherwise a repository that the user has cloned could name a server that collects tokens.
        """
        if self.value("token").where == OF_THE_REPOSITORY:
            return True
        named = [one for one in self.values.get("apiUrl", ()) if one.where in _NAMED_BY_THE_USER]
        return any(str(one.value).rstrip("/") == self.api for one in named) or (
            [self.root, self.api] in _accepted(self.environment)
        )

    @property
    def team(self) -> dict[str, str]:
        """What turbo sends to name the team. It ignores an id that does not begin with `team_`."""
        id, slug = self.text("teamId"), self.text("teamSlug")
        named = {"teamId": id} if id and id.startswith("team_") else {}
        return named | ({"slug": slug} if slug else {})

    def accept(self, address: str) -> None:
        """Let this address have the token in this repository. Raises OSError."""
        file = _accepted_file(self.environment)
        if not file:
            raise OSError("HOME must be the folder of this user")
        kept = [one for one in _accepted(self.environment) if one[:1] != [self.root]]
        write_private(file, [*kept, [self.root, address.rstrip("/")]], indent=1)

    def line(self, *path: str) -> str:
        """The name of turbo.json with the line of a property, or without if it has none."""
        line, name = jsonc.line_of(self._text, *path), os.path.basename(self.file)
        return name if line is None else f"{name}:{line}"

    def _add(self, found: Iterable[tuple[str, Value]]) -> None:
        for name, value in found:
            self.values.setdefault(name, []).append(value)

    def _find(self, folder: str) -> None:
        """Find turbo.json of the root: the first one above that does not extend another."""
        named = self.environment.get("TURBO_ROOT_TURBO_JSON")
        if named:
            file = os.path.join(folder, named)
            if not os.path.isfile(file):
                self.problem = f"TURBO_ROOT_TURBO_JSON: there is no file {file}"
            elif self._read(file):
                self.root = os.path.dirname(file)
            return
        nearest = ""
        for above in folders_above(folder):
            both = [os.path.join(above, f"turbo.{kind}") for kind in ("json", "jsonc")]
            both = [one for one in both if os.path.isfile(one) and is_trusted(one, folder)]
            if len(both) == 2:
                self.problem = f"{above} has turbo.json and turbo.jsonc: turbo stops. Delete one"
            # One with "extends" is of a package.
            elif both and self._read(both[0]) and self.document.get("extends"):
                nearest = nearest or above
                continue
            if both:
                self.root = above
                return
            file = os.path.join(above, ".turbo", "config.json")
            nearest = nearest or (above if is_trusted(file, folder) else "")
        self.root, self.file, self.document, self._text = nearest or folder, "", {}, ""
        self.problem = (
            f"there is no turbo.json in {folder} or above it: run this in a repository of turbo"
        )

    def _read(self, file: str) -> bool:
        self.file, self.document, self._text = file, {}, ""
        try:
            self.document, self._text = read_document(file)
        except ValueError as error:
            self.problem = str(error)
        return not self.problem

    def _from_variables(self) -> Iterator[tuple[str, Value]]:
        for variable, name in _VARIABLES.items():
            text = self.environment.get(variable)
            if text is None:
                continue
            if name == "runSummary":
                # Every other text turns it off.
                yield name, Value(_FLAGS.get(text, False), variable)
            elif name == "preflight":
                if text in _FLAGS:
                    yield name, Value(_FLAGS[text], variable)
                elif text:
                    self._ignore(variable, text, "1 or 0", f"{variable}=1")
            elif name not in SECONDS:
                yield name, Value(text, variable)
            elif text.isascii() and text.isdigit():
                yield name, Value(int(text), variable)
            else:
                self._ignore(variable, text, "a number of seconds", f"{variable}={SECONDS[name]}")
        # Vercel sets both for the builds that it runs. turbo uses them without a token and a team of your own.
        token, owner = (
            self.environment.get(f"VERCEL_ARTIFACTS_{part}") for part in ("TOKEN", "OWNER")
        )
        if token and owner and not self.environment.get("TURBO_TOKEN"):
            yield "token", Value(token, "VERCEL_ARTIFACTS_TOKEN")
            yield "teamId", Value(owner, "VERCEL_ARTIFACTS_OWNER")

    def _from_turbo_json(self) -> Iterator[tuple[str, Value]]:
        found = self.document.get("remoteCache")
        for name, wanted in _OF_TURBO_JSON.items():
            value = found.get(name) if isinstance(found, dict) else None
            if value is None:
                continue
            where, is_number = self.line("remoteCache", name), type(value) is int and value >= 0
            kinds = {"a text": isinstance(value, str), "true or false": isinstance(value, bool)}
            if kinds.get(wanted, is_number):
                yield name, Value(value, where)
            else:
                self._ignore(where, json.dumps(value), wanted, "")

    def _ignore(self, where: str, text: str, wanted: str, paste: str) -> None:
        self.invalid.append(Invalid(where, f"{text!r} is not {wanted}.", paste))


def folders_above(folder: str) -> list[str]:
    """The folder, and those above it."""
    found = [folder]
    while os.path.dirname(found[-1]) != found[-1]:
        found.append(os.path.dirname(found[-1]))
    return found


def read_document(file: str) -> tuple[dict[str, Any], str]:
    """turbo.json and its text. Raises ValueError."""
    try:
        with open(file, encoding="utf-8-sig") as opened:
            text = opened.read()
        found = jsonc.parse(text)
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file} is not a JSON object")
    return found, text


def is_trusted(file: str, folder: str) -> bool:
    """Whether a file at or above a folder is of this user, of root, or of the owner of the folder.

    Another user can put one into a folder above, such as /tmp, and would get the token.
    """
    try:
        if os.name == "nt":
            return os.path.exists(file)
        return os.lstat(file).st_uid in (0, os.getuid(), os.stat(folder).st_uid)
    except OSError:
        return False


def user_folder(environment: Mapping[str, str]) -> str:
    """The user's folder for settings, `""` if nothing says where that is."""
    if os.name == "nt":
        return environment.get("APPDATA") or ""
    home = environment.get("HOME") or ""
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support") if home else ""
    return environment.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")


def _from_file(
    file: str, where: str, names: Iterable[str] = _OF_CONFIG_FILES
) -> Iterator[tuple[str, Value]]:
    """The values of a file that turbo itself writes. One that cannot be read has none."""
    document = _json(file)
    lower = (
        {name.lower(): value for name, value in document.items()}
        if isinstance(document, dict)
        else {}
    )
    for name in names:
        value = lower.get(name.lower())
        if isinstance(value, bool if name == "runSummary" else str):
            yield name, Value(value, where)


def _from_login(environment: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    """What `turbo login` has stored for the user. The token is in auth.json since 2.9, in config.json before."""
    folder = environment.get("TURBO_CONFIG_DIR_PATH") or user_folder(environment)
    if folder:
        turbo = os.path.join(folder, "turborepo")
        yield from _from_file(os.path.join(turbo, "auth.json"), _LOGIN, ("token",))
        yield from _from_file(os.path.join(turbo, "config.json"), _LOGIN)


def _accepted_file(environment: Mapping[str, str]) -> str:
    folder = user_folder(environment)
    return os.path.join(folder, "larder", "accepted.json") if folder else ""


def _accepted(environment: Mapping[str, str]) -> list[list[str]]:
    """Pairs of a repository and an address."""
    found = _json(_accepted_file(environment))
    return [one for one in found if isinstance(one, list)] if isinstance(found, list) else []


def _json(file: str) -> object:
    with suppress(OSError, ValueError, RecursionError), open(file, encoding="utf-8") as opened:
        return json.load(opened)
    return None
