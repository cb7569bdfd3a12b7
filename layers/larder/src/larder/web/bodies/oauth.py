"""The forms of the token endpoints (RFC 8693, RFC 7009), parsed and checked.

Without pydantic: a job waits for each exchange, and most of them meet a cold start.
"""

from collections.abc import Mapping

from larder.api_keys.verification import presented_form
from larder.errors import InvalidTarget, UnsupportedGrantType
from larder.teams.slugs import SLUG, names_a_team
from larder.trust.models import ExchangeRequest
from larder.web.bodies.values import Field, constant, form_body, one_of, string
from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Request
from larder.web.request_context import base_url, request_context

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN_TYPES = (
    "urn:ietf:params:oauth:token-type:id_token",
    "urn:ietf:params:oauth:token-type:jwt",
)
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  # the name of a type
READ_SCOPE = "artifacts:read"
WRITE_SCOPE = "artifacts:write"
_OTHER_TEAM_NAMES = ("team_id", "teamId", "slug")
_TEAM_NAMES = ("team_id_or_slug", *_OTHER_TEAM_NAMES)
_TARGETS = ("audience", "resource")


_EXCHANGE = form_body(
    Field("grant_type", constant(GRANT, UnsupportedGrantType)),
    Field(
        "subject_token",
        string(),
        help="The id token of the CI. Its audience is the address of this service.",
    ),
    Field("subject_token_type", one_of(ID_TOKEN_TYPES), required=False),
    Field("requested_token_type", constant(ACCESS_TOKEN_TYPE), required=False),
    Field("team_id_or_slug", string(), help="The team, by its id or slug."),
    *(
        Field(name, string(), required=False)
        for name in (*_OTHER_TEAM_NAMES, "policy_id", "scope", *_TARGETS, "client_id")
    ),
)
_REVOCATION = form_body(
    Field("token", string()), Field("token_type_hint", string(), required=False)
)


def exchange_form(request: Request) -> ExchangeRequest:
    """The form of an exchange. Raises InvalidRequest, UnsupportedGrantType, InvalidTarget."""
    form = _EXCHANGE(request)
    if "grant_type" not in form:
        raise UnsupportedGrantType
    if "actor_token" in form:
        raise InvalidRequest("actor_token", "is not supported: a token acts for one job")
    origin = base_url(request)
    if any(form.get(name, origin) != origin for name in _TARGETS):
        raise InvalidTarget
    if not form.get("subject_token"):
        raise InvalidRequest("subject_token", "is required: the id token of your CI")
    return ExchangeRequest(
        **_team(form),
        id_token=form["subject_token"],
        rule_id=form.get("policy_id"),
        reads_only=_reads_only(form.get("scope")),
    )


def token_to_revoke(request: Request) -> str | None:
    """The token to revoke in its stored form. None if it cannot be a key. Raises InvalidRequest."""
    token = _REVOCATION(request).get("token")
    if not token:
        raise InvalidRequest("token", "is required")
    return presented_form(token, request_context(request))


def _team(form: Mapping[str, str]) -> dict[str, str]:
    """The id or slug of the team, and its id if the form has both."""
    named = {form[name] for name in _TEAM_NAMES if name in form}
    ids = [name for name in named if names_a_team(name)]
    slugs = [name for name in named if SLUG.fullmatch(name)]
    if len(ids) + len(slugs) < len(named):
        raise InvalidRequest("team_id_or_slug", "must be the id or the slug of a team")
    if not named or len(ids) > 1 or len(slugs) > 1:
        raise InvalidRequest("team_id_or_slug", "must name one team, by its id, its slug or both")
    return {"team": (*slugs, *ids)[0], **({"team_id": ids[0]} if ids else {})}


def _reads_only(scope: str | None) -> bool:
    """Whether the job asks for a token that only reads."""
    if scope is None:
        return False
    asked = set(scope.split())
    if READ_SCOPE not in asked or not asked <= {READ_SCOPE, WRITE_SCOPE}:
        raise InvalidRequest("scope", f"must be {READ_SCOPE}, with or without {WRITE_SCOPE}")
    return WRITE_SCOPE not in asked
