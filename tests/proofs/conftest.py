"""Fixtures of the proofs: a running local cloud, and the layer in this process on its tables and bucket.

Long proofs run in a short form unless the environment asks for more; `make proofs` sets every such variable.
"""

import secrets
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key
from larder.settings import region
from larder.teams.service import create_team
from tests.e2e import cloud as local_clouds
from tests.layer_on import LayerOn, forget
from tests.moto_stores import Stores
from tests.rehearsal.acting import Rehearsal
from tests.requests import Cloud, Sender

ROUND = 20
"""Requests to the handlers, until what they stored is checked and gone."""

REPORT = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    kept = terminalreporter.config.stash.get(REPORT, [])
    lines = [*kept]
    # What comes by record_property comes from other processes, too.
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            lines += [str(told) for name, told in report.user_properties if name == "told"]
    if lines:
        terminalreporter.section("what the proofs saw")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def told(request: pytest.FixtureRequest) -> list[str]:
    """Lines that are shown at the end of the run, whatever its outcome."""
    return request.config.stash.setdefault(REPORT, [])


@pytest.fixture(scope="session")
def local_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[local_clouds.LocalCloud]:
    """A running local cloud that the proofs share; each works with teams of its own."""
    folder = tmp_path_factory.mktemp("cloud")
    with local_clouds.running(request.config.rootpath, folder / "data") as server:
        yield server


class Rounds:
    """Requests in rounds, each of which begins with the stores as they are now.

    A transaction of moto copies its tables as a whole. Without an end each request would be slower than the one before.
    """

    def __init__(self, check: Callable[[], None], *, in_moto: bool) -> None:
        self._check = check
        self._stores = Stores(region()) if in_moto else None
        self._sent = 0

    def count(self) -> None:
        """One more was sent. After the last of a round the stores are checked and put back."""
        self._sent += 1
        if self._stores is not None and self._sent % ROUND == 0:
            self._check()
            self._stores.put_back()


BeginRounds = Callable[[Callable[[], None]], Rounds]


@pytest.fixture
def begin_rounds(
    aws_in_memory: None, dynamodb_local: str | None, rehearsed: Rehearsal | None
) -> BeginRounds:
    """Begins rounds that end with `check`: `begin_rounds(check)`. Without moto there is one alone, which never ends."""
    return partial(Rounds, in_moto=not (dynamodb_local or rehearsed))


@pytest.fixture
def layer_on(environment: pytest.MonkeyPatch) -> Iterator[LayerOn]:
    """Lets the layer in this process work on the tables and the bucket of a running local cloud."""
    yield LayerOn(environment)
    forget()


@pytest.fixture
def on_the_local_server(local_cloud: local_clouds.LocalCloud, layer_on: LayerOn) -> None:
    """The layer in this process works on the local cloud."""
    layer_on(local_cloud)


@pytest.fixture
def new_team(on_the_local_server: None) -> Cloud:
    """A team of its own on the local cloud, with its owner and a key that is bound to it."""
    return make_team()


def make_team() -> Cloud:
    """A team with a slug that no other has, its owner, and a key that is bound to it."""
    now, slug = clock.now(), f"proof-{secrets.token_hex(6)}"
    owner = create_user(f"{slug}@proofs.example", "Owner", now=now)
    team = create_team(slug, slug, owner_user_id=owner.id, now=now)
    key, token = create_key(NewKey(user_id=owner.id, team_id=team.id), now=now)
    return Cloud(user=owner, team=team, key=key, token=token, send=Sender(token, slug=slug))
