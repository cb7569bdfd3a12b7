"""Whether all functions run the code of the release of their version."""

from collections.abc import Iterator, Mapping
from typing import Any

from larder_cli.deploy.release import Release, archive_of
from larder_cli.status.deployed import FUNCTION, Deployed
from larder_cli.status.rows import Level, Row

_LAYER = "AWS::Lambda::LayerVersion"
_NAMED = 5
"""Functions that a row names."""

Code = tuple[str | None, ...]
"""The checksums, as Lambda's `CodeSha256`, of a function's archive and of its layers. None for a layer that is gone."""


def version(deployed: Deployed) -> Iterator[Row]:
    deployed_version = (deployed.stack.outputs or {}).get("Version")
    if deployed_version is None:
        advice = f"{deployed.upgrade()} deploys a version that names itself"
        yield Row("version", Level.NOTE, "older than 0.2.0, which does not say it", advice)
        return
    release = deployed.release
    if release is None or release.version != deployed_version:
        has = "no release" if release is None else f"the release {release.version}"
        yield Row(
            "version",
            Level.NOTE,
            f"{deployed_version}; its code was not compared, because this command has {has}",
            f"install the wheel of {deployed_version}, or name the folder of its release with --release",
        )
        return
    release.check()
    wanted, found = _released(release), _running(deployed)
    names = deployed.ids(FUNCTION).keys() & wanted.keys()
    differing = sorted(name for name in names if found.get(name) != wanted[name])
    if differing:
        listed = ", ".join(differing[:_NAMED])
        more = f" and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        yield Row(
            "version",
            Level.PROBLEM,
            f"{deployed_version}; {len(differing)} of {len(names)} functions do not run its code: {listed}{more}",
            "find out who changed them, and put the code back: docs/operations.md, Restore the code of functions",
        )
        return
    layers = {layer for name in names for layer in wanted[name][1:]}
    yield Row(
        "version",
        Level.OK,
        f"{deployed_version}; all {len(names)} functions and {len(layers)} layers run its code",
    )


def _released(release: Release) -> dict[str, Code]:
    """The code of each function in the release, by logical id."""
    resources: Mapping[str, Any] = release.template["Resources"]
    layers = {
        name: _checksum(release, one["Properties"]["Content"])
        for name, one in resources.items()
        if one["Type"] == _LAYER
    }
    return {
        name: (
            _checksum(release, one["Properties"]["Code"]),
            *(layers[layer["Ref"]] for layer in one["Properties"].get("Layers", [])),
        )
        for name, one in resources.items()
        if one["Type"] == FUNCTION
    }


def _checksum(release: Release, place: Mapping[str, Any]) -> str:
    return release.file(archive_of(place)).base64_sha256


def _running(deployed: Deployed) -> dict[str, Code]:
    """The code of each function in the account, by logical id. Functions that are gone are left out."""
    lambda_ = deployed.clients["lambda"]
    logical = {physical: name for name, physical in deployed.ids(FUNCTION).items()}
    pages = lambda_.get_paginator("list_functions").paginate()
    functions = [
        function
        for page in pages
        for function in page["Functions"]
        if function["FunctionName"] in logical
    ]
    arns = {layer["Arn"] for function in functions for layer in function.get("Layers", [])}
    layers = {arn: _layer_checksum(lambda_, arn) for arn in arns}
    return {
        logical[function["FunctionName"]]: (
            function["CodeSha256"],
            *(layers[layer["Arn"]] for layer in function.get("Layers", [])),
        )
        for function in functions
    }


def _layer_checksum(lambda_: Any, arn: str) -> str | None:
    try:
        return str(lambda_.get_layer_version_by_arn(Arn=arn)["Content"]["CodeSha256"])
    except lambda_.exceptions.ResourceNotFoundException:
        return None
