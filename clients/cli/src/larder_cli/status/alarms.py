"""The alarms, and whether anyone gets them."""

from collections.abc import Iterator

from larder_cli.status.deployed import ALARM, Deployed
from larder_cli.status.rows import Level, Row

_PENDING = "PendingConfirmation"


def alarm_mail(deployed: Deployed) -> Iterator[Row]:
    """Whether the topic of the alarms has a confirmed subscription."""
    check = "alarm mail"
    setting = deployed.upgrade("--set AlarmEmail=ops@example.com")
    if deployed.option("Alarms") == "false":
        yield Row(
            check,
            Level.NOTE,
            "there are no alarms (Alarms=false)",
            f"nothing for a trial. Otherwise: {setting} --set Alarms=true",
        )
        return
    own = deployed.resources.get("AlarmMail")
    topic = deployed.option("AlarmTopic") or (own.id if own else "")
    if not topic:
        yield Row(check, Level.WARNING, "alarms only show in CloudWatch", setting)
        return
    pages = (
        deployed.clients["sns"]
        .get_paginator("list_subscriptions_by_topic")
        .paginate(TopicArn=topic)
    )
    subscriptions = [subscription for page in pages for subscription in page["Subscriptions"]]
    pending = [
        subscription["Endpoint"]
        for subscription in subscriptions
        if subscription["SubscriptionArn"] == _PENDING
    ]
    confirmed = len(subscriptions) - len(pending)
    level = Level.WARNING if confirmed else Level.PROBLEM
    if pending:
        arrives = "" if confirmed else ", so no alarm arrives"
        yield Row(
            check,
            level,
            f"{', '.join(pending)} has not confirmed{arrives}",
            "open the link that AWS has sent there. To get another one: "
            + deployed.aws(
                f"sns subscribe --topic-arn {topic} --protocol email --notification-endpoint {pending[0]}"
            ),
        )
    elif not confirmed:
        yield Row(
            check,
            Level.PROBLEM,
            "nobody subscribes to the alarms, so none arrives",
            deployed.aws(
                f"sns subscribe --topic-arn {topic} --protocol email --notification-endpoint ops@example.com"
            ),
        )
    else:
        yield Row(check, Level.OK, f"{confirmed} confirmed")


def alarms(deployed: Deployed) -> Iterator[Row]:
    """The alarms that are active or switched off."""
    logical = {physical: name for name, physical in deployed.ids(ALARM).items()}
    if not logical:
        yield Row("alarms", Level.OK, "none")
        return
    described = deployed.clients["cloudwatch"].describe_alarms(AlarmNames=list(logical))
    found = described["MetricAlarms"]
    is_quiet = True
    for one in sorted(found, key=lambda alarm: str(alarm["AlarmName"])):
        name = logical[one["AlarmName"]]
        if one["StateValue"] == "ALARM":
            is_quiet = False
            yield Row("alarms", Level.PROBLEM, f"{name} is active", f"docs/operations.md, {name}")
        if not one["ActionsEnabled"]:
            is_quiet = False
            yield Row(
                "alarms",
                Level.WARNING,
                f"{name} notifies nobody: its actions are off",
                deployed.aws(f"cloudwatch enable-alarm-actions --alarm-names {one['AlarmName']}"),
            )
    for name in sorted(set(logical.values()) - {logical[one["AlarmName"]] for one in found}):
        is_quiet = False
        advice = (
            f"docs/operations.md, Differences from the template ({name} has to be created again)"
        )
        yield Row("alarms", Level.WARNING, f"{name} is deleted", advice)
    if is_quiet:
        yield Row("alarms", Level.OK, f"{len(found)}, none active")
