"""Publish a release in buckets, with a link for each that deploys it in CloudFormation's console.

The template of a published release names the bucket and the version of each archive, so that people choose only
options, also in a later update.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import click

from larder_cli.deploy import code_bucket, uploads
from larder_cli.deploy.account import Account
from larder_cli.deploy.changes import CODE
from larder_cli.deploy.code_bucket import PREFIX
from larder_cli.deploy.release import PLACE, Release, archive_of
from larder_cli.output import Record, echo, print_json

_CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-us-gov": "console.amazonaws-us-gov.com",
    "aws-cn": "console.amazonaws.cn",
}
_ORGANIZATION = re.compile(r"o-[a-z0-9]{10,32}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a release is published: a bucket in the account's region."""

    account: Account
    bucket: str
    prefix: str

    def at(self, name: str) -> dict[str, str]:
        return {
            "Bucket": self.bucket,
            "Key": self.prefix + name,
            "ExpectedBucketOwner": self.account.id,
        }


def publish(release: Release, place: Place, *, may_write: bool) -> tuple[str, int]:
    """Upload what the bucket does not have yet. Returns the address of the template, and the bytes sent.

    The template comes last, so that it never names what is not there. Raises ClickException if the bucket has another
    file under a key of the release, and, unless `may_write`, if one is missing.
    """
    s3, sent = place.account.client("s3"), 0

    def stored(name: str, body: bytes) -> str:
        nonlocal sent
        version, size = uploads.ensure(s3, place.at(name), body, may_write=may_write)
        sent += size
        return version

    versions = {
        file.path.name: stored(file.path.name, file.path.read_bytes()) for file in release.archives
    }
    template = release.template_file(place.account.region, place.account.partition).path
    made = located(json.loads(template.read_text()), place, versions, release.version_parameters)
    stored(template.name, json.dumps(made, separators=(",", ":")).encode())
    return uploads.url(s3, place.at(template.name)), sent


def located(
    template: Mapping[str, Any],
    place: Place,
    versions: Mapping[str, str],
    version_parameters: Mapping[str, str],
) -> dict[str, Any]:
    """The template with the place and version of each archive in place of the parameters for them."""
    dropped = {*PLACE, *version_parameters}
    made = {
        **template,
        "Parameters": {
            name: one for name, one in template["Parameters"].items() if name not in dropped
        },
        "Conditions": {
            name: one
            for name, one in template["Conditions"].items()
            if name.removeprefix("Has") not in version_parameters
        },
        "Resources": dict(template["Resources"]),
    }
    for name, resource in made["Resources"].items():
        if resource["Type"] in CODE:
            properties = resource["Properties"]
            code = "Code" if "Code" in properties else "Content"
            archive = archive_of(properties[code])
            at = {
                "S3Bucket": place.bucket,
                "S3Key": place.prefix + archive,
                "S3ObjectVersion": versions[archive],
            }
            made["Resources"][name] = {**resource, "Properties": {**properties, code: at}}
    return made


def link(place: Place, template: str, stack: str, options: Mapping[str, str]) -> str:
    """The address of CloudFormation's form for a new stack with these options."""
    region = place.account.region
    given = {"templateURL": template, "stackName": stack} | {
        f"param_{name}": value for name, value in options.items()
    }
    console = _CONSOLES.get(place.account.partition, _CONSOLES["aws"])
    query = urlencode(given, quote_via=quote, safe="")
    return f"https://{region}.{console}/cloudformation/home?region={region}#/stacks/quickcreate?{query}"


def statement(place: Place, organization: str) -> dict[str, Any]:
    """What the policy of the bucket needs so that the accounts of an organization can read the release."""
    return {
        "Sid": "LarderRelease",
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject", "s3:GetObjectVersion"],
        "Resource": f"arn:{place.account.partition}:s3:::{place.bucket}/{place.prefix}*",
        "Condition": {"StringEquals": {"aws:PrincipalOrgID": organization}},
    }


def check_organization(given: str | None) -> None:
    if given and not _ORGANIZATION.fullmatch(given):
        raise click.UsageError(
            f"--organization: {given} is not the id of an organization, such as o-a1b2c3d4e5: "
            "aws organizations describe-organization"
        )


def run(
    release: Release,
    accounts: list[Account],
    bucket: str,
    *,
    stack: str,
    options: Mapping[str, str],
    organization: str | None,
    may_write: bool,
    as_json: bool,
) -> None:
    """Publish the release in the region of each account. `bucket` may have {region} in it."""
    release.check()
    places = [
        Place(account, bucket.replace("{region}", account.region), f"{PREFIX}{release.version}/")
        for account in accounts
    ]
    if len({place.bucket for place in places}) < len(places):
        raise click.UsageError(
            "--bucket: each region needs its own bucket. Write {region} into the name, such as acme-larder-{region}"
        )
    for place in places:
        code_bucket.check(place.account, place.bucket)
    records: list[Record] = []
    for place in places:
        template, sent = publish(release, place, may_write=may_write)
        record = {
            "region": place.account.region,
            "template": template,
            "link": link(place, template, stack, options),
            "sent_bytes": sent,
            **({"statement": statement(place, organization)} if organization else {}),
        }
        records.append(record)
        if not as_json:
            _show(release, place, record)
    if as_json:
        print_json(records)


def _show(release: Release, place: Place, record: Mapping[str, Any]) -> None:
    done = f"{record['sent_bytes'] / 1e6:.1f} MB sent" if record["sent_bytes"] else "as released"
    echo(f"Larder {release.version} is in s3://{place.bucket}/{place.prefix}: {done}.", "")
    echo(f"Deploy it in {place.account.region}:", "", record["link"], "")
    if "statement" in record:
        echo("Add this statement to the policy of the bucket, once:", "")
        echo(*json.dumps(record["statement"], indent=2).splitlines(), "")
