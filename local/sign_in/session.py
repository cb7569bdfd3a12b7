"""Start a session of the user that the first start created. Runs in a worker, through the layer's own services."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from larder.accounts.service import find_user_by_email
from larder.accounts.sessions import start_session
from larder.signing import sign
from local.environment import OPERATOR_EMAIL


def handler(_event: Mapping[str, Any], _context: object) -> dict[str, str | None]:
    """Returns `cookie`, the value of the session's cookie. It is null if the user has been deleted."""
    user = find_user_by_email(OPERATOR_EMAIL)
    if user is None:
        return {"cookie": None}
    _, token = start_session(user, now=datetime.now(tz=UTC))
    return {"cookie": quote(f"{token}.{sign(token)}", safe="")}
