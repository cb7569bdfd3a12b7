"""A required provider: nobody of its domains uses a password, on any path, except for the exceptions.

Attack 26: a password although a provider is required, by sign-up, reset, or a change of the address into the domain.
Attack 32: the refusal depends on the domain alone, so it shows nobody who has an account.
"""

from dataclasses import replace
from typing import Any

import pytest

from larder import clock
from larder.accounts import access, sign_in
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import create_user, find_user, find_user_by_email
from larder.sso import service
from larder.sso.models import Mode
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD, prove, verify
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import Browser, Reply, browser_of
from tests.sso.providers import add_acme

ROOT = "root@acme.example"
NEW = "another correct horse"
REQUIRED = (403, "SSO_REQUIRED")


@pytest.fixture
def ada(aws_in_memory: None) -> User:
    return create_user("ada@acme.example", "Ada", password=PASSWORD, now=clock.now())


@pytest.fixture
def eve(aws_in_memory: None) -> User:
    """A user with an address of another domain."""
    return create_user("eve@elsewhere.example", "Eve", password=PASSWORD, now=clock.now())


def require() -> None:
    """As the operator does it, after people have signed up."""
    provider = add_acme(mode=Mode.REQUIRED, exceptions=(ROOT,))
    access.settle_access(provider, now=clock.now())


def set_mode(mode: Mode) -> None:
    service.change_provider("acme", lambda one: replace(one, mode=mode), now=clock.now())


def post(path: str, body: dict[str, Any], *, of: User | None = None) -> Reply:
    return (Browser() if of is None else browser_of(of)).post(path, body)


def try_sign_in(email: str) -> Reply:
    return post("/sign-in/email", {"email": email, "password": PASSWORD})


def try_sign_up(email: str) -> Reply:
    return post("/sign-up/email", {"email": email, "password": PASSWORD, "name": "Someone"})


@pytest.mark.parametrize("email", ["ada@acme.example", "ADA@Acme.Example", "nobody@acme.example"])
@pytest.mark.parametrize("attempt", [try_sign_in, try_sign_up])
def test_passwords_of_the_domain_are_refused(ada: User, email: str, attempt: Any) -> None:
    require()
    reply = attempt(email)
    assert reply.refusal == REQUIRED
    assert reply.json["details"] == {"provider": "acme"}
    assert find_user_by_email("nobody@acme.example") is None


def test_the_refusal_takes_the_same_calls_with_and_without_an_account(ada: User) -> None:
    require()
    made = []
    for email in ("ada@acme.example", "nobody@acme.example"):
        for attempt in (try_sign_in, try_sign_up):
            with counted() as calls:
                attempt(email)
            made.append(calls.steps)
    assert made == [[["TransactGetItems"]], [["GetItem"]]] * 2


def test_sign_in_reads_the_domain_in_the_transaction_that_reads_the_user(eve: User) -> None:
    def steps() -> list[list[str]]:
        with counted() as calls:
            assert try_sign_in(eve.email).status == 200
        return calls.steps

    free = steps()
    require()
    assert steps() == free


def test_other_domains_and_exceptions_keep_their_passwords(eve: User) -> None:
    create_user(ROOT, "Root", password=PASSWORD, now=clock.now())
    require()
    assert try_sign_in(ROOT).status == 200
    assert try_sign_in(eve.email).status == 200
    assert try_sign_in("nobody@sub.acme.example").refusal == (401, "INVALID_EMAIL_OR_PASSWORD")
    root = find_user_by_email(ROOT)
    assert root is not None
    assert root.access_until is None
    change = {"currentPassword": PASSWORD, "newPassword": NEW}
    assert post("/change-password", change, of=root).status == 200


def test_optional_undoes_it(ada: User) -> None:
    require()
    set_mode(Mode.OPTIONAL)
    access.settle_access(service.require_provider("acme"), now=clock.now())
    assert try_sign_in(ada.email).status == 200
    assert try_sign_up("new@acme.example").status == 200
    free = find_user(ada.id)
    assert free is not None
    assert free.access_until is None


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/change-password", {"currentPassword": PASSWORD, "newPassword": NEW}),
        ("/verify-password", {"password": PASSWORD}),
        ("/delete-user", {"password": PASSWORD}),
        ("/change-email", {"newEmail": "ada@elsewhere.example", "password": PASSWORD}),
        ("/change-email", {"newEmail": "ada@elsewhere.example"}),
    ],
)
def test_a_managed_user_neither_uses_nor_changes_a_password_or_the_address(
    ada: User, mailbox: Mailbox, path: str, body: dict[str, Any]
) -> None:
    require()
    reply = post(path, body, of=ada)
    assert reply.refusal == REQUIRED
    assert reply.json["details"] == {"provider": "acme"}
    assert find_user(ada.id) is not None
    assert mailbox.payloads == []


