"""An in-memory cloud: the template's tables and bucket on moto, with a team, users and keys, and the handlers behind
the template's routes. moto does not test signatures, durability or speed: tests/local and tests/e2e do.

ENGINE=dynamodb-local puts the tables into AWS's DynamoDB Local, here and in every local cloud that a test starts.
"""

import gc
import json
import os
import re
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from io import StringIO
from logging import StreamHandler
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

import httpx
import pytest
import time_machine
from botocore.loaders import create_loader
from botocore.retries.standard import ExponentialBackoff
from hypothesis import settings as hypothesis_settings
from time_machine import escape_hatch

import larder.settings
from larder import aws, clock
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.aws.replies import ClientError, error_code
from larder.instance import restart
from larder.settings import Settings, environment_name, region, settings
from larder.teams.teams import create_team
from larder.web.log import logger
from tests import invocations
from tests.catalogue import NAMES, Names
from tests.default_template import template
from tests.dynamodb_local import engine
from tests.layer_on import forget_options
from tests.mailbox import Mailbox, handed_over
from tests.moto_stores import Stores, answering_boto3
from tests.requests import Cloud, Sender
from tests.unused_permissions import UnusedPermissions
from tools import documentation

P = ParamSpec("P")
T = TypeVar("T")

QUICK = "not build and not slow and not e2e and not thorough"
"""The tests that need no build, no npm and no patience, as a marker expression: those of `make test`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--unused-permissions", action="store_true", help="fail if no test needs a permission")
    parser.addoption("--quick", action="store_true", help="run only the tests of `make test`")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        documentation.renew()
    if config.getoption("--quick"):
        config.option.markexpr = QUICK
    if config.getoption("--unused-permissions"):
        config.pluginmanager.register(UnusedPermissions())
    # 250,000 objects stay for the whole run. Fewer garbage collections save a tenth of its time.
    gc.set_threshold(20_000, 20, 50)
    # A busy machine can pause a test for longer than the deadline of an example, which is 200 ms by default.
    hypothesis_settings.register_profile("larder", hypothesis_settings(), deadline=None)
    hypothesis_settings.load_profile("larder")


def pytest_xdist_auto_num_workers() -> int:
    """One more than processors, because many tests wait for a process or a pause."""
    return (os.cpu_count() or 1) + 1


_NOT_QUICK = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(build|slow|e2e|thorough)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Quick runs do not import the files of which they would run no test, in each process."""
    is_file = config.getoption("--quick") and collection_path.name.startswith("test_")
    return True if is_file and _NOT_QUICK.search(collection_path.read_text()) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the log of the local cloud when a test fails."""
    report = yield
    server = getattr(item, "funcargs", {}).get("local_cloud")
    if report.failed and server is not None:
        report.sections.append(("log of the local cloud (its end)", server.log_text()[-8_000:]))
    return report


@pytest.fixture(scope="session", autouse=True)
def quick_boto3() -> Iterator[None]:
    """boto3 reads its description of AWS once, not for every session, and both clients retry without a pause."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("botocore.session.create_loader", cache(create_loader))
        patched.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
        # The pauses of larder.aws.wire.
        patched.setattr("random.random", lambda: 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_settings() -> Iterator[None]:
    """Options are parsed once for the same variables. Otherwise each request parses them twice, because a function sees
    only its own (tests/own_variables.py).
    """
    read: dict[frozenset[tuple[bytes, bytes]], Settings] = {}

    def read_settings(environ: Any) -> Settings:
        if environ is not os.environ:
            return settings_of(environ)
        own = _own_variables()
        if own not in read:
            read[own] = settings_of(environ)
        return read[own]

    settings_of = larder.settings.read_settings
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("larder.settings.read_settings", read_settings)
        # moto makes a random one for each reply, of 52 letters.
        patched.setattr("moto.core.responses.gen_amzn_requestid_long", _request_id)
        yield


def _own_variables() -> frozenset[tuple[bytes, bytes]]:
    """Larder's variables and their values. `os.environ` would decode each one."""
    encoded: dict[bytes, bytes] = vars(os.environ)["_data"]
    return frozenset(variable for variable in encoded.items() if variable[0].startswith(b"LARDER_"))


def _request_id(headers: dict[str, Any]) -> str:
    headers["x-amzn-requestid"] = "request"
    return "request"


@pytest.fixture(scope="session", autouse=True)
def quick_httpx() -> Iterator[None]:
    """httpx reads the certificates of all authorities once. It would for every request, also without TLS: 26 ms."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("httpx._transports.default.create_ssl_context", cache(httpx.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def dynamodb_local() -> Iterator[str | None]:
    """The URL of DynamoDB Local if ENGINE selects it, None for moto. Local clouds keep their tables in it too."""
    if not engine.SELECTED:
        yield None
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TABLES", f"tests.dynamodb_local {engine.port()}")
        yield f"http://127.0.0.1:{engine.port()}"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, dynamodb_local: str | None) -> Iterator[pytest.MonkeyPatch]:
    """The environment variables of a function. A variable that a test sets takes effect at its next use."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    if not os.environ.get("ENGINE"):
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "under-test")
    aws_client = os.environ.get(environment_name("aws_client"), "")
    # Variables of this machine would send the functions' calls by boto3.
    for name in ("AWS_ENDPOINT_URL_S3", *aws.ONLY_BOTO3_KNOWS):
        monkeypatch.delenv(name, raising=False)
    if dynamodb_local:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_local)
    for name, value in template().environment.items():
        monkeypatch.setenv(name, value)
    # `make test AWS_CLIENT=boto3`
    monkeypatch.setenv(environment_name("aws_client"), aws_client)
    # Tests of sign-up set another policy.
    monkeypatch.setenv(environment_name("sign_up_policy"), "open")
    # Only tests with a mailbox have a function that sends mail.
    monkeypatch.setenv(environment_name("send_verification_on_sign_up"), "false")
    # All requests of the tests come from one address. Tests of the rate limits enable them.
    monkeypatch.setenv(environment_name("http_rate_limit_enabled"), "false")
    _forget()
    yield monkeypatch
    _forget()


