"""The named limits, and which paths they hold for (docs/clients/better-auth.md#request-rates).

| Paths under `/api/auth` | Limit |
|---|---|
| `/sign-in`, `/sign-up`, `/change-password`, `/change-email` and what lies under them | `CREDENTIALS` |
| `/verify-password`, `/delete-user` | `CREDENTIALS` |
| `/request-password-reset`, `/send-verification-email` | `MAIL` |
| `/api-key/verify` | none: each key has a limit of its own, and who asks is a server that speaks for many |
| all others | the default, which the deployment's options set |

`/registration/verify`, which is none of them, has `LOGIN_CODES`.

Making teams and inviting people are counted by the user who does it, from wherever they come: `TEAMS_MADE`,
`INVITATIONS`, `INVITATIONS_TO_ONE`.
"""

from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most `most` requests in each window; windows of `window_s` seconds follow one another from 1970 on."""

    most: int
    window_s: int

    def window_at(self, now: datetime) -> int:
        """When the window of `now` began, in seconds since 1970."""
        seconds = int(now.timestamp())
        return seconds - seconds % self.window_s


CREDENTIALS = Limit(most=3, window_s=10)
"""What takes a password, or gives one: whoever guesses gets 18 tries a minute."""

MAIL = Limit(most=3, window_s=60)
"""What sends mail to an address that the caller names."""

LOGIN_CODES = Limit(most=10, window_s=60)
"""What exchanges a code: a build client asks once, and once more when it is told to wait."""

TEAMS_MADE = Limit(most=10, window_s=3600)
"""What one user makes: each team is a name that nobody else can have, and a cache."""

INVITATIONS = Limit(most=60, window_s=3600)
"""What one user sends to people who have not asked for it."""

INVITATIONS_TO_ONE = Limit(most=3, window_s=3600)
"""What one address gets of one team."""

BY_PATH: MappingProxyType[str, Limit | None] = MappingProxyType(
    {
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
    }
)
"""Each holds for the path and for what lies under it."""
