"""Runs each scenario of fault_scenarios with every fault at every call, and writes a report.

    python -m tests.proofs.fault_matrix --write dist/faults.md --workers 2

A run prints every cell that has none of the outcomes of fault_report, and then fails.
"""

import argparse
import json
import multiprocessing
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from pathlib import Path
from threading import local
from typing import Any
from unittest.mock import patch

from larder import aws
from larder.artifacts.repository.index import BODY
from larder.artifacts.repository.totals import read_totals
from larder.aws import boto
from larder.aws.connections import Endpoint
from larder.conditions import equals
from larder.instance import restart
from larder.settings import settings
from larder.tables import ARTIFACTS, IDENTITY, TEAMS, commit
from larder.web.log import logger
from tests.default_template import template
from tests.proofs.fault_deliveries import DELIVERIES
from tests.proofs.fault_deliveries import run as deliver
from tests.proofs.fault_proxy import FAULTS, SERVICES, Call, Fault, Plan, Request, Way
from tests.proofs.fault_report import render
from tests.proofs.fault_scenarios import SCENARIOS, Scenario, catalogued
from tests.proofs.fault_world import (
    FUNCTION_S,
    SCALE,
    SCHEDULED,
    Subject,
    World,
    function,
    hasty,
    in_hours,
    later,
    running,
)
from tests.proofs.stored import index_sizes
from tests.requests import Reply

_SLACK_S = 1.5
"""Extra time for a busy machine. SCALE does not shorten it."""

CRASHES = (Fault("crash before", Way.RESET, carried_out=False), Fault("crash after", Way.RESET, carried_out=True))
OUTCOMES = {"as ever", "without it", "503", "503, done", "done", "in part", "no answer", "no answer, done"}
"""The outcomes of a request. fault_report explains them."""


class Crash(BaseException):
    """The function's process ends here. Nothing that it does later reaches a store."""


class NotMade(Exception):
    """The request did not make the call that has the fault."""


class Unexplained(Exception):
    """A cell that has none of OUTCOMES."""


@dataclass
class Cell:
    scenario: str
    call: str
    fault: str
    outcome: str


@dataclass
class Result:
    scenario: str
    calls: list[str]
    cells: list[Cell] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    took_s: float = 0


def applies(fault: Fault, call: Call) -> bool:
    if fault.operations and call.operation not in fault.operations:
        return False
    # Replies to these have no body, and the proxy must not cut the head of a HEAD reply.
    return not (fault.way is Way.CUT and call.operation in ("HeadObject", "DeleteObject", "Invoke"))


def _is_slow(fault: Fault) -> bool:
    return fault.way is Way.SILENCE


def limit_s(scenario: Scenario) -> int:
    """The time limit of the function. The gateway gives up after 30 s, clients after 30 or 60."""
    functions = template().functions
    own = [one.timeout_s for one in functions if one.logical_id == scenario.route]
    return own[0] if own else FUNCTION_S


def cells_of(calls: list[Call]) -> list[tuple[Call, Fault]]:
    """The cells of a request: of similar calls, such as the pages of a query, the first two and the last."""
    numbers = Counter((call.service, call.operation, call.target) for call in calls)
    some = [call for call in calls if call.number in (1, 2, numbers[call.service, call.operation, call.target])]
    return [(call, fault) for call in some for fault in (*FAULTS, *CRASHES) if applies(fault, call)]


_WRITES = ("Put", "Update", "Delete", "TransactWrite", "BatchWrite", "Invoke", "Send")


def writes(plan: Plan) -> set[tuple[str, str]]:
    """The operations and targets of the writes that the stores carried out."""
    done = plan.carried_out
    return {(call.operation, call.target) for call in done if call.operation.startswith(_WRITES)}


