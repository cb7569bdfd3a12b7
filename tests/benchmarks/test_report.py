"""The page that `make bench` writes."""

from dataclasses import replace

from benchmarks.figures import Alone, Compared, Life, Memory, SameRole
from benchmarks.handler_cpu import HandlerCpu
from benchmarks.report import Run, page, summary
from benchmarks.servers import ACCOUNTS_PEER, CACHE_PEER

HEAD = Compared(
    case="HEAD",
    clients=16,
    peer=CACHE_PEER,
    rate=0.5,
    rate_least=0.4,
    rate_most=0.6,
    p99=3.0,
    larder_ms=10.0,
    peer_ms=5.0,
    larder_cpu_ms=4.0,
    peer_cpu_ms=0.25,
)
LIFE = Life(
    init_ms=300.0,
    init_cpu_ms=200.0,
    first_ms=40.0,
    first_cpu_ms=30.0,
    warm_ms=4.0,
    warm_cpu_ms=2.0,
    peak_mb=50.0,
    status=200,
)
PEER_LIFE = replace(LIFE, init_cpu_ms=800.0, first_ms=100.0, warm_ms=2.0, peak_mb=100.0)
RUN = Run(
    rows=[
        HEAD,
        Alone("query of 100", 1, CACHE_PEER, 4.0, 7.5),
        replace(HEAD, case="sign-in", peer=ACCOUNTS_PEER, failures="peer: 1 x status 500"),
    ],
    same_role=[SameRole("PUT 10 KB", ((LIFE, PEER_LIFE),))],
    cpu=[HandlerCpu("HEAD", 1.3, 1.0, ("UpdateItem", "BatchGetItem"))],
    memory=Memory(((0, 300.0), (100, 320.0), (200, 310.0))),
    peaks=[("Larder", "S3", 1, 60.0)],
    versions={"Larder": "1.0.0", ACCOUNTS_PEER: "1.7 on SQLite"},
    environment={"memory": "8 GiB"},
    rounds=3,
    seconds=600,
)


def test_each_peer_has_its_own_table() -> None:
    cache, _, accounts = page(RUN).partition(f"## Comparison with {ACCOUNTS_PEER}")
    assert "| HEAD | 16 | 0.50 | 0.40–0.60 | 3.00 | 10.0 | 5.0 | 4.00 | 0.25 |" in cache  # noqa: RUF001
    assert "| query of 100 (not in the peer) | 1 |  |  |  | 4.0 |  | 7.50 |  |" in cache
    assert "| sign-in (peer: 1 x status 500 with 16 clients) | 16 |" in accounts


def test_a_row_has_the_figures_for_each_number_of_clients() -> None:
    rows = [HEAD, replace(HEAD, clients=64, rate=0.25, p99=2.5, failures="1 x status 500")]
    (row,) = (
        one for one in page(replace(RUN, rows=rows)).splitlines() if one.startswith("| HEAD (")
    )
    assert row.startswith("| HEAD (1 x status 500 with 64 clients) | 16, 64 | 0.50, 0.25 |")
    assert "| 0.40–0.60, 0.40–0.60 | 3.00, 2.50 |" in row  # noqa: RUF001


def test_the_page_shows_handlers_memory_and_the_environment() -> None:
    text = page(RUN)
    assert "| HEAD | 1.30 | 1.30 | 1.00 | UpdateItem, BatchGetItem |" in text
    assert "used 300 MB at the start and 320 MB at most" in text
    assert "the peak of the second half changed by -10 MB" in text
    assert "memory 8 GiB" in text
    assert "tables in SQLite" in text


def test_functions_are_compared_with_the_peers_own_function() -> None:
    row = (
        "| PUT 10 KB | 0.25 | 200 / 800 | 0.40 | 40 / 100 | 1.00 | 1.00–1.00 | 2.0 / 2.0 |"  # noqa: RUF001
        " 2.00 | 4.0 / 2.0 | 50 / 100 |"
    )
    assert row in page(RUN)
    assert row in summary(RUN)


def test_a_function_that_starts_too_slowly_misses_its_goal() -> None:
    slow = replace(LIFE, init_cpu_ms=400.0)
    late = replace(RUN, same_role=[SameRole("PUT 10 KB", ((slow, PEER_LIFE),))])
    goal = "As a function, it starts with at most 0.3 of the CPU time"
    assert f"| {goal} | 0.25 | yes |" in page(RUN)
    assert f"| {goal} | 0.50 | no |" in page(late)


def test_the_page_begins_with_the_goals_and_whether_they_are_met() -> None:
    slow = replace(HEAD, case="GET 20 MB", rate=0.9)
    text = page(replace(RUN, rows=[slow, replace(slow, clients=1, rate=1.5)]))
    aims = text.partition("## Goals")[2].partition("##")[0]
    assert "| GET 20 MB: more requests per second | 0.90, 1.50 | no |" in aims
    aim = "Handlers take no more CPU time than botocore for their calls"
    assert f"| {aim} | 1.30 | no |" in aims
    assert "| 200 MB of artifacts: memory does not grow | -10 MB | yes |" in aims


def test_the_page_compares_the_calls_of_a_handler_with_a_complete_reply_of_the_peer() -> None:
    text = " ".join(page(RUN).partition("## Goals")[0].split())
    assert "take botocore 1.00 ms of CPU without a server" in text
    assert f"{CACHE_PEER} takes 0.25 to 0.25 ms for its complete reply" in text
    assert "take botocore" not in page(replace(RUN, cpu=[]))


def test_every_line_outside_of_tables_is_short() -> None:
    lines = page(RUN).splitlines()
    assert [line for line in lines if len(line) > 128 and not line.startswith("|")] == []


def test_the_screen_shows_the_same_tables() -> None:
    assert "| HEAD | 16 | 0.50 |" in summary(RUN)
