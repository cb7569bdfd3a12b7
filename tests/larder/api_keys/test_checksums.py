"""The checksum of keys, and what a made-up key costs."""

from dataclasses import replace
from types import ModuleType

import pytest

from larder.api_keys import repository
from larder.api_keys.keys import prepare_key
from larder.api_keys.models import ApiKey
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import Checksum, checksum_of, verify_presented, with_checksum
from larder.clock import now
from larder.hashing import hash_key, random_letters
from tests.conftest import SetOption
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

STATUS = "/v8/artifacts/status"
VERIFY = "/api/auth/api-key/verify"


def old_key(cloud: Cloud) -> tuple[ApiKey, str]:
    """A key as version 0.1.0 created it: letters only."""
    raw = random_letters(64)
    key, _ = prepare_key(NewKey(user_id=cloud.user.id, team_id=cloud.team.id), now=now())
    key = replace(key, key_hash=hash_key(raw))
    assert repository.add(key)
    return key, raw


def test_a_checksum_begins_with_a_digit_that_keys_of_0_1_0_do_not_have() -> None:
    assert with_checksum("a") == "a3vyFNG"[:1] + with_checksum("a")[1:]
    for _ in range(1000):
        assert with_checksum(random_letters(58))[58] in "01234"


@pytest.mark.parametrize("length", ["64", "80"])
def test_one_wrong_character_is_found(option: SetOption, length: str) -> None:
    option("default_key_length", length)
    raw = with_checksum("ci_" + random_letters(int(length) - 6))
    assert checksum_of(raw) is Checksum.RIGHT
    for place in (0, 3, 40, len(raw) - 7, len(raw) - 1):
        other = "b" if raw[place] != "b" else "c"
        assert checksum_of(raw[:place] + other + raw[place + 1 :]) is Checksum.WRONG


def test_a_key_from_the_deployments_own_function_can_have_any_form(option: SetOption, integrator: ModuleType) -> None:
    raw = random_letters(58) + "000000"
    assert checksum_of(raw) is Checksum.WRONG
    integrator.generate_key = lambda length, prefix: raw  # type: ignore[attr-defined]
    option("extensions", "integrator")
    assert checksum_of(raw) is Checksum.MISSING


def test_a_made_up_key_costs_no_write(cloud: Cloud) -> None:
    for raw, expected in ((random_letters(58) + "000000", []), (random_letters(64), [["GetItem"]])):
        with counted() as calls:
            assert Sender(raw)("GET", STATUS).status == 401
        assert calls.steps == expected
        with counted() as calls:
            reply = Sender(None)("POST", VERIFY, json_body={"key": raw})
        assert reply.json["error"]["code"] == "INVALID_API_KEY"
        assert [step for step in calls.steps if "Query" not in step][: len(expected)] == expected


def test_a_key_of_0_1_0_still_works(cloud: Cloud) -> None:
    key, raw = old_key(cloud)
    assert verify_presented(key.key_hash, {}, now=now()).valid
    assert Sender(raw)("GET", STATUS).status == 200
    repository.delete(key.key_hash)
    assert Sender(raw)("GET", STATUS).status == 401
