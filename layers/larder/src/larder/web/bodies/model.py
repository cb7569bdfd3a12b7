"""The base of the models of JSON bodies, and how a body is parsed with one."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from larder.web.bodies.raw import broken_rules, sent_json
from larder.web.errors import InvalidRequest
from larder.web.powertools.resolver import Request

T = TypeVar("T")


class BodyModel(BaseModel):
    """Types are strict: "1" is not a number. Unknown fields are ignored: newer clients send more of them."""

    model_config = ConfigDict(strict=True)


def parsed_json(model: TypeAdapter[T], request: Request) -> T:
    """The body by its model. Raises InvalidRequest, which names each field that breaks a rule, and the rule."""
    return validated(model, sent_json(request))


def validated(model: TypeAdapter[T], body: object) -> T:
    """The same of JSON that is parsed already."""
    try:
        return model.validate_python(body)
    except ValidationError as error:
        first, *others = broken_rules(error)
        raise InvalidRequest(*first, *others) from None
