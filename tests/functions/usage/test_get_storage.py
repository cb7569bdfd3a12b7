"""GET /v1/storage"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.artifacts import sweep
from larder.artifacts.breakdown import MOST_NAMES, OTHERS, Collector
from larder.artifacts.models import UNPROTECTED, ArtifactMetadata, View
from larder.artifacts.records import MOST_PARTS, Origin
from larder.artifacts.repository.checks import read_breakdown
from larder.audit.service import issued
from larder.clock import to_ms
from larder.hashing import random_id
from larder.tables import commit
from larder.teams.teams import delete_team
from larder.why import repository as runs
from larder.why.models import Outcome
from tests.functions.usage.test_list_runs import run
from tests.requests import Cloud, Sender, invoke

DAY = timedelta(days=1)
STORAGE = "/v1/storage"


def store(
    cloud: Cloud,
    hash: str,
    size: int,
    *,
    at: datetime | None = None,
    writer: Actor | None = None,
    ci: str | None = None,
    view: View = UNPROTECTED,
) -> None:
    cloud.store(hash, b"x" * size, ArtifactMetadata(ci=ci), writer=writer or cloud.writer, view=view, now=at)


def storage(manage: Sender) -> Any:
    reply = manage("GET", STORAGE)
    assert reply.status == 200, reply
    return reply.json["storage"]


def check(cloud: Cloud) -> None:
    assert sweep.sweep(now=clock.now()).totals_checked == 1


def test_it_is_null_before_the_first_check(cloud: Cloud, manage: Sender) -> None:
    store(cloud, "a", 1)
    assert manage("GET", STORAGE).json == {"owner": cloud.team.id, "storage": None}


@pytest.mark.usefixtures("refusing")
def test_it_adds_up_by_age_writer_and_ci(cloud: Cloud, manage: Sender) -> None:
    now = clock.now()
    rule = "rule_" + "a" * 27
    store(cloud, "a", 1)
    store(cloud, "b", 10, at=now - 3 * DAY, ci="GITHUB_ACTIONS")
    store(cloud, "c", 100, at=now - 10 * DAY, ci="GITLAB", writer=Actor(random_id(), rule_id=rule))
    store(cloud, "d", 1000, at=now - 10 * DAY, ci="gitlab", writer=Actor(random_id(), rule_id=rule))
    check(cloud)
    found = storage(manage)
    assert to_ms(now) <= found["checkedAt"] <= to_ms(clock.now())
    assert (found["artifacts"], found["storedBytes"], found["scopedBytes"]) == (4, 1111, 0)
    assert [(age["days"], age["storedBytes"]) for age in found["ages"]] == [(1, 1), (7, 10), (30, 1100), (None, 0)]
    # Each job of CI has a key of its own: they count for their rule.
    assert [(writer["writer"], writer["artifacts"]) for writer in found["writers"]] == [(rule, 2), (cloud.key.id, 2)]
    assert [(one["ci"], one["storedBytes"]) for one in found["ci"]] == [
        ("GITLAB", 1100),
        ("GITHUB_ACTIONS", 10),
        (None, 1),
    ]
    assert [one["hash"] for one in found["largest"]] == ["d", "c", "b", "a"]
    assert found["largest"][1]["writer"]["userId"] == rule
    assert found["neverRead"] is None


def test_it_adds_up_by_repository_branch_package_and_task(cloud: Cloud, manage: Sender) -> None:
    token, key = Actor(random_id(), rule_id="rule_" + "a" * 27), cloud.writer
    details = {"team": cloud.team.id, "repository": "acme/web", "ref": "refs/heads/main"}
    assert commit(issued(token.credential_id, token.rule_id or "", token, details))
    built, restored, unreported = (digit * 16 for digit in "123")
    ran = [("web", "build", Outcome.BUILT, 9, built), ("ui", "build", Outcome.REMOTE_HIT, 5, restored)]
    # What a branch built, main restores later.
    for number, branch, outcome in ((0, "main", Outcome.REMOTE_HIT), (9, "fix", Outcome.BUILT)):
        tasks = [(package, task, outcome, ms) for package, task, _, ms, _ in ran]
        one = run(number, *tasks, branch=branch, hashes=[hash for *_, hash in ran])
        assert runs.add(runs.item_of(cloud.team.id, one, expires_at=clock.now() + DAY))
    store(cloud, built, 100, writer=token)
    store(cloud, restored, 10, writer=key)
    store(cloud, unreported, 1, writer=token)
    invoke("artifacts.sweep_artifacts.handler", {})
    found = storage(manage)

    def parts(kind: str) -> dict[str | None, int]:
        return {part["name"]: part["storedBytes"] for part in found[kind]}

    assert parts("repositories") == {"acme/web": 101, None: 10}
    assert parts("branches") == {"fix": 110, "main": 1}
    assert parts("packages") == {"web": 100, "ui": 10, None: 1}
    assert parts("tasks") == {"build": 110, None: 1}


def test_only_the_newest_hashes_of_runs_have_names(
    cloud: Cloud, manage: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many runs are reported, the check has room for them."""
    monkeypatch.setattr("larder.why.origins.MOST_NAMED", 2)
    for number in range(3):
        hash = f"{number + 1}" * 16
        one = run(number, ("web", "build", Outcome.BUILT, 9), branch=f"b{number}", hashes=[hash])
        assert runs.add(runs.item_of(cloud.team.id, one, expires_at=clock.now() + DAY))
        store(cloud, hash, 10**number)
    invoke("artifacts.sweep_artifacts.handler", {})
    named = {part["name"]: part["storedBytes"] for part in storage(manage)["branches"]}
    assert named == {"b0": 1, "b1": 10, None: 100}


