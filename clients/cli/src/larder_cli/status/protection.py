"""The state of the stack, and the protection of its data."""

from collections.abc import Iterator

from larder_cli.deploy.flow import wants_protection
from larder_cli.deploy.options import PROTECT
from larder_cli.deploy.stack import State
from larder_cli.output import human_duration
from larder_cli.status.deployed import Deployed
from larder_cli.status.rows import Level, Row

RECOVERABLE = ("IdentityTable", "ApiKeysTable", "TeamsTable", "AuditTable")
"""The tables with point-in-time recovery if `ProtectData` is true, by logical id."""
PROTECTED = (*RECOVERABLE, "UsageTable")
"""The tables that nobody can delete then."""

_MEANINGS = {
    State.NEW: "it has no resources yet",
    State.REMAINS: "its creation failed, and it holds no data",
    State.STUCK: "its last update failed, and so did the rollback",
    State.HALF_DELETED: "it is half deleted",
}


def stack(deployed: Deployed) -> Iterator[Row]:
    found = deployed.stack
    started = ""
    if found.since is not None:
        age_ms = int((deployed.now - found.since).total_seconds() * 1000)
        started = f", started {human_duration(max(age_ms, 0))} ago"
    said = f"{found.status}{started}"
    if found.state in _MEANINGS:
        uninstall = f"larder uninstall --stack {found.name}"
        install = f"larder install --stack {found.name}"
        advice = {
            State.NEW: f"`{install}` creates it, or `{uninstall}` deletes it",
            State.REMAINS: f"`{install}` continues it, or deletes what is left and starts again",
            State.STUCK: f"`{deployed.upgrade()}` finishes the rollback first",
            State.HALF_DELETED: f"`{uninstall}` deletes the rest",
        }[found.state]
        yield Row("stack", Level.PROBLEM, f"{said}: {_MEANINGS[found.state]}", advice)
    elif found.state is State.BUSY:
        advice = f"`larder --stack {found.name} status --follow` waits for the end"
        yield Row("stack", Level.NOTE, f"{said}: it is being changed", advice)
    elif "ROLLBACK" in str(found.status):
        yield Row(
            "stack",
            Level.WARNING,
            f"{said}: the last update failed, and everything is as before",
            f"`{deployed.upgrade()}` tries again, and names the reason",
        )
    elif deployed.option(PROTECT) == "true" and not found.protected:
        yield Row(
            "stack",
            Level.WARNING,
            f"{said}; it can be deleted by mistake, although {PROTECT}=true",
            deployed.aws(
                "cloudformation update-termination-protection --enable-termination-protection "
                f"--stack-name {found.name}"
            ),
        )
    else:
        protected = "protected from deletion" if found.protected else "not protected from deletion"
        yield Row("stack", Level.OK, f"{said}; {protected}")


def data(deployed: Deployed) -> Iterator[Row]:
    """Deletion protection and recovery of the tables."""
    if wants_protection(deployed.stack):
        yield Row(
            "data",
            Level.WARNING,
            "the creation ended before the tables were protected",
            f"`{deployed.upgrade()}` protects them",
        )
        return
    if deployed.option(PROTECT) == "false":
        yield Row(
            "data",
            Level.NOTE,
            f"the tables can be deleted and not be restored ({PROTECT}=false)",
            f"nothing for a trial. Otherwise: {deployed.upgrade(f'--set {PROTECT}=true')}",
        )
        return
    dynamodb = deployed.clients["dynamodb"]
    tables = [
        (name, deployed.resources[name].id) for name in PROTECTED if name in deployed.resources
    ]
    whole = True
    for name, table in tables:
        if not dynamodb.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled"):
            whole = False
            yield Row(
                "data",
                Level.WARNING,
                f"{name} can be deleted by mistake, although {PROTECT}=true",
                deployed.aws(
                    f"dynamodb update-table --table-name {table} --deletion-protection-enabled"
                ),
            )
        if name not in RECOVERABLE:
            continue
        backups = dynamodb.describe_continuous_backups(TableName=table)
        recovery = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        if recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
            whole = False
            yield Row(
                "data",
                Level.WARNING,
                f"{name} cannot be restored to an earlier time, although {PROTECT}=true",
                deployed.aws(
                    f"dynamodb update-continuous-backups --table-name {table} "
                    "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
                ),
            )
    if whole:
        found = f"{len(tables)} tables protected, {len(RECOVERABLE)} of them recoverable"
        yield Row("data", Level.OK, found)
