"""`larder rotate-signing-secret`: what cookies and links are signed with."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from larder import clock
from larder.settings import settings
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import Record, print_json
from larder_cli.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The secrets where they are kept, and how to put others there: the current one and the previous one, if any."""

    current: str
    previous: str | None
    rotated_at: datetime | None
    put: Callable[[str, str | None], None]
    signs_after: timedelta | None
    """How long after a rotation the new secret begins to sign; None for the next start of a local cloud."""

    @property
    def is_in_use(self) -> bool:
        """Whether a local cloud has been started since the last rotation. A stack takes over what is put there."""
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
        "Reject everything that was signed before, for a secret that leaked. Everyone signs in "
        "again, and links to verify an address stop working."
    ),
)
@json_option
@click.pass_obj
def rotate_signing_secret(target: Target, force: bool, drop_old: bool, as_json: bool) -> None:
    """Change the secret that signs cookies and links.

    Nobody is signed out: what the old one signed stays valid. Two secrets are accepted and no more, so the rotation
    is refused while the one before the old one may still be needed.
    """
    kept = _of_local_cloud(target.local) if target.local else _of_stack()
    now = clock.now()
    early = _why_too_early(kept, now)
    if early and not force and not drop_old:
        raise click.ClickException(early)
    from larder import signing

    kept.put(signing.random_secret(), None if drop_old else kept.current)
    signs_at = None if kept.signs_after is None else now + kept.signs_after
    if as_json:
        told: Record = {
            "rotated_at": now,
            "known_everywhere_at": signs_at,
            "old_is_accepted": not drop_old,
        }
        print_json(told)
        return
    click.echo(_summary(signs_at, is_early=early is not None, drop_old=drop_old))


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
    """The running local cloud goes on with the secret of its start; another one is for its next start."""
    path = data / "local.json"
    try:
        local: dict[str, Any] = json.loads(path.read_text())
        current, _, previous = str(local["signing_secret"]).partition(",")
        told = local.get("signing_secret_rotated_at")
        rotated_at = datetime.fromisoformat(told) if told else None
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise click.ClickException(
            f"{path} is damaged or of another version: start the local cloud again"
        ) from error

    def put(current: str, previous: str | None) -> None:
        local["signing_secret"] = f"{current},{previous}" if previous else current
        local["signing_secret_rotated_at"] = clock.to_iso(clock.now())
        _write_private(path, json.dumps(local, indent=2) + "\n")

    return _Kept(
        current=current, previous=previous or None, rotated_at=rotated_at, put=put, signs_after=None
    )


def _write_private(path: Path, text: str) -> None:
    """Replace a file at once by one that only its owner may read."""
    temporary = path.with_name(path.name + ".rotated")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _why_too_early(kept: _Kept, now: datetime) -> str | None:
    """What a rotation would do to people now; None when it does nothing to anybody."""
    if not kept.is_in_use:
        return (
            "the local cloud has not been started since the last rotation and still signs with the secret that"
            " another one would drop: start it again first, or rotate all the same by --force"
        )
    if not kept.previous or not kept.rotated_at:
        return None
    needed_until = kept.rotated_at + (kept.signs_after or timedelta()) + _longest_signature()
    if now >= needed_until:
        return None
    return (
        f"the last rotation was at {kept.rotated_at:%Y-%m-%d %H:%M} UTC, and what the secret before it signed"
        f" may be valid until {needed_until:%Y-%m-%d %H:%M} UTC: rotating now would sign out whoever has not"
        " been here since, and end their links. Wait until then, or rotate all the same by --force"
    )


def _longest_signature() -> timedelta:
    """How long something that was signed can be valid: a session's cookie or a link, whichever lives longest."""
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
        when = "The local cloud takes it over at its next start"
    elif drop_old:
        when = f"Every function takes it over by {signs_at:%H:%M:%S} UTC"
    else:
        when = f"It is accepted at once and signs from {signs_at:%H:%M:%S} UTC on, when every function knows it"
    if drop_old:
        what = "everybody has to sign in again, and links that verify an address are void."
    elif is_early:
        what = "whoever has not been here since the last rotation is signed out."
    else:
        what = "nobody is signed out."
    return f"The signing secret is another one. {when}; {what}"
