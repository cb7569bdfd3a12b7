"""Run the command in this process, against the in-memory cloud of tests/conftest.py."""

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from larder import aws
from larder.accounts import repository
from larder.accounts.service import read_account
from larder_cli.main import cli
from local.cloudformation import read_template
from local.template import resource_name, template_path
from tests.default_template import template
from tests.requests import Cloud

from .fake_aws import FakeAws

TEMPLATE: dict[str, Any] = read_template(template_path())
OUTPUTS = {name: resource_name(name) for name in TEMPLATE["Outputs"]} | {"Region": "eu-central-1"}
PARAMETERS = {name: str(parameter["Default"]) for name, parameter in TEMPLATE["Parameters"].items()}


@dataclass(frozen=True)
class Larder:
    """Runs `larder` with the options that name its target."""

    target: tuple[str, ...] = ()

    def __call__(self, *arguments: str, status: int = 0, charset: str = "utf-8", answer: str = "") -> Result:
        """Run it and check the exit status. A failure must not show a traceback."""
        result = CliRunner(charset=charset).invoke(cli, [*self.target, *arguments], input=answer, prog_name="larder")
        assert result.exit_code == status, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").stdout)

    def refusal(self, *arguments: str, status: int = 1) -> str:
        """The one-line error message."""
        result = self(*arguments, status=status)
        assert result.stdout == ""
        *usage, line = result.stderr.splitlines()
        assert all(not text or text.startswith(("Usage: ", "Try ")) for text in usage)
        assert line.startswith("Error: ")
        return line.removeprefix("Error: ")


@pytest.fixture
def own_environment(
    environment: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[pytest.MonkeyPatch]:
    """Restore the environment after each test, because the command changes that of its process."""
    for variable in ("LARDER_STACK", "LARDER_LOCAL", "XDG_CONFIG_HOME"):
        environment.delenv(variable, raising=False)
    # What this machine's user has chosen by `larder use` is not there.
    environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    before = dict(os.environ)
    yield environment
    os.environ.clear()
    os.environ.update(before)
    aws.reset()


@pytest.fixture
def api_url() -> Iterator[str]:
    """The URL of a server that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def data_folder(tmp_path: Path, own_environment: pytest.MonkeyPatch, api_url: str) -> Path:
    """The data folder of a local cloud in this process, with the in-memory stores."""
    variables = {k: v for k, v in os.environ.items() if k.startswith(("LARDER_", "AWS_"))}
    write_cloud_json(tmp_path, {"pid": os.getpid(), "api_url": api_url, "environment": variables})
    return tmp_path


def write_cloud_json(data: Path, cloud: dict[str, Any]) -> None:
    (data / "cloud.json").write_text(json.dumps(cloud))


def change_cloud_json(data: Path, **variables: str) -> None:
    """Change variables of the local cloud."""
    cloud = json.loads((data / "cloud.json").read_text())
    cloud["environment"].update(variables)
    write_cloud_json(data, cloud)


@pytest.fixture
def cloud(cloud: Cloud) -> Cloud:
    """The cloud of all tests, but its owner's address is proven, as `larder users create` makes it."""
    account = read_account(cloud.user.id)
    proven = replace(account.user, email_verified=True, proven=True)
    stored = repository.change(account, replace(account, user=proven))
    assert stored is not None
    return replace(cloud, user=stored.user)


@pytest.fixture
def larder(aws_in_memory: None, data_folder: Path) -> Larder:
    """`larder --local DATA`."""
    return Larder(("--local", str(data_folder)))


@pytest.fixture
def fake_aws() -> Iterator[FakeAws]:
    with FakeAws.running() as server:
        yield server


@pytest.fixture
def mail_function(data_folder: Path, fake_aws: FakeAws) -> FakeAws:
    """Receives the email jobs that commands submit."""
    fake_aws.status = 202
    change_cloud_json(data_folder, AWS_ENDPOINT_URL_LAMBDA=fake_aws.url)
    return fake_aws


@pytest.fixture
def stack(own_environment: pytest.MonkeyPatch, fake_aws: FakeAws) -> FakeAws:
    """A deployed stack of the template, with the in-memory tables and bucket."""
    fake_aws.holds_stack(OUTPUTS, PARAMETERS)
    own_environment.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", fake_aws.url)
    for name in template().environment:
        if name.startswith("LARDER_"):
            own_environment.delenv(name)
    return fake_aws
