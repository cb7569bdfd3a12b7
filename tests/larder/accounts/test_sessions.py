"""Sessions start with a sign-in, are found only by their token, and end for good."""

from datetime import datetime, timedelta

import pytest

from larder import clock
from larder.accounts import sessions
from larder.accounts.models import Session, User
from larder.accounts.service import create_user
from larder.accounts.sessions import (
    extend_session,
    find_session,
    list_sessions,
    revoke_session,
    revoke_sessions,
    start_session,
)
from larder.errors import NotSignedIn
from larder.instance import restart
from tests.conftest import SetOption

DAY = timedelta(days=1)


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def ada(aws_in_memory: None, now: datetime) -> User:
    return create_user("ada@example.com", "Ada", now=now)


@pytest.fixture(params=["by an instance that has cached it", "by another instance"])
def find(request: pytest.FixtureRequest) -> object:
    """Look a session up, with and without the cache of the instance."""

    def look_up(token: str, *, now: datetime) -> tuple[Session, User] | None:
        if request.param == "by another instance":
            restart()
        return find_session(token, now=now)

    return look_up


def test_a_session_is_found_by_its_token(ada: User, now: datetime, find: object) -> None:
    session, token = start_session(ada, ip_address="192.0.2.1", user_agent="x" * 300, now=now)
    assert len(token) == 32
    assert session.user_agent == "x" * 256
    assert find(token, now=now) == (session, ada)  # type: ignore[operator]
    assert find(token, now=now) == (session, ada)  # type: ignore[operator]


@pytest.mark.parametrize("token", ["", "A" * 32, "A" * 31, "A" * 3000, "#" * 32, "\ud800" * 32])
def test_an_unknown_token_finds_nothing(ada: User, now: datetime, token: str) -> None:
    assert find_session(token, now=now) is None


def test_a_session_lives_for_seven_days(ada: User, now: datetime, find: object) -> None:
    _, token = start_session(ada, now=now)
    assert find(token, now=now + 7 * DAY - timedelta(milliseconds=1))  # type: ignore[operator]
    assert find(token, now=now + 7 * DAY) is None  # type: ignore[operator]


def test_a_session_that_is_not_remembered_lasts_a_day_and_is_never_extended(ada: User, now: datetime) -> None:
    session, token = start_session(ada, remembered=False, now=now)
    assert find_session(token, now=now + DAY) is None
    assert extend_session(session, ada, now=now + DAY / 2) == session


def test_a_session_is_extended_after_a_day(ada: User, now: datetime) -> None:
    session, token = start_session(ada, now=now)
    assert extend_session(session, ada, now=now + DAY - timedelta(seconds=1)) == session
    extended = extend_session(session, ada, now=now + DAY)
    assert extended.expires_at == now + 8 * DAY
    assert find_session(token, now=now + 7 * DAY + DAY / 2) == (extended, ada)


def test_a_session_in_daily_use_ends_after_90_days(ada: User, now: datetime, find: object) -> None:
    session, token = start_session(ada, now=now)
    for day in range(1, 90):
        session = extend_session(session, ada, now=now + day * DAY)
    assert session.expires_at == now + 90 * DAY
    assert find(token, now=now + 90 * DAY - timedelta(milliseconds=1))  # type: ignore[operator]
    assert find(token, now=now + 90 * DAY) is None  # type: ignore[operator]


def test_a_session_at_its_maximum_age_is_not_written_again(ada: User, now: datetime) -> None:
    session, _ = start_session(ada, now=now)
    for day in range(1, 85):
        session = extend_session(session, ada, now=now + day * DAY)
    assert extend_session(session, ada, now=now + 85 * DAY) == session


def test_a_lower_maximum_age_ends_existing_sessions(ada: User, now: datetime, option: SetOption) -> None:
    _, token = start_session(ada, now=now)
    option("session_max_age_seconds", 3600)
    assert find_session(token, now=now + timedelta(minutes=59))
    assert find_session(token, now=now + timedelta(hours=1)) is None


def test_a_revoked_session_is_not_extended(ada: User, now: datetime) -> None:
    session, token = start_session(ada, now=now)
    revoke_session(ada.id, token)
    assert extend_session(session, ada, now=now + DAY) == session
    assert find_session(token, now=now + DAY) is None


