"""Authenticate a cache request, and read what it needs of its owner and artifact.

A request needs two sequential round trips to AWS: one reads the key, then one consistent batch reads everything else.
An instance remembers which team a key acted for, and then reads the key in the same batch. What it remembers only
selects the items to read: decisions use their current values. A key with an allowance or a rate limit is verified by
one conditional write, which runs in parallel with the batch. For a session, the lookup of its user already says which
items to read (docs/decisions/round-trips.md).
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from larder import clock
from larder.api_keys import public
from larder.api_keys.credential_cache import (
    KnownOwner,
    forget_owner,
    known_credentials,
    remember_owner,
)
from larder.api_keys.models import CACHE_ACTIONS, FETCH, ApiKey, Permissions
from larder.api_keys.principals import Principal, own_scope
from larder.api_keys.verification import (
    find_presented,
    known_as_counted,
    note_use_if_due,
    reading_presented,
    verify_counted_key,
    verify_read_key,
)
from larder.artifacts.caching import (
    caching_status,
    read_with_credential,
    read_with_membership,
)
from larder.artifacts.models import (
    ArtifactHash,
    CacheRequest,
    IndexEntry,
    RequestItems,
    Totals,
    View,
    Wanted,
    view_of,
)
from larder.concurrency import in_parallel
from larder.errors import NotATeamMember, TeamsDiffer, Unauthenticated
from larder.teams.models import CachingStatus, Membership, is_team_id
from larder.teams.slugs import team_of_slug
from larder.web.log import logger
from larder.web.parameters import TeamQuery, Token
from larder.web.powertools.resolver import Request
from larder.web.principals.authenticate import authenticate, key_principal, session_principal
from larder.web.request_context import base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrincipal(Principal):
    """A principal who acts for an owner of artifacts: a team or, without a team, the user.

    The request's batch has read the rest: the membership with the owner's state, the owner's totals, and the artifact
    of the hash in the path, in the shared scope (`entry`) and in the credential's own scope (`own`).

    `view` says which of them it sees and writes. It follows from the credential and the team alone. `asked_at` is a
    moment before the batch.
    """

    owner: str
    membership: Membership
    entry: IndexEntry
    totals: Totals
    own: IndexEntry
    view: View
    asked_at: datetime

    def cache_request(self, hash: ArtifactHash) -> CacheRequest:
        """What it asks of the artifact that the request names."""
        return CacheRequest(
            owner=self.owner,
            hash=hash,
            writer=self.actor,
            view=self.view,
            now=self.asked_at,
            entry=self.entry,
            own=self.own,
            totals=self.totals,
        )

    def take(self, request: Request, *, requests: int = 1, size_bytes: int = 0) -> None:
        """Count what it is about to get, if it is a public read key (`public.take`)."""
        public.take(
            self.key,
            requests=requests,
            size_bytes=size_bytes,
            base_url=base_url(request),
            now=self.asked_at,
        )

    @property
    def team_id(self) -> str | None:
        """The team that the request acts for, or None if it acts for the user."""
        return self.owner if is_team_id(self.owner) else None

    @property
    def caching(self) -> CachingStatus:
        return caching_status(self.membership.state, self.totals)

    @property
    def usable_caching(self) -> CachingStatus:
        """The caching status for this principal: disabled for a key that can neither read nor write artifacts, paused
        for a public read key at its bound.
        """
        if not any(action in self.artifact_actions for action in (*CACHE_ACTIONS, FETCH)):
            return CachingStatus.DISABLED
        if self.key and self.key.is_paused(self.asked_at):
            return CachingStatus.PAUSED
        return self.caching


class _Where(NamedTuple):
    """Where the items of a request are: its token's user or rule, the team that it is bound to, and the owner.

    `own_scope` is the scope that it reads after the shared one. None if it reads the shared one alone.
    """

    holder_id: str
    bound_to: str | None
    owner: str
    own_scope: str | None


class _Holder(NamedTuple):
    """What the first look-up of a token finds: its user or rule, its key if it is one, and the team of the slug."""

    holder_id: str
    key: ApiKey | None
    slug_team: str | None

    def where(self, team: TeamQuery) -> _Where | None:
        """None if the token does not work for the team that the request names."""
        bound_to = self.key.team_id if self.key else None
        with suppress(NotATeamMember):
            owner = _owner(self.holder_id, bound_to, team, self.slug_team)
            # Whether the team is protected is not known yet.
            scope = own_scope(self.holder_id, self.key) if is_team_id(owner) else None
            return _Where(self.holder_id, bound_to, owner, scope)
        return None


def _remembered_where(token: Token, team: TeamQuery) -> _Where | None:
    known = known_credentials.get(token.hash)
    owner = known and known.owners.get(team)
    return _Where(known.holder_id, known.bound_to, *owner) if known and owner else None


def prefetch(token: Token, team: TeamQuery, wanted: Wanted, needs: Permissions) -> CachePrincipal:
    """The principal of the token, with what the request's batch has read: `totals` and the artifact only if wanted.

    Raises Unauthenticated, MissingPermission, ReadOnly, RateLimited, NotATeamMember, TeamsDiffer.
    """
    now = clock.now()
    where, holder = _remembered_where(token, team), None
    if where is None:
        holder = _look_up(token, team)
        where = holder.where(team)
        if where is None:
            # An invalid token gets its own error.
            _verified(token, holder.key, needs, now=now)
            raise NotATeamMember
    principal, items = _verified_with_items(token, where, holder, wanted, needs, now=now)
    if not _is_right(where, principal, team, items):
        forget_owner(token.hash, team)
        slug_team = team_of_slug(team.slug) if team.slug and not team.team_id else None
        owner = _owner(principal.holder_id, principal.bound_to, team, slug_team)
        scope = principal.own_scope if is_team_id(owner) else None
        where = _Where(principal.holder_id, principal.bound_to, owner, scope)
        items = _items(where, wanted)
    view = _view(principal, items)
    if wanted.hash is not None and view.scope not in (None, where.own_scope):
        # The team has been protected since the token was last used.
        where = where._replace(own_scope=view.scope)
        items = _items(where, wanted)
        view = _view(principal, items)
    admitted = _admitted(principal, where.owner, items, view, now)
    _check_same_team(team, admitted.membership)
    acts_for = KnownOwner(where.owner, view.scope)
    remember_owner(token.hash, where.holder_id, where.bound_to, team, acts_for)
    return admitted


def is_bound(token: Token) -> bool:
    """Whether the token is a key of one team."""
    if token.is_session:
        return False
    if known := known_credentials.get(token.hash):
        return known.bound_to is not None
    key = find_presented(token.hash)
    return key is not None and key.team_id is not None


def _items(where: _Where, wanted: Wanted) -> RequestItems:
    return read_with_membership(where.owner, where.holder_id, wanted, own_scope=where.own_scope)


def _view(principal: Principal, items: RequestItems) -> View:
    return view_of(
        items.membership.state,
        principal.own_scope,
        scope_name=principal.scope_name,
        may_replace=principal.may_replace,
        rule_version=principal.key.rule_version if principal.key else None,
    )


def _verified_with_items(
    token: Token,
    where: _Where,
    holder: _Holder | None,
    wanted: Wanted,
    needs: Permissions,
    *,
    now: datetime,
) -> tuple[Principal, RequestItems]:
    """Verify the token, and read the rest of what the request needs, by `where`.

    `holder` is set if this request has just looked the token up.
    """
    place = (where.owner, where.holder_id, wanted)
    read_items = partial(_items, where, wanted)
    read_all = partial(read_with_credential, own_scope=where.own_scope)
    if token.is_session:
        # Imported here, because builds use keys and start faster without the account modules.
        from larder.accounts.sessions import if_valid, reading_session

        found, items = read_all(reading_session(where.holder_id, token.hash), *place)
        return session_principal(if_valid(found, now=now)), items
    if known_as_counted(token.hash):
        with in_parallel(read_items) as reading_items:
            key = verify_counted_key(token.hash, needs, now=now)
        items = reading_items.result()
    elif holder is not None:
        key = verify_read_key(token.hash, holder.key, needs, now=now)
        items = read_items()
    else:
        note_use_if_due(token.hash, needs, now=now)
        read, items = read_all(reading_presented(token.hash), *place)
        key = verify_read_key(token.hash, read, needs, now=now)
    return key_principal(key), items


def _verified(token: Token, key: ApiKey | None, needs: Permissions, *, now: datetime) -> Principal:
    """The principal of a token that was just looked up."""
    if token.is_session:
        return authenticate(token, needs, now=now)
    return key_principal(verify_read_key(token.hash, key, needs, now=now))


def _look_up(token: Token, team: TeamQuery) -> _Holder:
    """The holder of a token that this instance has not seen, before it is checked. Raises Unauthenticated."""
    if team.slug and not team.team_id:
        with in_parallel(team_of_slug, team.slug) as looking_up:
            holder_id, key = _find_holder(token)
        slug_team = looking_up.result()
    else:
        holder_id, key = _find_holder(token)
        slug_team = None
    return _Holder(holder_id, key, slug_team)


def _find_holder(token: Token) -> tuple[str, ApiKey | None]:
    if not token.is_session:
        key = find_presented(token.hash)
        if key is None:
            raise Unauthenticated
        return key.holder_id, key
    # Imported here, because builds use keys and start faster without the account modules.
    from larder.accounts.sessions import holder_of

    holder_id = holder_of(token.hash)
    if holder_id is None:
        raise Unauthenticated
    return holder_id, None


def _is_right(where: _Where, principal: Principal, team: TeamQuery, items: RequestItems) -> bool:
    """Whether the token still has the remembered holder and team, and the slug still leads to the team."""
    if (principal.holder_id, principal.bound_to) != (where.holder_id, where.bound_to):
        return False
    if not _needs_slug(team):
        return True
    # Another team may have taken the slug since.
    found = items.membership.team
    return found is not None and team.slug in found.slugs


def _check_same_team(named: TeamQuery, membership: Membership) -> None:
    """Refuse a request that names another team by its slug: the caller may mean either. Raises TeamsDiffer."""
    team = membership.team
    if named.slug is not None and team is not None and named.slug not in team.slugs:
        raise TeamsDiffer


def _admitted(
    principal: Principal, owner: str, items: RequestItems, view: View, asked_at: datetime
) -> CachePrincipal:
    membership = items.membership
    principal.check_not_ended(membership, now=asked_at)
    if principal.key is not None and principal.key.owned_by_team:
        membership = replace(membership, role_cap=principal.key.role_cap)
    is_member = membership.role is not None or principal.is_ci_job
    if is_team_id(owner) and (membership.team is None or not is_member):
        raise NotATeamMember
    logger().append_keys(owner=owner)
    return CachePrincipal(
        credential=principal.credential,
        user=principal.user,
        owner=owner,
        membership=membership,
        entry=items.entry,
        totals=items.totals,
        # A token that the instance has not seen reads it in case the team is protected.
        own=items.own if view.scope is not None else IndexEntry(),
        view=view,
        asked_at=asked_at,
    )


def _owner(holder_id: str, bound_to: str | None, team: TeamQuery, slug_team: str | None) -> str:
    """The team that the request names, or the one that the key is bound to, or the user."""
    if _needs_slug(team) and slug_team is None:
        raise NotATeamMember
    named = team.team_id or slug_team
    if bound_to is None:
        return named or holder_id
    if named not in (None, bound_to):
        raise NotATeamMember
    return bound_to


def _needs_slug(team: TeamQuery) -> bool:
    return team.slug is not None and team.team_id is None
