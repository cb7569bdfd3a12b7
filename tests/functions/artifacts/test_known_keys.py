"""An instance remembers where the items of a token are, not what they said: each change applies to the next request.

*Warm* is the instance that has just accepted the token, *cold* one that has not seen it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
import time_machine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from larder import clock, instance
from larder.accounts.models import User
from larder.accounts.service import create_user, delete_user
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import create_key, revoke_key, rotate_key
from larder.api_keys.models import ApiKey
from larder.api_keys.principals import Principal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.repository import API_KEYS
from larder.api_keys.self_service import update_key
from larder.artifacts.management import delete_artifact
from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import read_entry
from larder.errors import LarderError
from larder.tables import commit
from larder.teams.members import add_member, change_role, remove_member
from larder.teams.models import Block, CachingStatus, Member, Role, Team
from larder.teams.state import change_state
from larder.teams.teams import TeamChange, change_team, create_team, delete_team
from tests.catalogue import valid
from tests.requests import Reply, Sender

STATUS, HEAD, GET = ("GET /v8/artifacts/status", "HEAD /v8/artifacts/{hash}", "GET /v8/artifacts/{hash}")
ENDPOINTS = [STATUS, HEAD, GET]
BODY, OTHER_BODY, NEW_BODY = b"of acme", b"of the other team", b"a newer one"
AT_ONCE = 40

_numbers = count(1)


@dataclass
class Scene:
    """Bob, a member of the team and of `other`, with a key for all of his teams. Each team has the artifact `small`."""

    ada: User
    bob: User
    team: Team
    other: Team
    key: ApiKey
    token: str
    session: str

    def by(self, identity: str) -> Sender:
        return {
            "slug": Sender(self.token, slug=self.team.slug),
            "teamId": Sender(self.token, team_id=self.team.id),
            "neither": Sender(self.token),
            "session": Sender(self.session, slug=self.team.slug),
        }[identity]


def make_scene(*, bound: bool = False) -> Scene:
    now, number = clock.now(), next(_numbers)
    ada = create_user(f"ada{number}@acme.example", "Ada", now=now)
    bob = create_user(f"bob{number}@acme.example", "Bob", now=now)
    team = create_team("Acme", f"acme-{number}", owner_user_id=ada.id, now=now)
    other = create_team("Other", f"other-{number}", owner_user_id=ada.id, now=now)
    for each, body in ((team, BODY), (other, OTHER_BODY)):
        add_member(each.id, bob.id, Role.MEMBER, now=now)
        put(ada, each, body)
    key, token = create_key(NewKey(user_id=bob.id, team_id=team.id if bound else None), now=now)
    return Scene(ada, bob, team, other, key, token, start_session(bob, now=now)[1])


def put(user: User, team: Team, body: bytes) -> None:
    sender = Sender(create_key(NewKey(user_id=user.id), now=clock.now())[1], team_id=team.id)
    assert sender("PUT", "/v8/artifacts/small", body=body).status == 202


def request(send: Sender, endpoint: str) -> Reply:
    return valid(endpoint, hash="small")(send)


# What can change ---------------------------------------------------------------------------------


def change_key(scene: Scene, changes: KeyChanges) -> None:
    update_key(Principal(credential=scene.key), scene.key.id, changes, now=clock.now())


def is_revoked(scene: Scene) -> None:
    assert revoke_key(scene.key)


def is_rotated(scene: Scene) -> None:
    assert rotate_key(scene.key.id, overlap_s=0, now=clock.now())


def is_rotated_with_an_overlap(scene: Scene) -> None:
    assert rotate_key(scene.key.id, overlap_s=60, now=clock.now())


def is_disabled(scene: Scene) -> None:
    change_key(scene, KeyChanges(enabled=False))


def loses_permissions(scene: Scene) -> None:
    change_key(scene, KeyChanges(permissions={"artifacts": ("write",)}))


def gets_an_allowance(scene: Scene) -> None:
    change_key(scene, KeyChanges(remaining=1000))


def is_moved_to_the_other_team(scene: Scene) -> None:
    assert commit(API_KEYS.update(scene.key.key_hash, set={"team_id": scene.other.id}))


def is_moved_to_a_stranger(scene: Scene) -> None:
    stranger = create_user(f"eve{next(_numbers)}@elsewhere.example", "Eve", now=clock.now())
    assert commit(API_KEYS.update(scene.key.key_hash, set={"user_id": stranger.id}))


def user_is_deleted(scene: Scene) -> None:
    delete_user(scene.bob.id, now=clock.now())


def sessions_are_revoked(scene: Scene) -> None:
    revoke_sessions(scene.bob.id)


def member_is_removed(scene: Scene) -> None:
    remove_member(scene.team.id, scene.bob.id, by=None)


def member_joins_again(scene: Scene) -> None:
    add_member(scene.team.id, scene.bob.id, Role.MEMBER, now=clock.now())


def member_becomes_a_viewer(scene: Scene) -> None:
    owner = Member(user_id=scene.ada.id, role=Role.OWNER, joined_at=clock.now())
    change_role(scene.team.id, scene.bob.id, Role.VIEWER, by=owner)


def team_is_blocked(scene: Scene) -> None:
    change_state(scene.team.id, block=Block.SOFT)


def team_is_unblocked(scene: Scene) -> None:
    change_state(scene.team.id, unblock=True)


def caching_is_paused(scene: Scene) -> None:
    change_state(scene.team.id, caching=CachingStatus.PAUSED)


def caching_is_enabled(scene: Scene) -> None:
    change_state(scene.team.id, caching=CachingStatus.ENABLED)


def quota_is_used_up(scene: Scene) -> None:
    change_state(scene.team.id, quota_bytes=1)


def team_is_deleted(scene: Scene) -> None:
    delete_team(scene.team.id, by=None, now=clock.now())


def team_is_renamed(scene: Scene) -> None:
    """Its former slug still leads to it."""
    new = TeamChange(slug=f"renamed-{next(_numbers)}")
    change_team(scene.team.id, new, by=None, now=clock.now())


def slug_is_freed(scene: Scene) -> None:
    new = TeamChange(slug=f"renamed-{next(_numbers)}", former_slugs=())
    change_team(scene.team.id, new, by=None, now=clock.now())


def slug_leads_to_the_other_team(scene: Scene) -> None:
    slug_is_freed(scene)
    change_team(scene.other.id, TeamChange(slug=scene.team.slug), by=None, now=clock.now())


def slug_leads_to_a_strangers_team(scene: Scene) -> None:
    slug_is_freed(scene)
    stranger = create_user(f"eve{next(_numbers)}@elsewhere.example", "Eve", now=clock.now())
    theirs = create_team("Eve's", scene.team.slug, owner_user_id=stranger.id, now=clock.now())
    put(stranger, theirs, b"of a stranger")


def artifact_is_replaced(scene: Scene) -> None:
    put(scene.ada, scene.team, NEW_BODY)


def artifact_is_deleted(scene: Scene) -> None:
    hash = ArtifactHash("small")
    entry = read_entry(scene.team.id, hash)
    delete_artifact(scene.team.id, hash, entry, by=None, now=clock.now())


Memories = list[tuple[instance.Remembered[Any, Any], dict[Any, Any]]]


def remembered() -> Memories:
    """What the instance remembers of earlier requests."""
    return [(memory, dict(memory)) for memory in instance._memories]


def remember(memories: Memories) -> None:
    """Go on as the instance that remembered this."""
    for memory, before in memories:
        memory.clear()
        for key, value in before.items():
            memory[key] = value


# One change --------------------------------------------------------------------------------------

Refused = tuple[int, str]
UNAUTHORIZED, NO_MEMBER = (401, "unauthorized"), (403, "not_a_team_member")
CHANGES: dict[tuple[str, Callable[[Scene], None]], tuple[bytes | Refused, str | Refused]] = {
    ("slug", is_revoked): (UNAUTHORIZED, UNAUTHORIZED),
    ("slug", is_rotated): (UNAUTHORIZED, UNAUTHORIZED),
    ("slug", is_rotated_with_an_overlap): (BODY, "enabled"),
    ("slug", is_disabled): (UNAUTHORIZED, UNAUTHORIZED),
    ("slug", loses_permissions): ((403, "missing_permission"), "enabled"),
    ("slug", gets_an_allowance): (BODY, "enabled"),
    ("slug", is_moved_to_the_other_team): (NO_MEMBER, NO_MEMBER),
    ("neither", is_moved_to_the_other_team): (OTHER_BODY, "enabled"),
    ("slug", is_moved_to_a_stranger): (NO_MEMBER, NO_MEMBER),
    ("teamId", is_moved_to_a_stranger): (NO_MEMBER, NO_MEMBER),
    ("slug", user_is_deleted): (UNAUTHORIZED, UNAUTHORIZED),
    ("session", user_is_deleted): (UNAUTHORIZED, UNAUTHORIZED),
    ("session", sessions_are_revoked): (UNAUTHORIZED, UNAUTHORIZED),
    ("slug", member_is_removed): (NO_MEMBER, NO_MEMBER),
    ("teamId", member_is_removed): (NO_MEMBER, NO_MEMBER),
    ("neither", member_is_removed): (NO_MEMBER, NO_MEMBER),
    ("session", member_is_removed): (NO_MEMBER, NO_MEMBER),
    ("slug", member_becomes_a_viewer): (BODY, "enabled"),
    ("slug", team_is_blocked): ((402, "account_soft_blocked"), (402, "account_soft_blocked")),
    ("slug", caching_is_paused): ((403, "remote_caching_paused"), "paused"),
    ("slug", quota_is_used_up): (BODY, "over_limit"),
    ("slug", team_is_deleted): (NO_MEMBER, NO_MEMBER),
    ("teamId", team_is_deleted): (NO_MEMBER, NO_MEMBER),
    ("slug", team_is_renamed): (BODY, "enabled"),
    ("slug", slug_is_freed): (NO_MEMBER, NO_MEMBER),
    ("teamId", slug_is_freed): (BODY, "enabled"),
    ("slug", slug_leads_to_the_other_team): (OTHER_BODY, "enabled"),
    ("session", slug_leads_to_the_other_team): (OTHER_BODY, "enabled"),
    ("slug", slug_leads_to_a_strangers_team): (NO_MEMBER, NO_MEMBER),
    ("session", slug_leads_to_a_strangers_team): (NO_MEMBER, NO_MEMBER),
    ("slug", artifact_is_replaced): (NEW_BODY, "enabled"),
    ("slug", artifact_is_deleted): ((404, "artifact_not_found"), "enabled"),
}
"""How the request names the team, and the change: what GET and HEAD of the artifact get then, and what status says."""

in_both = pytest.mark.parametrize("heat", ["warm", "cold"])


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize(("identity", "change"), CHANGES, ids=[f"{by}-{change.__name__}" for by, change in CHANGES])
def test_a_change_applies_to_the_next_request(
    identity: str, change: Callable[[Scene], None], aws_in_memory: None, subtests: pytest.Subtests
) -> None:
    scene = make_scene(bound=identity == "neither")
    send = scene.by(identity)
    for endpoint in ENDPOINTS:
        assert request(send, endpoint).status == 200
    memories = remembered()
    change(scene)
    for endpoint in ENDPOINTS:
        expected = CHANGES[identity, change][endpoint == STATUS]
        with subtests.test(endpoint=endpoint, heat="warm"):
            remember(memories)
            check_reply(request(send, endpoint), endpoint, expected)
        with subtests.test(endpoint=endpoint, heat="cold"):
            instance.restart()
            check_reply(request(send, endpoint), endpoint, expected)


def check_reply(reply: Reply, endpoint: str, expected: bytes | str | Refused) -> None:
    if isinstance(expected, tuple):
        assert reply.status == expected[0]
        assert endpoint == HEAD or reply.code == expected[1]
    elif endpoint == HEAD:
        assert (reply.status, reply.headers["content-length"]) == (200, str(len(expected)))
    elif endpoint == GET:
        assert (reply.status, reply.body) == (200, expected)
    else:
        assert (reply.status, reply.json) == (200, {"status": expected})


@in_both
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_key_is_refused_once_it_has_expired(endpoint: str, heat: str, aws_in_memory: None) -> None:
    scene = make_scene()
    new = NewKey(user_id=scene.bob.id, expires_in_s=86_400)
    send = Sender(create_key(new, now=clock.now())[1], team_id=scene.team.id)
    assert request(send, endpoint).status == 200
    if heat == "cold":
        instance.restart()
    with time_machine.travel(clock.now() + timedelta(seconds=86_400)):
        assert request(send, endpoint).status == 401


@in_both
def test_a_member_who_becomes_a_viewer_cannot_upload(heat: str, aws_in_memory: None) -> None:
    scene = make_scene()
    send = scene.by("slug")
    assert send("PUT", "/v8/artifacts/new", body=BODY).status == 202
    member_becomes_a_viewer(scene)
    if heat == "cold":
        instance.restart()
    reply = send("PUT", "/v8/artifacts/new", body=BODY)
    assert (reply.status, reply.code) == (403, "read_only")


# Any number of changes ---------------------------------------------------------------------------

ACTS: list[Callable[[Scene], None]] = [
    *dict.fromkeys(change for _, change in CHANGES),
    member_joins_again,
    team_is_unblocked,
    caching_is_enabled,
]


@contextmanager
def cold() -> Iterator[None]:
    """An instance that has seen nothing. Afterwards, the other one continues with what it remembers."""
    memories = remembered()
    instance.restart()
    yield
    remember(memories)


def shown(reply: Reply) -> tuple[int, bytes, dict[str, str]]:
    return reply.status, reply.body, reply.headers


@pytest.mark.slow
@given(
    bound=st.booleans(),
    steps=st.lists(
        st.tuples(
            st.none() | st.sampled_from(ACTS),
            st.sampled_from(["slug", "teamId", "neither", "session"]),
            st.sampled_from(ENDPOINTS),
        ),
        min_size=2,
        max_size=8,
    ),
)
@settings(max_examples=15, database=None, suppress_health_check=list(HealthCheck))
def test_a_warm_instance_replies_like_a_cold_one(
    bound: bool, steps: list[tuple[Callable[[Scene], None] | None, str, str]], aws_in_memory: None
) -> None:
    scene = make_scene(bound=bound)
    for identity in ("slug", "teamId", "neither", "session"):
        request(scene.by(identity), STATUS)
    for act, identity, endpoint in steps:
        if act is not None:
            # Some changes do not apply, such as a second deletion.
            with suppress(LarderError, AssertionError):
                act(scene)
        send = scene.by(identity)
        with cold():
            expected = request(send, endpoint)
        assert shown(request(send, endpoint)) == shown(expected), (identity, endpoint)