@pytest.mark.parametrize("by", ["token", "token_hash"])
def test_a_revoked_session_is_not_found_at_the_next_request(ada: User, now: datetime, find: object, by: str) -> None:
    session, token = start_session(ada, now=now)
    _, other = start_session(ada, now=now)
    find(token, now=now)  # type: ignore[operator]
    revoke_session(ada.id, token if by == "token" else session.token_hash)
    assert find(token, now=now) is None  # type: ignore[operator]
    assert find(other, now=now)  # type: ignore[operator]


@pytest.mark.parametrize("by", ["token", "token_hash"])
def test_another_users_session_cannot_be_revoked(ada: User, now: datetime, find: object, by: str) -> None:
    bob = create_user("bob@example.com", "Bob", now=now)
    session, token = start_session(ada, now=now)
    revoke_session(bob.id, token if by == "token" else session.token_hash)
    assert find(token, now=now)  # type: ignore[operator]


def test_all_sessions_can_be_revoked_at_once(ada: User, now: datetime, find: object) -> None:
    tokens = [start_session(ada, now=now)[1] for _ in range(3)]
    for token in tokens:
        find(token, now=now)  # type: ignore[operator]
    revoke_sessions(ada.id)
    assert [find(token, now=now) for token in tokens] == [None] * 3  # type: ignore[operator]


def test_all_sessions_except_one_can_be_revoked_at_once(ada: User, now: datetime, find: object) -> None:
    kept, kept_token = start_session(ada, now=now)
    _, other = start_session(ada, now=now)
    revoke_sessions(ada.id, kept=kept)
    assert find(kept_token, now=now)  # type: ignore[operator]
    assert find(other, now=now) is None  # type: ignore[operator]
    later = sessions.find_session(kept_token, now=now)
    assert later is not None
    _, fresh = start_session(later[1], now=now)
    assert find(fresh, now=now)  # type: ignore[operator]


def test_two_sessions_that_revoke_each_other_concurrently_do_not_both_stay(ada: User, now: datetime) -> None:
    mine, my_token = start_session(ada, now=now)
    other, other_token = start_session(ada, now=now)
    revoke_sessions(ada.id, kept=mine)
    with pytest.raises(NotSignedIn):
        revoke_sessions(ada.id, kept=other)  # with the session as it was read before
    assert find_session(my_token, now=now)
    assert find_session(other_token, now=now) is None


def test_a_session_that_revokes_the_others_twice_concurrently_stays(ada: User, now: datetime) -> None:
    mine, token = start_session(ada, now=now)
    revoke_sessions(ada.id, kept=mine)
    revoke_sessions(ada.id, kept=mine)  # with the session as it was read before
    assert find_session(token, now=now)


def test_a_concurrent_extension_does_not_revoke_a_kept_session(ada: User, now: datetime) -> None:
    session, token = start_session(ada, now=now - DAY)
    revoke_sessions(ada.id, kept=session)
    assert extend_session(session, ada, now=now) == session  # with the session as it was read before
    assert find_session(token, now=now)


def test_a_sign_in_that_raced_with_the_revocation_of_all_sessions_is_invalid(ada: User, now: datetime) -> None:
    revoke_sessions(ada.id)
    _, token = start_session(ada, now=now)  # with the user as it was read before
    assert find_session(token, now=now) is None


def test_the_list_shows_valid_sessions_newest_first(ada: User, now: datetime, option: SetOption) -> None:
    old, _ = start_session(ada, now=now - 8 * DAY)
    first, _ = start_session(ada, now=now - DAY)
    second, token = start_session(ada, now=now)
    assert list_sessions(ada, now=now) == [second, first]
    revoke_session(ada.id, token)
    assert list_sessions(ada, now=now) == [first]
    assert old.expires_at < now


def test_only_the_hash_of_the_token_is_stored(ada: User, now: datetime) -> None:
    from larder import aws
    from larder.settings import settings

    _, token = start_session(ada, now=now)
    stored = aws.dynamodb().scan(TableName=settings().identity_table)
    assert stored["Count"] == 4
    assert token not in str(stored)
