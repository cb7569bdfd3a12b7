"""`make template-diff` reports whether a change of the template changes the deployment."""

from typing import Any

import pytest

from tools.template_diff import ABSENT, differences, is_description, main

BASE: dict[str, Any] = {
    "Parameters": {"Days": {"Default": 30, "Description": "Days."}},
    "Resources": {"Policy": {"Properties": {"Description": "Read."}}, "Queue": {"Tags": ["a"]}},
}


def changed(*path: str, to: Any) -> dict[str, Any]:
    """BASE with another value at the path."""
    return _with(BASE, path, to)


def _with(value: dict[str, Any], path: tuple[str, ...], to: Any) -> dict[str, Any]:
    name, *rest = path
    return {**value, name: _with(value[name], tuple(rest), to) if rest else to}


def test_equal_templates_do_not_differ() -> None:
    assert list(differences(BASE, changed("Resources", to=BASE["Resources"]))) == []


@pytest.mark.parametrize(
    ("path", "to", "expected"),
    [
        (("Parameters", "Days", "Default"), "30", ("/Parameters/Days/Default", 30, "30")),
        (("Resources", "Queue", "Tags"), ["b"], ("/Resources/Queue/Tags/0", "a", "b")),
        (("Resources", "Queue", "Tags"), [], ("/Resources/Queue/Tags", ["a"], [])),
        (("Resources", "Topic"), {}, ("/Resources/Topic", ABSENT, {})),
        (
            ("Resources", "Policy", "Properties", "Description"),
            "Read all.",
            ("/Resources/Policy/Properties/Description", "Read.", "Read all."),
        ),
    ],
)
def test_a_changed_value_is_a_difference(path: tuple[str, ...], to: Any, expected: tuple[str, Any, Any]) -> None:
    (found,) = differences(BASE, changed(*path, to=to))
    assert found == expected
    assert not is_description(found)


def test_changed_descriptions_are_listed_separately() -> None:
    (found,) = differences(BASE, changed("Parameters", "Days", "Description", to="How many days."))
    assert is_description(found)


def test_the_command_compares_with_a_revision(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-revision"]) == 2
    assert "no-such-revision" in capsys.readouterr().err
    assert main(["HEAD"]) in (0, 1)
    assert "Other differences: " in capsys.readouterr().out
