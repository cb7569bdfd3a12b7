"""Check that an upgrade from the last release keeps all data: tables, bucket, secret, and the address of the API. Also
that neither it nor its rollback stops at the limits of a route that is not there.

Run by `make check`. It compares template.yaml with the recording of the last release, and the last two recordings.
`make record-release` writes tests/upgrades/resources/<version>.json (`--record`), which has the properties that matter.
Both sides are compared with all options at their defaults, so an option can replace a resource, but no upgrade can.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from larder_cli.deploy.changes import KEPT, problems
from local.cloudformation import NOTHING, by_default, holds, read_template
from tools.generate.text import json_lines
from tools.release.package import ROOT, version

_API, _ROUTES, _LIMITS = "AWS::Serverless::HttpApi", "Routes", "RouteSettings"

Resources = dict[str, dict[str, Any]]
"""For each logical id, `Type` and the properties of KEPT. The API also has its routes, and those with own limits."""


def data_resources(template: dict[str, Any]) -> Resources:
    """The resources to keep of a deployment with the default options."""
    return {
        logical_id: {
            "Type": resource["Type"],
            **_kept(template, resource),
            **_routing(template, resource),
        }
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] in KEPT and _exists(template, resource)
    }


def routes_of(template: dict[str, Any]) -> list[str]:
    """The keys of the API's routes, such as `GET /v8/artifacts/status`."""
    return sorted(
        " ".join(event["Properties"][name] for name in ("Method", "Path"))
        for resource in template["Resources"].values()
        for event in resource.get("Properties", {}).get("Events", {}).values()
        if event["Type"] == "HttpApi" and "Path" in event["Properties"]
    )


def refused_settings(before: Resources, now: Resources, *, adjacent: bool) -> Iterator[str]:
    """The routes with limits of their own at which API Gateway refuses the upgrade, or the way back.

    It looks up each key of RouteSettings among the routes. An update that leaves a key out does not remove it, so this
    matters for all later releases. The way back is only kept open to the release before.
    """
    for logical_id in before.keys() & now.keys():
        old, new = before[logical_id], now[logical_id]
        if old["Type"] != _API:
            continue
        for key in sorted(set(old[_LIMITS]) - set(new[_ROUTES])):
            yield f"{logical_id} lacks the route {key}, for which an older stage has limits: the update would fail"
        for key in sorted(set(new[_LIMITS]) - set(old[_ROUTES])) if adjacent else ():
            yield (
                f"{logical_id} has limits for the new route {key}: the rollback of a failed update would fail, and"
                " going back. Leave them to the next release"
            )


def last_upgrades(root: Path) -> Iterator[tuple[str, Resources, Resources]]:
    """The upgrade between the last two recorded releases, if there are two, and the one to template.yaml.

    The first matters from `make record-release` to the release, when the template equals the last recording.
    """
    for (older, before), (newer, now) in pairwise(_releases(root)[-3:]):
        yield f"from {older} to {newer}", before, now


def stopped_upgrades(root: Path) -> Iterator[str]:
    """What `refused_settings` finds between any release and any later one, template.yaml included."""
    releases = _releases(root)
    for (first, (older, before)), (second, (newer, now)) in combinations(enumerate(releases), 2):
        for problem in refused_settings(before, now, adjacent=second == first + 1):
            yield f"from {older} to {newer}: {problem}"


def _releases(root: Path) -> list[tuple[str, Resources]]:
    """All recorded releases, the oldest first, and template.yaml."""
    recorded = sorted(
        (root / "tests" / "upgrades" / "resources").glob("*.json"),
        key=lambda path: [int(number) for number in path.stem.split(".")],
    )
    steps = [(path.stem, json.loads(path.read_text())) for path in recorded]
    return [*steps, ("template.yaml", data_resources(read_template(root / "template.yaml")))]


def recording(root: Path, version: str) -> Path:
    return root / "tests" / "upgrades" / "resources" / f"{version}.json"


def _kept(template: dict[str, Any], resource: dict[str, Any]) -> dict[str, Any]:
    properties = resource.get("Properties", {})
    values = {
        name: by_default(template, properties[name])
        for name in KEPT[resource["Type"]]
        if name in properties
    }
    return {name: value for name, value in values.items() if value != NOTHING}


def _routing(template: dict[str, Any], resource: dict[str, Any]) -> dict[str, list[str]]:
    if resource["Type"] != _API:
        return {}
    limits = sorted(resource.get("Properties", {}).get(_LIMITS, {}))
    return {_ROUTES: routes_of(template), _LIMITS: limits}


def _exists(template: dict[str, Any], resource: dict[str, Any]) -> bool:
    return "Condition" not in resource or holds(template, resource["Condition"])


def main(arguments: list[str]) -> int:
    if arguments == ["--record"]:
        kept = data_resources(read_template(ROOT / "template.yaml"))
        recording(ROOT, version()).write_text(json_lines(kept, depth=1))
        return 0
    found = [
        f"{upgrade}: {problem}"
        for upgrade, before, now in last_upgrades(ROOT)
        for problem in problems(before, now)
    ]
    found += stopped_upgrades(ROOT)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
