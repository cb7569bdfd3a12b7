"""Every fault at every call of every request (fault_oracle.py). `make faults` runs all, `make test` a part."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.retries.quota import RetryQuota

from tests.catalogue import NAMES
from tests.conftest import SetOption
from tests.default_template import template
from tests.proofs.fault_cases import CASES, HANDLERS, Case, Scene
from tests.proofs.fault_families import FAMILIES, IN_PARTS, REFUSALS
from tests.proofs.fault_oracle import FAULTS, OF_FUNCTIONS, Attempt, Oracle, opened

ALL = bool(os.environ.get("ALL_FAULTS"))
IMPORTANT = {
    *("PUT /v8/artifacts/{hash}", "DELETE /v1/artifacts/{hash}", "CommitUpload", "POST /api/auth/api-key/create"),
    *("POST /api/auth/sign-in/email", "POST /api/auth/sign-out", "POST /login/oauth/token", "POST /v1/teams/join"),
}
"""Each fault is tried at these, at the others only a crash after each call."""
QUICK = {"PUT /v8/artifacts/{hash}", "CommitUpload", "POST /api/auth/api-key/create", "POST /api/auth/sign-in/email"}
BY_NAME = {name: [*cases] for name, cases in groupby(sorted(CASES, key=lambda case: case.name), lambda case: case.name)}


@pytest.fixture(autouse=True)
def deployment(environment: pytest.MonkeyPatch, option: SetOption, aws_in_memory: None) -> None:
    option("scrypt_cost", 1024)
    option("operator_emails", "ada@example.com")
    option("trusted_origins", NAMES.trusted_origin)
    for name in ("http_rate_limit_enabled", "send_verification_on_sign_up"):
        option(name, "true")
    # A client stops retrying after many failures. Each cell must see only its own.
    environment.setattr(RetryQuota, "acquire", lambda *_: True)
    environment.setattr("larder.aws.wire._Quota.take", lambda *_: 1)
    environment.setattr("random.uniform", lambda *_: 0.0)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BY_NAME]
)
def test_faults_of(name: str) -> None:
    """Each end is the undisturbed one, or one of the families that name this request."""
    is_function, short = name in HANDLERS, not ALL and name not in IMPORTANT
    faults = ("crash after",) if short else tuple(fault for fault in FAULTS if is_function or fault not in OF_FUNCTIONS)
    problems = []
    for case in BY_NAME[name][: None if ALL else 1]:
        problems += [f"{case}, {problem}" for problem in _problems(case, faults)]
    assert not problems, "\n".join(problems)


def _problems(case: Case, faults: tuple[str, ...]) -> Iterator[str]:
    with opened() as world, pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        scene = Scene(world, SetOption(patched), stack)
        request = case.begin(scene)
        scene.later(seconds=1)
        named = {word: family for word, family in FAMILIES.items() if str(case) in family.of}
        # A key without uses is shown as disabled until it is deleted.
        reads = {} if "kept" in named else scene.reads(case.name)
        oracle = Oracle(world, request, reads, named, always=case.name in SCHEDULED, in_parts=str(case) in IN_PARTS)
        assert (oracle.usual.status >= 400) == (case.variant in ("refused", "with a wrong password")), oracle.usual
        for at, fault in oracle.cells(faults):
            if problem := oracle.problem(at, fault):
                yield f"{at}, {fault}: {problem}"
        if unknown := oracle.refusals - REFUSALS.keys():
            yield f"REFUSALS of fault_families.py does not explain {unknown}"
        if ALL and (unseen := named.keys() - oracle.families):
            yield f"no end is of {unseen}: remove it from FAMILIES"


SCHEDULED = {schedule.function.logical_id for schedule in template().schedules}


def test_every_route_and_function_has_a_case() -> None:
    routed = {route.key for route in template().routes if not route.key.startswith(("OPTIONS", "$"))}
    unrouted = HANDLERS.keys() - {route.function.logical_id for route in template().routes}
    # It only calls other functions, which store nothing.
    stores_nothing = {"KeepWarm"}
    assert BY_NAME.keys() >= (routed | unrouted) - stores_nothing


def test_families_name_existing_cases() -> None:
    assert {name for family in FAMILIES.values() for name in family.of} <= {str(case) for case in CASES}


@pytest.mark.parametrize(
    ("silent", "operation", "status", "least_s", "most_s"),
    [
        (lambda attempt: attempt.service == "dynamodb", "POST /api/auth/sign-in/email", 503, 5, 17),
        (lambda attempt: attempt.service == "s3", "PUT /v8/artifacts/{hash}", 503, 10, 22),
        # A limit that cannot be counted costs one time-out.
        (lambda attempt: attempt.name() == "UpdateItem rate-limits", "POST /api/auth/sign-in/email", 200, 5, 9),
    ],
    ids=["tables", "bucket", "limit"],
)
def test_a_request_ends_in_time_while_a_store_is_silent(
    silent: Callable[[Attempt], bool], operation: str, status: int, least_s: int, most_s: int,
    environment: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Each attempt takes its time-out by the clock of the deadlines, of a function's 25 s."""
    passed = [0.0]

    def wait(attempt: Attempt) -> Any:
        if not silent(attempt):
            return attempt.send()
        passed[0] += 10 if attempt.service == "s3" else 5
        raise attempt.no_reply

    with opened() as world, ExitStack() as stack:
        request = Scene(world, SetOption(environment), stack).ask(operation)
        world.begin()
        world.back()
        environment.setattr("larder.deadline.time", SimpleNamespace(monotonic=lambda: passed[0]))
        environment.setattr("tests.requests.in_memory", lambda: False)
        environment.setattr(world, "answer", wait)
        reply, _ = world.run(request)
    assert reply is not None
    assert (reply.status, reply.headers.get("retry-after")) == (status, "2" if status == 503 else None)
    assert least_s <= passed[0] <= most_s
