"""Manage keys as a signed-in user: one's own keys, those that one's teams own or, as an operator, all keys.

`of_team` says whether a request is about keys that teams own. Only owners and admins manage them, and only with a
session: such a key outlives the keys of the user who made it.

Users grant to a key only permissions that they hold themselves.
"""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from larder.api_keys import repository
from larder.api_keys.keys import (
    MILLISECOND,
    audit_entries,
    default_permissions,
    end_after,
    page_of_keys,
    prepare_key,
    revoke_key,
    store_key,
)
from larder.api_keys.models import (
    ARTIFACT_ACTIONS,
    CACHE_ACTIONS,
    FETCH,
    TEAM_ACTIONS,
    TRUST,
    ApiKey,
    KeyPage,
    Permissions,
    Refill,
    role_cap_of,
)
from larder.api_keys.principals import Principal
from larder.api_keys.properties import (
    KeyChanges,
    NewKey,
    Rotation,
    Unset,
    check_expires_in,
    check_limits,
    check_metadata,
    check_name,
    check_permissions,
    check_public,
    check_team_permissions,
)
from larder.audit.models import Action
from larder.concurrency import attempts
from larder.errors import (
    CannotManageTeamKeys,
    InvalidValue,
    KeyNotFound,
    NotATeamMember,
    NotInOrganization,
    NoValuesToUpdate,
    PermissionNotHeld,
    SessionNotFresh,
    SessionRequired,
    TeamNotFound,
    TryAgain,
)
from larder.extensions import RequestContext
from larder.teams import members, protection
from larder.teams.models import Member, Role, TeamMembership
from larder.teams.protection import NO_TRUST

if TYPE_CHECKING:
    from larder.tables import Write


_ID = re.compile(r"[A-Za-z0-9]{32}")
_TRUST_IS_FOR_NEW = (
    "only a new key can get artifacts: trust, because jobs that are not trusted may have this one"
)


def managed_team(principal: Principal, id_or_slug: str) -> TeamMembership:
    """The team with this id or slug, whose own keys the principal manages.

    Raises SessionRequired, NotInOrganization, also for a team that does not exist, CannotManageTeamKeys.
    """
    if principal.key is not None:
        raise SessionRequired
    try:
        found = members.find_membership(id_or_slug, principal.user_id, bound_to=None)
    except TeamNotFound:
        raise NotInOrganization from None
    if not found.role.manages_keys:
        raise CannotManageTeamKeys
    return found


def page_of_own_keys(
    principal: Principal, organization: str | None, *, limit: int, offset: int
) -> KeyPage:
    """At most `limit` keys of the principal or that the team `organization` owns, after the first `offset` ones.

    Raises the errors of `managed_team`.
    """
    if organization is None:
        return page_of_keys(principal.user_id, limit=limit, offset=offset)
    team = managed_team(principal, organization).team
    return page_of_keys(team.id, limit=limit, offset=offset)


class GrantedKey(NamedTuple):
    """A new key, and its secret, which cannot be read again. `protects_team`: it is the first that its team trusts."""

    key: ApiKey
    raw: str
    protects_team: bool


def grant_key(
    principal: Principal,
    new: NewKey,
    *,
    by: Member | None = None,
    protect: bool = True,
    rotation: Rotation | None = None,
    fresh: bool = False,
    ctx: RequestContext | None = None,
    now: datetime,
) -> GrantedKey:
    """Create a key.

    With `rotation`, it replaces another key of the same user and team, which then ends. One transaction does both. A
    key that a team owns can also replace the key of a user that is bound to the team, and then gets its metadata too,
    if `new` has none. `by` is the member who makes a key that the team owns.

    Without `permissions`, the key gets the deployment's default, limited to what the principal holds. `ctx` is the
    request, for functions of the integrator. `protect` is whether the first key that its team trusts protects the team.
    `fresh` is whether the user has signed in recently, which a key with more than the cache needs requires. Raises
    InvalidValue, PermissionNotHeld, NotATeamMember, SessionNotFresh, SessionRequired, KeyLimitReached, KeyNotFound,
    TryAgain.
    """
    if new.user_id is not None and not _ID.fullmatch(new.user_id):
        raise InvalidValue("user_id", "there is no such user")
    if new.team_id is None and principal.key is not None:
        new = replace(new, team_id=principal.key.team_id)
    key, raw = prepare_key(new, now=now, ctx=ctx)
    holds = _held_for(principal, key, ctx)
    if new.permissions is None and holds is not None:
        key = _with_permissions(key, within(key.permissions, holds))
    check_grant(principal, key, holds)
    _check_fresh(principal, None, key, fresh)
    maker = principal.user if principal.user_id == key.holder_id else None
    old = None if rotation is None else _replaced(principal, rotation, key)
    if old is not None and old.has_user and key.owned_by_team and key.metadata is None:
        key = replace(key, metadata=repository.with_metadata(old).metadata)
    trust = NO_TRUST
    if new.team_id is not None and TRUST in (new.permissions or {}).get("artifacts", ()):
        trust = protection.first_trust(new.team_id, protect=protect, actor=principal.actor)
    stored = store_key(
        key,
        maker=maker,
        actor=principal.actor,
        replaces=old,
        ending=[end_after(old, rotation.overlap_s, now=now)] if old and rotation else [],
        trust=trust,
        also=_still_managed(principal, key, by),
    )
    protection.confirm(trust)
    return GrantedKey(stored, raw, trust.protects)


