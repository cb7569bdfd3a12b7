"""Parallel requests about one account: what can succeed only once succeeds once. On the local DynamoDB server.

Requests overlap as in test_key_exactness.py: held requests all read before any of them writes.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from larder import clock
from larder.accounts import service, sessions
from larder.accounts.models import Account, PasswordChange, User
from larder.accounts.sign_in import SignIn, sign_in
from larder.errors import InvalidEmailOrPassword, InvalidPassword, TooManyWrongPasswords
from larder.hashing import random_id
from tests.conftest import SetOption
from tests.functions.accounts.conftest import MAIL_CONTEXT, PASSWORD
from tests.mailbox import handed_over
from tests.proofs.overlapping import Job, Overlap, all_at_once, every_overlap, outcome

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def cheap_passwords_and_no_mail(on_the_local_server: None, option: SetOption) -> Iterator[None]:
    option("scrypt_cost", 1024)
    with handed_over():
        yield


def make() -> User:
    return service.create_user(f"{random_id(12)}@example.com", "Ada", password=PASSWORD, now=clock.now())


@every_overlap
def test_of_parallel_password_changes_one_succeeds(overlap: Overlap) -> None:
    ada = make()

    def change(number: int) -> Job:
        wanted = PasswordChange(current=PASSWORD, new=f"another password {number}", ends_other_sessions=False)
        return outcome(lambda: service.change_password(ada.id, wanted, now=clock.now()))

    done = all_at_once([change(number) for number in range(5)], overlap)
    assert Counter(one.answer for one in done) == {"done": 1, InvalidPassword.__name__: 4}


@every_overlap
@pytest.mark.parametrize("known", [True, False], ids=["known address", "unknown address"])
def test_of_parallel_guesses_from_many_addresses_ten_are_answered(overlap: Overlap, known: bool) -> None:
    email = make().email if known else f"{random_id(12)}@example.com"

    def guess(number: int) -> Job:
        context = replace(MAIL_CONTEXT, request=replace(MAIL_CONTEXT.request, ip_address=f"203.0.113.{number}"))
        given = SignIn(email=email, password=f"guess {number}")
        return outcome(lambda: sign_in(given, context, now=clock.now()))

    done = all_at_once([guess(number) for number in range(60)], overlap)
    assert Counter(one.answer for one in done) == {
        InvalidEmailOrPassword.__name__: 10,
        TooManyWrongPasswords.__name__: 50,
    }
    with pytest.raises(TooManyWrongPasswords):
        sign_in(SignIn(email=email, password=PASSWORD), MAIL_CONTEXT, now=clock.now())


@every_overlap
def test_no_parallel_change_of_a_user_is_lost(overlap: Overlap) -> None:
    ada = make()

    def dotted(account: Account) -> Account:
        return replace(account, user=replace(account.user, name=f"{account.user.name}."))

    done = all_at_once([outcome(lambda: service.change_account(ada.id, dotted))] * 5, overlap)
    assert Counter(one.answer for one in done) == {"done": 5}
    assert service.read_account(ada.id).user.name == "Ada....."


@every_overlap
def test_no_session_outlives_the_revocation_of_all(overlap: Overlap) -> None:
    """Sessions start while all are revoked: none that started from the old user is valid."""
    ada = make()
    tokens: list[str] = []

    def begin() -> object:
        tokens.append(sessions.start_session(ada, now=clock.now())[1])
        return None

    all_at_once([outcome(begin)] * 5 + [outcome(lambda: sessions.revoke_sessions(ada.id))] * 3, overlap)
    assert [sessions.find_session(token, now=clock.now()) for token in tokens] == [None] * 5
