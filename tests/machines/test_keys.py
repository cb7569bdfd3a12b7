"""API keys against their model: two requests at a time, of which one comes between two calls to AWS of the other."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import time_machine
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from larder import clock
from larder.accounts.access import resume_user, suspend_user
from larder.accounts.service import create_user, find_user
from larder.accounts.sessions import start_session
from larder.api_keys import repository
from larder.api_keys.models import ApiKey
from larder.clock import to_ms
from larder.conditions import exists
from larder.hashing import hash_key
from larder.instance import restart
from larder.settings import region
from larder.teams.members import add_member, role_of
from larder.teams.models import Role
from larder.teams.teams import create_team, find_team
from larder.turbo_login.service import CODE_SECONDS, Grant, create_token
from tests.conftest import SetOption
from tests.functions.api_keys.people import verified
from tests.machines.interleaving import overlapping
from tests.machines.keys_model import MOST_KEYS, Key, Model
from tests.machines.orders import OK, REFUSED, Outcome, Request, either_order, outcome, quiet_settings
from tests.mailbox import Mailbox
from tests.moto_stores import Stores
from tests.requests import Reply, Sender

API = "/api/auth/api-key"


class World:
    """Ada, an operator and the owner of the team, and its admin Bob. The stores go back to this for every example."""

    def __init__(self) -> None:
        now = clock.now()
        ada = verified(create_user("ada@acme.example", "Ada", now=now))
        bob = create_user("bob@acme.example", "Bob", now=now)
        team = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
        add_member(team.id, bob.id, Role.ADMIN, now=now)
        self.ids = {"ada": ada.id, "bob": bob.id, "team": team.id}
        self.ada, self.bob = (Sender(start_session(user, now=now)[1]) for user in (ada, bob))
        self.made: dict[str, tuple[str, str]] = {}
        self.model = Model(now=to_ms(now))
        for number, (holder, in_team, given) in enumerate(FIRST):
            self.made[f"first{number}"] = self.first(holder, in_team, given)
            self.model.create(f"first{number}", holder, in_team, given)
        grant = Grant(sso_team=team.id)
        self.codes = {name: create_token(ada, grant, now=now).text for name in ("code0", "code1")}
        self.model.codes = dict.fromkeys(self.codes, to_ms(now) + CODE_SECONDS * 1000)
        self.stores = Stores(region())

    def first(self, holder: str, in_team: bool, given: dict[str, Any]) -> tuple[str, str]:
        """The id and the secret of one of the keys that every example begins with."""
        reply = self.ada("POST", f"{API}/create", json_body={**self.whose(holder, in_team), **on_the_wire(given)})
        return reply.json["id"], reply.json["key"]

    def whose(self, holder: str, in_team: bool) -> dict[str, Any]:
        if holder == "team":
            return {"configId": "team", "organizationId": self.ids["team"]}
        return {"userId": self.ids[holder], **({"teamId": self.ids["team"]} if in_team else {})}


@pytest.fixture
def world(mailbox: Mailbox, option: SetOption) -> Iterator[World]:
    option("operator_emails", "ada@acme.example")
    option("max_keys_per_user", MOST_KEYS)
    option("key_rate_limit_window_ms", 60_000)
    with time_machine.travel(datetime(2026, 3, 1, 12, tzinfo=UTC), tick=False):
        yield World()


@pytest.mark.slow
def test_keys_behave_as_in_the_model(world: World) -> None:
    machine: Any = partial(Keys, world)
    run_state_machine_as_test(machine, settings=quiet_settings(examples=50, steps=7))


@pytest.mark.parametrize("at", [1, 2, 3])
def test_two_uses_at_once_have_the_outcome_of_one_after_the_other(world: World, at: int) -> None:
    keys = Keys(world)
    # At once, after the end of a window and of a period, and after the end of several.
    for seconds in (0, 11, 31):
        keys.wait(seconds)
        for name in ("first0", "first1", "first2"):
            keys.both(keys.verification(name, "read"), keys.verification(name, "read"), at, of_writes=True)
    keys.both(keys.exchange_of("code0"), keys.exchange_of("code0"), at, of_writes=True)
    keys.teardown()


FIRST: list[tuple[str, bool, dict[str, Any]]] = [
    ("ada", False, {"remaining": 2, "refill": (1, 10_000)}),
    ("ada", True, {"window": 10_000, "most": 2, "remaining": 3}),
    ("bob", True, {"window": 10_000, "most": 1}),
    ("bob", True, {"lasts": 60_000, "metadata": "a"}),
    ("team", True, {"remaining": 1}),
    ("team", True, {}),
]
NAMES = st.sampled_from([0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7])
PLACES = st.sampled_from([*[(at, True) for at in (1, 2, 2, 3)], *[(at, False) for at in range(2, 6)]])
SECONDS = st.sampled_from([0, 0, 1, 10, 11, 31, 61])
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "remaining": st.integers(1, 2),
        "window": st.sampled_from([10_000, 60_000]),
        "most": st.integers(1, 2),
        "lasts": st.sampled_from([60_000, 600_000]),
    },
)
REFILL = st.tuples(st.integers(1, 2), st.sampled_from([10_000, 60_000]))
CHANGES = st.one_of(
    st.fixed_dictionaries({"enabled": st.booleans()}),
    st.fixed_dictionaries({"remaining": st.sampled_from([None, 0, 1, 3])}),
    st.fixed_dictionaries({"refill": st.none() | REFILL}),
    st.fixed_dictionaries({"limited": st.booleans()}),
    st.fixed_dictionaries({"most": st.integers(1, 3)}),
    st.fixed_dictionaries({"window": st.sampled_from([10_000, 60_000])}),
    st.fixed_dictionaries({"lasts": st.sampled_from([None, 10_000, 600_000])}),
    st.fixed_dictionaries({"actions": st.sampled_from([("read",), ("read", "write")])}),
    st.fixed_dictionaries({"metadata": st.sampled_from([None, "a", "b"])}),
)
ON_THE_WIRE = {"window": "rateLimitTimeWindow", "most": "rateLimitMax", "limited": "rateLimitEnabled"}


class Keys(RuleBasedStateMachine):
    def __init__(self, world: World) -> None:
        super().__init__()
        world.stores.put_back()
        restart()
        self.travelled = time_machine.travel(datetime(2026, 3, 1, 12, tzinfo=UTC), tick=False)
        self.clock = self.travelled.start()
        self.world = world
        self.model = deepcopy(world.model)
        self.made = dict(world.made)
        """The id and the secret of each key by its name in the model."""
        self.numbers = iter(range(1000))
        self.about: str | None = None

    def teardown(self) -> None:
        self.travelled.stop()

    # Requests -----------------------------------------------------------------------------------

    def requests(self, data: st.DataObject) -> tuple[Request, Request]:
        """Two requests: half of the time uses of one key or exchanges of one code, otherwise mostly about one key."""
        self.about = data.draw(st.sampled_from([None, None, None, "first0", "first1", "first2", "code0", "code0"]))
        if self.about is not None:
            make = self.exchange if self.about.startswith("code") else self.use
            return make(data), make(data)
        kinds = st.sampled_from(
            [*[self.use] * 6, *[self.update] * 4, self.create, self.delete, self.rotate, self.exchange, self.of_bob]
        )
        one, other = data.draw(kinds), data.draw(kinds)
        self.about = self.name(data)
        return one(data), other(data)

    def name(self, data: st.DataObject) -> str:
        """A key, the same for both requests of most overlaps."""
        if self.about is not None and data.draw(st.integers(0, 7)):
            return self.about
        names = sorted(self.model.keys)
        return names[data.draw(NAMES) % len(names)] if names else "none"

    def create(self, data: st.DataObject) -> Request:
        holder, in_team = data.draw(
            st.sampled_from([("ada", False), ("ada", True), ("bob", True), ("team", True), ("team", True)])
        )
        given: dict[str, Any] = data.draw(LIMITS)
        if "remaining" in given and data.draw(st.booleans()):
            given["refill"] = data.draw(REFILL)
        if "most" not in given:
            given.pop("window", None)
        name = f"k{next(self.numbers)}"
        body = {**self.world.whose(holder, in_team), **on_the_wire(given)}
        return Request(
            "create",
            {"name": name, "for": holder, **given},
            lambda: self.made_by(name, body),
            lambda m: m.create(name, holder, in_team, given),
        )

    def made_by(self, name: str, body: dict[str, Any]) -> Outcome:
        reply = self.world.ada("POST", f"{API}/create", json_body=body)
        if reply.status == 200:
            self.made[name] = reply.json["id"], reply.json["key"]
        return outcome(reply)

    def exchange(self, data: st.DataObject) -> Request:
        return self.exchange_of("code0" if self.about == "code0" else data.draw(st.sampled_from(["code0", "code1"])))

    def exchange_of(self, code: str) -> Request:
        name = f"k{next(self.numbers)}"
        return Request(
            "exchange",
            {"code": code, "name": name},
            lambda: self.exchanged(code, name),
            lambda m: m.exchange(code, name),
        )

    def exchanged(self, code: str, name: str) -> Outcome:
        reply = Sender(None, query=f"token={self.world.codes[code]}")("GET", "/registration/verify")
        if reply.status != 200:
            return reply.code.upper()
        raw = reply.json["token"]
        key = repository.get(hash_key(raw))
        assert key is not None
        self.made[name] = key.id, raw
        return OK

    def use(self, data: st.DataObject) -> Request:
        name, action, by_build = (
            self.name(data),
            data.draw(st.sampled_from(["read", "write"])),
            data.draw(st.booleans()),
        )
        if by_build:
            return Request("build", {"key": name}, lambda: self.built(name), lambda m: self.coarse(m, name))
        return self.verification(name, action)

    def verification(self, name: str, action: str) -> Request:
        body = {"key": self.made.get(name, ("", "x"))[1], "permissions": {"artifacts": [action]}}
        return Request(
            "use",
            {"key": name, "action": action},
            lambda: verified_as(Sender(None)("POST", f"{API}/verify", json_body=body)),
            lambda m: m.use(name, action),
        )

    def built(self, name: str) -> Outcome:
        """A build asks for an artifact that is not there, for the team."""
        sender = Sender(self.made.get(name, ("", "x"))[1], team_id=self.world.ids["team"])
        status = sender("HEAD", "/v8/artifacts/abc").status
        return {404: OK, 429: "RATE_LIMITED"}.get(status, REFUSED)

    def coarse(self, model: Model, name: str) -> Outcome:
        left = model.use(name, "read")
        if isinstance(left, tuple):
            return OK if model.has_team else REFUSED
        return left if left == "RATE_LIMITED" else REFUSED

    def update(self, data: st.DataObject) -> Request:
        name, given = self.name(data), data.draw(CHANGES)
        return Request(
            "update",
            {"key": name, **given},
            lambda: self.managed("update", name, on_the_wire(given)),
            lambda m: m.update(name, given),
        )

    def delete(self, data: st.DataObject) -> Request:
        name = self.name(data)
        return Request("delete", {"key": name}, lambda: self.managed("delete", name, {}), lambda m: m.delete(name))

    def managed(self, path: str, name: str, body: dict[str, Any]) -> Outcome:
        key = self.model.keys.get(name)
        team = {"configId": "team"} if key is not None and key.holder == "team" else {}
        body = {"keyId": self.made.get(name, ("A" * 32, ""))[0], **team, **body}
        return outcome(self.world.ada("POST", f"{API}/{path}", json_body=body))

    def rotate(self, data: st.DataObject) -> Request:
        old, name, overlap = self.name(data), f"k{next(self.numbers)}", data.draw(st.sampled_from([60, 600]))
        key = self.model.keys.get(old)
        whose = self.world.whose(key.holder, key.in_team) if key else self.world.whose("ada", False)
        body = {**whose, "replaces": self.made.get(old, ("A" * 32, ""))[0], "overlap": overlap}
        return Request(
            "rotate",
            {"key": old, "name": name, "overlap": overlap},
            lambda: self.made_by(name, body),
            lambda m: m.rotate(old, name, overlap * 1000),
        )

    def of_bob(self, data: st.DataObject) -> Request:
        world, bob = self.world, self.world.ids["bob"]
        path = f"/v1/teams/{world.ids['team']}"
        what = data.draw(st.sampled_from(["suspend", "suspend", "resume", "leave", "delete_user", "delete_team"]))
        send: dict[str, Callable[[], Outcome]] = {
            "suspend": lambda: by_operator(lambda: suspend_user(bob, now=clock.now())),
            "resume": lambda: by_operator(lambda: resume_user(bob)),
            "leave": lambda: outcome(world.bob("DELETE", f"{path}/members/{bob}")),
            "delete_user": lambda: outcome(world.bob("POST", "/api/auth/delete-user", json_body={})),
            "delete_team": lambda: outcome(world.ada("DELETE", path)),
        }
        if what in ("suspend", "resume") and "bob" not in self.model.holders:
            what = "leave"
        return Request(what, {}, send[what], lambda m: getattr(m, what)())

    # Rules --------------------------------------------------------------------------------------

    @rule(data=st.data(), seconds=SECONDS, place=PLACES)
    def overlap(self, data: st.DataObject, seconds: int, place: tuple[int, bool]) -> None:
        self.wait(seconds)
        at, of_writes = place
        self.both(*self.requests(data), at, of_writes=of_writes)

    def both(self, one: Request, other: Request, at: int, *, of_writes: bool) -> None:
        self.take([one, other], [*overlapping(at, one.send, other.send, of_writes=of_writes)])

    def wait(self, seconds: int) -> None:
        self.clock.shift(timedelta(seconds=seconds))
        self.model.now = to_ms(clock.now())

    def take(self, requests: list[Request], got: list[Outcome]) -> None:
        """Go on with the model after the order of requests that gives what the product did."""
        before = repr(self.model)
        stored, people = self.stored(), self.people()
        tried = list(either_order(self.model, requests, got, starts=with_and_without_ended))
        for model in tried:
            # What has ended may still be stored.
            ended = {name: key for name, key in self.model.keys.items() if key.is_over(model.now) and name in stored}
            model.keys = ended | model.keys
            if self.agrees(model, stored) and self.of_people(model) == people:
                model.keys = {name: key for name, key in model.keys.items() if name in stored}
                self.model = model
                return
        raise AssertionError(f"{requests} gave {got}, {stored} and {people}, {before} became {tried}")

    def stored(self) -> dict[str, tuple[Any, ...]]:
        """By the name of the key. No metadata stays without its key."""
        items = {item["key_hash"]: item for item in repository.API_KEYS.scan(exists("key_hash"))}
        kept = {key_hash for key_hash, item in items.items() if "has_metadata" in item}
        assert {name.removeprefix("#metadata#") for name in items if name.startswith("#metadata#")} == kept
        keys = [repository._from_item(item) for item in items.values() if "id" in item]
        by_id = {key.id: as_stored(key) for key in repository.all_with_metadata(keys)}
        return {name: by_id[id] for name, (id, _) in self.made.items() if id in by_id}

    def people(self) -> tuple[bool, bool, bool]:
        """Whether Bob exists and has access, and is a member, and whether the team exists."""
        bob, team = self.world.ids["bob"], self.world.ids["team"]
        user = find_user(bob)
        has_access = user is not None and user.has_access(clock.now())
        return has_access, role_of(team, bob) is not None, find_team(team) is not None

    def of_people(self, model: Model) -> tuple[bool, bool, bool]:
        return "bob" in model.holders and model.bob_has_access, model.bob_is_member, model.has_team

    def agrees(self, model: Model, stored: dict[str, tuple[Any, ...]]) -> bool:
        """Whether exactly the keys of the model are stored, as they are there, but for those that have ended."""
        wrong = [
            name
            for name, key in model.keys.items()
            if not key.ended and stored.get(name) != as_modelled(key) and (name in stored or not key.is_over(model.now))
        ]
        return not wrong and stored.keys() <= model.keys.keys()


def with_and_without_ended(model: Model) -> Iterator[Model]:
    """A key that has ended may be deleted before each request."""
    yield model
    changed = deepcopy(model)
    changed.keys = {name: key for name, key in model.keys.items() if not key.is_over(model.now)}
    yield changed


def verified_as(reply: Reply) -> Outcome:
    if reply.status != 200:
        return outcome(reply)
    if not reply.json["valid"]:
        return str(reply.json["error"]["code"])
    key = reply.json["key"]
    return key["remaining"], key["requestCount"] if key["rateLimitEnabled"] else None


def by_operator(command: Callable[[], object]) -> Outcome:
    """Run a command of the operator, whose calls no function has to be allowed."""
    with patch("tests.moto_sockets._watches", []):
        command()
    return OK


def on_the_wire(given: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, value in given.items():
        if name == "refill":
            amount, interval = value or (None, None)
            body |= {"refillAmount": amount, "refillInterval": interval}
        elif name == "lasts":
            body["expiresIn"] = None if value is None else value // 1000
        elif name == "actions":
            body["permissions"] = {"artifacts": list(value)}
        else:
            body[ON_THE_WIRE.get(name, name)] = value
    return body


def as_stored(key: ApiKey) -> tuple[Any, ...]:
    refill = None if key.refill is None else (key.refill.amount, key.refill.interval_ms)
    due = None if key.refill_due_at is None else to_ms(key.refill_due_at)
    expires = None if key.expires_at is None else to_ms(key.expires_at)
    limit = key.rate_limit
    counts = (key.request_count, to_ms(key.window_ends_at)) if key.is_counted else None
    return (
        key.enabled,
        key.permissions["artifacts"],
        key.remaining,
        refill,
        due,
        expires,
        limit.enabled,
        limit.window_ms,
        limit.max_requests,
        counts,
        key.metadata,
    )


def as_modelled(key: Key) -> tuple[Any, ...]:
    counts = (key.count, key.window_ends) if key.is_counted else None
    return (
        key.enabled,
        key.actions,
        key.remaining,
        key.refill,
        key.refill_due,
        key.expires,
        key.limited,
        key.window,
        key.most,
        counts,
        key.metadata,
    )
