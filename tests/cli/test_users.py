"""`larder users`."""

from larder.accounts.service import find_user_by_email

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
    assert larder.json("users", "show", "ada@acme.example") == told


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
