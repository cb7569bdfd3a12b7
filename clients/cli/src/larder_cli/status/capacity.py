"""How many functions the account runs at once, and what AWS refused."""

from collections.abc import Iterable, Iterator, Mapping

from larder_cli.deploy.account import MINIMUM_CONCURRENCY, QUOTA_REQUEST
from larder_cli.output import human_number
from larder_cli.status import metrics
from larder_cli.status.deployed import FUNCTION, TABLE, Deployed
from larder_cli.status.metrics import Metric, of_function
from larder_cli.status.rows import Level, Row

_HOURS = 24
_NEARLY = 0.8
"""The part of what the account can run at once, above which requests will soon be refused."""
_NAMED = 3


def concurrency(deployed: Deployed) -> Iterator[Row]:
    """Only functions without a reservation of their own, such as all of Larder's, use what is not reserved."""
    limits = deployed.clients["lambda"].get_account_settings()["AccountLimit"]
    allowed, free = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    metric = Metric("AWS/Lambda", "ConcurrentExecutions", statistic="Maximum")
    most = metrics.read(deployed, [metric], hours=_HOURS)[metric]
    found = (
        f"{human_number(allowed)} functions at once, {human_number(free)} not reserved; the most in 24 hours was "
        f"{human_number(most)}"
    )
    request = deployed.aws(QUOTA_REQUEST)
    if allowed < MINIMUM_CONCURRENCY:
        yield Row("concurrency", Level.PROBLEM, found, f"one build needs more: {request}")
    elif free < MINIMUM_CONCURRENCY:
        advice = f"other functions of the account reserve the rest. Reserve less, or: {request}"
        yield Row("concurrency", Level.PROBLEM, found, advice)
    elif most > free * _NEARLY:
        yield Row("concurrency", Level.WARNING, found, request)
    else:
        yield Row("concurrency", Level.OK, found)


def throttles(deployed: Deployed) -> Iterator[Row]:
    """What Lambda, DynamoDB and API Gateway refused in 24 hours."""
    functions = {
        of_function(physical, "Throttles"): name
        for name, physical in deployed.ids(FUNCTION).items()
    }
    tables = dict(_table_metrics(deployed))
    refused = Metric(f"Larder/{deployed.stack.name}", "RefusedRequests")
    api = (("ApiId", deployed.id("HttpApi")),)
    failed = Metric("AWS/ApiGateway", "5xx", api)
    conflicts = [
        Metric("AWS/DynamoDB", "TransactionConflict", (("TableName", table),))
        for table in deployed.ids(TABLE).values()
    ]
    asked = [*functions, *tables, *conflicts, refused, failed]
    read = metrics.read(deployed, asked, hours=_HOURS)
    rows = []
    if said := _named(functions, read):
        rows.append(
            (f"functions that Lambda did not start: {said}", "docs/operations.md, ApiFailing")
        )
    if said := _named(tables, read):
        advice = "raise TableReadUnits or TableWriteUnits: docs/operations.md, ApiFailing"
        rows.append((f"requests that DynamoDB refused: {said}", advice))
    if read[refused]:
        found = f"requests of builds with 429 or without a token: {human_number(read[refused])}"
        rows.append((found, "docs/operations.md, HitsLost"))
    if read[failed]:
        found = f"replies of the API with 5xx: {human_number(read[failed])}"
        rows.append((found, "docs/operations.md, ApiFailing"))
    for found, advice in rows:
        yield Row("throttles", Level.WARNING, f"in 24 hours, {found}", advice)
    if not rows:
        repeated = human_number(sum(read[one] for one in conflicts))
        yield Row(
            "throttles", Level.OK, f"none in 24 hours, and no 5xx; {repeated} conflicts of writes"
        )


def _table_metrics(deployed: Deployed) -> Iterator[tuple[Metric, str]]:
    """The metrics of each table and of each of its indexes, which count for themselves."""
    for name, table in deployed.ids(TABLE).items():
        described = deployed.clients["dynamodb"].describe_table(TableName=table)["Table"]
        indexes = [index["IndexName"] for index in described.get("GlobalSecondaryIndexes", [])]
        for metric in ("ReadThrottleEvents", "WriteThrottleEvents"):
            of_table = (("TableName", table),)
            yield Metric("AWS/DynamoDB", metric, of_table), name
            for index in indexes:
                dimensions = (*of_table, ("GlobalSecondaryIndexName", index))
                yield Metric("AWS/DynamoDB", metric, dimensions), f"{name}/{index}"


def _named(names: Mapping[Metric, str], read: Mapping[Metric, int]) -> str:
    """The names with the largest figures. Empty if there are none."""
    counts: dict[str, int] = {}
    for metric, name in names.items():
        counts[name] = counts.get(name, 0) + read[metric]
    largest = sorted(
        ((count, name) for name, count in counts.items() if count),
        key=lambda one: (-one[0], one[1]),
    )
    return ", ".join(_listed(largest))


def _listed(counts: list[tuple[int, str]]) -> Iterable[str]:
    for count, name in counts[:_NAMED]:
        yield f"{name} {human_number(count)}"
    if len(counts) > _NAMED:
        yield f"{len(counts) - _NAMED} more"