def explore(world: World, scenario: Scenario) -> tuple[Plan, Reply, Subject]:
    """Run without a fault. Returns the calls and the reply. Raises Unexplained if the run fails."""
    subject = _subject(world, scenario)
    try:
        play = scenario.play(subject)
        request = next(play)
        assert request is not None
        _start_instance(scenario, subject)
        with world.proxy.failing() as plan:
            subject.plans.append(plan)
            reply = request()
        subject.times_sent = 1
        play.send(reply)
        try:
            play.send([reply])
        except StopIteration:
            pass
        else:
            raise AssertionError("the scenario yields a third time")
    except Exception as error:
        raise Unexplained(f"{scenario} fails without a fault: {_described(error)}") from error
    if reply.status >= 400 and not scenario.variant.startswith(("not found", "refused")):
        raise Unexplained(f"{scenario} without a fault: {reply}")
    return plan, reply, subject


def run_cell(
    world: World,
    scenario: Scenario,
    call: Call,
    fault: Fault,
    usual: Reply,
    written: set[tuple[str, str]],
    *,
    tries_left: int = 4,
) -> tuple[str, Subject]:
    """Run the scenario with the fault, and repeat the request without it if a client would. Raises Unexplained.

    `written` are the writes of the request without a fault.
    """
    subject = _subject(world, scenario)
    subject.disturbed = True
    play = scenario.play(subject)
    try:
        try:
            request = next(play)
            assert request is not None
            _start_instance(scenario, subject)
            began = time.monotonic()
            with _crashing(world, call, fault) if fault in CRASHES else world.proxy.failing((call, fault)) as plan:
                subject.plans.append(plan)
                try:
                    with hasty() if _is_slow(fault) else nullcontext():
                        first: Reply | None = request()
                except Crash:
                    first = None
                    subject.crashes = 1
            took_s = time.monotonic() - began
            subject.times_sent = 1
            if fault not in CRASHES and not plan.met:
                raise NotMade([str(made) for made in plan.calls])
            restart()
            play.send(first)
            outcome = _outcome_of(scenario, first, usual, fault)
            replies = [] if first is None else [first]
            if outcome in ("503", "no answer", "in part"):
                with world.proxy.failing() as plan:
                    subject.plans.append(plan)
                    replies.append(request())
                subject.times_sent = 2
                again = _outcome_of(scenario, replies[-1], usual, fault)
                if again == "done":
                    outcome = f"{outcome}, done"
                elif again not in ("as ever", "without it"):
                    raise AssertionError(f"the repeated request gets {_shown(replies[-1])}")
            if scenario.play is catalogued and not outcome.endswith("done"):
                missing = written.difference(*map(writes, subject.plans))
                if outcome == "without it":
                    missing.discard((call.operation, call.target))
                assert not missing, f"not written: {missing}"
            if outcome.endswith("done"):
                # The first reply got lost, so the scenario checks its end without one.
                subject.refused_as_done = True
            with suppress(StopIteration):
                play.send(replies)
            if took_s > limit_s(scenario) / (SCALE if _is_slow(fault) else 1) + _SLACK_S:
                raise AssertionError(f"answered after {took_s:.1f} s, with time-outs {SCALE} times shorter")
        except NotMade as error:
            if not (_is_slow(fault) and tries_left):
                raise Unexplained(f"{scenario} | {call} | {fault.name}: the call is not made: {error}") from None
            # On a busy machine, the shortened deadline can end before the call.
            play.close()
            return run_cell(world, scenario, call, fault, usual, written, tries_left=tries_left - 1)
        except Exception as error:
            raise Unexplained(f"{scenario} | {call} | {fault.name}: {_described(error)}") from error
    finally:
        play.close()
    return outcome, subject


def _start_instance(scenario: Scenario, subject: Subject) -> None:
    """The instance that gets the request."""
    restart()
    if scenario.known:
        assert subject.send("GET", "/v8/artifacts/status").status == 200


_AGAIN = ("try_again", "temporarily_unavailable")
"""The codes of a request that can be sent again, here and at the token endpoints."""


