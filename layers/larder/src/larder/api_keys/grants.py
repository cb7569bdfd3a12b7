"""Which permissions a user may grant to a key: only those that they hold themselves."""

from larder.api_keys.models import (
    ARTIFACT_ACTIONS,
    CACHE_ACTIONS,
    TEAM_ACTIONS,
    TRUST,
    ApiKey,
    Permissions,
)
from larder.api_keys.principals import Principal
from larder.api_keys.service import default_permissions
from larder.errors import NotATeamMember, PermissionNotHeld
from larder.extensions import RequestContext
from larder.teams.members import role_of
from larder.teams.models import Role


def held(
    principal: Principal, *, user_id: str, team_id: str | None, ctx: RequestContext | None
) -> Permissions | None:
    """The permissions that the principal may give to a key of this user and team. None means any.

    `team_id` is None for a key that is not bound to a team. `ctx` is the request.

    - `artifacts` follows from the user's role in the team. A key without a team may have all actions, because each
      request with it also checks the role.
    - `teams` may be given to any key. It allows what the user's role in each team allows.
    - Other resources belong to the deployment. A user holds what the option for default permissions gives.

    If the principal has a key, the result is limited to that key's permissions. Operators may give any
    permission, but the user must still be a member of the team. Raises NotATeamMember.
    """
    actions = artifact_actions(user_id, team_id)
    if principal.is_operator:
        return None
    defaults = default_permissions(user_id, ctx)
    holds = {**defaults, "artifacts": actions, "teams": TEAM_ACTIONS}
    return holds if principal.key is None else within(holds, principal.key.permissions)


def artifact_actions(user_id: str, team_id: str | None) -> tuple[str, ...]:
    """The `artifacts` actions that a key of this user may have, bound to this team or to no team.

    Raises NotATeamMember.
    """
    if team_id is None:
        return ARTIFACT_ACTIONS
    role = role_of(team_id, user_id)
    if role is None:
        raise NotATeamMember
    return actions_of(role)


def actions_of(role: Role) -> tuple[str, ...]:
    """The `artifacts` actions that a key of a team may have, made by a member with this role."""
    if role.manages_artifacts:
        return ARTIFACT_ACTIONS
    return CACHE_ACTIONS if role.writes_cache else ("read",)


def raised(before: ApiKey | None, after: ApiKey) -> bool:
    """Whether a key gets more than the cache needs, or keeps it for longer. `before` is None for a new key.

    That are all actions on artifacts but reading and writing, and on rules. What only weakens the key does not count.
    """
    has = _lasting(after)
    if not has:
        return False
    if before is None or not has <= _lasting(before) or (after.enabled and not before.enabled):
        return True
    if (after.remaining, after.refill, after.rate_limit) != (
        before.remaining,
        before.refill,
        before.rate_limit,
    ):
        return True
    return before.expires_at is not None and (
        after.expires_at is None or after.expires_at > before.expires_at
    )


def _lasting(key: ApiKey) -> set[tuple[str, str]]:
    artifacts = set(key.permissions.get("artifacts", ())) - {*CACHE_ACTIONS}
    rules = key.permissions.get(TRUST, ())
    return {*(("artifacts", one) for one in artifacts), *((TRUST, one) for one in rules)}


def within(permissions: Permissions, limits: Permissions) -> Permissions:
    """The permissions that both `permissions` and `limits` contain."""
    both = {
        resource: tuple(action for action in actions if action in limits.get(resource, ()))
        for resource, actions in permissions.items()
    }
    return {resource: actions for resource, actions in both.items() if actions}


def check_grant(principal: Principal, key: ApiKey, holds: Permissions | None) -> None:
    """Check that the principal, who holds `holds`, may create this key, or change it to this.

    Raises PermissionNotHeld, NotATeamMember.
    """
    for resource, actions in key.permissions.items():
        allowed = actions if holds is None else holds.get(resource, ())
        if missing := [action for action in actions if action not in allowed]:
            raise PermissionNotHeld(
                f"You do not hold {resource}: {', '.join(missing)}, so you cannot manage a key that has it."
            )
    if principal.key is not None:
        _check_key_grant(principal.key, key)


def check_reach(principal: Principal, key: ApiKey) -> None:
    """Check that the principal may change or delete this key as it is. Raises PermissionNotHeld, NotATeamMember.

    A key reaches itself and the keys that it could have created, so that a plain key cannot end a trusted one.
    """
    used = principal.key
    if used is not None and used.id != key.id:
        check_grant(principal, key, used.permissions)


def _check_key_grant(used: ApiKey, key: ApiKey) -> None:
    """A key made with another key has the same team, does not expire later, and has no uses that are not counted."""
    if used.team_id not in (None, key.team_id):
        raise NotATeamMember
    if used.is_counted:
        raise PermissionNotHeld(
            "A key whose uses are counted cannot create, change or delete keys."
        )
    ends_at = used.expires_at
    if ends_at is not None and (key.expires_at is None or key.expires_at > ends_at):
        raise PermissionNotHeld(
            "A key cannot create, change or delete a key that expires later than itself."
        )
