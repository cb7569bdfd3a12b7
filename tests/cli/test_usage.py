"""`larder usage`."""

import uuid
from collections.abc import Mapping
from datetime import date, timedelta

import pytest

from larder import clock
from larder.teams.teams import create_team
from larder.usage.events import Reporter, UsageEvent
from larder.usage.models import Figures
from larder.usage.repository import add_batch, set_stored, set_uploads
from larder.usage.uploads import Stored, Uploads
from tests.requests import Cloud, Sender

from .conftest import Larder

CACHED, LOCAL, BUILT = "\N{FULL BLOCK}", "\N{MEDIUM SHADE}", "\N{LIGHT SHADE}"


def today() -> date:
    return clock.now().date()


def reported(
    owner: str,
    days_ago: int = 0,
    *,
    ci: str | None = None,
    by_tool: Mapping[str, Figures] | None = None,
    time_saved_ms: int = 0,
    **tasks: int,
) -> None:
    """Store what clients would report for these numbers of tasks."""
    hits = tasks.get("remote_hits", 0) + tasks.get("local_hits", 0)
    figures = Figures(hits=hits, time_saved_ms=time_saved_ms, **tasks)
    event = UsageEvent(session_id="s", source="REMOTE", event="HIT", hash="abc", duration_ms=0)
    reporter = Reporter(key_id="key", user_id="user", ci=ci, interactive=None)
    now = clock.now() - timedelta(days=days_ago)
    add_batch(owner, [event], figures, reporter, by_tool=by_tool or {}, now=now)


def test_the_tools_are_shown_once_another_than_turbo_was_used(larder: Larder, cloud: Cloud) -> None:
    reported(cloud.team.id, remote_hits=3)
    assert "tool" not in larder("usage", "acme").stdout
    part = Figures(remote_hits=2, hits=2)
    reported(cloud.team.id, by_tool={"nx": part}, remote_hits=2)
    output = larder.json("usage", "acme")
    assert [(part["tool"], part["hits"]) for part in output["tools"]] == [("nx", 2), ("turbo", 3)]
    assert "nx" in larder("usage", "acme").stdout


def report(cloud: Cloud, source: str, event: str, duration_ms: int) -> None:
    one = {"sessionId": str(uuid.uuid4()), "source": source, "event": event, "hash": "abc", "duration": duration_ms}
    assert cloud.send("POST", "/v8/artifacts/events", json_body=[one]).status == 200


def test_the_days_and_their_total(larder: Larder, cloud: Cloud) -> None:
    report(cloud, "REMOTE", "HIT", 90_000)
    report(cloud, "LOCAL", "MISS", 0)
    output = larder.json("usage", "acme", "--days", "3")
    assert output["team"] == "acme"
    *before, today = output["days"]
    assert len(before) == 2
    assert all(day["events"] == 0 for day in before)
    assert today.pop("day") == clock.now().date().isoformat()
    stored = {"stored_bytes": 0, "scoped_bytes": 0, "artifacts": 0}
    assert today == {**output["total"], **stored}
    assert (today["hits"], today["misses"], today["remote_hits"]) == (1, 1, 1)
    assert today["time_saved_ms"] == 90_000


@pytest.mark.usefixtures("refusing")
def test_the_json_of_a_team_contains_all_figures(larder: Larder, cloud: Cloud) -> None:
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    reported(cloud.team.id, remote_hits=3, remote_misses=1, ci="GITLAB")
    reported(cloud.team.id, local_hits=2)
    larder("teams", "set", "acme", "--quota", "5")
    output = larder.json("usage", "acme", "--days", "1")
    assert (output["from"], output["to"]) == (today().isoformat(), today().isoformat())
    assert (output["status"], output["quota_bytes"]) == ("over_limit", 5)
    assert (output["stored_bytes"], output["artifacts"]) == (5, 1)
    assert (output["total"]["uploads"], output["total"]["uploaded_bytes"]) == (1, 5)
    assert [(part["ci"], part["hits"]) for part in output["ci"]] == [("GITLAB", 3), (None, 2)]


