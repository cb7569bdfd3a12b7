"""The attacks on the exchange, by the number of docs/trust.md. Those that need scopes are tested with them."""

from __future__ import annotations

import base64
import json
import socket
import time
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from cryptography.hazmat.primitives import serialization

from larder import clock
from larder.api_keys import repository as key_store
from larder.instance import restart
from larder.issuers import repository as issuers
from larder.issuers.fetching import Unreachable, fetch_json
from larder.rate_limits.models import FAILED_EXCHANGES
from larder.rate_limits.service import take
from larder.teams.models import Role
from larder.trust.models import RuleChange
from larder.trust.rules import change_rule, delete_rule, find_rule
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.teams.people import joined, key_of, outcome
from tests.issuer import ORIGIN, Issuer, ec_key, github_claims, gitlab_claims, rsa_key, serving
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender
from tests.trust.conftest import GITHUB_IDS, Trusting, made_rule
from tests.trust.exchanging import GRANT, TOKEN, exchange, posted, refusal
from tests.web_server import endless, slow

STATUS = "/v8/artifacts/status"
REFUSED = (400, "invalid_request")


def is_shared(reply: Reply) -> bool:
    assert reply.status == 200, reply
    return bool(reply.json["larder"]["cacheScope"] == "shared")


def test_a_push_to_main_is_trusted(trusting: Trusting) -> None:
    for event in ("push", "schedule", "workflow_dispatch"):
        assert is_shared(trusting.job(event_name=event))
    queued = f"refs/heads/gh-readonly-queue/main/pr-7-{'a' * 40}"
    assert is_shared(trusting.job(event_name="merge_group", ref=queued))


def test_4_a_pull_request_edits_the_workflow(trusting: Trusting) -> None:
    own = trusting.job(
        event_name="pull_request",
        ref="refs/pull/7/merge",
        environment="production",
        job_workflow_ref="acme/web/.github/workflows/release.yml@refs/pull/7/merge",
    )
    assert not is_shared(own)


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run", "issue_comment"])
def test_5_code_of_a_pull_request_on_the_ref_of_main(trusting: Trusting, event: str) -> None:
    assert not is_shared(trusting.job(event_name=event))


@pytest.mark.parametrize(
    "ref",
    [
        *("refs/tags/main", "refs/heads/release/x", "refs/heads/main2", "refs/heads/Main"),
        *("main", "refs/heads/main/x", f"refs/heads/gh-readonly-queue/main/pr-7-{'a' * 40}"),
    ],
)
def test_6_other_refs(trusting: Trusting, ref: str) -> None:
    assert not is_shared(trusting.job(ref=ref))


def test_6_a_pattern_needs_a_protected_ref(trusting: Trusting) -> None:
    change = RuleChange(refs=("refs/heads/release/*",), requires_protected_ref=True)
    change_rule(trusting.cloud.team.id, trusting.rule.id, change, by=None, now=clock.now())
    assert is_shared(trusting.job(ref="refs/heads/release/x"))
    assert not is_shared(trusting.job(ref="refs/heads/release/x", ref_protected="false"))
    assert not is_shared(trusting.job(ref="refs/heads/release/x", ref_protected=None))
    assert not is_shared(trusting.job(ref="refs/tags/release/x"))


def test_7_a_dispatch_on_another_branch(trusting: Trusting) -> None:
    assert not is_shared(trusting.job(event_name="workflow_dispatch", ref="refs/heads/evil"))


def test_own_scopes_differ_by_event_ref_and_rule(trusting: Trusting) -> None:
    scopes = {
        trusting.job(**claims).json["larder"]["cacheScope"]
        for claims in (
            {"event_name": "pull_request", "ref": "refs/pull/7/merge"},
            {"event_name": "pull_request", "ref": "refs/pull/8/merge"},
            {"event_name": "pull_request_target"},
            {"event_name": "push", "ref": "refs/heads/x"},
        )
    }
    assert len(scopes) == 4
    assert all(scope[0] == "c" and len(scope) == 27 for scope in scopes)
    again = trusting.job(event_name="pull_request", ref="refs/pull/7/merge")
    assert again.json["larder"]["cacheScope"] in scopes


GITLAB_IDS = {"project_id": "22", "namespace_id": "72"}


