"""Options, read once from the environment."""

from dataclasses import fields

import pytest

from larder.settings import Settings, SettingsError, check_resources, environment_name, read_settings

RESOURCES = {
    environment_name(name): name
    for name in (
        "identity_table", "api_keys_table", "teams_table", "artifacts_table", "usage_table", "rate_limits_table",
        "artifacts_bucket", "signing_secret", "outbox_table", "email_function", "audit_table", "removal_function",
        "commit_function",
    )
}  # fmt: skip


def test_an_empty_variable_stands_for_the_default() -> None:
    assert read_settings({"LARDER_RETENTION_DAYS": " "}).retention_days == 30
    assert read_settings({"LARDER_OPTIONS": "retention_days="}).retention_days == 30


@pytest.mark.parametrize("option", [field.name for field in fields(Settings)])
def test_an_option_without_its_variable_cannot_be_read(option: str) -> None:
    rest = {environment_name(field.name): "" for field in fields(Settings) if field.name != option}
    with pytest.raises(SettingsError, match=f"^{environment_name(option)} is not set: [A-Z]"):
        getattr(read_settings(rest), option)


def test_a_property_does_not_take_the_default_of_a_missing_option() -> None:
    with pytest.raises(SettingsError, match=r"^LARDER_OVER_QUOTA is not set: "):
        _ = read_settings({}).evicts


def test_settings_have_no_attribute_that_is_no_option() -> None:
    with pytest.raises(AttributeError):
        _ = read_settings({}).retention_weeks  # type: ignore[attr-defined]


def test_one_variable_can_hold_many_options() -> None:
    read = read_settings({"LARDER_OPTIONS": "retention_days=7 over_quota=refuse teams_table=teams"})
    assert (read.retention_days, read.over_quota, read.teams_table) == (7, "refuse", "teams")


def test_a_variable_of_its_own_overrides_the_option_among_others() -> None:
    variables = {"LARDER_OPTIONS": "retention_days=7 max_events=5", "LARDER_RETENTION_DAYS": "9"}
    read = read_settings(variables)
    assert (read.retention_days, read.max_events) == (9, 5)


def test_an_option_among_others_is_checked_like_one_alone() -> None:
    with pytest.raises(SettingsError, match=r"^LARDER_RETENTION_DAYS must be at least 1, not 0"):
        read_settings({"LARDER_OPTIONS": "retention_days=0"})


@pytest.mark.parametrize("missing", RESOURCES)
def test_a_process_that_needs_all_resources_names_the_missing_one(missing: str) -> None:
    rest = {name: value for name, value in RESOURCES.items() if name != missing}
    with pytest.raises(SettingsError, match=f"^{missing} is not set: "):
        check_resources(read_settings(rest))
    check_resources(read_settings(RESOURCES))


def test_a_text_has_a_longest_length() -> None:
    assert read_settings({"LARDER_PRODUCT_NAME": "x" * 64}).product_name == "x" * 64
    rule = "^LARDER_PRODUCT_NAME must have at most 64 characters, not 65$"
    with pytest.raises(SettingsError, match=rule):
        read_settings({"LARDER_PRODUCT_NAME": "x" * 65})


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("soon", "must be a whole number, not 'soon'"),
        ("1.5", "must be a whole number, not '1.5'"),
        ("0", "must be at least 1, not 0"),
        ("9999", "must be at most 3650, not 9999"),
    ],
)
def test_an_invalid_number_is_reported_with_its_rule(text: str, rule: str) -> None:
    with pytest.raises(SettingsError, match=f"LARDER_RETENTION_DAYS {rule}"):
        read_settings({"LARDER_RETENTION_DAYS": text})
