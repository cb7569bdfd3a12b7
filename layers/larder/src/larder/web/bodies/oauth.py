"""The forms of the token endpoints (RFC 8693, RFC 7009), parsed and checked.

Without pydantic: a job waits for each exchange, and most of them meet a cold start.
"""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qsl

from larder.api_keys.verification import presented_form
from larder.errors import InvalidTarget, UnsupportedGrantType
from larder.teams.slugs import SLUG, names_a_team
from larder.trust.models import ExchangeRequest
from larder.web.base_url import base_url
from larder.web.bodies.raw import printable, sent_bytes
from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Depends, Request
from larder.web.request_context import request_context

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN_TYPES = (
    "urn:ietf:params:oauth:token-type:id_token",
    "urn:ietf:params:oauth:token-type:jwt",
)
ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  # the name of a type
READ_SCOPE = "artifacts:read"
WRITE_SCOPE = "artifacts:write"
MAX_FORM_BYTES = 32 * 1024
FORM = "application/x-www-form-urlencoded"
_MOST_FIELDS = 30
_TEAM_NAMES = ("team_id_or_slug", "team_id", "teamId", "slug")
_TARGETS = ("audience", "resource")


def exchange_form(request: Request) -> ExchangeRequest:
    """The form of an exchange. Raises InvalidRequest, UnsupportedGrantType, InvalidTarget."""
    form = _form(request)
    if form.get("grant_type") != GRANT:
        raise UnsupportedGrantType
    if form.get("subject_token_type", ID_TOKEN_TYPES[0]) not in ID_TOKEN_TYPES:
        raise InvalidRequest("subject_token_type", f"must be {' or '.join(ID_TOKEN_TYPES)}")
    if form.get("requested_token_type", ACCESS_TOKEN_TYPE) != ACCESS_TOKEN_TYPE:
        raise InvalidRequest("requested_token_type", f"must be {ACCESS_TOKEN_TYPE}")
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


def revoked_token(request: Request) -> str | None:
    """The token to revoke in its stored form. None if it cannot be a key. Raises InvalidRequest."""
    token = _form(request).get("token")
    if not token:
        raise InvalidRequest("token", "is required")
    return presented_form(token, request_context(request))


def _form(request: Request) -> Mapping[str, str]:
    """The fields of the form that are not empty."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM:
        raise InvalidRequest("content-type", f"must be {FORM}")
    body = sent_bytes(request)
    if len(body) > MAX_FORM_BYTES:
        raise InvalidRequest("body", f"must have at most {MAX_FORM_BYTES} bytes")
    try:
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError:
        raise InvalidRequest("body", "must be a form in UTF-8") from None
    form = dict(fields)
    for name, value in fields:
        if sum(other == name for other, _ in fields) > 1:
            raise InvalidRequest(printable(name), "must not be sent twice")
        if "\0" in value:
            raise InvalidRequest(printable(name), "must not hold a zero byte")
    return {name: value for name, value in form.items() if value}


def _team(form: Mapping[str, str]) -> dict[str, str]:
    """The id or slug of the team, and its id if the form has both."""
    named = {form[name] for name in _TEAM_NAMES if name in form}
    ids = [one for one in named if names_a_team(one)]
    slugs = [one for one in named if SLUG.fullmatch(one)]
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


SentExchange = Annotated[ExchangeRequest, Depends(exchange_form)]
RevokedToken = Annotated[str | None, Depends(revoked_token)]
