"""`larder rotate-signing-secret`: replace the secret that signs cookies and links."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from larder import clock
from larder.settings import settings
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.files import write_private
from larder_cli.output import Record, echo, print_json
from larder_cli.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The stored secrets, the current one and the previous one if any, and how to replace them."""

    current: str
    previous: str | None
    rotated_at: datetime | None
    put: Callable[[str, str | None], None]
    signs_after: timedelta | None
    """How long after a rotation the new secret begins to sign. None means at the next start of the local cloud."""

    @property
    def is_in_use(self) -> bool:
        """Whether the local cloud has been started since the last rotation. Always true for a stack."""
        running, _, _ = settings().signing_secret.partition(",")
        return self.signs_after is not None or running == self.current


@click.command(
    "rotate-signing-secret",
    cls=TargetCommand,
    epilog=examples(
        "larder --stack larder rotate-signing-secret",
        "larder --stack larder rotate-signing-secret --drop-old",
        "larder --local .larder rotate-signing-secret --json",
    ),
)
@click.option(
    "--force",
    is_flag=True,
    help="Rotate even if the last rotation is so recent that this signs users out.",
)
@click.option(
    "--drop-old",
    is_flag=True,
    help=(
        "Reject everything that the old secret signed. Use it if the secret leaked. All users must "
        "sign in again, and links that verify an address stop working."
    ),
)
@json_option
@click.pass_obj
def rotate_signing_secret(target: Target, force: bool, drop_old: bool, as_json: bool) -> None:
    """Rotate the secret that signs cookies and links.

    Users stay signed in, because the old secret's signatures stay valid. Larder accepts two secrets at most, so it
    refuses another rotation while signatures of the previous secret may still be in use. The client secrets of `larder
    sso` are encrypted again, before the secret that encrypted them is dropped.
    """
    kept = _of_local_cloud(target.local) if target.local else _of_stack()
    now = clock.now()
    early = _why_too_early(kept, now)
    if early and not force and not drop_old:
        raise click.ClickException(early)
    _rotate(kept, drop_old=drop_old)
    signs_at = None if kept.signs_after is None else now + kept.signs_after
    if as_json:
        record: Record = {
            "rotated_at": now,
            "known_everywhere_at": signs_at,
            "old_is_accepted": not drop_old,
        }
        print_json(record)
        return
    echo(*_summary(signs_at, is_early=early is not None, drop_old=drop_old).split("\n"))


def _rotate(kept: _Kept, *, drop_old: bool) -> None:
    """Replace the secret. At each step, one of the accepted secrets can decrypt the client secrets of `larder sso`."""
    from larder import signing
    from larder.sso.service import reseal_secrets

    new = signing.random_secret()
    accepted = [kept.current, *filter(None, [kept.previous])]
    lost = reseal_secrets(kept.current, accepted)
    kept.put(new, kept.current)
    if drop_old:
        reseal_secrets(new, [new, kept.current])
        kept.put(new, None)
    for provider_id in lost:
        echo(
            f"Warning: the client secret of {provider_id} could not be decrypted: store it again with"
            f" `larder sso rotate-secret {provider_id}`",
            err=True,
        )


def _of_stack() -> _Kept:
    from larder import signing

    stored = signing.read_secrets()
    return _Kept(
        current=stored.current,
        previous=stored.previous,
        rotated_at=stored.put_at,
        put=lambda current, previous: signing.put_secrets(current=current, previous=previous),
        signs_after=signing.KNOWN_AFTER,
    )


def _of_local_cloud(data: Path) -> _Kept:
    """A running local cloud keeps the secret that it started with. It uses a new one from its next start."""
    path = data / "local.json"
    try:
        local: dict[str, Any] = json.loads(path.read_text())
        current, _, previous = str(local["signing_secret"]).partition(",")
        rotated_at_iso = local.get("signing_secret_rotated_at")
        rotated_at = datetime.fromisoformat(rotated_at_iso) if rotated_at_iso else None
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"{path} is damaged or from another version: start the local cloud again"
        ) from error

    def put(current: str, previous: str | None) -> None:
        local["signing_secret"] = f"{current},{previous}" if previous else current
        local["signing_secret_rotated_at"] = clock.to_iso(clock.now())
        write_private(path, json.dumps(local, indent=2) + "\n")

    return _Kept(
        current=current, previous=previous or None, rotated_at=rotated_at, put=put, signs_after=None
    )


def _why_too_early(kept: _Kept, now: datetime) -> str | None:
    """Why a rotation now would sign users out, or None if it would not."""
    if not kept.is_in_use:
        return (
            "the local cloud has not been started since the last rotation. It still signs with the previous secret,"
            " which another rotation would drop. Start it again first, or rotate anyway with --force"
        )
    if not kept.previous or not kept.rotated_at:
        return None
    needed_until = kept.rotated_at + (kept.signs_after or timedelta()) + _longest_signature()
    if now >= needed_until:
        return None
    return (
        f"the last rotation was at {kept.rotated_at:%Y-%m-%d %H:%M} UTC. Cookies and links that the secret before it"
        f" signed may be valid until {needed_until:%Y-%m-%d %H:%M} UTC. Rotating now would sign out users who have"
        " not visited since the last rotation, and invalidate their links. Wait until then, or rotate anyway with"
        " --force"
    )


def _longest_signature() -> timedelta:
    """The longest lifetime of a signature: that of a session cookie or of a link."""
    from larder.accounts.sessions import NOT_REMEMBERED_SECONDS

    options = settings()
    return timedelta(
        seconds=max(
            options.session_expires_in_seconds,
            NOT_REMEMBERED_SECONDS,
            options.verification_token_expires_in_seconds,
        )
    )


def _summary(signs_at: datetime | None, *, is_early: bool, drop_old: bool) -> str:
    if signs_at is None:
        when = "The local cloud uses the new one from its next start"
    elif drop_old:
        when = f"Every function uses the new one by {signs_at:%H:%M:%S} UTC"
    else:
        when = f"Functions accept the new one now and sign with it from {signs_at:%H:%M:%S} UTC"
    if drop_old:
        effect = "All users must sign in again, and links that verify an address no longer work."
    elif is_early:
        effect = "Users who have not visited since the last rotation are signed out."
    else:
        effect = "Users stay signed in."
    return f"The signing secret was rotated. {when}. {effect}"
