"""POST /api/auth/api-key/create"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.api_keys.keys import find_key
from larder.api_keys.models import ApiKey
from larder.audit.service import read_entries
from larder.hashing import hash_key
from larder.teams.models import Role
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.api_keys.people import API, member, refused, signed_in, stored_keys
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = f"{API}/create"


def create(send: Sender, **body: Any) -> Reply:
    return send("POST", PATH, json_body=body)


def made(reply: Reply) -> Any:
    assert reply.status == 200, reply.body
    return reply.json


def key_of(id: str) -> ApiKey:
    key = find_key(id)
    assert key is not None
    return key


def test_a_key_is_created_and_shown_once(ada: Sender, cloud: Cloud) -> None:
    record = made(
        create(
            ada,
            name="ci",
            prefix="acme_",
            expiresIn=3600,
            metadata={"repo": "web"},
            permissions={"artifacts": ["read"]},
        )
    )
    assert record["key"].startswith("acme_")
    assert len(record["key"]) == len("acme_") + 64
    assert record["start"] == record["key"][: len("acme_") + 6]
    stored = find_key(record["id"])
    assert stored is not None
    assert (stored.key_hash, stored.user_id) == (hash_key(record["key"]), cloud.user.id)
    assert (stored.name, stored.prefix, stored.metadata) == ("ci", "acme_", {"repo": "web"})
    assert stored.permissions == {"artifacts": ("read",)}
    assert record["key"] not in str(stored_keys())
    shown = ada("GET", f"{API}/list").body.decode()
    assert record["id"] in shown
    assert record["key"] not in shown


def test_the_key_works(ada: Sender, cloud: Cloud) -> None:
    key = made(create(ada))["key"]
    assert Sender(key, slug="acme")("GET", "/v8/artifacts/status").status == 200


def test_an_empty_body_creates_a_key_with_the_defaults(ada: Sender) -> None:
    record = made(create(ada))
    assert (record["name"], record["prefix"], record["expiresAt"]) == (None, None, None)
    assert (record["remaining"], record["rateLimitEnabled"]) == (None, False)
    assert record["permissions"] == {"artifacts": ["read", "write"]}
    assert (record["enabled"], record["metadata"], record["teamId"]) == (True, None, None)


def test_no_body_is_the_same_as_an_empty_object(ada: Sender) -> None:
    assert made(ada("POST", PATH))["permissions"] == {"artifacts": ["read", "write"]}


def test_null_is_the_same_as_an_absent_field(ada: Sender) -> None:
    nulls = dict.fromkeys(["name", "expiresIn", "prefix", "metadata", "permissions", "remaining"])
    assert made(create(ada, **nulls))["permissions"] == {"artifacts": ["read", "write"]}


def test_the_callers_own_user_id_is_accepted(ada: Sender, cloud: Cloud) -> None:
    assert made(create(ada, userId=cloud.user.id))["userId"] == cloud.user.id


@pytest.mark.usefixtures("mailbox")
def test_only_an_operator_creates_keys_for_other_users(ada: Sender, operator: Sender, cloud: Cloud) -> None:
    reply = create(ada, userId="A" * 32)
    assert refused(reply) == (401, "UNAUTHORIZED_SESSION")
    assert reply.json["message"] == (
        "userId: only an operator can create or change keys for another user. Leave out userId."
    )
    assert made(create(operator, userId=cloud.user.id))["userId"] == cloud.user.id


@pytest.mark.parametrize(
    ("prefix", "code"),
    [
        ("", "INVALID_PREFIX_LENGTH"),
        ("p" * 33, "INVALID_PREFIX_LENGTH"),
        ("a b", "VALIDATION_ERROR"),
        ("é", "VALIDATION_ERROR"),
    ],
)
def test_400_for_a_bad_prefix(ada: Sender, prefix: str, code: str) -> None:
    assert refused(create(ada, prefix=prefix)) == (400, code)


def test_the_message_names_the_field_and_the_rule(ada: Sender) -> None:
    reply = create(ada, permissions={"a\nb": ["read"]})
    assert reply.json["message"] == (
        "[body.permissions] must have names of 1 to 128 characters, without control characters"
    )


def test_permissions_have_any_printable_names(operator: Sender, cloud: Cloud) -> None:
    permissions = {
        "files:private": ["read:all", "*"],
        "repo/web": ["read"],
        "*": ["lesen & schreiben", "читать"],
        "r" * 128: ["a" * 128],
    }
    whose = {"userId": cloud.user.id, "expiresIn": 86_400}
    reply = create(operator, **whose, permissions=permissions)
    assert made(reply)["permissions"] == permissions
    for required, valid in ((permissions, True), ({"files": ["private:read"]}, False)):
        body = {"key": made(reply)["key"], "permissions": required}
        assert Sender(None)("POST", f"{API}/verify", json_body=body).json["valid"] is valid


@pytest.mark.parametrize(
    ("permissions", "rule"),
    [
        ({"a": [""]}, "must have names of 1 to 128 characters"),
        ({"a" * 129: ["read"]}, "must have names of 1 to 128 characters"),
        ({"a": ["\u202e"]}, "without control characters"),
        ({"constructor": ["read"]}, "must not have the names"),
        ({f"{n}": ["read"] for n in range(101)}, "must name at most 100 resources"),
        ({f"{n:0128}": ["r" * 128] for n in range(40)}, "must be at most 10000 characters"),
    ],
)
def test_400_for_permissions_that_break_a_rule(
    operator: Sender, cloud: Cloud, permissions: dict[str, list[str]], rule: str
) -> None:
    reply = create(operator, userId=cloud.user.id, permissions=permissions)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert rule in reply.json["message"]


def test_a_prefix_can_have_dots_colons_and_tildes(ada: Sender) -> None:
    record = made(create(ada, prefix="my.app:v~1_"))
    assert record["key"].startswith("my.app:v~1_")
    reply = Sender(record["key"])("POST", f"{API}/verify", json_body={"key": record["key"]})
    assert reply.json["valid"]


@pytest.mark.parametrize(("field", "value"), [("organizationId", "org_1"), ("configId", "other"), ("configId", 1)])
@pytest.mark.parametrize("path", ["create", "update", "delete", "verify"])
def test_400_for_a_field_that_would_choose_other_keys(
    ada: Sender, cloud: Cloud, path: str, field: str, value: object
) -> None:
    """Ignored, they would make a key of the caller's own, or change one."""
    before = stored_keys()
    body = {"keyId": cloud.key.id, "key": cloud.token, "name": "new", field: value}
    reply = ada("POST", f"{API}/{path}", json_body=body)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith(f"[body.{field}] ")
    assert stored_keys() == before


