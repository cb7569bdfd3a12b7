"""Who is calling, for whom, and whether they may: the caller types that handlers name in their signatures.

| Type | The caller |
|---|---|
| `TokenHolder` | presents a valid key or session token, for whatever team |
| `CacheMember` | presents a valid key or session token and, if a team is named, belongs to it |
| `UsageReporter` | may report cache usage events: any permission on `artifacts` |
| `UsageReader` | may read figures: permission `artifacts: read`. A block does not stop it |
| `CacheReader` | may also read artifacts now: permission `artifacts: read`, caching neither disabled nor paused |
| `CacheWriter` | may also write them: permission `artifacts: write`, a role that writes, the quota not used up |
| `CachingOwner` | may switch caching off and on: permission `artifacts: manage`, an owner of the team |
| `CacheManager` | may list and delete them, even while caching is off: permission `artifacts: manage`, owner or admin |

Permissions are a key's. Somebody with a session does what their role allows.

A request costs two sequential round trips to AWS: the key, in one conditional write, then in one consistent batch
everything else that the request needs to know. An instance that has seen the same key act for the same team before
makes both at once; what it remembers only says which items to read, and the answer rests on what they hold now. So does
one that meets a session: whose it is, which it looks up first, already says what to read.
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
from larder.artifacts.repository.index import read_with_standing
from larder.artifacts.service import caching_status
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
from larder.teams.models import Block, CachingStatus, Membership, OwnerState
from larder.teams.repository import is_team_id, team_of_slug
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
    """Who calls, and what the request's one batch told of the owner and of the hash in the path.

    `credential_id` is the id of the key or of the session.
    """

    user_id: str
    credential_id: str
    owner: str
    standing: Membership
    entry: IndexEntry
    totals: Totals
    actions: Collection[str]
    """What the key may do with artifacts, by its permissions. For a session, everything: its user's role rules."""

    @property
    def team_id(self) -> str | None:
        """The team that the request acts for; None when it acts for the person."""
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
        """The same as far as the caller's key goes: one that may neither read nor write cannot use the cache at all."""
        if not any(action in self.actions for action in CACHE_ACTIONS):
            return CachingStatus.DISABLED
        return self.caching


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose token it is, which team it is bound to, if any, and the key or session itself.

    `user` is there for a session, which is looked up with its user.
    """

    user_id: str
    team_id: str | None
    credential: "ApiKey | Session"
    user: "User | None" = None


@dataclass(frozen=True, slots=True)
class _Scope:
    """Whom a token acts for."""

    user_id: str
    bound_to: str | None
    owner: str


_scopes: Remembered[tuple[Token, TeamQuery], _Scope] = Remembered(1000)


def token_holder(token: BearerToken) -> Holder:
    return holder_with(token, {})


def holder_with(token: Token, needs: Permissions) -> Holder:
    """Who presents the token. A key has to hold what is needed; somebody with a session does what their role allows.

    Raises Unauthenticated, MissingPermission, RateLimited.
    """
    return _verified(token, needs, clock.now())


def check_not_blocked(state: OwnerState) -> None:
    """Raises SoftBlocked, PaymentMissing."""
    if state.block is not None:
        raise _BLOCKS[state.block](state.block_reason)


def end_credential(credential: "ApiKey | Session") -> None:
    """End the key or session that a request presents, from the next request on."""
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
    """The caller of an OPTIONS that announces an upload which can go straight to S3; None for any other OPTIONS.

    The others are answered without a look at the token: they get nothing but leave to send the request itself.
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
    guess = _scopes.get((token, team)) or _foreseen(token, team)
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


def _foreseen(token: Token, team: TeamQuery) -> _Scope | None:
    """Whom the token of a session will act for, if the session counts; None where only a look tells."""
    if not token.is_session:
        return None
    # Imported here: builds, which present keys, start faster without what people need.
    from larder.accounts.repository import holder_of

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
    """Who presents the token, by a key that is valid and holds what is needed, or by a session that counts."""
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
    """The team that the request names, else the one that the key is bound to, else the user."""
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
    """Whether a remembered owner still is the one that the slug leads to: slugs are given up, and taken by others."""
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