def _outcome_of(scenario: Scenario, reply: Reply | None, usual: Reply, fault: Fault) -> str:
    if reply is None:
        return "no answer"
    code = code_of(reply)
    if (reply.status, code) in scenario.done_before:
        return "done"
    if reply.status == usual.status and (scenario.succeeds(reply) if scenario.succeeds else code == code_of(usual)):
        if scenario.in_part(reply):
            return "in part"
        if reply.status == 302 and "error" in reply.headers.get("location", ""):
            raise AssertionError(f"redirected to {reply.headers['location']}")
        return "without it" if fault.every_try and fault.way is not Way.LATE else "as ever"
    if reply.status == 503 and (code in _AGAIN or not reply.body):
        if "retry-after" not in reply.headers:
            raise AssertionError("503 without Retry-After")
        return "503"
    raise AssertionError(f"the reply is {_shown(reply)}")


def code_of(reply: Reply) -> str:
    try:
        body = json.loads(reply.body)
    except ValueError:
        return ""
    if not isinstance(body, dict):
        return ""
    code = body.get("code")
    error = body.get("error")
    if code is None:
        code = error.get("code") if isinstance(error, dict) else error
    return str(code or "").lower()


def _shown(reply: Reply) -> str:
    return f"{reply.status} {reply.body[:300].decode(errors='replace')}"


def _described(error: BaseException) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error) or where.line} ({Path(where.filename).name}:{where.lineno})"


def _subject(world: World, scenario: Scenario) -> Subject:
    world.handed_over.clear()
    restart()
    # One request in ten seconds deletes expired keys. Here, each request does.
    aws.dynamodb().delete_item(TableName=settings().api_keys_table, Key=aws.serialize({"key_hash": "#clean-up"}))
    subject = Subject(world)
    subject.route = scenario.route
    return subject


@contextmanager
def _crashing(world: World, call: Call, fault: Fault) -> Iterator[Plan]:
    """A context in which the process ends before or after one call. Its other threads reach no store."""
    current = local()
    over: list[bool] = []
    clients: dict[str, Any] = {service: boto.client(service) for service in SERVICES}
    hooks: list[tuple[Any, str, Callable[..., None]]] = []
    with world.proxy.failing() as plan:

        def before_any(service: str, request: Request) -> None:
            if over:
                raise Crash
            current.call = plan.name(service, request)
            if current.call == call and not fault.carried_out:
                over.append(True)
                raise Crash

        def after(**_: object) -> None:
            if over:
                raise Crash
            if getattr(current, "call", None) == call:
                over.append(True)
                raise Crash

        services = {f"127.0.0.1:{port}": name for name, port in world.proxy.ports.items()}
        send = Endpoint.send

        def send_and_crash(endpoint: Endpoint, method: str, target: str, headers: dict[str, str], body: bytes) -> Any:
            before_any(services[endpoint.host], Request(method, target, headers, body, []))
            reply = send(endpoint, method, target, headers, body)
            try:
                after()
            except Crash:
                # A process that ends closes its connections.
                reply.close()
                raise
            return reply

        for service, client in clients.items():

            def before(request: Any, service: str = service, **_: object) -> None:
                headers = {
                    name.lower(): value.decode() if isinstance(value, bytes) else str(value)
                    for name, value in request.headers.items()
                }
                path = re.sub(r"^https?://[^/]+", "", request.url)
                body = request.body if isinstance(request.body, bytes) else b""
                before_any(service, Request(request.method, path, headers, body, []))

            client.meta.events.register_first("before-send", before)
            hooks.append((client, "before-send", before))
            client.meta.events.register_first("response-received", after)
            hooks.append((client, "response-received", after))
        try:
            # The connections of larder.aws.wire.
            with patch.object(Endpoint, "send", send_and_crash):
                yield plan
        finally:
            for client, event, hook in hooks:
                client.meta.events.unregister(event, hook)
    assert over, f"the call was not made, but {[str(one) for one in plan.calls]}"


