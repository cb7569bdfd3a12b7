"""What an instance remembers of the credentials that it has found.

It only decides which items are read, and which call comes first: the credential may have changed since, or be deleted.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from larder.instance import Remembered
from larder.teams.models import is_team_id

_MOST_OWNERS = 8
"""How many owners are remembered of one credential. Most act for one."""

AskedTeam = tuple[str | None, str | None]
"""The id and the slug of the team that a request names."""


class KnownOwner(NamedTuple):
    """The owner of artifacts that a request acts for.

    `own_scope` is the scope that the credential reads after the shared one. None if it reads the shared one alone.
    """

    owner: str
    own_scope: str | None


class KnownCredential(NamedTuple):
    """A key or a session: its holder, the team that it is bound to, and the owners by the team that was named.

    The holder is the user, the team that owns the key, or the rule.

    `noted_at` is when a use was last recorded, or this instance last tried. A failed try counts, because a busy key has
    many.
    """

    holder_id: str
    bound_to: str | None
    is_counted: bool = False
    has_metadata: bool = False
    noted_at: datetime | None = None
    owners: Mapping[AskedTeam, KnownOwner] = {}

    @property
    def is_of_team(self) -> bool:
        """Whether it is a team's own key."""
        return is_team_id(self.holder_id)

    def is_of(self, holder_id: str, bound_to: str | None) -> bool:
        return (self.holder_id, self.bound_to) == (holder_id, bound_to)


known_credentials: Remembered[str, KnownCredential] = Remembered(4000)
"""By the stored form of a key, or the hash of a session's token."""


def remember_owner(
    hash: str, holder_id: str, bound_to: str | None, asked: AskedTeam, owner: KnownOwner
) -> None:
    """Remember the owner that the credential with this hash acts for if a request names the team `asked`."""
    known = known_credentials.get(hash)
    if known is None or not known.is_of(holder_id, bound_to):
        known = KnownCredential(holder_id, bound_to)
    owners = {asked: owner, **dict(islice(_others(known, asked), _MOST_OWNERS - 1))}
    known_credentials[hash] = known._replace(owners=owners)


def forget_owner(hash: str, asked: AskedTeam) -> None:
    if known := known_credentials.get(hash):
        known_credentials[hash] = known._replace(owners=dict(_others(known, asked)))


def _others(known: KnownCredential, asked: AskedTeam) -> Iterator[tuple[AskedTeam, KnownOwner]]:
    return ((one, owner) for one, owner in known.owners.items() if one != asked)
