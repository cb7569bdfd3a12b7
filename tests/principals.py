"""Principals for tests of services, which take one."""

from datetime import timedelta

from larder import clock
from larder.accounts.models import Session
from larder.api_keys.principals import Principal


class _Operator(Principal):
    """An operator in a test that does not set the option."""

    @property
    def is_operator(self) -> bool:
        return True


def by_session(user_id: str, *, is_operator: bool = False) -> Principal:
    """A user with a session that is not stored."""
    now = clock.now()
    session = Session(
        id="S" * 32,
        token_hash="",
        user_id=user_id,
        created_at=now,
        updated_at=now,
        expires_at=now + timedelta(days=1),
        generation=0,
        remembered=True,
        ip_address=None,
        user_agent=None,
    )
    return (_Operator if is_operator else Principal)(credential=session)
