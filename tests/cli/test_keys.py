"""`larder keys`, and that the handlers accept the keys that it creates."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from larder import aws, clock
from larder.accounts.service import create_user
from larder.api_keys import repository
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.settings import settings
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from larder.teams.protection import read_protection
from tests.functions.teams.rules import made
from tests.issuer import Issuer, github_claims
from tests.requests import Cloud, Reply, Sender
from tests.trust.exchanging import exchange

from .conftest import Larder, change_cloud_json

ADA = ("--user", "ada@acme.example")
STATUS = "/v8/artifacts/status"
FIELDS = {
    *(
        "id", "name", "start", "prefix", "owner", "made_by", "known_to", "user_id", "rule_id", "team_id", "team",
        "enabled",
    ),
    "permissions",
    *("metadata", "remaining", "refill_amount", "refill_interval_ms", "last_refill_at"),
    *("rate_limit_enabled", "rate_limit_max", "rate_limit_window_ms", "window_ends_at"),
    *("request_count", "expires_at", "created_at", "updated_at", "last_request_at"),
    *("daily_requests", "daily_bytes", "paused_on"),
}  # fmt: skip


def facts(shown: str) -> dict[str, str]:
    """The values of a printed record, by label."""
    lines = (line.split("  ", 1) for line in shown.splitlines() if "  " in line)
    return {label.strip(): value.strip() for label, value in lines}


def rows(shown: str) -> list[dict[str, str]]:
    """The rows of a printed table, by column heading. Headings start where their cells start."""
    head, _, *lines = shown.splitlines()
    labels = [label for label in head.split("   ") if label.strip()]
    assert len(labels) == len(set(labels))
    starts = [head.index(label) for label in labels]
    ends = [*starts[1:], None]
    return [
        {label.strip(): line[start:end].strip() for label, start, end in zip(labels, starts, ends, strict=True)}
        for line in lines
    ]


def use(made: dict[str, Any]) -> Reply:
    """Send a request with a created key."""
    return Sender(made["key"])("GET", STATUS)


def lifetime(record: dict[str, Any], *, end: str = "expires_at") -> timedelta:
    made_at = datetime.fromisoformat(record["created_at"])
    return datetime.fromisoformat(record[end]) - made_at


def test_a_key_stores_and_restores_an_artifact(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", *ADA, "--team", "acme", "--name", "laptop")
    send = Sender(made["key"], slug="acme")
    assert send("PUT", "/v8/artifacts/abc", body=b"bytes").status == 202
    assert send("GET", "/v8/artifacts/abc").body == b"bytes"


def test_the_json_contains_the_key_and_its_fields(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(
        *("keys", "create", *ADA, "--team", cloud.team.id, "--name", "ci", "--prefix", "acme_"),
        *("--expires-in", "30d", "--permissions", "artifacts=read"),
    )
    assert made["key"].startswith("acme_")
    assert made["key"].startswith(made["start"])
    assert (made["team"], made["team_id"], made["name"]) == ("acme", cloud.team.id, "ci")
    assert made["permissions"] == {"artifacts": ["read"]}
    assert lifetime(made) == timedelta(days=30)


def test_the_key_is_shown_once_and_not_stored(larder: Larder, cloud: Cloud) -> None:
    result = larder("keys", "create", *ADA, "--name", "shown")
    key = result.stdout.splitlines()[-1]
    assert len(key) == 64
    assert result.stdout.count(key) == 1
    assert result.stderr == ""
    assert key not in larder("keys", "list", *ADA).stdout
    stored = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    assert key not in str(stored)


def test_permissions_for_several_resources_are_combined(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(
        *("keys", "create", *ADA, "--permissions", "artifacts=read, write"), *("--permissions", "reports=read")
    )
    assert made["permissions"] == {"artifacts": ["read", "write"], "reports": ["read"]}


def test_an_unknown_action_of_larders_resources_is_rejected(larder: Larder, cloud: Cloud) -> None:
    output = larder.refusal("keys", "create", *ADA, "--permissions", "artifacts=red", status=2)
    assert "artifacts has no action red: use read, write, manage" in output
    assert [key["id"] for key in larder.json("keys", "list", *ADA)] == [cloud.key.id]


@pytest.mark.parametrize(("defaults", "warns"), [('{"artifacts":["read"]}', True), ('{"artifact":["read"]}', False)])
def test_an_unknown_resource_causes_a_warning(
    larder: Larder, cloud: Cloud, data_folder: Path, defaults: str, warns: bool
) -> None:
    change_cloud_json(data_folder, LARDER_DEFAULT_KEY_PERMISSIONS=defaults)
    made = larder("keys", "create", *ADA, "--permissions", "artifact=read", "--json")
    assert json.loads(made.stdout)["permissions"] == {"artifact": ["read"]}
    assert ("artifact is not a resource of Larder" in made.stderr) is warns
    assert made.stderr.count("\n") == warns
    assert larder("keys", "create", *ADA, "--permissions", "teams=read").stderr == ""


def test_no_key_is_made_without_the_extensions_of_the_deployment(
    larder: Larder, cloud: Cloud, data_folder: Path
) -> None:
    """They can have a function that makes or checks keys."""
    change_cloud_json(data_folder, LARDER_EXTENSIONS="not_on_this_machine")
    assert "put its folder on PYTHONPATH" in larder.refusal("keys", "create", *ADA)
    assert [key["id"] for key in larder.json("keys", "list", *ADA)] == [cloud.key.id]


def test_a_user_who_has_not_proven_the_address_gets_no_key(larder: Larder, cloud: Cloud) -> None:
    """A stranger with the same account could write what the key reads."""
    create_user("ci@acme.example", "CI", password="a long password", now=clock.now())
    creating = ("keys", "create", "--user", "ci@acme.example")
    assert "has not proven that the address is theirs" in larder.refusal(*creating)
    assert larder.json("keys", "list", "--user", "ci@acme.example") == []
    assert larder.json(*creating, "--unverified")["key"]


def test_a_team_key_needs_a_member(larder: Larder, cloud: Cloud) -> None:
    create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    refusal = larder.refusal("keys", "create", "--user", "bob@acme.example", "--team", "acme")
    assert "bob@acme.example is not a member of acme" in refusal
    assert "larder teams add-member acme bob@acme.example" in refusal
    assert larder.json("keys", "list", "--user", "bob@acme.example") == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--team", "nobody"), "there is no team nobody"),
        (("--name", "x" * 33), "--name: must hold 1 to 32 characters"),
        (("--prefix", "a b"), "--prefix: must be"),
        (("--permissions", "art\tfacts=read"), "--permissions: must have names"),
        (("--remaining", f"{10**12 + 1}"), "--remaining: must be a whole number from 0 to"),
        (("--rate-limit-max", f"{10**12 + 1}"), "--rate-limit-max: must be a whole number"),
        (
            ("--remaining", "1", "--refill-interval", "1d", "--refill-amount", f"{10**12 + 1}"),
            "--refill-amount: must be a whole number",
        ),
    ],
)
def test_create_rejects_values_outside_the_limits(
    larder: Larder, cloud: Cloud, arguments: tuple[str, ...], expected: str
) -> None:
    assert expected in larder.refusal("keys", "create", *ADA, *arguments)
    assert len(larder.json("keys", "list", *ADA)) == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--expires-in", "soon"), "is not a duration"),
        (("--expires-in", "0d"), "out of range"),
        (("--expires-in", "99999w"), "out of range"),
        (("--permissions", "artifacts"), "is not a permission"),
        (("--permissions", "artifacts=read,,write"), "is not a permission"),
        (("--metadata", "{repo: web}"), "'--metadata': this is not valid JSON"),
        (("--metadata", "NaN"), "'--metadata': this is not valid JSON"),
        (("--remaining", "-1"), "'--remaining': -1 is not in the range"),
        (("--remaining", "many"), "'--remaining': 'many' is not a valid integer"),
        (("--remaining", "1.5"), "'--remaining': '1.5' is not a valid integer"),
        (("--refill-amount", "0"), "'--refill-amount': 0 is not in the range"),
        (("--refill-interval", "daily"), "'--refill-interval': 'daily' is not a duration"),
        (("--refill-interval", "10001d"), "out of range: it must be from 1s to 10000d"),
        (("--rate-limit-max", "0"), "'--rate-limit-max': 0 is not in the range"),
        (("--rate-limit-window", "0s"), "'--rate-limit-window': '0s' is out of range"),
        (("--rate-limit-window", "1h"), "--rate-limit-window needs --rate-limit-max"),
        (("--remaining", "5", "--refill-amount", "5"), "--refill-amount and --refill-interval belong together"),
        (("--remaining", "5", "--refill-interval", "1d"), "--refill-amount and --refill-interval belong together"),
        (("--refill-amount", "5", "--refill-interval", "1d"), "--refill-amount and --refill-interval need --remaining"),
    ],
)
def test_create_rejects_unreadable_options(
    larder: Larder, cloud: Cloud, arguments: tuple[str, ...], expected: str
) -> None:
    assert expected in larder.refusal("keys", "create", *ADA, *arguments, status=2)
    assert len(larder.json("keys", "list", *ADA)) == 1


def test_list_shows_the_keys_of_a_user_with_their_teams(larder: Larder, cloud: Cloud) -> None:
    larder("keys", "create", *ADA, "--name", "own")
    listed = larder.json("keys", "list", *ADA)
    assert [(key["name"], key["team"]) for key in listed] == [("ci", "acme"), ("own", None)]
    assert all("key" not in key and "key_hash" not in key for key in listed)
    shown = larder("keys", "list", *ADA).stdout
    assert cloud.key.id in shown
    assert "artifacts=read,write" in shown


def test_create_sets_every_field(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(
        *("keys", "create", *ADA, "--team", "acme", "--name", "all", "--prefix", "all_"),
        *("--expires-in", "1d", "--permissions", "artifacts=read"),
        *("--metadata", '{"repo": "web", "tags": [1, null]}', "--remaining", "500"),
        *("--refill-amount", "400", "--refill-interval", "12h"),
        *("--rate-limit-max", "20", "--rate-limit-window", "1m"),
    )
    assert made.keys() == FIELDS | {"key"}
    assert made["metadata"] == {"repo": "web", "tags": [1, None]}
    assert (made["remaining"], made["refill_amount"]) == (500, 400)
    assert made["refill_interval_ms"] == 12 * 3_600_000
    assert (made["rate_limit_enabled"], made["rate_limit_max"]) == (True, 20)
    assert made["rate_limit_window_ms"] == 60_000
    assert (made["enabled"], made["request_count"], made["last_request_at"]) == (True, 0, None)
    # The stored fields match the output, except for the key itself.
    key = made.pop("key")
    assert larder.json("keys", "show", made["id"]) == made
    assert made in larder.json("keys", "list", *ADA)
    assert key not in larder("keys", "show", made["id"]).stdout


def test_a_key_has_no_limits_unless_they_are_given(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", *ADA)
    unlimited = (
        *("metadata", "remaining", "refill_amount", "refill_interval_ms", "last_refill_at"),
        *("rate_limit_max", "rate_limit_window_ms", "window_ends_at", "expires_at"),
    )
    assert {made[name] for name in unlimited} == {None}
    assert made["rate_limit_enabled"] is False
    output = facts(larder("keys", "show", made["id"]).stdout)
    for label in ("metadata", "remaining", "refill", "last refill", "rate limit", "expires"):
        assert output[label] == "-"


def test_limits_are_shown_in_the_format_of_the_options(larder: Larder, cloud: Cloud) -> None:
    result = larder(
        *("keys", "create", *ADA, "--metadata", '{"repo": "wäb"}', "--remaining", "5000"),
        *("--refill-amount", "5000", "--refill-interval", "24h"),
        *("--rate-limit-max", "1000", "--rate-limit-window", "90s", "--expires-in", "1d"),
    )
    output = facts(result.stdout)
    assert output["metadata"] == '{"repo": "wäb"}'
    assert (output["remaining"], output["refill"]) == ("5,000", "5,000 per 1d")
    assert output["rate limit"] == "1,000 per 90s"
    tomorrow = clock.now() + timedelta(days=1)
    assert output["expires"].startswith(f"{tomorrow:%Y-%m-}")
    assert output["expires"].endswith(" UTC")


def test_a_rate_limit_without_a_window_counts_by_day(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", *ADA, "--rate-limit-max", "3")
    assert made["rate_limit_window_ms"] == 86_400_000


def test_list_shows_limits_expiry_and_last_use(larder: Larder, cloud: Cloud) -> None:
    larder(
        *("keys", "create", *ADA, "--name", "limited", "--remaining", "1200"),
        *("--rate-limit-max", "20", "--rate-limit-window", "1h", "--expires-in", "90d"),
    )
    cloud.send("GET", STATUS)
    free, limited = rows(larder("keys", "list", *ADA).stdout)
    assert (free["remaining"], free["rate limit"], free["expires"]) == ("-", "-", "-")
    assert free["last request"].endswith(" UTC")
    assert (limited["remaining"], limited["rate limit"]) == ("1,200", "20 per 1h")
    assert limited["expires"].endswith(" UTC")
    assert limited["last request"] == "-"


def test_show_prints_the_team_and_the_permissions(larder: Larder, cloud: Cloud) -> None:
    output = facts(larder("keys", "show", cloud.key.id).stdout)
    assert (output["id"], output["team"]) == (cloud.key.id, "acme")
    assert (output["permissions"], output["enabled"]) == ("artifacts=read,write", "yes")
    assert "key" not in output


def test_show_and_rotate_reject_an_unknown_key(larder: Larder, cloud: Cloud) -> None:
    for command in ("show", "rotate"):
        refusal = larder.refusal("keys", command, "nothing")
        assert refusal.startswith("there is no key with the id nothing")
        assert "larder keys list" in refusal


def test_rotation_creates_a_key_with_the_same_fields(larder: Larder, cloud: Cloud) -> None:
    old = larder.json(
        *("keys", "create", *ADA, "--team", "acme", "--name", "ci", "--prefix", "ci_"),
        *("--permissions", "artifacts=read", "--metadata", '{"repo": "web"}', "--remaining", "9"),
        *("--refill-amount", "9", "--refill-interval", "1d", "--rate-limit-max", "5"),
        *("--rate-limit-window", "1h", "--expires-in", "30d"),
    )
    made = larder.json("keys", "rotate", old["id"])
    assert made.keys() == FIELDS | {"key", "old_id", "old_expires_at"}
    own = {"id", "start", "window_ends_at", "expires_at", "created_at", "updated_at"}
    taken_over = FIELDS - own
    assert {name: made[name] for name in taken_over} == {name: old[name] for name in taken_over}
    assert made["id"] != old["id"] == made["old_id"]
    assert made["key"].startswith("ci_")
    assert lifetime(made) == timedelta(days=30)
    assert lifetime(made, end="old_expires_at") == timedelta(days=1)
    assert larder.json("keys", "show", old["id"])["expires_at"] == made["old_expires_at"]
    assert (use(old).status, use(made).status) == (200, 200)


def test_the_token_of_a_ci_job_has_a_rule_in_place_of_a_user(larder: Larder, cloud: Cloud) -> None:
    rule, github = made(cloud), Issuer()
    github.publish()
    assert exchange(github.mint(github_claims())).status == 200
    (key,) = repository.list_by_holder(rule.id)
    shown = larder.json("keys", "show", key.id)
    assert (shown["user_id"], shown["rule_id"]) == (None, rule.id)
    # Each job gets a token of its own, and it ends by itself.
    assert "there is no key with the id" in larder.refusal("keys", "rotate", key.id)


def test_without_an_overlap_the_old_key_ends_at_once(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "rotate", cloud.key.id, "--overlap", "0")
    assert (cloud.send("GET", STATUS).status, use(made).status) == (401, 200)
    assert made["old_expires_at"] == made["created_at"]
    assert [key["id"] for key in larder.json("keys", "list", *ADA)] == [made["id"]]


def test_rotation_shows_the_key_once_and_when_the_old_one_ends(larder: Larder, cloud: Cloud) -> None:
    shown = larder("keys", "rotate", cloud.key.id, "--overlap", "1h").stdout
    output, raw = facts(shown), shown.splitlines()[-1]
    assert (len(raw), shown.count(raw)) == (64, 1)
    assert use({"key": raw}).status == 200
    assert output["old id"] == cloud.key.id
    old = repository.get(cloud.key.key_hash)
    assert old is not None
    assert output["old expires"] == f"{old.expires_at:%Y-%m-%d %H:%M:%S} UTC"


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [("soon", "is not a duration"), ("-1h", "is not a duration"), ("36501d", "out of range: it must be from 0s")],
)
def test_rotation_rejects_an_unreadable_overlap(larder: Larder, cloud: Cloud, overlap: str, expected: str) -> None:
    refusal = larder.refusal("keys", "rotate", cloud.key.id, "--overlap", overlap, status=2)
    assert expected in refusal
    assert "'--overlap'" in refusal
    assert cloud.send("GET", STATUS).status == 200
    assert len(larder.json("keys", "list", *ADA)) == 1


def test_delete_expired_deletes_only_expired_keys_of_all_users(larder: Larder, cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    yesterday = clock.now() - timedelta(days=1)
    for user_id in (cloud.user.id, cloud.user.id, bob.id):
        create_key(NewKey(user_id=user_id, expires_in_s=60), now=yesterday)
    living = larder.json("keys", "create", *ADA, "--expires-in", "1h")
    assert len(larder.json("keys", "list", *ADA)) == 4
    assert larder.json("keys", "delete-expired") == {"deleted": 3}
    left = {key["id"] for key in larder.json("keys", "list", *ADA)}
    assert left == {cloud.key.id, living["id"]}
    assert larder.json("keys", "list", "--user", "bob@acme.example") == []
    assert facts(larder("keys", "delete-expired").stdout) == {"deleted": "0"}


def test_list_shows_when_a_key_was_last_used(larder: Larder, cloud: Cloud) -> None:
    assert larder.json("keys", "list", *ADA)[0]["last_request_at"] is None
    cloud.send("GET", "/v8/artifacts/status")
    assert larder.json("keys", "list", *ADA)[0]["last_request_at"] is not None


def test_list_says_when_a_user_has_no_keys_or_does_not_exist(larder: Larder, aws_in_memory: None) -> None:
    create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
    assert "bob@acme.example has no keys" in larder("keys", "list", "--user", "bob@acme.example").stdout
    assert "there is no user" in larder.refusal("keys", "list", "--user", "nobody@acme.example")


def test_a_revoked_key_is_rejected_at_once(larder: Larder, cloud: Cloud) -> None:
    assert cloud.send("GET", "/v8/artifacts/status").status == 200
    revoked = larder.json("keys", "revoke", cloud.key.id[:8])
    assert (revoked["id"], revoked["owner"], revoked["revoked"]) == (cloud.key.id, "ada@acme.example", True)
    assert cloud.send("GET", "/v8/artifacts/status").status == 401
    assert "there is no key with the id" in larder.refusal("keys", "revoke", cloud.key.id)


def test_the_first_characters_of_an_id_are_enough_if_only_one_has_them(
    larder: Larder, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["same66one".ljust(32, "x"), "same66two".ljust(32, "x")])
    monkeypatch.setattr("larder.api_keys.keys.random_id", lambda: next(ids))
    first, second = (larder.json("keys", "create", *ADA, "--name", name)["id"] for name in ("one", "two"))
    assert larder.json("keys", "show", "same66o")["id"] == first
    for command in ("show", "rotate", "adopt", "revoke"):
        refusal = larder.refusal("keys", command, "same66")
        assert refusal == f"same66 begins the ids of several keys: {first}, {second}. Type more of it"
        assert larder.refusal("keys", command, "same6").startswith("there is no key with the id same6:")


OF_TEAM = ("keys", "create", "--team", "acme", "--owned-by-team")


def test_a_team_owns_a_key(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(*OF_TEAM, "--name", "ci")
    assert (made["owner"], made["user_id"], made["team"]) == ("team", None, "acme")
    assert (made["permissions"], made["known_to"]) == ({"artifacts": ["read", "write"]}, [])
    assert use(made).status == 200
    listed = rows(larder("keys", "list", "--team", "acme").stdout)
    assert {row["id"]: row["owner"] for row in listed} == {cloud.key.id: "ada@acme.example", made["id"]: "the team"}
    assert {row["known to"] for row in listed} == {"-"}
    shown = facts(larder("keys", "show", made["id"]).stdout)
    assert (shown["owner"], shown["team"]) == ("team", "acme")
    rotated = larder.json("keys", "rotate", made["id"])
    assert (rotated["owner"], rotated["team"]) == ("team", "acme")
    assert (use(made).status, use(rotated).status) == (200, 200)


def test_a_trusted_key_of_a_team_protects_it(larder: Larder, cloud: Cloud) -> None:
    made = larder.json(*OF_TEAM, "--trusted")
    assert made["permissions"] == {"artifacts": ["read", "write", "trust"]}
    assert read_protection(cloud.team.id).on
    assert use(made).status == 200


def test_a_key_has_one_owner(larder: Larder, cloud: Cloud) -> None:
    assert "--owned-by-team needs --team" in larder.refusal("keys", "create", "--owned-by-team", status=2)
    assert "no --user" in larder.refusal(*OF_TEAM, *ADA, status=2)
    assert "--user is required" in larder.refusal("keys", "create", "--team", "acme", status=2)
    assert "either --user or --team" in larder.refusal("keys", "list", status=2)
    assert "either --user or --team" in larder.refusal("keys", "list", *ADA, "--team", "acme", status=2)
    larder("keys", "revoke", cloud.key.id)
    assert "has no keys" in larder("keys", "list", "--team", "acme").stdout
    refusal = larder.refusal(*OF_TEAM, "--permissions", "teams=read")
    assert refusal.startswith("--permissions: of a key that a team owns must not have teams")


def test_a_personal_key_becomes_the_teams_by_a_rotation(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "rotate", cloud.key.id, "--to-team", "--overlap", "1h")
    assert (made["owner"], made["name"], made["known_to"]) == ("team", "ci", [])
    assert cloud.send("GET", STATUS).status == use(made).status == 200
    refusal = larder.refusal("keys", "rotate", made["id"], "--to-team")
    assert refusal == "key: belongs to its team already"


def test_an_adopted_key_is_known_to_its_former_owner(larder: Larder, cloud: Cloud) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.DEVELOPER, now=clock.now())
    key, raw = create_key(NewKey(user_id=bob.id, team_id=cloud.team.id), now=clock.now())
    adopted = larder.json("keys", "adopt", key.id)
    known = {"user_id": bob.id, "name": "Bob", "left_at": None}
    assert (adopted["id"], adopted["owner"], adopted["known_to"]) == (key.id, "team", [known])
    shown = larder("keys", "show", key.id)
    assert facts(shown.stdout)["known to"] == "Bob"
    assert shown.stderr == ""
    with time_machine.travel(datetime(2030, 5, 3, 12, tzinfo=UTC)):
        remove_member(cloud.team.id, bob.id, by=None)
    warning = f"Bob left on 3 May 2030 and knows this key. Rotate it: `larder keys rotate {key.id}`\n"
    assert larder("keys", "show", key.id).stderr == warning
    assert warning in larder("keys", "list", "--team", "acme").stderr
    assert Sender(raw)("GET", STATUS).status == 200
    assert "there is no key" in larder.refusal("keys", "adopt", "nothing")


def test_a_public_read_key_has_bounds(larder: Larder, cloud: Cloud) -> None:
    made = larder.json("keys", "create", "--team", "acme", "--public", "--daily-size", "2MB")
    bounds = {"daily_requests": 50_000, "daily_bytes": 2_000_000, "permissions": {"artifacts": ["fetch"]}}
    assert {name: made[name] for name in bounds} == bounds
    assert (made["owner"], made["team"]) == ("team", "acme")
    send = Sender(made["key"], slug="acme")
    assert send("GET", "/v8/artifacts/abc").status == 404
    assert send("PUT", "/v8/artifacts/abc", body=b"x").code == "read_only"


@pytest.mark.parametrize(
    ("options", "rule", "status"),
    [
        (("--public",), "--public needs --team", 2),
        (("--public", "--team", "acme", *ADA), "--public needs --team", 2),
        (("--public", "--team", "acme", "--trusted"), "it only reads", 2),
        (("--public", "--team", "acme", "--remaining", "5"), "is the only limit of a public read key", 1),
        (("--team", "acme", "--owned-by-team", "--daily-size", "2MB"), "need --public", 2),
        (("--public", "--team", "acme", "--daily-size", "0"), "--daily-size: must be a whole number from 1", 1),
    ],
)
def test_a_public_read_key_is_nothing_else(
    larder: Larder, cloud: Cloud, options: tuple[str, ...], rule: str, status: int
) -> None:
    assert rule in larder.refusal("keys", "create", *options, status=status)
