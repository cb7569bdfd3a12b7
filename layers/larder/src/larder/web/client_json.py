"""Users, teams and tokens as the build client reads them (docs/clients/turbo.md#users-teams-and-tokens)."""

from collections.abc import Sequence
from typing import Any

from larder.accounts.models import User
from larder.api_keys.models import ApiKey
from larder.clock import to_iso, to_ms
from larder.teams.models import CachingStatus, TeamMembership
from larder.web.auth import Holder


def username(email: str) -> str:
    """Clients want a name for the account, which users here have none of: they get that of the mailbox."""
    return email.rpartition("@")[0]


def client_user_json(user: User) -> dict[str, Any]:
    return {
        "id": user.id,
        "username": username(user.email),
        "email": user.email,
        "name": user.name,
    }


def team_json(membership: TeamMembership) -> dict[str, Any]:
    """A team to one of its members, with what clients of the hosted service require. Times in milliseconds, but for
    `created`, which the build client reads.
    """
    team, member = membership.team, membership.member
    joined_at = to_ms(member.joined_at)
    return {
        "id": team.id,
        "slug": team.slug,
        "name": team.name,
        "createdAt": to_ms(team.created_at),
        "created": to_iso(team.created_at),
        "updatedAt": to_ms(team.updated_at),
        "creatorId": team.created_by,
        "avatar": None,
        "description": None,
        "stagingPrefix": "",
        "formerSlugs": list(team.former_slugs),
        "remoteCaching": {"enabled": team.state.caching is CachingStatus.ENABLED},
        "membership": {
            "uid": member.user_id,
            "teamId": team.id,
            "role": membership.role.value,
            "confirmed": True,
            "createdAt": joined_at,
            "created": joined_at,
        },
    }


def teams_json(memberships: Sequence[TeamMembership], following: str | None) -> dict[str, Any]:
    """`following` is what asks for the next page, as `until`; None after the last one."""
    return {
        "teams": [team_json(membership) for membership in memberships],
        "pagination": {"count": len(memberships), "next": following, "prev": None},
    }


def exchanged_json(key: ApiKey, raw: str) -> dict[str, Any]:
    """What a login for a team ends with: the key itself, and its team."""
    return {"token": raw, "teamId": key.team_id}


def token_json(holder: Holder) -> dict[str, Any]:
    """Times in milliseconds.

    `activeAt` is when the token began. The client takes one that is active since a later moment than its own clock's
    for expired, so that the time of this very request would fail where clocks differ.
    """
    scope: dict[str, Any] = {"type": "user"}
    if holder.team_id is not None:
        scope = {"type": "team", "teamId": holder.team_id}
    if holder.credential.expires_at is not None:
        scope["expiresAt"] = to_ms(holder.credential.expires_at)
    return {"scopes": [scope], "activeAt": to_ms(holder.credential.created_at)}