def _forget() -> None:
    # Keep the clients: creating them takes longer than most tests, and they still work with moto.
    aws._by_wire.cache_clear()
    restart()
    forget_options()


@pytest.fixture
def log() -> Iterator[StringIO]:
    """The log of the functions. Powertools' Logger writes to the standard output of its first use."""
    (handler,) = logger().handlers
    assert isinstance(handler, StreamHandler)
    written = StringIO()
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.fixture
def option(environment: pytest.MonkeyPatch) -> "SetOption":
    """Set an option of the deployment by the name of its field: `option("retention_days", 7)`."""
    return SetOption(environment)


@pytest.fixture
def refusing(option: "SetOption") -> None:
    """A deployment that refuses uploads when the quota is full."""
    option("over_quota", "refuse")


class SetOption:
    def __init__(self, environment: pytest.MonkeyPatch) -> None:
        self._environment = environment

    def __call__(self, name: str, value: object) -> None:
        self._environment.setenv(environment_name(name), str(value))
        settings.cache_clear()


@cache
def _first_stores() -> tuple[Stores, str]:
    """The stores that every test starts with, and the ARN of their signing secret."""
    _make_tables()
    bucket = template().environment[environment_name("artifacts_bucket")]
    aws.s3().create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    aws.s3().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    secret = aws.secrets_manager().create_secret(
        Name="larder-signing-secret",
        SecretString=json.dumps({"current": "the-signing-secret-of-the-tests", "previous": ""}),
    )
    return Stores(region()), secret["ARN"]


def _make_tables() -> None:
    for name in aws.dynamodb().list_tables()["TableNames"]:
        # A large table takes longer than a call, and is gone when the client tries again.
        try:
            aws.dynamodb().delete_table(TableName=name)
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
    for table in template().tables:
        aws.dynamodb().create_table(**table.create_table)


@pytest.fixture
def aws_in_memory(environment: pytest.MonkeyPatch, option: "SetOption", dynamodb_local: str | None) -> Iterator[None]:
    """Empty tables, an empty bucket, and a signing secret in Secrets Manager."""
    with answering_boto3():
        stores, signing_secret = _first_stores()
        stores.put_back()
        if dynamodb_local:
            _make_tables()
        option("signing_secret", signing_secret)
        # Read before a test of the command removes the functions' variables.
        settings()
        yield