# Cleanup and sweeps --------------------------------------------------------------------


def sweep_and_check(world: World, subjects: list[Subject]) -> list[str]:
    """Deliver all events out of order, run all jobs, and run the schedules for two days. Returns what is wrong
    after that.
    """
    # While a request may still publish an object, its event has to come again. Lambda repeats it after a minute.
    with later(timedelta(minutes=1)):
        world.deliver_events()
    world.run_jobs()
    for by in (in_hours(25.5), in_hours(27), in_hours(51), in_hours(53)):
        with later(by):
            for handler in SCHEDULED:
                restart()
                reply = function(handler)
                if reply.status != 200:
                    return [f"{handler} answers {reply.status}"]
    problems = [
        f"{subject.route}: {problem}"
        for subject in subjects
        for owner in subject.owners
        for problem in _unclean(world, owner)
    ]
    problems += [f"the record of a deletion is left: {key}" for key in _deletion_notes()]
    for subject in subjects:
        for owner in subject.owners:
            _delete_index_entries(owner)
    return problems


def _unclean(world: World, owner: str) -> Iterator[str]:
    sizes = index_sizes(owner)
    totals = read_totals(owner)
    if (totals.size_bytes, totals.artifacts) != (sum(sizes.values()), len(sizes)):
        yield f"{owner}: totals {totals.size_bytes}, {totals.artifacts}; index {sizes}"
    objects = world.objects_of(owner)
    if len(objects) != len(sizes):
        yield f"{owner}: {len(objects)} objects for {len(sizes)} artifacts"
    items = {item["hash"]: item for item in ARTIFACTS.query(equals(owner=owner))}
    whole = {"#totals", "#storage"}
    # A body next to the index is that of the published upload.
    whole |= {
        BODY + key for key, item in items.items() if items.get(BODY + key, {}).get("upload_id") == item.get("upload_id")
    }
    # They expire.
    whole |= {key for key in items if key.startswith("#refused#")}
    notes = [key for key in items if "#" in key and key not in whole]
    if notes:
        yield f"{owner}: notes are left: {notes}"


def _deletion_notes() -> list[str]:
    notes = []
    for table in (IDENTITY, TEAMS):
        notes += [item["sk"] for item in table.query(equals(pk="deleted"))]
    return notes


def _delete_index_entries(owner: str) -> None:
    """Delete the index entries of an owner, so that later sweeps do not handle them."""
    for item in ARTIFACTS.query(equals(owner=owner)):
        commit(ARTIFACTS.delete(owner, item["hash"]))


# Runs ---------------------------------------------------------------------------------------


@contextmanager
def _logging_to(text: StringIO) -> Iterator[None]:
    """Write logs and metrics to `text`. Powertools' Logger keeps its first standard output, so replace it."""
    (handler,) = logger().handlers
    before = handler.setStream(text)  # type: ignore[attr-defined]
    try:
        with redirect_stdout(text):
            yield
    finally:
        handler.setStream(before)  # type: ignore[attr-defined]


def run_scenario(
    world: World,
    scenario: Scenario,
    choose: Callable[[list[tuple[Call, Fault]]], list[tuple[Call, Fault]]] = lambda cells: cells,
    *,
    leaves: list[Subject] | None = None,
) -> Result:
    """Run the chosen cells, and then the sweeps. With `leaves`, the caller runs the sweeps for the subjects in it."""
    began = time.monotonic()
    log = StringIO()
    result = Result(str(scenario), [])
    subjects: list[Subject] = [] if leaves is None else leaves
    try:
        with _logging_to(log):
            plan, usual, subject = explore(world, scenario)
            subjects.append(subject)
            calls = list(dict.fromkeys(plan.calls))
            result.calls = [str(call) for call in calls]
            for call, fault in choose(cells_of(calls)):
                try:
                    outcome, subject = run_cell(world, scenario, call, fault, usual, writes(plan))
                except Unexplained as unexplained:
                    result.failures.append(str(unexplained))
                    continue
                subjects.append(subject)
                result.cells.append(Cell(str(scenario), str(call), fault.name, outcome))
            if leaves is None:
                result.failures += [
                    f"{scenario} after the sweeps: {problem}" for problem in sweep_and_check(world, subjects)
                ]
    except Unexplained as unexplained:
        result.failures.append(str(unexplained))
    if result.failures:
        unforeseen = [line for line in log.getvalue().splitlines() if "unforeseen" in line]
        result.failures += [line[:1500] for line in unforeseen[:3]]
    result.took_s = time.monotonic() - began
    return result


