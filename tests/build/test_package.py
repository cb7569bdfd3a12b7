"""SAM accepts the output of `make package` and uploads it to S3, here of the local cloud."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import boto3
import pytest

from local.cloudformation import read_template
from tests.build.conftest import BUILT, ROOT
from tests.e2e.cloud import LocalCloud, running
from tools.package import FUNCTIONS, LAYER, TEMPLATE, package

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


def test_the_archives_contain_the_build(packed: Path) -> None:
    assert set(ZipFile(packed / FUNCTIONS).namelist()) == files(BUILT / "GetStatus")
    assert set(ZipFile(packed / LAYER).namelist()) == files(BUILT / "LarderLayer")


def test_sam_uploads_it(packed: Path, cloud: LocalCloud, tmp_path: Path) -> None:
    environment = json.loads((cloud.data / "cloud.json").read_text())["environment"]
    aws = {name: value for name, value in environment.items() if name.startswith("AWS_")}
    bucket = environment["LARDER_ARTIFACTS_BUCKET"]
    done = subprocess.run(
        [
            *(SAM, "package", "--template-file", TEMPLATE, "--s3-bucket", bucket),
            *("--output-template-file", tmp_path / TEMPLATE, "--no-progressbar", "--force-upload"),
        ],
        cwd=packed,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SAM_CLI_TELEMETRY": "0", **aws},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    resources = read_template(tmp_path / TEMPLATE)["Resources"]
    uris = {
        one["Properties"].get("CodeUri") or one["Properties"]["ContentUri"]
        for one in resources.values()
        if one["Type"].startswith("AWS::Serverless::")
        and one["Type"].endswith(("Function", "Version"))
    }
    s3 = boto3.client(
        "s3",
        endpoint_url=aws["AWS_ENDPOINT_URL_S3"],
        region_name=aws["AWS_REGION"],
        aws_access_key_id=aws["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=aws["AWS_SECRET_ACCESS_KEY"],
    )
    uploaded = {
        s3.get_object(Bucket=bucket, Key=uri.removeprefix(f"s3://{bucket}/"))["Body"].read()
        for uri in uris
    }
    assert uploaded == {(packed / name).read_bytes() for name in (FUNCTIONS, LAYER)}
