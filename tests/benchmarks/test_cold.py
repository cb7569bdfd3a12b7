"""The figures and reports of `make bench-cold`. tests/build runs its measurement."""

import json
from dataclasses import replace

from tests.catalogue import NAMES
from tools.benchmarks.cold.figures import Figures, Life, Ratios, figures
from tools.benchmarks.cold.report import Run, as_json, as_page, as_table
from tools.benchmarks.cold.samples import EVENTS, make_sample_user, replacements


def life(function: str, init_ms: float = 100.0, **more: object) -> Life:
    """A life with a first call of 10 ms, and CPU times of half the elapsed times."""
    cold_ms = init_ms + 10
    measured = Life(
        function=function,
        memory_mb=512,
        init_ms=init_ms,
        init_cpu_ms=init_ms / 2,
        cold_ms=cold_ms,
        cold_cpu_ms=cold_ms / 2,
        warm_ms=(5.0, 7.0),
        peak_mb=60.0,
        replies=("200", "200", "200"),
    )
    return replace(measured, **more)  # type: ignore[arg-type]


def row(lives: list[Life], function: str) -> Figures:
    (found,) = (figure for figure in figures(lives, bare="bare") if figure.function == function)
    return found


def test_a_row_holds_medians_and_the_largest_peak() -> None:
    lives = [life("a", 100, peak_mb=61.0), life("a", 900), life("a", 120)]
    found = row(lives, "a")
    assert (found.init_ms, found.init_cpu_ms, found.first_ms) == (120, 60, 10)
    assert found.peak_mb == 61
    assert found.replies == {"200": 9}
    assert found.ratios is None
    assert not found.failed


def test_percentiles_are_of_all_warm_calls_together() -> None:
    calls = [float(took_ms) for took_ms in range(100)]
    lives = [life("a", warm_ms=tuple(calls)), life("a", warm_ms=tuple(calls))]
    found = row(lives, "a")
    assert (found.warm_p50_ms, found.warm_p99_ms) == (49, 98)


def test_a_function_is_compared_with_the_bare_ones_before_and_after_it() -> None:
    # Half-way, the machine becomes three times as slow.
    lives = [life("bare", 100), life("a", 150), life("b", 150), life("bare", 100)]
    lives += [life("bare", 300), life("a", 450), life("b", 900), life("bare", 300)]
    assert row(lives, "a").ratios == Ratios(
        init=1.5, init_cpu=1.5, cold=(160 / 110 + 460 / 310) / 2, cold_cpu=(160 / 110 + 460 / 310) / 2
    )
    assert row(lives, "b").ratios is not None
    assert row(lives, "b").ratios.init == (1.5 + 3) / 2  # type: ignore[union-attr]
    assert row(lives, "bare").ratios == Ratios(1, 1, 1, 1)


def test_a_failed_environment_is_reported_but_not_counted() -> None:
    broken = Life("a", 512, replies=("used more than its 512 MB of memory",), failed=True)
    found = row([life("bare"), life("a"), broken, life("bare")], "a")
    assert found.failed
    assert found.init_ms == 100
    assert found.replies == {"200": 3, "used more than its 512 MB of memory": 1}


def test_a_function_that_always_fails_still_has_a_row() -> None:
    broken = Life("a", 512, replies=("ended its process (exit status 7)",), failed=True)
    found = row([life("bare"), broken], "a")
    assert (found.init_ms, found.ratios, found.failed) == (0, None, True)
    assert "ended its process (exit status 7)" in as_table(run([life("bare"), broken]))


def run(lives: list[Life]) -> Run:
    return Run(figures(lives, bare="bare"), 1, 2, {"Python": "3.13", "boto3": "1.43.0"})


def test_the_table_has_a_line_for_each_function() -> None:
    table = as_table(run([life("bare", 100), life("put_artifact", 150), life("bare", 100)]))
    heading, bare, put, _, report = table.splitlines()
    assert heading.split()[:3] == ["function", "init", "ms"]
    assert bare.split()[:3] == ["bare", "100", "1.00"]
    assert put.split()[:5] == ["put_artifact", "150", "1.50", "75", "1.50"]
    assert put.endswith("3 x 200")
    assert report.endswith("Run on Python 3.13, boto3 1.43.0.")


def test_the_page_has_the_main_columns_of_the_table_in_markdown() -> None:
    page = as_page(run([life("bare"), life("put_artifact", 150), life("bare")]))
    heading, _, _, put = (line for line in page.splitlines() if line.startswith("| "))
    assert heading == "| function | init ms | first ms | both x | warm p50 | peak MB |"
    assert put.startswith("| put_artifact | 150 | 10 | ")
    assert "Run on Python 3.13, boto3 1.43.0." in page


def test_the_page_counts_the_replies_that_are_no_success() -> None:
    refused = life("a", replies=("200", "done", "302", "404", "404"))
    page = as_page(run([life("bare"), refused, life("bare")]))
    assert "\n| a (2 x 404) | " in page


def test_the_page_has_the_range_of_the_functions_of_other_folders() -> None:
    lives = [life("bare"), life("get_team", 150), life("list_teams", 90), life("bare")]
    page = as_page(run(lives))
    assert "\n| teams, 2 functions | 90 to 150 | 10 to 10 | 0.91 to 1.45 | 5.0 to 5.0 | 60 to 60 |" in page
    assert "get_team" not in page


def test_the_json_contains_every_figure() -> None:
    report = json.loads(as_json(run([life("bare"), life("put_artifact", 150), life("bare")])))
    assert report["versions"] == {"Python": "3.13", "boto3": "1.43.0"}
    (put,) = (one for one in report["rows"] if one["function"] == "put_artifact")
    assert put["ratios"]["init"] == 1.5
    assert put["replies"] == {"200": 3}


def test_every_replaced_sample_is_in_an_event(aws_in_memory: None) -> None:
    texts = "".join(path.read_text() for path in EVENTS.iterdir())
    samples = dict(replacements(make_sample_user(has_artifact=False), is_new=False))
    assert [sample for sample in samples if sample not in texts] == []


def test_every_sample_of_the_catalogue_that_must_exist_is_replaced(aws_in_memory: None) -> None:
    samples = dict(replacements(make_sample_user(has_artifact=False), is_new=False))
    exist = {NAMES.key, NAMES.key_id, NAMES.session, NAMES.other_session, NAMES.email}
    assert exist | {NAMES.reset_token, NAMES.verification_token} <= samples.keys()