_opened = ExitStack()
_worlds: list[World] = []
"""The one world of this process, opened when the process starts."""


def _begin(folder: str) -> None:
    place = Path(tempfile.mkdtemp(dir=folder)) / "world"
    world = _opened.enter_context(running(place))
    _worlds.append(world)
    with _logging_to(StringIO()):
        # The first sweep of a deployment counts what is stored, and later ones do not.
        assert sweep_and_check(world, []) == []


def _run(number: int) -> Result:
    return run_scenario(_worlds[0], SCENARIOS[number])


def _deliver(number: int) -> str:
    """Returns the failure, or an empty string."""
    one = DELIVERIES[number]
    try:
        with _logging_to(StringIO()):
            subject = deliver(_worlds[0], one)
            problems = sweep_and_check(_worlds[0], [subject])
    except Exception as error:  # noqa: BLE001 - else the results of all other scenarios are lost
        return f"{one}: {_described(error)}"
    return f"{one} after the sweeps: {problems}" if problems else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the report to write")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--only", action="append", help="run only scenarios and deliveries whose name contains this; can be repeated"
    )
    arguments = parser.parse_args()
    began = time.monotonic()
    wanted = arguments.only or [""]
    to_do = [number for number, one in enumerate(SCENARIOS) if any(text in str(one) for text in wanted)]
    to_deliver = [number for number, one in enumerate(DELIVERIES) if any(text in str(one) for text in wanted)]
    if not to_do:
        parser.error(f"no scenario has a name with {wanted}: tests/proofs/fault_scenarios.py has them")
    results: dict[int, Result] = {}
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(arguments.workers, context, _begin, (folder,)) as pool:
            running = {pool.submit(_run, number): number for number in to_do}
            for one in as_completed(running):
                result = results[running[one]] = one.result()
                _report(result)
                failures += result.failures
            failures += filter(None, pool.map(_deliver, to_deliver))
    cells = [cell for result in results.values() for cell in result.cells]
    print(*failures, sep="\n")
    print(f"{len(cells)} cells, {dict(Counter(cell.outcome for cell in cells))}")
    print(f"{len(failures)} unexplained, {time.monotonic() - began:.0f} s")
    if arguments.write and not failures:
        arguments.write.parent.mkdir(exist_ok=True)
        arguments.write.write_text(_rendered([results[number] for number in sorted(results)]))
    return 1 if failures else 0


def _report(result: Result) -> None:
    state = f"{len(result.failures)} FAILED" if result.failures else "ok"
    print(f"{result.took_s:6.1f} s {len(result.cells):4} cells  {state:9} {result.scenario}")
    for failure in result.failures[:12]:
        print(f"      {failure}")
    sys.stdout.flush()


def _rendered(results: list[Result]) -> str:
    cells: dict[str, dict[str, Counter[str]]] = {result.scenario: {} for result in results}
    for result in results:
        for cell in result.cells:
            cells[cell.scenario].setdefault(cell.fault, Counter())[cell.outcome] += 1
    return render({result.scenario: len(result.calls) for result in results}, cells, DELIVERIES)


if __name__ == "__main__":
    sys.exit(main())