@pytest.mark.parametrize(
    "claims",
    [
        {"pipeline_source": "merge_request_event", "ref_path": "refs/merge-requests/1/head"},
        {"pipeline_source": "merge_request_event"},
        {"ref_type": "tag", "ref_path": "refs/tags/main"},
        {"ref_protected": "false"},
        {"pipeline_source": "parent_pipeline"},
    ],
)
def test_8_gitlab_merge_requests_and_tags(trusting: Trusting, claims: dict[str, Any]) -> None:
    issuer = Issuer("https://gitlab.com")
    issuer.publish()
    made_rule(trusting.cloud, provider="gitlab", pinned=GITLAB_IDS)
    assert is_shared(trusting.exchange(issuer.mint(gitlab_claims())))
    assert not is_shared(trusting.exchange(issuer.mint(gitlab_claims(**claims))))


def test_8_a_gitlab_job_can_use_its_token_several_times(trusting: Trusting) -> None:
    issuer = Issuer("https://gitlab.com")
    issuer.publish()
    made_rule(trusting.cloud, provider="gitlab", pinned=GITLAB_IDS)
    token = issuer.mint(gitlab_claims())
    assert [trusting.exchange(token).status for _ in range(21)] == [200] * 20 + [400]


def test_9_circleci_forks_and_ssh(trusting: Trusting) -> None:
    claim = "oidc.circleci.com/"
    issuer = Issuer("https://oidc.circleci.com/org/2b1c")
    issuer.publish()
    made_rule(
        trusting.cloud,
        provider="circleci",
        issuer=issuer.url,
        pinned={f"{claim}project-id": "5a"},
        claims={f"{claim}vcs-origin": ("github.com/acme/web",)},
    )

    def job(**changed: Any) -> Reply:
        claims = {
            "project-id": "5a",
            "vcs-origin": "github.com/acme/web",
            "vcs-ref": "refs/heads/main",
            "ssh-rerun": False,
            "job-id": str(time.time_ns()),
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        named = {claim + name: value for name, value in claims.items()}
        return trusting.exchange(issuer.mint({**named, "jti": None}))

    assert is_shared(job())
    fork = job(vcs_origin="github.com/mallory/web", vcs_ref="refs/heads/pull/7")
    assert not is_shared(fork)
    assert not is_shared(job(vcs_origin="github.com/mallory/web"))
    assert refusal(job(ssh_rerun=True)) == REFUSED


@pytest.mark.parametrize(
    "claims",
    [
        {"repository_id": "99"},
        {"repository_owner_id": "99"},
        {"repository_id": None},
        {"repository_id": "99", "sub": "repo:acme/web:ref:refs/heads/main"},
        {"repository_id": 74},
        {"repository_id": ["74"]},
    ],
)
def test_10_another_repository_of_the_name(trusting: Trusting, claims: dict[str, Any]) -> None:
    expected = 200 if claims == {"repository_id": 74} else 400
    assert trusting.job(**claims).status == expected


def test_11_a_strangers_repository_learns_nothing_of_teams(trusting: Trusting) -> None:
    claims = github_claims(repository="evil/x", repository_id="99", repository_owner_id="98")
    replies = [
        trusting.exchange(trusting.issuer.mint(claims), team_id_or_slug=team)
        for team in ("acme", "no-such-team", "team_nosuchteam")
    ]
    assert {(reply.status, reply.body) for reply in replies} == {
        (
            400,
            json.dumps(
                {
                    "error": "invalid_request",
                    "error_description": "no rule of this team accepts repository 99 (evil/x), refs/heads/main, push",
                }
            ).encode(),
        )
    }


@pytest.mark.parametrize(
    "audience",
    [
        *("https://github.com/acme", "sts.amazonaws.com", f"{ORIGIN}/", f"{ORIGIN}.evil.example"),
        *([ORIGIN, "x"], [ORIGIN], "", None),
    ],
)
def test_12_other_audiences(trusting: Trusting, audience: Any) -> None:
    assert refusal(trusting.job(aud=audience)) == REFUSED


def test_12_a_rule_cannot_name_the_default_audience_of_github(cloud: Cloud) -> None:
    sent = {
        "provider": "github",
        "pinned": {"repository_id": "74", "repository_owner_id": "65"},
        "audience": "https://github.com/acme",
    }
    owner = joined(cloud, Role.OWNER)
    reply = owner.send("POST", "/v1/teams/acme/rules", json_body=sent)
    assert outcome(reply) == (400, "bad_request")


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"x") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def test_13_forged_signatures(trusting: Trusting) -> None:
    import hashlib
    import hmac

    issuer = trusting.issuer
    now = int(time.time())
    claims = github_claims(iss=issuer.url, aud=ORIGIN, iat=now, exp=now + 300, jti="f")
    pem = (
        rsa_key(0)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    unsigned = forged({"alg": "HS256", "kid": "first"}, claims).rpartition(".")[0]
    mac = hmac.new(pem, unsigned.encode(), hashlib.sha256).digest()
    other, elliptic = Issuer(keys={"first": rsa_key(1)}), Issuer(keys={"first": ec_key()})
    tokens = [
        forged({"alg": "none", "kid": "first"}, claims, b""),
        forged({"alg": "none", "kid": "first"}, claims),
        forged({"alg": "HS256", "kid": "first"}, claims, mac),
        forged({"alg": "RS256", "kid": "first"}, claims),
        other.mint(claims),
        other.mint(claims, header={"jwk": other.jwks[0]}),
        other.mint(claims, header={"jku": "https://evil.example/jwks"}),
        other.mint(claims, header={"x5u": "https://evil.example/x"}),
        elliptic.mint(claims),
        issuer.mint(claims, header={"crit": ["exp"]}),
        issuer.mint(claims, header={"kid": "unknown"}),
    ]
    assert [refusal(exchange(token)) for token in tokens] == [REFUSED] * len(tokens)
    assert trusting.exchange(issuer.mint({**claims, "jti": "g"})).status == 200


def test_14_azure_tokens_of_another_organisation(trusting: Trusting) -> None:
    ours = Issuer("https://vstoken.dev.azure.com/11")
    theirs = Issuer("https://vstoken.dev.azure.com/22")
    for issuer in (ours, theirs):
        issuer.publish()
    pinned = {"def_id": "1", "prj_id": "2", "org_id": "11"}
    made_rule(trusting.cloud, provider="azure", issuer=ours.url, pinned=pinned)
    audience = {"aud": "api://AzureADTokenExchange"}
    claims = {**pinned, **audience, "rpo_ref": "refs/heads/main"}
    assert is_shared(trusting.exchange(ours.mint(claims)))
    assert refusal(trusting.exchange(theirs.mint(claims))) == REFUSED
    # A token of a service connection has no ref.
    connection = trusting.exchange(ours.mint({**pinned, **audience, "sub": "sc://x"}))
    assert connection.json["scope"] == "artifacts:read"


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": -31},
        {"nbf": 60},
        {"iat": 60},
        {"exp": "later"},
        {"exp": 10 * 365 * 86_400},
        {"exp": None},
        {"iat": None},
        {"iat": -86_401},
        {"sub": None},
    ],
)
def test_15_times(trusting: Trusting, changed: dict[str, Any]) -> None:
    now = int(time.time())
    claims = {name: now + value if isinstance(value, int) else value for name, value in changed.items()}
    assert refusal(trusting.job(**claims)) == REFUSED


