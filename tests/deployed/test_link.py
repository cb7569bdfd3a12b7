"""From `larder release publish` to the first hit of turbo: the operator has a link, a browser and no terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.deployed.first_hit import check_first_hit
from tests.deployed.front import serving
from tests.deployed.stack import WITHOUT_ALARMS, Stack, packed
from tests.e2e import browser
from tests.e2e.cloud import free_port
from tests.e2e.console import Person
from tests.e2e.test_console_journeys import made_key
from tests.emulator.process import Emulator, emulator

pytestmark = pytest.mark.e2e

BUCKET = "acme-releases"


def publish(running: Emulator, release: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(str(Path(sys.executable).with_name("larder")), "release", "publish", "--json"),
            *("--bucket", BUCKET, "--release", str(release), *options),
        ],
        env={**running.variables, "PATH": "", "HOME": str(release)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def create_stack(running: Emulator, link: str, **options: str) -> str:
    """What CloudFormation's form does. Returns the name of the stack."""
    form = dict(parse_qsl(urlsplit(link).fragment.partition("?")[2], strict_parsing=True))
    given = {name.removeprefix("param_"): value for name, value in form.items() if name.startswith("param_")}
    cloudformation = running.client("cloudformation")
    cloudformation.create_stack(
        StackName=form["stackName"],
        TemplateURL=form["templateURL"],
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in {**given, **options}.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName=form["stackName"], WaiterConfig={"Delay": 1, "MaxAttempts": 300}
    )
    return form["stackName"]


def test_from_the_link_to_the_first_hit_without_a_terminal(tmp_path: Path) -> None:
    release = packed(tmp_path / "release")
    ada = Person()
    with emulator(tmp_path / "emulator") as running:
        s3 = running.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        refused = publish(running, release)
        assert refused.returncode == 1
        assert "keeps no versions" in refused.stderr
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        done = publish(running, release)
        assert done.returncode == 0, done.stderr
        (record,) = json.loads(done.stdout)
        name = create_stack(running, record["link"], **WITHOUT_ALARMS)

        stack, port = Stack(running, release, name=name), free_port()
        outputs, url = stack.outputs(), f"http://127.0.0.1:{port}"
        setup = outputs["SetupUrl"].replace(outputs["ApiUrl"], url)
        assert setup.startswith(f"{url}/sign-in#setup={name}-SignUp-")
        # The bucket refuses requests without TLS, which the emulator does not have.
        s3.delete_bucket_policy(Bucket=outputs["ArtifactsBucket"])
        with serving(stack, port, tmp_path / "log"), browser.opened(tmp_path / "profile") as page:
            page.open(setup)
            page.wait_for_heading("Create an account")
            page.type("Your name", ada.name)
            page.type("Email address", ada.email)
            page.type("Password", ada.password)
            page.press("Create account")
            page.wait_for_heading("Create a team")
            page.type("Name", "Acme")
            page.press("Create the team")
            page.wait_for_heading("Get started")
            page.press("Create a key")
            page.type("Name", "ci")
            page.press("Create the key")
            key = made_key(page)
            check_first_hit(url, key, tmp_path)

        with browser.opened(tmp_path / "other") as page, serving(stack, port, tmp_path / "log"):
            page.open(setup)
            page.wait_for_heading("Create an account")
            page.type("Your name", "Mallory")
            page.type("Email address", "mallory@acme.example")
            page.type("Password", ada.password)
            page.press("Create account")
            page.wait_for_text("The link works once")
        template = f"larder/{json.loads((release / 'release.json').read_text())['version']}/larder.template.json"
        assert publish(running, release, "--check").returncode == 0
        s3.put_object(Bucket=BUCKET, Key=template, Body=b"{}", ChecksumAlgorithm="SHA256")
        refused = publish(running, release, "--check")
        assert refused.returncode == 1
        assert f"{template} is not the file of this release" in refused.stderr
