"""Signatures of cookies and tokens: created with the current secret, also accepted with the previous one."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from larder import aws, clock
from larder.instance import restart
from larder.signing import (
    KNOWN_AFTER,
    ExpiredToken,
    InvalidToken,
    decode_token,
    encode_token,
    is_signed,
    is_signed_anew,
    put_secrets,
    read_secrets,
    seal,
    sign,
    unseal,
)
from tests.conftest import SetOption
from tests.faults import answering, reply
from tests.moto_stores import answering_boto3

NOW = clock.now()


def test_a_signature_is_valid_only_for_its_text(option: SetOption) -> None:
    option("signing_secret", "one")
    assert is_signed("token", sign("token"))
    assert not is_signed("tokem", sign("token"))
    assert not is_signed("token", "")
    assert not is_signed("token", "\ud800")


def test_signatures_of_the_previous_secret_are_accepted_but_not_created(option: SetOption) -> None:
    option("signing_secret", "one")
    signature, token = sign("text"), encode_token({"a": 1}, now=NOW, lifetime_s=60)
    option("signing_secret", "two,one")
    assert is_signed("text", signature)
    assert decode_token(token, now=NOW)["a"] == 1
    assert sign("text") != signature
    option("signing_secret", "three,two")
    assert not is_signed("text", signature)
    with pytest.raises(InvalidToken):
        decode_token(token, now=NOW)


def test_a_sealed_text_is_read_only_with_its_purpose_and_an_accepted_secret(option: SetOption) -> None:
    option("signing_secret", "one")
    sealed = seal("state \ud800", purpose="a")
    assert unseal(sealed, purpose="a") == "state \ud800"
    with pytest.raises(InvalidToken):
        unseal(sealed, purpose="b")
    option("signing_secret", "two,one")
    assert unseal(sealed, purpose="a") == "state \ud800"
    option("signing_secret", "three,two")
    with pytest.raises(InvalidToken):
        unseal(sealed, purpose="a")


def test_a_sealed_text_that_was_changed_anywhere_is_refused(option: SetOption) -> None:
    """Attack 28: a tampered state cookie, and texts that are not base64 at all."""
    option("signing_secret", "one")
    sealed = seal("state", purpose="a")
    data = base64.b64decode(sealed)
    changed = [base64.b64encode(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :]).decode() for i in range(len(data))]
    broken = ["", "=", "a", "a===", "ä", "\ud800", "\x00", sealed[:-1], sealed + "\n", f"*{sealed}"]
    for text in (*changed, *broken, base64.b64encode(data[:40]).decode()):
        with pytest.raises(InvalidToken):
            unseal(text, purpose="a")


def test_a_token_expires_with_its_lifetime(option: SetOption) -> None:
    token = encode_token({"email": "ada@example.com"}, now=NOW, lifetime_s=60)
    claims = decode_token(token, now=NOW + timedelta(seconds=59))
    assert claims["email"] == "ada@example.com"
    assert claims["exp"] - claims["iat"] == 60
    with pytest.raises(ExpiredToken):
        decode_token(token, now=NOW + timedelta(seconds=61))


def _altered(token: str, part: int, **changes: object) -> str:
    parts = token.split(".")
    padded = parts[part] + "=" * (-len(parts[part]) % 4)
    value = {**json.loads(base64.urlsafe_b64decode(padded)), **changes}
    parts[part] = base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return ".".join(parts)


def test_a_forged_token_is_refused_whatever_its_header_says(environment: pytest.MonkeyPatch) -> None:
    token = encode_token({"email": "ada@example.com"}, now=NOW, lifetime_s=60)
    header, payload, signature = token.split(".")
    forged = [
        _altered(token, 1, email="eve@example.com"),
        _altered(token, 0, alg="none"),
        _altered(token, 0, kid="../../dev/null"),
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f".{payload}.{signature}",
        payload,
        "",
        "..",
        "\ud800.\ud800.\ud800",
        token + "A",
    ]
    for text in forged:
        with pytest.raises(InvalidToken):
            decode_token(text, now=NOW)


@pytest.fixture
def secret_arn(environment: pytest.MonkeyPatch, option: SetOption) -> Iterator[str]:
    with answering_boto3():
        restart()
        manager = aws.secrets_manager()
        stored = json.dumps({"current": "one", "previous": ""})
        arn = manager.create_secret(Name="signing", SecretString=stored)["ARN"]
        option("signing_secret", arn)
        yield arn
        restart()


@contextmanager
def rotated_ago(age: timedelta) -> Iterator[list[str]]:
    """Make Secrets Manager report that `two` replaced `one` this long ago. Yields the calls."""
    restart()
    stored = json.dumps({"current": "two", "previous": "one"})
    answer = reply({"SecretString": stored, "CreatedDate": clock.now() - age})
    with answering("secrets-manager", "GetSecretValue", answer) as calls:
        yield calls


def signed_by(secret: str, text: str, option: SetOption, arn: str) -> str:
    """The signature of the text in a deployment with only this secret."""
    option("signing_secret", secret)
    signature = sign(text)
    option("signing_secret", arn)
    return signature


def test_the_secret_of_a_stack_is_read_from_secrets_manager(secret_arn: str, option: SetOption) -> None:
    assert sign("text") == signed_by("one", "text", option, secret_arn)
    assert read_secrets().put_at is not None


def test_after_a_rotation_the_old_secret_signs_until_every_instance_has_the_new_one(
    secret_arn: str, option: SetOption
) -> None:
    old, new = (signed_by(secret, "text", option, secret_arn) for secret in ("one", "two"))
    for age, signing in (
        (timedelta(), old),
        (KNOWN_AFTER - timedelta(seconds=5), old),
        (KNOWN_AFTER + timedelta(seconds=5), new),
    ):
        with rotated_ago(age):
            assert sign("text") == signing
            assert is_signed("text", old)
            assert is_signed("text", new)
            assert [is_signed_anew("text", one) for one in (old, new)] == [signing == old, signing == new]


def test_a_signature_right_after_a_rotation_is_valid_on_an_instance_with_the_old_secret(secret_arn: str) -> None:
    put_secrets(current="two", previous="one")
    signature, token = sign("text"), encode_token({"a": 1}, now=NOW, lifetime_s=60)
    put_secrets(current="one", previous=None)
    restart()  # as an instance that read the secret before the rotation
    assert is_signed("text", signature)
    assert decode_token(token, now=NOW)["a"] == 1


def test_a_first_secret_signs_immediately(secret_arn: str, option: SetOption) -> None:
    old = sign("text")
    put_secrets(current="two", previous=None)
    restart()
    assert sign("text") == signed_by("two", "text", option, secret_arn)
    assert not is_signed("text", old)


def test_the_secret_is_read_once_for_any_number_of_forged_signatures(secret_arn: str) -> None:
    with rotated_ago(timedelta(days=1)) as calls:
        sign("text")
        for number in range(200):
            assert not is_signed("text", f"forged {number}")
            with pytest.raises(InvalidToken):
                decode_token(f"a.b.{number}", now=NOW)
    assert len(calls) == 1


def test_the_secrets_are_not_in_printed_output(secret_arn: str) -> None:
    put_secrets(current="the-current", previous="the-previous")
    assert "the-" not in repr(read_secrets())
