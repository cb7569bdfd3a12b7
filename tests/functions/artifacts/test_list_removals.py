"""GET /v1/artifacts/removals, and removals of a time and of everything"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.artifacts import removals, sweep
from larder.artifacts.models import Artifact, ArtifactHash, Upload
from larder.artifacts.repository import index
from larder.artifacts.repository.index import stored_by
from larder.artifacts.repository.totals import add_to_totals
from larder.audit.service import read_entries
from larder.clock import to_ms
from larder.hashing import random_id
from tests.direct_uploads import announce, offer, put_object
from tests.requests import Cloud, Reply, Sender, invoke

NOW = clock.now()
HOUR = timedelta(hours=1)
REMOVALS = "/v1/artifacts/removals"


def left(owner: str) -> list[str]:
    return sorted(one.upload.hash for one in stored_by(owner))


def delete(manage: Sender, **query: str) -> Reply:
    return manage.asking(**query)("DELETE", "/v1/artifacts")


def do(jobs: list[dict[str, Any]]) -> None:
    while jobs:
        invoke("artifacts.remove_artifacts.handler", jobs.pop(0))


def listed(manage: Sender) -> list[dict[str, Any]]:
    reply = manage("GET", REMOVALS)
    assert reply.status == 200, reply
    found: list[dict[str, Any]] = reply.json["removals"]
    return found


def test_a_removal_shows_what_it_has_deleted_so_far(
    cloud: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    for number in range(3):
        cloud.store(f"a{number}", now=clock.now())
    asked = delete(manage, writer=cloud.key.id).json["removal"]
    (waiting,) = listed(manage)
    assert (waiting["writer"], waiting["askedAt"]) == (cloud.key.id, asked["askedAt"])
    assert (waiting["artifacts"], waiting["passedAt"]) == (0, None)
    assert waiting["by"]["userId"] == cloud.user.id
    do(removal_jobs)
    (done,) = listed(manage)
    assert (done["artifacts"], done["sizeBytes"]) == (3, 24)
    assert done["passedAt"] >= asked["askedAt"]


def test_an_interrupted_removal_keeps_its_count(
    cloud: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    now, owner, writer = clock.now(), cloud.team.id, Actor(random_id())
    for number in range(101):
        hash = ArtifactHash(f"a{number}")
        upload = Upload(owner=owner, hash=hash, id=f"{to_ms(now):012x}{number:016x}")
        artifact = Artifact(upload=upload, size_bytes=2, created_at=now, writer=writer)
        assert index.publish(artifact, replaces=None, now=now)
    add_to_totals(owner, 202, 101)
    delete(manage, writer=writer.credential_id)
    looks = iter([True, False])
    removals.do_job(owner, writer.credential_id, now=clock.now(), has_time=lambda: next(looks))
    (stopped,) = listed(manage)
    assert (stopped["artifacts"], stopped["sizeBytes"]) == (100, 200)
    assert stopped["passedAt"] is None
    do(removal_jobs)
    (done,) = listed(manage)
    assert (done["artifacts"], done["sizeBytes"]) == (101, 202)
    assert done["passedAt"] is not None


def test_a_removal_leaves_the_list_after_its_second_pass(
    cloud: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    delete(manage, writer=cloud.key.id)
    do(removal_jobs)
    assert len(listed(manage)) == 1
    sweep.sweep(now=clock.now() + 26 * HOUR)
    assert listed(manage) == []


def test_everything_of_a_time(cloud: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]) -> None:
    for hash, hours in (("a", -4), ("b", -3), ("c", -2), ("d", -1)):
        cloud.store(hash, now=NOW + hours * HOUR)
    since, until = to_ms(NOW - 3 * HOUR), to_ms(NOW - HOUR)
    reply = delete(manage, **{"from": str(since), "until": str(until)})
    assert reply.status == 202
    removal = reply.json["removal"]
    assert (removal["from"], removal["until"]) == (since, until)
    do(removal_jobs)
    assert left(cloud.team.id) == ["a", "d"]
    (done,) = listed(manage)
    assert (done["from"], done["until"], done["artifacts"]) == (since, until, 2)


def test_an_upload_that_was_offered_in_the_time_is_refused(
    cloud: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]
) -> None:
    url = offer(cloud.send, "a")
    period = {"from": str(to_ms(NOW - HOUR)), "until": str(to_ms(clock.now() + HOUR))}
    assert delete(manage, **period).status == 202
    do(removal_jobs)
    put_object(url, b"late")
    announce(url)
    assert left(cloud.team.id) == []


def test_everything_of_a_team(cloud: Cloud, manage: Sender, removal_jobs: list[dict[str, Any]]) -> None:
    cloud.store("a", now=clock.now())
    cloud.store("b", now=clock.now())
    for wrong in ("web", "", cloud.team.id):
        refused = delete(manage, all=wrong)
        assert (refused.status, refused.code) == (400, "bad_request")
    assert removal_jobs == []
    assert delete(manage, all="acme").json["removal"]["all"] is True
    do(removal_jobs)
    assert left(cloud.team.id) == []
    assert {one["all"] for one in listed(manage)} == {True}
    page = read_entries(cloud.team.id, limit=10, now=clock.now())
    done, asked = (entry for entry in page.entries if entry.action.value.startswith("removal_"))
    assert (asked.subject, done.subject, done.artifacts) == ("all", "all", 2)


def test_everything_that_a_user_stores_without_a_team(cloud: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    session = Sender(start_session(cloud.user, now=clock.now())[1])
    assert session("PUT", "/v8/artifacts/a", body=b"1").status == 202
    assert delete(session, all="acme").status == 400
    assert delete(session, all=cloud.user.id).status == 202
    do(removal_jobs)
    assert left(cloud.user.id) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "writer"),
        ({"from": "1"}, "from"),
        ({"until": "1"}, "until"),
        ({"from": "2", "until": "2"}, "from"),
        ({"from": "a", "until": "2"}, "from"),
        ({"from": "1", "until": "2", "all": "acme"}, "from"),
        ({"scope": "kA1", "all": "acme"}, "scope"),
        ({"writer": random_id(), "all": "acme"}, "all"),
        ({"writer": random_id(), "scope": "kA1"}, "scope"),
    ],
)
def test_400_for_no_target_or_several(cloud: Cloud, manage: Sender, query: dict[str, str], field: str) -> None:
    cloud.store("a", now=clock.now())
    reply = delete(manage, **query)
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(field)
    assert left(cloud.team.id) == ["a"]


@pytest.mark.usefixtures("removal_jobs")
def test_the_list_has_pages(manage: Sender) -> None:
    ids = sorted(random_id() for _ in range(5))
    for id in ids:
        assert delete(manage, writer=id).status == 202
    seen: list[str] = []
    asking = manage.asking(limit="2")
    while True:
        page = asking("GET", REMOVALS).json
        seen += [removal["writer"] for removal in page["removals"]]
        if page["pagination"]["next"] is None:
            break
        asking = manage.asking(limit="2", cursor=page["pagination"]["next"])
    assert seen == ids


@pytest.mark.parametrize("query", ["limit=0", "cursor=%2B", "writer=a"])
def test_400_for_a_page_that_cannot_be(manage: Sender, query: str) -> None:
    reply = manage("GET", f"{REMOVALS}?{query}")
    assert (reply.status, reply.code) == (400, "bad_request")