def test_a_managed_user_deletes_the_account_with_a_fresh_session(ada: User, mailbox: Mailbox) -> None:
    require()
    assert post("/delete-user", {}, of=ada).status == 200
    assert find_user(ada.id) is None


def test_nobody_changes_the_address_into_the_domain(eve: User, mailbox: Mailbox) -> None:
    require()
    change = {"newEmail": "eve@acme.example"}
    assert post("/change-email", change, of=eve).refusal == REQUIRED
    assert mailbox.payloads == []
    # An exception is one address, which its user can have.
    assert post("/change-email", {"newEmail": ROOT}, of=eve).status == 200


@pytest.mark.parametrize(
    ("old", "new"), [("eve@elsewhere.example", "eve@acme.example"), ("ada@acme.example", "ada@elsewhere.example")]
)
def test_a_link_that_was_sent_before_changes_no_address_of_the_domain(
    ada: User, eve: User, mailbox: Mailbox, old: str, new: str
) -> None:
    user = find_user_by_email(old)
    assert user is not None
    token = issue_verification_token(user, new_email=new, now=clock.now())
    require()
    reply = Browser().get(f"/verify-email?token={token}")
    assert reply.refusal == REQUIRED
    reply = Browser().get(f"/verify-email?token={token}&callbackURL=/verified")
    assert (reply.status, reply.headers["location"]) == (302, "/verified?error=sso_required")
    same = find_user(user.id)
    assert same is not None
    assert same.email == old
    set_mode(Mode.OPTIONAL)
    assert Browser().get(f"/verify-email?token={token}").status == 200


def test_a_managed_user_verifies_the_address_as_before(ada: User, mailbox: Mailbox) -> None:
    require()
    verify(ada)
    verified = find_user(ada.id)
    assert verified is not None
    prove(verified)
    proven = find_user(ada.id)
    assert proven is not None
    assert proven.proven


def test_a_reset_is_answered_as_always_and_mails_the_way_to_sign_in(ada: User, eve: User, mailbox: Mailbox) -> None:
    def ask(email: str) -> bytes:
        reply = post("/request-password-reset", {"email": email, "redirectTo": "/reset"})
        assert reply.status == 200
        return reply.body

    free = ask(eve.email)
    require()
    assert ask(ada.email) == ask("nobody@acme.example") == free
    messages = [message for message in mailbox.deliver() if message.to == ada.email]
    (message,) = messages
    assert message.subject.endswith("Sign in with Acme")
    assert mailbox.link() == "/sign-in"
    assert "/reset-password/" not in message.text
    assert not any(message.to == "nobody@acme.example" for message in mailbox.messages())


def test_a_reset_link_that_was_sent_before_sets_no_password(ada: User, mailbox: Mailbox) -> None:
    token = issue_reset_token(ada, now=clock.now())
    require()
    reply = post("/reset-password", {"newPassword": NEW, "token": token})
    assert reply.refusal == REQUIRED
    set_mode(Mode.OPTIONAL)
    assert post("/reset-password", {"newPassword": NEW, "token": token}).status == 200


@pytest.mark.parametrize("policy", ["closed", "invited", "open"])
def test_sign_up_names_the_provider_under_every_policy(aws_in_memory: None, option: SetOption, policy: str) -> None:
    require()
    option("sign_up_policy", policy)
    assert try_sign_up("new@acme.example").refusal == REQUIRED


def test_a_user_whom_the_operator_moves_into_the_domain_is_managed(eve: User, mailbox: Mailbox) -> None:
    require()
    _, moved = sign_in.give_account(eve.id, "eve@acme.example", now=clock.now())
    assert moved.access_until is not None
    _, back = sign_in.give_account(eve.id, "eve@elsewhere.example", now=clock.now())
    assert back.access_until is None
