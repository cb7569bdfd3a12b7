"""Hashes of secrets and random values."""

from datetime import UTC, datetime, timedelta

from larder.hashing import hash_key, is_random_id, random_id, random_letters, time_ordered_id


def test_a_key_is_stored_as_unpadded_base64url_of_its_sha256() -> None:
    assert hash_key("abc") == "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"


def test_random_values_have_their_length_and_alphabet() -> None:
    assert len(random_letters(64)) == 64
    assert random_letters(64).isalpha()
    assert len(random_id(24)) == 24
    assert random_id(24).isalnum()
    assert random_id() != random_id()


def test_an_id_is_distinguished_from_other_text() -> None:
    assert is_random_id(random_id())
    for text in ("", "nokey", random_id(24), random_letters(64), "\u00e4" * 32, "-" * 32):
        assert not is_random_id(text)


def test_upload_ids_sort_by_time() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    made = [time_ordered_id(now + timedelta(milliseconds=step)) for step in range(5)]
    assert made == sorted(made)
    assert {len(one) for one in made} == {28}
