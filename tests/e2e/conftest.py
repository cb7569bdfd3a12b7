"""Fixtures of the tests with the real `turbo` client. They need node and npm, and npm's registry for the clients."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.company_network import Network, company_network
from tools.release.sidecar import pack_sidecar

from . import accessibility, browser, cloud, monorepo, neighbour, turbo
from .browser import Browser
from .compatibility import Document


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-compatibility",
        action="store_true",
        help="write docs/compatibility.md from what the client matrix shows, instead of comparing with it",
    )


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[cloud.LocalCloud]:
    """A running local cloud with empty stores, shared by the tests of one module."""
    folder = tmp_path_factory.mktemp("cloud")
    with cloud.running(request.config.rootpath, folder / "data") as server:
        yield server


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[cloud.LocalCloud]:
    """The same for tests with browsers, with the module's SERVER_OPTIONS."""
    folder = tmp_path_factory.mktemp("cloud")
    options = getattr(request.module, "SERVER_OPTIONS", {})
    # The tests sign in more often than the limit allows.
    limits = {"LARDER_HTTP_RATE_LIMIT_ENABLED": "false"}
    with cloud.running(request.config.rootpath, folder / "data", **limits, **options) as running:
        yield running


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a process, because each start takes a second."""
    with browser.opened(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def page(window: Browser) -> Browser:
    """A browser in which no one is signed in, and whose log is empty."""
    window.open("about:blank")
    window.forget_cookies()
    window.look(width=1280)
    window.errors()
    return window


@pytest.fixture(scope="module")
def other_port() -> Iterator[int]:
    """The port of another server on this machine. Its pages are empty, or show the address after `?` in a frame."""
    with neighbour.running() as port:
        yield port


@pytest.fixture(scope="session")
def axe(request: pytest.FixtureRequest) -> str:
    """The script of axe-core."""
    return accessibility.script(request.config.rootpath)


@pytest.fixture(scope="session")
def document(request: pytest.FixtureRequest) -> Document:
    """docs/compatibility.md"""
    return Document(
        request.config.rootpath / "docs" / "compatibility.md",
        request.config.getoption("write_compatibility", default=False),
    )


@pytest.fixture(scope="session")
def tools(request: pytest.FixtureRequest) -> Path:
    """The folder of clients that tests install once."""
    return request.config.rootpath / ".tools"


@pytest.fixture(scope="session")
def larder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`larder.pyz`"""
    file = tmp_path_factory.mktemp("larder") / "larder.pyz"
    pack_sidecar(file)
    return file


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home folder: no user's turbo, npm or git configuration."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, local_cloud: cloud.LocalCloud, home: Path) -> Callable[..., turbo.Client]:
    """Creates a turbo of any version that uses the local cloud with the settings that the cloud printed."""
    tools = request.config.rootpath / ".tools" / "turbo"

    def make(version: str, **options: Any) -> turbo.Client:
        command = turbo.installed(version, tools)
        return turbo.Client(command, version, local_cloud.turbo_environment, home, **options)

    return make


@pytest.fixture(scope="session")
def sample_monorepo(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """The generated monorepo that tests copy."""
    return _generated(monorepo.sample_packages(), tmp_path_factory, home)


@pytest.fixture(scope="session")
def short_monorepo(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """The same with fewer packages."""
    return _generated(monorepo.short_sample_packages(), tmp_path_factory, home)


def _generated(packages: Iterable[monorepo.Package], tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("sample") / "monorepo"
    monorepo.generate(root, packages, home=home)
    return root


@pytest.fixture
def fresh_monorepo(sample_monorepo: Path, tmp_path: Path, home: Path) -> Iterator[Callable[..., Path]]:
    """Creates a copy with unique hashes, and deletes it after the test, because outputs are large."""
    made: list[Path] = []

    def copy(version: str, *, seed: str, signature: bool = False, template: Path = sample_monorepo) -> Path:
        root = tmp_path / f"monorepo-{len(made)}"
        made.append(root)
        monorepo.copy_with_sources_of_its_own(
            template, root, seed=seed, turbo_json=turbo.turbo_json(version, signature=signature), home=home
        )
        return root

    yield copy
    for root in made:
        shutil.rmtree(root)


@pytest.fixture(scope="module")
def network(local_cloud: cloud.LocalCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """A company's network around the local cloud, with its proxies."""
    with company_network(tmp_path_factory.mktemp("company"), local_cloud.url) as made:
        yield made