def test_15_clocks_may_differ_by_half_a_minute(trusting: Trusting) -> None:
    now = int(time.time())
    assert trusting.job(exp=now - 20, iat=now - 300).status == 200
    assert trusting.job(iat=now + 20, nbf=now + 20).status == 200


def test_16_one_token_twice(trusting: Trusting) -> None:
    """tests/proofs/test_exchange_exactness.py sends it in 20 requests at once."""
    token = trusting.issuer.mint(github_claims())
    assert [trusting.exchange(token).status for _ in range(3)] == [200, 400, 400]
    (key,) = key_store.list_by_holder(trusting.rule.id)
    assert key.rule_id == trusting.rule.id


def test_16_one_token_in_two_requests_at_once(trusting: Trusting) -> None:
    """The rule is pinned, so its version does not refuse the second request."""
    token, replies = trusting.issuer.mint(github_claims()), list[Reply]()
    with just_before("dynamodb", "TransactWriteItems", lambda: replies.append(trusting.exchange(token))):
        replies.append(trusting.exchange(token))
    assert [reply.status for reply in replies] == [200, 400]
    assert len(key_store.list_by_holder(trusting.rule.id)) == 1


@pytest.fixture
def on_loopback(option: SetOption) -> None:
    """A deployment on a loopback address, which accepts issuers there."""
    option("base_url", "http://127.0.0.1:3000")


LOCAL = {"aud": "http://127.0.0.1:3000"}


