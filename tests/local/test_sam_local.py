"""`make sam-local`, as far as it can run without a Docker engine: its template, and its variables."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.template import Template, load_template
from local.turbo_env import read_turbo_env
from tests.e2e.cloud import running
from tools.sam_local import ENDPOINTS, EVENTS, HOST, ROOT, main, sam_template, write_files

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow

INVOKE = """
import importlib, json, sys, time
from local.workers.context import Context
context = Context("larder", "b2f7a9a0-0000-4000-8000-000000000000", "512", time.monotonic() + 30)
print(json.dumps(importlib.import_module(sys.argv[1]).handler(json.load(sys.stdin), context)))
"""


@pytest.fixture(scope="module")
def template() -> Template:
    return load_template(environ={})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, template: Template) -> Iterator[Path]:
    """The data folder of a local cloud that runs."""
    with running(ROOT, tmp_path_factory.mktemp("sam-local") / "data") as server:
        write_files(server.data / "sam-local", template, cloud_of(server.data))
        yield server.data


def cloud_of(data: Path) -> dict[str, str]:
    cloud: dict[str, str] = json.loads((data / "cloud.json").read_text())["environment"]
    return cloud


def test_every_function_gets_its_own_variables_and_the_addresses_for_containers(data: Path, template: Template) -> None:
    cloud = cloud_of(data)
    environments = json.loads((data / "sam-local" / "env.json").read_text())
    resources = sam_template(template)["Resources"]
    assert len(template.functions) > 60
    for function in template.functions:
        given = environments[function.logical_id]
        assert {name: given[name] for name in function.variables} == {name: cloud[name] for name in function.variables}
        assert given.keys() == {*function.variables, *ENDPOINTS}
        assert all(given[name].startswith(f"http://{HOST}:") for name in ENDPOINTS)
        properties = resources[function.logical_id]["Properties"]
        assert properties["Environment"]["Variables"].keys() == given.keys()
        assert properties["Layers"][0] == {"Ref": "LarderLayer"}
    assert Path(resources["LarderLayer"]["Properties"]["ContentUri"]) == ROOT / "layers" / "larder"
    for file in (data / "sam-local").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_functions_reach_tables_and_bucket_with_these_variables(data: Path, template: Template) -> None:
    status = invoke(data, template, "get_status")
    assert (status["statusCode"], json.loads(status["body"])) == (200, {"status": "enabled"})
    # Too large for the index, so it is stored in the bucket.
    assert invoke(data, template, "put_artifact", "x" * 5_000)["statusCode"] == 202
    assert invoke(data, template, "fetch_artifact")["statusCode"] == 200


def invoke(data: Path, template: Template, name: str, body: str = "") -> Any:
    """Run the event with the first key, in a process with only these variables, as a container would have."""
    turbo, cloud = read_turbo_env(data / "turbo.env"), cloud_of(data)
    assert turbo
    (function,) = [one for one in template.functions if one.handler.split(".")[1] == name]
    event = json.loads((EVENTS / f"{name}.json").read_text())
    event["headers"]["authorization"] = f"Bearer {turbo.token}"
    event["queryStringParameters"] = {"slug": turbo.team}
    if body:
        event |= {"body": body, "isBase64Encoded": False}
        event["headers"]["content-length"] = str(len(body))
    given = json.loads((data / "sam-local" / "env.json").read_text())[function.logical_id]
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}",
        "NO_PROXY": "*",
        **{key: cloud[key] for key in cloud if key.startswith("AWS_")},
        **{key: value.replace(HOST, "127.0.0.1") for key, value in given.items()},
    }
    done = subprocess.run(
        [sys.executable, "-c", INVOKE, function.handler.rpartition(".")[0]],
        input=json.dumps(event),
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_without_a_running_local_cloud_it_says_what_to_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tmp_path, []) == 2
    assert "`make serve HOST=0.0.0.0`" in capsys.readouterr().err
