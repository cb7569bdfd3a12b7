"""A release: the folder that `make package` writes, and that the wheel `larder-cache` carries."""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from larder_cli.deploy.changes import CODE

PLAIN = "larder.template.json"
NO_BUDGETS = "larder-no-budgets.template.json"
GOVERNMENT = "larder-gov.template.json"
DEPLOYER = "deployer.template.json"
DESCRIPTION = "release.json"
CHANGES = "resources.txt"
SBOM = "sbom.cdx.json"
SUMS = "SHA256SUMS"

CARRIED = Path(__file__).resolve().parents[1] / "release"
"""Where the wheel has its release. A checkout has none."""

_COMMERCIAL = "aws"
_WITH_BUDGETS = {
    *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    *("ca-central-1", "eu-central-1", "eu-west-1", "eu-west-2", "eu-west-3", "me-south-1"),
    *("sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2"),
}
"""The regions where CloudFormation has budgets. It refuses a template with a type that it does not know, although the
condition of the resource is false. `make check` compares this with cfn-lint, in all regions."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the release, and its SHA-256 in hexadecimal digits."""

    path: Path
    sha256: str

    @property
    def is_whole(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size > 0 and self._sum() == self.sha256

    @property
    def base64_sha256(self) -> str:
        """As S3 and Lambda write it."""
        return base64.b64encode(bytes.fromhex(self.sha256)).decode()

    def _sum(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Release:
    """A release in a folder. `description` is its release.json."""

    folder: Path
    description: Mapping[str, Any]

    @property
    def version(self) -> str:
        return str(self.description["version"])

    @property
    def readable_since(self) -> str:
        """The oldest version that reads the data that this one writes."""
        return str(self.description["readable_since"])

    @property
    def archives(self) -> list[File]:
        """The code of functions and layers. The checksum is also Lambda's `CodeSha256`."""
        return [self.file(name) for name in self.description["contents"]]

    def file(self, name: str) -> File:
        return File(self.folder / name, str(self.description["files"][name]))

    def template_file(self, region: str, partition: str) -> File:
        """The plain template without the types that the region lacks."""
        return self.file(template_name(region, partition))

    @cached_property
    def template(self) -> dict[str, Any]:
        """The plain template with all options."""
        read: dict[str, Any] = json.loads((self.folder / PLAIN).read_text())
        return read

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """The parameters of the template that people set, with type, default and bounds."""
        declared: dict[str, dict[str, Any]] = self.template["Parameters"]
        return {
            name: one
            for name, one in declared.items()
            if name not in PLACE and name not in self.version_parameters
        }

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """What CloudFormation checks about several options together."""
        rules: dict[str, dict[str, Any]] = self.template.get("Rules", {})
        return rules

    @cached_property
    def version_parameters(self) -> dict[str, str]:
        """The archive whose version each of these parameters of the template names. None before 0.3."""
        places = (
            resource["Properties"].get("Code") or resource["Properties"].get("Content")
            for resource in self.template["Resources"].values()
            if resource["Type"] in CODE
        )
        return {
            place["S3ObjectVersion"]["Fn::If"][1]["Ref"]: archive_of(place)
            for place in places
            if "S3ObjectVersion" in place
        }

    def upgrade_steps(self, deployed: str | None) -> list[str]:
        """What the changelog asks of operators who come from the version `deployed`; None for a version before 0.2."""
        steps = self.description["upgrade"]
        known = version_key(deployed or "0.1.0")
        return [
            step
            for since, listed in steps.items()
            if known <= version_key(since)
            for step in listed
        ]

    def damaged(self) -> list[str]:
        """The files that are missing or have another checksum."""
        return [
            name
            for name, sha256 in self.description["files"].items()
            if not File(self.folder / name, sha256).is_whole
        ]

    def check(self) -> None:
        """Raise ClickException if a file is missing or damaged."""
        if damaged := self.damaged():
            raise click.ClickException(
                f"the release in {self.folder} is damaged: {', '.join(damaged)} does not have its checksum. Install "
                "larder-cache again, or copy the release again."
            )


PLACE = ("CodeBucket", "CodePrefix")
"""The parameters that say where the archives are."""


def has_budgets(region: str, partition: str) -> bool:
    """Whether `MonthlyBudgetDollars` has an effect there."""
    return template_name(region, partition) == PLAIN


def template_name(region: str, partition: str) -> str:
    """The file with the plain template for a region. Other partitions have no CloudFront, either."""
    if partition != _COMMERCIAL:
        return GOVERNMENT
    return PLAIN if region in _WITH_BUDGETS else NO_BUDGETS


def archive_of(place: Mapping[str, Any]) -> str:
    """The archive that a function or layer of the template runs. Its key is `${CodePrefix}<name>`."""
    return str(place["S3Key"]["Fn::Sub"].removeprefix("${CodePrefix}"))


def open_release(folder: Path | None) -> Release:
    """The release in this folder, or the one that the wheel carries. Raises ClickException."""
    place = folder or CARRIED
    try:
        description = json.loads((place / DESCRIPTION).read_text())
    except FileNotFoundError:
        hint = (
            "run `make package`, and name the folder with --release dist/larder-<version>"
            if folder is None
            else "name the folder that `make package` or `larder release extract` wrote"
        )
        raise click.ClickException(f"there is no release in {place}: {hint}") from None
    except ValueError:
        raise click.ClickException(f"{place / DESCRIPTION} is damaged") from None
    return Release(place, description)


def version_key(version: str) -> tuple[int, ...]:
    """Compares versions by number: 0.10.0 is newer than 0.9.0."""
    return tuple(int(number) for number in version.split("."))
