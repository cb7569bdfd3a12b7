"""`make sam-local`, as far as it can run without a Docker engine: template, env.json, the relay and messages."""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from local.template import Template, load_template
from local.turbo_env import read_turbo_env
from tests.e2e.cloud import free_port, running
from tools.sam_local import (
    ENDPOINTS,
    EVENTS,
    HOST,
    ROOT,
    CannotRun,
    chosen,
    function_variables,
    main,
    ports,
    problem_of,
    relay,
    running_cloud,
    write_files,
)

ANOTHER_ADDRESS = "127.0.0.2"
"""Reaches this machine, but not what listens on 127.0.0.1: like the address of Docker's network."""
needs_another_address = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has 127.0.0.2, and only Linux needs the relay"
)
INVOKE = """
import importlib, json, sys, time
from local.workers.context import Context
context = Context("larder", "b2f7a9a0-0000-4000-8000-000000000000", "512", time.monotonic() + 30)
print(json.dumps(importlib.import_module(sys.argv[1]).handler(json.load(sys.stdin), context)))
"""


@dataclass(frozen=True)
class Written:
    """What the command wrote for a local cloud that runs."""

    data: Path
    cloud: dict[str, str]
    environments: dict[str, dict[str, str]]
    document: dict[str, Any]


@pytest.fixture(scope="module")
def template() -> Template:
    return load_template(environ={})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, template: Template) -> Iterator[Written]:
    with running(ROOT, tmp_path_factory.mktemp("sam-local") / "data") as server:
        cloud = running_cloud(server.data)
        folder = write_files(server.data / "sam-local", template, cloud)
        yield Written(
            server.data,
            cloud,
            json.loads((folder / "env.json").read_text()),
            json.loads((folder / "template.json").read_text()),
        )


def test_env_json_has_each_functions_own_variables_and_no_others(
    written: Written, template: Template
) -> None:
    assert len(template.functions) > 60
    assert written.environments.keys() == {one.logical_id for one in template.functions}
    for function in template.functions:
        given = written.environments[function.logical_id]
        assert given.keys() == {*function.variables, *ENDPOINTS}
        for name in function.variables:
            assert given[name] == written.cloud[name]


def test_env_json_leads_to_the_local_clouds_services(written: Written) -> None:
    given = written.environments["GetStatus"]
    for name in ENDPOINTS:
        port = urlsplit(written.cloud[name]).port
        assert port
        assert given[name] == f"http://{HOST}:{port}"


def test_the_template_declares_every_variable_because_sam_drops_others(written: Written) -> None:
    resources = written.document["Resources"]
    for logical_id, given in written.environments.items():
        assert (
            resources[logical_id]["Properties"]["Environment"]["Variables"].keys() == given.keys()
        )


def test_the_template_has_the_functions_with_their_handler_and_layer(
    written: Written, template: Template
) -> None:
    layer = Path(written.document["Resources"]["LarderLayer"]["Properties"]["ContentUri"])
    assert layer == ROOT / "layers" / "larder"
    for one in template.functions:
        properties = written.document["Resources"][one.logical_id]["Properties"]
        assert properties["Handler"] == one.handler
        assert properties["Layers"][0] == {"Ref": "LarderLayer"}
    exchange = written.document["Resources"]["ExchangeIdToken"]["Properties"]
    assert exchange["Layers"] == [{"Ref": "LarderLayer"}, {"Ref": "JwtLayer"}]


def test_the_files_are_private(written: Written) -> None:
    for file in (written.data / "sam-local").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_every_event_is_run(template: Template) -> None:
    assert chosen(template, []).keys() == {event.stem for event in EVENTS.iterdir()}


def test_an_unknown_event_is_an_error(template: Template) -> None:
    with pytest.raises(CannotRun, match="events/ has no get_statsu"):
        chosen(template, ["get_status", "get_statsu"])


