"""Members, invitations, sessions and passwords against their model: two requests at a time, as in test_keys.py."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

import pytest
import time_machine
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from larder import clock
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import create_user, read_account
from larder.accounts.sessions import start_session
from larder.instance import restart
from larder.invitations import service as invitations
from larder.settings import region
from larder.tables import TEAMS
from larder.teams.members import add_member, list_members
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.functions.api_keys.people import verified
from tests.machines.interleaving import overlapping
from tests.machines.orders import Outcome, Request, either_order, outcome, quiet_settings
from tests.machines.team_model import ADMIN, MEMBER, MOST_INVITATIONS, OWNER, Model
from tests.mailbox import Mailbox
from tests.moto_stores import Stores
from tests.requests import Sender

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEMBERS = {"ada": OWNER, "bob": OWNER, "cat": ADMIN, "dan": ADMIN}
PEOPLE = [*MEMBERS, "eve"]
LINKS = ["ada", "ada", "eve"]
"""Whose password each reset link sets."""


class World:
    """A team, its members, and Eve. The stores go back to this for every example."""

    def __init__(self) -> None:
        now = clock.now()
        self.users = {
            name: verified(create_user(f"{name}@acme.example", name, password=PASSWORD, now=now)) for name in PEOPLE
        }
        self.ids = {name: user.id for name, user in self.users.items()}
        self.team = create_team("Acme", "acme", owner_user_id=self.ids["ada"], now=now).id
        for name in list(MEMBERS)[1:]:
            add_member(self.team, self.ids[name], Role(MEMBERS[name]), now=now)
        self.stores = Stores(region())
        self.known: Any = self._known()
        self.stores = Stores(region())

    def _known(self) -> Any:
        """The model, and what clients know: the id and the token of each invitation by its number in the model, the
        number of each user's newest invitation, also if it has ended, senders, and reset links.
        """
        model = Model(roles=dict(MEMBERS), passwords=dict.fromkeys(PEOPLE, PASSWORD))
        self.known = model, {}, {}, {}, []
        first = Teams(self)
        first.sign_in_all(PEOPLE)
        first.links = [first.link(name) for name in LINKS]
        first.alone(("invite", "cat", "eve", MEMBER))
        return first.model, first.invited, first.newest, first.senders, first.links


@pytest.fixture
def world(mailbox: Mailbox, option: SetOption) -> Iterator[World]:
    option("max_open_invitations", MOST_INVITATIONS)
    option("scrypt_cost", 1024)
    with time_machine.travel(START, tick=False):
        yield World()


@pytest.mark.slow
def test_teams_and_sign_in_behave_as_in_the_model(world: World) -> None:
    machine: Any = partial(Teams, world)
    run_state_machine_as_test(machine, settings=quiet_settings(examples=60, steps=5))


def test_conflicting_requests_have_the_outcome_of_one_of_their_orders(world: World) -> None:
    for one, other in CONFLICTS:
        for pair in ((one, other), (other, one)):
            for at in (1, 2, 3):
                Teams(world).overlap(pair, at, of_writes=True)


people = st.sampled_from(PEOPLE)
managers = st.sampled_from(["ada", "ada", "bob", "cat", "dan", "eve"])
roles = st.sampled_from([OWNER, ADMIN, MEMBER])
PASSWORDS = [PASSWORD, "another password", "a third password"]
passwords = st.sampled_from(PASSWORDS)
kinds: dict[str, tuple[Any, ...]] = {
    "invite": (managers, st.sampled_from(["eve", "eve", "dan"]), roles),
    "withdraw": (managers, st.just("eve")),
    "join": (st.sampled_from(["eve", "eve", "eve", "dan"]),),
    "change": (managers, people, roles),
    "remove": (managers, people),
    "leave": (st.sampled_from(["ada", "bob", "cat", "eve"]),),
    "read": (people,),
    "revoke_sessions": (people,),
    "reset": (st.integers(0, len(LINKS) - 1), passwords),
    "sign_in": (st.sampled_from(["ada", "eve"]), passwords),
    "delete": (st.sampled_from(["ada", "cat"]),),
}
often = ["invite", "withdraw", "join", "join", "change", "change", "remove", "leave"]


def of_kind(kind: str) -> Any:
    return st.tuples(st.just(kind), *kinds[kind])


CONFLICTS: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = [
    (("leave", "ada"), ("leave", "bob")),
    (("leave", "ada"), ("change", "bob", "bob", MEMBER)),
    (("remove", "cat", "dan"), ("remove", "dan", "cat")),
    (("change", "ada", "cat", MEMBER), ("invite", "cat", "eve", ADMIN)),
    (("remove", "ada", "cat"), ("join", "eve")),
    (("withdraw", "cat", "eve"), ("join", "eve")),
    (("invite", "bob", "eve", ADMIN), ("invite", "ada", "dan", MEMBER)),
    (("delete", "ada"), ("join", "eve")),
    (("reset", 0, PASSWORDS[1]), ("reset", 1, PASSWORDS[2])),
    (("reset", 0, PASSWORDS[1]), ("sign_in", "ada", PASSWORDS[0])),
]
"""Two requests that get into each other's way."""
in_any_order = st.sampled_from([each for one, other in CONFLICTS for each in ((one, other), (other, one))])
one_kind = st.sampled_from([*kinds, *often])
any_pair = st.tuples(one_kind.flatmap(of_kind), one_kind.flatmap(of_kind))
pairs = st.sampled_from([any_pair, *[in_any_order] * 2]).flatmap(lambda drawn: drawn)


