"""Fixtures of the proofs: a running local cloud, and the layer in this process on its tables and bucket.

Long proofs run in a short form unless the environment asks for more; `make proofs` sets every such variable.
"""

import secrets
from collections.abc import Iterator

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.teams.teams import create_team
from tests.e2e import cloud as local_clouds
from tests.layer_on import LayerOn, forget
from tests.requests import Cloud, Sender

REPORT = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    kept = terminalreporter.config.stash.get(REPORT, [])
    lines = [*kept]
    # Unlike the stash, properties also come from the workers of pytest-xdist.
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            lines += [str(line) for name, line in report.user_properties if name == "report_line"]
    if lines:
        terminalreporter.section("results of the proofs")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def report_lines(request: pytest.FixtureRequest) -> list[str]:
    """Lines that pytest prints at the end of the run, even if a test fails."""
    return request.config.stash.setdefault(REPORT, [])


@pytest.fixture(scope="session")
def local_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[local_clouds.LocalCloud]:
    """A running local cloud that the proofs share. Each proof uses its own teams."""
    folder = tmp_path_factory.mktemp("cloud")
    with local_clouds.running(request.config.rootpath, folder / "data") as server:
        yield server


@pytest.fixture
def layer_on(environment: pytest.MonkeyPatch) -> Iterator[LayerOn]:
    """Connects the layer in this process to the tables and the bucket of a running local cloud."""
    yield LayerOn(environment)
    forget()


@pytest.fixture
def on_the_local_server(local_cloud: local_clouds.LocalCloud, layer_on: LayerOn) -> None:
    """Connects the layer in this process to the shared local cloud."""
    layer_on(local_cloud)


@pytest.fixture
def new_team(on_the_local_server: None) -> Cloud:
    """A new team on the local cloud, with its owner and a key for the team."""
    return make_team()


def make_team() -> Cloud:
    """Create a team with a unique slug, its owner, and a key for the team."""
    now, slug = clock.now(), f"proof-{secrets.token_hex(6)}"
    owner = create_user(f"{slug}@proofs.example", "Owner", now=now)
    team = create_team(slug, slug, owner_user_id=owner.id, now=now)
    key, token = create_key(NewKey(user_id=owner.id, team_id=team.id), now=now)
    return Cloud(user=owner, team=team, key=key, token=token, send=Sender(token, slug=slug))
