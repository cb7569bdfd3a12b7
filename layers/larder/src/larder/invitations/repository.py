"""Invitations, which lie in the table of teams.

| pk | sk | holds |
|---|---|---|
| `team_...` | `invitation#<canonical address>` | who is invited, by whom, and as what |
| `invitation#<SHA-256 of token>` | `invitation` | which invitation a token is for; means nothing once that is gone |

An address has one invitation to a team, so that another one takes its place. The team's item counts how many were ever
made: whoever makes one names the count that they saw, so that nobody passes the limit between a look and a write. Both
items end by time to live.
"""

from collections.abc import Sequence
from datetime import datetime

from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import begins_with, equals, exists, missing
from larder.invitations.models import Invitation
from larder.tables import TEAMS, Item, Write, commit
from larder.teams.models import Actor, Role
from larder.teams.repository import has_role, joining, standing_by

_INVITATION = "invitation#"


def stored(team_id: str) -> list[Invitation]:
    """Every invitation to the team, open or over, by address."""
    found = TEAMS.query(equals(pk=team_id) & begins_with(sk=_INVITATION))
    return [_invitation(item) for item in found]


def add(invitations: Sequence[Invitation], *, made: int, by: Actor | None) -> bool:
    """Store them, each in the place of another to its address, all of them or none.

    False when the team is gone or has made others than the `made` that were seen, or `by` has another role by now.
    """
    team_id = invitations[0].team_id
    as_seen = equals(invitations_made=made)
    if made == 0:
        as_seen = missing("invitations_made") | as_seen
    more = {"invitations_made": made + len(invitations)}
    return commit(
        TEAMS.update(team_id, "team", set=more, when=exists("pk") & as_seen),
        *(TEAMS.put(_item(invitation)) for invitation in invitations),
        *standing_by(team_id, by),
    )


def remove(invitation: Invitation, *, by: Actor | None) -> bool:
    """False when it is gone, or another has taken its place, or `by` has another role by now."""
    return commit(_ending(invitation), *standing_by(invitation.team_id, by))


def accept(
    invitation: Invitation, user_id: str, inviters: Sequence[Role], *, now: datetime
) -> bool:
    """Make the user a member and end the invitation.

    False when it is gone, when the team is, when the user is a member already, or when who invited has none of the
    roles `inviters` by now.
    """
    writes = [
        _ending(invitation),
        *joining(invitation.team_id, user_id, invitation.role, now=now),
    ]
    if invitation.invited_by is not None:
        writes.append(has_role(invitation.team_id, invitation.invited_by, *inviters))
    return commit(*writes)


def get(team_id: str, address: str) -> Invitation | None:
    item = TEAMS.get(team_id, _INVITATION + address)
    return None if item is None else _invitation(item)


def add_token(token_hash: str, invitation: Invitation) -> None:
    item = {
        "pk": _INVITATION + token_hash,
        "sk": "invitation",
        "team_id": invitation.team_id,
        "address": invitation.address,
        "id": invitation.id,
        "expires_at": to_epoch_seconds(invitation.expires_at),
    }
    commit(TEAMS.put(item))


def find_by_token(token_hash: str) -> Invitation | None:
    """The invitation that a token was made for, if it still is there."""
    token = TEAMS.get(_INVITATION + token_hash, "invitation")
    if token is None:
        return None
    invitation = get(token["team_id"], token["address"])
    return invitation if invitation is not None and invitation.id == token["id"] else None


def _ending(invitation: Invitation) -> Write:
    """The end of this invitation, on condition that no other has taken its place."""
    key = (invitation.team_id, _INVITATION + invitation.address)
    return TEAMS.delete(*key, when=equals(id=invitation.id))


def _item(invitation: Invitation) -> Item:
    return {
        "pk": invitation.team_id,
        "sk": _INVITATION + invitation.address,
        "id": invitation.id,
        "email": invitation.email,
        "role": invitation.role.value,
        "invited_by": invitation.invited_by,
        "created_at": to_ms(invitation.created_at),
        "expires_at": to_epoch_seconds(invitation.expires_at),
    }


def _invitation(item: Item) -> Invitation:
    return Invitation(
        id=item["id"],
        team_id=item["pk"],
        email=item["email"],
        address=item["sk"].removeprefix(_INVITATION),
        role=Role(item["role"]),
        invited_by=item.get("invited_by"),
        created_at=from_ms(item["created_at"]),
    )
