"""GET /v1/teams/{idOrSlug}/scopes"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from larder import clock
from larder.api_keys.properties import NewKey
from larder.artifacts import sweep
from larder.artifacts.removals import delete_owner_data
from larder.clock import to_ms
from larder.teams.state import change_state
from tests.requests import Cloud, Sender
from tests.trust.scene import Scene, make_scene, new_key, protected, put

PATH = "/v1/teams/acme/scopes"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

pytestmark = pytest.mark.usefixtures("removal_jobs")


@pytest.fixture
def scene(cloud: Cloud) -> Iterator[Scene]:
    with protected(cloud):
        yield make_scene(cloud)


def listed(send: Sender) -> dict[str, dict[str, Any]]:
    return {scope["id"]: scope for scope in send("GET", PATH).json["scopes"]}


@pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])
def test_a_scope_has_the_name_of_who_writes_it(scene: Scene, manage: Sender, preflight: bool) -> None:
    ada = scene.cloud.user
    named = new_key(scene.cloud, NewKey(user_id=ada.id, name="pull requests"))
    before = to_ms(clock.now())
    for writer in (named, scene.laptop, scene.main):
        put(writer, "abc", b"artifact", preflight=preflight)
    user, key = sorted(listed(manage).values(), key=lambda one: str(one["kind"]), reverse=True)
    assert user["id"] == f"u{ada.id}"
    assert (user["kind"], user["name"], user["userId"]) == ("user", ada.email, ada.id)
    assert key["id"].startswith("k")
    assert (key["kind"], key["name"], key["userId"]) == ("key", "pull requests", ada.id)
    assert before <= key["lastUploadAt"] <= to_ms(clock.now())
    assert (key["size"], key["artifacts"], key["countedAt"]) == (None, None, None)


def test_the_daily_check_counts_what_each_scope_holds(scene: Scene, manage: Sender) -> None:
    put(scene.main, "abc", bytes(1000))
    put(scene.pr, "def", bytes(30))
    put(scene.pr, "ghi", bytes(20))
    put(scene.laptop, "def", bytes(7))
    now = clock.now()
    sweep.sweep(now=now)
    found = listed(manage)
    pr, laptop = found[f"k{scene.cloud.key.id}"], found[f"u{scene.cloud.user.id}"]
    assert (pr["size"], pr["artifacts"], pr["countedAt"]) == (50, 2, to_ms(now))
    assert (laptop["size"], laptop["artifacts"]) == (7, 1)


def test_the_reply_says_what_all_scopes_hold_and_may_hold(scene: Scene, manage: Sender) -> None:
    put(scene.main, "abc", bytes(1000))
    put(scene.pr, "def", bytes(30))
    change_state(scene.cloud.team.id, quota_bytes=5000)
    reply = manage("GET", PATH).json
    assert (reply["size"], reply["maxSize"]) == (30, 2500)


def test_an_empty_scope_is_forgotten_a_day_after_its_last_upload(scene: Scene, manage: Sender) -> None:
    put(scene.pr, "def", bytes(30))
    manage("DELETE", f"/v1/artifacts/def?scope=k{scene.cloud.key.id}")
    now = clock.now()
    sweep.sweep(now=now)
    assert listed(manage)[f"k{scene.cloud.key.id}"]["size"] == 0
    sweep.sweep(now=now + DAY + HOUR)
    assert listed(manage) == {}


def test_uploads_record_their_scope_again_after_an_hour(scene: Scene, manage: Sender) -> None:
    def last_upload() -> int:
        return int(listed(manage)[f"k{scene.cloud.key.id}"]["lastUploadAt"])

    put(scene.pr, "def", b"1")
    first = last_upload()
    put(scene.pr, "ghi", b"1")
    assert last_upload() == first
    with time_machine.travel(clock.now() + HOUR, tick=True):
        put(scene.pr, "ghi", b"2")
        assert last_upload() >= first + HOUR // timedelta(milliseconds=1)


def test_the_list_has_pages(scene: Scene, manage: Sender) -> None:
    put(scene.pr, "def", b"1")
    put(scene.laptop, "def", b"1")
    put(scene.other_pr, "def", b"1")
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = manage("GET", f"{PATH}?limit=2{cursor and f'&cursor={cursor}'}").json
        seen += [scope["id"] for scope in page["scopes"]]
        cursor = page["pagination"]["next"]
    assert seen == sorted(listed(manage))
    assert len(seen) == 3


def test_scopes_go_with_their_team(scene: Scene, manage: Sender) -> None:
    put(scene.pr, "def", b"1")
    delete_owner_data(scene.cloud.team.id, now=clock.now(), has_time=lambda: True)
    assert listed(manage) == {}
