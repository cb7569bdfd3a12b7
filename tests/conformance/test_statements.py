"""Every statement of the three interface descriptions holds, or names its row in docs/conformance.md."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user
from tests.conformance.accounts import ACCOUNTS
from tests.conformance.cache import CACHE
from tests.conformance.keys import KEYS
from tests.conformance.statement import Ask, Statement, filled, matches, parsed
from tests.conftest import SetOption
from tests.functions.api_keys.people import signed_in, verified
from tests.mailbox import Mailbox
from tests.requests import Browser, Cloud, Reply, Sender

STATEMENTS = (*CACHE, *KEYS, *ACCOUNTS)
OPERATOR = "operator@acme.example"
PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

NOT_OF_ONE_REPLY = {
    "the tag is": "needs an upload to S3",
    '"required `taskDurationMs`': "needs an upload to S3",
    '"400 ... an invalid file size"': "is the gateway's, or needs a full quota",
    "400, 401, 402, 403, 404": "needs a busy table",
    '"The interface description version': "is in a document",
    "`customKeyGenerator`": "needs a module of an integrator",
    "`schema`": "is not visible to clients",
    "expired keys": "needs many of them, and time",
    "`revokeOtherSessions`": "is about the token of the request",
    '"sendResetPassword is called"': "needs an hour",
    "called with `request`": "needs a module of an integrator",
}
"""Rows that no statement of this folder shows, by their beginning. The tests that the rows name do."""


class Scene:
    """The callers of a statement, and the links in their mail."""

    def __init__(self, cloud: Cloud, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.browser = Browser()
        operator = create_user(OPERATOR, "Operator", now=clock.now())
        other = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
        self._senders = {
            "key": cloud.send,
            "user": signed_in(cloud.user),
            "other": signed_in(other),
            "operator": signed_in(verified(operator)),
            "nobody": Sender(None, slug=cloud.team.slug),
        }
        self.names = {
            "token": cloud.token,
            "key_id": cloud.key.id,
            "user_id": cloud.user.id,
            "team_id": cloud.team.id,
            "slug": cloud.team.slug,
        }

    def send(self, ask: Ask, replies: list[Any]) -> Reply:
        names = dict(self.names)
        if "{mail}" in ask.path:
            names["mail"] = self.mailbox.link().removeprefix("/api/auth")
        elif "{mail_token}" in str(ask.json):
            names["mail_token"] = re.split(r"[?/]", self.mailbox.link())[4]
        path = filled(ask.path, replies, names)
        headers = filled(ask.headers, replies, names)
        json_body = filled(ask.json, replies, names)
        if ask.by == "browser":
            if ask.method == "GET":
                return self.browser.get(path, headers=headers)
            return self.browser.post(path, json_body, headers=headers)
        sender = self._senders[ask.by]
        if ask.query is not None:
            sender = Sender(sender.token, query=filled(ask.query, replies, names))
        if path.startswith("/api/auth"):
            sender = Sender(sender.token)
        return sender(ask.method, path, json_body=json_body, body=ask.body, headers=headers)


def holds(statement: Statement, scene: Scene) -> tuple[bool, Reply]:
    replies: list[Any] = []
    *earlier, last = statement.asks
    for ask in earlier:
        replies.append(parsed(scene.send(ask, replies).body))
    before = len(scene.mailbox.payloads)
    reply = scene.send(last, replies)
    replies.append(parsed(reply.body))
    says = statement.says
    expected = filled(says.json, replies, scene.names)
    return (
        reply.status == says.status
        and matches(expected, replies[-1])
        and matches(says.headers, reply.headers)
        and says.body in (None, reply.body)
        and says.mails in (None, len(scene.mailbox.payloads) - before)
    ), reply


def rows() -> list[str]:
    """The cell *Description* of each row."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [line.strip("|").split(" | ")[1].strip() for line in lines]
    return [cell for cell in cells if cell != "Description"]


@pytest.fixture
def scene(cloud: Cloud, mailbox: Mailbox, option: SetOption) -> Scene:
    option("operator_emails", OPERATOR)
    option("scrypt_cost", 1024)
    return Scene(cloud, mailbox)


def _set(option: SetOption, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        option(name, str(value))


@pytest.mark.parametrize("statement", [one for one in STATEMENTS if one.row is None], ids=lambda one: one.id)
def test_the_statement_holds(statement: Statement, scene: Scene, option: SetOption) -> None:
    _set(option, statement.options)
    held, reply = holds(statement, scene)
    assert held, (statement.text, statement.says, reply)


@pytest.mark.parametrize("statement", [one for one in STATEMENTS if one.row is not None], ids=lambda one: one.id)
def test_what_differs_from_a_statement_has_a_row(statement: Statement, scene: Scene, option: SetOption) -> None:
    assert [cell for cell in rows() if cell.startswith(statement.row or "")], "the row is missing"
    _set(option, statement.options)
    held, reply = holds(statement, scene)
    assert not held, ("the row is not needed: the statement holds", statement.text, reply)


def test_every_row_is_about_a_statement() -> None:
    named = [statement.row for statement in STATEMENTS if statement.row is not None]
    without = [cell for cell in rows() if not any(cell.startswith(start) for start in (*named, *NOT_OF_ONE_REPLY))]
    assert without == []


def test_ids_are_unique() -> None:
    assert [id for id, count in Counter(statement.id for statement in STATEMENTS).items() if count > 1] == []