def test_it_shows_how_much_more_is_stored(larder: Larder, cloud: Cloud) -> None:
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    assert "growth" not in larder("usage", "acme").stdout
    since = today() - timedelta(days=3)
    set_stored(cloud.team.id, since, Stored(size_bytes=2, artifacts=1))
    assert f"+3 B since {since}" in larder("usage", "acme").stdout
    set_stored(cloud.team.id, since, Stored(size_bytes=9, artifacts=1))
    assert f"-4 B since {since}" in larder("usage", "acme").stdout
    output = larder.json("usage", "acme")
    assert [day["stored_bytes"] for day in output["days"][-4:]] == [9, None, None, 5]


def test_a_block_is_shown_next_to_the_status(larder: Larder, cloud: Cloud) -> None:
    output = larder.json("usage", "acme")
    assert (output["block"], output["block_reason"]) == (None, None)
    larder("teams", "set", "acme", "--block", "payment_missing", "--reason", "ask Eve")
    output = larder.json("usage", "acme")
    assert (output["status"], output["block"], output["block_reason"]) == ("enabled", "payment_missing", "ask Eve")
    assert larder.json("usage", "--all")["teams"][0]["block"] == "payment_missing"
    shown = larder("usage", "acme").stdout
    assert "payment_missing" in shown
    assert "ask Eve" in shown


def test_the_chart_shows_cached_and_built_tasks(larder: Larder, cloud: Cloud) -> None:
    reported(cloud.team.id, remote_hits=12, local_hits=6, remote_misses=6, ci="GITHUB_ACTIONS")
    reported(cloud.team.id, 2, remote_hits=6, time_saved_ms=187_200_000)
    shown = larder("usage", cloud.team.id, "--days", "7").stdout
    lines = [line.rstrip() for line in shown.splitlines()]
    days = [(today() - timedelta(days=ago)).isoformat() for ago in range(7)]
    assert lines == [
        f"acme, {days[6]} to {days[0]} (UTC)", "", "tasks        30", "hits         80%", "time saved   2 d 4 h",
        "uploads      0, 0 B", "stored       0 artifacts, 0 B of 100.0 GB", "status       enabled", "",
        "day          tasks                         hits   time saved   uploaded",
        "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 71,
        f"{days[2]}   {CACHED * 6} 6                      100%      2 d 4 h        0 B",
        f"{days[1]}   -                             -           0.0 s        0 B",
        f"{days[0]}   {CACHED * 12}{LOCAL * 6}{BUILT * 6} 24   75%         0.0 s        0 B",
        f"{CACHED} 18 from this cache   {LOCAL} 6 from a local one   {BUILT} 6 built", "",
        "ci               tasks   hits   time saved", "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 42,
        "GITHUB_ACTIONS      24   75%         0.0 s", "no CI                6   100%      2 d 4 h",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("days", "title", "rows"), [(31, "day ", 31), (32, "week of", 5), (182, "week of", 26), (183, "month", 6)]
)
def test_a_long_period_is_shown_by_week_or_month(
    larder: Larder, cloud: Cloud, days: int, title: str, rows: int
) -> None:
    for ago in range(0, days, 5):
        reported(cloud.team.id, ago, remote_hits=1 + ago)
    reported(cloud.team.id, days - 1, remote_hits=1)
    lines = larder("usage", "acme", "--days", str(days)).stdout.splitlines()
    top = next(number for number, line in enumerate(lines) if "uploaded" in line)
    end = next(number for number, line in enumerate(lines) if "from this cache" in line)
    assert lines[top].startswith(title)
    # The period may start and end in the middle of a week or a month.
    assert end - top - 2 in (rows, rows + 1)
    drawn = [int(line.split()[2].replace(",", "")) for line in lines[top + 2 : end] if CACHED in line]
    assert sum(drawn) == larder.json("usage", "acme", "--days", str(days))["total"]["hits"]


