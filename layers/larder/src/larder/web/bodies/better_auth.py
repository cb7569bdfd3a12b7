"""The body of a request to `/api/auth`. It is parsed once, for the guards and for the handler."""

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

from larder.web.bodies.raw import broken_rules, sent_bytes, sent_json
from larder.web.errors import InvalidBody, InvalidRequest, UnsupportedMediaType
from larder.web.powertools.resolver import Request

if TYPE_CHECKING:
    # The guards of every endpoint read the body; those that check nothing of it start without pydantic.
    from pydantic import BaseModel

MAX_FORM_FIELDS = 100

_KEPT = "auth_body"

M = TypeVar("M", bound="BaseModel")


def auth_body(request: Request, *, takes_forms: bool = False) -> object:
    """The body as JSON, or `{}` without a body. A form, where forms are accepted, becomes an object of strings.

    Raises UnsupportedMediaType, InvalidRequest. The guards of better_auth_api() call it before any handler does.
    """
    if _KEPT not in request.context:
        request.context[_KEPT] = _parse(request, takes_forms)
    return request.context[_KEPT]


def parsed(request: Request, model: type[M]) -> M:
    """The body as a model. Raises InvalidBody."""
    from pydantic import ValidationError

    try:
        return model.model_validate(auth_body(request))
    except ValidationError as error:
        first, *others = broken_rules(error)
        raise InvalidBody(*first, *others) from None


def _parse(request: Request, takes_forms: bool) -> object:
    if not sent_bytes(request):
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json":
        return sent_json(request)
    if media_type == "application/x-www-form-urlencoded" and takes_forms:
        return _sent_form(request)
    raise UnsupportedMediaType


def _sent_form(request: Request) -> dict[str, str]:
    """If a name is repeated, the last value is used, as in JSON."""
    try:
        text = sent_bytes(request).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise InvalidRequest("body", "must be a form in UTF-8") from None
    return dict(pairs)
