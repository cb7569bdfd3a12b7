"""A valid request for every route of the template.

Tests take requests from here and change only the part that they test. `make generate` writes events/ from it, and the
examples of the OpenAPI document come from events/. A route without an entry in `_entries` takes the token of a session
and, for a POST, an empty JSON object. tests/test_catalogue.py sends each request, with everything it needs in place.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from local.template import DEFAULT_PATH
from tests.default_template import template

if TYPE_CHECKING:
    from tests.requests import Reply, Sender

TURBO = "turbo 2.11.11 1.98.0-nightly linux x86_64"
FORM = {"content-type": "application/x-www-form-urlencoded"}
CALLBACK = "http://127.0.0.1:9789"
"""Where `turbo login` waits for its token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The values that requests contain. The defaults are for events/, and nothing has them."""

    team: str = "acme"
    """A team that the caller owns."""
    hash: str = "08e4547d5347b63f"
    """An artifact of the team, except for PUT and OPTIONS."""
    member: str = "sample"
    """Another member of the team."""
    key: str = "larder_sample_key"
    rule: str = "rule_LarderSampleRule00000000000"
    """A rule of the team."""
    id_token: str = "eyJhbGciOiJSUzI1NiJ9.e30.sample"
    """An id token of a job that a rule of the team accepts."""
    ci_token: str = "larder_ci_sample"
    key_id: str = "LarderSampleKey00000000000000000"
    session: str = "LarderSampleSession0000000000000"
    other_session: str = "LarderSampleSessionOtherOne00000"
    email: str = "ada@example.com"
    """The caller's address. For sign-up, an address that no user has."""
    password: str = "correct horse battery staple"
    new_email: str = "ada@new.example"
    invited_email: str = "bob@example.com"
    new_slug: str = "web-platform"
    """The slug of the team that POST /v1/teams creates."""
    renamed_slug: str = "acme-inc"
    reset_token: str = "LarderSampleResetToken00"
    verification_token: str = "eyJhbGciOiJIUzI1NiJ9.e30.sample"
    confirmation_token: str = "eyJhbGciOiJIUzI1NiJ9.e30.sample"
    invitation_token: str = "A" * 40
    """The token of an invitation of the caller's address to a team that the caller is not in."""
    login_code: str = "LarderSampleLoginCode00000000000"
    provider: str = "acme"
    """An identity provider."""
    provider_domain: str = "acme.example"
    """A domain of it."""
    linked_account: str = "LarderSampleAccount0000000000000"
    """An account of the caller at a provider, in addition to a password."""
    caching: str = "paused"
    """The caching status to set."""
    run: str = "36BZkPZ2WvAw4rLnTqMzCx0Ed8s"
    """The run to read. That of `POST /v1/runs` has this id unless another one is given."""
    run_started_ms: int = field(default_factory=lambda: round(time.time() * 1000) - 60_000)
    """When the reported run started. events/ has a fixed moment; runs that are too old are refused."""
    origin: str = "https://cache.example.com"
    """The origin of the deployment."""
    trusted_origin: str = "https://app.example.com"


NAMES = Names()


@dataclass(frozen=True, slots=True)
class Request:
    """A request, without its token and its team."""

    method: str
    path: str
    by: Literal["key", "session"] | None = "session"
    """The token that it takes."""
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    body: bytes = b""

    @property
    def for_team(self) -> bool:
        """Whether its query can name a team. `Sender` and events/ add it."""
        return self.path.startswith(
            (
                "/v8/artifacts", "/v1/artifacts", "/v1/runs", "/v1/tasks", "/v1/causes", "/v1/usage", "/v1/audit",
                "/v1/storage",
            )
        )  # fmt: skip

    def token(self, names: Names) -> str | None:
        """The token of the caller."""
        return {"key": names.key, "session": names.session, None: None}[self.by]

    def __call__(self, send: Sender) -> Reply:
        """Send it with the token and the team of `send`."""
        target = f"{self.path}?{self.query}" if self.query else self.path
        return send(self.method, target, body=self.body, json_body=self.json, headers=self.headers)


def valid(operation: str, names: Names = NAMES, **changed: Any) -> Request:
    """The request for an operation such as `GET /v2/teams`. `changed` replaces some of `names`."""
    given = replace(names, **changed)
    method, path = operation.split()
    # The other routes with a rest answer every path.
    path = path.replace("/docs/{proxy+}", "/docs/clients/turbo")
    for parameter, value in path_parameters(given).items():
        path = path.replace(f"{{{parameter}}}", value)
    default: dict[str, Any] = {"json": {}} if method == "POST" else {}
    return Request(method, path, **_entries(given).get(operation, default))


