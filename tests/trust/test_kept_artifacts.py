"""A protected team keeps the first artifact in its shared scope (attacks 24 to 26), and can ask for signatures."""

from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest

from larder import clock
from larder.api_keys.models import REPLACE, TRUST
from larder.api_keys.properties import NewKey
from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import read_entry
from larder.artifacts.sweep import sweep
from larder.audit.service import read_entries
from larder.teams.models import Overwrites, Unsigned
from larder.teams.protection import ProtectionChange, change_protection
from tests.direct_uploads import announce, object_keys, offer, put_object
from tests.requests import Cloud, Reply, Sender
from tests.trust.scene import (
    CLEAN,
    LARGE_CLEAN,
    LARGE_POISON,
    POISON,
    Scene,
    get,
    new_key,
    put,
    read,
    seconds_later,
    trusted_key,
)

TAGGED = {"x-artifact-tag": "c2lnbmF0dXJl"}


def replacing_key(cloud: Cloud) -> Sender:
    permissions = {"artifacts": ("read", "write", TRUST, REPLACE)}
    return new_key(cloud, NewKey(user_id=cloud.user.id, permissions=permissions))


def inspect(send: Sender, hash: str) -> Any:
    return send("GET", f"/v1/artifacts/{hash}?scope=shared").json


def kept_differing(capsys: pytest.CaptureFixture[str]) -> int:
    return capsys.readouterr().out.count('"KeptDiffering": 1')


@pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])
def test_24_the_first_artifact_stays(
    scene: Scene, manage: Sender, preflight: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    other_job = trusted_key(scene.cloud)
    for number in range(20):
        put(scene.main, f"abc{number}", CLEAN)
        put(other_job, f"abc{number}", POISON, preflight=preflight)
        assert read(scene.main, f"abc{number}") == CLEAN
    assert kept_differing(capsys) == 20
    found = inspect(manage, "abc0")
    assert found["sha256"] == sha256(CLEAN).hexdigest()
    assert found["contested"]["sha256"] == (None if preflight else sha256(POISON).hexdigest())
    assert found["contested"]["writer"]["id"] != found["writer"]["id"]
    if not preflight:
        assert len(object_keys()) == 20


def test_24_the_same_bytes_are_no_difference(scene: Scene, manage: Sender, capsys: pytest.CaptureFixture[str]) -> None:
    put(scene.main, "abc", CLEAN)
    put(trusted_key(scene.cloud), "abc", CLEAN)
    put(trusted_key(scene.cloud), "abc", CLEAN, preflight=True)
    assert kept_differing(capsys) == 0
    assert inspect(manage, "abc")["contested"] is None


def test_24_an_artifact_is_marked_once_a_day_and_counted_each_time(
    scene: Scene, manage: Sender, capsys: pytest.CaptureFixture[str]
) -> None:
    put(scene.main, "abc", CLEAN)
    put(scene.main, "abc", POISON)
    first = inspect(manage, "abc")["contested"]
    put(scene.main, "abc", POISON * 2)
    assert inspect(manage, "abc")["contested"] == first
    with seconds_later(86_500):
        put(scene.main, "abc", POISON * 2)
        assert inspect(manage, "abc")["contested"]["at"] > first["at"]
    assert kept_differing(capsys) == 3


def test_24_a_kept_large_artifact_loses_no_bytes_and_the_other_object_is_deleted(scene: Scene) -> None:
    put(scene.main, "abc", LARGE_CLEAN, preflight=True)
    put(scene.main, "abc", LARGE_POISON, preflight=True)
    assert read(scene.main, "abc") == LARGE_CLEAN
    kept = read_entry(scene.cloud.team.id, ArtifactHash("abc"))
    assert (kept.pending, kept.artifact and kept.artifact.offered) == (None, None)
    assert len(object_keys()) == 2
    sweep(now=clock.now() + timedelta(days=2))
    assert len(object_keys()) == 1


def test_24_a_manager_who_looks_replaces_nothing(scene: Scene, manage: Sender) -> None:
    put(scene.main, "abc", CLEAN)
    put_object(offer(scene.main, "abc"), POISON)
    assert inspect(manage, "abc")["size"] == len(CLEAN)
    put_object(offer(scene.main, "abc"), POISON)
    reply = manage("DELETE", "/v1/artifacts/abc")
    assert reply.json["deleted"] is True
    assert read(scene.main, "abc") is None


def test_24_a_manager_sees_what_is_hidden(unprotected: Scene, manage: Sender) -> None:
    put(unprotected.pr, "abc", POISON)
    change_protection(unprotected.cloud.team.id, ProtectionChange(protected=True), by=None)
    with seconds_later():
        assert read(unprotected.main, "abc") is None
        assert inspect(manage, "abc")["size"] == len(POISON)


def test_24_what_expired_or_was_stored_before_is_replaced(unprotected: Scene) -> None:
    scene = unprotected
    put(scene.pr, "abc", POISON)
    change_protection(scene.cloud.team.id, ProtectionChange(protected=True), by=None)
    with seconds_later():
        put(scene.main, "abc", CLEAN)
        assert read(scene.main, "abc") == CLEAN
    with seconds_later(31 * 86_400):
        put(scene.main, "abc", POISON)
        assert read(scene.main, "abc") == POISON


def test_24_an_own_scope_and_a_team_that_replaces_have_the_last_one(scene: Scene) -> None:
    put(scene.pr, "abc", CLEAN)
    put(scene.pr, "abc", POISON)
    assert read(scene.pr, "abc") == POISON
    change = ProtectionChange(protected=True, overwrites=Overwrites.REPLACE)
    change_protection(scene.cloud.team.id, change, by=None)
    put(scene.main, "abc", POISON)
    put(scene.main, "abc", CLEAN)
    assert read(scene.main, "abc") == CLEAN


MANIFESTS = ["ccache-abcdef", "moon-ac-abcdef", "bazel-ac-abcdef"]


@pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])
@pytest.mark.parametrize("hash", MANIFESTS)
def test_24_a_trusted_writer_replaces_manifests(
    scene: Scene, hash: str, preflight: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    put(scene.main, hash, CLEAN)
    put(trusted_key(scene.cloud), hash, CLEAN * 2, preflight=preflight)
    assert read(scene.main, hash) == read(scene.laptop, hash) == CLEAN * 2
    assert kept_differing(capsys) == 0
    entries = read_entries(scene.cloud.team.id, limit=100, now=clock.now()).entries
    assert [entry.subject for entry in entries if entry.action == "artifact_replaced"] == [hash]


@pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])
@pytest.mark.parametrize("hash", MANIFESTS)
def test_24_others_never_replace_manifests(scene: Scene, hash: str, preflight: bool) -> None:
    put(scene.pr, hash, POISON, preflight=preflight)
    assert read(scene.main, hash) is None
    put(scene.main, hash, CLEAN)
    put(scene.pr, hash, POISON, preflight=preflight)
    assert read(scene.main, hash) == read(scene.laptop, hash) == CLEAN


@pytest.mark.parametrize("hash", ["moon-cas-abcdef", "bazel-cas-abcdef", "sccache-abc", "nx-1"])
def test_24_the_first_of_all_other_tools_stays(scene: Scene, hash: str) -> None:
    put(scene.main, hash, CLEAN)
    put(trusted_key(scene.cloud), hash, POISON)
    assert read(scene.main, hash) == CLEAN


@pytest.mark.parametrize("preflight", [False, True], ids=["PUT", "preflight"])
def test_25_a_replacement_needs_the_permission_and_is_audited(scene: Scene, preflight: bool) -> None:
    put(scene.main, "abc", POISON)
    repair = replacing_key(scene.cloud)
    put(repair, "abc", CLEAN, preflight=preflight)
    assert read(scene.main, "abc") == CLEAN
    put(repair, "abc", CLEAN * 2, preflight=preflight)
    assert read(scene.main, "abc") == CLEAN * 2
    entries = read_entries(scene.cloud.team.id, limit=100, now=clock.now()).entries
    replaced = [entry for entry in entries if entry.action == "artifact_replaced"]
    assert [(entry.subject, entry.size_bytes) for entry in replaced] == [("abc", len(CLEAN)), ("abc", len(POISON))]


