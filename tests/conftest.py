"""A cloud in memory: the template's tables and bucket on moto, with a team, people and keys, and the handlers behind
the template's routes. moto proves no signature, no durability and no speed: tests/local and tests/e2e do.

ENGINE=dynamodb-local puts the tables into AWS's DynamoDB Local, here as in every local cloud that a test starts.
ENGINE=roles takes an emulator that asks for permissions, in which every function has its own role (tests/rehearsal).
"""

import gc
import json
import os
from collections.abc import Callable, Generator, Iterator
from functools import cache
from io import StringIO
from logging import StreamHandler
from typing import Any, ClassVar, ParamSpec, TypeVar

import pytest
from botocore.loaders import create_loader
from botocore.retries.standard import ExponentialBackoff
from time_machine import escape_hatch

from larder import aws, clock
from larder.accounts.service import create_user
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key
from larder.instance import restart
from larder.settings import environment_name, region, settings
from larder.teams.models import Role
from larder.teams.service import add_member, create_team
from larder.web.log import logger
from local.data_folder import DYNAMODB_LOCAL
from local.tables.dynamodb_local.engine import Engine
from local.tables.dynamodb_local.installation import open_installation
from local.template import Template, load_template
from tests import invocations
from tests.layer_on import forget_options
from tests.mailbox import Mailbox, handed_over
from tests.moto_stores import Stores, answering_boto3
from tests.rehearsal.acting import ROLES, Rehearsal, rehearsal
from tests.requests import Cloud, Sender

P = ParamSpec("P")
T = TypeVar("T")


def pytest_configure() -> None:
    # A quarter of a million objects stay for the whole run. Looking through them less often saves a tenth of its time.
    gc.set_threshold(20_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the log of the server that it ran against."""
    report = yield
    server = getattr(item, "funcargs", {}).get("local_cloud")
    if report.failed and server is not None:
        report.sections.append(("log of the local cloud (its end)", server.log_text()[-8_000:]))
    return report


@pytest.fixture(scope="session", autouse=True)
def quick_boto3() -> Iterator[None]:
    """boto3 reads its description of AWS once, not for every session, and tries again at once where it would wait."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("botocore.session.create_loader", cache(create_loader))
        patched.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
        yield


@cache
def template() -> Template:
    """The template with its own defaults, whatever the environment of the tests says."""
    return load_template(environ={})


@pytest.fixture(scope="session")
def dynamodb_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str | None]:
    """The address of a DynamoDB Local in memory when ENGINE asks for it; None for moto."""
    if os.environ.get("ENGINE") != DYNAMODB_LOCAL:
        yield None
        return
    with (tmp_path_factory.mktemp("dynamodb-local") / "log").open("wb") as log:
        engine = Engine(open_installation(), "testing", folder=None, output=log.fileno())
        try:
            engine.wait_until_ready()
            yield f"http://127.0.0.1:{engine.port}"
        finally:
            engine.stop()


@pytest.fixture(scope="session")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal | None]:
    """The emulator that asks for permissions when ENGINE says so; None for moto."""
    if os.environ.get("ENGINE") != ROLES:
        yield None
        return
    with rehearsal(tmp_path_factory.mktemp("rehearsal")) as running:
        yield running


@pytest.fixture
def environment(
    monkeypatch: pytest.MonkeyPatch, dynamodb_local: str | None
) -> Iterator[pytest.MonkeyPatch]:
    """The variables that a function has in the cloud; what a test sets through it is read at the next use."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    if dynamodb_local:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_local)
    for name, value in template().environment.items():
        monkeypatch.setenv(name, value)
    # All requests of the tests come from one address. Those of the limits switch them on.
    monkeypatch.setenv(environment_name("http_rate_limit_enabled"), "false")
    _forget()
    yield monkeypatch
    _forget()


def _forget() -> None:
    # Clients are kept: making them takes longer than most tests, and moto answers old ones too.
    restart()
    forget_options()


@pytest.fixture
def log() -> Iterator[StringIO]:
    """What the functions log. Powertools' Logger writes to the standard output of its first use."""
    (handler,) = logger().handlers
    assert isinstance(handler, StreamHandler)
    written = StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.fixture
def option(environment: pytest.MonkeyPatch) -> "SetOption":
    """Sets an option of the deployment by its field's name: `option("retention_days", 7)`."""
    return SetOption(environment)


class SetOption:
    def __init__(self, environment: pytest.MonkeyPatch) -> None:
        self._environment = environment
        self.changed: set[str] = set()

    def __call__(self, name: str, value: object) -> None:
        self.changed.add(name)
        self._environment.setenv(environment_name(name), str(value))
        settings.cache_clear()


