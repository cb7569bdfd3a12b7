"""`make growth`: the arithmetic, the limits, and the tables in docs/growth.md."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from larder.deadline import MARGIN_MS
from local.template import load_template
from tests.cli.conftest import PARAMETERS, TEMPLATE
from tests.tools.test_cost import cells, run
from tools.cost.bill import Book, read_book
from tools.growth.command import growth
from tools.growth.loads import Company, Limits, loads, rates, read_limits

ROOT = Path(__file__).resolve().parents[2]
COMPANY = Company()


@pytest.fixture(scope="module")
def book() -> Book:
    return read_book()


@pytest.fixture(scope="module")
def limits() -> Limits:
    return read_limits()


def test_the_company_stores_the_documented_amount() -> None:
    team = COMPANY.team
    assert team.stored_artifacts == pytest.approx(10_000_000, rel=0.001)


def test_the_peak_counts_requests_to_the_api(book: Book) -> None:
    by_kind = rates(COMPANY, book)
    api = [kind for kind, uses in book.uses["requests"].items() if uses.get("api")]
    assert sum(by_kind[kind] for kind in api) == pytest.approx(2_000)
    # S3 sends its event with each upload. Artifacts expire evenly, a month later.
    assert by_kind["commit"] == by_kind["offer"]
    assert by_kind["expiry"] == pytest.approx(10_000_000 / 30 / 24 / 3600)


def test_loads_match_a_manual_calculation(limits: Limits, book: Book) -> None:
    by_kind = rates(COMPANY, book)
    found = {load.bound.name: load.amount for load in loads(COMPANY, limits, book)}
    with_a_key = sum(by_kind[kind] for kind in by_kind if kind in limits.takes["one_key"])
    assert found[limits.bounds["one_key"].name] == pytest.approx(0.8 * with_a_key)
    assert with_a_key == pytest.approx(2_000 - by_kind["announcement"])
    at_once = sum(
        rate * book.uses["requests"][kind].get("milliseconds", 0) / 1000
        for kind, rate in by_kind.items()
    )
    assert found[limits.bounds["functions_at_once"].name] == pytest.approx(at_once)
    assert found[limits.bounds["sweep"].name] == pytest.approx(10_000_000 / 30 / 24)
    lookups = by_kind["small_hit"] + by_kind["redirected_hit"] + by_kind["miss"]
    uploads, expiries, builds = by_kind["offer"], by_kind["expiry"], by_kind["status"]
    # Entries of indexes are in partitions of their own.
    writes = uploads * (1 + 7) + expiries * 6
    assert found[limits.bounds["partition_writes"].name] == pytest.approx(writes)
    reads = lookups * 2 + uploads * (3 + 3) + expiries * 4 + builds
    assert found[limits.bounds["partition_reads"].name] == pytest.approx(reads)


def test_limits_are_listed_in_the_order_they_are_reached(limits: Limits, book: Book) -> None:
    found = loads(COMPANY, limits, book)
    shares = [load.share for load in found]
    assert shares == sorted(shares, reverse=True)
    assert {load.bound for load in found} == set(limits.bounds.values())
    for load in found:
        grown = Company(
            engineers=round(COMPANY.engineers / load.share),
            artifacts=round(COMPANY.artifacts / load.share),
            peak=load.reached_at,
        )
        share = {one.bound: one.share for one in loads(grown, limits, book)}[load.bound]
        assert share == pytest.approx(1, rel=0.02)


def test_options_match_the_template(limits: Limits) -> None:
    assert limits.bounds["throttling_rate"].most == int(PARAMETERS["ThrottlingRate"])
    assert limits.bounds["table_writes"].most == int(PARAMETERS["TableWriteUnits"])
    assert limits.bounds["table_reads"].most == int(PARAMETERS["TableReadUnits"])
    sweep = next(
        one for one in load_template(environ={}).functions if one.logical_id == "SweepArtifacts"
    )
    assert limits.sweep["seconds"] == sweep.timeout_s - MARGIN_MS / 1000
    a_run = limits.sweep["seconds"] * 1000 / limits.sweep["milliseconds"]
    assert limits.bounds["sweep"].most == pytest.approx(a_run, rel=0.01)
    summed = limits.sweep["seconds"] * 1e6 / limits.sweep["summed_microseconds"]
    assert limits.bounds["totals_check"].most == pytest.approx(summed, rel=0.01)
    assert "rate(1 hour)" in json.dumps(TEMPLATE["Resources"]["SweepArtifacts"])


def test_the_use_of_tables_matches_the_cost(limits: Limits, book: Book) -> None:
    """Tables, indexes and hot items add up to the reads and writes that `make cost` uses."""
    takes = limits.takes
    for kind, uses in book.uses["requests"].items():

        def taken(*parts: str, kind: str = kind) -> float:
            return sum(takes[part].get(kind, 0) for part in parts)

        for what in ("reads", "writes"):
            everywhere = [part for part in takes if part.endswith(f"_{what}")]
            assert taken(*everywhere) == uses.get(what, 0)
        assert taken("one_key") == taken("keys_reads") == taken("identity_reads")


def test_the_partition_of_one_team_is_smaller_than_a_table(limits: Limits, book: Book) -> None:
    found = {load.bound.name: load for load in loads(COMPANY, limits, book)}
    for what, a_second in (("writes", 1_000), ("reads", 3_000)):
        partition = found[limits.bounds[f"partition_{what}"].name]
        assert partition.bound.most == a_second
        assert partition.amount == found[limits.bounds[f"table_{what}"].name].amount


def test_every_limit_has_a_remedy_and_a_source(limits: Limits) -> None:
    text = (ROOT / "tools" / "growth" / "limits.toml").read_text()
    assert {bound.kind for bound in limits.bounds.values()} == {
        "option",
        "quota",
        "fixed",
        "design",
    }
    assert all(bound.then for bound in limits.bounds.values())
    named = [
        name for name in tomllib.loads(text)["bounds"] if f"[bounds.{name}]\n# https://" in text
    ]
    assert len(named) >= 7
    assert text.count("https://docs.aws.amazon.com/") == len(named)


def test_the_documentation_has_the_output_of_the_command() -> None:
    documented = (ROOT / "docs" / "growth.md").read_text()
    table = documented.partition("<!-- make growth -->")[2].partition("<!-- end -->")[0]
    report = json.loads(run(growth, "--json"))
    expected = [
        [
            one["limit"],
            one["kind"],
            f"{one['used']:,.0f}",
            f"{one['of']:,.0f} {one['unit']}",
            f"{100 * one['share']:,.0f} %",
            f"{one['reached_at_requests_per_second']:,}",
        ]
        for one in report["limits"]
    ]
    assert cells(table)[1:] == expected


def test_the_documentation_has_a_remedy_for_each_limit(limits: Limits) -> None:
    documented = " ".join((ROOT / "docs" / "growth.md").read_text().split())
    for bound in limits.bounds.values():
        if bound.kind in ("option", "design"):
            assert bound.name in documented


def test_a_row_for_each_limit() -> None:
    shown = run(growth)
    assert re.search(r"ThrottlingRate of the stack\s+2,000\s+2,000 ", shown)
    assert "At 2,000 requests per second" in shown
    assert max(map(len, shown.splitlines())) <= 126


def test_a_small_company_is_far_from_every_limit(limits: Limits, book: Book) -> None:
    small = Company(engineers=50, artifacts=90_000, peak=50, busiest_key=1)
    assert max(load.share for load in loads(small, limits, book)) < 0.3


@pytest.mark.parametrize(
    "options",
    [("--peak", "100"), ("--busiest-key", "5"), ("--hits", "50"), ("--artifacts", "1000000")],
)
def test_options_change_the_estimate(options: tuple[str, str]) -> None:
    usual = json.loads(run(growth, "--json"))
    assert json.loads(run(growth, "--json", *options)) != usual
