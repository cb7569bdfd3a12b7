"""The release of `make package` and the wheel of `make wheel`: complete, reproducible, installed without a checkout."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from larder_cli.deploy.release import DESCRIPTION, GOVERNMENT, NO_BUDGETS, PLAIN, SBOM, SUMS, open_release
from local.cloudformation import read_template
from tests.build.conftest import BUILT, ROOT
from tests.sam import transformed_resources
from tools.release.package import complete, package, version
from tools.release.wheel import build_wheel

pytestmark = pytest.mark.build

MOST_RESOURCES = 440
MOST_BYTES = 1_000_000
"""Of a template that CloudFormation reads from S3.
Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist") / "larder"
    package(BUILT, folder)
    complete(folder)
    return folder


def plain(release: Path, name: str = PLAIN) -> dict[str, Any]:
    template: dict[str, Any] = json.loads((release / name).read_text())
    return template


def test_the_plain_template_is_what_sam_makes_of_the_template(release: Path) -> None:
    template = plain(release)
    assert "Transform" not in template
    assert len(template["Resources"]) < MOST_RESOURCES
    assert (release / PLAIN).stat().st_size < MOST_BYTES

    def without_code(resources: dict[str, Any]) -> dict[str, Any]:
        """Layers are named by their content, and SAM notes the names of functions."""
        kept = json.loads(json.dumps(resources))
        for name, one in list(kept.items()):
            one.pop("Metadata", None)
            if one["Type"] == "AWS::Lambda::LayerVersion":
                del kept[name]
            if one["Type"] == "AWS::Lambda::Function":
                del one["Properties"]["Code"], one["Properties"]["Layers"]
        return dict(kept)

    assert without_code(template["Resources"]) == without_code(transformed_resources())


def test_every_file_has_its_checksum(release: Path) -> None:
    lines = [line.split("  ") for line in (release / SUMS).read_text().splitlines()]
    listed = {name: digest for digest, name in lines}
    files = {path.name for path in release.iterdir()} - {SUMS}
    assert listed.keys() == files
    for name, digest in listed.items():
        assert hashlib.sha256((release / name).read_bytes()).hexdigest() == digest
    opened = open_release(release)
    opened.check()
    assert opened.version == version()
    assert len(opened.archives) == 3
    for archive in opened.archives:
        assert archive.sha256.startswith(archive.path.stem.rpartition("-")[2])


def test_the_template_names_the_archives_in_the_bucket_of_the_parameters(release: Path) -> None:
    keys = {
        resource["Properties"][name]["S3Key"]["Fn::Sub"]
        for resource in plain(release)["Resources"].values()
        for name in ("Code", "Content")
        if name in resource.get("Properties", {}) and resource["Type"].startswith("AWS::Lambda::")
    }
    archives = {path.name for path in release.glob("*.zip")}
    assert keys == {"${CodePrefix}" + name for name in archives}
    versions = open_release(release).version_parameters
    assert set(versions.values()) == archives
    assert versions.keys() == {"FunctionsVersion", "JwtLayerVersion", "LayerVersion"}
    for name in versions:
        assert plain(release)["Parameters"][name]["Default"] == ""


def test_the_bill_of_materials_lists_the_packages_of_the_layers(release: Path) -> None:
    listed = {component["name"] for component in json.loads((release / SBOM).read_text())["components"]}
    packed = {
        path.name.partition("-")[0].replace("_", "-")
        for layer in ("LarderLayer", "JwtLayer")
        for path in (BUILT / layer / "python").glob("*.dist-info")
    }
    assert listed == {*packed, "preact", "htm"}


REGIONAL = {
    NO_BUDGETS: (("AWS::Budgets::",), ("eu-north-1", "af-south-1")),
    GOVERNMENT: (("AWS::CloudFront::", "AWS::Budgets::"), ("us-gov-west-1", "us-gov-east-1")),
}
"""For each template, the types that it lacks, and regions that do."""


@pytest.mark.parametrize("name", REGIONAL)
def test_some_regions_get_a_template_without_the_types_that_they_lack(release: Path, name: str) -> None:
    template, regional = plain(release), plain(release, name)
    types, _ = REGIONAL[name]
    absent = {logical_id for logical_id, one in template["Resources"].items() if one["Type"].startswith(types)}
    assert absent
    text = json.dumps(regional)
    assert [logical_id for logical_id in sorted(absent) if f'"{logical_id}"' in text] == []
    assert regional["Parameters"] == template["Parameters"]
    assert template["Resources"].keys() - regional["Resources"].keys() >= absent


@pytest.mark.thorough
@pytest.mark.parametrize("name", REGIONAL)
def test_cfn_lint_accepts_it_for_these_regions(release: Path, name: str) -> None:
    cfn_lint = str(ROOT / ".tools" / "sam" / "bin" / "cfn-lint")
    _, regions = REGIONAL[name]
    done = subprocess.run(
        [cfn_lint, "--regions", *regions, "--ignore-checks", "W", "--", str(release / name)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2_000:]


def clone(folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    return folder


def sums(folder: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}
    for target in ("build", ".venv/.ready"):
        subprocess.run(["make", "--no-print-directory", target], cwd=folder, env=environment, check=True, timeout=600)
    subprocess.run([".venv/bin/python", "-m", "tools.release.package"], cwd=folder, env=environment, check=True)
    return (folder / "dist" / f"larder-{version()}" / SUMS).read_text()


@pytest.mark.skipif("CLONES" not in os.environ, reason="builds two clones: make reproducible")
def test_two_clones_of_a_commit_give_the_same_release(tmp_path: Path) -> None:
    """Also in folders of other names, and if one was set up before."""
    first, second = clone(tmp_path / "one"), clone(tmp_path / "the other")
    subprocess.run(["make", "setup"], cwd=second, check=True, timeout=600)
    assert sums(first) == sums(second)


# The wheel --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(release, tmp_path_factory.mktemp("wheel"))


def test_two_wheels_of_a_release_are_equal(release: Path, wheel: Path, tmp_path: Path) -> None:
    assert build_wheel(release, tmp_path).read_bytes() == wheel.read_bytes()


def test_the_wheel_has_the_release_and_needs_no_distribution_called_larder(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = [one for one in opened.namelist() if one.endswith(".dist-info/METADATA")]
        metadata = opened.read(name).decode()
        description = json.loads(opened.read(f"larder_cli/release/{DESCRIPTION}"))
    needed = [line.split(": ")[1] for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert [one for one in needed if one.startswith("larder")] == []
    assert f"Version: {description['version']}\n" in metadata


def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """Without git, make, SAM or a checkout."""
    uv = ROOT / ".tools" / "uv" / "bin" / "uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, wheel], check=True)
    for arguments, words in (
        (("--version",), f"larder, version {version()}"),
        (("release", "verify"), f"Larder {version()}: "),
        (("install", "--set", "Wrods=x"), "Larder has no option Wrods"),
    ):
        done = subprocess.run(
            [tmp_path / "venv" / "bin" / "larder-cache", *arguments],
            cwd=tmp_path,
            env={"PATH": "/nowhere", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert words in done.stdout + done.stderr
    extracted = tmp_path / "extracted"
    larder = tmp_path / "venv" / "bin" / "larder"
    subprocess.run([larder, "release", "extract", extracted], check=True, capture_output=True)
    assert (extracted / "template.yaml").is_file()
    assert read_template(extracted / "template.yaml")["Transform"] == "AWS::Serverless-2016-10-31"
