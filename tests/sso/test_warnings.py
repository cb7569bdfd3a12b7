"""The mail a week before the access of a managed user ends."""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts import access
from larder.accounts.models import User
from larder.accounts.service import create_user, delete_user
from larder.sso.models import Mode
from larder.sso.service import require_provider
from larder.tables import IDENTITY
from tests.conftest import Clock, SetOption
from tests.mailbox import Mailbox
from tests.moto_sockets import watching
from tests.requests import Cloud, invoke
from tests.sso.people import end_access
from tests.sso.providers import add_acme

DAY = timedelta(days=1)
SUBJECT = "Sign in to keep your keys"


@pytest.fixture
def bob(cloud: Cloud, later: Clock, mailbox: Mailbox) -> User:
    """A managed user who signs in with the provider today."""
    add_acme(mode=Mode.REQUIRED)
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    signs_in(bob)
    return bob


def signs_in(user: User) -> None:
    until = require_provider("acme").access_until(user.email, now=clock.now())
    end_access(user, at=until)


def sweep() -> None:
    invoke("accounts.sweep_deleted_users.handler", {})


def warnings(mailbox: Mailbox) -> list[str]:
    """The addresses that were warned, the first one first."""
    sent = [message for message in mailbox.deliver() if message.subject.endswith(SUBJECT)]
    return [message.to for message in reversed(sent)]


def test_the_user_is_warned_once_a_week_before(bob: User, later: Clock, mailbox: Mailbox) -> None:
    later.pass_(23 * DAY - timedelta(milliseconds=1))
    sweep()
    assert warnings(mailbox) == []
    later.pass_(timedelta(milliseconds=1))
    sweep()
    assert warnings(mailbox) == ["bob@acme.example"]
    (message,) = mailbox.messages()
    assert "because you have not signed in with Acme for some time" in message.text
    assert "https://cache.example.com/sign-in" in message.text
    for _ in range(8):
        later.pass_(DAY)
        sweep()
    assert mailbox.payloads == []


def test_the_link_begins_with_the_address_of_the_option(
    bob: User, later: Clock, mailbox: Mailbox, option: SetOption
) -> None:
    option("base_url", "https://larder.example.org")
    later.pass_(25 * DAY)
    sweep()
    assert mailbox.link() == "/sign-in"
    assert "https://larder.example.org/sign-in" in mailbox.messages()[0].text


def test_each_end_gets_a_warning(bob: User, later: Clock, mailbox: Mailbox) -> None:
    for _ in range(2):
        later.pass_(25 * DAY)
        sweep()
        assert warnings(mailbox) == ["bob@acme.example"]
        signs_in(bob)
        sweep()
        assert mailbox.payloads == []


def test_a_short_time_has_its_warning_in_the_last_quarter(bob: User, later: Clock, mailbox: Mailbox) -> None:
    """Otherwise each sign-in would be followed by a mail."""
    end_access(bob, at=clock.now() + 4 * DAY)
    sweep()
    later.pass_(3 * DAY - timedelta(milliseconds=1))
    sweep()
    assert mailbox.payloads == []
    later.pass_(timedelta(milliseconds=1))
    sweep()
    assert warnings(mailbox) == ["bob@acme.example"]


def test_nobody_is_warned_who_has_signed_in_meanwhile(bob: User, later: Clock, mailbox: Mailbox) -> None:
    later.pass_(25 * DAY)
    sweep()
    signs_in(bob)
    assert warnings(mailbox) == []


@pytest.mark.parametrize("gone", ["suspended", "deleted", "free"])
def test_nobody_is_warned_whose_access_ends_otherwise_or_not_at_all(
    bob: User, later: Clock, mailbox: Mailbox, gone: str
) -> None:
    later.pass_(25 * DAY)
    match gone:
        case "suspended":
            access.suspend_user(bob.id, now=clock.now())
        case "deleted":
            delete_user(bob.id, now=clock.now())
        case "free":
            end_access(bob, at=None)
    sweep()
    assert warnings(mailbox) == []


def test_nothing_is_left_of_an_end_that_has_passed(bob: User, later: Clock) -> None:
    assert IDENTITY.get("ending-access", bob.id)
    later.pass_(31 * DAY)
    sweep()
    assert IDENTITY.get("ending-access", bob.id) is None
    signs_in(bob)
    assert IDENTITY.get("ending-access", bob.id)
    end_access(bob, at=None)
    assert IDENTITY.get("ending-access", bob.id) is None


def test_the_sweep_reads_no_table(bob: User, later: Clock) -> None:
    later.pass_(25 * DAY)
    operations = []
    with watching(lambda operation, _: operations.append(operation)):
        sweep()
    assert "Scan" not in operations
    # Ending access, keys and memberships, changed places, deleted users, and public read keys over their bounds.
    assert operations.count("Query") == 6
