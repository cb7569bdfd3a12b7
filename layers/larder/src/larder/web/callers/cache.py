"""Authenticate and authorize cache requests: the caller types that handlers name in their signatures.

| Type | The caller |
|---|---|
| `TokenHolder` | has a valid key or session token, for any team |
| `CacheMember` | has a valid key or session token and, if the request names a team, is a member of it |
| `UsageReporter` | can report cache usage events: any permission on `artifacts` |
| `UsageReader` | can read usage figures: permission `artifacts: read`, even if the owner is blocked |
| `CacheReader` | can read artifacts: permission `artifacts: read`, and caching is neither disabled nor paused |
| `CacheWriter` | can write artifacts: permission `artifacts: write`, a role that writes, and a quota that is not full |
| `CachingOwner` | can disable and enable caching: permission `artifacts: manage`, and owner of the team |
| `CacheManager` | can list and delete artifacts, even if caching is off: `artifacts: manage`, owner or admin |

Keys have permissions. For a session, only the role in the team counts.

A request needs two sequential round trips to AWS: one conditional write verifies the key, then one consistent batch
reads everything else. An instance remembers which team a key acted for, and then makes both calls in parallel. What it
remembers only selects the items to read: decisions use their current values. For a session, the lookup of its user
already says which items to read, so those calls run in parallel too.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder import clock
from larder.api_keys.models import ARTIFACT_ACTIONS, CACHE_ACTIONS, ApiKey, Permissions
from larder.api_keys.service import end_key, verify_key
from larder.artifacts.models import ArtifactHash, IndexEntry, Totals, Writer
from larder.artifacts.service import caching_status, read_with_standing
from larder.concurrency import running
from larder.errors import (
    CachingDisabled,
    CachingOverLimit,
    CachingPaused,
    MissingPermission,
    MissingRole,
    NotATeamMember,
    PaymentMissing,
    ReadOnly,
    SoftBlocked,
    Unauthenticated,
)
from larder.instance import Remembered
from larder.teams.models import Block, CachingStatus, Membership, OwnerState, is_team_id
from larder.teams.service import team_of_slug
from larder.web.build_clients import keeps_presigned_urls
from larder.web.log import logger
from larder.web.parameters import (
    BearerToken,
    NamedTeam,
    TeamQuery,
    Token,
    bearer_token,
    named_hash,
    team_query,
)

if TYPE_CHECKING:
    from larder.accounts.models import Session, User

_BLOCKS = {Block.SOFT: SoftBlocked, Block.PAYMENT: PaymentMissing}
_SWITCHED_OFF = {
    CachingStatus.DISABLED: CachingDisabled,
    CachingStatus.PAUSED: CachingPaused,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCaller:
    """The caller, with the owner's state and the artifact of the hash in the path, as the request's batch read them.

    `credential_id` is the id of the key or of the session.
    """

    user_id: str
    credential_id: str
    owner: str
    standing: Membership
    entry: IndexEntry
    totals: Totals
    actions: Collection[str]
    """The key's permissions on artifacts. A session has all of them: its user's role sets the limits."""

    @property
    def team_id(self) -> str | None:
        """The team that the request acts for, or None if it acts for the user."""
        return self.owner if is_team_id(self.owner) else None

    @property
    def writer(self) -> Writer:
        return Writer(self.credential_id, self.user_id)

    @property
    def quota_bytes(self) -> int | None:
        return self.standing.state.quota_bytes

    @property
    def caching(self) -> CachingStatus:
        return caching_status(self.standing.state, self.totals)

    @property
    def usable_caching(self) -> CachingStatus:
        """The caching status for this caller: disabled for a key that can neither read nor write artifacts."""
        if not any(action in self.actions for action in CACHE_ACTIONS):
            return CachingStatus.DISABLED
        return self.caching


@dataclass(frozen=True, slots=True)
class Holder:
    """The user of a token, the team that it is bound to, if any, and the key or session.

    `user` is set only for a session, which is read together with its user.
    """

    user_id: str
    team_id: str | None
    credential: "ApiKey | Session"
    user: "User | None" = None


@dataclass(frozen=True, slots=True)
class _Scope:
    """The user and the owner that a token acts for."""

    user_id: str
    bound_to: str | None
    owner: str


_scopes: Remembered[tuple[Token, TeamQuery], _Scope] = Remembered(1000)


def token_holder(token: BearerToken) -> Holder:
    return holder_with(token, {})


def holder_with(token: Token, needs: Permissions) -> Holder:
    """The holder of the token. `needs` applies to keys only: for a session the user's role decides.

    Raises Unauthenticated, MissingPermission, RateLimited.
    """
    return _verified(token, needs, clock.now())


def check_not_blocked(state: OwnerState) -> None:
    """Raises SoftBlocked, PaymentMissing."""
    if state.block is not None:
        raise _BLOCKS[state.block](state.block_reason)


def end_credential(credential: "ApiKey | Session") -> None:
    """Delete the key or session of a request. It is invalid from the next request on."""
    if isinstance(credential, ApiKey):
        end_key(credential)
        return
    from larder.accounts.sessions import end_session

    end_session(credential.user_id, credential.token_hash)


def cache_member(token: BearerToken, team: NamedTeam) -> CacheCaller:
    return _caller(token, team, None, {}, totals=True)


def usage_reporter(token: BearerToken, team: NamedTeam) -> CacheCaller:
    caller = _caller(token, team, None, {}, totals=False)
    if not caller.actions:
        raise MissingPermission
    return caller


def usage_reader(token: BearerToken, team: NamedTeam) -> CacheCaller:
    needs = {"artifacts": ("read",)}
    return _caller(token, team, None, needs, totals=True, even_blocked=True)


def cache_reader(token: BearerToken, team: NamedTeam, request: Request) -> CacheCaller:
    caller = _caller(token, team, named_hash(request), {"artifacts": ("read",)}, totals=False)
    _require_caching(caller)
    return caller


def cache_writer(token: BearerToken, team: NamedTeam, request: Request) -> CacheCaller:
    caller = _caller(token, team, named_hash(request), {"artifacts": ("write",)}, totals=True)
    if caller.standing.role is not None and not caller.standing.role.writes_cache:
        raise ReadOnly
    _require_caching(caller)
    if caller.caching is CachingStatus.OVER_LIMIT:
        raise CachingOverLimit
    return caller


def cache_manager(token: BearerToken, team: NamedTeam, request: Request) -> CacheCaller:
    caller = _caller(token, team, named_hash(request), {"artifacts": ("manage",)}, totals=False)
    if caller.standing.role is not None and not caller.standing.role.manages_artifacts:
        raise MissingRole
    return caller


def caching_owner(token: BearerToken, team: NamedTeam) -> CacheCaller:
    caller = _caller(token, team, None, {"artifacts": ("manage",)}, totals=True)
    if caller.standing.role is not None and not caller.standing.role.owns_team:
        raise MissingRole
    return caller


def announced_writer(request: Request) -> CacheCaller | None:
    """The caller of an OPTIONS that announces an upload which can go straight to S3, or None for any other OPTIONS.

    For the others the token is not checked, because the reply only allows the client to send the request itself.
    """
    headers = request.headers
    announced = headers.get("access-control-request-method", "").upper()
    if announced != "PUT" or not keeps_presigned_urls(headers.get("user-agent", "")):
        return None
    token = bearer_token(request)
    return cache_writer(token, team_query(token, request), request)


def _require_caching(caller: CacheCaller) -> None:
    if error := _SWITCHED_OFF.get(caller.standing.state.caching):
        raise error


def _caller(
    token: Token,
    team: TeamQuery,
    hash: ArtifactHash | None,
    needs: Permissions,
    *,
    totals: bool,
    even_blocked: bool = False,
) -> CacheCaller:
    caller = _member(token, team, hash, needs, totals=totals)
    if not even_blocked:
        check_not_blocked(caller.standing.state)
    return caller


def _member(
    token: Token, team: TeamQuery, hash: ArtifactHash | None, needs: Permissions, *, totals: bool
) -> CacheCaller:
    now = clock.now()
    guess = _scopes.get((token, team)) or _session_scope(token, team)
    if guess is not None:
        with running(
            read_with_standing, guess.owner, guess.user_id, hash, totals=totals
        ) as reading:
            bearer = _verified(token, needs, now)
        standing, entry, sums = reading.result()
        right = (bearer.user_id, bearer.team_id) == (guess.user_id, guess.bound_to)
        if right and _is_named(team, standing):
            caller = _admitted(bearer, guess.owner, standing, entry, sums)
            _scopes[token, team] = guess
            return caller
        _scopes.pop((token, team), None)
        slug_team = team_of_slug(team.slug) if team.slug and not team.team_id else None
    elif team.slug and not team.team_id:
        with running(team_of_slug, team.slug) as looking_up:
            bearer = _verified(token, needs, now)
        slug_team = looking_up.result()
    else:
        bearer = _verified(token, needs, now)
        slug_team = None
    owner = _owner(bearer, team, slug_team)
    standing, entry, sums = read_with_standing(owner, bearer.user_id, hash, totals=totals)
    caller = _admitted(bearer, owner, standing, entry, sums)
    _scopes[token, team] = _Scope(bearer.user_id, bearer.team_id, owner)
    return caller


def _session_scope(token: Token, team: TeamQuery) -> _Scope | None:
    """The scope of a session's token, provided that the session is valid. None for keys and unknown slugs."""
    if not token.is_session:
        return None
    # Imported here, because builds use keys and start faster without the account modules.
    from larder.accounts.sessions import holder_of

    if team.slug and not team.team_id:
        with running(team_of_slug, team.slug) as looking_up:
            user_id = holder_of(token.hash)
        slug_team = looking_up.result()
    else:
        user_id, slug_team = holder_of(token.hash), None
    if user_id is None:
        raise Unauthenticated
    owner = team.team_id or slug_team
    if owner is None and _needs_slug(team):
        return None
    return _Scope(user_id, None, owner or user_id)