@cache
def _first_stores() -> tuple[Stores, str]:
    """The stores that every test begins with, and the ARN of the signing secret among them."""
    _make_tables()
    aws.s3().create_bucket(
        Bucket=template().environment[environment_name("artifacts_bucket")],
        CreateBucketConfiguration={"LocationConstraint": "eu-central-1"},
    )
    secret = aws.secrets_manager().create_secret(
        Name="larder-signing-secret",
        SecretString=json.dumps({"current": "the-signing-secret-of-the-tests", "previous": ""}),
    )
    return Stores(region()), secret["ARN"]


def _make_tables() -> None:
    for name in aws.dynamodb().list_tables()["TableNames"]:
        aws.dynamodb().delete_table(TableName=name)
    for table in template().tables:
        aws.dynamodb().create_table(**table.create_table)


@pytest.fixture
def aws_in_memory(
    environment: pytest.MonkeyPatch,
    option: "SetOption",
    dynamodb_local: str | None,
    rehearsed: Rehearsal | None,
) -> Iterator[None]:
    """Empty tables, an empty bucket, and a signing secret in Secrets Manager."""
    if rehearsed:
        option("signing_secret", rehearsed.stack.secrets["SigningSecret"])
        rehearsed.stack.empty()
        yield
        return
    with answering_boto3():
        stores, signing_secret = _first_stores()
        stores.put_back()
        if dynamodb_local:
            _make_tables()
        option("signing_secret", signing_secret)
        # Read before a test of the command takes the functions' variables away.
        settings()
        yield


@pytest.fixture
def begin_with(
    aws_in_memory: None,
    option: "SetOption",
    dynamodb_local: str | None,
    rehearsed: Rehearsal | None,
) -> "BeginWith":
    """Puts into the stores what a function makes there: `begin_with(make)`."""
    return BeginWith(option, in_moto=not (dynamodb_local or rehearsed))


class BeginWith:
    """Where moto holds the stores, they are copied from those of the first test that began with the same."""

    _first: ClassVar[dict[Callable[..., Any], tuple[Stores, Any]]] = {}

    def __init__(self, option: "SetOption", *, in_moto: bool) -> None:
        self._option = option
        self._in_moto = in_moto

    def __call__(self, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns what `make` returned. It has to make the same for every test that leaves options and clock alone."""
        usual = self._option.changed <= {"signing_secret"} and not escape_hatch.is_travelling()
        if not (self._in_moto and usual):
            return make(*args, **kwargs)
        if make not in self._first:
            made = make(*args, **kwargs)
            self._first[make] = Stores(region()), made
        stores, made = self._first[make]
        stores.put_back()
        return made


@pytest.fixture
def cloud(begin_with: "BeginWith") -> Cloud:
    """The team `acme` with its owner Ada, and a key of hers that may do everything in that team."""
    return begin_with(_make_cloud)


def _make_cloud() -> Cloud:
    now = clock.now()
    ada = create_user("ada@acme.example", "Ada", now=now)
    team = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    key, token = create_key(NewKey(user_id=ada.id, team_id=team.id, name="ci"), now=now)
    return Cloud(user=ada, team=team, key=key, token=token, send=Sender(token, slug=team.slug))


@pytest.fixture
def mailbox(aws_in_memory: None) -> Iterator[Mailbox]:
    """The mail that requests of this test ask for: jobs, and on `deliver()` the messages that come of them."""
    with handed_over() as payloads:
        yield Mailbox(payloads)


@pytest.fixture
def removal_jobs(aws_in_memory: None) -> Iterator[list[dict[str, Any]]]:
    """The jobs of removal that requests of this test hand over."""
    with invocations.handed_over(settings().removal_function) as payloads:
        yield payloads


@pytest.fixture
def send(cloud: Cloud) -> Sender:
    """Sends requests with the key of `cloud`, for the team `acme`."""
    return cloud.send


@pytest.fixture
def personal(cloud: Cloud) -> Sender:
    """Sends requests for nobody's team, with a key of Ada's that is bound to none."""
    return Sender(create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1])


@pytest.fixture
def manage(cloud: Cloud) -> Sender:
    """Sends requests for the team `acme` with a key of its owner's that may manage artifacts and nothing else."""
    new = NewKey(user_id=cloud.user.id, permissions={"artifacts": ("manage",)})
    return Sender(create_key(new, now=clock.now())[1], slug=cloud.team.slug)


@pytest.fixture
def stranger(cloud: Cloud) -> Sender:
    """Sends requests for the team `acme` with the key of somebody who is not a member."""
    now = clock.now()
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=now)
    token = create_key(NewKey(user_id=mallory.id), now=now)[1]
    return Sender(token, slug=cloud.team.slug)


@pytest.fixture
def viewer_token(cloud: Cloud) -> str:
    """The key of a member whose role only reads."""
    now = clock.now()
    vera = create_user("vera@acme.example", "Vera", now=now)
    add_member(cloud.team.id, vera.id, Role.VIEWER, now=now)
    return create_key(NewKey(user_id=vera.id), now=now)[1]
