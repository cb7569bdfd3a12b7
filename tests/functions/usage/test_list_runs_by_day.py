"""GET /v1/runs?by=day"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.sessions import start_session
from larder.clock import to_epoch_seconds, to_iso_date
from larder.teams.models import Role
from larder.why import repository
from larder.why.models import Outcome, Run
from tests.catalogue import valid
from tests.functions.usage import reports
from tests.functions.usage.test_delete_runs import member
from tests.functions.usage.test_list_runs import run, yesterday
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

LATER = to_epoch_seconds(clock.now() + timedelta(days=400))


def explained(*causes: tuple[str, str, int]) -> Any:
    """An explanation, of which points have only causes that no commit made."""
    return {
        "causes": [
            {"kind": "env", "subject": subject, "task": None, "buildMs": ms, "class": of} for of, subject, ms in causes
        ]
    }


def store(cloud: Cloud, one: Run, explanation: Any = None) -> None:
    assert repository.add_point(cloud.team.id, one, explanation, expires_at=LATER)


def trend(cloud: Cloud, query: str = "", *, sender: Sender | None = None) -> Any:
    sender = sender or Sender(cloud.token, slug="acme")
    reply = sender("GET", f"/v1/runs?by=day{query}")
    assert reply.status == 200, reply.body
    assert (reply.json["runs"], "figures" in reply.json) == ([], False)
    return reply.json["trend"]


def test_a_day_has_durations_hits_and_its_slowest_run(cloud: Cloud) -> None:
    day = timedelta(days=1) / timedelta(minutes=1)
    for number in range(20):
        store(
            cloud,
            run(
                number,
                ("web", "build", Outcome.BUILT, 1_000),
                ("ui", "build", Outcome.REMOTE_HIT, 400),
                started_at=clock.now() - timedelta(minutes=day),
                duration=timedelta(seconds=number + 1),
            ),
        )
    store(cloud, run(99, started_at=clock.now() - timedelta(minutes=day), used_cache=False))
    found = trend(cloud, f"&from={yesterday() - timedelta(days=1)}")
    assert [one["day"] for one in found["days"]] == [
        to_iso_date(yesterday() + timedelta(days=number)) for number in (-1, 0, 1)
    ]
    empty, full, _ = found["days"]
    assert (empty["runs"], empty["medianMs"], empty["p95Ms"], empty["slowest"]) == (0, None, None, None)
    assert (full["runs"], full["unused"], full["medianMs"], full["p95Ms"]) == (20, 1, 10_000, 19_000)
    assert (full["tasks"], full["remoteHits"], full["built"]) == (40, 20, 20)
    assert (full["builtMs"], full["timeSavedMs"]) == (20_000, 8_000)
    assert (full["slowest"]["id"], full["slowest"]["durationMs"]) == ("run19", 20_000)


def test_branches_are_ordered_by_what_they_cost(cloud: Cloud) -> None:
    store(cloud, run(0, ("web", "build", Outcome.BUILT, 9_000), branch="fix", sha="f" * 40))
    store(cloud, run(1, ("web", "build", Outcome.BUILT, 9_000), branch="fix", pull=7))
    store(cloud, run(2, ("web", "build", Outcome.BUILT, 1_000), branch=None))
    found = trend(cloud, f"&from={yesterday()}&branch=fix")
    assert [(one["branch"], one["pull"], one["runs"], one["builtMs"]) for one in found["branches"]] == [
        ("fix", 7, 2, 18_000),
        (None, None, 1, 1_000),
    ]
    assert (found["branches"][0]["last"]["id"], found["branches"][0]["last"]["sha"]) == ("run0", "f" * 40)
    # The days are those of the branch alone.
    assert sum(day["runs"] for day in found["days"]) == 2


def test_a_cause_began_with_the_first_run_that_had_it(cloud: Cloud) -> None:
    always, code = ("setup", "ALWAYS", 100), ("code", "src/a.js", 900)
    store(cloud, run(9), explained(always))
    store(cloud, run(8, sha="8" * 40), explained(("setup", "BUILD_TIME", 500), always))
    store(cloud, run(7), explained(code, always, ("setup", "ONCE", 50)))
    # A run that was not compared says nothing.
    store(cloud, run(6))
    store(cloud, run(5), explained(code, ("setup", "BUILD_TIME", 700), always))
    (begun,) = trend(cloud)["begun"]
    assert (begun["kind"], begun["subject"], begun["runs"], begun["buildMs"]) == ("env", "BUILD_TIME", 2, 1_200)
    assert (begun["first"]["id"], begun["first"]["sha"]) == ("run8", "8" * 40)


def test_causes_of_others_own_scopes_are_hidden_from_members(cloud: Cloud) -> None:
    scope = f"c{'0' * 32}"
    store(cloud, run(3, scope=scope), explained())
    for number in (1, 2):
        store(cloud, run(number, scope=scope), explained(("setup", "SECRET_NAME", 10)))
    owner = Sender(start_session(cloud.user, now=clock.now())[1], slug="acme")
    assert len(trend(cloud, sender=owner)["begun"]) == 1
    found = trend(cloud, sender=member(cloud, Role.MEMBER))
    assert (found["begun"], sum(day["runs"] for day in found["days"])) == ([], 3)


def test_a_report_is_in_the_trend_with_its_causes_and_leaves_it_when_it_is_deleted(
    cloud: Cloud, manage: Sender
) -> None:
    reports.keep(cloud)
    first = reports.report(reports.LIB, reports.UI)
    assert reports.send(cloud.send, first).status == 200
    with reports.later():
        other = reports.report(reports.LIB_2, reports.UI_2, sha=reports.BRANCH, ancestors=(reports.MAIN,))
        other["scm"] |= {"subject": "Fix the login", "author": "Ada", "pullRequest": 12}
        assert reports.send(cloud.send, other).status == 200
        # A repeated report counts once.
        assert reports.send(cloud.send, other).json["recorded"] is False
        (newest, _) = cloud.send("GET", "/v1/runs").json["runs"]
        assert (newest["title"], newest["author"], newest["pull"]) == ("Fix the login", "Ada", 12)
        assert sum(day["runs"] for day in trend(cloud)["days"]) == 2
        place = f"id={newest['id']}&startedAt={newest['startedAt']}"
        assert manage("DELETE", f"/v1/runs?{place}").json["deleted"] == 1
        assert sum(day["runs"] for day in trend(cloud)["days"]) == 1


def test_expired_runs_are_in_no_trend(cloud: Cloud) -> None:
    assert repository.add_point(cloud.team.id, run(), None, expires_at=to_epoch_seconds(clock.now()) - 5)
    assert sum(day["runs"] for day in trend(cloud)["days"]) == 0


def test_a_month_of_many_runs_is_one_page_of_the_table(cloud: Cloud) -> None:
    tasks = [(f"package-{number}", "build", Outcome.BUILT, 1_000) for number in range(100)]
    for number in range(30):
        cause = ("setup", "NEXT_PUBLIC_BUILD_TIME", 100_000)
        store(cloud, run(number, *tasks, sha="a" * 40, branch="feature/login"), explained(cause, cause, cause))
    with counted() as calls:
        found = trend(cloud)
    assert (found["complete"], found["days"][-1]["runs"] + found["days"][-2]["runs"]) == (True, 30)
    # The key and the slug; member and team; the points.
    assert calls.sequential == 3


@pytest.mark.parametrize("query", ["by=week", "by="])
def test_400_for_another_by(cloud: Cloud, query: str) -> None:
    reply = Sender(cloud.token, slug="acme")("GET", f"/v1/runs?{query}")
    assert reply.status == 400
    assert "by: must be day" in reply.message


def test_a_report_of_turbos_own_file_has_no_title(cloud: Cloud) -> None:
    assert cloud.send("POST", "/v1/runs", json_body=valid("POST /v1/runs").json).status == 200
    (shown,) = cloud.send("GET", f"/v1/runs?from={to_iso_date(yesterday() - timedelta(days=20))}").json["runs"]
    assert (shown["title"], shown["author"], shown["pull"]) == (None, None, None)