def _verified(token: Token, needs: Permissions, now: datetime) -> Holder:
    """The holder of a valid key that has the permissions in `needs`, or of a valid session."""
    if not token.is_session:
        key = verify_key(token.hash, needs, now=now)
        logger().append_keys(key_id=key.id)
        return Holder(key.user_id, key.team_id, key)
    from larder.accounts.sessions import find_session_of

    found = find_session_of(token.hash, now=now)
    if found is None:
        raise Unauthenticated
    session, user = found
    logger().append_keys(session_id=session.id)
    return Holder(user.id, None, session, user)


def _admitted(
    bearer: Holder, owner: str, standing: Membership, entry: IndexEntry, totals: Totals
) -> CacheCaller:
    if is_team_id(owner) and (standing.team is None or standing.role is None):
        raise NotATeamMember
    logger().append_keys(owner=owner)
    return CacheCaller(
        user_id=bearer.user_id,
        credential_id=bearer.credential.id,
        owner=owner,
        standing=standing,
        entry=entry,
        totals=totals,
        actions=_actions(bearer.credential),
    )


def _actions(credential: "ApiKey | Session") -> Collection[str]:
    if isinstance(credential, ApiKey):
        return credential.permissions.get("artifacts", ())
    return ARTIFACT_ACTIONS