def test_the_default_configuration_can_be_named(ada: Sender) -> None:
    record = made(create(ada, configId="default", organizationId=None))
    assert record["configId"] == "default"


def test_a_rotation_ends_the_old_key_and_has_one_entry(ada: Sender, cloud: Cloud) -> None:
    old = made(create(ada, name="ci", teamId=cloud.team.id))
    sent_at = clock.now()
    new = made(create(ada, name="ci", teamId=cloud.team.id, replaces=old["id"], overlap=3600))
    ends_at = key_of(old["id"]).expires_at
    assert ends_at is not None
    assert timedelta(0) <= ends_at - sent_at - timedelta(hours=1) < timedelta(minutes=1)
    for owner in (cloud.user.id, cloud.team.id):
        newest, before, *_ = read_entries(owner, limit=9, now=clock.now()).entries
        assert (newest.action, newest.subject, newest.name) == ("key_rotated", old["id"], "ci")
        assert newest.details == {"successor": new["id"]}
        assert (before.action, before.subject) == ("key_created", old["id"])


def test_a_rotation_asks_again_if_the_old_key_changes_meanwhile(ada: Sender) -> None:
    old = made(create(ada))
    before = stored_keys()

    def change() -> None:
        assert ada("POST", f"{API}/update", json_body={"keyId": old["id"], "name": "b"}).status == 200

    with just_before("dynamodb", "TransactWriteItems", change):
        assert create(ada, replaces=old["id"]).status == 503
    assert key_of(old["id"]).expires_at is None
    assert len(stored_keys()) == len(before)