@needs_another_address
def test_functions_reach_tables_and_bucket_through_the_relay_with_these_variables(
    written: Written, template: Template
) -> None:
    async def run(name: str, body: str = "") -> Any:
        async with contextlib.AsyncExitStack() as relays:
            for port in ports(written.cloud):
                await relays.enter_async_context(relay(ANOTHER_ADDRESS, port))
            return await asyncio.to_thread(invoke, written, template, name, body)

    status = asyncio.run(run("get_status"))
    assert (status["statusCode"], json.loads(status["body"])) == (200, {"status": "enabled"})
    # Too large for the index, so it is stored in the bucket.
    put = asyncio.run(run("put_artifact", "x" * 5_000))
    assert put["statusCode"] == 202, put
    fetched = asyncio.run(run("fetch_artifact"))
    assert base64.b64decode(fetched["body"]) == b"x" * 5_000


def invoke(written: Written, template: Template, name: str, body: str) -> Any:
    """Run the event with the first key, as a process with only these variables, as a container would have."""
    turbo = read_turbo_env(written.data / "turbo.env")
    assert turbo
    function = chosen(template, [name])[name]
    variables = {
        variable: value.replace(HOST, ANOTHER_ADDRESS)
        for variable, value in written.environments[function.logical_id].items()
    }
    event = json.loads((EVENTS / f"{name}.json").read_text())
    event["headers"]["authorization"] = f"Bearer {turbo.token}"
    event["queryStringParameters"] = {"slug": turbo.team}
    if body:
        event |= {"body": body, "isBase64Encoded": False}
        event["headers"]["content-length"] = str(len(body))
    done = subprocess.run(
        [sys.executable, "-c", INVOKE, function.handler.rpartition(".")[0]],
        input=json.dumps(event),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}",
            "NO_PROXY": "*",
            **{one: value for one, value in written.cloud.items() if one.startswith("AWS_ACCESS")},
            "AWS_SECRET_ACCESS_KEY": written.cloud["AWS_SECRET_ACCESS_KEY"],
            "AWS_REGION": written.cloud["AWS_REGION"],
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_another_address
def test_the_relay_ends_with_its_context() -> None:
    port = free_port()

    async def connect() -> None:
        _, writer = await asyncio.open_connection(ANOTHER_ADDRESS, port)
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port):
            async with relay(ANOTHER_ADDRESS, port):
                await connect()
            with pytest.raises(ConnectionRefusedError):
                await connect()

    asyncio.run(run())


@needs_another_address
def test_no_relay_is_needed_where_the_local_cloud_listens_itself() -> None:
    async def run() -> None:
        async with await asyncio.start_server(
            lambda _, writer: writer.close(), ANOTHER_ADDRESS, 0
        ) as own:
            port = own.sockets[0].getsockname()[1]
            async with relay(ANOTHER_ADDRESS, port):
                pass
            assert own.is_serving()

    asyncio.run(run())


def test_a_build_with_a_variable_that_the_running_cloud_lacks_is_an_error(
    template: Template,
) -> None:
    (function, *_) = template.functions
    with pytest.raises(CannotRun, match="restart it"):
        function_variables(function, {})


def test_without_a_running_local_cloud_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--env-only", "--data", str(tmp_path)]) == 2
    assert "start `make serve` in another terminal first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "output", "problem"),
    [
        (0, '{"statusCode": 200, "body": ""}', ""),
        (0, '{"statusCode": 401}', ""),
        (0, "START\n{}", ""),
        (0, "null", ""),
        (0, "", ""),
        (0, '{"statusCode": 500}', "status 500"),
        (0, '{"errorType": "KeyError", "errorMessage": "x"}', "KeyError: x"),
        (1, "", "sam ended with 1"),
        (0, "no json", "the reply is not JSON"),
    ],
)
def test_a_function_that_fails_is_reported(status: int, output: str, problem: str) -> None:
    assert problem_of(status, output) == problem


@pytest.mark.build
def test_without_a_docker_engine_it_runs_nothing_and_says_so(tmp_path: Path) -> None:
    make = shutil.which("make")
    assert make
    done = subprocess.run(
        [make, "sam-local"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DOCKER_HOST": "tcp://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no Docker engine answers, so no event ran" in done.stderr
    assert "install and start Docker" in done.stderr