@pytest.fixture
def begin_with(aws_in_memory: None, dynamodb_local: str | None) -> "BeginWith":
    """Fill the stores with the data that a function creates: `begin_with(make)`."""
    return BeginWith(in_moto=not dynamodb_local)


class BeginWith:
    """With moto, the stores are copied from those of the first test that started with the same function and options."""

    _first: ClassVar[dict[Any, tuple[Stores, Any]]] = {}

    def __init__(self, *, in_moto: bool) -> None:
        self._in_moto = in_moto
        self._begun: Any = None
        """What this test has begun with: the functions and, at each, the options."""

    def __call__(self, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `make`. It must create the same data unless a test changes options or the clock."""
        if not self._in_moto or escape_hatch.is_travelling():
            return make(*args, **kwargs)
        self._begun = self._begun, make, _own_variables()
        if self._begun not in self._first:
            made = make(*args, **kwargs)
            self._first[self._begun] = Stores(region()), made
        stores, made = self._first[self._begun]
        stores.put_back()
        return made


@pytest.fixture
def cloud(begin_with: "BeginWith") -> Cloud:
    """The team `acme` with its owner Ada, and her key with every permission in that team."""
    return begin_with(_make_cloud)


@pytest.fixture(params=[8, 1])
def partitions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many partitions the index of a team has. Those of 0.2.0 have one."""
    if request.param == 1:
        monkeypatch.setattr("larder.artifacts.repository.table.ID_LENGTH", 0)
    return int(request.param)


def _make_cloud() -> Cloud:
    now = clock.now()
    ada = create_user("ada@acme.example", "Ada", now=now)
    team = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    key, token = create_key(NewKey(user_id=ada.id, team_id=team.id, name="ci"), now=now)
    return Cloud(user=ada, team=team, key=key, token=token, send=Sender(token, slug=team.slug))


@pytest.fixture
def names(begin_with: "BeginWith", option: "SetOption", mailbox: object, removal_jobs: object) -> Names:
    """Everything that a request of the catalogue can name."""
    # It needs the tests of company sign-in, which few tests do.
    from tests.everything import make_everything

    option("scrypt_cost", 1024)
    option("operator_emails", NAMES.email)
    option("trusted_origins", NAMES.trusted_origin)
    return begin_with(make_everything)


@pytest.fixture
def mailbox(aws_in_memory: None) -> Iterator[Mailbox]:
    """The mail that requests of this test send: jobs, and after `deliver()` their messages."""
    with handed_over() as payloads:
        yield Mailbox(payloads)


@pytest.fixture
def removal_jobs(aws_in_memory: None) -> Iterator[list[dict[str, Any]]]:
    """The removal jobs that requests of this test start."""
    with invocations.handed_over(settings().removal_function) as payloads:
        yield payloads


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, traveller: time_machine.Traveller) -> None:
        self._traveller = traveller

    def pass_(self, time: timedelta) -> datetime:
        self._traveller.shift(time)
        return clock.now()


@pytest.fixture
def later(cloud: Cloud) -> Iterator[Clock]:
    """A clock that stands still, a second after the key was created."""
    start = clock.now().replace(microsecond=0, tzinfo=UTC) + timedelta(seconds=1)
    with time_machine.travel(start, tick=False) as traveller:
        yield Clock(traveller)


@pytest.fixture
def send(cloud: Cloud) -> Sender:
    """Send requests with the key of `cloud` for the team `acme`."""
    return cloud.send


@pytest.fixture
def personal(cloud: Cloud) -> Sender:
    """Send requests without a team, with a personal key of Ada's."""
    return Sender(create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1])


@pytest.fixture
def manage(cloud: Cloud) -> Sender:
    """Send requests for the team `acme` with a key of its owner that can only manage artifacts."""
    new = NewKey(user_id=cloud.user.id, permissions={"artifacts": ("manage",)})
    return Sender(create_key(new, now=clock.now())[1], slug=cloud.team.slug)


@pytest.fixture
def stranger(cloud: Cloud) -> Sender:
    """Send requests for the team `acme` with the key of a user who is not a member."""
    now = clock.now()
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=now)
    token = create_key(NewKey(user_id=mallory.id), now=now)[1]
    return Sender(token, slug=cloud.team.slug)