def test_only_own_keys_of_the_same_team_are_replaced(ada: Sender, mallory: Sender, cloud: Cloud) -> None:
    before = stored_keys()
    assert refused(create(mallory, replaces=cloud.key.id)) == (404, "KEY_NOT_FOUND")
    assert refused(create(ada, replaces="x")) == (404, "KEY_NOT_FOUND")
    bound = made(create(ada, teamId=cloud.team.id))
    reply = create(ada, replaces=bound["id"])
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"].endswith("replaces] must be a key of the same user and team as the new one")
    assert key_of(bound["id"]).expires_at is None
    assert len(stored_keys()) == len(before) + 1


def test_a_key_replaces_no_key_that_it_could_not_create(ada: Sender, cloud: Cloud, option: SetOption) -> None:
    option("session_for_api_keys", "true")
    strong = made(create(ada, permissions={"artifacts": ["read", "manage"]}))
    weak = {"x-api-key": made(create(ada, permissions={"artifacts": ["read"]}))["key"]}
    body = {"replaces": strong["id"], "permissions": {"artifacts": ["read"]}}
    reply = Sender(None)("POST", PATH, json_body=body, headers=weak)
    assert refused(reply) == (403, "PERMISSION_NOT_HELD")
    assert key_of(strong["id"]).expires_at is None


@pytest.mark.parametrize("overlap", [59, 30 * 86_400 + 1, 60.5, "60"])
def test_400_for_an_overlap_out_of_bounds(ada: Sender, cloud: Cloud, overlap: object) -> None:
    before = stored_keys()
    reply = create(ada, replaces=cloud.key.id, overlap=overlap)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert "[body.overlap]" in reply.json["message"]
    assert stored_keys() == before


def test_an_infinite_number_is_refused_in_metadata(ada: Sender) -> None:
    headers = {"content-type": "application/json"}
    reply = ada("POST", PATH, body=b'{"metadata": [1e999]}', headers=headers)
    assert refused(reply) == (400, "INVALID_METADATA_TYPE")


@pytest.mark.parametrize(
    ("option_name", "value", "body", "code"),
    [
        ("require_key_name", "true", {}, "NAME_REQUIRED"),
        ("enable_key_metadata", "false", {"metadata": {}}, "METADATA_DISABLED"),
        ("disable_custom_key_expiry", "true", {"expiresIn": 60}, "KEY_DISABLED_EXPIRATION"),
        ("minimum_key_expires_in_seconds", 61, {"expiresIn": 60}, "EXPIRES_IN_IS_TOO_SMALL"),
        ("maximum_key_expires_in_seconds", 59, {"expiresIn": 60}, "EXPIRES_IN_IS_TOO_LARGE"),
        ("minimum_key_name_length", 3, {"name": "ci"}, "INVALID_NAME_LENGTH"),
        ("minimum_key_prefix_length", 3, {"prefix": "ci"}, "INVALID_PREFIX_LENGTH"),
        ("maximum_key_prefix_length", 1, {"prefix": "ci"}, "INVALID_PREFIX_LENGTH"),
    ],
)
def test_400_by_the_options_of_the_deployment(
    ada: Sender, option: SetOption, option_name: str, value: object, body: Any, code: str
) -> None:
    option(option_name, value)
    assert refused(create(ada, **body)) == (400, code)


# Owner and team of the key ------------------------------------------------------------------------


def test_a_key_can_be_bound_to_the_callers_team(ada: Sender, cloud: Cloud) -> None:
    record = made(create(ada, teamId=cloud.team.id))
    assert record["teamId"] == cloud.team.id
    assert Sender(record["key"], team_id="team_other")("GET", "/v8/artifacts/status").status == 403


def test_403_for_a_team_of_others_or_an_unknown_team(mallory: Sender, cloud: Cloud) -> None:
    for team_id in (cloud.team.id, "team_doesnotexist"):
        assert refused(create(mallory, teamId=team_id)) == (403, "NOT_A_TEAM_MEMBER")
    assert refused(create(mallory, teamId="acme")) == (400, "VALIDATION_ERROR")


