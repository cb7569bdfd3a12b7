"""Attacks of a job that is not trusted on what others restore, each by its number in docs/protection.md#attacks."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import time_machine

from larder import aws, clock
from larder.accounts.service import create_user
from larder.actor import Actor
from larder.api_keys.keys import create_key, prepare_key, rotate_key, store_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import UNPROTECTED, ArtifactHash, ArtifactMetadata, CacheRequest
from larder.artifacts.uploads import store
from larder.teams.members import add_member
from larder.teams.models import People, Role
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from larder.turbo_login.service import Grant, create_token
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, put_object
from tests.hooks import hooked
from tests.requests import Cloud, Sender
from tests.trust.scene import (
    CLEAN,
    LARGE_CLEAN,
    LARGE_POISON,
    POISON,
    TRUSTED,
    Scene,
    get,
    new_key,
    protect,
    put,
    read,
    scope_of,
    seconds_later,
    session,
)

preflight_or_not = pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])


# 1 -----------------------------------------------------------------------------------------------


@preflight_or_not
def test_1_what_a_pull_request_stores_first_is_a_miss_on_main(scene: Scene, preflight: bool) -> None:
    put(scene.pr, "abc", POISON, preflight=preflight)
    assert read(scene.main, "abc") is None
    put(scene.main, "abc", CLEAN, preflight=preflight)
    for reader in (scene.main, scene.laptop, scene.pr, scene.other_pr):
        assert read(reader, "abc") == CLEAN
        assert scope_of(reader, "abc") == "shared"


@preflight_or_not
def test_1_what_a_pull_request_stores_last_changes_nothing(scene: Scene, preflight: bool) -> None:
    put(scene.main, "abc", CLEAN, preflight=preflight)
    put(scene.pr, "abc", POISON, preflight=preflight)
    for reader in (scene.main, scene.laptop, scene.pr, scene.other_pr):
        assert read(reader, "abc") == CLEAN


def test_1_a_large_artifact_is_redirected_to_that_of_main(scene: Scene) -> None:
    put(scene.pr, "abc", LARGE_POISON, preflight=True)
    assert read(scene.main, "abc") is None
    put(scene.main, "abc", LARGE_CLEAN, preflight=True)
    assert read(scene.pr, "abc") == LARGE_CLEAN


def test_1_succeeds_in_a_team_that_is_not_protected(unprotected: Scene) -> None:
    put(unprotected.pr, "abc", POISON)
    assert read(unprotected.main, "abc") == POISON
    assert "x-artifact-scope" not in get(unprotected.main, "abc").headers


# 2 -----------------------------------------------------------------------------------------------


def test_2_the_address_of_an_upload_leads_to_the_own_scope_for_good(scene: Scene) -> None:
    key = offer(scene.pr, "abc")
    put(scene.main, "abc", CLEAN, preflight=True)
    put_object(key, POISON)
    assert read(scene.main, "abc") == CLEAN
    announce(key)
    assert read(scene.main, "abc") == read(scene.laptop, "abc") == CLEAN


# 3 -----------------------------------------------------------------------------------------------


def test_3_a_hash_names_no_scope(scene: Scene) -> None:
    headers = {"access-control-request-method": "PUT", "user-agent": "turbo 2.11.11"}
    for hash in ("abc.kA", "abc%2ekA", "abc%23pending", "abc.", ".abc", "abc%2F", "abc%00"):
        for method in ("PUT", "GET", "HEAD", "OPTIONS"):
            body = POISON if method == "PUT" else b""
            reply = scene.pr(method, f"/v8/artifacts/{hash}", body=body, headers=headers)
            assert reply.status in (400, 404)
    assert object_keys() == []


@pytest.mark.parametrize("query", ["scope=shared", "branch=main", "teamId={team}&scope=shared", "slug=acme&trust=1"])
def test_3_no_parameter_and_no_header_chooses_a_scope(scene: Scene, query: str) -> None:
    send = Sender(scene.pr.token, query=query.format(team=scene.cloud.team.id))
    headers = {
        "x-artifact-scope": "shared",
        "x-artifact-branch": "main",
        "x-larder-scope": "shared",
        "x-artifact-client-ci": "GITHUB_ACTIONS",
    }
    reply = send("PUT", "/v8/artifacts/abc", body=POISON, headers=headers)
    assert reply.status in (202, 400)
    assert read(scene.main, "abc") is None


@pytest.mark.parametrize("slug", ["acme@main", "acme.main", "acme#shared", "acme%40main"])
def test_3_no_name_of_a_team_chooses_a_scope(scene: Scene, slug: str) -> None:
    token = create_key(NewKey(user_id=scene.cloud.user.id), now=clock.now())[1]
    reply = Sender(token, slug=slug)("PUT", "/v8/artifacts/abc", body=POISON)
    assert reply.status in (400, 403)


def test_3_a_query_names_no_scope(scene: Scene) -> None:
    put(scene.pr, "abc", POISON)
    (key,) = object_keys()
    name = key.split("/")[2]
    assert name.startswith("abc.k")
    hashes = [name, "abc#pending", "abc"]
    found = scene.main("POST", "/v8/artifacts", json_body={"hashes": hashes}).json
    assert found == dict.fromkeys(hashes)


# 22 ----------------------------------------------------------------------------------------------


def test_22_a_key_without_trust_writes_its_own_scope(scene: Scene) -> None:
    every = NewKey(user_id=scene.cloud.user.id, permissions={"artifacts": ("read", "write", "manage")})
    send = new_key(scene.cloud, every)
    put(send, "abc", POISON)
    assert (read(send, "abc"), scope_of(send, "abc")) == (POISON, "own")
    assert read(scene.main, "abc") is None


@pytest.mark.parametrize("role", [Role.MEMBER, Role.DEVELOPER, Role.VIEWER])
def test_22_a_trusted_key_needs_the_role_at_each_request(scene: Scene, role: Role) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(scene.cloud.team.id, bob.id, Role.ADMIN, now=clock.now())
    send = new_key(scene.cloud, NewKey(user_id=bob.id, permissions=TRUSTED))
    put(send, "abc", CLEAN)
    add_member(scene.cloud.team.id, bob.id, role, now=clock.now())
    for method, body in (("PUT", POISON), ("GET", b""), ("HEAD", b"")):
        reply = send(method, "/v8/artifacts/abc", body=body)
        assert reply.status == 403
    assert get(send, "abc").code == "missing_role"
    assert read(scene.main, "abc") == CLEAN


def test_22_a_developer_cannot_give_trust(scene: Scene) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(scene.cloud.team.id, bob.id, Role.DEVELOPER, now=clock.now())
    in_person = session(replace(scene.cloud, user=bob))
    body = {"teamId": scene.cloud.team.id, "permissions": {"artifacts": ["write", "trust"]}}
    reply = in_person("POST", "/api/auth/api-key/create", json_body=body)
    assert (reply.status, reply.json["code"]) == (403, "PERMISSION_NOT_HELD")


# 23 ----------------------------------------------------------------------------------------------


def test_23_nothing_of_before_the_protection_is_shown(unprotected: Scene) -> None:
    scene = unprotected
    put(scene.pr, "stored", POISON)
    put(scene.pr, "direct", POISON, preflight=True)
    arrived, offered = offer(scene.pr, "arrived"), offer(scene.pr, "offered")
    put_object(arrived, POISON)
    protect(scene.cloud)
    with seconds_later():
        put_object(offered, POISON)
        for hash in ("stored", "direct", "arrived", "offered"):
            assert read(scene.main, hash) is None
        for key in (arrived, offered):
            announce(key)
        for hash in ("stored", "direct", "arrived", "offered"):
            assert read(scene.main, hash) is read(scene.laptop, hash) is None
            put(scene.main, hash, CLEAN)
            assert read(scene.main, hash) == read(scene.pr, hash) == CLEAN


@preflight_or_not
def test_23_what_a_trusted_job_stores_at_once_after_the_switch_counts(unprotected: Scene, preflight: bool) -> None:
    scene = unprotected
    put(scene.pr, "abc", POISON)
    early = offer(scene.main, "def")
    protect(scene.cloud)
    put(scene.main, "abc", CLEAN, preflight=preflight)
    put_object(early, POISON)
    announce(early)
    for reader in (scene.main, scene.laptop, scene.pr):
        assert (read(reader, "abc"), read(reader, "def")) == (CLEAN, None)
    with seconds_later():
        put(scene.main, "ghi", CLEAN, preflight=preflight)
        for hash, body in (("abc", CLEAN), ("def", None), ("ghi", CLEAN)):
            assert read(scene.laptop, hash) == body


def test_23_a_late_event_replaces_nothing(unprotected: Scene) -> None:
    offered = offer(unprotected.pr, "abc")
    protect(unprotected.cloud)
    with seconds_later():
        put(unprotected.main, "abc", CLEAN)
        put_object(offered, POISON)
        announce(offered)
        assert read(unprotected.main, "abc") == CLEAN


def test_23_protection_off_and_on_again_shows_nothing_of_between(scene: Scene) -> None:
    put(scene.main, "first", CLEAN)
    protect(scene.cloud, on=False)
    with seconds_later():
        assert read(scene.pr, "first") == CLEAN
        put(scene.pr, "second", POISON)
        offered = offer(scene.pr, "third")
        protect(scene.cloud)
        with seconds_later():
            put_object(offered, POISON)
            announce(offered)
            for hash in ("first", "second", "third"):
                assert read(scene.main, hash) is None


def test_23_an_upload_that_began_before_the_switch_does_not_count(unprotected: Scene) -> None:
    """Its request has read the team before, and stores the artifact after it."""
    cloud, now = unprotected.cloud, clock.now()
    protect(cloud)
    store(
        CacheRequest(
            owner=cloud.team.id,
            hash=ArtifactHash("abc"),
            writer=Actor(cloud.key.id, cloud.user.id),
            view=UNPROTECTED,
            now=now,
        ),
        POISON,
        ArtifactMetadata(),
    )
    assert read(unprotected.main, "abc") is None
    with seconds_later():
        assert read(unprotected.main, "abc") is None


def test_23_a_slow_switch_counts_nothing_of_before_it(unprotected: Scene) -> None:
    """If the write takes longer than it is ahead, uploads of the meantime would count without another one."""
    with time_machine.travel(clock.now(), tick=False) as traveller:
        delays = iter([timedelta(seconds=5)])

        def upload_meanwhile(**_: object) -> None:
            if delay := next(delays, None):
                traveller.shift(delay)
                put(unprotected.pr, "abc", POISON)

        with hooked("before-call.dynamodb.TransactWriteItems", upload_meanwhile, aws.dynamodb()):
            protect(unprotected.cloud)
        traveller.shift(timedelta(seconds=3))
        assert read(unprotected.main, "abc") is None
        put(unprotected.main, "abc", CLEAN)
        assert read(unprotected.main, "abc") == CLEAN


def test_23_what_was_stored_can_be_kept(unprotected: Scene) -> None:
    put(unprotected.pr, "abc", CLEAN)
    protect(unprotected.cloud, keep_stored=True)
    assert read(unprotected.main, "abc") == CLEAN
    put(unprotected.pr, "def", POISON)
    assert read(unprotected.main, "def") is None


# 27 ----------------------------------------------------------------------------------------------


def fill(send: Sender, names: str, count: int, size: int) -> list[int]:
    return [send("PUT", f"/v8/artifacts/{names}{number}", body=bytes(size)).status for number in range(count)]


@pytest.mark.parametrize("over_quota", ["refuse", "evict"])
def test_27_a_flood_is_refused_at_its_share(
    scene: Scene, over_quota: str, option: SetOption, removal_jobs: list[object]
) -> None:
    option("over_quota", over_quota)
    change_state(scene.cloud.team.id, quota_bytes=10_000)
    assert fill(scene.main, "main", 4, 1000) == [202] * 4
    # A fifth of the share for each of these jobs.
    jobs = [new_key(scene.cloud) for _ in range(9)]
    statuses = [fill(job, f"flood{number}", 1, 1000)[0] for number, job in enumerate(jobs)]
    assert statuses[:5] == [202] * 5
    assert set(statuses[5:]) == {403}
    reply = scene.pr("PUT", "/v8/artifacts/more", body=bytes(1000))
    assert reply.code == "remote_caching_over_limit"
    key = offer(scene.pr, "direct")
    put_object(key, bytes(1000))
    announce(key)
    assert read(scene.pr, "direct") is None
    assert all(read(scene.main, f"main{number}") for number in range(4))
    assert fill(scene.main, "more", 1, 1000) == [202]
    assert all(read(scene.main, f"main{number}") for number in range(4))


@pytest.mark.parametrize("over_quota", ["refuse", "evict"])
@pytest.mark.parametrize("is_new", [True, False], ids=["new team", "full team"])
def test_27_a_flood_of_one_job_neither_empties_nor_blocks_other_scopes(
    scene: Scene, over_quota: str, option: SetOption, removal_jobs: list[object], is_new: bool
) -> None:
    option("over_quota", over_quota)
    change_state(scene.cloud.team.id, quota_bytes=10_000)
    others = (scene.laptop, scene.other_pr)
    for number, send in enumerate(others):
        assert fill(send, f"before{number}", 1, 400) == [202]
    if not is_new:
        assert fill(scene.main, "main", 8, 1000) == [202] * 8
    with seconds_later():
        assert fill(scene.pr, "flood", 14, 200) == [202] * 5 + [403] * 9
        with ThreadPoolExecutor(8) as pool:
            again = list(pool.map(lambda n: fill(scene.pr, f"{n}again", 1, 1)[0], range(8)))
        assert again == [403] * 8
        for number, send in enumerate(others):
            assert read(send, f"before{number}0") == bytes(400)
        assert fill(scene.laptop, "after", 1, 200) == [202]
    if is_new:
        with seconds_later(8 * 86_400):
            assert fill(scene.pr, "later", 1, 200) == [202]


def test_27_own_scopes_are_evicted_before_the_shared_one(
    scene: Scene, option: SetOption, removal_jobs: list[object]
) -> None:
    option("over_quota", "evict")
    change_state(scene.cloud.team.id, quota_bytes=10_000)
    fill(scene.main, "main", 6, 1000)
    with seconds_later():
        jobs = [new_key(scene.cloud) for _ in range(4)]
        for number, job in enumerate(jobs):
            assert fill(job, f"scoped{number}", 1, 1000) == [202]
        assert fill(scene.main, "new", 2, 1000) == [202, 202]
        assert all(read(scene.main, f"main{number}") for number in range(6))
        assert [read(jobs[number], f"scoped{number}0") for number in range(2)] == [None, None]


def test_27_an_upload_to_an_own_scope_evicts_no_shared_artifact(
    scene: Scene, option: SetOption, removal_jobs: list[object]
) -> None:
    option("over_quota", "evict")
    change_state(scene.cloud.team.id, quota_bytes=10_000)
    fill(scene.main, "main", 10, 1000)
    reply = scene.pr("PUT", "/v8/artifacts/one", body=bytes(1000))
    assert (reply.status, reply.code) == (403, "remote_caching_over_limit")
    assert all(read(scene.main, f"main{number}") for number in range(10))


# 28 ----------------------------------------------------------------------------------------------


@preflight_or_not
def test_28_only_the_pull_request_reads_its_scope(scene: Scene, preflight: bool) -> None:
    put(scene.pr, "abc", POISON, preflight=preflight)
    assert (read(scene.pr, "abc"), scope_of(scene.pr, "abc")) == (POISON, "own")
    for reader in (scene.main, scene.laptop, scene.other_pr, new_key(scene.cloud)):
        assert read(reader, "abc") is None
    put(scene.main, "abc", CLEAN)
    assert (read(scene.pr, "abc"), scope_of(scene.pr, "abc")) == (CLEAN, "shared")


def test_28_an_instance_that_knows_the_token_notices_the_protection(unprotected: Scene) -> None:
    scene = unprotected
    for send in (scene.pr, scene.laptop, scene.main):
        assert read(send, "abc") is None
    protect(scene.cloud)
    with seconds_later():
        put(scene.pr, "abc", POISON)
        assert read(scene.pr, "abc") == POISON
        assert read(scene.laptop, "abc") is read(scene.main, "abc") is None
        protect(scene.cloud, on=False)
        assert read(scene.pr, "abc") is None


# 31 ----------------------------------------------------------------------------------------------


def own_scope(send: Sender) -> str:
    """The scope that an upload goes to, by the name of its object."""
    before = set(object_keys())
    put(send, f"probe{len(before)}", CLEAN)
    (added,) = set(object_keys()) - before
    return added.split("/")[2].partition(".")[2]


def login_key(cloud: Cloud, team_id: str | None) -> Sender:
    token = create_token(cloud.user, Grant(team_id=team_id), now=clock.now())
    return Sender(token.text, slug=cloud.team.slug)


def test_31_a_session_and_keys_of_turbo_login_write_the_users_scope(scene: Scene) -> None:
    cloud = scene.cloud
    of_ada = f"u{cloud.user.id}"
    assert own_scope(scene.laptop) == of_ada
    assert own_scope(session(cloud)) == of_ada
    for team_id in (cloud.team.id, None):
        assert own_scope(login_key(cloud, team_id)) == of_ada


def test_31_a_rotated_key_keeps_its_scope(scene: Scene) -> None:
    cloud = scene.cloud
    assert own_scope(scene.pr) == f"k{cloud.key.id}"
    key_id = cloud.key.id
    for _ in range(2):
        made = rotate_key(key_id, overlap_s=60, now=clock.now())
        assert made is not None
        key_id = made[0].id
        assert own_scope(Sender(made[1])) == f"k{cloud.key.id}"


def test_31_a_key_does_not_write_what_its_users_laptop_reads(scene: Scene) -> None:
    put(scene.pr, "abc", POISON)
    assert read(scene.laptop, "abc") is None
    put(scene.laptop, "def", POISON)
    assert read(scene.pr, "def") is None


def test_31_people_can_be_made_to_read_only(scene: Scene) -> None:
    change = ProtectionChange(protected=True, people=People.READ)
    change_protection(scene.cloud.team.id, change, by=None)
    put(scene.main, "abc", CLEAN)
    for send in (scene.laptop, login_key(scene.cloud, scene.cloud.team.id)):
        reply = send("PUT", "/v8/artifacts/def", body=POISON)
        assert (reply.status, reply.code) == (403, "read_only")
        assert read(send, "abc") == CLEAN
    put(scene.pr, "def", POISON)


def test_31_a_users_own_cache_has_one_scope(scene: Scene, personal: Sender) -> None:
    put(personal, "abc", CLEAN)
    in_person = Sender(session(scene.cloud).token)
    assert read(in_person, "abc") == CLEAN
    assert scope_of(in_person, "abc") is None


def test_a_job_with_a_token_of_an_exchange_uses_the_scope_in_it(scene: Scene) -> None:
    """`scope` of the key is what the exchange of a CI's token stores."""

    def job(scope: str) -> Sender:
        new = NewKey(user_id=scene.cloud.user.id, team_id=scene.cloud.team.id)
        key, raw = prepare_key(new, now=clock.now())
        store_key(replace(key, scope=scope))
        return Sender(raw)

    scope = "c" + "a2" * 13
    first, second, trusted = job(scope), job(scope), job("shared")
    put(first, "abc", POISON)
    assert read(second, "abc") == POISON
    assert read(trusted, "abc") is None
    put(trusted, "abc", CLEAN)
    assert read(first, "abc") == read(scene.laptop, "abc") == CLEAN
