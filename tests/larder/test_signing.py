"""Signatures of cookies and tokens: made with the current secret, accepted with the previous one too."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from moto import mock_aws

from larder import aws, clock
from larder.signing import (
    ExpiredToken,
    InvalidToken,
    decode_token,
    encode_token,
    forget_secrets,
    is_signed,
    sign,
)
from tests.conftest import SetOption

NOW = clock.now()


def test_a_signature_is_of_its_text_alone(option: SetOption) -> None:
    option("signing_secret", "one")
    assert is_signed("token", sign("token"))
    assert not is_signed("tokem", sign("token"))
    assert not is_signed("token", "")
    assert not is_signed("token", "\ud800")


def test_the_previous_secrets_signatures_are_accepted_but_no_longer_made(option: SetOption) -> None:
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


def test_a_token_ends_with_its_lifetime(option: SetOption) -> None:
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


def test_a_forged_token_is_refused_whatever_its_header_says(
    environment: pytest.MonkeyPatch,
) -> None:
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
    with mock_aws():
        forget_secrets()
        manager = aws.secrets_manager()
        stored = json.dumps({"current": "one", "previous": ""})
        arn = manager.create_secret(Name="signing", SecretString=stored)["ARN"]
        option("signing_secret", arn)
        yield arn
        forget_secrets()


def test_a_stacks_secrets_come_from_secrets_manager(secret_arn: str) -> None:
    signature = sign("text")
    assert is_signed("text", signature)
    rotated = json.dumps({"current": "two", "previous": "one"})
    aws.secrets_manager().put_secret_value(SecretId=secret_arn, SecretString=rotated)
    assert sign("text") == signature  # an instance asks again after five minutes
    forget_secrets()
    assert sign("text") != signature
    assert is_signed("text", signature)