HELD = {"read": set(Role), "write": set(Role) - {Role.VIEWER}, "manage": {Role.OWNER, Role.ADMIN}}


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("action", HELD)
def test_a_team_key_cannot_have_more_permissions_than_the_role(cloud: Cloud, role: Role, action: str) -> None:
    send = signed_in(member(cloud, role))
    reply = create(send, teamId=cloud.team.id, permissions={"artifacts": [action]})
    if role in HELD[action]:
        assert made(reply)["permissions"] == {"artifacts": [action]}
    else:
        assert refused(reply) == (403, "PERMISSION_NOT_HELD")


def test_a_key_without_a_team_can_manage_the_users_own_artifacts(vera: Sender) -> None:
    key = made(create(vera, permissions={"artifacts": ["manage"]}))["key"]
    assert Sender(key)("GET", "/v1/artifacts").status == 200
    reply = Sender(key, slug="acme")("GET", "/v1/artifacts")
    assert (reply.status, reply.code) == (403, "missing_role")


def test_a_viewers_team_key_only_reads_by_default(vera: Sender, cloud: Cloud) -> None:
    record = made(create(vera, teamId=cloud.team.id))
    assert record["permissions"] == {"artifacts": ["read"]}


def test_users_can_grant_custom_permissions_only_within_the_default_ones(ada: Sender, option: SetOption) -> None:
    option("default_key_permissions", '{"artifacts":["read"],"reports":["read","share"]}')
    assert made(create(ada))["permissions"] == {"artifacts": ["read"], "reports": ["read", "share"]}
    assert made(create(ada, permissions={"reports": ["share"]}))["permissions"] == {"reports": ["share"]}
    assert made(create(ada, permissions={"artifacts": ["write"]}))
    reply = create(ada, permissions={"reports": ["share", "delete"]})
    assert refused(reply) == (403, "PERMISSION_NOT_HELD")
    assert "reports: delete" in reply.json["message"]


def test_a_key_used_as_a_session_creates_keys_within_its_own_permissions(cloud: Cloud, option: SetOption) -> None:
    option("session_for_api_keys", "true")

    def create_by_key(**body: Any) -> Reply:
        return Sender(None)("POST", PATH, json_body=body, headers={"x-api-key": cloud.token})

    record = made(create_by_key(permissions={"artifacts": ["read"]}))
    assert (record["userId"], record["teamId"]) == (cloud.user.id, cloud.team.id)
    assert refused(create_by_key(remaining=5)) == (400, "SERVER_ONLY_PROPERTY")
    assert refused(create_by_key(userId="A" * 32)) == (401, "UNAUTHORIZED_SESSION")
    reply = create_by_key(permissions={"billing": ["refund"]})
    assert refused(reply) == (403, "PERMISSION_NOT_HELD")
    with counted() as calls:
        made(create_by_key())
    # The first batch reads the key and its user. The last use of the key was recorded in the second before.
    steps = ["BatchGetItem", "GetItem", "BatchGetItem", "TransactWriteItems"]
    assert calls.steps == [[step] for step in steps]


# Operators ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("mailbox")
def test_an_operator_creates_a_key_with_limits_for_any_user(operator: Sender, cloud: Cloud) -> None:
    record = made(
        create(
            operator,
            userId=cloud.user.id,
            remaining=10,
            refillAmount=10,
            refillInterval=60_000,
            rateLimitMax=5,
            rateLimitTimeWindow=1000,
            permissions={"billing": ["refund"]},
        )
    )
    assert record["userId"] == cloud.user.id
    assert (record["remaining"], record["refillAmount"], record["refillInterval"]) == (10, 10, 60_000)  # fmt: skip
    assert (record["rateLimitEnabled"], record["rateLimitMax"]) == (True, 5)
    assert record["rateLimitTimeWindow"] == 1000
    assert record["permissions"] == {"billing": ["refund"]}


