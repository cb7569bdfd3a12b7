"""The key of the edge: in the signing secret of a stack, or in a file on one machine."""

import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from larder import aws, clock
from larder.settings import edge_key_file, settings
from larder.signing import EdgeKey, EdgeKeyUnreadable, put_edge_key, put_secrets, read_edge_key, read_secrets
from tests.faults import answering, reply

KEY = EdgeKey("a", "f" * 64)


def stored() -> dict[str, object]:
    fields: dict[str, object] = json.loads(aws.read_secret(settings().signing_secret)[0])
    return fields


@pytest.mark.usefixtures("aws_in_memory")
def test_the_key_is_stored_beside_the_secrets() -> None:
    before = read_secrets()
    assert read_edge_key() is None
    put_edge_key(KEY)
    assert read_edge_key() == KEY
    assert read_secrets() == before
    put_edge_key(None)
    assert read_edge_key() is None
    assert read_secrets() == before
    assert "edge" not in stored()


@pytest.mark.usefixtures("aws_in_memory")
def test_a_rotation_of_the_secrets_keeps_the_key() -> None:
    put_edge_key(KEY)
    put_secrets(current="two", previous="one")
    assert read_edge_key() == KEY
    rotated = read_secrets()
    assert (rotated.current, rotated.previous) == ("two", "one")
    # The time of a rotation is that at which AWS stored the secrets.
    assert "rotated_at" not in stored()


@pytest.mark.usefixtures("aws_in_memory")
def test_storing_the_key_is_no_rotation() -> None:
    """Otherwise, functions would sign with the previous secret again."""
    rotated_at = clock.now() - timedelta(days=3)
    before = {"SecretString": json.dumps({"current": "two", "previous": "one"})}
    with answering("secrets-manager", "GetSecretValue", reply({**before, "CreatedDate": rotated_at})):
        put_edge_key(KEY)
    for key in (KEY, None):
        assert read_secrets().put_at == rotated_at
        assert read_secrets().signing(now=clock.now()) == "two"
        put_edge_key(key)


@pytest.mark.parametrize("edge", [{"id": "a"}, {"key": "b"}, "text", 5, ["id"], {"id": None, "key": None}])
@pytest.mark.usefixtures("aws_in_memory")
def test_a_damaged_key_is_unreadable(edge: object) -> None:
    aws.write_secret(settings().signing_secret, json.dumps({**stored(), "edge": edge}))
    with pytest.raises(EdgeKeyUnreadable):
        read_edge_key()


@pytest.fixture
def file(tmp_path: Path, environment: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "switch.json"
    environment.setenv("LARDER_EDGE_KEY", str(path))
    edge_key_file.cache_clear()
    return path


def test_on_one_machine_the_key_is_in_a_file(file: Path) -> None:
    assert read_edge_key() is None
    put_edge_key(KEY)
    assert read_edge_key() == KEY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    put_edge_key(None)
    put_edge_key(None)
    assert read_edge_key() is None


def test_a_damaged_file_is_unreadable(file: Path) -> None:
    file.write_text("{")
    with pytest.raises(EdgeKeyUnreadable):
        read_edge_key()


def test_on_one_machine_without_an_edge_there_is_no_key(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("LARDER_SIGNING_SECRET", "one,two")
    settings.cache_clear()
    assert read_edge_key() is None


def test_the_key_is_not_in_printed_output() -> None:
    assert KEY.key not in repr(KEY)