def _held_for(principal: Principal, key: ApiKey, ctx: RequestContext | None) -> Permissions | None:
    """What the principal may give to the key. What a team owns gets at most what the principal holds."""
    if key.owned_by_team and principal.is_operator:
        return None
    user_id = principal.user_id if key.owned_by_team else key.user_id
    return held(principal, user_id=user_id, team_id=key.team_id, ctx=ctx)


def _with_permissions(key: ApiKey, permissions: Permissions) -> ApiKey:
    """The key with other permissions and, if a team owns it, the role that follows from them."""
    cap = role_cap_of(permissions) if key.owned_by_team else None
    return replace(key, permissions=permissions, role_cap=cap)


def _still_managed(principal: Principal, key: ApiKey, by: Member | None) -> "list[Write]":
    """Checks that fail the transaction of a team's own key if the session has ended, or the member lost their role."""
    if not key.owned_by_team or by is None or principal.user is None:
        return []
    return [
        repository.still_signed_in(principal.user.id, principal.user.session_generation),
        *members.still_have_roles(key.holder_id, by),
    ]


def _replaced(principal: Principal, rotation: Rotation, new: ApiKey) -> ApiKey:
    """The key that the new one replaces. Raises InvalidValue, KeyNotFound, PermissionNotHeld, NotATeamMember."""
    if new.owned_by_team:
        # The principal manages all keys of the team.
        found = _by_id(rotation.key_id)
        if found is None or found.team_id != new.team_id:
            raise KeyNotFound
        return found
    old = _find(principal, rotation.key_id)
    check_reach(principal, old)
    if (old.user_id, old.team_id) != (new.user_id, new.team_id):
        raise InvalidValue("replaces", "must be a key of the same user and team as the new one")
    return old


def get_key(principal: Principal, key_id: str, *, of_team: bool = False) -> ApiKey:
    """Raises KeyNotFound, also for another user's key unless the principal is an operator.

    With `of_team`, raises KeyNotFound for a team that the principal is not in, CannotManageTeamKeys, SessionRequired.
    """
    return repository.with_metadata(_find(principal, key_id, of_team=of_team))


def _find(principal: Principal, key_id: str, *, of_team: bool = False) -> ApiKey:
    if of_team and principal.key is not None:
        raise SessionRequired
    key = _by_id(key_id)
    if key is None or key.owned_by_team is not of_team:
        raise KeyNotFound
    if principal.is_operator or key.holder_id == principal.user_id:
        return key
    role = members.role_of(key.holder_id, principal.user_id) if of_team else None
    if role is None:
        raise KeyNotFound
    if not role.manages_keys:
        raise CannotManageTeamKeys
    return key


def _by_id(key_id: str) -> ApiKey | None:
    """None also for the token of a CI job, which nobody manages."""
    key = repository.find_by_id(key_id) if _ID.fullmatch(key_id) else None
    return None if key is None or key.rule_id is not None else key


def update_key(
    principal: Principal,
    key_id: str,
    changes: KeyChanges,
    *,
    of_team: bool = False,
    fresh: bool = False,
    ctx: RequestContext | None = None,
    now: datetime,
) -> ApiKey:
    """Change a key and return the new record.

    The grant is checked if permissions change. If the principal has a key, it is checked for every change, and so is
    the grant of the key as it was. `of_team` is as in `get_key`.
    `fresh` is as in `grant_key`, for changes that give the key more or let it live longer. Raises KeyNotFound,
    NoValuesToUpdate, InvalidValue, PermissionNotHeld, NotATeamMember, SessionNotFresh, SessionRequired.
    """
    if changes == KeyChanges():
        raise NoValuesToUpdate
    for _ in attempts():
        key = _find(principal, key_id, of_team=of_team)
        changed = _apply(key, changes, now)
        if key.orphaned_at is not None and changed.orphaned_at is None:
            # The principal takes it over from its maker.
            user_id = principal.user_id
            is_member = user_id in members.roles_in(key.holder_id, [user_id])
            changed = replace(changed, made_by=user_id if is_member else None)
        if changed.may_trust and not key.may_trust:
            raise InvalidValue("permissions", _TRUST_IS_FOR_NEW)
        check_reach(principal, key)
        if changes.permissions is not None or principal.key is not None:
            check_grant(principal, changed, _held_for(principal, key, ctx))
        _check_fresh(principal, key, changed, fresh)
        entries = audit_entries(Action.KEY_CHANGED, key, principal.actor)
        stored = repository.change(key, changed, *entries)
        if stored is not None:
            return repository.with_metadata(stored)
        # The key was deleted, or another request has changed it.
    raise TryAgain


