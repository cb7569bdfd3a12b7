"""The body of a request to `/api/auth`, read once: the guards and the handler's own types see the same."""

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

from aws_lambda_powertools.event_handler import Request

from larder.errors import InvalidBody, InvalidRequest, UnsupportedMediaType
from larder.web.bodies.raw import broken_rules, sent_bytes, sent_json

if TYPE_CHECKING:
    # The guards of every endpoint read the body; those that check nothing of it start without pydantic.
    from pydantic import BaseModel

MAX_FORM_FIELDS = 100

_KEPT = "auth_body"

M = TypeVar("M", bound="BaseModel")


def auth_body(request: Request, *, takes_forms: bool = False) -> object:
    """The body as JSON, `{}` when there is none; a form as an object of texts, where it is taken.

    Raises UnsupportedMediaType, InvalidRequest. The guards of auth_api() have called it before any handler does.
    """
    if _KEPT not in request.context:
        request.context[_KEPT] = _parse(request, takes_forms)
    return request.context[_KEPT]


def parsed(request: Request, model: type[M]) -> M:
    """The body as a model. Raises InvalidBody, which names the fields and the rules."""
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
    """Of a name that is there twice the last one counts, as in JSON."""
    try:
        text = sent_bytes(request).decode()
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise InvalidRequest("body", "must be a form in UTF-8") from None
    return dict(pairs)
