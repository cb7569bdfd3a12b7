"""Hostile requests about teams never get a 5xx, and never learn of, or change, a team that is not the caller's: as
hypothesis draws them, to the handlers through the template's routes.

A request is a valid one with its names, fields and query replaced, so that it gets further than the first look.
FUZZ_EXAMPLES is the number of requests to each endpoint, FUZZ_SEED draws others.
"""

import json
import os
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from larder import clock
from larder.hashing import random_id
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.teams.models import Role
from larder.teams.service import add_member, create_team, find_team, members
from tests.conftest import SetOption
from tests.functions.teams.people import Person, newcomer, signed_in
from tests.mailbox import Mailbox
from tests.proofs.conftest import BeginRounds
from tests.requests import Cloud, deliver

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 25)
SEED = int(os.environ.get("FUZZ_SEED") or 0)

ENDPOINTS: dict[tuple[str, str], Any] = {
    ("POST", "/v1/teams"): {"slug": "SLUG", "name": "New"},
    ("GET", "/v2/teams/TEAM"): None,
    ("PATCH", "/v2/teams/TEAM"): {
        "name": "New", "slug": "SLUG", "formerSlugs": [], "remoteCaching": {"enabled": True}
    },
    ("DELETE", "/v1/teams/TEAM"): None,
    ("GET", "/v3/teams/TEAM/members"): None,
    ("POST", "/v1/teams/TEAM/members"): {"email": "EMAIL", "role": "ADMIN"},
    ("POST", "/v2/teams/TEAM/members"): [{"email": "EMAIL", "role": "OWNER"}],
    ("PATCH", "/v1/teams/TEAM/members/MEMBER"): {"role": "VIEWER"},
    ("DELETE", "/v1/teams/TEAM/members/MEMBER"): None,
    ("POST", "/v1/teams/join"): {"token": "TOKEN"},
    ("POST", "/v1/teams/TEAM/members/teams/join"): {"inviteCode": "TOKEN"},
}  # fmt: skip

MARK = "private-to-bob"

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(), max_size=60),
        st.sampled_from(
            ["", "team_", MARK, f"{MARK}@b.example", "OWNER", "owner", "a" * 5000, "../../x", "\x00", "\ud800",
             "a@b.example\r\nBcc: c@d.example", "A" * 32, "inv_" + "a" * 24, "__proto__", "$ne", "1e999"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip
fields = st.dictionaries(
    st.sampled_from(
        ["slug", "name", "formerSlugs", "remoteCaching", "email", "role", "token", "inviteCode", "uid", "id",
         "projects", "__proto__"]
    ),
    values,
    max_size=3,
)  # fmt: skip
raw_bodies = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"null", b"[]", b"1", b"{", b"[" * 50_000, b'{"a":' * 20_000, b"[[[]]]"]),
)
names = st.one_of(
    st.none(),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="/?#"), min_size=1, max_size=40),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).map(lambda text: quote(text, safe="")),
    st.sampled_from(["BOBS", MARK, "team_" + "a" * 64, "a" * 5000, "%00", "..", "%2F", "member%23x"]),
)  # fmt: skip
queries = st.one_of(
    st.just(""),
    st.sampled_from(
        ["limit=1", "limit=0", "until=0", "until=99999999999999", "since=5&until=1", "limit=%00", "until=-1",
         "teamId=BOBS", f"slug={MARK}", "limit=1&limit=2"]
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30),
)  # fmt: skip


def of_bob() -> tuple[Person, str]:
    """Somebody whose team all of it must leave alone, and the team's id."""
    bob = newcomer("bob")
    team = create_team(MARK, MARK, owner_user_id=bob.user.id, now=clock.now())
    invitee = Invitee(email=f"{MARK}@b.example", address=f"{MARK}@b.example", role=Role.OWNER)
    invitations.invite(team.id, [invitee], by=None, now=clock.now())
    return bob, team.id


@pytest.mark.parametrize(("method", "path"), ENDPOINTS, ids=lambda part: part.strip("/"))
def test_whatever_is_sent(
    method: str,
    path: str,
    cloud: Cloud,
    mailbox: Mailbox,
    option: SetOption,
    begin_rounds: BeginRounds,
    told: list[str],
) -> None:
    option("max_teams_per_user", 0)
    option("max_open_invitations", 500)
    ada = signed_in(cloud.user)
    _, bobs = of_bob()
    began = clock.now()
    before = (find_team(bobs), members(bobs), invitations.open_invitations(bobs, now=began))

    def check_stores() -> None:
        """Every mail that was asked for can be sent, and Bob's team is what it was."""
        mailbox.deliver()
        after = (find_team(bobs), members(bobs), invitations.open_invitations(bobs, now=began))
        assert after == before

    rounds = begin_rounds(check_stores)
    statuses = Counter[int]()

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(fields, st.one_of(st.none(), st.none(), st.none(), raw_bodies), names, names, queries)
    @example({}, None, None, None, "")
    @example({}, None, "BOBS", None, "")
    @example({}, None, None, "inv_" + "a" * 24, "")
    def attack(
        changed: dict[str, Any], raw: bytes | None, team: str | None, member: str | None, query: str
    ) -> None:
        now = clock.now()
        own = create_team("Own", random_id(12).lower(), owner_user_id=ada.user.id, now=now)
        add_member(own.id, "somebody", Role.MEMBER, now=now)
        invitee = Invitee(email=ada.user.email, address=ada.user.email, role=Role.VIEWER)
        (invitation,) = invitations.invite(own.id, [invitee], by=None, now=now)
        stands_for = {
            "TEAM": (team or own.id).replace("BOBS", bobs),
            "MEMBER": member or "somebody",
            "SLUG": random_id(12).lower(),
            "EMAIL": f"{random_id(8)}@c.example",
            "TOKEN": invitations.issue_token(invitation),
            "BOBS": bobs,
        }
        asked, sent = path, json.dumps(_changed(ENDPOINTS[method, path], changed))
        for placeholder, value in stands_for.items():
            asked, sent = asked.replace(placeholder, value), sent.replace(placeholder, value)
        body = sent.encode() if raw is None else raw
        headers = [
            ("authorization", f"Bearer {ada.send.token}"),
            ("content-type", "application/json"),
            ("x-forwarded-proto", "https"),
        ]
        reply = deliver(
            method, asked, query.replace("BOBS", bobs), headers, b"" if method == "GET" else body
        )
        statuses[reply.status] += 1
        assert reply.status < 500, reply
        assert reply.headers["content-type"] == "application/json"
        # A slug that somebody asks for, and cannot have, stands in the refusal; nothing else of Bob's does.
        assert MARK.encode() not in reply.body or MARK in f"{changed}{team}{raw!r}"
        assert bobs.encode() not in reply.body
        if reply.status >= 400:
            assert set(reply.json) == {"error", "code", "message"}
            assert len(reply.body) < 1500
        rounds.count()

    attack()
    check_stores()
    assert min(statuses) < 400, "none got further than the first look"
    told.append(f"hostile {method} {path}: {dict(sorted(statuses.items()))}")


def _changed(body: Any, changed: dict[str, Any]) -> Any:
    if isinstance(body, list):
        return [{**one, **changed} for one in body]
    return {**(body or {}), **changed}