def test_many_names_are_added_up_as_others() -> None:
    now = clock.now()
    collector = Collector(now, lambda seen: [Origin(branch=f"b{one.size_bytes}") for one in seen])
    collector.add(
        {"hash": f"a{size}", "size_bytes": size, "created_at": to_ms(now)} for size in range(1, MOST_NAMES + 11)
    )
    rest = Collector(now)
    rest.unpack(collector.packed())
    first, second, *_ = rest.breakdown().origins["branch"]
    assert (first.name, first.stored.artifacts) == (OTHERS, 10)
    assert (second.name, second.stored.artifacts) == (f"b{MOST_NAMES}", 1)


def test_own_scopes_are_named(cloud: Cloud, manage: Sender) -> None:
    scope = f"k{random_id()}"
    store(cloud, "a", 10, view=View(scope=scope))
    store(cloud, "a", 1)
    check(cloud)
    found = storage(manage)
    assert (found["storedBytes"], found["scopedBytes"]) == (11, 10)
    assert [writer["scopedBytes"] for writer in found["writers"]] == [10]
    assert [(one["hash"], one["scope"]) for one in found["largest"]] == [("a", scope), ("a", "shared")]


def test_what_no_one_has_read(cloud: Cloud, manage: Sender) -> None:
    store(cloud, "a", 1, at=clock.now() - 2 * DAY)
    store(cloud, "b", 10, at=clock.now() - 2 * DAY)
    assert cloud.send("HEAD", "/v8/artifacts/a").status == 200
    check(cloud)
    assert storage(manage)["neverRead"] == {"artifacts": 1, "storedBytes": 10, "scopedBytes": 0}


def test_only_the_largest_parts_and_artifacts_are_kept() -> None:
    now = clock.now()
    collector = Collector(now)
    sizes = [*range(1, MOST_PARTS + 3)]
    for size in sizes[::2] + sizes[1::2]:
        item = {"hash": f"a{size}", "size_bytes": size, "created_at": to_ms(now), "writer": f"key{size}"}
        collector.add([{**item, "ci": f"CI{size}"}])
    rest = Collector(now)
    rest.unpack(collector.packed())
    assert rest.breakdown() == collector.breakdown(), "a check that goes on in another call"
    found = collector.breakdown()
    kept = sizes[:1:-1]
    assert found.stored.artifacts == len(sizes)
    assert [one.size_bytes for one in found.largest] == kept
    assert [part.name for part in found.writers] == [f"key{size}" for size in kept]
    assert [part.name for part in found.vendors] == [f"CI{size}" for size in kept]


def test_a_user_sees_what_they_store_without_a_team(cloud: Cloud) -> None:
    session = Sender(start_session(cloud.user, now=clock.now())[1])
    assert session("PUT", "/v8/artifacts/a", body=b"1").status == 202
    check(cloud)
    assert session("GET", STORAGE).json["storage"]["artifacts"] == 1


def test_it_is_deleted_with_the_team(cloud: Cloud) -> None:
    store(cloud, "a", 1)
    check(cloud)
    assert read_breakdown(cloud.team.id) is not None
    delete_team(cloud.team.id, by=None, now=clock.now())
    invoke("teams.sweep_deleted_teams.handler", {})
    assert read_breakdown(cloud.team.id) is None


def test_400_for_an_unknown_parameter(manage: Sender) -> None:
    reply = manage("GET", f"{STORAGE}?by=age")
    assert (reply.status, reply.code) == (400, "bad_request")
