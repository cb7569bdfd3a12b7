"""`larder users`."""

from larder.accounts.service import find_user_by_email
from tests.requests import Cloud, Sender

from .conftest import Larder


def test_create_adds_a_person_and_tells_the_id(larder: Larder) -> None:
    told = larder.json("users", "create", "--email", "Ada@Acme.example", "--name", "Ada")
    stored = find_user_by_email("ada@acme.example")
    assert stored is not None
    assert told["id"] == stored.id
    assert (told["email"], told["name"]) == ("ada@acme.example", "Ada")
    assert told["created_at"].endswith("Z")


def test_show_tells_what_create_told(larder: Larder) -> None:
    told = larder.json("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    shown = larder.json("users", "show", "ada@acme.example")
    assert {name: shown[name] for name in told} == told


def test_show_tells_of_the_cache_that_they_have_without_a_team(
    larder: Larder, cloud: Cloud, personal: Sender
) -> None:
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    shown = larder.json("users", "show", cloud.user.email)
    assert (shown["stored_bytes"], shown["artifacts"], shown["quota_bytes"]) == (5, 1, None)
    assert (shown["caching"], shown["status"], shown["block"]) == ("enabled", "enabled", None)


def test_a_quota_of_ones_own_a_block_and_caching_are_set_for_them_alone(
    larder: Larder, cloud: Cloud, personal: Sender
) -> None:
    person = ("users", "set", cloud.user.email)
    assert larder.json(*person, "--quota", "4B")["quota_bytes"] == 4
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").code == "remote_caching_over_limit"
    assert larder.json(*person, "--default-quota", "--caching", "paused")["status"] == "paused"
    assert personal("GET", "/v8/artifacts/abc").code == "remote_caching_paused"
    told = larder.json(*person, "--block", "soft_block", "--reason", "ask Eve")
    assert (told["block"], told["block_reason"], told["caching"]) == (
        "soft_block",
        "ask Eve",
        "paused",
    )
    assert personal("GET", "/v8/artifacts/abc").message == "This account is blocked: ask Eve"
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": "enabled"}
    told = larder.json(*person, "--unblock", "--caching", "enabled")
    assert (told["block"], told["block_reason"]) == (None, None)
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").status == 202


def test_set_needs_something_to_change_and_somebody(larder: Larder, cloud: Cloud) -> None:
    refusal = larder.refusal("users", "set", cloud.user.email, status=2)
    assert "nothing to change" in refusal
    refusal = larder.refusal("users", "set", "nobody@acme.example", "--unblock")
    assert "there is no user nobody@acme.example" in refusal


def test_a_table_for_people_names_every_property(larder: Larder) -> None:
    shown = larder("users", "create", "--email", "ada@acme.example", "--name", "Ada").stdout
    for expected in ("id", "email", "ada@acme.example", "name", "Ada", "created", "UTC"):
        assert expected in shown


def test_a_name_cannot_write_to_the_terminal(larder: Larder) -> None:
    name = "A\x9b31mda [bold]x[/bold] :smile:"
    shown = larder("users", "create", "--email", "ada@acme.example", "--name", name).stdout
    assert "\x9b" not in shown
    assert "[bold]x[/bold] :smile:" in shown


def test_an_address_belongs_to_one_user(larder: Larder) -> None:
    larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    refusal = larder.refusal("users", "create", "--email", "ADA@acme.example", "--name", "Eve")
    assert refusal == "another user has the address ada@acme.example"


def test_what_is_no_address_or_name_is_refused(larder: Larder) -> None:
    refusal = larder.refusal("users", "create", "--email", "ada", "--name", "Ada")
    assert refusal == "email: must be an e-mail address"
    refusal = larder.refusal("users", "create", "--email", "ada@acme.example", "--name", " ")
    assert refusal == "name: must hold 1 to 100 characters and no control character"


def test_an_unknown_address_is_told_with_the_command_that_adds_it(larder: Larder) -> None:
    refusal = larder.refusal("users", "show", "nobody@acme.example")
    assert "there is no user nobody@acme.example" in refusal
    assert "larder users create --email nobody@acme.example" in refusal


def test_a_missing_option_is_a_usage_error(larder: Larder) -> None:
    assert "'--name'" in larder.refusal("users", "create", "--email", "a@b.example", status=2)