def test_a_whole_number_can_have_decimals(operator: Sender) -> None:
    numbers = {
        "remaining": b"10.0",
        "refillAmount": b"5.0",
        "refillInterval": b"6e4",
        "rateLimitMax": b"7.0",
        "rateLimitTimeWindow": b"1000.0",
        "expiresIn": b"3600.0",
    }
    body = b",".join(b'"%s":%s' % (name.encode(), number) for name, number in numbers.items())
    record = made(operator("POST", PATH, body=b"{%s}" % body, headers={"content-type": "application/json"}))
    expected = {name: int(float(number)) for name, number in numbers.items()}
    ends_at, made_at = (datetime.fromisoformat(record[name]) for name in ("expiresAt", "createdAt"))
    assert ends_at - made_at == timedelta(seconds=expected.pop("expiresIn"))
    assert {name: record[name] for name in expected} == expected


@pytest.mark.usefixtures("mailbox")
def test_an_operator_creates_a_key_with_0_uses(operator: Sender) -> None:
    record = made(create(operator, remaining=0))
    assert record["remaining"] == 0
    send = Sender(record["key"], slug="acme")
    assert send("GET", "/v8/artifacts/status").status == 401
    assert find_key(record["id"]) is None


@pytest.mark.usefixtures("mailbox")
def test_an_operator_can_disable_the_default_rate_limit(operator: Sender, option: SetOption) -> None:
    option("key_rate_limit_enabled", "true")
    assert made(create(operator, rateLimitEnabled=False))["rateLimitEnabled"] is False
    assert made(create(operator))["rateLimitMax"] == 10


@pytest.mark.parametrize("user_id", ["B" * 32, "", "email#ada@acme.example", "x" * 3000])
def test_an_operator_cannot_create_a_key_for_an_unknown_user(operator: Sender, user_id: str) -> None:
    before = stored_keys()
    reply = create(operator, userId=user_id)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"] == "[body.userId] there is no such user"
    assert stored_keys() == before


@pytest.mark.usefixtures("mailbox")
def test_an_operators_team_key_must_belong_to_a_member(operator: Sender, cloud: Cloud) -> None:
    reply = create(operator, teamId=cloud.team.id)
    assert refused(reply) == (403, "NOT_A_TEAM_MEMBER")
    assert made(create(operator, teamId=cloud.team.id, userId=cloud.user.id))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"remaining": -1}, "remaining"),
        ({"remaining": 0.5}, "remaining"),
        ({"remaining": 10**13}, "remaining"),
        ({"remaining": 1, "refillAmount": 1}, "refillInterval"),
        ({"remaining": 1, "refillInterval": 1}, "refillAmount"),
        ({"refillAmount": 1, "refillInterval": 1}, "remaining"),
        ({"rateLimitTimeWindow": 10**20}, "rateLimitTimeWindow"),
        ({"rateLimitMax": 0}, "rateLimitMax"),
        ({"rateLimitEnabled": "yes"}, "rateLimitEnabled"),
    ],
)
def test_400_names_the_bad_limit_of_an_operator(operator: Sender, body: Any, field: str) -> None:
    reply = create(operator, **body)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith(f"[body.{field}] ")


def test_an_operator_needs_a_verified_address(ada: Sender, cloud: Cloud, option: SetOption) -> None:
    option("operator_emails", cloud.user.email)
    assert refused(create(ada, remaining=5)) == (400, "SERVER_ONLY_PROPERTY")


# AWS calls ----------------------------------------------------------------------------------------


def test_it_reads_the_session_and_writes_one_transaction(ada: Sender, cloud: Cloud) -> None:
    with counted() as calls:
        made(create(ada))
    assert calls.steps == [
        ["GetItem"],  # the session token
        ["BatchGetItem"],  # the session and its user
        ["TransactWriteItems"],
        ["UpdateItem"],  # the time of the last deletion of expired keys, which runs once in ten seconds
        ["Query"],
    ]
    with counted() as calls:
        made(create(ada))
    assert calls.steps == [["BatchGetItem"], ["TransactWriteItems"]]
    with counted() as calls:
        made(create(ada, teamId=cloud.team.id))
    assert calls.steps == [["BatchGetItem"], ["BatchGetItem"], ["TransactWriteItems"]]
