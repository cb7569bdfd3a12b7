"""The settings that an operator can change for a team or a user: caching, block and quota."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from larder.teams.models import Block, CachingStatus, OwnerState
from larder_cli.output import Record, fields, human_size
from larder_cli.quantities import size_bytes

if TYPE_CHECKING:
    from larder.artifacts.models import Totals

C = TypeVar("C", bound=Callable[..., Any])

_CACHING = [status.value for status in CachingStatus if status is not CachingStatus.OVER_LIMIT]
_BLOCKS = [block.value for block in Block]

_OPTIONS = (
    click.option(
        "--caching",
        type=click.Choice(_CACHING),
        help="Whether the cache can be used. disabled and paused reject reads and writes.",
    ),
    click.option(
        "--block",
        type=click.Choice(_BLOCKS),
        help="Reject most requests with 402 (docs/teams.md#blocks).",
    ),
    click.option(
        "--reason",
        metavar="TEXT",
        help="With --block: the message for blocked users, up to 200 characters. An earlier reason is "
        "not kept.",
    ),
    click.option("--unblock", is_flag=True, help="Remove the block."),
    click.option(
        "--quota",
        type=size_bytes,
        metavar="SIZE",
        help=(
            "The storage limit: 500MB, 50GB, 1.5TB (powers of 1000), 50GiB (powers of 1024), or bytes. "
            "Reads still work above it."
        ),
    ),
    click.option(
        "--default-quota",
        is_flag=True,
        help="Use the deployment's default quota (DefaultQuotaBytes for a team, PersonalQuotaBytes for a user).",
    ),
    click.option(
        "--yes", is_flag=True, help="Do not ask if more is stored than the new quota allows."
    ),
)


def state_options(command: C) -> C:
    """Add the options for a StateChange to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """The options from the command line. None means not given."""

    caching: str | None
    block: str | None
    reason: str | None
    unblock: bool
    quota: int | None
    default_quota: bool
    yes: bool


def check_change(change: StateChange) -> None:
    """Raises UsageError for options that contradict each other or change nothing."""
    if change.block is not None and change.unblock:
        raise click.UsageError("--block and --unblock contradict each other: give only one")
    if change.reason is not None and change.block is None:
        raise click.UsageError("--reason needs --block")
    if change.quota is not None and change.default_quota:
        raise click.UsageError("--quota and --default-quota contradict each other: give only one")
    if (change.caching, change.block, change.quota) == (None, None, None) and not (
        change.unblock or change.default_quota
    ):
        raise click.UsageError(
            "nothing to change: give --caching, --block, --unblock, --quota or --default-quota"
        )


def agree_to_change(owner: str, name: str, change: StateChange) -> None:
    """Ask if the new quota is less than what is stored."""
    from larder.artifacts.repository.totals import read_totals
    from larder.settings import settings

    if change.quota is None or change.yes:
        return
    over = read_totals(owner).size_bytes - change.quota
    if over > 0:
        what = (
            "The next uploads evict what was used least recently."
            if settings().evicts
            else "Uploads are refused until so much has expired or is deleted."
        )
        click.confirm(
            f"{name} stores {human_size(over)} more than this quota. {what} Set it? (--yes answers this)",
            abort=True,
            err=True,
        )


def change_state(owner: str, change: StateChange) -> None:
    """Takes effect at the owner's next request. Raises InvalidValue."""
    from larder.teams import state

    state.change_state(
        owner,
        caching=None if change.caching is None else CachingStatus(change.caching),
        block=None if change.block is None else Block(change.block),
        block_reason=change.reason,
        unblock=change.unblock,
        quota_bytes=change.quota,
        default_quota=change.default_quota,
    )


def state_record(owner: str, state: OwnerState) -> Record:
    """The owner's settings, what it stores, and the caching status that clients see."""
    from larder.artifacts.caching import caching_status
    from larder.artifacts.repository.totals import read_totals

    totals = read_totals(owner)
    return {
        **fields(state, "caching", "quota_bytes"),
        "status": caching_status(state, totals).value,
        # Next to the status, because clients of a blocked owner get 402 instead of it.
        **block_record(state),
        **stored_record(totals),
    }


def block_record(state: OwnerState) -> Record:
    """The block and the message for blocked users. Both are None without a block."""
    return fields(state, "block", "block_reason")


def stored_record(totals: "Totals") -> Record:
    return {"stored_bytes": totals.size_bytes, "artifacts": totals.artifacts}
