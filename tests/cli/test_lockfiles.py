"""The external packages of each workspace, from lockfiles that the package managers wrote for the same packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder_cli.why.lockfiles import Lockfile, changed_packages, external_packages

SAMPLES = {path.parent.name: path for path in sorted(Path(__file__).with_name("lockfiles").glob("*/*"))}
MANIFESTS = {
    "package.json": {"devDependencies": {"is-odd": "3.0.0"}},
    "packages/lib/package.json": {"dependencies": {"debug": "4.3.4"}},
    "packages/api/package.json": {"dependencies": {"lib": "*", "@types/ms": "0.7.31", "ms": "2.0.0"}},
}
FOLDERS = ("", "packages/lib", "packages/api")


def lockfile(manager: str, version: str = "4.3.4") -> Lockfile:
    """The sample with this version of debug."""

    def read(path: str) -> str | None:
        manifest = MANIFESTS.get(path)
        return json.dumps(manifest).replace("4.3.4", version) if manifest else None

    path = SAMPLES[manager]
    return Lockfile(path.name, path.read_text().replace("4.3.4", version), FOLDERS, read)


@pytest.mark.parametrize("manager", SAMPLES)
def test_the_packages_of_each_workspace(manager: str) -> None:
    """debug uses another version of ms than api does. lib is a workspace, so it is no package of api."""
    packages = external_packages(lockfile(manager))
    shown = {folder: {name: [*found] for name, found in one.items()} for folder, one in packages.items()}
    assert shown == {
        "": {"is-odd": ["3.0.0"], "is-number": ["6.0.0"]},
        "packages/lib": {"debug": ["4.3.4"], "ms": ["2.1.2"]},
        "packages/api": {"@types/ms": ["0.7.31"], "ms": ["2.0.0"]},
    }


@pytest.mark.parametrize("manager", SAMPLES)
def test_an_update_is_named(manager: str) -> None:
    old = external_packages(lockfile(manager))
    new = external_packages(lockfile(manager, "4.3.5"))
    assert changed_packages(old["packages/lib"], new["packages/lib"]) == ("debug 4.3.4 -> 4.3.5",)
    assert changed_packages(old["packages/api"], new["packages/api"]) == ()
    assert changed_packages({}, {"ms": frozenset({"2.0.0", "2.1.2"})}) == ("ms none -> 2.0.0, 2.1.2",)


def test_a_lockfile_of_another_form_has_no_packages() -> None:
    for name, text in (
        ("package-lock.json", "{}"),
        ("package-lock.json", "["),
        ("bun.lock", '{"packages": []}'),
        ("bun.lockb", "\0"),
        ("Gemfile.lock", ""),
    ):
        assert external_packages(Lockfile(name, text, FOLDERS, lambda _: None)) == {}


@given(
    manager=st.sampled_from(sorted(SAMPLES)),
    start=st.integers(0, 3000),
    length=st.integers(0, 200),
    inserted=st.text(max_size=20),
)
def test_a_damaged_lockfile_does_no_harm(manager: str, start: int, length: int, inserted: str) -> None:
    whole = lockfile(manager)
    damaged = whole.text[:start] + inserted + whole.text[start + length :]
    for packages in external_packages(whole._replace(text=damaged)).values():
        assert all(found for found in packages.values())