@pytest.mark.parametrize("command", [("usage", "acme"), ("usage", "--all")])
def test_the_largest_figures_fit_80_columns(larder: Larder, cloud: Cloud, command: tuple[str, ...]) -> None:
    for ci in ("GITHUB_ACTIONS", "GOOGLE_CLOUD_BUILD", None):
        reported(
            cloud.team.id, ci=ci, remote_hits=999_999, local_hits=999_999, remote_misses=999_999, time_saved_ms=10**12
        )
    set_uploads(cloud.team.id, today(), Uploads(count=10**6, size_bytes=10**15))
    shown = larder(*command).stdout
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80
    assert "\x1b" not in shown


def test_without_utf_8_the_chart_uses_ascii(larder: Larder, cloud: Cloud) -> None:
    reported(cloud.team.id, remote_hits=12, local_hits=6, remote_misses=6)
    shown = larder("usage", "acme", charset="ascii").stdout
    assert f"{'#' * 12}{'+' * 6}{'.' * 6} 24" in shown
    assert "# 12 from this cache   + 6 from a local one   . 6 built" in shown
    assert shown.isascii()


def test_all_teams_with_their_sum(larder: Larder, cloud: Cloud) -> None:
    for number, slug in enumerate(("busy", "idle")):
        other = create_team("Other", slug, owner_user_id=cloud.user.id, now=clock.now())
        if not number:
            reported(other.id, remote_hits=60, remote_misses=40, ci="GITLAB")
    reported(cloud.team.id, remote_hits=10, ci="GITLAB")
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    shown = larder("usage", "--all", "--days", "2").stdout
    assert shown.startswith("3 teams, ")
    assert [line.split()[0] for line in shown.splitlines()[10:13]] == ["busy", "acme", "idle"]
    assert "tasks        110" in shown
    assert "GITLAB     110   64%" in shown
    output = larder.json("usage", "--all", "--days", "2")
    assert (output["total"]["hits"], output["stored_bytes"], output["artifacts"]) == (70, 5, 1)
    assert [(team["team"], team["total"]["hits"]) for team in output["teams"]] == [
        ("acme", 10),
        ("busy", 60),
        ("idle", 0),
    ]
    assert output["ci"][0]["hits"] == 70
    assert "days" not in output["teams"][0]


def test_no_teams_at_all(larder: Larder) -> None:
    shown = larder("usage", "--all").stdout
    assert "0 teams" in shown
    assert "larder teams create" in shown
    assert larder.json("usage", "--all")["teams"] == []


def test_a_team_without_reports(larder: Larder, cloud: Cloud) -> None:
    shown = larder("usage", "acme", "--days", "7").stdout
    assert shown.endswith("\nno client has reported usage in the last 7 days\n")
    assert "status       enabled" in shown


def test_invalid_arguments_are_rejected(larder: Larder, cloud: Cloud) -> None:
    assert "there is no team nobody" in larder.refusal("usage", "nobody")
    assert "'--days'" in larder.refusal("usage", "acme", "--days", "0", status=2)
    for which in ((), ("acme", "--all")):
        refusal = larder.refusal("usage", *which, status=2)
        assert "give a TEAM, an EMAIL or --all" in refusal


@pytest.mark.usefixtures("refusing")
def test_an_address_shows_usage_without_a_team(larder: Larder, cloud: Cloud, personal: Sender) -> None:
    assert personal("PUT", "/v8/artifacts/abc", body=b"12345").status == 202
    reported(cloud.user.id, remote_hits=3)
    reported(cloud.team.id, remote_hits=50)
    larder("users", "set", "ada@acme.example", "--quota", "5")
    output = larder.json("usage", "ADA@acme.example", "--days", "1")
    assert (output["team"], output["email"], output["id"]) == (None, "ada@acme.example", cloud.user.id)
    assert (output["total"]["hits"], output["stored_bytes"], output["quota_bytes"]) == (3, 5, 5)
    assert output["status"] == "over_limit"
    shown = larder("usage", "ada@acme.example").stdout
    assert shown.startswith("ada@acme.example, ")
    assert "1 artifact, 5 B of 5 B" in shown
    assert "there is no user bob@acme.example" in larder.refusal("usage", "bob@acme.example")
