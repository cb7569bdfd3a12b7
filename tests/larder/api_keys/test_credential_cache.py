"""What an instance remembers of credentials."""

import pytest

from larder import instance
from larder.api_keys.credential_cache import KnownOwner, forget_owner, known_credentials, remember_owner

KEY = "hash"


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    instance.restart()


def remembered() -> list[str]:
    return [owner.owner for owner in known_credentials[KEY].owners.values()]


def remember(team: str, holder: str = "ada") -> None:
    remember_owner(KEY, holder, None, (team, None), KnownOwner(team, None))


def test_the_latest_eight_owners_of_a_credential_are_remembered() -> None:
    for number in range(12):
        remember(f"team_{number}")
    remember("team_7")
    assert remembered() == [f"team_{number}" for number in (7, 11, 10, 9, 8, 6, 5, 4)]


def test_one_owner_is_forgotten() -> None:
    remember("team_a")
    remember("team_b")
    forget_owner(KEY, ("team_b", None))
    forget_owner("unknown", ("team_b", None))
    assert remembered() == ["team_a"]
    assert "unknown" not in known_credentials


def test_the_owners_of_another_holder_are_forgotten() -> None:
    remember("team_a")
    remember("team_b", holder="bob")
    assert remembered() == ["team_b"]
