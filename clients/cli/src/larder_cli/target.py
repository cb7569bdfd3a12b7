"""Select the deployment that a command works on, and set its environment variables.

The rest of the code reads these variables through larder.settings, as the functions do. botocore is slow to import,
so the layer's AWS modules are imported only when a command runs.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from larder import settings

DESCRIPTION = "Larder:"
"""What the description of template.yaml begins with, in every version."""

_ANSWER_SECONDS = 3
_BASE_URL = settings.environment_name("base_url")
_KEYS_OF_THE_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The global options. A command needs exactly one of `stack` and `local`; `--help` needs neither.

    `is_chosen` says that they come from `larder use`.
    """

    stack: str | None = None
    local: Path | None = None
    region: str | None = None
    profile: str | None = None
    is_chosen: bool = False

    def __str__(self) -> str:
        """For people: what it is, and where."""
        if self.stack is None:
            return f"the local cloud on {self.local}"
        where = [f"in {self.region}"] if self.region else []
        return ", ".join(
            [" ".join(["the stack", self.stack, *where])]
            + ([f"by the profile {self.profile}"] if self.profile else [])
        )


def enter(target: Target) -> None:
    """Point the settings and the AWS clients of this process at `target`.

    Raises UsageError if the options do not name exactly one target, and ClickException if the target cannot be reached
    or is not a Larder deployment.
    """
    if target.stack is not None and target.local is not None:
        raise click.UsageError(
            "you named both a stack and a local cloud: give only one of --stack (LARDER_STACK) and"
            " --local (LARDER_LOCAL)"
        )
    if target.local is not None:
        _enter_local_cloud(target.local)
    elif target.stack is not None:
        _enter_stack(target.stack, target.region, target.profile)
    else:
        raise click.UsageError(
            "choose a deployment: give the name of a stack with --stack NAME (or LARDER_STACK), or"
            " the data folder of a running local cloud with --local DATA (or LARDER_LOCAL)."
            " `larder use` chooses one for all commands"
        )


def stack_output(name: str, output: str) -> str:
    """One of the outputs of the stack in use."""
    outputs = _describe_stack(name, settings.region()).get("Outputs", [])
    return str(next(one["OutputValue"] for one in outputs if one["OutputKey"] == output))


def _enter_local_cloud(data: Path) -> None:
    variables = _variables_of(data)
    # Remove the user's own AWS configuration: a profile, a session token or an option that makes botocore ignore
    # endpoints would send local credentials to the real AWS.
    _remove("AWS_", "LARDER_")
    os.environ.update(variables)
    _forget()
    _check(f"the local cloud on {data}", lambda: settings.check_resources(settings.settings()))


def _variables_of(data: Path) -> dict[str, str]:
    """The variables in cloud.json. Raises ClickException if the process that wrote it does not run or respond."""
    path = data / "cloud.json"
    absent = click.ClickException(
        f"no local cloud is running on {data}: start it with `make serve`"
        " (use DATA=... for a folder other than .larder)"
    )
    try:
        cloud = json.loads(path.read_text())
        pid, api_url = int(cloud["pid"]), str(cloud["api_url"])
        variables = {str(name): str(value) for name, value in cloud["environment"].items()}
        # Links in emails need a base URL. The functions take it from the request, which a command does not have.
        variables[_BASE_URL] = variables.get(_BASE_URL) or api_url
    except (FileNotFoundError, NotADirectoryError):
        raise absent from None
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(
            f"{path} is damaged: start the local cloud again with `make serve`"
        ) from error
    if not _lives(pid) or not _answers(api_url):
        raise absent
    return variables


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _answers(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), _ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _enter_stack(name: str, region: str | None, profile: str | None) -> None:
    from larder.aws import boto

    if profile is not None:
        # As in the AWS tools, --profile overrides keys in the environment.
        for variable in _KEYS_OF_THE_ENVIRONMENT:
            os.environ.pop(variable, None)
        os.environ["AWS_PROFILE"] = profile
    region = region or boto.profile_region()
    if region is None:
        raise click.UsageError(
            "the region of the stack is unknown: set it with --region NAME, AWS_REGION or the profile"
        )
    os.environ["AWS_REGION"] = region
    _forget()
    stack = _describe_stack(name, region)
    if not str(stack.get("Description", "")).startswith(DESCRIPTION):
        raise click.ClickException(
            f"the stack {name} is not a Larder deployment: its description does not begin with {DESCRIPTION!r}"
        )
    options = _stack_options(stack)
    _remove("LARDER_")
    os.environ.update(options)
    _forget()
    _check(f"the stack {name}", settings.settings)


def _describe_stack(name: str, region: str) -> Mapping[str, Any]:
    from larder import aws

    try:
        return aws.cloudformation().describe_stacks(StackName=name)["Stacks"][0]
    except aws.ClientError as error:
        if aws.error_code(error) != "ValidationError":
            raise
        raise click.ClickException(
            f"there is no stack {name} in {region}: check the name, --region and the account"
            " (--profile)"
        ) from error


def _stack_options(stack: Mapping[str, Any]) -> dict[str, str]:
    """A variable for each setting. Outputs and parameters carry the settings' names in CamelCase.

    A stack of an older version lacks newer options, which get their default, and newer resources, which get an empty
    name: only commands that need one of these refuse the stack.
    """
    values = {
        parameter["ParameterKey"]: parameter["ParameterValue"]
        for parameter in stack.get("Parameters", [])
    }
    values |= {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    values["BaseUrl"] = values.get("BaseUrl") or values.get("ApiUrl", "")
    return {
        settings.environment_name(option.name): values.get(_camel_case(option.name), "")
        for option in fields(settings.Settings)
    }


def _camel_case(option: str) -> str:
    return "".join(word.capitalize() for word in option.split("_"))


def _check(target: str, read: Callable[[], object]) -> None:
    try:
        read()
    except settings.SettingsError as error:
        raise click.ClickException(
            f"{target} is not a Larder deployment, or one of another version: {error}"
        ) from error


def _remove(*prefixes: str) -> None:
    for variable in [name for name in os.environ if name.startswith(prefixes)]:
        del os.environ[variable]


def _forget() -> None:
    """Drop settings and AWS clients made from the previous environment."""
    from larder import aws

    aws.reset()
    for cached in (
        settings.settings,
        settings.region,
        settings.s3_endpoint,
        settings.edge_key_file,
    ):
        cached.cache_clear()
