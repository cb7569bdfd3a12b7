"""The data of an owner (a team or a user), and what is left of it after a deletion."""

from larder import aws, clock
from larder.artifacts import publish
from larder.artifacts.models import Upload, parse_object_key
from larder.artifacts.repository.table import owner_of
from larder.artifacts.repository.totals import read_totals
from larder.settings import settings
from tests.catalogue import valid
from tests.proofs.stored import index_keys
from tests.requests import Sender


def fill(send: Sender) -> None:
    """Store data of every kind that builds create."""
    for hash in ("a", "b", "c"):
        assert valid("PUT /v8/artifacts/{hash}", hash=hash)(send).status == 202
    assert valid("POST /v8/artifacts/events", hash="a")(send).status == 200
    assert valid("OPTIONS /v8/artifacts/{hash}", hash="d")(send).status == 204


def stored_of(owner: str) -> dict[str, list[str]]:
    """The owner's items by table, except those that the sweep deletes anyway."""
    found: dict[str, list[str]] = {}
    for table, key, sort in (
        (settings().teams_table, "pk", "sk"),
        (settings().usage_table, "owner", "day"),
        (settings().artifacts_table, "owner", "hash"),
    ):
        items = [aws.deserialize(item) for item in aws.dynamodb().scan(TableName=table)["Items"]]
        of_owner = [item[sort] for item in items if owner_of(item[key]) == owner]
        found[table] = [one for one in of_owner if not one.startswith("#discarded#")]
    return found


def assert_nothing_is_in_index_or_bucket(owner: str) -> None:
    assert [key for one, key in index_keys() if one == owner] == []
    listed = aws.s3().list_objects_v2(Bucket=settings().artifacts_bucket, Prefix=f"artifacts/{owner}/")
    assert listed["KeyCount"] == 0


def upload_late(owner: str) -> None:
    """Publish an upload that was in progress when the owner was deleted."""
    key = f"artifacts/{owner}/late/{clock.to_ms(clock.now()):012x}{'0' * 16}"
    aws.s3().put_object(Bucket=settings().artifacts_bucket, Key=key, Body=b"late")
    upload = parse_object_key(key)
    assert isinstance(upload, Upload)
    publish.publish(upload, now=clock.now())
    assert read_totals(owner).artifacts == 1
