"""Keys that a team owns: `configId: "team"` on the endpoints of API keys, and what such a key can do."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
import time_machine

from larder import aws, clock, deletions
from larder.accounts.email_jobs import TrustGiven
from larder.accounts.service import delete_user
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import create_key, delete_keys_of, find_key
from larder.api_keys.models import OWN_ACTIONS, ApiKey, RateLimit
from larder.api_keys.principals import Principal
from larder.api_keys.properties import NewKey
from larder.api_keys.self_service import grant_key, managed_team
from larder.audit.models import Action
from larder.audit.service import read_entries
from larder.errors import InvalidValue, TryAgain
from larder.settings import settings
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.teams import create_team, delete_team
from tests.conftest import SetOption
from tests.direct_uploads import upload
from tests.faults import just_before
from tests.functions.api_keys.people import API, member, refused, signed_in, stored_keys
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender

CODES = {
    Role.MEMBER: "INSUFFICIENT_API_KEY_PERMISSIONS",
    Role.DEVELOPER: "INSUFFICIENT_API_KEY_PERMISSIONS",
    Role.VIEWER: "INSUFFICIENT_API_KEY_PERMISSIONS",
}


def create(by: Sender, organization: str = "acme", **fields: object) -> Reply:
    body = {"configId": "team", "organizationId": organization, **fields}
    return by("POST", f"{API}/create", json_body=body)


def made(by: Sender, organization: str = "acme", **fields: object) -> dict[str, Any]:
    reply = create(by, organization, **fields)
    assert reply.status == 200, reply
    record: dict[str, Any] = reply.json
    return record


def made_by_operator(cloud: Cloud, **properties: Any) -> tuple[ApiKey, str]:
    new = NewKey(user_id=None, team_id=cloud.team.id, **{"permissions": {"artifacts": ("read", "write")}, **properties})
    return create_key(new, now=clock.now())


def key_of(record: dict[str, Any]) -> ApiKey:
    key = find_key(record["id"])
    assert key is not None
    return key


def status(raw: str, **headers: str) -> int:
    return Sender(raw)("GET", "/v8/artifacts/status", headers=headers).status


# Creation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["id", "slug"])
def test_the_team_owns_the_key(ada: Sender, cloud: Cloud, named: str) -> None:
    organization = cloud.team.id if named == "id" else cloud.team.slug
    record = made(ada, organization, name="ci")
    owner = (record["configId"], record["referenceId"], record["userId"], record["teamId"])
    assert owner == ("team", cloud.team.id, None, cloud.team.id)
    assert record["permissions"] == {"artifacts": ["read", "write"]}
    (item,) = [item for item in stored_keys() if item["id"] == record["id"]]
    assert {name: item[name] for name in ("user_id", "team_id", "owned_by", "made_by")} == {
        "user_id": cloud.team.id,
        "team_id": cloud.team.id,
        "owned_by": "team",
        "made_by": cloud.user.id,
    }
    assert (item["known_to"], item["role_cap"]) == ([cloud.user.id], "DEVELOPER")
    assert status(record["key"]) == 200


def test_its_creation_is_in_the_audit_of_the_team_alone(ada: Sender, cloud: Cloud) -> None:
    record = made(ada)

    def entries(owner: str) -> list[str]:
        page = read_entries(owner, limit=10, actions=[Action.KEY_CREATED], now=clock.now())
        return [entry.subject for entry in page.entries]

    assert record["id"] in entries(cloud.team.id)
    assert record["id"] not in entries(cloud.user.id)


@pytest.mark.parametrize("role", Role)
def test_only_owners_and_admins_create_one(cloud: Cloud, role: Role) -> None:
    reply = create(signed_in(member(cloud, role)))
    if role in CODES:
        assert refused(reply) == (403, CODES[role])
    else:
        assert reply.status == 200


def test_strangers_and_unknown_teams_get_the_same_reply(mallory: Sender, cloud: Cloud) -> None:
    replies = [create(mallory, one) for one in ("acme", cloud.team.id, "nobody", "team_x", "A B")]
    assert {refused(reply) for reply in replies} == {(403, "USER_NOT_MEMBER_OF_ORGANIZATION")}
    assert len({reply.body for reply in replies}) == 1


@pytest.mark.parametrize("organization", [None, ""])
def test_400_without_an_organization(ada: Sender, organization: str | None) -> None:
    body = {"configId": "team", "organizationId": organization}
    reply = ada("POST", f"{API}/create", json_body=body)
    assert refused(reply) == (400, "ORGANIZATION_ID_REQUIRED")
    assert refused(ada("GET", f"{API}/list?configId=team")) == (400, "ORGANIZATION_ID_REQUIRED")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"organizationId": "acme"}, "organizationId"),
        ({"organizationId": "acme", "configId": "default"}, "organizationId"),
        ({"organizationId": "acme", "configId": "org"}, "configId"),
        ({"organizationId": "acme", "configId": "team", "teamId": "team_" + "a" * 24}, "teamId"),
        ({"organizationId": "acme", "configId": "team", "userId": "a" * 32}, "userId"),
        ({"organizationId": 7, "configId": "team"}, "organizationId"),
    ],
)
def test_no_field_is_ignored_that_says_whose_key_it_is(
    ada: Sender, cloud: Cloud, fields: dict[str, object], field: str
) -> None:
    before = stored_keys()
    reply = ada("POST", f"{API}/create", json_body=fields)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert f"[body.{field}]" in reply.json["message"]
    assert stored_keys() == before


def test_a_key_in_place_of_a_session_manages_none(cloud: Cloud, option: SetOption) -> None:
    """The key of a team outlives the keys of the user who made it."""
    option("session_for_api_keys", "true")
    _, raw = create_key(NewKey(user_id=cloud.user.id, permissions=OWN_ACTIONS), now=clock.now())
    headers = {"x-api-key": raw}
    by_key = Sender(None)
    key, _ = made_by_operator(cloud)
    named = {"keyId": key.id, "configId": "team"}
    replies = [
        by_key("POST", f"{API}/create", headers=headers, json_body={"configId": "team", "organizationId": "acme"}),
        by_key("GET", f"{API}/list?organizationId=acme", headers=headers),
        by_key("GET", f"{API}/get?id={key.id}&configId=team", headers=headers),
        by_key("POST", f"{API}/update", headers=headers, json_body={**named, "name": "x"}),
        by_key("POST", f"{API}/delete", headers=headers, json_body=named),
    ]  # fmt: skip
    assert [refused(reply) for reply in replies] == [(403, "SESSION_REQUIRED")] * 5


@pytest.mark.parametrize("resource", ["teams", "trust"])
def test_a_team_cannot_own_a_key_that_changes_who_has_access(
    ada: Sender, operator: Sender, cloud: Cloud, resource: str
) -> None:
    permissions = {"artifacts": ["read"], resource: ["read", "manage"]}
    assert refused(create(ada, permissions=permissions)) == (400, "VALIDATION_ERROR")
    record = made(ada)
    change = {"keyId": record["id"], "configId": "team", "permissions": permissions}
    for sender in (ada, operator):
        reply = sender("POST", f"{API}/update", json_body=change)
        assert refused(reply) == (400, "VALIDATION_ERROR")


def test_default_permissions_of_people_are_left_out(ada: Sender, cloud: Cloud, option: SetOption) -> None:
    option("default_key_permissions", '{"artifacts":["read"],"teams":["read"],"deploy":["run"]}')
    assert made(ada)["permissions"] == {"artifacts": ["read"], "deploy": ["run"]}


def test_it_gets_no_more_than_its_creator_has(ada: Sender, cloud: Cloud) -> None:
    reply = create(ada, permissions={"billing": ["refund"]})
    assert refused(reply) == (403, "PERMISSION_NOT_HELD")


def test_more_than_the_cache_needs_takes_a_fresh_session(cloud: Cloud, option: SetOption, mailbox: Mailbox) -> None:
    option("session_fresh_age_seconds", "60")
    from_a_stale_session = signed_in(cloud.user)

    with time_machine.travel(clock.now() + timedelta(hours=1)):
        assert create(from_a_stale_session).status == 200
        reply = create(from_a_stale_session, permissions={"artifacts": ["manage"]})
    assert refused(reply) == (403, "SESSION_NOT_FRESH")


def test_limits_are_for_operators(ada: Sender, cloud: Cloud) -> None:
    assert refused(create(ada, remaining=5)) == (400, "SERVER_ONLY_PROPERTY")


def test_a_creator_who_loses_the_role_meanwhile_creates_none(ada: Sender, cloud: Cloud) -> None:
    bob = member(cloud, Role.OWNER)
    before = stored_keys()
    sender = signed_in(bob)
    with just_before(
        "dynamodb", "TransactWriteItems", lambda: add_member(cloud.team.id, bob.id, Role.VIEWER, now=clock.now())
    ):
        reply = create(sender)
    assert reply.status == 503
    assert stored_keys() == before
    assert refused(create(sender)) == (403, "INSUFFICIENT_API_KEY_PERMISSIONS")


def test_a_creator_who_is_signed_out_meanwhile_creates_none(cloud: Cloud) -> None:
    session, _ = start_session(cloud.user, now=clock.now())
    principal = Principal(credential=session, user=cloud.user)
    by = managed_team(principal, "acme").member
    new = NewKey(user_id=None, team_id=cloud.team.id, made_by=cloud.user.id)
    before = stored_keys()
    signed_out = partial(revoke_sessions, cloud.user.id)
    with just_before("dynamodb", "TransactWriteItems", signed_out), pytest.raises(TryAgain):
        grant_key(principal, new, by=by, now=clock.now())
    assert stored_keys() == before


def test_the_limit_of_a_team_is_exact_under_parallel_requests(cloud: Cloud, option: SetOption) -> None:
    option("max_keys_per_user", "5")
    senders = [signed_in(cloud.user) for _ in range(12)]
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(create, senders))
    statuses = [reply.status for reply in replies]
    assert statuses.count(200) == 5
    assert {refused(reply) for reply in replies if reply.status != 200} == {(409, "KEY_LIMIT_REACHED")}
    assert len([item for item in stored_keys() if item["user_id"] == cloud.team.id]) == 5
    # Those of its members are counted apart.
    assert signed_in(cloud.user)("POST", f"{API}/create", json_body={}).status == 200


def test_the_owners_hear_of_a_trusted_one(ada: Sender, cloud: Cloud, mailbox: Mailbox) -> None:
    record = made(ada, permissions={"artifacts": ["read", "write", "trust"]})
    assert record["teamProtected"] is True
    assert key_of(record).role_cap is Role.ADMIN
    assert [job.key_id for job in mailbox.jobs if isinstance(job, TrustGiven)] == [record["id"]]


# Reading and changing ---------------------------------------------------------------------------

Act = Callable[[Sender, str], Reply]
ACTS: dict[str, Act] = {
    "get": lambda by, id: by("GET", f"{API}/get?id={id}&configId=team"),
    "update": lambda by, id: by("POST", f"{API}/update", json_body={"keyId": id, "configId": "team", "name": "new"}),
    "delete": lambda by, id: by("POST", f"{API}/delete", json_body={"keyId": id, "configId": "team"}),
}


@pytest.mark.parametrize("act", ACTS)
def test_owners_admins_and_operators_manage_it(ada: Sender, operator: Sender, cloud: Cloud, act: str) -> None:
    admin = signed_in(member(cloud, Role.ADMIN))
    for sender in (ada, admin, operator):
        assert ACTS[act](sender, made(ada)["id"]).status == 200


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("role", CODES)
def test_other_members_do_not(ada: Sender, cloud: Cloud, act: str, role: Role) -> None:
    record = made(ada)
    before = stored_keys()
    assert refused(ACTS[act](signed_in(member(cloud, role)), record["id"])) == (403, CODES[role])
    assert stored_keys() == before


@pytest.mark.parametrize("act", ACTS)
def test_others_do_not_learn_that_it_exists(ada: Sender, mallory: Sender, cloud: Cloud, act: str) -> None:
    known, unknown = ACTS[act](mallory, made(ada)["id"]), ACTS[act](mallory, "A" * 32)
    assert refused(known) == refused(unknown) == (404, "KEY_NOT_FOUND")
    assert known.body == unknown.body


@pytest.mark.parametrize("config", [{}, {"configId": "default"}])
def test_404_without_the_configuration(ada: Sender, operator: Sender, cloud: Cloud, config: dict[str, str]) -> None:
    record = made(ada)
    for sender in (ada, operator):
        query = "".join(f"&{name}={value}" for name, value in config.items())
        replies = [
            sender("GET", f"{API}/get?id={record['id']}{query}"),
            sender("POST", f"{API}/update", json_body={"keyId": record["id"], "name": "x", **config}),
            sender("POST", f"{API}/delete", json_body={"keyId": record["id"], **config}),
        ]  # fmt: skip
        assert [refused(reply) for reply in replies] == [(404, "KEY_NOT_FOUND")] * 3


@pytest.mark.parametrize("act", ACTS)
def test_with_the_configuration_keys_of_users_are_not_found(ada: Sender, cloud: Cloud, act: str) -> None:
    assert refused(ACTS[act](ada, cloud.key.id)) == (404, "KEY_NOT_FOUND")


def test_a_change_of_permissions_changes_its_role(ada: Sender, cloud: Cloud) -> None:
    record = made(ada)
    for actions, cap in (["read"], Role.VIEWER), (["read", "write"], Role.DEVELOPER):
        change = {"keyId": record["id"], "configId": "team", "permissions": {"artifacts": actions}}
        assert ada("POST", f"{API}/update", json_body=change).status == 200
        assert key_of(record).role_cap is cap


def test_lists_are_apart(ada: Sender, cloud: Cloud) -> None:
    first, second = made(ada, name="one"), made(ada, name="two")
    assert [key["id"] for key in ada("GET", f"{API}/list").json] == [cloud.key.id]
    for query in ("organizationId=acme", f"organizationId={cloud.team.id}&configId=team"):
        reply = ada("GET", f"{API}/list?{query}")
        assert [key["id"] for key in reply.json] == [first["id"], second["id"]]
    page = ada("GET", f"{API}/list?organizationId=acme&limit=1")
    following = page.headers["link"].partition(">")[0].removeprefix("<")
    assert [key["id"] for key in ada("GET", following).json] == [second["id"]]


def test_who_may_list_them(mallory: Sender, cloud: Cloud) -> None:
    path = f"{API}/list?organizationId=acme"
    assert refused(mallory("GET", path)) == (403, "USER_NOT_MEMBER_OF_ORGANIZATION")
    for role, code in CODES.items():
        assert refused(signed_in(member(cloud, role))("GET", path)) == (403, code)


# Rotation ---------------------------------------------------------------------------------------


def test_a_member_rotates_it_and_then_knows_it(ada: Sender, cloud: Cloud) -> None:
    old = made(ada, name="ci")
    admin = member(cloud, Role.ADMIN)
    new = made(signed_in(admin), name="ci", replaces=old["id"], overlap=3600)
    assert status(old["key"]) == status(new["key"]) == 200
    ends_at = key_of(old).expires_at
    assert ends_at is not None
    assert ends_at <= clock.now() + timedelta(hours=1)
    assert key_of(old).known_to == (cloud.user.id,)
    assert key_of(new).known_to == (admin.id,)


def test_it_replaces_the_key_of_a_member_and_gets_its_metadata(cloud: Cloud, ada: Sender) -> None:
    bob = member(cloud, Role.DEVELOPER)
    old, raw = create_key(
        NewKey(user_id=bob.id, team_id=cloud.team.id, name="ci", metadata={"repo": "web"}), now=clock.now()
    )
    new = made(ada, name="ci", replaces=old.id, overlap=3600)
    assert new["metadata"] == {"repo": "web"}
    assert status(raw) == status(new["key"]) == 200
    remove_member(cloud.team.id, bob.id, by=None)
    assert (status(raw), status(new["key"])) == (403, 200)


def test_it_does_not_replace_a_key_of_elsewhere(ada: Sender, cloud: Cloud) -> None:
    unbound, _ = create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    other = create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    elsewhere, _ = create_key(NewKey(user_id=cloud.user.id, team_id=other.id), now=clock.now())
    for key_id in (unbound.id, elsewhere.id, "A" * 32):
        assert refused(create(ada, replaces=key_id)) == (404, "KEY_NOT_FOUND")


def test_a_key_of_a_user_does_not_replace_it(ada: Sender, cloud: Cloud) -> None:
    body = {"teamId": cloud.team.id, "replaces": made(ada)["id"]}
    assert refused(ada("POST", f"{API}/create", json_body=body)) == (404, "KEY_NOT_FOUND")


# What it does -----------------------------------------------------------------------------------


def test_verify_names_the_team(ada: Sender, cloud: Cloud) -> None:
    raw = made(ada)["key"]

    def verify(**fields: object) -> Any:
        return Sender(None)("POST", f"{API}/verify", json_body={"key": raw, **fields}).json

    key = verify()["key"]
    assert (key["referenceId"], key["userId"], key["configId"]) == (cloud.team.id, None, "team")
    assert verify(configId="team")["valid"]
    assert verify(configId="default")["error"]["code"] == "INVALID_API_KEY"
    own = {"key": cloud.token, "configId": "team"}
    reply = Sender(None)("POST", f"{API}/verify", json_body=own)
    assert reply.json["error"]["code"] == "INVALID_API_KEY"


@pytest.mark.parametrize("is_counted", [False, True])
def test_it_stands_for_no_user(cloud: Cloud, option: SetOption, is_counted: bool) -> None:
    option("session_for_api_keys", "true")
    limit = RateLimit(enabled=True, window_ms=60_000, max_requests=100)
    key, raw = made_by_operator(cloud, rate_limit=limit if is_counted else None)
    by_key = Sender(raw)
    paths = (
        *("/v2/user", "/v2/teams", "/v2/teams/acme", "/v5/user/tokens/current"),
        *("/v1/teams/acme/keys", "/v1/teams/acme/rules", "/v3/teams/acme/members"),
    )
    for _ in range(2):  # as an instance that knows the key, too
        assert [by_key("GET", path).status for path in paths] == [401] * len(paths)
        assert by_key("DELETE", "/v3/user/tokens/current").status == 401
        assert by_key("POST", "/v1/teams", json_body={"slug": "new"}).status == 401
        for path in ("get-session", "api-key/list", "list-sessions"):
            reply = Sender(None)("GET", f"/api/auth/{path}", headers={"x-api-key": raw})
            assert refused(reply) == (401, "UNAUTHORIZED")
        status(raw)
    stored = find_key(key.id)
    assert stored is not None
    # A refused use takes nothing.
    assert stored.request_count == (2 if is_counted else 0)


def test_it_never_acts_as_an_owner(ada: Sender, cloud: Cloud) -> None:
    raw = made(ada, permissions={"artifacts": ["read", "write", "manage"]})["key"]
    by_key = Sender(raw)
    disabled = {"status": "disabled"}
    reply = by_key("PUT", "/v1/artifacts/status", json_body=disabled)
    assert reply.status == 403
    assert reply.json["code"] == "missing_role"
    change = {"name": "Mine", "slug": "mine"}
    assert by_key("PATCH", "/v2/teams/acme", json_body=change).status == 401
    assert by_key("DELETE", "/v1/teams/acme").status == 401
    assert status(raw) == 200
    # It does what an admin does.
    assert by_key("GET", "/v1/artifacts").status == 200


def test_only_manage_manages(ada: Sender, cloud: Cloud) -> None:
    by_key = Sender(made(ada)["key"])
    assert by_key("GET", "/v1/artifacts").status == 403
    assert by_key("GET", "/v1/audit").status == 403


def test_with_read_it_only_reads(ada: Sender, cloud: Cloud) -> None:
    cloud.store("a1", now=clock.now())
    by_key = Sender(made(ada, permissions={"artifacts": ["read"]})["key"])
    assert by_key("GET", "/v8/artifacts/a1").status == 200
    assert by_key("PUT", "/v8/artifacts/a2", body=b"artifact").status == 403


@pytest.mark.parametrize("is_trusted", [False, True])
def test_in_a_protected_team_only_a_trusted_one_writes_what_all_read(
    ada: Sender, cloud: Cloud, mailbox: Mailbox, is_trusted: bool
) -> None:
    actions = ["read", "write", *(["trust"] if is_trusted else [])]
    change_protection(cloud.team.id, ProtectionChange(protected=True, keep_stored=True), by=None)
    by_key = Sender(made(ada, permissions={"artifacts": actions})["key"])
    assert by_key("PUT", "/v8/artifacts/a1", body=b"artifact").status == 202
    assert by_key("GET", "/v8/artifacts/a1").status == 200
    assert cloud.send("GET", "/v8/artifacts/a1").status == (200 if is_trusted else 404)


def test_its_events_and_artifacts_name_the_key(ada: Sender, cloud: Cloud) -> None:
    record = made(ada)
    by_key = Sender(record["key"])
    event = {"sessionId": str(uuid4()), "source": "REMOTE", "hash": "a1", "event": "MISS", "duration": 1}
    assert by_key("POST", "/v8/artifacts/events", json_body=[event]).status == 200
    assert by_key("PUT", "/v8/artifacts/a1", body=b"artifact").status == 202
    (artifact,) = ada("GET", "/v1/artifacts?slug=acme").json["artifacts"]
    assert artifact["writer"]["id"] == record["id"]


@pytest.mark.parametrize("is_trusted", [False, True])
def test_its_direct_uploads_are_published(ada: Sender, cloud: Cloud, mailbox: Mailbox, is_trusted: bool) -> None:
    actions = ["read", "write", *(["trust"] if is_trusted else [])]
    record = made(ada, permissions={"artifacts": actions}, protect=is_trusted)
    by_key = Sender(record["key"])
    upload(by_key, "a1", b"artifact" * 1000)
    assert by_key("HEAD", "/v8/artifacts/a1").status == 200
    assert cloud.send("HEAD", "/v8/artifacts/a1").status == 200
    (artifact,) = ada("GET", "/v1/artifacts?slug=acme").json["artifacts"]
    assert artifact["writer"] == {"id": record["id"], "userId": cloud.team.id}


# Its end ----------------------------------------------------------------------------------------


def test_ci_goes_on_without_its_creator(cloud: Cloud) -> None:
    bob = member(cloud, Role.OWNER)
    sender = signed_in(bob)
    of_team = made(sender)["key"]
    personal, own = create_key(NewKey(user_id=bob.id, team_id=cloud.team.id), now=clock.now())
    assert status(of_team) == status(own) == 200
    delete_user(bob.id, now=clock.now())
    delete_keys_of(bob.id)
    assert (status(of_team), status(own)) == (200, 401)
    later = clock.now() + timedelta(days=2)
    deletions.sweep_users(now=later, has_time=lambda: True)
    assert status(of_team) == 200
    assert find_key(personal.id) is None
    reply = Sender(None)("POST", f"{API}/verify", json_body={"key": of_team})
    assert reply.json["valid"]


@pytest.mark.usefixtures("mailbox")
def test_ci_goes_on_when_its_creator_leaves(ada: Sender, cloud: Cloud) -> None:
    bob = member(cloud, Role.ADMIN)
    raw = made(signed_in(bob))["key"]
    assert ada("DELETE", f"/v1/teams/acme/members/{bob.id}").status == 200
    assert status(raw) == 200


@pytest.mark.parametrize("knows_it", [False, True])
def test_it_ends_with_the_team(ada: Sender, cloud: Cloud, knows_it: bool) -> None:
    record = made(ada)
    if knows_it:
        assert status(record["key"]) == 200
    delete_team(cloud.team.id, by=None, now=clock.now())
    assert status(record["key"]) == 401
    reply = Sender(None)("POST", f"{API}/verify", json_body={"key": record["key"]})
    assert reply.json["error"]["code"] == "INVALID_API_KEY"
    deletions.sweep_teams(now=clock.now() + timedelta(days=2), has_time=lambda: True)
    assert find_key(record["id"]) is None
    items = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    assert not [item for item in items if cloud.team.id in item["key_hash"]["S"]]


# Who knows it -----------------------------------------------------------------------------------


def listed(by: Sender) -> dict[str, Any]:
    return {key["id"]: key for key in by("GET", "/v1/teams/acme/keys").json["keys"]}


def test_the_team_sees_whose_keys_they_are_and_who_knows_its_own(ada: Sender, cloud: Cloud) -> None:
    record = made(ada)
    keys = listed(ada)
    personal, own = keys[cloud.key.id], keys[record["id"]]
    assert (personal["owner"], personal["uid"], personal["madeBy"]) == ("user", cloud.user.id, None)
    assert personal["knownTo"] == []
    assert (own["owner"], own["uid"], own["madeBy"]) == ("team", None, cloud.user.id)
    assert own["knownTo"] == [{"uid": cloud.user.id, "name": "Ada", "leftAt": None}]


@pytest.mark.usefixtures("mailbox")
@pytest.mark.parametrize("end", ["removed", "left", "deleted"])
def test_someone_who_left_still_knows_it(ada: Sender, cloud: Cloud, end: str) -> None:
    bob = member(cloud, Role.OWNER)
    record = made(signed_in(bob))
    before = clock.now()
    if end == "deleted":
        delete_user(bob.id, now=clock.now())
        deletions.sweep_users(now=clock.now(), has_time=lambda: True)
    else:
        by = ada if end == "removed" else signed_in(bob)
        assert by("DELETE", f"/v1/teams/acme/members/{bob.id}").status == 200
    (known,) = listed(ada)[record["id"]]["knownTo"]
    assert (known["uid"], known["name"]) == (bob.id, None if end == "deleted" else bob.name)
    assert known["leftAt"] >= int(before.timestamp() * 1000)


def test_someone_who_came_back_has_not_left(ada: Sender, cloud: Cloud) -> None:
    bob = member(cloud, Role.OWNER)
    record = made(signed_in(bob))
    remove_member(cloud.team.id, bob.id, by=None)
    add_member(cloud.team.id, bob.id, Role.VIEWER, now=clock.now())
    (known,) = listed(ada)[record["id"]]["knownTo"]
    assert known["leftAt"] is None


def test_what_the_operator_makes_is_known_to_nobody_here(ada: Sender, cloud: Cloud) -> None:
    key, _ = made_by_operator(cloud)
    assert (listed(ada)[key.id]["madeBy"], listed(ada)[key.id]["knownTo"]) == (None, [])


def test_owners_and_admins_delete_it_with_the_keys_of_the_team(ada: Sender, cloud: Cloud) -> None:
    record = made(ada)
    assert ada("DELETE", f"/v1/teams/acme/keys/{record['id']}").status == 200
    assert status(record["key"]) == 401


def test_a_team_that_does_not_exist_owns_none(cloud: Cloud) -> None:
    with pytest.raises(InvalidValue, match="team: does not exist"):
        create_key(NewKey(user_id=None, team_id="team_" + "x" * 24, permissions={}), now=clock.now())
