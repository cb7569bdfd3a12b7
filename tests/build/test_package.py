"""SAM accepts the output of `make package` and uploads it to S3, here of the local cloud."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import boto3
import pytest

from local.cloudformation import read_template
from tests.build.conftest import BUILT, ROOT
from tests.e2e.cloud import LocalCloud, running
from tools.release.package import TEMPLATE, package

pytestmark = pytest.mark.build

SAM = ROOT / ".tools" / "sam" / "bin" / "sam"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist") / "larder"
    package(BUILT, folder)
    return folder


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with running(ROOT, tmp_path_factory.mktemp("cloud") / "data") as server:
        yield server


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def archive(folder: Path, name: str) -> Path:
    (found,) = folder.glob(f"{name}-{'[0-9a-f]' * 16}.zip")
    return found


def test_the_archives_contain_the_build(packed: Path) -> None:
    for name, folder in (("functions", "GetStatus"), ("layer", "LarderLayer"), ("jwt-layer", "JwtLayer")):
        assert set(ZipFile(archive(packed, name)).namelist()) == files(BUILT / folder)


def test_the_sidecar_is_one_file_that_runs(packed: Path) -> None:
    command = [sys.executable, "-I", "-S", str(packed / "larder.pyz"), "--help"]
    assert "run a build" in subprocess.run(command, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Bucket:
    """The bucket to which SAM uploads."""

    name: str
    aws: dict[str, str]
    """The variables that lead SAM to it."""

    def content(self, key: str) -> bytes:
        s3 = boto3.client(
            "s3",
            endpoint_url=self.aws["AWS_ENDPOINT_URL_S3"],
            region_name=self.aws["AWS_REGION"],
            aws_access_key_id=self.aws["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.aws["AWS_SECRET_ACCESS_KEY"],
        )
        body: bytes = s3.get_object(Bucket=self.name, Key=key)["Body"].read()
        return body


@pytest.fixture(scope="module")
def bucket(cloud: LocalCloud) -> Bucket:
    environment = json.loads((cloud.data / "cloud.json").read_text())["environment"]
    aws = {name: value for name, value in environment.items() if name.startswith("AWS_")}
    return Bucket(environment["LARDER_ARTIFACTS_BUCKET"], aws)


def uploaded(folder: Path, bucket: Bucket, home: Path) -> tuple[set[str], set[str]]:
    """The keys under which SAM uploads the zips of the functions, and the layer."""
    done = subprocess.run(
        [
            *(SAM, "package", "--template-file", TEMPLATE, "--s3-bucket", bucket.name),
            *("--output-template-file", home / TEMPLATE, "--no-progressbar", "--force-upload"),
        ],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "SAM_CLI_TELEMETRY": "0", **bucket.aws},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    properties = [resource["Properties"] for resource in read_template(home / TEMPLATE)["Resources"].values()]
    functions, layers = (
        {one[name].removeprefix(f"s3://{bucket.name}/") for one in properties if name in one}
        for name in ("CodeUri", "ContentUri")
    )
    return functions, layers


def test_sam_uploads_it(packed: Path, bucket: Bucket, tmp_path: Path) -> None:
    ((functions,), layers) = uploaded(packed, bucket, tmp_path)
    assert bucket.content(functions) == archive(packed, "functions").read_bytes()
    assert {bucket.content(layer) for layer in layers} == {
        archive(packed, name).read_bytes() for name in ("layer", "jwt-layer")
    }
    assert functions == "3634956a44494ef150c09f87ad80a693", "must be the same in every release"


@pytest.mark.thorough
def test_a_release_changes_only_the_upload_of_the_layer(bucket: Bucket, tmp_path: Path) -> None:
    """SAM names an upload by its content, and CloudFormation replaces a function's zip only under another name.

    tests/test_template.py says why the zip must not change.
    """
    next_release = tmp_path / "next"
    shutil.copytree(BUILT, next_release)
    with (next_release / "LarderLayer/python/artifacts/get_status.py").open("a") as handler:
        handler.write("# Of the next release.\n")
    (functions, layer), (functions_then, layer_then) = (
        uploaded(folder, bucket, tmp_path) for folder in (BUILT, next_release)
    )
    assert functions == functions_then == {"9f025f2c6432c189108c30331dc14da6"}
    assert layer != layer_then