def test_25_the_permission_is_that_of_the_uploader_not_of_the_reader(scene: Scene) -> None:
    put(scene.main, "abc", CLEAN)
    put_object(offer(scene.main, "abc"), POISON * 2)
    assert read(replacing_key(scene.cloud), "abc") == CLEAN
    key = offer(scene.main, "def")
    put(scene.main, "def", CLEAN)
    offer(replacing_key(scene.cloud), "def")
    put_object(key, POISON)
    announce(key)
    assert read(scene.main, "def") == CLEAN


def test_25_the_permission_without_trust_replaces_nothing_that_others_read(scene: Scene) -> None:
    put(scene.main, "abc", CLEAN)
    permissions = {"artifacts": ("read", "write", REPLACE)}
    send = new_key(scene.cloud, NewKey(user_id=scene.cloud.user.id, permissions=permissions))
    put(send, "abc", POISON)
    assert read(scene.main, "abc") == read(send, "abc") == CLEAN


@pytest.mark.parametrize("clean", [CLEAN, LARGE_CLEAN], ids=["small", "large"])
def test_26_other_bytes_sent_to_the_url_of_a_published_upload_change_nothing(scene: Scene, clean: bytes) -> None:
    """The one who has the URL, for example from a log, needs no credential."""
    key = offer(scene.main, "abc")
    put_object(key, clean)
    announce(key)
    put_object(key, b"x" * len(clean))
    assert read(scene.main, "abc") == read(scene.laptop, "abc") == clean
    announce(key)
    assert read(scene.main, "abc") == clean
    assert object_keys() == [key]


# Signatures --------------------------------------------------------------------------------------


@pytest.fixture
def signed(cloud: Cloud) -> Cloud:
    change = ProtectionChange(protected=False, unsigned=Unsigned.REFUSE)
    change_protection(cloud.team.id, change, by=None)
    return cloud


def put_tagged(send: Sender, hash: str, body: bytes) -> Reply:
    return send("PUT", f"/v8/artifacts/{hash}", body=body, headers=TAGGED)


def test_an_upload_without_a_signature_is_refused(signed: Cloud) -> None:
    reply = signed.send("PUT", "/v8/artifacts/abc", body=CLEAN)
    assert (reply.status, reply.code) == (403, "signature_required")
    assert put_tagged(signed.send, "abc", CLEAN).status == 202
    assert read(signed.send, "abc") == CLEAN
    assert "x-artifact-scope" not in get(signed.send, "abc").headers


def test_a_preflight_offers_no_direct_upload(signed: Cloud) -> None:
    headers = {"access-control-request-method": "PUT", "user-agent": "turbo 2.11.11"}
    reply = signed.send("OPTIONS", "/v8/artifacts/abc", headers=headers)
    assert (reply.status, "location" in reply.headers) == (204, False)


def test_artifacts_without_a_signature_are_not_served(cloud: Cloud) -> None:
    put(cloud.send, "abc", POISON)
    offered = offer(cloud.send, "def")
    change = ProtectionChange(protected=False, unsigned=Unsigned.REFUSE)
    change_protection(cloud.team.id, change, by=None)
    put_object(offered, POISON)
    announce(offered)
    assert read(cloud.send, "abc") is read(cloud.send, "def") is None
    for hash in ("abc", "def"):
        assert put_tagged(cloud.send, hash, CLEAN).status == 202
        assert read(cloud.send, hash) == CLEAN


def test_a_protected_team_can_ask_for_signatures(scene: Scene) -> None:
    put(scene.main, "abc", POISON)
    change = ProtectionChange(protected=True, unsigned=Unsigned.REFUSE)
    change_protection(scene.cloud.team.id, change, by=None)
    assert read(scene.main, "abc") is None
    assert put_tagged(scene.pr, "abc", POISON).status == 202
    assert put_tagged(scene.main, "abc", CLEAN).status == 202
    assert read(scene.pr, "abc") == read(scene.main, "abc") == CLEAN