class Teams(RuleBasedStateMachine):
    def __init__(self, world: World) -> None:
        super().__init__()
        world.stores.put_back()
        restart()
        self.world = world
        self.model, self.invited, self.newest, self.senders, self.links = deepcopy(world.known)
        self.numbers = count(len(self.invited))

    def sign_in_all(self, people: Any) -> None:
        for name in people:
            user = read_account(self.world.ids[name]).user
            self.senders[name] = Sender(start_session(user, now=clock.now())[1])

    def link(self, name: str) -> str:
        token = issue_reset_token(read_account(self.world.ids[name]).user, now=clock.now())
        self.model.links[token] = name
        return token

    # Requests.

    def request(self, kind: str, *drawn: Any) -> Request:
        send: Callable[[], Outcome]
        arguments: tuple[Any, ...] = drawn
        method = kind
        match kind, drawn:
            case "invite", (by, user, role):
                arguments = (*drawn, next(self.numbers))
                send = partial(self.invite, *arguments)
            case "withdraw", (by, user):
                arguments = (by, user, self.newest.get(user, -1))
                send = partial(self.remove, by, self.invited.get(arguments[2], ("inv_" + "A" * 24,))[0])
            case "join", (user,):
                arguments = (user, self.newest.get(user, -1))
                send = partial(self.join, user, self.invited.get(arguments[1], ("", "A" * 40))[1])
            case "change", (by, user, role):
                send = partial(self.ask, by, "PATCH", f"/members/{self.world.ids[user]}", {"role": role})
            case "remove", (by, user):
                send = partial(self.remove, by, self.world.ids[user])
            case "leave", (by,):
                method, arguments = "remove", (by, by)
                send = partial(self.remove, by, self.world.ids[by])
            case "read", (by,):
                send = partial(self.read, by)
            case "revoke_sessions", (by,):
                send = partial(self.auth, "revoke-sessions", {}, by)
            case "reset", (number, password):
                arguments = (self.links[number], password)
                send = partial(self.auth, "reset-password", {"token": arguments[0], "newPassword": password})
            case "sign_in", (user, password):
                body = {"email": self.world.users[user].email, "password": password}
                send = partial(self.auth, "sign-in/email", body)
            case _:
                send = partial(self.ask, drawn[0], "DELETE", "")
        return Request(kind, {"of": arguments}, send, lambda m: getattr(m, method)(*arguments))

    def ask(self, by: str, method: str, path: str, body: Any = None) -> Outcome:
        return outcome(self.senders[by](method, f"/v1/teams/{self.world.team}{path}", json_body=body))

    def invite(self, by: str, user: str, role: str, number: int) -> Outcome:
        self.newest[user] = number
        return self.ask(by, "POST", "/members", {"email": self.world.users[user].email, "role": role})

    def remove(self, by: str, id: str) -> Outcome:
        return self.ask(by, "DELETE", f"/members/{id}")

    def join(self, user: str, token: str) -> Outcome:
        return outcome(self.senders[user]("POST", "/v1/teams/join", json_body={"token": token}))

    def read(self, by: str) -> Outcome:
        return outcome(self.senders[by]("GET", f"/v2/teams/{self.world.team}"))

    def auth(self, path: str, body: dict[str, str], by: str | None = None) -> Outcome:
        sender = Sender(None) if by is None else self.senders[by]
        return outcome(sender("POST", f"/api/auth/{path}", json_body=body))

    # Rules.

    def alone(self, one: tuple[Any, ...]) -> None:
        request = self.request(*one)
        self.take([request], [request.send()])

    @rule(pair=pairs, at=st.integers(1, 3), of_writes=st.sampled_from([True, True, False]))
    def overlap(self, pair: tuple[tuple[Any, ...], tuple[Any, ...]], at: int, of_writes: bool) -> None:
        ended, used = set(self.model.signed_out), set(self.links) - self.model.links.keys()
        request, interrupting = (self.request(*one) for one in pair)
        got = overlapping(at, request.send, interrupting.send, of_writes=of_writes)
        self.take([request, interrupting], [*got])
        # What has ended was tried in this step.
        self.sign_in_all(ended)
        self.model.signed_out -= ended
        self.links = [self.link(LINKS[n]) if token in used else token for n, token in enumerate(self.links)]

    def take(self, requests: list[Request], got: list[Outcome]) -> None:
        stored = self.stored()
        tried = list(either_order(self.model, requests, got))
        for model in tried:
            if self.expected(model) == stored:
                self.model = model
                self.follow()
                return
        raise AssertionError(f"{requests} gave {got} and {stored}, the model: {[self.expected(one) for one in tried]}")

    def follow(self) -> None:
        """Issue the tokens of new invitations."""
        for user, invitation in self.model.invitations.items():
            if invitation.number not in self.invited:
                (made,) = [one for one in self.open() if one.address == self.world.users[user].email]
                self.invited[invitation.number] = made.id, invitations.issue_token(made)

    def open(self) -> list[Any]:
        return invitations.open_invitations(self.world.team, now=clock.now())

    def stored(self) -> Any:
        """The members, the count of owners and the invitations. Nothing of a deleted team, which the sweep deletes."""
        item = TEAMS.get(self.world.team, "team")
        if item is None:
            return None
        members = {member.user_id: member.role.value for member in list_members(self.world.team)}
        open_ = {(one.address, one.role.value, one.invited_by) for one in self.open()}
        return members, item["owners"], open_

    def expected(self, model: Model) -> Any:
        if not model.exists:
            return None
        ids, users = self.world.ids, self.world.users
        members = {ids[name]: role for name, role in model.roles.items()}
        open_ = {(users[name].email, one.role, ids[one.by]) for name, one in model.invitations.items()}
        return members, [*members.values()].count(OWNER), open_
