"""The JSON bodies of the API key endpoints, parsed and checked."""

from dataclasses import dataclass
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from larder.api_keys.models import Permissions
from larder.api_keys.service import presented_form
from larder.errors import InvalidBody
from larder.web.auth_body import parsed

MAX_PERMISSIONS = 20
"""Actions that one verification may require: all of them are checked in one condition."""

_Word = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class _Verify(BaseModel):
    # A field that is unknown here is ignored: newer clients send some of their own.
    model_config = ConfigDict(strict=True)

    key: Annotated[str, StringConstraints(max_length=1024)]
    permissions: Annotated[dict[_Word, list[_Word]], Field(max_length=MAX_PERMISSIONS)] = Field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """A key to verify, by what it is looked up by; None when the deployment's own validator refused it."""

    key_hash: str | None
    permissions: Permissions


def verify_body(request: Request) -> PresentedKey:
    """`{"key", "permissions"?}`. Raises InvalidBody."""
    body = parsed(request, _Verify)
    if sum(map(len, body.permissions.values())) > MAX_PERMISSIONS:
        raise InvalidBody("permissions", f"must require at most {MAX_PERMISSIONS} actions")
    permissions = {resource: tuple(actions) for resource, actions in body.permissions.items()}
    return PresentedKey(presented_form(body.key), permissions)


VerifyBody = Annotated[PresentedKey, Depends(verify_body)]
