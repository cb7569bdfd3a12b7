"""The external packages of each workspace, from the lockfiles of npm, pnpm, yarn and bun.

As turbo does, it follows the dependencies of a workspace, except those that are workspaces too. A lockfile of another
form has no packages.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from larder_proxy import jsonc

Packages = Mapping[str, frozenset[str]]
"""The versions of a workspace's external packages, by name."""

Read = Callable[[str], str | None]
"""Reads a file of the repository, by its path."""

_Tree = dict[str, Any]
_Edges = Callable[[str], Iterable[str]]
_KINDS = ("dependencies", "devDependencies", "optionalDependencies")
_KINDS_OF_PACKAGES = ("dependencies", "optionalDependencies", "peerDependencies")


class Lockfile(NamedTuple):
    """A lockfile, the folders of the workspaces (that of the root is empty), and how to read their package.json."""

    name: str
    text: str
    folders: Sequence[str]
    read: Read


def external_packages(lockfile: Lockfile) -> Mapping[str, Packages]:
    """The packages of each workspace, by its folder."""
    reader = _READERS.get(lockfile.name)
    if reader is None:
        return {}
    try:
        return reader(lockfile)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError):
        # Not the form that the package manager writes.
        return {}


def changed_packages(old: Packages, new: Packages) -> tuple[str, ...]:
    """Such as `lodash 4.17.20 -> 4.17.21`."""
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return tuple(f"{name} {_shown(old.get(name))} -> {_shown(new.get(name))}" for name in names)


def _shown(versions: frozenset[str] | None) -> str:
    return ", ".join(sorted(versions)) if versions else "none"


def _reached(
    start: Iterable[str], edges: _Edges, named: Callable[[str], tuple[str, str]]
) -> Packages:
    """The packages that can be reached, each from its key in the lockfile."""
    waiting, seen = list(start), set[str]()
    found: dict[str, set[str]] = {}
    while waiting:
        key = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        name, version = named(key)
        found.setdefault(name, set()).add(version)
        waiting += edges(key)
    return {name: frozenset(versions) for name, versions in found.items()}


def _of_npm(lock: Lockfile) -> Mapping[str, Packages]:
    packages: _Tree = json.loads(lock.text)["packages"]

    def place(folder: str, name: str) -> str | None:
        """Where node finds it: in the node_modules of the folder, or of one above."""
        while True:
            key = posixpath.join(folder, "node_modules", name)
            if key in packages:
                return None if packages[key].get("link") else key
            if not folder:
                return None
            folder = posixpath.dirname(folder)

    def edges(key: str) -> Iterable[str]:
        one = packages[key]
        kinds = _KINDS_OF_PACKAGES if "node_modules/" in key else _KINDS
        names = [name for kind in kinds for name in one.get(kind) or {}]
        return [found for name in names if (found := place(key, name))]

    def named(key: str) -> tuple[str, str]:
        return key.rpartition("node_modules/")[2], str(packages[key].get("version"))

    return {
        folder: _reached(edges(folder), edges, named)
        for folder in lock.folders
        if folder in packages
    }


def _of_pnpm(lock: Lockfile) -> Mapping[str, Packages]:
    """Versions 6 to 9 of the lockfile: pnpm 8 to 10."""
    document = _indented(lock.text)
    # A repository without workspaces has no importers.
    importers = document.get("importers") or {".": document}
    # Version 9 keeps the dependencies apart, and version 6 writes a slash first.
    listed: _Tree = document.get("snapshots") or document.get("packages") or {}
    entries = {key.removeprefix("/"): one for key, one in listed.items()}

    def keys(one: _Tree) -> Iterable[str]:
        for kind in _KINDS:
            for name, value in (one.get(kind) or {}).items():
                version = value.get("version", "") if isinstance(value, dict) else value
                for key in (f"{name}@{version}", version.removeprefix("/")):
                    if key in entries:
                        yield key

    def named(key: str) -> tuple[str, str]:
        name, _, version = key.partition("(")[0].rpartition("@")
        return name, version

    return {
        folder: _reached(keys(importers[folder or "."]), lambda key: keys(entries[key]), named)
        for folder in lock.folders
        if (folder or ".") in importers
    }