@pytest.mark.usefixtures("on_loopback")
def test_17_unknown_keys_are_fetched_once_a_minute(cloud: Cloud) -> None:
    with serving() as server:
        issuer = server.issuer()
        issuers.add(server.url, None)
        made_rule(cloud, provider="github", issuer=server.url, pinned=PINNED)
        unknown = [issuer.mint({**github_claims(), **LOCAL}, header={"kid": f"k{n}"}) for n in range(1000)]
        assert {exchange(token).status for token in unknown} == {400}
        assert server.asked == ["/.well-known/openid-configuration", "/jwks"]
        assert exchange(issuer.mint({**github_claims(), **LOCAL})).status == 200
        with time_machine.travel(clock.now() + timedelta(seconds=61)):
            exchange(issuer.mint({**github_claims(), **LOCAL}, header={"kid": "more"}))
        assert len(server.asked) == 4


@pytest.mark.usefixtures("on_loopback")
def test_17_a_first_fetch_that_failed_is_repeated_after_two_seconds(cloud: Cloud) -> None:
    with serving() as server:
        issuer = server.issuer()
        jwks = server.documents.pop("/jwks")
        issuers.add(server.url, None)
        made_rule(cloud, provider="github", issuer=server.url, pinned=PINNED)
        tokens = (issuer.mint({**github_claims(), **LOCAL}) for _ in range(10))
        assert refusal(exchange(next(tokens))) == (503, "temporarily_unavailable")
        server.documents["/jwks"] = jwks
        with time_machine.travel(clock.now() + timedelta(seconds=3)):
            assert exchange(next(tokens)).status == 200
        # Known keys are fetched for an unknown id at most once a minute, as after any other fetch.
        server.asked.clear()
        with time_machine.travel(clock.now() + timedelta(seconds=30)):
            unknown = issuer.mint({**github_claims(), **LOCAL}, header={"kid": "more"})
            assert exchange(unknown).status == 400
        assert server.asked == []


def test_18_all_addresses_of_a_host_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        server.documents["/jwks"] = {"keys": []}
        port = int(server.url.rpartition(":")[2])
        # Nothing listens at the first two.
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.1")
        ]
        look_up = socket.getaddrinfo
        monkeypatch.setattr(
            *(socket, "getaddrinfo"),
            lambda host, *rest, **named: found if host == "localhost" else look_up(host, *rest, **named),
        )
        assert fetch_json(f"http://localhost:{port}/jwks", loopback=True) == {"keys": []}


PINNED = {"repository_id": "74", "repository_owner_id": "65"}


@pytest.mark.parametrize(
    "url",
    [
        *("http://169.254.169.254", "https://169.254.169.254", "http://127.0.0.1:9001"),
        *("https://127.0.0.1", "https://[::1]", "https://[fd00:ec2::254]", "https://10.0.0.1"),
        *("https://user@gitlab.com", "https://gitlab.com:444", "https://gitlab.com?x", "file:///x"),
        *("https://gitlab.com#x", "https://gitlab.com/../x", "gopher://gitlab.com", "https://"),
    ],
)
def test_18_no_rule_and_no_token_names_an_inner_address(trusting: Trusting, url: str) -> None:
    owner = joined(trusting.cloud, Role.OWNER)
    sent = {"provider": "github", "issuer": url, "pinned": PINNED}
    assert owner.send("POST", "/v1/teams/acme/rules", json_body=sent).status == 400
    assert refusal(trusting.job(iss=url)) == REFUSED


@pytest.mark.parametrize("host", ["localhost", "localhost.localdomain", "127.1", "0.0.0.0"])
def test_18_no_name_leads_to_an_inner_address(host: str) -> None:
    with pytest.raises(Unreachable):
        fetch_json(f"https://{host}/jwks", loopback=False)


def redirect(handler: Any) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://127.0.0.1:9001/")
    handler.end_headers()


def not_json(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"<html>")


@pytest.mark.parametrize("answer", [redirect, endless, slow, not_json])
def test_18_a_server_that_misbehaves(answer: Any) -> None:
    with serving() as server:
        server.answers["/jwks"] = answer
        began = time.monotonic()
        with pytest.raises(Unreachable):
            fetch_json(f"{server.url}/jwks", loopback=True)
        assert time.monotonic() - began < 4


