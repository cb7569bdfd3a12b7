"""How long an answer takes does not tell whether an address is known: measured side by side, on the local server.

The handlers run in this process. Each round asks once for every kind of address, in an order that changes, so that
whatever else the machine does meets all kinds alike; what is compared is the median.
"""

import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterator

import pytest

from larder import clock
from larder.accounts.service import create_user
from tests.conftest import SetOption
from tests.e2e.cloud import LocalCloud
from tests.layer_on import LayerOn
from tests.mailbox import handed_over
from tests.requests import Browser

pytestmark = pytest.mark.slow

ROUNDS = 60
TOLERANCE = 0.1
"""Of a median. An answer without a hash would take a tenth of the time, one with a second hash twice as long."""

PASSWORD = "correct horse battery staple"


@pytest.fixture
def known(local_cloud: LocalCloud, layer_on: LayerOn, option: SetOption) -> Iterator[str]:
    """The address of somebody who has a password; mail goes nowhere."""
    layer_on(local_cloud)
    option("http_rate_limit_enabled", "false")
    email = f"{secrets.token_hex(6)}@known.example"
    create_user(email, "Ada", password=PASSWORD, now=clock.now())
    with handed_over():
        yield email


def new_address() -> str:
    # As long as the one that is known.
    return f"{secrets.token_hex(6)}@other.example"


def medians_ms(kinds: dict[str, Callable[[], object]]) -> dict[str, float]:
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    source = random.Random(1)
    for _ in range(ROUNDS):
        for kind in source.sample(list(kinds), len(kinds)):
            began = time.perf_counter()
            kinds[kind]()
            taken[kind].append((time.perf_counter() - began) * 1000)
    return {kind: statistics.median(times) for kind, times in taken.items()}


def check_alike(what: str, medians: dict[str, float], told: list[str]) -> None:
    shown = ", ".join(f"{kind} {ms:.1f} ms" for kind, ms in medians.items())
    told.append(f"{what}, medians of {ROUNDS}: {shown}")
    assert max(medians.values()) - min(medians.values()) < TOLERANCE * max(medians.values()), shown


def test_a_refused_sign_in(known: str, told: list[str]) -> None:
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
    check_alike("a refused sign-in", medians_ms(kinds), told)


def test_a_sign_up_with_required_verification(
    known: str, option: SetOption, told: list[str]
) -> None:
    option("require_email_verification", "true")

    def answered(email: Callable[[], str]) -> Callable[[], object]:
        def ask() -> None:
            body = {"name": "Eve", "email": email(), "password": PASSWORD}
            assert Browser().post("/sign-up/email", body).status == 200

        return ask

    kinds = {"new address": answered(new_address), "taken address": answered(lambda: known)}
    check_alike("a sign-up", medians_ms(kinds), told)
