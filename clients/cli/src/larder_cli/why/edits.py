"""Edits of a repository's files that leave everything else as it is: comments, formatting and line endings."""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from larder_proxy import jsonc

from larder.why.comparison import TURBO_JSON, path_of
from larder.why.summaries import Task

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r'"(?:[^"\\\n]|\\.)*"|[^\s,\[\]{}:]+')
_SPACE = re.compile(r"\s*")
_BOM = "\ufeff"
EXTENDS = "$TURBO_EXTENDS$"
"""In a list of a package's turbo.json: the list of the root comes here."""

Path = tuple[str, ...]
Place = tuple[str, Path]
"""A file, and the keys that lead to a list in it."""

Read = Callable[[str], bytes | None]
"""Reads a file by its path from the root. None if there is none."""


class _Part(NamedTuple):
    """An item of a list, or a property of an object. `start` is that of its key."""

    key: str
    start: int
    value: "_Node"


@dataclass(frozen=True, slots=True)
class _Node:
    """A value between two places of the text."""

    start: int
    end: int
    parts: tuple[_Part, ...] = ()

    def get(self, key: str) -> "_Node | None":
        return next((part.value for part in self.parts if part.key == key), None)


def with_list(content: bytes, path: Path, wanted: Sequence[str]) -> bytes:
    """turbo.json with this list at the path. The entries that stay are not touched, and new ones come last.

    Raises ValueError if the file is not valid, or if the list cannot be edited so that nothing else changes.
    """
    text = content.decode()
    document = jsonc.parse(text.removeprefix(_BOM))
    *above, name = path
    parent: Any = document
    for key in above:
        parent = parent[key]
    found = parent.get(name)
    if found is None:
        text = _inserted(
            text, above, f"{json.dumps(name)}: {json.dumps(list(wanted), ensure_ascii=False)}"
        )
        parent[name] = list(wanted)
    elif not isinstance(found, list):
        raise ValueError(f"{'.'.join(path)} is not a list")
    else:
        for item in [item for item in found if item not in wanted]:
            text = _removed(text, path, found.index(item))
            found.remove(item)
        for item in [item for item in wanted if item not in found]:
            text = _inserted(text, path, json.dumps(item, ensure_ascii=False))
            found.append(item)
    if jsonc.parse(text.removeprefix(_BOM)) != document:
        raise ValueError(f"{'.'.join(path)} cannot be edited without changing something else")
    return text.encode()


def with_line(content: bytes | None, line: str, *, is_first: bool = False) -> bytes:
    """A file such as .gitignore with one more line. The last line of a pattern wins, so general ones go first."""
    old = content or b""
    end = b"\r\n" if b"\r\n" in old else b"\n"
    new = line.encode() + end
    if is_first:
        return new + old
    return old + (end if old and not old.endswith(b"\n") else b"") + new


