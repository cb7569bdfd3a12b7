"""The time of a reply does not reveal whether an address is known, measured on the local server.

The handlers run in this process. Each round sends one request for every kind of address, in changing order, so that
other load of the machine affects all kinds equally. The medians are compared: CPU time with a small tolerance, and
elapsed time with a larger one, because a busy machine changes it. Medians that differ are measured again: what other
load causes passes, and what a reply reveals stays.
"""

import os
import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterator

import pytest

from larder import clock
from larder.accounts.service import create_user
from tests.conftest import SetOption
from tests.mailbox import handed_over
from tests.requests import Browser

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("TIMING_ROUNDS") or 10)
ATTEMPTS = 4
CPU_TOLERANCE, CLOCK_TOLERANCE = 0.1, 0.3
"""The tolerance of a median. A reply without a hash would take a tenth of the time, one with two hashes twice."""

PASSWORD = "correct horse battery staple"


@pytest.fixture
def known(on_the_local_server: None, option: SetOption) -> Iterator[str]:
    """The address of a user with a password. No mail is sent."""
    option("http_rate_limit_enabled", "false")
    email = f"{secrets.token_hex(6)}@known.example"
    create_user(email, "Ada", password=PASSWORD, now=clock.now())
    with handed_over():
        yield email


def new_address() -> str:
    # As long as the known address.
    return f"{secrets.token_hex(6)}@other.example"


def check_alike(what: str, kinds: dict[str, Callable[[], object]], report_lines: list[str]) -> None:
    source = random.Random(1)
    lines, alike = measured(kinds, source)
    for _ in range(ATTEMPTS - 1):
        if alike:
            break
        lines, alike = measured(kinds, source)
    report_lines.extend(f"{what}, {line}" for line in lines)
    assert alike, f"different in each of {ATTEMPTS} attempts: {lines}"


def measured(kinds: dict[str, Callable[[], object]], source: random.Random) -> tuple[list[str], bool]:
    """The medians as lines to show, and whether they are alike."""
    clock_ms: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu_ms: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind in source.sample(list(kinds), len(kinds)):
            began, cpu_began = time.perf_counter(), time.process_time()
            kinds[kind]()
            clock_ms[kind].append((time.perf_counter() - began) * 1000)
            cpu_ms[kind].append((time.process_time() - cpu_began) * 1000)
    lines, alike = [], True
    for unit, taken, tolerance in (
        ("by the clock", clock_ms, CLOCK_TOLERANCE),
        ("of the processor", cpu_ms, CPU_TOLERANCE),
    ):
        medians = {kind: statistics.median(times) for kind, times in taken.items()}
        shown = ", ".join(f"{kind} {ms:.1f} ms" for kind, ms in medians.items())
        lines.append(f"medians of {ROUNDS} {unit}: {shown}")
        most = max(medians.values())
        alike = alike and most - min(medians.values()) < tolerance * most
    return lines, alike


@pytest.mark.thorough
def test_a_refused_sign_in(known: str, report_lines: list[str]) -> None:
    without = f"{secrets.token_hex(6)}@empty.example"
    create_user(without, "Made by command", now=clock.now())

    def refused(email: Callable[[], str]) -> Callable[[], object]:
        def ask() -> None:
            body = {"email": email(), "password": "not the password"}
            assert Browser().post("/sign-in/email", body).status == 401

        return ask

    kinds = {
        "wrong password": refused(lambda: known),
        "unknown address": refused(new_address),
        "no password": refused(lambda: without),
    }
    check_alike("a refused sign-in", kinds, report_lines)


@pytest.mark.thorough
def test_a_sign_up_with_required_verification(known: str, option: SetOption, report_lines: list[str]) -> None:
    option("require_email_verification", "true")

    def answered(email: Callable[[], str]) -> Callable[[], object]:
        def ask() -> None:
            body = {"name": "Eve", "email": email(), "password": PASSWORD}
            assert Browser().post("/sign-up/email", body).status == 200

        return ask

    kinds = {"new address": answered(new_address), "taken address": answered(lambda: known)}
    check_alike("a sign-up", kinds, report_lines)
