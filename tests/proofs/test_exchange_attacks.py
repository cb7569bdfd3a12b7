"""Tokens that give no key do not stop the exchanges of main, however many arrive in an hour. Time is simulated."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from tests.conftest import SetOption
from tests.functions.teams.rules import made
from tests.issuer import Issuer, github_claims, rsa_key
from tests.requests import Cloud, Sender
from tests.trust.exchanging import FORM, GRANT, TOKEN

ATTACKS = int(os.environ.get("EXCHANGE_ATTACKS") or 100)
JOBS = 60
"""How many jobs of main exchange their token in the hour. The team may get this many tokens."""

SHARED = "198.51.100.7"
"""The address of the jobs of main, and of many attacks."""


@pytest.mark.slow
def test_16_used_forged_and_expired_tokens_do_not_stop_main(
    cloud: Cloud, option: SetOption, report_lines: list[str]
) -> None:
    option("http_rate_limit_enabled", "true")
    option("trusted_proxy_hops", "1")
    option("max_ci_tokens_per_hour", str(JOBS))
    made(cloud)
    github, stranger = Issuer(), Issuer(keys={"first": rsa_key(1)})

    def sent(token: str, address: str) -> int:
        form = {"grant_type": GRANT, "team_id_or_slug": "acme", "subject_token": token}
        body = "&".join(f"{name}={value}" for name, value in form.items()).encode()
        headers = {**FORM, "x-forwarded-for": f"{address}, 203.0.113.1"}
        return Sender(None)("POST", TOKEN, body=body, headers=headers).status

    used = [""]
    attacks: dict[str, Callable[[], str]] = {
        "used": lambda: used[0],
        "forged": lambda: stranger.mint(github_claims()),
        "expired": lambda: github.mint(github_claims(exp=int(time.time()) - 60)),
        "of another repository": lambda: github.mint(github_claims(repository_id="1")),
    }
    begins = datetime(2030, 1, 1, 9, tzinfo=UTC)
    done: Counter[tuple[str, int]] = Counter()
    each, moment = 3600 / ATTACKS, begins
    with time_machine.travel(begins, tick=False) as travelled:
        for number in range(ATTACKS):
            moment = begins + timedelta(seconds=number * each)
            travelled.move_to(moment, tick=False)
            if number * JOBS % ATTACKS < JOBS:
                github.publish()
                used[0] = github.mint(github_claims())
                done["main", sent(used[0], SHARED)] += 1
            kind = [*attacks][number % len(attacks)]
            address = SHARED if number % 3 else f"192.0.2.{number % 250}"
            done[kind, sent(attacks[kind](), address)] += 1
    figures = ", ".join(f"{kind} {status}: {n:,}" for (kind, status), n in sorted(done.items()))
    report_lines.append(f"{ATTACKS:,} exchanges with bad tokens in an hour: {figures}")
    assert done["main", 200] == JOBS
    assert {kind for kind, status in done if status == 200} == {"main"}
    assert sum(done.values()) == ATTACKS + JOBS
