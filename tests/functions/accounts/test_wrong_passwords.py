"""Wrong passwords, counted by account: what an attacker with many addresses gets, and what the owner can still do."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest

from larder import aws, clock
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.settings import settings
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.mailbox import Mailbox
from tests.requests import Browser, Reply, browser_of

WRONG = (401, "INVALID_EMAIL_OR_PASSWORD")
REFUSED = (429, None)
OWNER = "198.51.100.7"

_addresses = count()


@pytest.fixture(autouse=True)
def many_client_addresses(option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    option("trusted_proxy_hops", 1)


def from_client(address: str) -> dict[str, str]:
    """The header of a request that a trusted proxy passes on."""
    return {"x-forwarded-for": f"{address}, 192.0.2.1"}


def another_address() -> dict[str, str]:
    """The header of a request from a client address that no request came from before."""
    number = next(_addresses)
    return from_client(f"203.{number >> 16}.{number >> 8 & 255}.{number & 255}")


def sign_in(password: str, email: str = "ada@example.com", client: str | None = None) -> Reply:
    headers = another_address() if client is None else from_client(client)
    return Browser().post("/sign-in/email", {"email": email, "password": password}, headers=headers)


def refusal(reply: Reply) -> tuple[int, str | None]:
    return reply.status, reply.json.get("code")


def guess(times: int, email: str = "ada@example.com") -> list[tuple[int, str | None]]:
    return [refusal(sign_in(f"guess {number}", email)) for number in range(times)]


Wait = Callable[[timedelta], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """Let time pass."""
    passed = timedelta()
    real = clock.now

    def later(by: timedelta) -> None:
        nonlocal passed
        passed += by

    monkeypatch.setattr(clock, "now", lambda: real() + passed)
    return later


def test_guesses_from_many_addresses_are_refused_after_ten(ada: User) -> None:
    assert guess(60) == [WRONG] * 10 + [REFUSED] * 50
    assert refusal(sign_in(PASSWORD)) == REFUSED


@pytest.mark.parametrize("email", ["nobody@example.com", "NOBODY@example.com"])
def test_an_unknown_address_is_counted_in_the_same_way(ada: User, email: str) -> None:
    known, unknown = guess(12), guess(12, email)
    assert unknown == known == [WRONG] * 10 + [REFUSED] * 2
    replies = [sign_in("guess"), sign_in("guess", email)]
    assert replies[0].json == replies[1].json


def test_spellings_of_an_address_count_together(ada: User) -> None:
    guess(5)
    guess(5, " ADA@example.com")
    assert refusal(sign_in(PASSWORD)) == REFUSED


def test_accounts_are_counted_separately(ada: User, bob: User) -> None:
    guess(12)
    assert sign_in(PASSWORD, bob.email).status == 200


def test_the_refusal_says_how_long_to_wait(ada: User) -> None:
    guess(10)
    reply = sign_in(PASSWORD)
    assert 0 < int(reply.headers["retry-after"]) <= 60
    assert reply.headers["x-retry-after"] == reply.headers["retry-after"]
    assert "reset the password" in reply.json["message"]


def test_delays_end_and_double_up_to_15_minutes(ada: User, wait: Wait) -> None:
    guess(10)
    minutes = []
    for _ in range(7):
        seconds = int(sign_in("guess").headers["retry-after"])
        minutes.append(round(seconds / 60))
        wait(timedelta(seconds=seconds))
        assert guess(2) == [WRONG, REFUSED]
    assert minutes == [1, 2, 4, 8, 15, 15, 15]
    wait(timedelta(minutes=15))
    assert sign_in(PASSWORD).status == 200


def test_the_right_password_starts_the_count_again(ada: User) -> None:
    guess(9)
    assert sign_in(PASSWORD).status == 200
    assert guess(11) == [WRONG] * 10 + [REFUSED]


@pytest.mark.parametrize(("wrong", "minutes"), [(9, 10), (10, 61)], ids=["before a delay", "after a delay"])
def test_wrong_passwords_are_forgotten(ada: User, wait: Wait, wrong: int, minutes: int) -> None:
    guess(wrong)
    wait(timedelta(minutes=minutes))
    assert guess(11) == [WRONG] * 10 + [REFUSED]


def test_a_session_stays_usable_while_sign_in_is_refused(ada: User) -> None:
    browser = browser_of(ada)
    guess(12)
    assert browser.get("/get-session").json["user"]["id"] == ada.id
    assert browser.post("/verify-password", {"password": PASSWORD}).status == 200


def test_a_mailed_link_lets_the_owner_in_while_a_stranger_goes_on_guessing(ada: User, mailbox: Mailbox) -> None:
    guess(12)
    token = issue_reset_token(ada, now=clock.now())
    body = {"newPassword": "another correct horse", "token": token}
    headers = from_client(OWNER)
    assert Browser().post("/reset-password", body, headers=headers).status == 200
    assert guess(2) == [REFUSED] * 2
    assert sign_in("another correct horse", client=OWNER).status == 200
    assert refusal(sign_in("another correct horse")) == REFUSED


def test_the_address_of_a_reset_gets_ten_guesses_of_its_own(ada: User, mailbox: Mailbox, wait: Wait) -> None:
    """It may be an address that many people share."""
    guess(12)
    body = {"newPassword": "another correct horse", "token": issue_reset_token(ada, now=clock.now())}
    Browser().post("/reset-password", body, headers=from_client(OWNER))
    tries = []
    for number in range(12):
        wait(timedelta(seconds=4))  # at most three requests in ten seconds
        tries.append(refusal(sign_in(f"guess {number}", client=OWNER)))
    assert tries == [WRONG] * 10 + [REFUSED] * 2


ASKING = {
    "verify-password": ("/verify-password", "password"),
    "change-password": ("/change-password", "currentPassword"),
    "change-email": ("/change-email", "password"),
    "delete-user": ("/delete-user", "password"),
}


@pytest.mark.parametrize(("path", "field"), ASKING.values(), ids=ASKING)
def test_a_thief_of_a_session_gets_ten_guesses(ada: User, path: str, field: str) -> None:
    browser = browser_of(ada)
    more = {"newPassword": "another correct horse", "newEmail": "thief@evil.example"}

    def ask(password: str) -> tuple[int, str | None]:
        body = {**more, field: password}
        return refusal(browser.post(path, body, headers=another_address()))

    tries = [ask(f"guess {number}") for number in range(11)]
    assert tries == [(400, "INVALID_PASSWORD")] * 10 + [REFUSED]
    assert ask(PASSWORD) == REFUSED
    assert sign_in(PASSWORD).status == 200


def test_wrong_passwords_of_all_these_endpoints_count_together(ada: User) -> None:
    browser = browser_of(ada)
    tries = Counter(
        refusal(
            browser.post(
                path, {"newPassword": "x" * 9, field: "wrong", "newEmail": "e@x.de"}, headers=another_address()
            )
        )
        for path, field in [*ASKING.values()] * 4
    )
    assert tries == {(400, "INVALID_PASSWORD"): 10, REFUSED: 6}


def test_each_wrong_password_adds_to_a_metric(ada: User, capsys: pytest.CaptureFixture[str]) -> None:
    guess(11)
    sign_in(PASSWORD, "bob@example.com")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(line.get("WrongPasswords", 0) for line in lines) == 12


def test_a_deployment_without_rate_limits_counts_nothing(ada: User, option: SetOption) -> None:
    option("http_rate_limit_enabled", "false")
    assert guess(12) == [WRONG] * 12
    assert aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"] == []
