"""The table of roles in docs/teams.md matches the code."""

from pathlib import Path

import pytest

from larder.teams.models import ROLE_WORDS, Role

PAGE = Path(__file__).resolve().parent.parent / "docs" / "teams.md"

RIGHTS = {
    "Store artifacts": "writes_cache",
    "List, inspect and delete artifacts": "manages_artifacts",
    "See open invitations; invite, remove and change members": "manages_members",
    "Invite, change and remove owners": "manages_owners",
    "Change the name and the slug": "renames_team",
    "List and delete the API keys of the team, and manage those that it owns": "manages_keys",
    "Add, change and delete rules for CI jobs": "names_trusted",
    "Give keys `artifacts: trust`, use them, and turn protection on": "names_trusted",
    "Change protection and turn it off": "owns_team",
    "Set the caching status": "owns_team",
    "Delete the team": "owns_team",
}
"""Rows of the table, and the property of the role for each. The other rows apply to every member."""

EVERYBODYS = ("Read artifacts, the usage figures and the list of members", "Leave the team")


def table() -> dict[str, dict[str, str]]:
    """The cells of the table, by permission and role."""
    section = PAGE.read_text().partition("## Roles\n")[2].partition("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_table_has_every_role_in_order() -> None:
    for answers in table().values():
        assert list(answers) == list(Role)


def test_the_table_has_exactly_the_permissions_of_the_code() -> None:
    assert table().keys() == {*RIGHTS, *EVERYBODYS}
    properties = {name for name, value in vars(Role).items() if isinstance(value, property)}
    assert set(RIGHTS.values()) == properties


@pytest.mark.parametrize("right", RIGHTS)
def test_a_role_has_the_permissions_of_the_table(right: str) -> None:
    said = {role: answer == "yes" for role, answer in table()[right].items()}
    assert said == {role: getattr(role, RIGHTS[right]) for role in Role}


@pytest.mark.parametrize("right", EVERYBODYS)
def test_every_member_has_the_other_permissions(right: str) -> None:
    assert all(answer.startswith("yes") for answer in table()[right].values())


def test_people_choose_from_roles_that_differ() -> None:
    rights = {role: tuple(getattr(role, right) for right in RIGHTS.values()) for role in Role}
    assert len({rights[role] for role in ROLE_WORDS}) == len(ROLE_WORDS)
    assert {rights[role] for role in ROLE_WORDS} == {*rights.values()}
