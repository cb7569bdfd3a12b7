"""Parallel sign-ups with one address create one user. On the local DynamoDB server, as in test_key_exactness."""

import secrets
from collections import Counter
from collections.abc import Callable
from itertools import cycle, islice

import pytest

from larder import aws, clock
from larder.accounts.email_jobs import MailContext, RequestDescription, SignUpAgain, VerifyEmail
from larder.accounts.passwords import verify_password
from larder.accounts.repository import get_account
from larder.accounts.sessions import find_session, revoke_sessions
from larder.accounts.sign_in import SignIn, SignUp, sign_in, sign_up
from larder.errors import NotSignedIn, UserAlreadyExists
from larder.settings import settings
from tests.conftest import SetOption
from tests.mailbox import Mailbox, handed_over
from tests.proofs.overlapping import Overlap, all_at_once, every_overlap, most_under_way

pytestmark = pytest.mark.slow

AT_ONCE = 20
MAIL_CONTEXT = MailContext(
    base_url="https://cache.example.com",
    request=RequestDescription(method="POST", path="/", ip_address=None, user_agent=None),
)


@pytest.fixture
def address(on_the_local_server: None, option: SetOption) -> str:
    """A new address, on the local server."""
    option("scrypt_cost", 1024)
    return f"jos\u00e9-{secrets.token_hex(6)}@b\u00fccher.example"


def spellings(address: str) -> list[str]:
    """Different spellings of the address."""
    return [
        address,
        address.upper(),
        address.replace("\u00e9", "e\u0301"),
        address.replace("b\u00fccher.example", "xn--bcher-kva.example"),
        address.replace("example", "\uff45xample"),
    ]


def sign_ups(address: str) -> list[Callable[[], tuple[str, str | None] | None]]:
    """One sign-up in each thread, each with its own password. Each returns the user's id and the token."""

    def job(number: int, email: str) -> Callable[[], tuple[str, str | None] | None]:
        def run() -> tuple[str, str | None] | None:
            given = SignUp(name=f"No. {number}", email=email, password=f"password {number}")
            try:
                user, started = sign_up(given, MAIL_CONTEXT, now=clock.now())
            except UserAlreadyExists:
                return None
            return user.id, started.token if started else None

        return run

    emails = islice(cycle(spellings(address)), AT_ONCE)
    return [job(number, email) for number, email in enumerate(emails)]


def users_of(address: str) -> set[str]:
    """The ids of the users with any of the spellings, from both of their items."""
    pages = aws.dynamodb().get_paginator("scan").paginate(TableName=settings().identity_table)
    items = [aws.deserialize(item) for page in pages for item in page["Items"]]
    unique = address.partition("@")[0].partition("-")[2]
    return {item["user_id"] for item in items if item["sk"] == "user" and unique in item["email"].lower()}


def passwords_of(address: str) -> list[int]:
    """The numbers of the sign-ups whose password the user has. After ten wrong ones, sign-in would refuse all."""
    account = get_account(address)
    assert account is not None
    assert account.credential is not None
    stored = account.credential.password_hash
    return [number for number in range(AT_ONCE) if verify_password(f"password {number}", stored)]


@every_overlap
def test_one_of_many_sign_ups_with_an_address_creates_a_user(overlap: Overlap, address: str) -> None:
    done = all_at_once(sign_ups(address), overlap)
    assert most_under_way(done) >= (AT_ONCE if overlap.held else 4), "they did not overlap"
    (winner,) = [number for number, one in enumerate(done) if one.answer is not None]
    answer = done[winner].answer
    assert answer is not None
    user_id, token = answer
    assert users_of(address) == {user_id}
    assert token is not None
    assert find_session(token, now=clock.now()) is not None
    assert passwords_of(address) == [winner]


@every_overlap
def test_with_required_verification_no_reply_shows_which_one_did(
    overlap: Overlap, address: str, option: SetOption
) -> None:
    option("require_email_verification", "true")
    with handed_over() as payloads:
        done = all_at_once(sign_ups(address), overlap)
    answers = [one.answer for one in done]
    assert all(answer is not None and answer[1] is None for answer in answers)
    ids = {answer[0] for answer in answers if answer is not None}
    assert len(ids) == AT_ONCE
    assert len(users_of(address) & ids) == len(users_of(address)) == 1
    kinds = Counter(type(job) for job in Mailbox(payloads).jobs)
    assert kinds == {VerifyEmail: 1, SignUpAgain: AT_ONCE - 1}


@every_overlap
def test_of_sessions_that_revoke_each_other_one_stays(overlap: Overlap, address: str) -> None:
    user, first = sign_up(SignUp(name="Ada", email=address, password="password 0"), MAIL_CONTEXT, now=clock.now())
    given = SignIn(email=address, password="password 0")
    others = [sign_in(given, MAIL_CONTEXT, now=clock.now())[1] for _ in range(5)]
    tokens = [started.token for started in (first, *others) if started]
    kept = [found[0] for token in tokens if token and (found := find_session(token, now=clock.now()))]
    assert len(kept) == len(tokens)

    def keep(number: int) -> Callable[[], bool]:
        def run() -> bool:
            try:
                revoke_sessions(user.id, kept=kept[number])
            except NotSignedIn:
                return False
            return True

        return run

    answers = [one.answer for one in all_at_once([keep(n) for n in range(len(kept))], overlap)]
    alive = [bool(token and find_session(token, now=clock.now())) for token in tokens]
    assert alive.count(True) == answers.count(True) == 1
    assert alive == answers
