"""The unmodified Better Auth client with its API key plugin creates, lists, gets, updates, verifies and deletes keys.

Every test runs with the newest release and, in `make proofs`, with 1.3.34.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from urllib.parse import quote

import httpx
import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.signing import sign
from larder.teams.models import Team
from larder.teams.teams import create_team
from tests.layer_on import LayerOn, forget

from . import better_auth
from .cloud import LocalCloud

pytestmark = pytest.mark.e2e


@pytest.fixture
def grace(local_cloud: LocalCloud, environment: pytest.MonkeyPatch) -> Iterator[User]:
    """A new user of the local cloud, created by the layer in this process."""
    LayerOn(environment)(local_cloud)
    address = f"grace-{secrets.token_hex(6)}@acme.example"
    yield create_user(address, "Grace", now=clock.now())
    forget()


@pytest.fixture
def team(grace: User) -> Team:
    slug = f"team-{secrets.token_hex(6)}"
    return create_team("Team", slug, owner_user_id=grace.id, now=clock.now())


Open = Callable[[Mapping[str, str]], AbstractContextManager[better_auth.Client]]


@pytest.fixture(params=better_auth.NEWEST_IN_CI)
def open_client(request: pytest.FixtureRequest, local_cloud: LocalCloud) -> Open:
    """Opens a client of this release that sends the given headers."""
    release: str = request.param
    folder = better_auth.installed(request.config.rootpath / ".tools" / "better-auth", release)
    return lambda headers: better_auth.client(folder, local_cloud.url, headers, release)


@pytest.fixture
def client(open_client: Open, grace: User) -> Iterator[better_auth.Client]:
    """The client of a page where Grace is signed in."""
    token = start_session(grace, now=clock.now())[1]
    cookie = f"better-auth.session_token={quote(f'{token}.{sign(token)}', safe='')}"
    with open_client({"cookie": cookie}) as client:
        yield client


def cache_status(local_cloud: LocalCloud, key: str, team: Team) -> int:
    return httpx.get(
        f"{local_cloud.url}/v8/artifacts/status",
        params={"slug": team.slug},
        headers={"authorization": f"Bearer {key}"},
        trust_env=False,
    ).status_code


@pytest.mark.parametrize("open_client", better_auth.PACKAGES, indirect=True)
def test_a_key_from_creation_to_deletion(
    client: better_auth.Client, local_cloud: LocalCloud, grace: User, team: Team
) -> None:
    assert client.data("apiKey.list") == []

    made = client.data("apiKey.create", name="ci", prefix="acme_", expiresIn=86_400)
    assert made["key"].startswith("acme_")
    assert (made["name"], made["userId"], made["referenceId"]) == ("ci", grace.id, grace.id)
    assert cache_status(local_cloud, made["key"], team) == 200

    (listed,) = client.data("apiKey.list")
    assert listed["id"] == made["id"]
    assert "key" not in listed

    updated = client.data("apiKey.update", keyId=made["id"], name="deploy", enabled=False)
    assert (updated["name"], updated["enabled"]) == ("deploy", False)
    assert updated["updatedAt"] > made["updatedAt"]
    got = client.data("apiKey.get", query={"id": made["id"]})
    assert got == updated
    assert cache_status(local_cloud, made["key"], team) == 401

    answer = client.data("apiKey.verify", key=made["key"])
    assert (answer["valid"], answer["error"]["code"]) == (False, "KEY_DISABLED")
    client.data("apiKey.update", keyId=made["id"], enabled=True, expiresIn=None)
    answer = client.data("apiKey.verify", key=made["key"], permissions={"artifacts": ["read"]})
    assert (answer["valid"], answer["key"]["expiresAt"]) == (True, None)

    assert client.data("apiKey.delete", keyId=made["id"]) == {"success": True}
    assert client.data("apiKey.list") == []
    assert client.error("apiKey.get", query={"id": made["id"]}) == (404, "KEY_NOT_FOUND")
    assert cache_status(local_cloud, made["key"], team) == 401


def test_metadata_permissions_and_the_team_are_returned(client: better_auth.Client, team: Team) -> None:
    sent = {"metadata": {"repo": "web", "jobs": [1, 2]}, "permissions": {"artifacts": ["read"]}, "teamId": team.id}
    made = client.data("apiKey.create", **sent)
    assert {name: made[name] for name in sent} == sent
    got = client.data("apiKey.get", query={"id": made["id"]})
    assert {name: got[name] for name in sent} == sent


def test_a_team_owns_a_key(client: better_auth.Client, local_cloud: LocalCloud, grace: User, team: Team) -> None:
    of_team = {"configId": "team", "organizationId": team.slug}
    made = client.data("apiKey.create", **of_team, name="ci", metadata={"repo": "web"})
    assert (made["configId"], made["referenceId"], made["userId"]) == ("team", team.id, None)
    assert cache_status(local_cloud, made["key"], team) == 200
    assert client.data("apiKey.list") == []
    (listed,) = client.data("apiKey.list", query=of_team)
    assert listed["id"] == made["id"]

    named = {"keyId": made["id"], "configId": "team"}
    updated = client.data("apiKey.update", **named, name="deploy")
    got = client.data("apiKey.get", query={"id": made["id"], "configId": "team"})
    assert (got, got["name"], got["metadata"]) == (updated, "deploy", {"repo": "web"})
    answer = client.data("apiKey.verify", key=made["key"])
    assert (answer["valid"], answer["key"]["referenceId"]) == (True, team.id)

    successor = client.data("apiKey.create", **of_team, replaces=made["id"], overlap=3600)
    assert cache_status(local_cloud, made["key"], team) == 200
    assert cache_status(local_cloud, successor["key"], team) == 200
    assert client.data("apiKey.delete", **named) == {"success": True}
    assert cache_status(local_cloud, made["key"], team) == 401
    assert client.error("apiKey.get", query={"id": successor["id"]}) == (404, "KEY_NOT_FOUND")


def test_the_page_gets_the_codes_of_errors_of_teams(
    client: better_auth.Client, local_cloud: LocalCloud, team: Team
) -> None:
    refused = (400, "VALIDATION_ERROR")
    assert client.error("apiKey.create", configId="org") == refused
    assert client.error("apiKey.create", organizationId=team.id) == refused
    assert client.error("apiKey.create", configId="team") == (400, "ORGANIZATION_ID_REQUIRED")
    elsewhere = {"configId": "team", "organizationId": "acme"}
    not_in_it = (403, "USER_NOT_MEMBER_OF_ORGANIZATION")
    assert client.error("apiKey.create", **elsewhere) == not_in_it
    assert client.error("apiKey.list", query=elsewhere) == not_in_it


def test_the_page_gets_the_codes_of_errors(client: better_auth.Client) -> None:
    assert client.error("apiKey.create", remaining=5) == (400, "SERVER_ONLY_PROPERTY")
    assert client.error("apiKey.create", userId="A" * 32) == (401, "UNAUTHORIZED_SESSION")
    assert client.error("apiKey.create", name="n" * 33) == (400, "INVALID_NAME_LENGTH")
    assert client.error("apiKey.create", expiresIn=0) == (400, "EXPIRES_IN_IS_TOO_SMALL")
    unheld = {"billing": ["refund"]}
    assert client.error("apiKey.create", permissions=unheld) == (403, "PERMISSION_NOT_HELD")
    assert client.error("apiKey.update", keyId="A" * 32, name="x") == (404, "KEY_NOT_FOUND")
    assert client.error("apiKey.delete", keyId="A" * 32) == (404, "KEY_NOT_FOUND")
    assert client.error("apiKey.deleteAllExpiredApiKeys") == (403, "OPERATOR_ONLY")
    assert client.data("apiKey.list") == []


def test_401_without_a_session(open_client: Open) -> None:
    with open_client({}) as nobody:
        assert nobody.error("apiKey.list") == (401, "UNAUTHORIZED")
        assert nobody.error("apiKey.create", name="ci") == (401, "UNAUTHORIZED_SESSION")


def test_a_user_signs_up_and_in_and_creates_a_key(open_client: Open) -> None:
    email, password = f"hedy-{secrets.token_hex(6)}@acme.example", secrets.token_hex(12)
    with open_client({}) as page:
        page.data("signUp.email", name="Hedy", email=email, password=password)
        token = page.data("signIn.email", email=email, password=password)["token"]
    with open_client({"authorization": f"Bearer {token}"}) as page:
        made = page.data("apiKey.create", name="laptop")
        assert [key["id"] for key in page.data("apiKey.list")] == [made["id"]]
