"""`make cost`: the arithmetic, the prices, and the table in docs/deploy.md."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from local.template import load_template
from tests.test_template import ALARMS, OPTIONAL_ALARMS, watched
from tools.cost.bill import Book, Team, bill, idle_bill, public_key_dollars, read_book, refused_dollars, warm_dollars
from tools.cost.command import TEAMS, cost
from tools.generate.events import EVENTS

ROOT = Path(__file__).resolve().parents[2]
MILLION = 1_000_000


@pytest.fixture(scope="module")
def book() -> Book:
    return read_book()


def test_the_bill_of_a_team_matches_a_manual_calculation(book: Book) -> None:
    team = Team(engineers=1, tasks_a_day=1000, tasks_a_build=50, hit_share=0.5, small_share=0.5)
    assert team.tasks == 22_000
    assert team.requests == {
        "small_hit": 5_500,
        "redirected_hit": 5_500,
        "miss": 11_000,
        "announcement": 22_440,
        "offer": 11_000,
        "commit": 11_000,
        "upload": 0,
        "expiry": 11_000,
        "status": 440,
        "events": 440,
        "run": 0,
    }
    lines = bill(team, book).lines
    api = 22_000 + 22_440 + 11_000 + 440 + 440
    assert lines["requests to the API"] == pytest.approx(api * 1.00 / MILLION)
    milliseconds = 5_500 * 40 + 5_500 * 25 + 11_000 * 25 + 22_440 * 5 + 11_000 * (30 + 60 + 10) + 440 * (25 + 40)
    functions = (api + 22_000) * 0.20 / MILLION + milliseconds / 1000 * 0.5 * 0.0000133334
    assert lines["functions"] == pytest.approx(functions)
    reads = 11_000 * (6 + 8) + 11_000 * (6 + 5 + 1.5) + 440 * (5 + 4)
    writes = 11_000 * (2 + 15 + 5) + 440 * 4
    stored = 11_000 * 30 / (730 / 24)
    tables = reads * 0.125 / MILLION + writes * 0.625 / MILLION + stored * 1_200 / 1e9 * 0.25
    assert lines["tables"] == pytest.approx(tables)
    bucket = (11_000 * (5 + 5) + (11_000 + 11_000) * 0.40 + 2 * 11_000 * 1.00) / MILLION
    assert lines["requests to the bucket"] == pytest.approx(bucket)
    average = 0.5 * 50_000 + 0.5 * 20_000_000
    assert lines["stored artifacts"] == pytest.approx(stored * average / 1e9 * 0.023)
    log_gb = ((api + 22_000) * 550 + api * 450) / 1e9
    logs = log_gb * (0.50 + 0.03) + 5 * 0.30 * 22 * 8 / 730 + 0.30
    assert lines["logs and metrics"] == pytest.approx(logs)
    assert lines["daily checks"] == pytest.approx(stored * (730 / 24) * 600 / 4096 * 0.125 / MILLION)
    assert lines["point-in-time recovery"] == pytest.approx(0.001 * 0.20)
    assert "traces" not in lines
    traced = bill(replace(team, traced=True), book).lines["traces"]
    assert traced == pytest.approx((api + 11_000 + 2_920) * 5.00 / MILLION)
    assert bill(team, book).traffic == pytest.approx(11_000 * average / 1e9 * 0.09)


def test_many_ci_jobs_make_lookups_by_the_second_and_further_requests_cost_less(book: Book) -> None:
    team = Team(engineers=1, lookups_a_second=1000, preflight=False, small_bytes=1000, small_share=1.0, hit_share=1.0)
    assert team.tasks == 1000 * 10 * 3600 * 22
    requests = team.tasks + 2 * team.tasks / 50
    assert bill(team, book).lines["requests to the API"] == pytest.approx(300 + (requests / MILLION - 300) * 0.9)


def test_an_upload_through_a_function_starts_no_other(book: Book) -> None:
    team = Team(engineers=1, tasks_a_day=1000, hit_share=0.5, small_share=1.0, small_bytes=50_000, preflight=False)
    assert {kind: team.requests[kind] for kind in ("offer", "commit", "upload")} == {
        "offer": 0,
        "commit": 0,
        "upload": 11_000,
    }


def test_renewed_artifacts_are_copied_and_stored_for_longer(book: Book) -> None:
    """A fifth of the artifacts is in use when its retention ends, a fifth of these again, and so on: a quarter."""
    team = Team(engineers=1, tasks_a_day=1000, hit_share=0.5)
    renewed = replace(team, renewed_share=0.2)
    assert renewed.renewals == pytest.approx(11_000 / 4)
    before, after = bill(team, book).lines, bill(renewed, book).lines
    assert after["stored artifacts"] == pytest.approx(before["stored artifacts"] * 1.25)
    copies = 11_000 / 4 * (5 + 5 + 0.40 + 1.00) / MILLION
    assert after["requests to the bucket"] - before["requests to the bucket"] == pytest.approx(copies)


def test_small_bodies_are_written_to_and_read_from_the_tables(book: Book) -> None:
    team = Team(engineers=1, tasks_a_day=1000, hit_share=0.5, small_share=0.5)
    larger, held = (bill(replace(team, small_bytes=size), book).lines for size in (32_769, 10_000))
    # 11 write units and 3 read units, of which one is for an absent item; two weeks of a month.
    tables = 5_500 * (11 * 0.625 + 2 * 0.125) / MILLION
    tables += 5_500 * 10_250 / 1e9 * 14 / (730 / 24) * 0.25
    assert held["tables"] - larger["tables"] == pytest.approx(tables)
    # No GET for a hit, and one more for an upload.
    assert held["requests to the bucket"] == pytest.approx(larger["requests to the bucket"])
    through_functions = replace(team, small_bytes=10_000, large_bytes=4_000_000, preflight=False)
    saved = bill(replace(through_functions, small_bytes=32_769), book).lines["requests to the bucket"]
    saved -= bill(through_functions, book).lines["requests to the bucket"]
    assert saved == pytest.approx(5_500 * 0.40 / MILLION)


def test_a_twentieth_of_many_requests_is_traced(book: Book) -> None:
    few, many = (bill(Team(engineers=n, traced=True), book).lines["traces"] for n in (1_000, 2_000))
    tasks = Team(engineers=1_000).tasks
    builds, uploads = tasks / 50, tasks * 0.1
    # GET, OPTIONS and commits exceed one a second for both teams. Status and events do so only for the larger team.
    grown = 0.05 * (tasks + tasks + builds + uploads + uploads)
    assert many - few >= grown * 5 / MILLION
    assert many - few <= (grown + 2 * builds) * 5 / MILLION


def test_warm_instances_cost_the_same_with_and_without_builds(book: Book) -> None:
    calls, runs = 3 * 10 + 4, 8_760
    gb_seconds = runs * (900 + calls * 62) / 1000 * 0.5
    dollars = runs * (1 + calls) * 0.20 / MILLION + gb_seconds * 0.0000133334 + runs * 550 / 1e9 * 0.50
    assert warm_dollars(10, book) == pytest.approx(dollars)
    shown = json.loads(CliRunner().invoke(cost, ["--warm", "10", "--json"]).output)["dollars_a_month"]
    assert [one["warm instances"] for one in shown.values()] == [pytest.approx(dollars)] * len(shown)
    for page in ("deploy.md", "configuration.md", "decisions/warm-instances.md"):
        assert f"${dollars:.2f} a month" in (ROOT / "docs" / page).read_text()
    uses = book.uses["warm"]
    functions = EVENTS["keep_warm"]["functions"]
    assert (uses["many"], uses["one"]) == (len(functions["many"]), len(functions["one"]))


def test_an_upload_without_preflight_is_a_request_for_each_512_kb(book: Book) -> None:
    team = Team(engineers=1, tasks_a_day=1000, hit_share=0.5, small_share=0.5)
    sent = replace(team, small_bytes=524_288, large_bytes=4_500_000, preflight=False)
    assert sent.requests["announcement"] == 0
    # A GET for each task, one unit for each small upload and nine for each large one, two requests for each build.
    api = 22_000 + 5_500 * 1 + 5_500 * 9 + 2 * 440
    assert bill(sent, book).lines["requests to the API"] == pytest.approx(api / MILLION)


def test_the_edge_costs_uploads_and_requests_and_carries_downloads(book: Book) -> None:
    team = Team(engineers=1, tasks_a_day=1000, hit_share=0.5, small_share=0.5)
    plain, edged = bill(team, book), bill(replace(team, edge="all"), book)
    uploads, downloads, average = 11_000, 5_500, 0.5 * 50_000 + 0.5 * 20_000_000
    requests = uploads + downloads
    uploaded = uploads * average / 1e9 * 0.02
    each = 1.00 / MILLION + 2 * 0.10 / MILLION + 0.03 / MILLION
    extra = edged.lines.pop("the edge, without downloads")
    assert extra == pytest.approx(uploaded + requests * each)
    assert edged.lines == plain.lines
    # Redirected hits leave AWS by the edge, small ones by the API.
    saved = downloads * 20_000_000 / 1e9 * (0.09 - 0.085)
    assert plain.traffic - edged.traffic == pytest.approx(saved)
    tagged = bill(replace(team, edge="tagged"), book)
    assert tagged.traffic == plain.traffic
    assert tagged.lines["the edge, without downloads"] == pytest.approx(uploaded + uploads * each)
    signed = replace(team, edge="tagged", signed_share=1.0)
    assert bill(signed, book).traffic == pytest.approx(edged.traffic)
    without = replace(team, edge="all", preflight=False, large_bytes=4_000_000)
    assert without.edge_uploads == 0


def test_own_scopes_and_tokens_of_ci_add_to_the_tables(book: Book) -> None:
    team = Team(engineers=1, tasks_a_day=1000)
    plain = bill(team, book)
    scoped = bill(replace(team, untrusted_share=0.5), book)
    assert scoped.total - plain.total == pytest.approx(11_000 * 2 * 0.125 / MILLION)
    jobs = bill(replace(team, jobs_a_day=10), book)
    tables = jobs.lines["tables"] - plain.lines["tables"]
    assert tables == pytest.approx(220 * (24 * 0.625 + 4.25 * 0.125) / MILLION)
    assert jobs.total > plain.total + tables


def test_the_idle_cost_follows_from_the_template(book: Book) -> None:
    idle = book.uses["while_idle"]
    always = [name for name in ALARMS if name not in OPTIONAL_ALARMS]
    assert idle["alarm_metrics"] == sum(len(watched(ALARMS[name])) for name in always)
    template = load_template(environ={})
    assert idle["runs_a_month"] == 730 * len(template.schedules)
    assert {function.memory_mb for function in template.functions} >= {512}
    assert book.uses["each_invocation"]["memory_gb"] == 512 / 1024
    lines = idle_bill(book).lines
    assert (lines["signing secret"], round(lines["alarms"], 2)) == (0.40, 1.00)
    assert lines["hourly runs"] < 0.10


def test_every_price_is_used_and_has_its_source(book: Book) -> None:
    text = (ROOT / "tools" / "cost" / "prices.toml").read_text()
    source = (ROOT / "tools" / "cost" / "bill.py").read_text()
    for name in book.prices:
        assert f'"{name}"' in source
    prices = text.partition("[prices]")[2].partition("\n\n")[0]
    blocks = re.split(r"^# ", prices.strip(), flags=re.MULTILINE)[1:]
    assert all(block.startswith("https://aws.amazon.com/") for block in blocks)
    assert len(tomllib.loads(text)["prices"]) == len(book.prices)


def test_requests_use_known_kinds_of_resources(book: Book) -> None:
    assert book.uses["requests"].keys() == Team(engineers=1).requests.keys()
    known = {"api", "milliseconds", "reads", "writes", "s3_lists", "s3_puts", "s3_gets", "s3_events"}
    assert {name for request in book.uses["requests"].values() for name in request} == known


def run(command: click.Command, *options: str) -> str:
    """The output of the command."""
    result = CliRunner().invoke(command, options)
    assert result.exit_code == 0, result.output
    return result.stdout


def cells(text: str) -> list[list[str]]:
    """The cells of a table in the terminal or in Markdown."""
    rows = [re.split(r"\s{2,}|\s*\|\s*", line.strip().strip("|").strip()) for line in text.splitlines()]
    return [row for row in rows if row != [""] and not set("".join(row)) <= set("─-: ")]


def test_the_documentation_has_the_output_of_the_command() -> None:
    documented = (ROOT / "docs" / "deploy.md").read_text()
    table = documented.partition("<!-- make cost -->")[2].partition("<!-- end -->")[0]
    *shown, note = run(cost).splitlines()
    assert "us-east-1" in note
    by_command = json.loads(run(cost, "--json"))["dollars_a_month"]
    rows = {row[0]: row[1:] for row in cells(table)}
    header = ["dollars a month", *by_command]
    assert [cell for row in cells(table)[:1] for cell in row] == header
    for line in next(reversed(by_command.values())):
        label = {"traffic": "traffic out of AWS, not in the total"}.get(line, line)
        amounts = [one.get(line) for one in by_command.values()]
        expected = [f"{amount:,.2f}" for amount in amounts if amount]
        assert [cell for cell in rows[label] if cell] == expected
        assert any(label in text for text in shown)


def test_the_readme_has_the_price_of_a_team_of_twenty_and_of_an_idle_deployment(book: Book) -> None:
    total, idle = bill(Team(engineers=20), book).total, idle_bill(book).lines
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"A team of twenty pays about ${total:.0f} a month" in readme
    assert f"${idle['signing secret']:.2f} a month and storage when idle" in readme


def test_options_change_the_estimate() -> None:
    def total(*options: str) -> float:
        report = json.loads(run(cost, "--engineers", "20", "--json", *options))
        return float(report["dollars_a_month"]["20 engineers"]["total"])

    usual = total()
    assert total("--tasks", "100") < usual
    assert total("--hits", "99") < usual
    assert total("--large", "1MB") < usual
    assert total("--traces") > usual
    assert total("--large", "1MB", "--no-preflight") < total("--large", "1MB")
    assert total("--large", "1MB", "--hits", "50") > total("--large", "1MB")


def test_artifacts_that_no_function_takes_need_preflight() -> None:
    refused = CliRunner().invoke(cost, ["--no-preflight"])
    assert refused.exit_code == 2
    assert "Set --large to 4.5MB or less" in refused.stderr


def test_several_teams_are_shown_in_columns() -> None:
    shown = run(cost, "--engineers", "7", "--engineers", "70")
    assert re.search(r"idle\s+7 engineers\s+70 engineers", shown)
    assert TEAMS == (5, 50, 500)


@pytest.mark.parametrize("what", ["reads", "writes"])
def test_requests_cost_the_units_that_they_take_of_each_table(what: str) -> None:
    """tests/proofs/capacity.toml has them, which `make capacity` measures."""
    file = Path(__file__).parents[1] / "proofs" / "capacity.toml"
    tables = [units for name, units in tomllib.loads(file.read_text()).items() if name.endswith(what)]
    for kind, uses in read_book().uses["requests"].items():
        assert sum(units.get(kind, 0) for units in tables) == uses.get(what, 0), kind


def test_a_public_read_key_costs_at_most_what_the_documentation_says(book: Book) -> None:
    most, refused = public_key_dollars(50_000, 5_000_000_000, book), refused_dollars(MILLION, book)
    # A miss: the API, the function, 10 reads and the logs.
    assert refused == pytest.approx(1.00 + 0.20 + 25_000 * 0.5 * 0.0000133334 + 10 * 0.125 + 1_000 * 0.50 / 1000)
    traffic = 5 * 0.09 * 730 / 24
    assert traffic < most < traffic + 7
    page = (ROOT / "docs" / "trust.md").read_text()
    found = re.search(r"at most \$(\d+) a month.*?\$([\d.]+) a million", page, re.DOTALL)
    assert found is not None
    assert (round(most), round(refused, 2)) == (int(found[1]), float(found[2]))
    shown = CliRunner().invoke(cost, ["--daily-requests", "50000", "--daily-size", "5GB"])
    assert f"at most ${most:.2f} a month" in shown.output
    refusal = CliRunner().invoke(cost, ["--daily-size", "5GB"])
    assert "belong together" in refusal.output
