"""DELETE /v1/artifacts/{hash}"""

from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock
from larder.artifacts import sweep
from larder.artifacts.management import delete_artifact
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository import index
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.audit.models import Action, Entry
from larder.audit.service import read_entries
from larder.teams.models import CachingStatus
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, put_object, upload
from tests.faults import answering, error, just_before
from tests.requests import Cloud, Sender

HASH = ArtifactHash("abc")


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """The team has an artifact `abc` of 8 bytes."""
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    return cloud


def entries(owner: str) -> list[Entry]:
    found = read_entries(owner, limit=100, now=clock.now()).entries
    return [entry for entry in found if entry.action is Action.ARTIFACT_DELETED]


def store(cloud: Cloud, body: bytes) -> None:
    cloud.store(HASH, body)


def delete(cloud: Cloud) -> Entry | None:
    entry = read_entry(cloud.team.id, HASH)
    return delete_artifact(cloud.team.id, HASH, entry, by=cloud.writer, now=clock.now())


def test_the_artifact_is_deleted_subtracted_and_its_object_swept(stored: Cloud, manage: Sender) -> None:
    stored.send("PUT", "/v8/artifacts/other", body=b"stays")
    reply = manage("DELETE", "/v1/artifacts/abc")
    assert (reply.status, reply.json) == (200, {"hash": "abc", "deleted": True})
    assert stored.send("GET", "/v8/artifacts/abc").status == 404
    assert read_totals(stored.team.id) == Totals(size_bytes=5, artifacts=1)
    sweep.sweep(now=clock.now() + timedelta(hours=1))
    assert len(object_keys()) == 1


@pytest.mark.parametrize("hours", [1, 23])
def test_a_second_upload_to_its_url_does_not_restore_it(hours: int, cloud: Cloud, manage: Sender) -> None:
    """S3 checks the expiry of a URL when an upload starts. The upload can end much later."""
    key = upload(cloud.send, "abc", b"poison")
    announce(key)
    manage("DELETE", "/v1/artifacts/abc")
    sweep.sweep(now=clock.now() + timedelta(hours=hours))
    assert object_keys() == []
    put_object(key, b"poison")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    sweep.sweep(now=clock.now() + timedelta(hours=26))
    assert object_keys() == []


def test_deleting_an_absent_artifact_succeeds_and_reports_it(stored: Cloud, manage: Sender) -> None:
    manage("DELETE", "/v1/artifacts/abc")
    for hash in ("abc", "never-stored"):
        reply = manage("DELETE", f"/v1/artifacts/{hash}")
        assert (reply.status, reply.json) == (200, {"hash": hash, "deleted": False})
    assert read_totals(stored.team.id) == Totals()
    assert len(entries(stored.team.id)) == 1


def test_the_artifact_can_be_stored_again(stored: Cloud, manage: Sender) -> None:
    manage("DELETE", "/v1/artifacts/abc")
    stored.send("PUT", "/v8/artifacts/abc", body=b"again")
    assert stored.send("GET", "/v8/artifacts/abc").body == b"again"


def test_the_audit_log_records_user_artifact_and_time(
    stored: Cloud, manage: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    before = clock.now()
    manage("DELETE", "/v1/artifacts/abc")
    (entry,) = entries(stored.team.id)
    assert (entry.action, entry.subject) == (Action.ARTIFACT_DELETED, "abc")
    assert (entry.artifacts, entry.size_bytes) == (1, 8)
    assert before <= entry.at <= clock.now()
    assert entry.actor is not None
    assert entry.actor.user_id == stored.user.id
    (line,) = (record.__dict__ for record in caplog.records if record.message == "audit")
    assert line["credential_id"] == entry.actor.credential_id
    expected = ("artifact_deleted", "abc", stored.user.id, stored.team.id)
    assert (line["action"], line["subject"], line["user_id"], line["owner"]) == expected


def test_the_audit_entry_expires(stored: Cloud, manage: Sender, option: SetOption) -> None:
    option("audit_retention_days", 7)
    manage("DELETE", "/v1/artifacts/abc")
    in_a_week = clock.now() + timedelta(days=7)
    assert entries(stored.team.id)
    left = read_entries(stored.team.id, limit=100, now=in_a_week).entries
    assert Action.ARTIFACT_DELETED not in {entry.action for entry in left}


def test_a_deletion_that_did_not_happen_is_not_audited(stored: Cloud, manage: Sender) -> None:
    with answering("dynamodb", "TransactWriteItems", error("InternalServerError", 500)):
        assert manage("DELETE", "/v1/artifacts/abc").status == 503
    assert entries(stored.team.id) == []
    assert stored.send("GET", "/v8/artifacts/abc").status == 200


@pytest.mark.parametrize("status", [CachingStatus.PAUSED, CachingStatus.DISABLED])
def test_an_artifact_can_be_deleted_while_caching_is_disabled(
    stored: Cloud, manage: Sender, status: CachingStatus
) -> None:
    change_state(stored.team.id, caching=status)
    assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is True


def test_an_upload_that_arrived_but_is_not_published_is_deleted(cloud: Cloud, manage: Sender) -> None:
    key = upload(cloud.send, "abc", b"straight to S3")
    assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is True
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    assert read_totals(cloud.team.id) == Totals()


def test_an_upload_offered_before_the_deletion_stays_invisible(cloud: Cloud, manage: Sender) -> None:
    key = offer(cloud.send, "abc")
    assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is False
    put_object(key, b"too late")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    assert read_entry(cloud.team.id, HASH).pending is None


def test_an_artifact_and_its_pending_replacement_are_both_deleted(stored: Cloud, manage: Sender) -> None:
    key = offer(stored.send, "abc")
    assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is True
    put_object(key, b"too late")
    announce(key)
    assert stored.send("GET", "/v8/artifacts/abc").status == 404
    assert read_totals(stored.team.id) == Totals()


def test_an_upload_that_replaces_it_during_the_deletion_is_deleted(stored: Cloud) -> None:
    with just_before("dynamodb", "TransactWriteItems", lambda: store(stored, b"newer")):
        assert delete(stored) is not None
    assert stored.send("GET", "/v8/artifacts/abc").status == 404
    assert read_totals(stored.team.id) == Totals()


def test_only_one_of_two_concurrent_deletions_reports_it(stored: Cloud, manage: Sender) -> None:
    with just_before("dynamodb", "TransactWriteItems", lambda: delete(stored)):
        assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is False
    assert read_totals(stored.team.id) == Totals()
    assert len(entries(stored.team.id)) == 1


def test_a_transaction_conflict_is_retried(stored: Cloud, manage: Sender) -> None:
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}, {"Code": "None"}]
    conflict = error("TransactionCanceledException", CancellationReasons=reasons)
    with answering("dynamodb", "TransactWriteItems", conflict, times=3):
        assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is True
    with answering("dynamodb", "TransactWriteItems", conflict):
        store(stored, b"again")
        assert manage("DELETE", "/v1/artifacts/abc").status == 503


def test_an_expired_artifact_that_is_not_swept_yet_is_deleted(stored: Cloud, manage: Sender, option: SetOption) -> None:
    artifact = read_entry(stored.team.id, HASH).artifact
    assert artifact is not None
    index.delete(artifact, now=clock.now())
    older = replace(artifact, created_at=clock.now() - timedelta(days=31))
    index.publish(older, replaces=None, now=clock.now())
    assert manage("DELETE", "/v1/artifacts/abc").json["deleted"] is True
    assert read_totals(stored.team.id) == Totals()
