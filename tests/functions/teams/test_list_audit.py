"""GET /v1/audit"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from larder import aws, clock
from larder.audit import repository
from larder.audit.models import Action
from larder.audit.service import MOST_READ, make_entry
from larder.settings import settings
from larder.teams.models import Block, CachingStatus, Role
from larder.teams.state import change_state
from tests.bulk import put_all
from tests.functions.teams.people import Person, joined, key_of, newcomer, outcome, signed_in
from tests.mailbox import Mailbox
from tests.processor_time import processor_time
from tests.requests import Cloud

AUDIT = "/v1/audit"


@pytest.fixture
def owner(cloud: Cloud) -> Person:
    return signed_in(cloud.user)


def audit(person: Person, query: str = "", team: str = "slug=acme") -> Any:
    reply = person.send("GET", f"{AUDIT}?{team}&{query}".rstrip("&"))
    assert reply.status == 200, reply.body
    return reply.json


def actions(reply: Any) -> list[str]:
    return [entry["action"] for entry in reply["entries"]]


def note(cloud: Cloud, action: Action, count: int, *, days_ago: int = 0) -> None:
    now = clock.now() - timedelta(days=days_ago)
    entries = [
        make_entry(cloud.team.id, action, f"a{one}", None, now=now + timedelta(milliseconds=one))
        for one in range(count)
    ]
    items = [aws.deserialize(repository.put(entry).arguments["Item"]) for entry in entries]
    put_all(settings().audit_table, items)


def test_an_entry_names_the_people_in_it(cloud: Cloud, owner: Person) -> None:
    bob = joined(cloud, Role.DEVELOPER)
    path = f"/v1/teams/acme/members/{bob.user.id}"
    assert owner.send("PATCH", path, json_body={"role": "VIEWER"}).status == 200
    newest, added, *_ = audit(owner)["entries"]
    assert (newest["action"], newest["role"]) == ("role_changed", "VIEWER")
    assert (newest["subject"], newest["subjectName"]) == (bob.user.id, "Bob")
    assert newest["actor"]["userId"] == cloud.user.id
    assert newest["actor"]["name"] == cloud.user.name
    # The operator at the command line.
    assert (added["action"], added["actor"]) == ("member_added", None)


@pytest.mark.parametrize("query", ["", "action=artifact_deleted"])
def test_the_list_has_pages_newest_first(cloud: Cloud, owner: Person, query: str) -> None:
    note(cloud, Action.ARTIFACT_DELETED, 5)
    seen: list[str] = []
    before = ""
    while True:
        page = audit(owner, f"limit=2{before}&{query}")
        assert page["pagination"]["count"] == len(page["entries"]) <= 2
        seen += [entry["subject"] for entry in page["entries"]]
        if page["pagination"]["next"] is None:
            break
        before = f"&before={page['pagination']['next']}"
    assert seen[:5] == ["a4", "a3", "a2", "a1", "a0"]
    assert len(seen) == len(set(seen))


def test_only_some_actions(cloud: Cloud, owner: Person) -> None:
    note(cloud, Action.ARTIFACT_DELETED, 2)
    note(cloud, Action.REMOVAL_DONE, 1)
    assert actions(audit(owner, "action=removal_done")) == ["removal_done"]
    assert set(actions(audit(owner, "action=removal_done,artifact_deleted"))) == {"removal_done", "artifact_deleted"}


def test_a_search_reads_a_limited_number_of_entries(cloud: Cloud, owner: Person) -> None:
    note(cloud, Action.REMOVAL_DONE, 1, days_ago=1)
    note(cloud, Action.ARTIFACT_DELETED, MOST_READ)
    with processor_time() as spent:
        first = audit(owner, "action=removal_done")
    assert first["entries"] == []
    assert spent.s < 1
    second = audit(owner, f"action=removal_done&before={first['pagination']['next']}")
    assert actions(second) == ["removal_done"]


def changes_of_a_team(owner: Person) -> Sequence[str]:
    send = owner.send
    assert send("PATCH", "/v2/teams/acme", json_body={"name": "Acme Web"}).status == 200
    body = {"name": "A", "slug": "web", "remoteCaching": {"enabled": False}}
    assert send("PATCH", "/v2/teams/acme", json_body=body).status == 200
    status = {"status": "paused"}
    assert send("PUT", "/v1/artifacts/status?slug=acme", json_body=status).status == 200
    invitation = {"email": "dora@acme.example", "role": "VIEWER"}
    made = send("POST", "/v2/teams/acme/members", json_body=invitation)
    assert made.status == 200, made.body
    assert send("DELETE", f"/v1/teams/acme/members/{made.json['uid']}").status == 200
    return [made.json["uid"]]


def test_changes_of_a_team_say_who_made_them(cloud: Cloud, owner: Person, mailbox: Mailbox) -> None:
    (invitation,) = changes_of_a_team(owner)
    found = audit(owner)["entries"][:6]
    # As a set, because entries of one millisecond have no order.
    assert {(one["action"], one["subject"], one["role"]) for one in found} == {
        ("team_changed", "name", None),
        ("team_changed", "name,slug,former_slugs", None),
        ("caching_set", "disabled", None),
        ("caching_set", "paused", None),
        ("member_invited", invitation, "VIEWER"),
        ("invitation_withdrawn", invitation, "VIEWER"),
    }
    assert {one["actor"]["userId"] for one in found} == {cloud.user.id}


def test_what_the_operator_sets_has_entries(cloud: Cloud, owner: Person) -> None:
    change_state(cloud.team.id, block=Block.PAYMENT, quota_bytes=1000)
    change_state(cloud.team.id, unblock=True, default_quota=True, caching=CachingStatus.PAUSED)
    found = audit(owner, "action=block_set,block_lifted,quota_set,caching_set")["entries"]
    assert {(one["action"], one["subject"]) for one in found} == {
        ("block_set", "payment_missing"),
        ("block_lifted", cloud.team.id),
        ("quota_set", "1000"),
        ("quota_set", "default"),
        ("caching_set", "paused"),
    }
    assert {one["actor"] for one in found} == {None}


def test_a_session_reads_the_audit_of_its_account_and_a_key_does_not(cloud: Cloud) -> None:
    eve = newcomer("eve")
    found = audit(eve, team="")["entries"]
    assert [one["action"] for one in found] == ["signed_in", "user_created"]
    by_key = key_of(eve, {"teams": ("read",)})
    assert outcome(by_key("GET", AUDIT)) == (403, "session_required")


def test_a_key_needs_teams_read(cloud: Cloud, owner: Person) -> None:
    read: dict[str, tuple[str, ...]] = {"teams": ("read",)}
    allowed = key_of(owner, read, team_id=cloud.team.id)
    assert allowed("GET", AUDIT).status == 200
    other = key_of(owner, {"artifacts": ("read", "write", "manage")}, team_id=cloud.team.id)
    assert outcome(other("GET", AUDIT)) == (403, "missing_permission")


def test_deleted_things_keep_their_names(cloud: Cloud, owner: Person, mailbox: Mailbox) -> None:
    preset = {"provider": "github", "repository": "acme/web"}
    rule = owner.send("POST", "/v1/teams/acme/rules", json_body=preset).json
    assert owner.send("DELETE", f"/v1/teams/acme/rules/{rule['id']}").status == 200
    new = {"name": "deploy", "teamId": cloud.team.id}
    key = owner.send("POST", "/api/auth/api-key/create", json_body=new).json["id"]
    assert owner.send("DELETE", f"/v1/teams/acme/keys/{key}").status == 200
    invitee = {"email": "bob@acme.example", "role": "DEVELOPER"}
    assert owner.send("POST", "/v2/teams/acme/members", json_body=[invitee]).status == 200
    (invited,) = audit(owner, "action=member_invited")["entries"]
    assert owner.send("DELETE", f"/v1/teams/acme/members/{invited['subject']}").status == 200
    entries = reversed(audit(owner)["entries"])
    shown = {entry["action"]: (entry["subject"], entry["subjectName"]) for entry in entries}
    assert shown["rule_added"] == shown["rule_removed"] == (rule["id"], rule["name"])
    assert shown["key_created"] == shown["key_deleted"] == (key, "deploy")
    name = (invited["subject"], "bob@acme.example")
    assert shown["member_invited"] == shown["invitation_withdrawn"] == name


def test_a_rotation_names_the_new_key(cloud: Cloud, owner: Person) -> None:
    new = {"name": "ci", "teamId": cloud.team.id}
    path = "/api/auth/api-key/create"
    old = owner.send("POST", path, json_body=new).json["id"]
    successor = owner.send("POST", path, json_body={**new, "replaces": old}).json["id"]
    rotated, created = audit(owner)["entries"][:2]
    assert (rotated["action"], rotated["subject"]) == ("key_rotated", old)
    assert (rotated["subjectName"], rotated["successor"]) == ("ci", successor)
    assert (created["subject"], created["successor"]) == (old, None)


@pytest.mark.parametrize(
    ("query", "field"), [("action=", "action"), ("action=everything", "action"), ("actions=key_created", "actions")]
)
def test_400_for_a_wrong_parameter(cloud: Cloud, owner: Person, query: str, field: str) -> None:
    reply = owner.send("GET", f"{AUDIT}?slug=acme&{query}")
    assert outcome(reply) == (400, "bad_request")
    assert field in reply.json["error"]["message"]
