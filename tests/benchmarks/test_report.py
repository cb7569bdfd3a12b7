"""The page that `make bench` writes."""

from dataclasses import replace

from tools.benchmarks.figures import Compared, Life, SameRole
from tools.benchmarks.handler_cpu import HandlerCpu
from tools.benchmarks.report import Run, page
from tools.benchmarks.servers import ACCOUNTS_PEER, CACHE_PEER

GET = Compared(
    case="GET 10 KB",
    peer=CACHE_PEER,
    rate=0.5,
    rate_least=0.4,
    rate_most=0.6,
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
    rows=[GET, replace(GET, case="sign-in", peer=ACCOUNTS_PEER, failures="peer: 1 x status 500")],
    same_role=[SameRole("PUT 10 KB", ((LIFE, PEER_LIFE),))],
    cpu=[HandlerCpu("HEAD", 1.3, 1.0, ("UpdateItem", "BatchGetItem"))],
    versions={"Larder": "1.0.0", ACCOUNTS_PEER: "1.7 on SQLite"},
    environment={"memory": "8 GiB"},
    rounds=3,
    seconds=600,
)


def test_a_row_names_the_peer_and_what_failed() -> None:
    figures = "0.50 | 0.40–0.60 | 10.0 / 5.0 | 4.00 / 0.25 |"  # noqa: RUF001
    assert f"| GET 10 KB | {CACHE_PEER} | {figures}" in page(RUN)
    assert f"| sign-in (peer: 1 x status 500) | {ACCOUNTS_PEER} | {figures}" in page(RUN)


def test_the_page_shows_handlers_and_the_environment() -> None:
    text = page(RUN)
    assert "| HEAD | 1.30 | 1.30 / 1.00 | UpdateItem, BatchGetItem |" in text
    assert "The limit is 1. These requests are over it: HEAD." in text
    assert "memory 8 GiB" in text
    assert "Better Auth 1.7 on SQLite" in text


def test_functions_are_compared_with_the_peers_own_function() -> None:
    row = (
        "| PUT 10 KB | 0.25 | 200 / 800 | 0.40 | 40 / 100 | 1.00 | 1.00–1.00 | 2.0 / 2.0 |"  # noqa: RUF001
        " 2.00 | 4.0 / 2.0 | 50 / 100 |"
    )
    assert row in page(RUN)


def test_every_line_outside_of_tables_is_short() -> None:
    lines = page(RUN).splitlines()
    assert [line for line in lines if len(line) > 128 and not line.startswith("|")] == []
