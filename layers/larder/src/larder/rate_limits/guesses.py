"""Delays after wrong passwords, counted by account, because the limits by client address do not stop an attacker with
many addresses.

The first ten wrong passwords cost nothing. Then no password is accepted, not even the right one, for a minute, and
after each further wrong one for twice as long, up to 15 minutes. The right password, ten minutes without ten wrong
ones, or an hour after a delay starts the count again.

Parallel requests cannot get more tries: a wrong password is only reported to the client after it was counted, by a
conditional write, and the right one is only accepted in a transaction that checks that no delay is running. So a
sign-in with the right password makes no additional call.

Addresses without an account are counted in the same way. The counters of sign-in and of signed-in users are separate,
so that a stranger does not affect an owner who is signed in. A mailed link that resets the password gives its client
address a counter of its own, so that a stranger cannot keep an owner out of sign-in.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, NoReturn

from larder.concurrency import attempts
from larder.errors import TooManyWrongPasswords, TryAgain
from larder.hashing import hash_key
from larder.metrics import count
from larder.rate_limits import repository
from larder.rate_limits.models import FREE_GUESSES, Guesses
from larder.settings import settings

if TYPE_CHECKING:
    from larder.tables import Write

_OWN_LASTS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Counter:
    """The wrong passwords of one account, in one place where passwords are checked."""

    name: str

    @property
    def place(self) -> str:
        return self.name.partition("#")[0]

    def own_of(self, client_address: str | None) -> "Counter":
        """The counter of a client address that has just reset the password by a mailed link."""
        return Counter(f"{self.name}#{hash_key(client_address or '')}")


def at_sign_in(canonical_address: str) -> Counter:
    return Counter(f"sign-in#{hash_key(canonical_address)}")


def of_user(user_id: str) -> Counter:
    """For endpoints that ask a signed-in user for the password."""
    return Counter(f"password-of#{user_id}")


def count_wrong(counter: Counter, *, now: datetime) -> None:
    """Count a wrong password. Raises TooManyWrongPasswords during a delay, when it must not be reported as wrong."""
    if not settings().http_rate_limit_enabled:
        return
    count("WrongPasswords", at=counter.place)
    # Another request has counted a wrong password whenever the write fails, so ten attempts lead to a delay. The others
    # are for right passwords that start the count again. There is no pause, because the last attempts must be quick.
    most = 2 * FREE_GUESSES
    for _ in attempts(most, pausing_after=most):
        old = repository.find_guesses(counter.name)
        _check(old, now)
        if repository.replace_guesses(counter.name, old, _with_another(old, now)):
            return
    raise TryAgain


def acceptance(counter: Counter, *, now: datetime) -> "tuple[Write, ...]":
    """The writes that accept a right password. Commit them before you report it. They fail during a delay."""
    if not settings().http_rate_limit_enabled:
        return ()
    return (repository.forget_guesses(counter.name, now=now),)


def accept(counter: Counter, *, now: datetime) -> None:
    """Accept a right password where nothing else is written. Raises TooManyWrongPasswords during a delay."""
    if settings().http_rate_limit_enabled and not repository.forget_now(counter.name, now=now):
        raise_refusal(counter, now=now)


def raise_refusal(counter: Counter, *, now: datetime) -> NoReturn:
    """Raise TooManyWrongPasswords with the time that is left, after the writes of `acceptance` have failed."""
    _check(repository.find_guesses(counter.name), now)
    raise TryAgain  # the delay has just ended


def own_counter(counter: Counter, *, now: datetime) -> "Write":
    """The write that starts a counter of a client address, after it has reset the password by a mailed link."""
    return repository.put_guesses(counter.name, Guesses(wrong=0, since=now, refused_until=None))


def has_own_counter(counter: Counter, *, now: datetime) -> bool:
    """Whether the client address has reset the password in the last ten minutes."""
    found = repository.find_guesses(counter.name)
    return found is not None and now < found.since + _OWN_LASTS


def _check(guesses: Guesses | None, now: datetime) -> None:
    if guesses is not None and guesses.refused_until is not None and now < guesses.refused_until:
        raise TooManyWrongPasswords(max(1, ceil((guesses.refused_until - now).total_seconds())))


def _with_another(old: Guesses | None, now: datetime) -> Guesses:
    wrong, since = (1, now) if old is None or old.is_over(now) else (old.wrong + 1, old.since)
    delay = Guesses.delay_after(wrong)
    return Guesses(wrong=wrong, since=since, refused_until=None if delay is None else now + delay)
