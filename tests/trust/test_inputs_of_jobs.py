"""Which runs a pull request can be compared with, and who is compared with its runs."""

import pytest

from larder.settings import settings
from larder.why import service
from tests.conftest import SetOption
from tests.functions.usage.reports import (
    BRANCH,
    LIB,
    LIB_2,
    MAIN,
    UI,
    UI_2,
    ask,
    causes,
    keep,
    later,
    objects,
    report,
    send,
)
from tests.functions.usage.test_same_hash import LOCAL, REMOTE, looked_up, reason
from tests.requests import Reply, Sender
from tests.trust.conftest import Trusting
from tests.trust.scene import Scene


def baseline(reply: Reply) -> str | None:
    causes = reply.json["causes"]
    return None if causes is None else str(causes["baseline"]["id"])


def reported(sender: Sender, body: dict[str, object]) -> str:
    assert send(sender, body).json["recorded"]
    return str(body["id"])


def test_a_pull_request_is_never_the_baseline_of_main_or_a_laptop(scene: Scene) -> None:
    keep(scene.cloud)
    main = reported(scene.main, report(LIB))
    with later():
        pull = reported(scene.pr, report(LIB_2, sha=BRANCH))
    with later(2):
        body = report(LIB_2, sha="c" * 40, ancestors=(BRANCH, MAIN))
        assert baseline(ask(scene.main, body)) == main
        assert baseline(ask(scene.laptop, body, ci=False)) == main
        assert baseline(ask(scene.main, body, against=pull)) is None
        assert baseline(ask(scene.laptop, body, ci=False, against=pull)) is None


def test_a_pull_request_reads_the_shared_scope_and_its_own(scene: Scene) -> None:
    keep(scene.cloud)
    main = reported(scene.main, report(LIB))
    with later():
        other = reported(scene.other_pr, report(LIB_2, UI, sha=BRANCH, branch="secret-plan"))
    with later(2):
        body = report(LIB_2, sha="c" * 40, ancestors=(BRANCH, MAIN))
        assert baseline(ask(scene.pr, body)) == main
        reply = ask(scene.pr, body, against=other)
        assert reply.json == {"causes": None, "missing": "no_baseline"}
    with later(3):
        own = reported(scene.pr, report(LIB_2, sha=BRANCH))
    with later(4):
        body = report(LIB_2, sha="c" * 40, ancestors=(BRANCH, MAIN))
        assert baseline(ask(scene.pr, body)) == own


def test_each_scope_has_a_folder_of_its_own(scene: Scene) -> None:
    keep(scene.cloud)
    for sender in (scene.main, scene.pr, scene.laptop):
        reported(sender, report(LIB))
    folders = [key.split("/")[2] for key in objects()]
    assert len(set(folders)) == 3
    assert "shared" in folders


def test_a_job_that_only_reads_reports_and_is_never_a_baseline(trusting: Trusting) -> None:
    keep(trusting.cloud)
    main = trusting.token()
    reads = Sender(trusting.exchange(scope="artifacts:read").json["access_token"])
    first = reported(main, report(LIB))
    with later():
        reply = send(reads, report(LIB_2))
        assert (reply.json["recorded"], baseline(reply)) == (True, first)
    assert len(objects()) == 1
    with later(2):
        assert baseline(ask(main, report(LIB_2))) == first


def test_what_a_job_that_only_reads_built_was_refused(trusting: Trusting) -> None:
    keep(trusting.cloud)
    main = trusting.token()
    send(main, report(UI))
    reads = Sender(trusting.exchange(scope="artifacts:read").json["access_token"])
    with later():
        send(reads, report(LIB))
    with later(2):
        looked_up(main, LOCAL, REMOTE)
        (found,) = send(main, report(LIB, UI_2)).json["causes"]["sameHash"]
    assert reason(found) == ("refused", True, ["remote_miss", "read_only"])
    with later(3):
        looked_up(main, LOCAL, REMOTE)
        (found,) = send(main, report(LIB, UI_2 | {"hash": "5" * 16})).json["causes"]["sameHash"]
    assert found["reason"] == "unknown", "the run before could store it"


def test_a_run_of_a_laptop_is_not_trusted(scene: Scene) -> None:
    keep(scene.cloud)
    laptop = report(LIB)
    assert send(scene.laptop, laptop, ci=False).json["recorded"]
    with later():
        assert baseline(ask(scene.laptop, report(LIB_2), ci=False)) == laptop["id"], "there is no other"
        assert baseline(ask(scene.main, report(LIB_2))) is None
        found = ask(scene.laptop, report(LIB_2), ci=False, against="last")
        assert baseline(found) == laptop["id"], "the laptop reads its own scope, if it asks"
        main = reported(scene.main, report(LIB))
    with later(2):
        assert baseline(ask(scene.laptop, report(LIB_2), ci=False)) == main


def test_without_main_and_master_the_branch_of_most_trusted_runs_is_main(scene: Scene) -> None:
    keep(scene.cloud)
    trunk = [reported(scene.main, report(LIB) | {"scm": {"sha": sha, "branch": "trunk"}}) for sha in (MAIN, BRANCH)]
    reported(scene.main, report(LIB) | {"scm": {"sha": MAIN, "branch": "release"}})
    with later():
        assert baseline(ask(scene.laptop, report(LIB_2), ci=False, against="main")) == trunk[-1]


def test_main_is_compared_with_its_last_run_after_many_of_pull_requests(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than are looked through."""
    monkeypatch.setattr(service, "MAX_RUNS", 3)
    keep(scene.cloud)
    main = reported(scene.main, report(LIB))
    for number in range(1, 6):
        with later(number):
            reported(scene.pr, report(LIB_2, sha=BRANCH))
    with later(6):
        assert baseline(ask(scene.main, report(LIB_2))) == main
        assert baseline(send(scene.main, report(LIB_2))) == main


def test_small_reports_of_a_pull_request_leave_main_explained(scene: Scene, option: SetOption) -> None:
    """What the pull request can store of inputs in a day is used up. Main's part is not."""
    option("http_rate_limit_enabled", "true")
    # 40 kB a day for an own scope, and 320 kB for its team.
    option("max_stored_bytes", str(40_000 * 8 * 4 * 20 * settings().run_retention_days))
    keep(scene.cloud)
    assert send(scene.main, report(LIB)).json["recorded"]
    with later():
        missing = [send(scene.pr, report(LIB_2)).json.get("missing") for _ in range(4)]
        assert missing == [None, None, "too_many", "too_many"]
    with later(2):
        reply = send(scene.main, report(LIB_2, sha="c" * 40, ancestors=(MAIN,)))
        assert causes(reply) == [("file", "packages/lib/src/a.js")]
