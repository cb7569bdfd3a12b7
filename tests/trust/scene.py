"""A protected team: a job of main with a trusted key, a job of a pull request, and members."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import time_machine

from larder import aws, clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.models import TRUST
from larder.api_keys.properties import NewKey
from larder.settings import settings
from larder.teams.models import Protection
from larder.teams.protection import ProtectionChange, change_protection
from tests.direct_uploads import announce, offer, put_object
from tests.requests import Cloud, Reply, Sender

CLEAN, POISON = b"what main built", b"what the pull request made"
LARGE_CLEAN, LARGE_POISON = CLEAN * 30_000, POISON * 30_000
TRUSTED = {"artifacts": ("read", "write", TRUST)}


@dataclass(frozen=True)
class Scene:
    """`main` and `pr` send with keys of the team; `laptop` with a session of its owner."""

    cloud: Cloud
    main: Sender
    pr: Sender
    laptop: Sender

    @property
    def other_pr(self) -> Sender:
        """A pull request whose job has another key."""
        return new_key(self.cloud)


def new_key(cloud: Cloud, new: NewKey | None = None) -> Sender:
    """Send with a new key of the team. By default, one as CI has it."""
    new = new or NewKey(user_id=cloud.user.id)
    return Sender(create_key(replace(new, team_id=cloud.team.id), now=clock.now())[1])


def trusted_key(cloud: Cloud) -> Sender:
    return new_key(cloud, NewKey(user_id=cloud.user.id, permissions=TRUSTED))


def session(cloud: Cloud) -> Sender:
    return Sender(start_session(cloud.user, now=clock.now())[1], slug=cloud.team.slug)


def make_scene(cloud: Cloud) -> Scene:
    return Scene(cloud, trusted_key(cloud), cloud.send, session(cloud))


def protect(cloud: Cloud, *, on: bool = True, keep_stored: bool = False) -> Protection:
    change = ProtectionChange(protected=on, keep_stored=keep_stored)
    return change_protection(cloud.team.id, change, by=None)


@contextmanager
def seconds_later(seconds: float = 3) -> Iterator[None]:
    """By default, after the moment from which uploads count in a team that is protected now."""
    with time_machine.travel(clock.now() + timedelta(seconds=seconds), tick=True):
        yield


@contextmanager
def protected(cloud: Cloud) -> Iterator[None]:
    protect(cloud)
    with seconds_later():
        yield


def put(send: Sender, hash: str, body: bytes, *, preflight: bool = False) -> str | None:
    """Store an artifact. With preflight, straight to S3; returns the key of the object."""
    if not preflight:
        assert send("PUT", f"/v8/artifacts/{hash}", body=body).status == 202
        return None
    key = offer(send, hash)
    put_object(key, body)
    announce(key)
    return key


def get(send: Sender, hash: str) -> Reply:
    """The reply of GET. Its redirect is followed by `read`."""
    return send("GET", f"/v8/artifacts/{hash}")


def read(send: Sender, hash: str) -> bytes | None:
    """What a build restores: the body, or that of the object that the redirect names. None for a miss.

    Also checks that HEAD and the query say the same.
    """
    reply = get(send, hash)
    head = send("HEAD", f"/v8/artifacts/{hash}")
    (found,) = send("POST", "/v8/artifacts", json_body={"hashes": [hash]}).json.values()
    if reply.status == 404:
        assert (head.status, found) == (404, None)
        return None
    body = restored(reply)
    assert (head.status, found["size"]) == (200, len(body))
    assert head.headers.get("x-artifact-scope") == reply.headers.get("x-artifact-scope")
    return body


def scope_of(send: Sender, hash: str) -> str | None:
    return get(send, hash).headers.get("x-artifact-scope")


def restored(reply: Reply) -> bytes:
    """What a build gets from a reply to GET: its body, or the object that its redirect names."""
    if reply.status == 200:
        return reply.body
    parts = urlsplit(reply.headers["location"])
    stored = aws.s3().get_object(
        Bucket=settings().artifacts_bucket,
        Key=unquote(parts.path).removeprefix("/"),
        VersionId=parse_qs(parts.query)["versionId"][0],
    )
    return bytes(stored["Body"].read())
