"""Types of lists of artifacts: what to list, and pages."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from larder.artifacts.models import Artifact
from larder.teams.models import SHARED_SCOPE

ALL_SCOPES = "all"
"""In place of the name of one scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPage:
    """Some of an owner's artifacts. Pass `following` as `after` for the next page; None on the last page.

    A page can have fewer artifacts than the limit, even none, without being the last. `read` is how many artifacts were
    looked at to find these.
    """

    artifacts: tuple[Artifact, ...]
    following: str | None
    read: int = 0


class Order(StrEnum):
    """The order of a list of artifacts."""

    HASH = "hash"
    UPLOADED = "uploaded"
    """The newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The artifacts to list. None and an empty prefix select all.

    `scope` is SHARED_SCOPE, ALL_SCOPES or the id of an own scope. `writer` is the id of a key, session, user or rule,
    and `ci` the name of a CI vendor. `since` is included, `until` is not. With `hidden`, also those that the team hides
    from readers, such as what was stored before it was protected.
    """

    order: Order = Order.HASH
    scope: str = SHARED_SCOPE
    prefix: str = ""
    writer: str | None = None
    ci: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    hidden: bool = False
