"""`larder rotate-signing-secret`. test_on_a_local_cloud.py runs it against a running local cloud."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.secretsmanager.models import secretsmanager_backends

from larder import aws, clock
from larder.instance import restart
from larder.signing import is_signed, sign

from .conftest import OUTPUTS, PARAMETERS, Larder, change_cloud_json
from .fake_aws import FakeAws

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def on_stack(aws_in_memory: None, stack: FakeAws) -> Larder:
    """`larder --stack larder`, with the tests' signing secret in Secrets Manager."""
    stack.holds_stack({**OUTPUTS, "SigningSecret": _arn()}, PARAMETERS)
    return Larder(("--stack", "larder"))


def _arn() -> str:
    return str(aws.secrets_manager().list_secrets()["SecretList"][0]["ARN"])


def stored() -> dict[str, Any]:
    text = aws.secrets_manager().get_secret_value(SecretId=_arn())["SecretString"]
    value: dict[str, Any] = json.loads(text)
    return value


def was_rotated(age: timedelta) -> None:
    """Set the age of the current secret in Secrets Manager."""
    (secret,) = secretsmanager_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].secrets.values()
    secret.versions[str(secret.default_version_id)]["createdate"] = int((clock.now() - age).timestamp())


# ---------------------------------------------------------------------------------------- a stack


def test_the_old_secret_becomes_the_previous_one(on_stack: Larder) -> None:
    before = stored()["current"]
    output = on_stack.json("rotate-signing-secret")
    after = stored()
    assert after["previous"] == before
    assert len(after["current"]) == 64
    assert after["current"] != before
    assert output["old_is_accepted"] is True
    rotated, known = (datetime.fromisoformat(output[name]) for name in ("rotated_at", "known_everywhere_at"))
    assert known - rotated == 6 * MINUTE


def test_it_prints_the_effect_but_no_secret(on_stack: Larder) -> None:
    shown = on_stack("rotate-signing-secret").stdout
    assert "Users stay signed in" in shown
    assert not [secret for secret in stored().values() if secret in shown]


def test_functions_accept_the_old_secrets_signatures_until_they_are_dropped(on_stack: Larder) -> None:
    signature = sign("text")
    on_stack("rotate-signing-secret")
    restart()
    assert is_signed("text", signature)
    on_stack("rotate-signing-secret", "--drop-old")
    restart()
    assert not is_signed("text", signature)


def test_a_second_rotation_is_refused_while_it_would_sign_users_out(on_stack: Larder) -> None:
    was_rotated(DAY)
    on_stack("rotate-signing-secret")  # the first rotation drops no secret
    before = stored()
    for age in (timedelta(), 7 * DAY + 5 * MINUTE):
        was_rotated(age)
        refusal = on_stack.refusal("rotate-signing-secret")
        until = clock.now() - age + 7 * DAY + 6 * MINUTE
        assert f"{until:%Y-%m-%d}" in refusal
        for expected in ("would sign out", "links", "--force"):
            assert expected in refusal
        assert stored() == before
    was_rotated(7 * DAY + 7 * MINUTE)
    on_stack("rotate-signing-secret")
    assert stored()["previous"] == before["current"]


@pytest.mark.parametrize(
    ("options", "days"),
    [
        ({"SessionExpiresInSeconds": "60", "VerificationTokenExpiresInSeconds": "60"}, 1),
        ({"SessionExpiresInSeconds": "2592000"}, 30),
        ({"SessionExpiresInSeconds": "60", "VerificationTokenExpiresInSeconds": "259200"}, 3),
    ],
    ids=["until the browser closes", "sessions", "links"],
)
def test_it_waits_for_the_longest_lifetime(
    on_stack: Larder, stack: FakeAws, options: dict[str, str], days: int
) -> None:
    on_stack("rotate-signing-secret")
    stack.holds_stack({**OUTPUTS, "SigningSecret": _arn()}, PARAMETERS | options)
    was_rotated(days * DAY)
    assert "--force" in on_stack.refusal("rotate-signing-secret")
    was_rotated(days * DAY + 7 * MINUTE)
    on_stack("rotate-signing-secret")


def test_force_rotates_anyway(on_stack: Larder) -> None:
    on_stack("rotate-signing-secret")
    before = stored()["current"]
    shown = on_stack("rotate-signing-secret", "--force").stdout
    assert "Users who have not visited since the last rotation are signed out" in shown
    assert stored()["previous"] == before


def test_a_leaked_secret_is_dropped_at_once(on_stack: Larder) -> None:
    on_stack("rotate-signing-secret")
    before = stored()
    shown = on_stack("rotate-signing-secret", "--drop-old").stdout
    assert "All users must sign in again" in shown
    after = stored()
    assert after["previous"] == ""
    assert after["current"] not in before.values()
    on_stack("rotate-signing-secret")
    assert stored()["previous"] == after["current"]


def test_a_missing_permission_is_reported(on_stack: Larder, own_environment: pytest.MonkeyPatch) -> None:
    with FakeAws.running() as denying:
        denying.refuses_in_json(400, "AccessDeniedException", "not authorized")
        own_environment.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", denying.url)
        assert "docs/operator-cli.md" in on_stack.refusal("rotate-signing-secret")


# -------------------------------------------------------------------------------- one machine


@pytest.fixture
def local_json(data_folder: Path) -> Path:
    """The local.json of a local cloud that was started with this secret."""
    path = data_folder / "local.json"
    path.write_text(json.dumps({"ports": {"s3": 1}, "signing_secret": "one"}))
    change_cloud_json(data_folder, LARDER_SIGNING_SECRET="one")
    return path


def start_again(local_json: Path) -> None:
    secret = json.loads(local_json.read_text())["signing_secret"]
    change_cloud_json(local_json.parent, LARDER_SIGNING_SECRET=secret)


def test_a_local_cloud_uses_the_new_secret_from_its_next_start(larder: Larder, local_json: Path) -> None:
    shown = larder("rotate-signing-secret").stdout
    assert "from its next start" in shown
    local = json.loads(local_json.read_text())
    current, previous = local["signing_secret"].split(",")
    assert (len(current), previous) == (64, "one")
    assert current not in shown
    assert local["ports"] == {"s3": 1}
    assert local_json.stat().st_mode & 0o777 == 0o600


def test_a_local_cloud_refuses_a_second_rotation_before_a_restart_or_within_a_week(
    larder: Larder, local_json: Path
) -> None:
    assert larder.json("rotate-signing-secret")["known_everywhere_at"] is None
    assert "Start it again first" in larder.refusal("rotate-signing-secret")
    start_again(local_json)
    assert "would sign out" in larder.refusal("rotate-signing-secret")
    local = json.loads(local_json.read_text())
    local["signing_secret_rotated_at"] = clock.to_iso(clock.now() - 8 * DAY)
    local_json.write_text(json.dumps(local))
    larder("rotate-signing-secret")
    assert json.loads(local_json.read_text())["signing_secret"] != local["signing_secret"]


def test_drop_old_drops_a_local_clouds_secret(larder: Larder, local_json: Path) -> None:
    larder("rotate-signing-secret")
    larder("rotate-signing-secret", "--drop-old")
    secret = json.loads(local_json.read_text())["signing_secret"]
    assert len(secret) == 64


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"signing_secret": "a", '])
def test_a_damaged_local_json_is_reported(larder: Larder, data_folder: Path, text: str | None) -> None:
    if text is not None:
        (data_folder / "local.json").write_text(text)
    refusal = larder.refusal("rotate-signing-secret")
    assert "local.json" in refusal
