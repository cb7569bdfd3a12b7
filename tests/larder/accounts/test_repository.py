"""How the identity table stores users and account records, and reads data of version 0.1.0."""

from dataclasses import replace
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts import repository, service, sign_in
from larder.accounts.models import Account, User
from larder.accounts.passwords import hash_password
from larder.accounts.service import check_credentials, create_user, find_user, read_account
from larder.errors import InvalidEmailOrPassword, TryAgain
from larder.settings import settings
from tests.conftest import SetOption
from tests.faults import answering, error

PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def quick_hashes(option: SetOption) -> None:
    option("scrypt_cost", 1024)


@pytest.fixture
def ada(aws_in_memory: None) -> User:
    return create_user("ada@example.com", "Ada", password=PASSWORD, now=clock.now())


def items() -> list[dict[str, Any]]:
    stored = aws.dynamodb().scan(TableName=settings().identity_table)["Items"]
    return [aws.deserialize(item) for item in stored]


def accounts() -> list[dict[str, Any]]:
    return [item for item in items() if item["sk"].startswith("account#")]


def holding_passwords() -> set[tuple[str, str]]:
    return {(item["pk"], item["sk"]) for item in items() if "password" in item}


def put(item: dict[str, Any]) -> None:
    aws.dynamodb().put_item(TableName=settings().identity_table, Item=aws.serialize(item))


def move_back_to_0_1_0(email: str) -> None:
    """Store the user as version 0.1.0 does: the hash is in the item of the user, and there is no account record."""
    (account,) = accounts()
    (user,) = (item for item in items() if (item["pk"], item["sk"]) == (f"email#{email}", "user"))
    put({**user, "password": account["password"]})
    key = aws.serialize({"pk": account["pk"], "sk": account["sk"]})
    aws.dynamodb().delete_item(TableName=settings().identity_table, Key=key)


def move(user: User, email: str) -> Account:
    def moved(account: Account) -> Account:
        return replace(account, user=replace(account.user, email=email))

    return service.change_account(user.id, moved)


def test_the_password_is_in_the_account_record_and_not_in_the_user_record(ada: User) -> None:
    assert holding_passwords() == {("email#ada@example.com", "account#credential")}
    (account,) = accounts()
    assert (account["provider_id"], account["user_id"]) == ("credential", ada.id)


def test_a_user_without_a_password_has_no_account_record(aws_in_memory: None) -> None:
    create_user("ada@example.com", "Ada", now=clock.now())
    assert accounts() == []


def test_the_account_record_follows_its_users_address(ada: User) -> None:
    move(ada, "ada@new.example")
    assert holding_passwords() == {("email#ada@new.example", "account#credential")}
    assert check_credentials("ada@new.example", PASSWORD).id == ada.id


def test_the_account_record_is_deleted_with_the_password(ada: User) -> None:
    account = read_account(ada.id)
    locked = service.with_password(account, None, ends_sessions=True, now=clock.now())
    assert repository.change(account, locked) is not None
    assert accounts() == []
    assert read_account(ada.id).credential is None


def test_the_account_record_is_deleted_when_the_operator_moves_the_user(ada: User) -> None:
    sign_in.give_account(ada.id, "other@example.com", now=clock.now())
    assert accounts() == []
    assert read_account(ada.id).credential is None


def test_the_account_record_is_deleted_with_the_user(ada: User) -> None:
    service.delete_user(ada.id, now=clock.now())
    assert accounts() == []


def test_a_read_during_a_write_is_repeated(ada: User) -> None:
    busy = error("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])
    with answering("dynamodb", "TransactGetItems", busy, times=1):
        assert check_credentials(ada.email, PASSWORD) == ada
    with answering("dynamodb", "TransactGetItems", busy), pytest.raises(TryAgain):
        check_credentials(ada.email, PASSWORD)


# Data of version 0.1.0 ----------------------------------------------------------------------------


def test_a_password_in_the_user_record_signs_in(ada: User) -> None:
    move_back_to_0_1_0(ada.email)
    assert check_credentials(ada.email, PASSWORD) == ada
    credential = read_account(ada.id).credential
    assert credential is not None
    assert (credential.created_at, credential.updated_at) == (ada.created_at, ada.updated_at)


def test_the_next_change_of_the_user_moves_the_password(ada: User) -> None:
    move_back_to_0_1_0(ada.email)
    service.change_account(ada.id, lambda account: replace(account, user=replace(account.user, name="Countess")))
    assert holding_passwords() == {("email#ada@example.com", "account#credential")}
    assert check_credentials(ada.email, PASSWORD).name == "Countess"


def test_a_change_of_address_moves_the_password(ada: User) -> None:
    move_back_to_0_1_0(ada.email)
    move(ada, "ada@new.example")
    assert holding_passwords() == {("email#ada@new.example", "account#credential")}


def test_deleting_a_user_of_0_1_0_leaves_no_password(ada: User) -> None:
    move_back_to_0_1_0(ada.email)
    service.delete_user(ada.id, now=clock.now())
    assert holding_passwords() == set()


# A deployment that went back to version 0.1.0 for a while ------------------------------------------


def test_a_password_set_by_0_1_0_takes_precedence(ada: User) -> None:
    (older,) = accounts()
    changed = service.with_password(
        read_account(ada.id), hash_password("a new password"), ends_sessions=False, now=clock.now()
    )
    assert repository.change(read_account(ada.id), changed) is not None
    move_back_to_0_1_0(ada.email)
    put(older)
    assert check_credentials(ada.email, "a new password").id == ada.id
    with pytest.raises(InvalidEmailOrPassword):
        check_credentials(ada.email, PASSWORD)


@pytest.mark.parametrize("outdated", [{"password_version": 0}, {"user_id": "A" * 32}])
def test_an_account_record_left_by_0_1_0_cannot_sign_in(aws_in_memory: None, outdated: dict[str, Any]) -> None:
    ada = create_user("ada@example.com", "Ada", password=PASSWORD, now=clock.now())
    account = read_account(ada.id)
    renewed = service.with_password(account, account.password_hash, ends_sessions=False, now=clock.now())
    assert repository.change(account, renewed) is not None
    (stored,) = accounts()
    put({**stored, **outdated})
    with pytest.raises(InvalidEmailOrPassword):
        check_credentials(ada.email, PASSWORD)


def test_an_account_record_left_by_0_1_0_does_not_stop_a_sign_up(ada: User) -> None:
    (left,) = accounts()
    service.delete_user(ada.id, now=clock.now())
    put(left)
    new = create_user(ada.email, "Ada", password="another password", now=clock.now())
    assert check_credentials(ada.email, "another password") == new
    service.delete_user(new.id, now=clock.now())
    put(left)
    assert find_user(create_user(ada.email, "Ada", now=clock.now()).id) is not None
    with pytest.raises(InvalidEmailOrPassword):
        check_credentials(ada.email, PASSWORD)