@pytest.mark.usefixtures("on_loopback")
@pytest.mark.parametrize(
    "configuration",
    [
        {"issuer": "https://gitlab.com"},
        {"jwks_uri": "http://127.0.0.1:9001/jwks"},
        {"jwks_uri": "https://169.254.169.254/"},
        {"jwks_uri": None},
    ],
)
def test_18_a_configuration_that_leads_elsewhere(cloud: Cloud, configuration: Any) -> None:
    with serving() as server:
        issuer = server.issuer()
        server.documents["/.well-known/openid-configuration"].update(configuration)
        issuers.add(server.url, None)
        made_rule(cloud, provider="github", issuer=server.url, pinned=PINNED)
        reply = exchange(issuer.mint({**github_claims(), **LOCAL}))
        assert refusal(reply) == (503, "temporarily_unavailable")
        assert reply.headers["retry-after"] == "2"
        assert server.asked == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize(
    "token", ["x" * 200_000, "a.b", "a.b.c.d", "a.b.c", "..", "\0.\0.\0", "é.é.é", "a" * 17_000 + ".b.c"]
)
def test_19_texts_that_are_no_token(trusting: Trusting, token: str) -> None:
    assert refusal(trusting.exchange(token)) == REFUSED


def test_19_deep_and_odd_claims(trusting: Trusting) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 5_000).decode().rstrip("=")
    header = trusting.issuer.mint({}).partition(".")[0]
    doubled = base64.urlsafe_b64encode(b'{"iss": "a", "iss": "b"}').decode().rstrip("=")
    for part in (deep, doubled, "bnVsbA", "MQ"):
        assert refusal(trusting.exchange(f"{header}.{part}.x")) == REFUSED
    odd: list[dict[str, Any]] = [*({"iss": 7}, {"iss": {}}, {"exp": True}), {"ref": {"a": 1}, "repository_id": []}]
    for claims in odd:
        assert refusal(trusting.job(**claims)) == REFUSED


@pytest.mark.parametrize(
    ("form", "code"),
    [
        (f"grant_type={GRANT}&grant_type={GRANT}", "invalid_request"),
        (f"grant_type={GRANT}&team_id_or_slug=acme&slug=other&subject_token=x", "invalid_request"),
        (f"grant_type={GRANT}&team_id_or_slug=%00&subject_token=x", "invalid_request"),
        (f"grant_type={GRANT}&team_id_or_slug=a/b&subject_token=x", "invalid_request"),
        (f"grant_type={GRANT}&subject_token=x", "invalid_request"),
        (f"grant_type={GRANT}&team_id_or_slug=acme", "invalid_request"),
        (f"grant_type={GRANT}&slug=acme&subject_token=x&actor_token=x", "invalid_request"),
        (f"grant_type={GRANT}&slug=acme&subject_token=x&scope=artifacts:manage", "invalid_request"),
        (f"grant_type={GRANT}&slug=acme&subject_token=x&audience=https://x", "invalid_target"),
        ("grant_type=client_credentials", "unsupported_grant_type"),
        ("", "unsupported_grant_type"),
        ("%ff", "invalid_request"),
        ("&".join(f"a{n}=b" for n in range(40)), "invalid_request"),
        ("a=" + "b" * 40_000, "invalid_request"),
    ],
)
def test_19_odd_forms(trusting: Trusting, form: str, code: str) -> None:
    assert refusal(posted(TOKEN, form)) == (400, code)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/artifacts", None, 403),
        ("DELETE", "/v1/artifacts/abc", None, 403),
        ("DELETE", "/v1/artifacts?writer=" + "A" * 32, None, 403),
        ("PUT", "/v1/artifacts/status", {"status": "disabled"}, 403),
        ("POST", "/api/auth/api-key/create", {"name": "x"}, 401),
        ("GET", "/api/auth/get-session", None, 200),
        ("GET", "/v2/user", None, 401),
        ("GET", "/v5/user/tokens/current", None, 401),
        ("DELETE", "/v3/user/tokens/current", None, 401),
        ("GET", "/v2/teams", None, 401),
        ("GET", "/v2/teams/acme", None, 401),
        ("DELETE", "/v1/teams/acme", None, 403),
        ("PATCH", "/v2/teams/acme", {"name": "x"}, 403),
        ("GET", "/v3/teams/acme/members", None, 403),
        ("GET", "/v1/teams/acme/keys", None, 403),
        ("GET", "/v1/teams/acme/rules", None, 403),
        ("POST", "/v1/teams/acme/rules", {"provider": "github", "repository": "a/b"}, 403),
        ("POST", "/v1/teams", {"slug": "x"}, 403),
        ("POST", "/v1/teams/join", {"token": "x"}, 401),
    ],
)
def test_20_what_a_job_cannot_do(trusting: Trusting, method: str, path: str, body: Any, status: int) -> None:
    token = Sender(trusting.token().token)
    reply = token(method, path, json_body=body)
    assert reply.status == status
    if path.endswith("get-session"):
        assert reply.json is None


