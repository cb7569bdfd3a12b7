"""`make sam-local`: run the events of events/ with `sam local invoke`, on the data of a running `make serve`.

SAM passes on only the variables that a template declares, and leaves those with intrinsic functions empty. So this
writes a template that has just the functions and the layer of the build, and env.json with the values. Both are in the
data folder, because the values are secrets of the local cloud.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from larder_cli.files import write_private
from local.environment import RUNTIME
from local.template import Function, Template, load_template

ROOT = Path(__file__).resolve().parent.parent
SAM = ROOT / ".tools" / "sam" / "bin"
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
EVENTS = ROOT / "events"
HOST = "host.docker.internal"
"""This machine, for a container. Docker Desktop defines it; on Linux, SAM adds it."""
ENDPOINTS = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL_S3")

_OF_SAM = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION")
"""Variables that SAM passes on from its own environment."""
# Prints the address of this machine in Docker's network; nothing where Docker Desktop forwards to it.
_FIND_ENGINE = """
import docker, platform
client = docker.from_env(timeout=10)
client.ping()
if platform.system() == "Linux" and "Docker Desktop" not in client.info().get("OperatingSystem", ""):
    print(client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"])
"""
_SERVER_ERROR = 500
_CHUNK_BYTES = 65_536


class CannotRun(Exception):
    """The message says what is missing, and what to do."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make sam-local", description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT / ".larder", help="the data folder")
    parser.add_argument("--env-only", action="store_true", help="only write template and env.json")
    parser.add_argument("names", nargs="*", help="the events to run; by default all")
    options = parser.parse_args(arguments)
    try:
        address = "" if options.env_only else engine_address()
        cloud = running_cloud(options.data)
        if not BUILT.is_file():
            raise CannotRun("nothing is built: run `make build` first")
        template = load_template(BUILT)
        folder = write_files(options.data / "sam-local", template, cloud)
        print(f"Wrote {folder / 'template.json'} and {folder / 'env.json'}")
        if options.env_only:
            return 0
        functions = chosen(template, options.names)
        return asyncio.run(_run_behind_relays(functions, folder, cloud, address))
    except CannotRun as error:
        print(f"larder: {error}", file=sys.stderr)
        return 2


async def _run_behind_relays(
    functions: Mapping[str, Function], folder: Path, cloud: Mapping[str, str], address: str
) -> int:
    async with contextlib.AsyncExitStack() as relays:
        if address:
            for port in ports(cloud):
                await relays.enter_async_context(relay(address, port))
        return await asyncio.to_thread(run_events, functions, folder, cloud, address)


def ports(cloud: Mapping[str, str]) -> set[int]:
    """The ports of the local cloud's services."""
    return {port for name in ENDPOINTS if (port := urlsplit(cloud[name]).port)}


def running_cloud(data: Path) -> dict[str, str]:
    """The variables with which functions reach the local cloud that runs on this folder. Raises CannotRun."""
    try:
        described = json.loads((data / "cloud.json").read_text())
        os.kill(described["pid"], 0)
    except (FileNotFoundError, ProcessLookupError):
        raise CannotRun(
            f"no local cloud runs on {data}: start `make serve` in another terminal first"
        ) from None
    environment: dict[str, str] = described["environment"]
    return environment


def function_variables(function: Function, cloud: Mapping[str, str]) -> dict[str, str]:
    """The variables of one function, with this machine's address as a container sees it. Raises CannotRun."""
    if unknown := sorted(function.variables - cloud.keys()):
        raise CannotRun(
            f"the build has {', '.join(unknown)}, and the running local cloud does not: run `make build` and restart it"
        )
    own = {name: cloud[name] for name in sorted(function.variables)}
    return {**own, **{name: seen_from_a_container(cloud[name]) for name in ENDPOINTS}}


def seen_from_a_container(url: str) -> str:
    return f"http://{HOST}:{urlsplit(url).port}"


def write_files(folder: Path, template: Template, cloud: Mapping[str, str]) -> Path:
    """Write template.json and env.json, which only the owner can read. Returns the folder."""
    folder.mkdir(mode=0o700, exist_ok=True)
    variables = {one.logical_id: function_variables(one, cloud) for one in template.functions}
    write_private(folder / "env.json", json.dumps(variables, indent=2) + "\n")
    write_private(folder / "template.json", json.dumps(_document(template), indent=2) + "\n")
    return folder


def _layer_name(place: Path) -> str:
    """The logical id of a layer. A build names the folder like it, and the source tree with its first word."""
    return f"{place.name.removesuffix('Layer').capitalize()}Layer"


