"""Who is calling, for whom, and whether they may: the caller types that handlers name in their signatures.

| Type | The caller |
|---|---|
| `CacheMember` | presents a valid key and, if a team is named, belongs to it |
| `CacheReader` | may also read artifacts now: permission `artifacts: read`, caching neither disabled nor paused |
| `CacheWriter` | may also write them: permission `artifacts: write`, a role that writes, the quota not used up |

A request costs two sequential round trips to AWS: the key, in one conditional write, then in one consistent batch
everything else that the request needs to know. An instance that has seen the same key act for the same team before
makes both at once; what it remembers only says which items to read, and the answer rests on what they hold now.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder import clock
from larder.api_keys.models import ApiKey, Permissions
from larder.api_keys.service import verify_key
from larder.artifacts.models import ArtifactHash, IndexEntry, Totals
from larder.artifacts.repository import read_with_standing
from larder.artifacts.service import caching_status
from larder.concurrency import in_background
from larder.errors import (
    CachingDisabled,
    CachingOverLimit,
    CachingPaused,
    NotATeamMember,
    PaymentMissing,
    ReadOnly,
    SoftBlocked,
)
from larder.teams.models import Block, CachingStatus, Membership
from larder.teams.repository import is_team_id, team_of_slug
from larder.web.build_clients import keeps_presigned_urls
from larder.web.log import logger
from larder.web.parameters import (
    Client,
    NamedTeam,
    TeamQuery,
    TokenHash,
    client_info,
    named_hash,
    team_query,
    token_hash,
)

_REMEMBERED = 1000

_BLOCKS = {Block.SOFT: SoftBlocked, Block.PAYMENT: PaymentMissing}
_SWITCHED_OFF = {
    CachingStatus.DISABLED: CachingDisabled,
    CachingStatus.PAUSED: CachingPaused,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCaller:
    """Who calls, and what the request's one batch told of the owner and of the hash in the path."""

    key: ApiKey
    owner: str
    standing: Membership
    entry: IndexEntry
    totals: Totals

    @property
    def quota_bytes(self) -> int | None:
        return self.standing.state.quota_bytes

    @property
    def caching(self) -> CachingStatus:
        return caching_status(self.standing.state, self.totals)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Whom a key acts for."""

    user_id: str
    key_team: str | None
    owner: str


_scopes: OrderedDict[tuple[str, TeamQuery], _Scope] = OrderedDict()


def cache_member(token: TokenHash, team: NamedTeam, _client: Client) -> CacheCaller:
    return _caller(token, team, None, {}, totals=True)


def cache_reader(
    token: TokenHash, team: NamedTeam, _client: Client, request: Request
) -> CacheCaller:
    caller = _caller(token, team, named_hash(request), {"artifacts": ("read",)}, totals=False)
    _require_caching(caller)
    return caller


def cache_writer(
    token: TokenHash, team: NamedTeam, _client: Client, request: Request
) -> CacheCaller:
    caller = _caller(token, team, named_hash(request), {"artifacts": ("write",)}, totals=True)
    if caller.standing.role is not None and not caller.standing.role.writes_cache:
        raise ReadOnly
    _require_caching(caller)
    if caller.caching is CachingStatus.OVER_LIMIT:
        raise CachingOverLimit
    return caller


def announced_writer(request: Request) -> CacheCaller | None:
    """The caller of an OPTIONS that announces an upload which can go straight to S3; None for any other OPTIONS.

    The others are answered without a look at the token: they get nothing but leave to send the request itself.
    """
    headers = request.headers
    announced = headers.get("access-control-request-method", "").upper()
    if announced != "PUT" or not keeps_presigned_urls(headers.get("user-agent", "")):
        return None
    token = token_hash(request)
    return cache_writer(token, team_query(token, request), client_info(token, request), request)


def _require_caching(caller: CacheCaller) -> None:
    if error := _SWITCHED_OFF.get(caller.standing.state.caching):
        raise error


def _caller(
    token: str, team: TeamQuery, hash: ArtifactHash | None, needs: Permissions, *, totals: bool
) -> CacheCaller:
    now = clock.now()
    guess = _scopes.get((token, team))
    if guess is not None:
        reading = in_background(read_with_standing, guess.owner, guess.user_id, hash, totals=totals)
        key = verify_key(token, needs, now=now)
        standing, entry, sums = reading.result()
        right = (key.user_id, key.team_id) == (guess.user_id, guess.key_team)
        if right and _is_named(team, standing):
            return _admitted(key, guess.owner, standing, entry, sums)
        del _scopes[token, team]
        slug_team = team_of_slug(team.slug) if team.slug and not team.team_id else None
    elif team.slug and not team.team_id:
        looking_up = in_background(team_of_slug, team.slug)
        key = verify_key(token, needs, now=now)
        slug_team = looking_up.result()
    else:
        key = verify_key(token, needs, now=now)
        slug_team = None
    owner = _owner(key, team, slug_team)
    standing, entry, sums = read_with_standing(owner, key.user_id, hash, totals=totals)
    caller = _admitted(key, owner, standing, entry, sums)
    _remember(token, team, _Scope(key.user_id, key.team_id, owner))
    return caller


def _admitted(
    key: ApiKey, owner: str, standing: Membership, entry: IndexEntry, totals: Totals
) -> CacheCaller:
    if is_team_id(owner) and (standing.team is None or standing.role is None):
        raise NotATeamMember
    logger().append_keys(owner=owner, key_id=key.id)
    if standing.state.block is not None:
        raise _BLOCKS[standing.state.block]
    return CacheCaller(key=key, owner=owner, standing=standing, entry=entry, totals=totals)


def _owner(key: ApiKey, team: TeamQuery, slug_team: str | None) -> str:
    """The team that the request names, else the one that the key is bound to, else the user."""
    if _needs_slug(team) and slug_team is None:
        raise NotATeamMember
    named = team.team_id or slug_team
    if key.team_id is None:
        return named or key.user_id
    if named not in (None, key.team_id):
        raise NotATeamMember
    return key.team_id


def _needs_slug(team: TeamQuery) -> bool:
    return team.slug is not None and team.team_id is None


def _is_named(team: TeamQuery, standing: Membership) -> bool:
    """Whether a remembered owner still is the one that the slug names: slugs move when teams are renamed."""
    if not _needs_slug(team):
        return True
    return standing.team is not None and standing.team.slug == team.slug


def _remember(token: str, team: TeamQuery, scope: _Scope) -> None:
    _scopes[token, team] = scope
    if len(_scopes) > _REMEMBERED:
        _scopes.popitem(last=False)


def forget_scopes() -> None:
    """Forget whom the keys seen so far act for."""
    _scopes.clear()


CacheMember = Annotated[CacheCaller, Depends(cache_member)]
CacheReader = Annotated[CacheCaller, Depends(cache_reader)]
CacheWriter = Annotated[CacheCaller, Depends(cache_writer)]
AnnouncedWriter = Annotated[CacheCaller | None, Depends(announced_writer)]
