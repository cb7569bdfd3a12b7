"""`larder outbox`: the mail of a deployment without an email sender."""

from typing import TYPE_CHECKING

import click

from larder import clock
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.ids import the_only
from larder_cli.output import Record, echo, print_json, print_record, print_table

if TYPE_CHECKING:
    from larder.mail.models import StoredMessage


def _headers(stored: "StoredMessage") -> Record:
    return {
        "id": stored.id,
        "sent_at": stored.sent_at,
        "to": stored.message.to,
        "subject": stored.message.subject,
    }


@click.group(
    cls=CommandGroup,
    epilog=examples("larder outbox list", "larder outbox show 01a1fe00189f3d14cce097faeb24"),
)
def outbox() -> None:
    """Read mail that was stored instead of sent.

    A deployment without an email sender stores its mail in the outbox. If you can read it, you can follow its links,
    for example to verify an address or reset a password.
    """


@outbox.command(
    "list", epilog=examples("larder outbox list", "larder outbox list --limit 500 --json")
)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="The maximum number of messages to show.",
)
@table_options
def list_(limit: int, as_json: bool) -> None:
    """List messages, newest first."""
    print_table(
        [_headers(stored) for stored in _newest(limit)],
        ("id", "sent_at", "to", "subject"),
        empty="the outbox is empty",
        as_json=as_json,
    )


@outbox.command(
    "show",
    epilog=examples(
        "larder outbox show 01a1fe00189f3d14cce097faeb24",
        "larder outbox show 01a1fe00189f3d14cce097faeb24 --json",
    ),
)
@click.argument("message_id", metavar="MESSAGE_ID")
@json_option
def show(message_id: str, as_json: bool) -> None:
    """Show the message MESSAGE_ID with its link. The JSON also contains the HTML.

    MESSAGE_ID can be the first characters of the id.
    """
    from larder.mail import service

    known = the_only(message_id, service.message_ids_from(message_id), "messages")
    stored = service.find_message(known or message_id, now=clock.now())
    if stored is None:
        raise click.ClickException(
            f"there is no message {message_id}, or it has expired: `larder outbox list` lists the messages"
        )
    if as_json:
        print_json({**_headers(stored), "text": stored.message.text, "html": stored.message.html})
        return
    print_record(_headers(stored), as_json=False)
    echo("", *stored.message.text.split("\n"))


def _newest(limit: int) -> list["StoredMessage"]:
    from larder.mail import service

    found: list[StoredMessage] = []
    before = None
    while len(found) < limit:
        page = service.read_outbox(limit=limit - len(found), before=before, now=clock.now())
        found.extend(page.messages)
        before = page.next_before
        if before is None:
            break
    return found
