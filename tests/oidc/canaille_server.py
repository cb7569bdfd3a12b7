"""Canaille with two people and one client, in memory. Runs in a venv of its own: `python canaille_server.py <JSON>`.

The JSON has `port`, `client_id`, `client_secret`, `redirect_uri`, `domain`, `password`, and `people` with their groups
by name.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from werkzeug.serving import run_simple

HOST = "127.0.0.1"


def main(wanted: dict[str, Any]) -> None:
    app = create_app(
        {
            "SECRET_KEY": "of the tests",
            "SERVER_NAME": f"{HOST}:{wanted['port']}",
            "PREFERRED_URL_SCHEME": "http",
            "CANAILLE": {
                "DATABASE": "memory",
                "JAVASCRIPT": False,
                "CAPTCHA_ENABLED": False,
                "SMTP": None,
                "ACL": {"DEFAULT": {"PERMISSIONS": ["edit_self", "use_oidc"]}},
            },
            "CANAILLE_OIDC": {},
        }
    )
    with app.app_context():
        for name, groups in wanted["people"].items():
            _add_person(name, groups, wanted)
        _add_client(wanted)
    run_simple(HOST, wanted["port"], app, threaded=True)


def _add_person(name: str, groups: list[str], wanted: dict[str, Any]) -> None:
    user = models.User(
        user_name=name.lower(),
        formatted_name=name,
        family_name=name,
        emails=[f"{name.lower()}@{wanted['domain']}"],
        password=wanted["password"],
    )
    Backend.instance.save(user)
    for group in groups:
        Backend.instance.save(models.Group(display_name=group, members=[user]))


def _add_client(wanted: dict[str, Any]) -> None:
    client = models.Client(
        client_id=wanted["client_id"],
        client_secret=wanted["client_secret"],
        client_id_issued_at=datetime.now(UTC),
        client_name="Larder",
        client_uri="http://127.0.0.1",
        id_token_signed_response_alg="RS512",
        redirect_uris=[wanted["redirect_uri"]],
        grant_types=["authorization_code"],
        response_types=["code"],
        scope=["openid", "email", "profile", "groups"],
        token_endpoint_auth_method="client_secret_basic",
    )
    Backend.instance.save(client)
    # As its own pages do for a new client.
    client.audience = [client]
    Backend.instance.save(client)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
