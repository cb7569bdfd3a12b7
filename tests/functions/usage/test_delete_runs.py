"""DELETE /v1/runs"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.catalogue import valid
from tests.functions.teams.people import outcome
from tests.requests import Cloud, Sender


def report(send: Sender, *ids: str) -> None:
    body = valid("POST /v1/runs").json
    for id in ids:
        assert send("POST", "/v1/runs", json_body={**body, "id": id}).status == 200


def runs(cloud: Cloud) -> dict[str, Any]:
    return {run["id"]: run for run in cloud.send("GET", "/v1/runs").json["runs"]}


def delete(send: Sender, query: str) -> Any:
    reply = send("DELETE", f"/v1/runs?{query}")
    assert reply.status == 200, reply
    return reply.json


def place(run: dict[str, Any]) -> str:
    return f"id={run['id']}&startedAt={run['startedAt']}"


def other_key(cloud: Cloud) -> Sender:
    return Sender(create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1], slug="acme")


def member(cloud: Cloud, role: Role) -> Sender:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(cloud.team.id, bob.id, role, now=clock.now())
    return Sender(start_session(bob, now=clock.now())[1], slug="acme")


def test_an_owner_deletes_a_run_by_its_id(cloud: Cloud, manage: Sender) -> None:
    report(cloud.send, "one", "two")
    found = runs(cloud)
    assert delete(manage, place(found["one"])) == {"deleted": 1, "hasMore": False}
    assert runs(cloud).keys() == {"two"}
    assert delete(manage, place(found["one"])) == {"deleted": 0, "hasMore": False}


def test_an_owner_deletes_all_runs_of_a_reporter(cloud: Cloud, manage: Sender) -> None:
    hostile = other_key(cloud)
    report(hostile, "x1", "x2")
    report(cloud.send, "one")
    reporter = runs(cloud)["x1"]["reporter"]["id"]
    assert delete(manage, f"reporter={reporter}") == {"deleted": 2, "hasMore": False}
    assert runs(cloud).keys() == {"one"}
    assert delete(manage, f"reporter={cloud.user.id}")["deleted"] == 1
    assert runs(cloud) == {}


def test_a_long_list_is_deleted_in_several_requests(
    cloud: Cloud, manage: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("larder.why.runs.MAX_DELETED", 2)
    report(cloud.send, "one", "two", "three")
    query = f"reporter={cloud.key.id}"
    assert delete(manage, query) == {"deleted": 2, "hasMore": True}
    assert delete(manage, query) == {"deleted": 1, "hasMore": False}


def test_a_reporter_deletes_its_own_runs_alone(cloud: Cloud) -> None:
    report(cloud.send, "one", "two")
    other = other_key(cloud)
    report(other, "theirs")
    found = runs(cloud)
    for query in (
        place(found["theirs"]),
        f"reporter={found['theirs']['reporter']['id']}",
        # The keys of one user can be in the jobs of different people.
        f"reporter={cloud.user.id}",
    ):
        assert outcome(cloud.send("DELETE", f"/v1/runs?{query}")) == (403, "missing_role")
    assert delete(cloud.send, place(found["one"]))["deleted"] == 1
    assert delete(cloud.send, f"reporter={cloud.key.id}")["deleted"] == 1
    assert runs(cloud).keys() == {"theirs"}


def test_a_member_deletes_what_they_reported_with_a_session(cloud: Cloud) -> None:
    bob = member(cloud, Role.MEMBER)
    report(bob, "mine")
    report(cloud.send, "one")
    found = runs(cloud)
    assert outcome(bob("DELETE", f"/v1/runs?{place(found['one'])}")) == (403, "missing_role")
    assert delete(bob, f"reporter={found['mine']['reporter']['userId']}")["deleted"] == 1
    assert runs(cloud).keys() == {"one"}


def test_runs_of_another_team_stay(cloud: Cloud, manage: Sender, personal: Sender) -> None:
    report(personal, "mine")
    assert delete(manage, f"reporter={cloud.user.id}")["deleted"] == 0
    assert len(personal("GET", "/v1/runs").json["runs"]) == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "id: or reporter"),
        ("id=one&startedAt=1&reporter=x", "id: or reporter"),
        ("id=one", "startedAt: must be"),
        ("id=a%20b&startedAt=1", "id: must be"),
        ("id=one&startedAt=x", "startedAt: must be"),
        ("reporter=a%23b", "reporter: must be"),
        ("all=true", "all: is unknown"),
    ],
)
def test_400_names_the_parameter(cloud: Cloud, query: str, message: str) -> None:
    reply = Sender(cloud.token, query=f"slug=acme&{query}")("DELETE", "/v1/runs")
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(message)


def test_a_deleted_run_can_be_reported_again(cloud: Cloud, manage: Sender) -> None:
    report(cloud.send, "one")
    delete(manage, f"reporter={cloud.key.id}")
    report(cloud.send, "one")
    (run,) = runs(cloud).values()
    assert clock.from_ms(run["startedAt"]) > clock.now() - timedelta(days=1)
