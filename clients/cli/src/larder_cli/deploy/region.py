"""The region to deploy to.

AWS's tools do not agree which of several sources wins: SAM ignores AWS_REGION, which others prefer. So two sources that
differ would deploy to one region and look for the stack in the other.
"""

from collections.abc import Mapping

import click

_EXAMPLE = "export AWS_REGION=eu-central-1"


def chosen_region(
    environ: Mapping[str, str],
    *,
    profile: str | None,
    given: str | None,
    configured: str | None,
    configured_in: str,
) -> str:
    """The only region that is named anywhere.

    `profile` is that of the AWS profile, `given` that of `--region`, `configured` that of the file `configured_in`.
    `--region` wins over all others. Raises UsageError if there is none, or if two differ.
    """
    if given:
        return given
    named = {
        "AWS_REGION": environ.get("AWS_REGION"),
        "AWS_DEFAULT_REGION": environ.get("AWS_DEFAULT_REGION"),
        "the AWS profile": profile,
        configured_in: configured,
    }
    found = {source: region for source, region in named.items() if region}
    regions = set(found.values())
    if not regions:
        raise click.UsageError(f"no region is set. Choose one near your builds: {_EXAMPLE}")
    if len(regions) > 1:
        shown = ", ".join(f"{source} says {region}" for source, region in found.items())
        raise click.UsageError(
            f"which region? {shown}. Make them equal, or add --region NAME for this deployment."
        )
    return regions.pop()
