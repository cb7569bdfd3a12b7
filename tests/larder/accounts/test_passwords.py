"""Password hashes: Better Auth's are read and made, others are read and replaced."""

from types import ModuleType

import pytest

from larder.accounts.passwords import check_length, hash_password, needs_rehash, verify_password
from larder.errors import PasswordTooLong, PasswordTooShort
from larder.settings import SettingsError
from tests.conftest import SetOption


def test_a_hash_of_the_reference_is_read(environment: pytest.MonkeyPatch) -> None:
    """Made by Node's scrypt with N=16384, r=16, p=1, dkLen=64 over the NFKC form, the salt as text."""
    stored = (
        "00112233445566778899aabbccddeeff:"
        "9b0ae30206349419b5ad7d3bbb4904626db1dd87d06cb6cef95e3a9485b1ee9d"
        "4fc520fa552293b5dc3e1a42c11d1bcb9da4e6aafec7245e7ffe5f028071eacc"
    )
    assert verify_password("p\u00e4ssw\u00f6rd-\ufb01", stored)
    assert verify_password("pa\u0308ssw\u00f6rd-fi", stored)
    assert not verify_password("passw\u00f6rd-fi", stored)


def test_a_password_verifies_against_its_own_hash_only(environment: pytest.MonkeyPatch) -> None:
    stored = hash_password("correct horse")
    salt, _, key = stored.partition(":")
    assert (len(salt), len(key)) == (32, 128)
    assert verify_password("correct horse", stored)
    assert not verify_password("correct horsf", stored)
    assert not needs_rehash(stored)


def test_nobodys_password_is_never_right(environment: pytest.MonkeyPatch) -> None:
    assert not verify_password("", None)
    assert not verify_password("correct horse", None)


@pytest.mark.parametrize(
    ("typed", "stored"),
    [("\ufb01x password", "fix password"), ("caf\u00e9 au lait", "cafe\u0301 au lait")],
)
def test_a_password_is_the_same_in_every_unicode_form(
    environment: pytest.MonkeyPatch, typed: str, stored: str
) -> None:
    assert verify_password(typed, hash_password(stored))


@pytest.mark.parametrize("password", ["nul \x00 inside", "\U0001f600" * 4, "\ud800 lone surrogate"])
def test_every_text_can_be_a_password(environment: pytest.MonkeyPatch, password: str) -> None:
    check_length(password)
    stored = hash_password(password)
    assert verify_password(password, stored)
    assert not verify_password(password[:-1], stored)


@pytest.mark.parametrize(
    ("password", "error"),
    [
        ("x" * 7, PasswordTooShort),
        ("x" * 129, PasswordTooLong),
        ("x" * 7 + "\x00", PasswordTooShort),  # scrypt does not see NULs at the end
        ("\U0001f600" * 3, PasswordTooShort),  # 6 UTF-16 units
        ("\U0001f600" * 65, PasswordTooLong),  # 130 UTF-16 units
    ],
)
def test_length_is_counted_as_javascript_does(
    environment: pytest.MonkeyPatch, password: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        check_length(password)


@pytest.mark.parametrize("password", ["x" * 8, "x" * 128, "\U0001f600" * 4, "\U0001f600" * 64])
def test_the_bounds_belong_to_the_range(environment: pytest.MonkeyPatch, password: str) -> None:
    check_length(password)


def test_other_parameters_stand_in_the_hash(option: SetOption) -> None:
    option("scrypt_cost", 1024)
    stored = hash_password("correct horse")
    assert stored.startswith("scrypt$1024$16$1$")
    option("scrypt_cost", 16384)
    assert verify_password("correct horse", stored)
    assert needs_rehash(stored)


def test_functions_of_the_deployment_hash_and_verify_and_may_be_async(
    option: SetOption, integrator: ModuleType
) -> None:
    async def hash_backwards(password: str) -> str:
        return password[::-1]

    async def verify_backwards(hash: str, password: str) -> bool:
        return password[::-1] == hash

    integrator.hash = hash_backwards  # type: ignore[attr-defined]
    integrator.verify = verify_backwards  # type: ignore[attr-defined]
    option("password_hash", "integrator:hash")
    option("password_verify", "integrator:verify")
    stored = hash_password("correct horse")
    assert stored == "esroh tcerroc"
    assert verify_password("correct horse", stored)
    assert not verify_password("correct horsf", stored)


def test_a_function_that_takes_no_password_is_refused(
    option: SetOption, integrator: ModuleType
) -> None:
    integrator.hash = lambda text: text  # type: ignore[attr-defined]
    option("password_hash", "integrator:hash")
    with pytest.raises(SettingsError, match=r"^LARDER_PASSWORD_HASH: .* takes \(password\)$"):
        hash_password("correct horse")