def _document(template: Template) -> dict[str, Any]:
    layers = {_layer_name(place): place for one in template.functions for place in one.layers}
    resources: dict[str, Any] = {
        name: {"Type": "AWS::Serverless::LayerVersion", "Properties": {"ContentUri": str(place)}}
        for name, place in sorted(layers.items())
    }
    for one in template.functions:
        names = [*sorted(one.variables), *ENDPOINTS]
        resources[one.logical_id] = {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "FunctionName": one.name,
                "Handler": one.handler,
                "Runtime": RUNTIME,
                "Architectures": ["arm64"],
                "CodeUri": str(one.code_folder),
                "Layers": [{"Ref": _layer_name(place)} for place in one.layers],
                "MemorySize": one.memory_mb,
                "Timeout": one.timeout_s,
                "Environment": {"Variables": dict.fromkeys(names, "")},
            },
        }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Transform": "AWS::Serverless-2016-10-31",
        "Resources": resources,
    }


def engine_address() -> str:
    """The address under which containers reach this machine. Empty if the engine forwards to it by itself.

    Raises CannotRun if no Docker engine answers.
    """
    done = subprocess.run(
        [SAM / "python", "-c", _FIND_ENGINE], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["unknown"])[-1]
        raise CannotRun(
            "no Docker engine answers, so no event ran. `sam local invoke` runs functions in containers: install and "
            "start Docker. `make test` runs every event without it, and `make serve RUNTIME=1` runs the build under "
            f"AWS's runtime client.\n({reason})"
        )
    return done.stdout.strip()


@contextlib.asynccontextmanager
async def relay(address: str, port: int) -> AsyncIterator[None]:
    """Accept connections at an address of this machine, and pass them on to the same port of 127.0.0.1.

    The local cloud listens only on 127.0.0.1, which containers on Linux cannot reach.
    """

    connections: set[asyncio.Task[None]] = set()

    def accept(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(pass_on(client, to_client)))

    async def pass_on(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        async with _closed_at_the_end(to_client):
            server, to_server = await asyncio.open_connection("127.0.0.1", port)
            async with _closed_at_the_end(to_server):
                await asyncio.gather(_copy(client, to_server), _copy(server, to_client))

    try:
        listener = await asyncio.start_server(accept, address, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        # The local cloud listens there as well: HOST=0.0.0.0.
        yield
        return
    async with listener:
        try:
            yield
        finally:
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)


@contextlib.asynccontextmanager
async def _closed_at_the_end(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK_BYTES):
            target.write(data)
            await target.drain()
        target.write_eof()


def chosen(template: Template, names: Sequence[str]) -> dict[str, Function]:
    """The functions by the name of their event. Raises CannotRun for a name without an event."""
    functions = {one.handler.split(".")[1]: one for one in template.functions}
    if unknown := sorted(set(names) - functions.keys()):
        raise CannotRun(f"events/ has no {', '.join(unknown)}")
    return {name: functions[name] for name in names or sorted(functions)}


def run_events(
    functions: Mapping[str, Function], folder: Path, cloud: Mapping[str, str], address: str
) -> int:
    """Run one event after the other. Returns 1 if a function failed."""
    failed = 0
    for name, function in functions.items():
        command: list[str | Path] = [SAM / "sam", "local", "invoke", function.logical_id]
        command += ["--template", folder / "template.json", "--env-vars", folder / "env.json"]
        command += ["--event", EVENTS / f"{name}.json"]
        if address:
            command += ["--add-host", f"{HOST}:{address}"]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "SAM_CLI_TELEMETRY": "0", **{one: cloud[one] for one in _OF_SAM}},
            capture_output=True,
            text=True,
            check=False,
        )
        problem = problem_of(done.returncode, done.stdout)
        failed += bool(problem)
        print(f"{name:28} {problem or 'ok'}", flush=True)
        if problem:
            print(done.stderr[-2_000:], file=sys.stderr)
    print(f"\n{len(functions) - failed} of {len(functions)} events ran")
    return int(failed > 0)


def problem_of(status: int, output: str) -> str:
    """What went wrong with a run, or nothing. SAM ends with 0 even if the function raised an error."""
    if status:
        return f"sam ended with {status}"
    try:
        reply = json.loads(output.strip().splitlines()[-1]) if output.strip() else None
    except ValueError:
        return "the reply is not JSON"
    if not isinstance(reply, dict):
        return ""
    if "errorType" in reply or "errorMessage" in reply:
        return f"{reply.get('errorType')}: {reply.get('errorMessage')}"
    given = reply.get("statusCode", 0)
    return f"status {given}" if given >= _SERVER_ERROR else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
