"""Runs that CI jobs report with their tokens."""

from tests.functions.teams.people import outcome
from tests.functions.usage.test_delete_runs import delete, place, report, runs
from tests.trust.conftest import Trusting


def test_a_job_cannot_delete_the_runs_of_other_jobs_of_its_rule(trusting: Trusting) -> None:
    main, pull = (trusting.token(), trusting.token(event_name="pull_request", ref="refs/pull/7/merge"))
    report(main, "main")
    report(pull, "pull")
    found = runs(trusting.cloud)
    for query in (place(found["main"]), f"reporter={trusting.rule.id}"):
        assert outcome(pull("DELETE", f"/v1/runs?{query}")) == (403, "missing_role")
    assert delete(pull, place(found["pull"]))["deleted"] == 1
    assert runs(trusting.cloud).keys() == {"main"}
