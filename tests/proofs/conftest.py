"""Fixtures of the proofs: a running local cloud, and the layer in this process on its tables and bucket.

Long proofs run in a short form unless the environment asks for more; `make proofs` sets every such variable.
"""

import secrets
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.settings import region
from larder.teams.teams import create_team
from tests.e2e import cloud as local_clouds
from tests.layer_on import LayerOn, forget
from tests.moto_stores import Stores
from tests.rehearsal.acting import Rehearsal
from tests.requests import Cloud, Sender

ROUND = 20
"""The number of requests to the handlers after which the stores are checked and reset."""

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


class Rounds:
    """Requests in rounds. Each round starts with the current contents of the stores.

    A transaction in moto copies complete tables, so without rounds each request would be slower than the one before.
    """

    def __init__(self, check: Callable[[], None], *, in_moto: bool) -> None:
        self._check = check
        self._stores = Stores(region()) if in_moto else None
        self._sent = 0

    def count(self) -> None:
        """Count a request. After the last one of a round, check and reset the stores."""
        self._sent += 1
        if self._stores is not None and self._sent % ROUND == 0:
            self._check()
            self._stores.put_back()


BeginRounds = Callable[[Callable[[], None]], Rounds]


@pytest.fixture
def begin_rounds(aws_in_memory: None, dynamodb_local: str | None, rehearsed: Rehearsal | None) -> BeginRounds:
    """Start rounds that end with `check`: `begin_rounds(check)`. Without moto, there is one round, which never ends."""
    return partial(Rounds, in_moto=not (dynamodb_local or rehearsed))


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