def _owner(bearer: Holder, team: TeamQuery, slug_team: str | None) -> str:
    """The team that the request names, or the one that the key is bound to, or the user."""
    if _needs_slug(team) and slug_team is None:
        raise NotATeamMember
    named = team.team_id or slug_team
    if bearer.team_id is None:
        return named or bearer.user_id
    if named not in (None, bearer.team_id):
        raise NotATeamMember
    return bearer.team_id


def _needs_slug(team: TeamQuery) -> bool:
    return team.slug is not None and team.team_id is None


def _is_named(team: TeamQuery, standing: Membership) -> bool:
    """Whether the slug still leads to the remembered team. Another team may have taken it since."""
    if not _needs_slug(team):
        return True
    return standing.team is not None and team.slug in standing.team.slugs


TokenHolder = Annotated[Holder, Depends(token_holder)]
CacheMember = Annotated[CacheCaller, Depends(cache_member)]
UsageReporter = Annotated[CacheCaller, Depends(usage_reporter)]
UsageReader = Annotated[CacheCaller, Depends(usage_reader)]
CacheReader = Annotated[CacheCaller, Depends(cache_reader)]
CacheWriter = Annotated[CacheCaller, Depends(cache_writer)]
CachingOwner = Annotated[CacheCaller, Depends(caching_owner)]
CacheManager = Annotated[CacheCaller, Depends(cache_manager)]
AnnouncedWriter = Annotated[CacheCaller | None, Depends(announced_writer)]
