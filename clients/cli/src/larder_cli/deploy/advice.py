"""What to do about reasons of CloudFormation that do not say it themselves."""

import re
import shlex
from collections.abc import Iterable

_UNKNOWN_ROUTE = re.compile(r"Unable to find Route by key (.+?) within the provided RouteSettings")
_THROTTLED = re.compile(
    r"Rate exceeded|Throttling|TooManyRequests|Too Many Requests|ServiceLimitExceeded|RequestLimitExceeded"
)


def unknown_routes(reasons: Iterable[str]) -> list[str]:
    """The routes that a stage has limits for and the API lacks."""
    return sorted({key for reason in reasons for key in _UNKNOWN_ROUTE.findall(reason)})


def route_commands(routes: Iterable[str], *, api: str, region: str) -> list[str]:
    """The commands that remove these limits. An update of the stage alone keeps them."""
    return [
        f"  aws apigatewayv2 delete-route-settings --region {region} --api-id {api} --stage-name '$default' "
        f"--route-key {shlex.quote(key)}"
        for key in routes
    ]


def is_throttled(reasons: Iterable[str]) -> bool:
    """Whether there are reasons, and AWS had too many requests in all of them."""
    reasons = list(reasons)
    return bool(reasons) and all(_THROTTLED.search(reason) for reason in reasons)


def advice(reasons: Iterable[str], *, api: str, region: str) -> list[str]:
    """Lines to print after the reasons of a deployment that failed."""
    reasons = list(reasons)
    lines: list[str] = []
    if any(_THROTTLED.search(reason) for reason in reasons):
        lines.append(
            "AWS accepts only so many changes per second of an account (Rate exceeded). Nothing is wrong with the "
            "deployment."
        )
    if routes := unknown_routes(reasons):
        lines.append("The API's stage has limits for routes that this version lacks. Remove them:")
        lines += route_commands(routes, api=api, region=region)
    return lines
