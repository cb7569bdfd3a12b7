"""Who may give what to a key: nobody more than they hold themselves."""

from dataclasses import dataclass

from larder.api_keys.models import (
    ARTIFACT_ACTIONS,
    CACHE_ACTIONS,
    TEAM_ACTIONS,
    ApiKey,
    Permissions,
)
from larder.api_keys.service import default_permissions
from larder.errors import NotATeamMember, PermissionNotHeld
from larder.extensions import RequestContext
from larder.teams.service import role_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantor:
    """A user who makes and changes keys. `key` is the one that their session was made from, if one was.

    `ctx` is the request by which they do it.
    """

    user_id: str
    is_operator: bool = False
    key: ApiKey | None = None
    ctx: RequestContext | None = None


def held(grantor: Grantor, *, user_id: str, team_id: str | None) -> Permissions | None:
    """What somebody may give to a key of this user that is bound to this team, or to none; None is anything.

    `artifacts` follows from the role in the team. A key without a team may be given all of it: with such a key people
    act for themselves, and for a team only as far as their role there goes. `teams` may be given to any key, which then
    does what its user's role in each team allows. Every other resource is a name of the
    deployment's own; people hold of it what the option for default permissions gives to each of their keys.

    Somebody who is there by a key holds of that what the key holds. Operators give anything, but to a member of the
    team as well. Raises NotATeamMember.
    """
    actions = artifact_actions(user_id, team_id)
    if grantor.is_operator:
        return None
    others = default_permissions(user_id, grantor.ctx)
    holds = {**others, "artifacts": actions, "teams": TEAM_ACTIONS}
    return holds if grantor.key is None else within(holds, grantor.key.permissions)


def artifact_actions(user_id: str, team_id: str | None) -> tuple[str, ...]:
    """What a key of this user may do with artifacts, bound to this team or to none. Raises NotATeamMember."""
    if team_id is None:
        return ARTIFACT_ACTIONS
    role = role_of(team_id, user_id)
    if role is None:
        raise NotATeamMember
    if role.manages_artifacts:
        return ARTIFACT_ACTIONS
    return CACHE_ACTIONS if role.writes_cache else ("read",)


def within(permissions: Permissions, limits: Permissions) -> Permissions:
    """Of `permissions`, what `limits` has too."""
    both = {
        resource: tuple(action for action in actions if action in limits.get(resource, ()))
        for resource, actions in permissions.items()
    }
    return {resource: actions for resource, actions in both.items() if actions}


def check_grant(grantor: Grantor, key: ApiKey, holds: Permissions | None) -> None:
    """Whether somebody may have a key be like this, who may give it what they hold. Raises PermissionNotHeld,
    NotATeamMember.
    """
    for resource, actions in key.permissions.items():
        allowed = actions if holds is None else holds.get(resource, ())
        if missing := [action for action in actions if action not in allowed]:
            raise PermissionNotHeld(
                f"You do not hold {resource}: {', '.join(missing)}, so you cannot give it to a key."
            )
    if grantor.key is not None:
        _check_key_grant(grantor.key, key)


def _check_key_grant(grantor: ApiKey, key: ApiKey) -> None:
    """A key gives no other team, no longer life, and no uses beyond its own."""
    if grantor.team_id not in (None, key.team_id):
        raise NotATeamMember
    if grantor.remaining is not None or grantor.rate_limit.enabled:
        raise PermissionNotHeld("A key whose uses are counted cannot make or change keys.")
    ends_at = grantor.expires_at
    if ends_at is not None and (key.expires_at is None or key.expires_at > ends_at):
        raise PermissionNotHeld("A key cannot give another one a longer life than its own.")
