"""Options, read once from the environment."""

import pytest

from larder.settings import SettingsError, environment_name, read_settings

REQUIRED = {
    environment_name(name): name
    for name in (
        "identity_table",
        "api_keys_table",
        "teams_table",
        "artifacts_table",
        "usage_table",
        "rate_limits_table",
        "artifacts_bucket",
        "signing_secret",
        "outbox_table",
        "email_function",
        "audit_table",
        "removal_function",
    )
}


def test_options_have_defaults() -> None:
    assert read_settings(REQUIRED).retention_days == 30


def test_an_empty_variable_is_the_same_as_an_absent_one() -> None:
    assert read_settings({**REQUIRED, "LARDER_RETENTION_DAYS": " "}).retention_days == 30


@pytest.mark.parametrize("missing", REQUIRED)
def test_a_missing_required_option_is_named(missing: str) -> None:
    rest = {name: value for name, value in REQUIRED.items() if name != missing}
    with pytest.raises(SettingsError, match=f"^{missing} is not set: "):
        read_settings(rest)


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
        read_settings({**REQUIRED, "LARDER_RETENTION_DAYS": text})