def _of_yarn(lock: Lockfile) -> Mapping[str, Packages]:
    is_berry = "\n__metadata:" in f"\n{lock.text}"
    document = _indented(lock.text if is_berry else _classic(lock.text))
    entries = {
        wanted.strip().strip('"'): (key, one)
        for key, one in document.items()
        if isinstance(one, dict)
        for wanted in key.split(",")
    }

    def keys(one: _Tree, kinds: Sequence[str]) -> Iterable[str]:
        for kind in kinds:
            for name, wish in (one.get(kind) or {}).items():
                # Berry adds npm: to ranges, also to those in its own lockfile before version 8.
                for wanted in (f"{name}@{wish}", f"{name}@npm:{wish}"):
                    key, found = entries.get(wanted, ("", {}))
                    if key and not _is_workspace(found):
                        yield key
                        break

    def edges(key: str) -> Iterable[str]:
        return keys(document[key], ("dependencies", "optionalDependencies"))

    def named(key: str) -> tuple[str, str]:
        # Scopes begin with @, too.
        first = key.partition(",")[0].strip().strip('"')
        name = first[:1] + first[1:].partition("@")[0]
        return name, str(document[key].get("version"))

    manifests = {
        folder: lock.read(posixpath.join(folder, "package.json")) for folder in lock.folders
    }
    return {
        one: _reached(keys(json.loads(manifest), _KINDS), edges, named)
        for one, manifest in manifests.items()
        if manifest is not None
    }


def _is_workspace(entry: _Tree) -> bool:
    return "@workspace:" in str(entry.get("resolution", ""))


def _of_bun(lock: Lockfile) -> Mapping[str, Packages]:
    document = jsonc.parse(lock.text)
    packages: _Tree = document["packages"]

    def place(parent: str, name: str) -> str | None:
        """A key is the path of the names that lead to a package that another version hides: `express/debug`."""
        while True:
            key = f"{parent}/{name}" if parent else name
            if key in packages:
                return None if "@workspace:" in packages[key][0] else key
            if not parent:
                return None
            parent = _above(parent)

    def edges(key: str) -> Iterable[str]:
        about: _Tree = next((one for one in packages[key][1:] if isinstance(one, dict)), {})
        names = [name for kind in _KINDS_OF_PACKAGES for name in about.get(kind) or {}]
        return [found for name in names if (found := place(key, name))]

    def named(key: str) -> tuple[str, str]:
        name, _, version = packages[key][0].rpartition("@")
        return name, version

    def start(workspace: _Tree) -> Iterable[str]:
        names = [name for kind in _KINDS for name in workspace.get(kind) or {}]
        return [found for name in names if (found := place(workspace.get("name", ""), name))]

    workspaces = document["workspaces"]
    return {
        folder: _reached(start(workspaces[folder]), edges, named)
        for folder in lock.folders
        if folder in workspaces
    }


def _above(key: str) -> str:
    """The key without its last name, which can have a scope: `a/@b/c` is below `a`."""
    first, _, last = key.rpartition("/")
    above, _, scope = first.rpartition("/")
    return above if scope.startswith("@") and last else first


_LINE = re.compile(
    r"""^(?P<indent> *)(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"][^\n]*?):(?:\s+(?P<value>.*))?$"""
)


def _indented(text: str) -> _Tree:
    """Nested maps of texts, as package managers write YAML. Lists and maps in one line are left out."""
    root: _Tree = {}
    levels: list[tuple[int, _Tree]] = [(-1, root)]
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        indent, key = len(match["indent"]), _unquoted(match["key"])
        while levels[-1][0] >= indent:
            levels.pop()
        value = (match["value"] or "").strip()
        if value and value != "{}":
            levels[-1][1][key] = _unquoted(value)
        else:
            inner: _Tree = {}
            levels[-1][1][key] = inner
            levels.append((indent, inner))
    return root


def _unquoted(text: str) -> str:
    return (
        text[1:-1].replace("''", "'") if text[:1] in ("'", '"') and text[-1:] == text[:1] else text
    )


_CLASSIC = re.compile(r"""^(?P<indent> +)(?P<key>"[^"]*"|[^\s":]+) (?P<value>\S.*)$""")


def _classic(text: str) -> str:
    """The lockfile of yarn 1 as YAML: it has no colon between name and value, and quotes only some headers."""
    lines = []
    for line in text.splitlines():
        if match := _CLASSIC.match(line):
            lines.append(f"{match['indent']}{match['key']}: {match['value']}")
        elif line and not line.startswith((" ", "#")):
            lines.append(f'"{line.rstrip(":").replace(chr(34), "")}":')
        else:
            lines.append(line)
    return "\n".join(lines)


_READERS: Mapping[str, Callable[[Lockfile], Mapping[str, Packages]]] = {
    "package-lock.json": _of_npm,
    "npm-shrinkwrap.json": _of_npm,
    "pnpm-lock.yaml": _of_pnpm,
    "yarn.lock": _of_yarn,
    "bun.lock": _of_bun,
}
