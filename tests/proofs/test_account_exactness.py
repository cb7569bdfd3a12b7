"""What may happen once to an account happens once, however many requests ask: on the local DynamoDB server.

The same way of making requests meet as for keys (test_key_exactness.py): held ones all read before any of them writes.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from larder import clock
from larder.accounts import links, service, sessions
from larder.accounts.models import Account, PasswordChange, User
from larder.api_keys.service import delete_keys_of
from larder.errors import InvalidEmailOrPassword, InvalidLinkToken, InvalidPassword
from larder.hashing import random_id
from tests.conftest import SetOption
from tests.functions.accounts.conftest import MAIL_CONTEXT, PASSWORD
from tests.mailbox import handed_over
from tests.proofs.overlapping import Job, Overlap, all_at_once, every_overlap, outcome

pytestmark = pytest.mark.slow

PARALLEL = 20


@pytest.fixture(autouse=True)
def cheap_passwords_and_no_mail(on_the_local_server: None, option: SetOption) -> Iterator[None]:
    option("scrypt_cost", 1024)
    with handed_over():
        yield


def make() -> User:
    return service.create_user(
        f"{random_id(12)}@example.com", "Ada", password=PASSWORD, now=clock.now()
    )


def reset(token: str, password: str) -> User:
    return links.reset_password(
        token, password, MAIL_CONTEXT, end_keys=delete_keys_of, now=clock.now()
    )


@every_overlap
def test_a_reset_token_changes_the_password_once(overlap: Overlap) -> None:
    ada = make()
    token = links.issue_reset_token(ada, now=clock.now())
    passwords = [f"another password {number}" for number in range(PARALLEL)]
    done = all_at_once(
        [
            outcome(lambda new=new: reset(token, new))  # type: ignore[misc]
            for new in passwords
        ],
        overlap,
    )
    answers = [one.answer for one in done]
    assert Counter(answers) == {"done": 1, InvalidLinkToken.__name__: PARALLEL - 1}
    assert service.check_credentials(ada.email, passwords[answers.index("done")]).id == ada.id
    assert service.read_account(ada.id).user.password_version == ada.password_version + 1


@every_overlap
def test_two_links_of_one_user_change_the_password_once(overlap: Overlap) -> None:
    ada = make()
    tokens = [links.issue_reset_token(ada, now=clock.now()) for _ in range(PARALLEL)]
    done = all_at_once(
        [
            outcome(lambda t=t: reset(t, f"password of {t}"))  # type: ignore[misc]
            for t in tokens
        ],
        overlap,
    )
    assert Counter(one.answer for one in done)["done"] == 1


@every_overlap
def test_of_changes_with_one_old_password_one_succeeds(overlap: Overlap) -> None:
    ada = make()

    def change(number: int) -> Job:
        wanted = PasswordChange(
            current=PASSWORD, new=f"another password {number}", ends_other_sessions=False
        )
        return outcome(lambda: service.change_password(ada.id, wanted, now=clock.now()))

    done = all_at_once([change(number) for number in range(5)], overlap)
    assert Counter(one.answer for one in done) == {"done": 1, InvalidPassword.__name__: 4}


@every_overlap
def test_no_change_is_lost_when_several_come_at_once(overlap: Overlap) -> None:
    ada = make()

    def dotted(account: Account) -> Account:
        return replace(account, user=replace(account.user, name=f"{account.user.name}."))

    done = all_at_once([outcome(lambda: service.change_account(ada.id, dotted))] * 5, overlap)
    assert Counter(one.answer for one in done) == {"done": 5}
    assert service.read_account(ada.id).user.name == "Ada....."


@every_overlap
def test_no_session_outlives_the_end_of_all(overlap: Overlap) -> None:
    """Sessions that begin while all are ended: none that began with the user as they were before counts."""
    ada = make()
    tokens: list[str] = []

    def begin() -> object:
        tokens.append(sessions.start_session(ada, now=clock.now())[1])
        return None

    all_at_once(
        [outcome(begin)] * 5 + [outcome(lambda: sessions.end_sessions(ada.id))] * 3, overlap
    )
    assert [sessions.find_session(token, now=clock.now()) for token in tokens] == [None] * 5


def test_a_password_that_was_changed_signs_nobody_in_any_more() -> None:
    ada = make()
    token = links.issue_reset_token(ada, now=clock.now())
    reset(token, "another password")
    with pytest.raises(InvalidEmailOrPassword):
        service.check_credentials(ada.email, PASSWORD)
