"""`scope` in the requests that list, inspect and delete artifacts, and attack 32."""

from typing import Any

import pytest

from larder import clock
from larder.artifacts.removals import carry_out
from larder.artifacts.repository.sweep_queue import read_removal
from larder.audit.service import read_entries
from tests.direct_uploads import announce, offer, put_object
from tests.requests import Cloud, Sender
from tests.trust.scene import CLEAN, POISON, Scene, make_scene, protected, put, read


@pytest.fixture
def stored(scene: Scene) -> str:
    """`abc` is in three scopes. Returns the id of the pull request's."""
    put(scene.pr, "abc", POISON)
    put(scene.laptop, "abc", POISON * 2)
    put(scene.main, "abc", CLEAN)
    return f"k{scene.cloud.key.id}"


def listed(send: Sender, scope: str) -> list[tuple[str, str, int]]:
    found = send("GET", f"/v1/artifacts?scope={scope}").json["artifacts"]
    return [(one["hash"], one["scope"], one["size"]) for one in found]


def test_a_list_is_of_one_scope_or_of_all(scene: Scene, stored: str, manage: Sender) -> None:
    of_ada = f"u{scene.cloud.user.id}"
    assert listed(manage, "shared") == [("abc", "shared", len(CLEAN))]
    assert listed(manage, stored) == [("abc", stored, len(POISON))]
    assert listed(manage, "all") == [
        ("abc", "shared", len(CLEAN)),
        ("abc", stored, len(POISON)),
        ("abc", of_ada, 2 * len(POISON)),
    ]
    (only,) = manage("GET", "/v1/artifacts").json["artifacts"]
    assert (only["size"], "scope" in only) == (len(CLEAN), False)


def test_a_page_can_end_inside_a_hash(scene: Scene, stored: str, manage: Sender) -> None:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        query = f"limit=1&scope=all{cursor and f'&cursor={cursor}'}"
        page = manage("GET", f"/v1/artifacts?{query}").json
        seen += [artifact["scope"] for artifact in page["artifacts"]]
        cursor = page["pagination"]["next"]
    assert seen == ["shared", stored, f"u{scene.cloud.user.id}"]


def test_one_artifact_of_a_scope(scene: Scene, stored: str, manage: Sender) -> None:
    def inspect(query: str) -> Any:
        return manage("GET", f"/v1/artifacts/abc{query}").json

    assert inspect("")["size"] == inspect("?scope=shared")["size"] == len(CLEAN)
    assert (inspect(f"?scope={stored}")["size"], inspect(f"?scope={stored}")["scope"]) == (len(POISON), stored)
    assert manage("GET", "/v1/artifacts/abc?scope=kNone").status == 404
    assert manage("DELETE", f"/v1/artifacts/abc?scope={stored}").json["deleted"] is True
    assert manage("DELETE", f"/v1/artifacts/abc?scope={stored}").json["deleted"] is False
    assert inspect("")["size"] == len(CLEAN)
    assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is True
    assert listed(manage, "all") == [("abc", f"u{scene.cloud.user.id}", 2 * len(POISON))]


def test_one_hash_in_all_scopes(scene: Scene, stored: str, manage: Sender) -> None:
    put(scene.main, "abcd", CLEAN)
    put(scene.other_pr, "abcd", POISON)
    seen: list[tuple[str, str]] = []
    cursor: str | None = ""
    while cursor is not None:
        query = f"limit=1&scope=all{cursor and f'&cursor={cursor}'}"
        page = manage("GET", f"/v1/artifacts/abc?{query}").json
        seen += [(artifact["hash"], artifact["scope"]) for artifact in page["artifacts"]]
        cursor = page["pagination"]["next"]
    scopes = ["shared", stored, f"u{scene.cloud.user.id}"]
    assert seen == [("abc", scope) for scope in scopes]
    assert manage("GET", "/v1/artifacts/none?scope=all").json["artifacts"] == []