def test_20_a_token_of_a_job_stands_for_no_session(trusting: Trusting, option: SetOption) -> None:
    option("session_for_api_keys", "true")
    token = trusting.token().token
    reply = Sender(None)("GET", "/api/auth/get-session", headers={"x-api-key": str(token)})
    assert reply.status == 401
    verified = Sender(None)("POST", "/api/auth/api-key/verify", json_body={"key": token})
    assert verified.json["valid"] is False


def test_20_another_team(trusting: Trusting, cloud: Cloud) -> None:
    from larder.teams.teams import create_team

    create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    token = trusting.token().token
    assert Sender(token, slug="other")("GET", STATUS).status == 403
    assert Sender(token)("GET", STATUS).status == 200


@pytest.mark.usefixtures("mailbox")
def test_21_who_can_change_rules(trusting: Trusting) -> None:
    cloud = trusting.cloud
    path = "/v1/teams/acme/rules"
    new = {"provider": "github", "repository": "acme/docs"}
    owner, admin = (joined(cloud, role, role.lower()) for role in (Role.OWNER, Role.ADMIN))
    others = [joined(cloud, role, role.lower()) for role in (Role.MEMBER, Role.DEVELOPER)]
    everything = {"artifacts": ("read", "write", "manage"), "teams": ("read", "write")}
    for person in others:
        assert outcome(person.send("POST", path, json_body=new)) == (403, "missing_role")
    by_key = key_of(owner, everything)
    for method, target in (("POST", path), ("DELETE", f"{path}/{trusting.rule.id}")):
        assert outcome(by_key(method, target, json_body=new)) == (403, "missing_permission")
    with_trust = key_of(admin, {"trust": ("manage",)})
    for number, send in enumerate((owner.send, admin.send)):
        numbered = {**new, "repository": f"acme/docs-{number}"}
        assert send("POST", path, json_body=numbered).status == 200
    assert outcome(with_trust("POST", path, json_body=new)) == (403, "session_required")
    assert with_trust("DELETE", f"{path}/{trusting.rule.id}").status == 200
    own = {"name": "x", "permissions": {"trust": ["manage"]}}
    refused = owner.send("POST", "/api/auth/api-key/create", json_body=own)
    assert refused.refusal == (403, "PERMISSION_NOT_HELD")


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target", "workflow_run"])
def test_21_no_rule_trusts_code_of_outsiders(cloud: Cloud, event: str) -> None:
    owner = joined(cloud, Role.OWNER)
    sent = {"provider": "github", "pinned": PINNED, "trusted": {"events": ["push", event]}}
    reply = owner.send("POST", "/v1/teams/acme/rules", json_body=sent)
    assert outcome(reply) == (400, "bad_request")


@pytest.mark.parametrize("how", ["deleted", "changed", "disabled"])
def test_29_tokens_end_with_their_rule(trusting: Trusting, how: str) -> None:
    token, team_id, rule_id = trusting.token(), trusting.cloud.team.id, trusting.rule.id
    assert token("GET", STATUS).status == 200
    match how:
        case "deleted":
            delete_rule(team_id, rule_id, by=None)
        case "changed":
            change = RuleChange(refs=("refs/heads/release",))
            change_rule(team_id, rule_id, change, by=None, now=clock.now())
        case "disabled":
            change = RuleChange(enabled=False)
            change_rule(team_id, rule_id, change, by=None, now=clock.now())
    for method, path in (("GET", STATUS), ("GET", "/v8/artifacts/abc"), ("PUT", "/v8/artifacts/abc")):
        assert outcome(token(method, path, body=b"x")) == (401, "unauthorized")
    assert trusting.job().status == (200 if how == "changed" else 400)


