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
from typing import Any

from larder import aws
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.invitations.models import Invitation
from larder.settings import settings
from larder.teams.models import Actor, Role
from larder.teams.repository import get_item, has_role, joining, standing_by, target

_INVITATION = "invitation#"


def stored(team_id: str) -> list[Invitation]:
    """Every invitation to the team, open or over, by address."""
    values = {":team": team_id, ":invitation": _INVITATION}
    condition = "pk = :team AND begins_with(sk, :invitation)"
    items = aws.query(settings().teams_table, condition, values, ConsistentRead=True)
    return [_invitation(item) for item in items]


def add(invitations: Sequence[Invitation], *, made: int, by: Actor | None) -> bool:
    """Store them, each in the place of another to its address, all of them or none.

    False when the team is gone or has made others than the `made` that were seen, or `by` has another role by now.
    """
    team_id = invitations[0].team_id
    count = {
        **target(team_id, "team"),
        "UpdateExpression": "SET invitations_made = :more",
        "ConditionExpression": "attribute_exists(pk) AND invitations_made = :made",
        "ExpressionAttributeValues": aws.serialize(
            {":more": made + len(invitations), ":made": made}
        ),
    }
    if made == 0:
        none_made = "(attribute_not_exists(invitations_made) OR invitations_made = :made)"
        count["ConditionExpression"] = f"attribute_exists(pk) AND {none_made}"
    puts = [{"Put": _put(_item(invitation))} for invitation in invitations]
    return aws.write_together([{"Update": count}, *puts, *standing_by(team_id, by)])


def remove(invitation: Invitation, *, by: Actor | None) -> bool:
    """False when it is gone, or another has taken its place, or `by` has another role by now."""
    delete = {"Delete": _is_there(invitation)}
    return aws.write_together([delete, *standing_by(invitation.team_id, by)])


def accept(
    invitation: Invitation, user_id: str, inviters: Sequence[Role], *, now: datetime
) -> bool:
    """Make the user a member and end the invitation.

    False when it is gone, when the team is, when the user is a member already, or when who invited has none of the
    roles `inviters` by now.
    """
    writes = [
        {"Delete": _is_there(invitation)},
        *joining(invitation.team_id, user_id, invitation.role, now=now),
    ]
    if invitation.invited_by is not None:
        writes.append(has_role(invitation.team_id, invitation.invited_by, *inviters))
    return aws.write_together(writes)


def get(team_id: str, address: str) -> Invitation | None:
    item = get_item(team_id, _INVITATION + address)
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
    aws.dynamodb().put_item(**_put(item))


def find_by_token(token_hash: str) -> Invitation | None:
    """The invitation that a token was made for, if it still is there."""
    token = get_item(_INVITATION + token_hash, "invitation")
    if token is None:
        return None
    invitation = get(token["team_id"], token["address"])
    return invitation if invitation is not None and invitation.id == token["id"] else None


def _is_there(invitation: Invitation) -> dict[str, Any]:
    return {
        **target(invitation.team_id, _INVITATION + invitation.address),
        "ConditionExpression": "id = :id",
        "ExpressionAttributeValues": aws.serialize({":id": invitation.id}),
    }


def _item(invitation: Invitation) -> aws.Item:
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


def _invitation(item: aws.Item) -> Invitation:
    return Invitation(
        id=item["id"],
        team_id=item["pk"],
        email=item["email"],
        address=item["sk"].removeprefix(_INVITATION),
        role=Role(item["role"]),
        invited_by=item.get("invited_by"),
        created_at=from_ms(item["created_at"]),
    )


def _put(item: aws.Item) -> dict[str, Any]:
    return {"TableName": settings().teams_table, "Item": aws.serialize(item)}
