"""`larder edge`: the commands."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from larder import clock
from larder.settings import settings
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.edge.store import CloudFrontStore, FileStore, KeyStore
from larder_cli.edge.switch import StoredKey, Switch
from larder_cli.outcomes import Failed, Outcome, show, tried
from larder_cli.output import echo, print_json, print_line, print_record, print_table
from larder_cli.quantities import seconds, size_bytes
from larder_cli.target import Target, stack_output

if TYPE_CHECKING:
    from larder_cli.edge import probes

_LONG_WAIT_S = 2.0


@click.group(
    "edge",
    cls=CommandGroup,
    epilog=examples(
        "larder --stack larder-prod edge status",
        "larder --stack larder-prod edge enable",
        "larder --local .larder edge disable --no-wait",
    ),
)
def edge() -> None:
    """Test the edge, and switch it on and off.

    The edge is a CloudFront distribution that carries artifacts (docs/edge.md). Deploying it with Edge=true changes
    nothing for clients. Only `enable` does, after it has tested the live distribution.
    """


_no_wait_option = click.option(
    "--no-wait",
    is_flag=True,
    help="Do not wait until the old key can be deleted. The next command of this group deletes it.",
)
_drop_old_option = click.option(
    "--drop-old",
    is_flag=True,
    help=(
        "Delete the old key at once. Use it if the key leaked. Uploads and downloads that have begun "
        "with its addresses finish; others fail, and turbo builds these tasks."
    ),
)


@edge.command(
    "status",
    epilog=examples(
        "larder --stack larder-prod edge status", "larder --local .larder edge status --json"
    ),
)
@table_options
@click.pass_obj
def status(target: Target, as_json: bool) -> None:
    """Show whether clients use the edge, and its keys. Also shows how long its addresses are valid."""
    if not settings().edge_url:
        if as_json:
            print_json({"state": "not deployed", "url": None, "keys": []})
        else:
            print_line("This deployment has no edge. Deploy it with Edge=true.")
        return
    switch = _switch(target)
    keys, current = switch.stored_keys(), switch.current()
    state = "off" if current is None else "on"
    is_known = current is None or any(key.in_use for key in keys)
    record = {
        "state": state,
        "url": settings().edge_url,
        "key": current.id if current else None,
        "downloads": settings().edge_downloads,
        "upload_address_s": settings().upload_url_seconds,
        "download_address_s": settings().download_url_seconds,
    }
    if as_json:
        print_json({**record, "keys": [asdict(key) for key in keys]})
    else:
        print_record(record, as_json=False)
        print_line()
        rows = [
            {**asdict(key), "flags": " ".join(key.flags), "until_at": key.until} for key in keys
        ]
        print_table(
            rows,
            ("id", "flags", "in_use", "until_at"),
            empty="The edge knows no key.",
            as_json=False,
        )
    if not is_known:
        raise click.ClickException(
            f"functions sign with the key {current.id if current else ''}, which the edge does not know. Clients"
            " cannot use its addresses: run `larder edge disable`, then `larder edge enable`"
        )


@edge.command(
    "enable",
    epilog=examples(
        "larder --stack larder-prod edge enable",
        "larder --stack larder-prod edge enable --large 1GiB --slow 90s",
    ),
)
@click.option(
    "--large",
    "large_bytes",
    metavar="SIZE",
    type=size_bytes,
    default="100MB",
    help="The size of the largest upload that is tested, by default 100MB.",
)
@click.option(
    "--slow",
    "slow_s",
    metavar="TIME",
    type=seconds,
    default="90s",
    help="How long the slowest upload that is tested takes, by default 90s.",
)
@json_option
@click.pass_context
def enable(ctx: click.Context, large_bytes: int, slow_s: int, as_json: bool) -> None:
    """Test the live edge, and let clients use it if it works.

    Each probe is printed with its outcome. If one fails that matters, nothing changes: clients keep getting presigned
    URLs of S3, and the exit status is 1. The probes store objects under names of their own, and delete them.
    """
    from larder_cli.edge import probes

    target = ctx.find_object(Target) or Target()
    switch = _deployed_switch(target)
    if (current := switch.current()) is not None:
        raise click.ClickException(
            f"the edge is in use, with the key {current.id}. `larder edge rotate` replaces the key"
        )
    switch.delete_expired()
    flags = (probes.ONCE,)
    probing = probes.Probing(
        url=settings().edge_url,
        switch=switch,
        key=switch.add(flags),
        flags=flags,
        large_bytes=large_bytes,
        slow_s=slow_s,
        test_function=None,
    )
    outcomes: list[Outcome] = []
    refused = False
    try:
        if not as_json:
            echo(probing.url)
        for outcome, effect in _probed(probing, target):
            outcomes.append(outcome)
            if not as_json:
                show(outcome)
            if outcome.outcome == "failed":
                if not as_json:
                    echo(f"        then: {effect.value}")
                refused |= effect is probes.Effect.REFUSES
                if effect is probes.Effect.WITHOUT_ONCE:
                    probing.flags = tuple(flag for flag in probing.flags if flag != probes.ONCE)
                    switch.set_flags(probing.key, probing.flags)
        if not refused:
            # Other locations of the edge may be slower than the one that the probes reached.
            if probing.change_took_s > _LONG_WAIT_S:
                time.sleep(probing.change_took_s)
            switch.use(probing.key)
    finally:
        probes.clean_up(probing)
        in_use = switch.current()
        if in_use is None or in_use.id != probing.key.id:
            switch.delete(probing.key.id)
    if as_json:
        print_json(
            {
                "enabled": not refused,
                "key": None if refused else probing.key.id,
                "flags": list(probing.flags),
                "probes": [asdict(one) for one in outcomes],
            }
        )
    elif not refused:
        marks = " ".join(probing.flags) or "no flags"
        echo(
            f"The edge is on, with the key {probing.key.id} ({marks}). Every function uses it within five minutes."
        )
    if refused:
        if not as_json:
            echo("The edge stays off. Clients use presigned URLs of S3, as before.")
        ctx.exit(1)


@edge.command(
    "rotate",
    epilog=examples(
        "larder --stack larder-prod edge rotate",
        "larder --stack larder-prod edge rotate --drop-old",
    ),
)
@_drop_old_option
@_no_wait_option
@json_option
@click.pass_obj
def rotate(target: Target, drop_old: bool, no_wait: bool, as_json: bool) -> None:
    """Replace the key that signs addresses of the edge.

    Builds go on: the edge accepts both keys until every address of the old one has expired.
    """
    from larder_cli.edge import probes

    switch = _deployed_switch(target)
    current = switch.current()
    if current is None:
        raise click.ClickException("the edge is off: there is no key to rotate")
    switch.delete_expired()
    key = switch.add(switch.flags(current))
    probing = probes.Probing(
        url=settings().edge_url,
        switch=switch,
        key=key,
        flags=switch.flags(key),
        large_bytes=0,
        slow_s=0,
        test_function=None,
    )
    try:
        took = probes.accepted_within(probing, key)
        probes.new_key_works(probing)
        if took > _LONG_WAIT_S:
            time.sleep(took)
        old = switch.use(key)
    except Failed as failure:
        raise click.ClickException(
            f"the old key stays in use. {failure.found}. Next: {failure.advice}"
        ) from failure
    finally:
        probes.clean_up(probing)
        in_use = switch.current()
        if in_use is None or in_use.id != key.id:
            switch.delete(key.id)
    if not as_json:
        echo(f"Functions sign with the new key {key.id} within five minutes.")
    _finish(switch, old, drop_old=drop_old, no_wait=no_wait, as_json=as_json, key=key.id)


@edge.command(
    "disable",
    epilog=examples(
        "larder --stack larder-prod edge disable", "larder --local .larder edge disable --no-wait"
    ),
)
@_drop_old_option
@_no_wait_option
@json_option
@click.pass_obj
def disable(target: Target, drop_old: bool, no_wait: bool, as_json: bool) -> None:
    """Let clients use presigned URLs of S3 again, within five minutes. Artifacts and their signatures stay."""
    switch = _deployed_switch(target)
    switch.delete_expired()
    if switch.current() is None:
        raise click.ClickException("the edge is off")
    old = switch.use(None)
    if not as_json:
        echo("Clients get presigned URLs of S3 within five minutes.")
    _finish(switch, old, drop_old=drop_old, no_wait=no_wait, as_json=as_json, key=None)


def _probed(probing: "probes.Probing", target: Target) -> Iterator[tuple[Outcome, "probes.Effect"]]:
    """Run the probes until one says that the edge has to stay off."""
    from larder_cli.edge import probes

    def accept() -> str:
        if target.stack:
            probing.test_function = _test_function(target.stack)
        return f"{probes.accepted_within(probing, probing.key):.0f} s"

    accepted = tried("the edge knows a new key", accept)
    yield accepted, probes.Effect.REFUSES
    if accepted.outcome == "failed":
        return
    for probe in probes.PROBES:
        outcome = tried(probe.title, partial(probe.check, probing))
        yield outcome, probe.effect
        if outcome.outcome == "failed" and probe.effect is probes.Effect.REFUSES:
            return


def _test_function(stack: str) -> "probes.TestFunction":
    from larder import aws
    from larder.settings import region
    from larder_cli.edge import probes

    return probes.cloudfront_test(aws.cloudfront(), f"{stack}-{region()}-request")


def _finish(
    switch: Switch,
    old: StoredKey | None,
    *,
    drop_old: bool,
    no_wait: bool,
    as_json: bool,
    key: str | None,
) -> None:
    """Delete the old key: at once, when its addresses have expired, or by the next command."""
    if old is not None and drop_old:
        switch.delete(old.id)
    elif old is not None and old.until is not None and not no_wait:
        if not as_json:
            echo(
                f"The old key {old.id} is deleted at {old.until:%H:%M:%S} UTC, when its last address has expired."
                " If you interrupt this command, the next one deletes it."
            )
        _sleep_until(old.until)
        switch.delete_expired()
    left = next((one for one in switch.stored_keys() if old is not None and one.id == old.id), None)
    if as_json:
        print_json(
            {
                "key": key,
                "old_key": old.id if old else None,
                "old_key_until": left.until if left else None,
            }
        )
    elif left is None:
        echo("The old key is deleted.")
    elif left.until is not None:
        echo(f"The old key {left.id} can be deleted from {left.until:%H:%M:%S} UTC on.")


def _sleep_until(moment: datetime) -> None:
    while (left := (moment - clock.now()).total_seconds()) > 0:
        time.sleep(min(left, 1.0))


def _deployed_switch(target: Target) -> Switch:
    if not settings().edge_url:
        raise click.ClickException("this deployment has no edge: deploy it with Edge=true")
    return _switch(target)


def _switch(target: Target) -> Switch:
    return Switch(_store(target))


def _store(target: Target) -> KeyStore:
    if target.local is not None:
        return FileStore(Path(target.local) / "edge" / "keys.json")
    from larder import aws

    arn = stack_output(str(target.stack), "EdgeKeys")
    return CloudFrontStore(aws.cloudfront_key_value_store(), arn)
