"""The option `WarmSchedule`"""

import math
from collections.abc import Mapping
from typing import Any

from larder import warm
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext

REQUESTS_OF_A_BUILD = 10
"""turbo has so many requests open at a time (docs/clients/turbo.md)."""


def keep_warm(instances: int, functions: Mapping[str, list[str]]) -> None:
    """Keep instances of the functions of builds.

    Builds call `many` with several requests at once, and `one` once.
    """
    builds = math.ceil(instances / REQUESTS_OF_A_BUILD)
    counts = {
        **dict.fromkeys(functions["many"], instances),
        **dict.fromkeys(functions["one"], builds),
    }
    failed = warm.keep_warm(counts)
    log = logger().warning if failed else logger().info
    log("kept warm", extra={"calls": sum(counts.values()), "failed": failed})


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    keep_warm(event["instances"], event["functions"])