@cache
def operations() -> list[str]:
    """Every operation of the template."""
    routes = template().routes
    return [route.key for route in routes if route.path != DEFAULT_PATH]


def path_parameters(names: Names) -> dict[str, str]:
    return {
        "hash": names.hash,
        "idOrSlug": names.team,
        "keyId": names.key_id,
        "ruleId": names.rule,
        "runId": names.run,
        "uid": names.member,
        "token": names.reset_token,
        "id": names.provider,
        "proxy+": "sign-in/email",
    }


def entries() -> set[str]:
    """The operations whose requests are not the default."""
    return set(_entries(NAMES))


Entry = Callable[..., dict[str, Any]]


def _entries(n: Names) -> dict[str, dict[str, Any]]:
    """For each operation, the fields of its `Request`."""
    public: Entry = partial(dict, by=None)
    by_key: Entry = partial(dict, by="key")
    by_session: Entry = partial(dict, by="session")
    new_password = "another correct horse"
    state = "JlWTpaNIJSVbBSyMpDVuzWvdNaWoUjqg"
    callback = quote(CALLBACK, safe="")
    from_ci = {"x-artifact-client-ci": "GITHUB_ACTIONS", "x-artifact-client-interactive": "0"}
    event = {"sessionId": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "source": "REMOTE"}
    invite = by_session(json={"email": n.invited_email, "role": "DEVELOPER"})
    return {
        # functions/accounts
        "OPTIONS /api/auth/{proxy+}": public(
            headers={
                "access-control-request-headers": "content-type",
                "access-control-request-method": "POST",
                "origin": n.trusted_origin,
            }
        ),
        "POST /api/auth/change-email": by_session(json={"newEmail": n.new_email, "callbackURL": "/changed"}),
        "POST /api/auth/confirm-email-change": public(json={"token": n.confirmation_token}),
        "POST /api/auth/change-password": by_session(
            json={"newPassword": new_password, "currentPassword": n.password, "revokeOtherSessions": True}
        ),
        "GET /api/auth/ok": public(),
        "POST /api/auth/request-password-reset": public(json={"email": n.email, "redirectTo": "/reset"}),
        "POST /api/auth/reset-password": public(json={"newPassword": new_password, "token": n.reset_token}),
        "GET /api/auth/reset-password/{token}": public(query="callbackURL=%2Freset"),
        "POST /api/auth/revoke-session": by_session(json={"token": n.other_session}),
        "POST /api/auth/send-verification-email": public(json={"email": n.email, "callbackURL": "/verified"}),
        "POST /api/auth/sign-in/social": public(json={"provider": n.provider, "callbackURL": "/console"}),
        "POST /api/auth/sign-in/sso": public(json={"email": f"ada@{n.provider_domain}", "callbackURL": "/console"}),
        "GET /api/auth/sign-in/providers": public(),
        "GET /api/auth/callback/{id}": public(
            # The browser has no cookie of this sign-in. tests/sso has the requests that finish one.
            query="code=sample&state=5a3d91c2.LarderSampleSignInStateOfTheUser"
        ),
        "POST /api/auth/link-social": by_session(json={"provider": n.provider, "callbackURL": "/console/account"}),
        "POST /api/auth/unlink-account": by_session(json={"accountId": n.linked_account}),
        "POST /api/auth/sign-in/email": public(json={"email": n.email, "password": n.password}),
        "POST /api/auth/sign-up/email": public(json={"name": "Ada", "email": n.email, "password": n.password}),
        "POST /api/auth/update-user": by_session(json={"name": "Ada Lovelace"}),
        "GET /api/auth/verify-email": public(query=f"token={n.verification_token}&callbackURL=%2Fverified"),
        "POST /api/auth/verify-password": by_session(json={"password": n.password}),
        "GET /v2/user": by_key(),
        "GET /v5/user/tokens/current": by_key(),
        "DELETE /v3/user/tokens/current": by_key(),
        # functions/api_keys
        "POST /api/auth/api-key/create": by_session(
            json={"name": "ci", "expiresIn": 2592000, "permissions": {"artifacts": ["read"]}}
        ),
        "POST /api/auth/api-key/delete": by_session(json={"keyId": n.key_id}),
        "GET /api/auth/api-key/get": by_session(query=f"id={n.key_id}"),
        "POST /api/auth/api-key/update": by_session(json={"keyId": n.key_id, "name": "deploy"}),
        "POST /api/auth/api-key/verify": public(json={"key": n.key, "permissions": {"artifacts": ["read"]}}),
        "POST /login/oauth/token": public(
            headers=FORM,
            body=urlencode(
                {
                    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                    "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
                    "team_id_or_slug": n.team,
                    "subject_token": n.id_token,
                }
            ).encode(),
        ),
        "POST /login/oauth/token/revoke": public(headers=FORM, body=urlencode({"token": n.ci_token}).encode()),
        # functions/artifacts
        "PUT /v8/artifacts/{hash}": by_key(
            headers={
                **from_ci,
                "x-artifact-duration": "1234",
                "x-artifact-sha": "1f0bd0a4c8b0f0e5b6f0a4f0a6b7c8d9e0f1a2b3",
                "x-artifact-tag": "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ=",
            },
            # zstandard of "hello, larder"
            body=base64.b64decode("KLUv/SQNaQAAaGVsbG8sIGxhcmRlcg=="),
        ),
        "GET /v8/artifacts/{hash}": by_key(),
        "HEAD /v8/artifacts/{hash}": by_key(),
        "OPTIONS /v8/artifacts/{hash}": by_key(
            headers={
                "access-control-request-headers": "Authorization, Content-Type, User-Agent, x-artifact-duration, "
                "x-artifact-tag, x-artifact-sha, x-artifact-dirty-hash",
                "access-control-request-method": "PUT",
                "user-agent": TURBO,
            }
        ),
        "OPTIONS /v8/artifacts": public(),
        "OPTIONS /v8/artifacts/events": public(),
        "OPTIONS /v8/artifacts/status": public(),
        "POST /v8/artifacts": by_key(json={"hashes": [n.hash, "5347b63f08e4547d"]}),
        "POST /v8/artifacts/events": by_key(
            headers=from_ci,
            json=[
                {**event, "event": "HIT", "hash": n.hash, "duration": 1234},
                {**event, "source": "LOCAL", "event": "MISS", "hash": n.hash},
            ],
        ),
        "GET /v8/artifacts/status": by_key(),
        "PUT /v1/artifacts/status": by_session(json={"status": n.caching}),
        "GET /v1/artifacts": by_session(query="limit=50"),
        "DELETE /v1/artifacts": by_session(query=f"writer={n.key_id}"),
        # functions/pages
        "GET /": public(),
        "GET /console": public(),
        "GET /console/{proxy+}": public(),
        "GET /docs": public(),
        "GET /docs/{proxy+}": public(),
        "GET /api/auth/sso": public(query=f"teamId={n.team}&mode=login&next={callback}&state={state}"),
        "GET /api/auth/turbo-login": by_session(query=f"redirect_uri={callback}"),
        "POST /api/auth/turbo-login": by_session(
            headers={"origin": n.origin, "sec-fetch-site": "same-origin"},
            json={"redirectUri": CALLBACK, "state": state, "name": "turbo on Linux"},
        ),
        "GET /join": public(query="token=LarderSampleInvitation0000000000"),
        "GET /openapi.json": public(),
        "GET /registration/verify": public(
            query=f"token={n.login_code}&tokenName=Turbo+CLI+on+laptop+via+SAML%2FOIDC+Single+Sign-On"
        ),
        "GET /sign-in": public(query="next=%2Fconsole%2Faccount"),
        "GET /reset-password": public(query=f"token={n.reset_token}"),
        "GET /turborepo/success": public(),
        "GET /turborepo/token": public(query=f"redirect_uri={callback}&state={state}"),
        "GET /verified": public(),
        # functions/teams
        "POST /v1/teams": by_session(json={"slug": n.new_slug, "name": "Web platform"}),
        "GET /v2/teams": by_key(query="limit=100"),
        "GET /v2/teams/{idOrSlug}": by_key(),
        "PATCH /v2/teams/{idOrSlug}": by_session(json={"name": "Acme, Inc.", "slug": n.renamed_slug}),
        "POST /v1/teams/{idOrSlug}/rules": by_session(json={"provider": "github", "repository": "acme/web"}),
        "PATCH /v1/teams/{idOrSlug}/rules/{ruleId}": by_session(json={"lifetimeSeconds": 1800}),
        "POST /v1/teams/{idOrSlug}/rules/explain": by_session(
            json={"claims": {"iss": "https://gitlab.com", "project_id": "22"}}
        ),
        "GET /v1/teams/{idOrSlug}/protection": by_session(),
        "PUT /v1/teams/{idOrSlug}/protection": by_session(json={"protected": True}),
        "POST /v1/teams/{idOrSlug}/members": invite,
        "POST /v2/teams/{idOrSlug}/members": invite,
        "PATCH /v1/teams/{idOrSlug}/members/{uid}": by_session(json={"role": "ADMIN"}),
        "POST /v1/teams/join": by_session(json={"token": n.invitation_token}),
        "POST /v1/teams/invitation": public(json={"token": n.invitation_token}),
        "POST /v1/teams/{idOrSlug}/members/teams/join": by_session(json={"inviteCode": n.invitation_token}),
        "GET /v1/audit": by_session(query="action=caching_set,key_deleted"),
        # functions/usage
        "GET /v1/storage": by_session(),
        "GET /v1/runs": by_key(query="from=2026-11-01&to=2026-11-21"),
        "GET /v1/runs/{runId}": by_key(query=f"startedAt={n.run_started_ms}"),
        "GET /v1/tasks/history": by_key(query="package=web&task=build"),
        "POST /v1/causes": by_key(
            query="against=main",
            headers={"x-artifact-client-ci": "GITHUB_ACTIONS"},
            json={
                "turboVersion": "2.11.11",
                "scm": {"branch": "main", "sha": "1f0bd0a4c8b0f0e5b6f0a4f0a6b7c8d9e0f1a2b3"},
                "ancestors": ["77aa00b1c8b0f0e5b6f0a4f0a6b7c8d9e0f1a2b3"],
                "dirty": False,
                "tasks": [
                    {"package": "web", "task": "build", "hash": n.hash, "cache": {"status": "MISS"}, "bytes": 2_000_000}
                ],
                "inputs": {
                    "version": 1,
                    "global": {
                        "rootKey": "f3a1b2c3d4e5",
                        "files": {"tsconfig.json": "9e26dfeeb6e6"},
                        "external": "459c029558afe716",
                        "internal": "",
                        "env": {"NODE_ENV": ""},
                        "inferred": [],
                        "specified": {"env": ["NODE_ENV"], "passThroughEnv": []},
                        "engines": "",
                        "envMode": "strict",
                        "frameworkInference": True,
                    },
                    "files": [{"directory": "packages/web", "files": {"src/a.js": "78981922613b"}}],
                    "definitions": [
                        {
                            "outputs": ["dist/**"],
                            "env": ["API_URL"],
                            "passThroughEnv": [],
                            "dependsOn": ["^build"],
                            "cache": True,
                        }
                    ],
                    "tasks": [
                        {
                            "files": 0,
                            "definition": 0,
                            "external": "459c029558afe716",
                            "env": {"API_URL": "ab8e18ef4ebebeddc0b3152ce9c9006e14fc05242e3fc9ce32246ea6a9543074"},
                            "inferred": [],
                            "dependencies": [],
                            "script": "c3ab8ff13720",
                            "arguments": "",
                            "envMode": "strict",
                        }
                    ],
                },
                "hints": {
                    "files": {"packages/web/src/a.js": "untracked"},
                    "packages": {"packages/web": ["lodash 4.17.20 -> 4.17.21"]},
                },
            },
        ),
        "DELETE /v1/runs": by_session(query=f"reporter={n.key_id}"),
        "POST /v1/runs": by_key(
            headers={"x-artifact-client-ci": "GITHUB_ACTIONS"},
            json={
                "id": "36BZkPZ2WvAw4rLnTqMzCx0Ed8s",
                "turboVersion": "2.11.11",
                "execution": {"startTime": n.run_started_ms, "endTime": n.run_started_ms + 42_000, "exitCode": 0},
                "scm": {"branch": "main", "sha": "1f0bd0a4c8b0f0e5b6f0a4f0a6b7c8d9e0f1a2b3"},
                "tasks": [
                    {
                        "package": "web",
                        "task": "build",
                        "hash": n.hash,
                        "cache": {"status": "HIT", "source": "REMOTE", "timeSaved": 41000},
                        "execution": {"startTime": n.run_started_ms + 500, "endTime": n.run_started_ms + 1_000},
                    }
                ],
            },
        ),
        "GET /v1/usage/by": by_session(query="what=key&from=2026-11-01&to=2026-11-21"),
        "GET /v1/usage/metrics": by_key(),
        "GET /v1/usage": by_key(query="from=2026-11-01&to=2026-11-21"),
    }
