"""The attacks of docs/security.md#attacks-and-their-tests that need mail, events of S3 or several people, sent to a
running local cloud.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.direct_uploads import PREFLIGHT
from tests.e2e import cloud as local_clouds
from tests.e2e.cloud import LocalCloud
from tests.e2e.outbox import link_in, mail_to
from tests.proofs.stamped import http_client
from tests.proofs.stored import wait_for_events, wait_for_jobs

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"
GUESSED = "another horse battery"
UNPROVEN_QUOTA = 1_000_000
OPTIONS = {
    # The default of a deployment, where the local cloud has another one. People of this company can sign up.
    "LARDER_SIGN_UP_POLICY": "invited",
    "LARDER_ALLOWED_EMAIL_DOMAINS": "corp.example",
    # So that attackers and victims can come from many addresses.
    "LARDER_TRUSTED_PROXY_HOPS": "1",
    "LARDER_UNVERIFIED_QUOTA_BYTES": str(UNPROVEN_QUOTA),
    "LARDER_SCRYPT_COST": "1024",
}
MALICIOUS_PAGE = {
    "content-type": "text/html",
    "content-disposition": "inline",
    "cache-control": "public, max-age=31536000",
}

_numbers = count(1)


@dataclass
class Site:
    """The local cloud as its visitors reach it. Each request comes from another address, unless it says otherwise."""

    server: LocalCloud
    http: httpx.Client

    def __call__(
        self, method: str, path: str, *, bearer: str = "", headers: Any = None, **content: Any
    ) -> httpx.Response:
        number = next(_numbers)
        sent = {"x-forwarded-for": f"198.18.{number // 256}.{number % 256}", **(headers or {})}
        if bearer:
            sent["authorization"] = f"Bearer {bearer}"
        # The visitors share a client, but not their cookies.
        self.http.cookies.clear()
        return self.http.request(method, self.server.url + path, headers=sent, **content)

    def auth(self, path: str, *, bearer: str = "", **body: Any) -> httpx.Response:
        return self("POST", f"/api/auth{path}", bearer=bearer, json=body)

    def open(self, link: str, *, bearer: str = "") -> httpx.Response:
        """Open a link of an email, by default without a session, as a mail scanner does."""
        parts = urlsplit(link)
        return self("GET", f"{parts.path}?{parts.query}", bearer=bearer)

    def person(self, email: str = "") -> "Person":
        """A person who signs up, by default with an address of their own."""
        email = email or f"{secrets.token_hex(6)}@corp.example"
        reply = self.auth("/sign-up/email", email=email, password=PASSWORD, name="Ada")
        assert reply.status_code == 200, reply.text
        return Person(self, email, reply.json()["token"], reply.json()["user"]["id"])

    def proven_person(self) -> "Person":
        """A person who has opened the verification link in their own session."""
        person = self.person()
        assert self.open(person.mailed_link(), bearer=person.session).status_code == 302
        return person


@dataclass
class Person:
    site: Site
    email: str
    session: str
    id: str

    def __call__(self, method: str, path: str, **content: Any) -> httpx.Response:
        return self.site(method, path, bearer=self.session, **content)

    def auth(self, path: str, **body: Any) -> httpx.Response:
        return self.site.auth(path, bearer=self.session, **body)

    def new_key(self, **fields: Any) -> "Key":
        reply = self.auth("/api-key/create", **fields)
        assert reply.status_code == 200, reply.text
        return Key(self.site, reply.json()["id"], reply.json()["key"])

    def mails(self, *, count: int = 1) -> list[dict[str, Any]]:
        """The emails to the person, oldest first, after at least `count` came."""
        return mail_to(self.site.server, self.email, count=count)

    def mailed_link(self, *, count: int = 1) -> str:
        """The link in the last of at least `count` emails."""
        return link_in(self.mails(count=count)[-1])

    def asks_for_a_reset_link(self) -> str:
        """The token of the link."""
        before = len(self.mails(count=0))
        assert self.site.auth("/request-password-reset", email=self.email).status_code == 200
        return urlsplit(self.mailed_link(count=before + 1)).path.rpartition("/")[2]

    def resets_the_password(self, password: str = GUESSED) -> httpx.Response:
        token = self.asks_for_a_reset_link()
        return self.site.auth("/reset-password", token=token, newPassword=password)

    def signs_in(self, password: str) -> httpx.Response:
        return self.site.auth("/sign-in/email", email=self.email, password=password)


@dataclass
class Key:
    """An API key in the hands of a build."""

    site: Site
    id: str
    secret: str

    def __call__(self, method: str, hash: str, team: str = "", **content: Any) -> httpx.Response:
        query = f"?slug={team}" if team else ""
        return self.site(method, f"/v8/artifacts/{hash}{query}", bearer=self.secret, **content)

    def upload_url(self, hash: str, team: str = "") -> str:
        return self("OPTIONS", hash, team, headers=PREFLIGHT).headers["location"]

    def reads(self, hash: str, team: str = "") -> bytes:
        """The artifact from the API, or from its redirect."""
        reply = self("GET", hash, team)
        if reply.status_code == 302:
            reply = self.site.http.get(reply.headers["location"])
        assert reply.status_code == 200, reply.text
        return reply.content


@dataclass
class OwnedTeam:
    owner: Person
    slug: str
    id: str

    def invite(self, person_or_email: "Person | str", role: str) -> str:
        """Send an invitation. Return the token of its link."""
        site = self.owner.site
        email = person_or_email if isinstance(person_or_email, str) else person_or_email.email
        before = len(mail_to(site.server, email, count=0))
        invited = self.owner("POST", f"/v1/teams/{self.slug}/members", json={"email": email, "role": role})
        assert invited.status_code == 200, invited.text
        link = link_in(mail_to(site.server, email, count=before + 1)[-1])
        (token,) = parse_qs(urlsplit(link).query)["token"]
        return token

    def add(self, person: Person, role: str = "DEVELOPER") -> None:
        joined = person("POST", "/v1/teams/join", json={"token": self.invite(person, role)})
        assert joined.status_code == 200, joined.text

    def remove(self, person: Person) -> None:
        removed = self.owner("DELETE", f"/v1/teams/{self.slug}/members/{person.id}")
        assert removed.status_code == 200, removed.text


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    data = tmp_path_factory.mktemp("attacked") / "data"
    with local_clouds.running(request.config.rootpath, data, **OPTIONS) as server:
        yield server


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with http_client(8) as client:
        yield client


@pytest.fixture(scope="module")
def site(server: LocalCloud, http: httpx.Client) -> Site:
    return Site(server, http)


@pytest.fixture(scope="module")
def team(site: Site) -> OwnedTeam:
    owner, slug = site.proven_person(), f"acme-{secrets.token_hex(4)}"
    made = owner("POST", "/v1/teams", json={"slug": slug})
    assert made.status_code == 200, made.text
    return OwnedTeam(owner, slug, made.json()["id"])


def refusal(reply: httpx.Response) -> tuple[int, str]:
    """Status and code of an error, in the format of either API."""
    body = reply.json()
    return reply.status_code, body.get("code") or body["error"]["code"]


# -------------------------------------------------------------------------- whose account and whose storage


def test_sign_up_with_the_address_of_another_person_and_keep_a_key_in_their_teams(site: Site, team: OwnedTeam) -> None:
    """A mail scanner opens the verification link, and later the owner of the address resets the password."""
    stranger = site.person()
    key = stranger.new_key()
    assert site.open(stranger.mailed_link()).status_code == 302
    victim = Person(site, stranger.email, "", stranger.id)
    reset = victim.resets_the_password()
    assert reset.status_code == 200, reset.text
    assert "The API keys of the account were deleted" in victim.mails(count=3)[-1]["text"]
    victim.session = victim.signs_in(GUESSED).json()["token"]
    team.add(victim)
    team.owner("PUT", f"/v8/artifacts/abc?slug={team.slug}", content=b"the owner's")
    assert stranger.auth("/api-key/verify", key=key.secret).json()["valid"] is False
    assert site("GET", "/api/auth/get-session", bearer=stranger.session).json() is None
    assert key("GET", "abc", team.slug).status_code == 401
    assert key("PUT", "abc", team.slug, content=b"poisoned").status_code == 401
    read = team.owner("GET", f"/v8/artifacts/abc?slug={team.slug}")
    assert read.content == b"the owner's"


def test_store_without_limit_with_an_invented_address(site: Site) -> None:
    """Direct uploads, four times what the quota allows."""
    stranger = site.person()
    key = stranger.new_key()
    for number in range(10):
        uploaded = site.http.put(key.upload_url(f"hash{number}"), content=bytes(400_000))
        assert uploaded.status_code == 200
    wait_for_events(site.server.data)
    wait_for_jobs(site.server.data)
    usage = stranger("GET", "/v1/usage").json()
    assert usage["quotaBytes"] == UNPROVEN_QUOTA
    assert 0 < usage["storedBytes"] <= UNPROVEN_QUOTA


# -------------------------------------------------------------------------------------- taking accounts over


def test_use_a_reset_link_from_the_mailbox_that_the_owner_has_left(site: Site) -> None:
    owner = site.proven_person()
    old = owner.asks_for_a_reset_link()
    new = f"new-{owner.email}"
    assert owner.auth("/change-email", newEmail=new).status_code == 200
    confirming = site.open(owner.mailed_link(count=3))
    (token,) = parse_qs(urlsplit(confirming.headers["location"]).query)["confirm"]
    assert site.auth("/confirm-email-change", token=token).status_code == 200
    moved = Person(site, new, owner.session, owner.id)
    site.open(moved.mailed_link(), bearer=owner.session)
    assert moved.signs_in(PASSWORD).status_code == 200
    refused = site.auth("/reset-password", token=old, newPassword=GUESSED)
    assert refusal(refused) == (400, "INVALID_TOKEN")
    assert moved.signs_in(GUESSED).status_code == 401


def test_create_keys_until_the_owners_reset_fails(site: Site) -> None:
    """With the largest metadata, so that the list of keys fails, too."""
    stranger = site.person()
    keys = [stranger.new_key(metadata={"x": "y" * 9_000}) for _ in range(100)]
    refused = stranger.auth("/api-key/create")
    assert refusal(refused) == (409, "KEY_LIMIT_REACHED")
    listed = stranger("GET", "/api/auth/api-key/list")
    assert {one["id"] for one in listed.json()} == {key.id for key in keys}
    owner = Person(site, stranger.email, "", stranger.id)
    assert owner.resets_the_password().status_code == 200
    assert {key("GET", "abc").status_code for key in keys} == {401}
    assert stranger("GET", "/api/auth/get-session").json() is None
    assert stranger.signs_in(PASSWORD).status_code == 401
    assert owner.signs_in(GUESSED).status_code == 200


# ----------------------------------------------------------------------------------- artifacts and keys of a team


@pytest.mark.parametrize("size", [4_000, 400_000], ids=["through the function", "by redirect"])
def test_replace_a_published_artifact_after_the_membership_has_ended(site: Site, team: OwnedTeam, size: int) -> None:
    """With the upload URL from before, and bytes of the same size."""
    member = site.proven_person()
    team.add(member)
    key, hash = member.new_key(teamId=team.id), f"published{size}"
    owners = team.owner.new_key(teamId=team.id)
    url = key.upload_url(hash, team.slug)
    site.http.put(url, content=b"A" * size)
    assert owners.reads(hash, team.slug) == b"A" * size
    team.remove(member)
    for _ in range(10):
        site.http.put(url, content=b"B" * size)
        # At once, before S3's event of the second upload arrives.
        assert owners.reads(hash, team.slug) == b"A" * size
    wait_for_events(site.server.data)
    assert owners.reads(hash, team.slug) == b"A" * size


def test_use_a_leaked_key_of_a_member_who_was_removed_and_joined_again(site: Site, team: OwnedTeam) -> None:
    member = site.proven_person()
    team.add(member)
    leaked = member.new_key(teamId=team.id)
    assert leaked("GET", "absent", team.slug).status_code == 404
    team.remove(member)
    team.add(member)
    assert leaked("GET", "absent", team.slug).status_code == 401


def test_publish_a_page_on_the_address_of_the_bucket(site: Site) -> None:
    key = site.person().new_key()
    site.http.put(key.upload_url("page"), content=b"<p>" * 100_000, headers=MALICIOUS_PAGE)
    download = site.http.get(key("GET", "page").headers["location"])
    assert download.status_code == 200
    assert download.headers["content-type"] == "application/octet-stream"
    assert download.headers["content-disposition"] == "attachment"
    assert download.headers["cache-control"] == "no-store"