def delete_key(principal: Principal, key_id: str, *, of_team: bool = False) -> ApiKey:
    """Delete a key, and return it. No verification succeeds afterwards. `of_team` is as in `get_key`.

    Raises KeyNotFound, PermissionNotHeld, NotATeamMember.
    """
    key = _find(principal, key_id, of_team=of_team)
    check_reach(principal, key)
    if not revoke_key(key, actor=principal.actor):
        raise KeyNotFound
    return key


def _check_fresh(principal: Principal, before: ApiKey | None, after: ApiKey, fresh: bool) -> None:
    """Raises SessionNotFresh, SessionRequired."""
    if raised(before, after) and not fresh:
        raise SessionNotFresh if principal.key is None else SessionRequired


def _apply(key: ApiKey, changes: KeyChanges, now: datetime) -> ApiKey:
    """Apply and check the changes. `updated_at` always increases, so two changes never have the same time."""
    changed = replace(key, updated_at=max(now, key.updated_at + MILLISECOND))
    if changes.name is not None:
        check_name(changes.name)
        changed = replace(changed, name=changes.name)
    if changes.enabled is not None:
        changed = replace(changed, enabled=changes.enabled)
    if changes.permissions is not None:
        check_permissions(changes.permissions)
        if key.owned_by_team:
            check_team_permissions(changes.permissions)
        changed = _with_permissions(changed, changes.permissions)
    if changes.metadata is not Unset.UNSET:
        check_metadata(changes.metadata)
        changed = replace(changed, metadata=changes.metadata)
    if changes.expires_in_s is not Unset.UNSET:
        check_expires_in(changes.expires_in_s)
        seconds = changes.expires_in_s
        ends_at = None if seconds is None else now + timedelta(seconds=seconds)
        changed = replace(changed, expires_at=ends_at, orphaned_at=None, ordinary_end=None)
    changed = _apply_limits(changed, changes, now)
    check_public(changed.permissions, changed.daily, of_team=changed.owned_by_team)
    if changed.daily is not None and changed.is_counted:
        raise InvalidValue("remaining", "cannot be set for a public read key")
    return changed


def _apply_limits(key: ApiKey, changes: KeyChanges, now: datetime) -> ApiKey:
    changed = key
    if changes.remaining is not Unset.UNSET:
        changed = replace(changed, remaining=changes.remaining)
    if changes.refill is not Unset.UNSET:
        changed = _with_refill(changed, changes.refill, now)
    limit = key.rate_limit
    if changes.rate_limit_enabled is not None:
        limit = replace(limit, enabled=changes.rate_limit_enabled)
    if changes.rate_limit_window_ms is not None:
        limit = replace(limit, window_ms=changes.rate_limit_window_ms)
    if changes.rate_limit_max is not None:
        limit = replace(limit, max_requests=changes.rate_limit_max)
    changed = replace(changed, rate_limit=limit)
    if changed != key:
        check_limits(changed.remaining, changed.refill, limit)
    if (limit.enabled, limit.window_ms) != (key.rate_limit.enabled, key.rate_limit.window_ms):
        window = timedelta(milliseconds=limit.window_ms)
        changed = replace(changed, window_ends_at=now + window, request_count=0)
    return changed


def _with_refill(key: ApiKey, refill: Refill | None, now: datetime) -> ApiKey:
    """Set the refill. A new interval starts now; earlier time does not count towards it."""
    due_at = key.refill_due_at
    if refill is None:
        due_at = None
    elif key.refill is None or refill.interval_ms != key.refill.interval_ms:
        due_at = refill.due_after(now)
    return replace(key, refill=refill, refill_due_at=due_at)


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
    role = members.role_of(team_id, user_id)
    if role is None:
        raise NotATeamMember
    return actions_of(role)


def actions_of(role: Role) -> tuple[str, ...]:
    """The `artifacts` actions that a key of a team may have, made by a member with this role."""
    if role.owns_team:
        # Downloads with a public read key cost money.
        return (*ARTIFACT_ACTIONS, FETCH)
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
    on_artifacts = set(key.permissions.get("artifacts", ())) - {*CACHE_ACTIONS}
    on_rules = key.permissions.get(TRUST, ())
    return {
        *(("artifacts", action) for action in on_artifacts),
        *((TRUST, action) for action in on_rules),
    }


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