def test_400_for_a_page_of_one_hash_that_cannot_be(scene: Scene, stored: str, manage: Sender) -> None:
    of_abc = manage("GET", "/v1/artifacts/abc?scope=all&limit=1").json["pagination"]["next"]
    for query, field in [
        ("limit=1", "limit"),
        (f"scope=shared&cursor={of_abc}", "cursor"),
        ("scope=all&limit=0", "limit"),
        ("scope=all&cursor=x", "cursor"),
    ]:
        reply = manage("GET", f"/v1/artifacts/abc?{query}")
        assert (reply.status, reply.message.partition(":")[0]) == (400, field)
    reply = manage("GET", f"/v1/artifacts/abcd?scope=all&cursor={of_abc}")
    assert (reply.status, reply.message.partition(":")[0]) == (400, "cursor")


def test_400_for_a_scope_that_cannot_be(scene: Scene, manage: Sender) -> None:
    paths = ["GET /v1/artifacts", "DELETE /v1/artifacts"]
    paths += [f"{method} /v1/artifacts/abc" for method in ("GET", "DELETE")]
    for line in paths:
        method, path = line.split()
        for scope in ("", "x1", "k", "k.1", "k1%23pending", "Shared"):
            reply = manage(method, f"{path}?scope={scope}")
            assert (reply.status, reply.code) == (400, "bad_request")
            assert reply.message.startswith("scope:")


@pytest.mark.parametrize("query", ["", "scope=shared", "scope=k1&writer=" + "a" * 32])
def test_400_for_a_removal_that_names_not_exactly_one(manage: Sender, query: str) -> None:
    assert manage("DELETE", f"/v1/artifacts?{query}").status == 400


def test_32_everything_in_a_scope_is_deleted_while_the_pull_request_uploads(
    scene: Scene, stored: str, manage: Sender, removal_jobs: list[dict[str, str]]
) -> None:
    cloud = scene.cloud
    offered, arrived = offer(scene.pr, "offered"), offer(scene.pr, "arrived")
    put_object(arrived, POISON)
    reply = manage("DELETE", f"/v1/artifacts?scope={stored}")
    assert (reply.status, reply.json["removal"]["scope"]) == (202, stored)
    assert [job["target"] for job in removal_jobs] == [stored]
    removal = read_removal(cloud.team.id, stored)
    assert removal is not None
    carry_out(removal, now=clock.now())
    for key in (offered, arrived):
        put_object(key, POISON)
        announce(key)
    put(scene.pr, "later", POISON)
    assert listed(manage, stored) == [("later", stored, len(POISON))]
    assert read(scene.laptop, "abc") == CLEAN
    actions = [
        (entry.action.value, entry.subject) for entry in read_entries(cloud.team.id, limit=100, now=clock.now()).entries
    ]
    assert {("removal_asked", stored), ("removal_done", stored)} <= {*actions}


@pytest.mark.parametrize("order", ["hash", "uploaded"])
def test_what_protection_hides_is_listed_only_on_request(cloud: Cloud, manage: Sender, order: str) -> None:
    put(cloud.send, "abc", POISON)
    put(cloud.send, "def", POISON)
    scene = make_scene(cloud)
    with protected(cloud):
        put(scene.main, "new", CLEAN)

        def hashes(query: str) -> dict[str, bool]:
            found = manage("GET", f"/v1/artifacts?order={order}{query}").json["artifacts"]
            return {one["hash"]: one.get("hidden", False) for one in found}

        assert hashes("") == {"new": False}
        assert hashes("&hidden=true") == {"abc": True, "def": True, "new": False}
        assert manage("GET", "/v1/artifacts?hidden=1").status == 400
        assert manage("GET", "/v1/artifacts/abc").json["hidden"] is True

        # Building a hidden one again replaces nothing that anyone reads.
        put(scene.main, "abc", CLEAN)
        assert hashes("") == {"new": False, "abc": False}
        entries = read_entries(cloud.team.id, limit=50, now=clock.now()).entries
        assert "artifact_replaced" not in [entry.action for entry in entries]