def unified_diff(path: str, old: bytes | None, new: bytes) -> str:
    """As git shows it, so that `git apply` takes it."""
    before, after = (
        side.decode(errors="surrogateescape").splitlines(keepends=True)
        for side in (old or b"", new)
    )
    source = "/dev/null" if old is None else f"a/{path}"
    lines = difflib.unified_diff(before, after, source, f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions of tasks in turbo.json of the root (`file`) and of packages."""

    file: str
    read: Read

    def items(self, place: Place) -> list[str] | None:
        """The list at a place, None if there is none. Raises ValueError."""
        file, path = place
        value: Any = self._document(file)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, list) else None

    def places(self, task: Task, setting: str) -> list[Place]:
        """Where the list of a task is: usually one place, or several if a package extends the list of the root.

        If no definition has it, where it can be added. Empty if turbo.json has no definition of the task. Raises
        ValueError.
        """
        known = [(file, (*path, setting)) for file, path in self._entries(task)]
        found = []
        for place in known:
            if (values := self.items(place)) is not None:
                found.append(place)
                if EXTENDS not in values:
                    break
        return found or known[:1]

    def _entries(self, task: Task) -> Iterator[Place]:
        """The definitions that apply, the nearest first. One of `package#task` replaces that of the task."""
        folder = task.directory.replace("\\", "/")
        own = [(path_of(folder, name), (task.task,)) for name in TURBO_JSON] if folder else []
        for file, names in (*own, (self.file, (task.id, task.task))):
            document = self._document(file)
            tasks = "tasks" if "tasks" in document else "pipeline"
            listed = document.get(tasks)
            if isinstance(listed, dict) and (
                name := next((one for one in names if one in listed), None)
            ):
                yield file, (tasks, name)

    def _document(self, file: str) -> dict[str, Any]:
        content = self.read(file)
        found = {} if content is None else jsonc.parse(content.decode().removeprefix(_BOM))
        return found if isinstance(found, dict) else {}


def _tree(text: str, path: Sequence[str]) -> tuple[str, _Node]:
    """The text without comments, and the value at the path."""
    plain = jsonc.without_comments(text).replace(_BOM, " ")
    node = _node(plain, 0)
    for key in path:
        inner = node.get(key)
        if inner is None:
            raise ValueError(f"{'.'.join(path)} is not there")
        node = inner
    return plain, node


def _node(plain: str, at: int) -> _Node:
    start = at = _after_space(plain, at)
    if plain[at] not in "[{":
        scalar = _SCALAR.match(plain, at)
        if scalar is None:
            raise ValueError(f"a value is missing at {at}")
        return _Node(at, scalar.end())
    is_object, parts = plain[at] == "{", list[_Part]()
    at = _after_space(plain, at + 1)
    while plain[at] not in "]}":
        begin, key = at, ""
        if is_object:
            name = _STRING.match(plain, at)
            if name is None:
                raise ValueError(f"a name is missing at {at}")
            key, at = json.loads(name[0]), _after_space(plain, name.end()) + 1
        value = _node(plain, at)
        parts.append(_Part(key, begin, value))
        at = _after_space(plain, value.end)
        if plain[at] == ",":
            at = _after_space(plain, at + 1)
    return _Node(start, at + 1, tuple(parts))


def _after_space(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _inserted(text: str, path: Sequence[str], entry: str) -> str:
    """With one more item or property at the end, written as the one before."""
    plain, node = _tree(text, path)
    close = node.end - 1
    if not node.parts:
        is_blank = not text[node.start + 1 : close].strip()
        pad = " " if is_blank and plain[node.start] == "{" else ""
        start = node.start + 1 if is_blank else close
        return f"{text[:start]}{pad}{entry}{pad}{text[close:]}"
    last = node.parts[-1]
    end = last.value.end
    comma = plain.find(",", end, close)
    stop = text.find("\n", max(end, comma), close)
    line = text.rfind("\n", 0, last.start) + 1
    if stop < 0 or plain[line : last.start].strip():
        return f"{text[:end]}, {entry}{text[end:]}"
    # After the comment of the last entry. A comma after the last one stays one.
    stop -= text[stop - 1] == "\r"
    newline = "\r\n" if text[stop] == "\r" else "\n"
    entry = f"{newline}{text[line : last.start]}{entry}"
    if comma < 0:
        return f"{text[:end]},{text[end:stop]}{entry}{text[stop:]}"
    return f"{text[:stop]}{entry},{text[stop:]}"


def _removed(text: str, path: Sequence[str], number: int) -> str:
    """Without an item and its comma. If it has a line of its own, that line goes, with the comment in it."""
    plain, node = _tree(text, path)
    part = node.parts[number]
    start, stop = part.start, part.value.end
    comma = _after_space(plain, stop)
    if plain[comma] == ",":
        before = None
        stop = comma + 1
    else:
        before = plain.index(",", node.parts[number - 1].value.end) if number else None
    line, end = text.rfind("\n", 0, start) + 1, text.find("\n", stop) + 1
    if end and not plain[line:start].strip() and not plain[stop:end].strip():
        start, stop = line, end
    elif before is None:
        stop = len(text) - len(text[stop:].lstrip(" "))
    else:
        start = len(text[:start].rstrip(" "))
    if before is None:
        text = text[:start] + text[stop:]
    else:
        text = text[:before] + text[before + 1 : max(start, before + 1)] + text[stop:]
    _, node = _tree(text, path)
    is_blank = not text[node.start + 1 : node.end - 1].strip()
    return f"{text[: node.start]}[]{text[node.end :]}" if is_blank else text
