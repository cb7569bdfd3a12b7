"""The limits and the paths that they apply to (docs/clients/better-auth.md#request-rates).

| Paths under `/api/auth` | Limit |
|---|---|
| `/sign-in`, `/sign-up`, `/change-password`, `/change-email` and the paths under them | `CREDENTIALS` |
| `/verify-password`, `/delete-user` | `CREDENTIALS` |
| `/sign-in/social`, `/sign-in/sso`, `/sign-in/providers`, `/callback` | `PROVIDER_SIGN_IN` |
| `/request-password-reset`, `/send-verification-email` | `MAIL` |
| `/api-key/verify` | none: each key has its own limit, and the caller is a server that verifies keys of many users |
| all others | the default, which the deployment's options set |

`/registration/verify`, which is not under `/api/auth`, has `LOGIN_CODES`.

Creating teams and inviting people is counted per user, not per client address: `TEAMS_MADE`, `INVITATIONS`,
`INVITATIONS_TO_ONE`. So are changes of the address (`EMAIL_CHANGES`). Emails are counted per recipient when they are
sent: `MAIL_IN_AN_HOUR`, `MAIL_IN_A_DAY`. Wrong passwords are counted per account, too (`guesses.py`). Refused id tokens
are counted per client address (`FAILED_EXCHANGES`), and keys of CI jobs per team, trusted jobs apart from others, with
the option's limit. Bytes of reported runs and of their inputs are counted per writer, owner and deployment
(`reports.py`), and comparisons per writer (`COMPARISONS`). Codes that a provider refuses are counted per client address
(`REFUSED_CODES`), and token requests are counted per identity provider (`PROVIDER_TOKENS`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most `most` requests per window. Windows of `window_s` seconds follow each other from 1970 on."""

    most: int
    window_s: int

    def window_at(self, now: datetime) -> int:
        """The start of the window that contains `now`, in seconds since 1970."""
        seconds = int(now.timestamp())
        return seconds - seconds % self.window_s


CREDENTIALS = Limit(most=3, window_s=10)
"""Requests that check or set a password. An attacker can guess 18 times a minute."""

MAIL = Limit(most=3, window_s=60)
"""Requests that send email to an address that the caller chooses."""

LOGIN_CODES = Limit(most=10, window_s=60)
"""Requests that exchange a login code. turbo sends one, and another one after a 429."""

PREVIEWS = Limit(most=20, window_s=60)
"""Requests with the token of an invitation, without a session. The page sends one when it opens."""

TEAMS_MADE = Limit(most=10, window_s=3600)
"""Teams that one user creates, and new slugs of teams. No one else can ever have one of these slugs."""

FAILED_EXCHANGES = Limit(most=30, window_s=60)
"""Id tokens of one client address that are refused. Those that give a key are not counted here."""

PROVIDER_SIGN_IN = Limit(most=30, window_s=10)
"""Requests of a sign-in with a provider. They test no password and write nothing, and an office shares an address."""

REFUSED_CODES = Limit(most=30, window_s=60)
"""Codes of one client address that a provider refuses. A code that is being exchanged counts until it is accepted."""

PROVIDER_TOKENS = Limit(most=20, window_s=1)
"""Token requests to one provider, which would block us if strangers caused many."""

INVITATIONS = Limit(most=60, window_s=3600)
"""Invitations that one user sends. They are unrequested email."""

INVITATIONS_TO_ONE = Limit(most=3, window_s=3600)
"""Invitations that one address gets from one team."""

COMPARISONS = Limit(most=60, window_s=3600)
"""Comparisons of one user, own scope or trusted credential that store nothing. Each could try a value of a variable."""

EMAIL_CHANGES = Limit(most=10, window_s=3600)
"""Changes of the address that one user asks for. Each sends an email, perhaps to an address that is not theirs."""

MAIL_IN_AN_HOUR = Limit(most=5, window_s=3600)
MAIL_IN_A_DAY = Limit(most=20, window_s=86_400)
"""Emails of one sort that one address gets."""

BY_PATH: MappingProxyType[str, Limit | None] = MappingProxyType(
    {
        "/sign-in/social": PROVIDER_SIGN_IN,
        "/sign-in/sso": PROVIDER_SIGN_IN,
        "/sign-in/providers": PROVIDER_SIGN_IN,
        "/callback": PROVIDER_SIGN_IN,
        "/sign-in": CREDENTIALS,
        "/sign-up": CREDENTIALS,
        "/change-password": CREDENTIALS,
        "/verify-password": CREDENTIALS,
        "/delete-user": CREDENTIALS,
        "/change-email": CREDENTIALS,
        "/request-password-reset": MAIL,
        "/send-verification-email": MAIL,
        "/api-key/verify": None,
        "/registration/verify": LOGIN_CODES,
        "/v1/teams/invitation": PREVIEWS,
    }
)
"""Each limit applies to the path and to the paths under it. The first one that fits counts."""

FREE_GUESSES = 10
"""Wrong passwords before the first delay."""

_GUESSING_PERIOD = timedelta(minutes=10)
_FIRST_DELAY = timedelta(minutes=1)
_LONGEST_DELAY = timedelta(minutes=15)
_FORGOTTEN_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Wrong passwords of one account since `since`. `refused_until` is None before the first delay."""

    wrong: int
    since: datetime
    refused_until: datetime | None

    @property
    def ends_at(self) -> datetime:
        """When the next wrong password begins a new count."""
        if self.refused_until is None:
            return self.since + _GUESSING_PERIOD
        return self.refused_until + _FORGOTTEN_AFTER

    def is_over(self, now: datetime) -> bool:
        return now >= self.ends_at

    @staticmethod
    def delay_after(wrong: int) -> timedelta | None:
        """The delay that the wrong password with this number begins, if any."""
        if wrong < FREE_GUESSES:
            return None
        doublings = min(wrong - FREE_GUESSES, 10)
        return min(_FIRST_DELAY * (1 << doublings), _LONGEST_DELAY)