def test_30_another_owner_of_a_pinned_name(trusting: Trusting, mailbox: Mailbox) -> None:
    owner = joined(trusting.cloud, Role.OWNER)
    rule = made_rule(trusting.cloud, provider="github", repository="acme/docs")
    first = github_claims(repository="acme/docs", repository_id="75")
    assert is_shared(trusting.exchange(trusting.issuer.mint(first)))
    pinned = find_rule(trusting.cloud.team.id, rule.id)
    (mail,) = mailbox.deliver()
    assert (mail.to, rule.id in mail.text) == (owner.user.email, True)
    assert (pinned.pinned, pinned.version) == ({"repository_id": "75", "repository_owner_id": "65"}, 2)
    later = github_claims(repository="acme/docs", repository_id="99", repository_owner_id="98")
    assert refusal(trusting.exchange(trusting.issuer.mint(later))) == REFUSED


def test_30_a_pending_rule_ends_after_a_week(trusting: Trusting) -> None:
    made_rule(trusting.cloud, provider="github", repository="acme/docs")
    with time_machine.travel(clock.now() + timedelta(days=7)):
        trusting.issuer.publish()
        claims = github_claims(repository="acme/docs", repository_id="75")
        assert refusal(trusting.exchange(trusting.issuer.mint(claims))) == REFUSED


def test_failed_exchanges_are_counted_by_address_and_others_are_not(trusting: Trusting, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    with time_machine.travel(clock.now().replace(second=0), tick=False):
        trusting.issuer.publish()
        for _ in range(FAILED_EXCHANGES.most - 1):
            take("failed-exchanges#192.0.2.1", FAILED_EXCHANGES, now=clock.now())
        assert {trusting.job().status for _ in range(2)} == {200}
        replies = [trusting.job(repository_id="1") for _ in range(2)]
        assert [reply.status for reply in replies] == [400, 429]
        assert trusting.job().status == 200


def test_the_tokens_of_a_team_in_an_hour(trusting: Trusting, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    option("max_ci_tokens_per_hour", "2")
    replies = [trusting.job() for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert refusal(replies[-1]) == (429, "too_many_requests")
    restart()
    assert trusting.job().status == 429


def test_jobs_of_pull_requests_do_not_use_up_the_tokens_of_main(trusting: Trusting, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    option("max_ci_tokens_per_hour", "2")
    pull = {"event_name": "pull_request", "ref": "refs/pull/7/merge"}
    assert [trusting.job(**pull).status for _ in range(3)] == [200, 200, 429]
    assert [trusting.job().status for _ in range(3)] == [200, 200, 429]


def test_12_a_refused_audience_does_not_reveal_the_audiences_of_rules(trusting: Trusting) -> None:
    made_rule(trusting.cloud, provider="github", pinned=GITHUB_IDS, audience="of-acme")
    assert trusting.job(aud="of-acme").status == 200
    for claims in ({"repository_id": "1"}, {"repository_owner_id": "1"}):
        known, unknown = (trusting.job(aud=aud, **claims).json for aud in ("of-acme", "of-none"))
        assert known == unknown
        assert known["error_description"].startswith(f"aud of subject_token is not {ORIGIN}, and")


def test_13_a_forged_token_gets_the_same_reply_for_each_audience(trusting: Trusting) -> None:
    made_rule(trusting.cloud, provider="github", pinned=GITHUB_IDS, audience="of-acme")
    other = Issuer(keys={"first": rsa_key(1)})
    replies = [
        trusting.exchange(other.mint(github_claims(aud=audience))).body for audience in ("of-acme", "of-none", ORIGIN)
    ]
    assert len(set(replies)) == 1


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "jti", "ref", "more", "\ud800"])
def test_a_claim_with_half_of_a_surrogate_pair_is_refused(trusting: Trusting, name: str) -> None:
    claims = github_claims(**{"iss": trusting.issuer.url, "aud": ORIGIN, name: "\ud800"})
    unsigned = forged({"alg": "RS256", "kid": "first"}, claims)
    assert refusal(trusting.exchange(unsigned)) == REFUSED
    assert refusal(trusting.exchange(trusting.issuer.mint(claims))) == REFUSED
    nested = trusting.issuer.mint(github_claims(more=[{"x": "\ud800"}]))
    assert refusal(trusting.exchange(nested)) == REFUSED


def test_a_header_with_half_of_a_surrogate_pair_is_refused(trusting: Trusting) -> None:
    token = trusting.issuer.mint(github_claims(), header={"kid": "\ud800"})
    assert refusal(trusting.exchange(token)) == REFUSED
