"""The access of people: it ends some time after the last sign-in with the provider, and while they are suspended."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts import access
from larder.accounts.models import ProfileChange, User
from larder.accounts.service import create_user, find_user, update_profile
from larder.accounts.sessions import extend_session, find_session, is_fresh, start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.instance import restart
from larder.sso.models import Mode
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant
from tests.catalogue import valid
from tests.conftest import Clock
from tests.functions.accounts.conftest import PASSWORD
from tests.mailbox import Mailbox
from tests.moto_sockets import watching
from tests.proofs.aws_calls import counted
from tests.requests import Browser, Cloud, Sender
from tests.sso.people import end_access
from tests.sso.providers import acme, add_acme, signed_in

MOMENT = timedelta(milliseconds=1)
DAY = timedelta(days=1)


@pytest.fixture
def bob(cloud: Cloud) -> User:
    """A member of the team, with a password."""
    bob = create_user("bob@acme.example", "Bob", password=PASSWORD, now=clock.now())
    add_member(cloud.team.id, bob.id, Role.MEMBER, now=clock.now())
    return bob


def new_key(user: User) -> Sender:
    return Sender(create_key(NewKey(user_id=user.id), now=clock.now())[1], slug="acme")


def status(send: Sender) -> int:
    return send("GET", "/v8/artifacts/status").status


def sign_in(email: str = "bob@acme.example", password: str = PASSWORD) -> tuple[int, str]:
    reply = Browser().post("/sign-in/email", {"email": email, "password": password})
    return (200, "") if reply.status == 200 else reply.refusal


@pytest.mark.parametrize("heat", ["warm", "cold"])
def test_a_key_is_refused_from_the_millisecond_on_at_which_access_ends(bob: User, later: Clock, heat: str) -> None:
    key, session = new_key(bob), Sender(start_session(bob, now=clock.now())[1], slug="acme")
    end_access(bob, at=clock.now() + DAY)
    now = later.pass_(DAY - MOMENT)
    assert (status(key), status(session)) == (200, 200)
    if heat == "cold":
        restart()
    later.pass_(MOMENT)
    assert (status(key), status(session)) == (401, 401)
    later.pass_(30 * DAY)
    assert status(key) == 401
    # The next sign-in with the provider.
    end_access(bob, at=acme(mode=Mode.REQUIRED).access_until(bob.email, now=clock.now()))
    assert status(key) == 200
    assert now < clock.now()


@pytest.mark.parametrize(
    "request_",
    [
        "GET /v8/artifacts/{hash}", "HEAD /v8/artifacts/{hash}", "PUT /v8/artifacts/{hash}", "POST /v8/artifacts",
        "POST /v8/artifacts/events",
    ],
)  # fmt: skip
@pytest.mark.parametrize("heat", ["warm", "cold"])
def test_a_request_of_a_build_reads_the_same_items_for_a_managed_user(cloud: Cloud, request_: str, heat: str) -> None:
    ask = valid(request_, hash="small")

    def calls() -> list[str]:
        restart()
        if heat == "warm":
            assert status(cloud.send) == 200
        reads = []

        def note(operation: str, arguments: dict[str, Any]) -> None:
            if operation == "BatchGetItem":
                keys = [request_item["Keys"] for request_item in arguments["RequestItems"].values()]
                reads.append(f"{operation} {keys}")
            elif "Get" in operation or operation in ("Query", "Scan"):
                reads.append(f"{operation} {arguments.get('Key')}")

        with watching(note), counted() as made:
            assert ask(cloud.send).status < 500
        return [*sorted(reads), *map(str, made.steps)]

    calls()  # stores the artifact, and when the key was used
    free = calls()
    end_access(cloud.user, at=clock.now() + DAY)
    assert free
    assert calls() == free


def test_a_suspended_user_has_no_access_until_resumed(cloud: Cloud, bob: User, mailbox: Mailbox) -> None:
    """Session, key, login code and sign-in end with the next request. Each instance already knows them."""
    key, session = new_key(bob), Sender(start_session(bob, now=clock.now())[1], slug="acme")
    browser = Browser()
    assert browser.post("/sign-in/email", {"email": bob.email, "password": PASSWORD}).status == 200
    code = turbo_login.create_token(bob, Grant(sso_team="acme"), now=clock.now()).text

    def exchange() -> int:
        return Sender(None).asking(token=code, tokenName="Turbo CLI on host")("GET", "/registration/verify").status

    assert (status(key), status(session)) == (200, 200)
    access.suspend_user(bob.id, now=clock.now())
    assert (status(key), status(session)) == (401, 401)
    assert browser.get("/get-session").json is None
    assert exchange() == 401
    assert sign_in() == (403, "USER_SUSPENDED")
    # Nobody else learns that the account exists.
    assert sign_in(password="wrong password") == (401, "INVALID_EMAIL_OR_PASSWORD")
    # A team's own key, CI jobs and the other members go on.
    assert status(cloud.send) == 200

    access.resume_user(bob.id)
    assert (status(key), status(session)) == (200, 200)
    assert exchange() == 200
    assert sign_in() == (200, "")


def test_a_suspension_at_the_same_time_as_other_changes_is_kept(bob: User) -> None:
    """The user renames themselves and signs in with the provider while the operator suspends them."""
    now, ends_at = clock.now(), clock.now() + 30 * DAY
    acts: list[Callable[[], object]] = [
        lambda: update_profile(bob, ProfileChange(name="Robert"), now=now),
        lambda: end_access(bob, at=ends_at),
        lambda: access.suspend_user(bob.id, now=now),
    ]
    with ThreadPoolExecutor(len(acts)) as pool:
        for done in [pool.submit(act) for act in acts]:
            done.result()
    found = find_user(bob.id)
    assert found is not None
    assert (found.name, found.access_until, found.suspended_at) == ("Robert", ends_at, now)


def test_a_login_code_ends_with_the_access(bob: User, later: Clock) -> None:
    ends_at = clock.now() + timedelta(minutes=2)
    user = end_access(bob, at=ends_at)

    def exchange() -> int:
        code = turbo_login.create_token(user, Grant(sso_team="acme"), now=clock.now()).text
        later.pass_(timedelta(minutes=1))
        return Sender(None).asking(token=code, tokenName="Turbo CLI on host")("GET", "/registration/verify").status

    assert exchange() == 200
    assert exchange() == 401


def test_sign_in_does_not_revive_access_that_has_ended(bob: User) -> None:
    """A person who left the company still knows the password, and the operator goes back to passwords."""
    end_access(bob, at=clock.now())
    assert sign_in() == (403, "USER_SUSPENDED")
    assert access.resume_user(bob.id).access_until is None
    assert sign_in() == (200, "")


def test_resume_keeps_the_end_of_a_managed_user(bob: User) -> None:
    add_acme(mode=Mode.REQUIRED)
    ends_at = clock.now() + DAY
    end_access(bob, at=ends_at)
    access.suspend_user(bob.id, now=clock.now())
    resumed = access.resume_user(bob.id)
    assert (resumed.access_until, resumed.suspended_at) == (ends_at, None)


def test_a_session_of_a_managed_user_is_not_extended(bob: User, later: Clock) -> None:
    provider = acme(mode=Mode.REQUIRED, session_hours=24)
    user = end_access(bob, at=clock.now() + 30 * DAY)
    lifetime = provider.session_lifetime(bob.email)
    session, token = signed_in(user, authenticated_at=clock.now(), lifetime=lifetime, now=clock.now())
    now = later.pass_(DAY - MOMENT)
    assert find_session(token, now=now) == (session, user)
    assert extend_session(session, user, now=now) == session
    assert find_session(token, now=now + MOMENT) is None


def test_a_session_that_began_with_a_password_ends_at_its_time_once_its_user_is_managed(
    bob: User, later: Clock
) -> None:
    session, _ = start_session(bob, now=clock.now())
    user = end_access(bob, at=clock.now() + 30 * DAY)
    now = later.pass_(2 * DAY)
    assert extend_session(session, user, now=now) == session
    assert extend_session(session, bob, now=now) != session


def test_fresh_is_the_time_of_the_login_at_the_provider(bob: User, later: Clock) -> None:
    """Attack 27: a stale login passes as fresh."""
    signed_in_at = clock.now() - timedelta(hours=23)
    stale, _ = signed_in(bob, authenticated_at=signed_in_at, now=clock.now())
    assert is_fresh(stale, now=clock.now())
    now = later.pass_(timedelta(hours=1))
    assert not is_fresh(stale, now=now)
    assert is_fresh(replace(stale, authenticated_at=None), now=now)


@pytest.mark.parametrize(
    ("settings", "address", "days", "linked"),
    [
        ({"mode": Mode.OPTIONAL}, "bob@acme.example", None, None),
        ({"mode": Mode.REQUIRED}, "bob@acme.example", 30, 30),
        ({"mode": Mode.REQUIRED, "keys_days": 7}, "bob@acme.example", 7, 7),
        ({"mode": Mode.REQUIRED}, "bob@example.com", None, 30),
        ({"mode": Mode.REQUIRED}, "bob@sub.acme.example", None, 30),
        ({"mode": Mode.OPTIONAL}, "bob@example.com", None, None),
        ({"mode": Mode.REQUIRED, "exceptions": ("bob@acme.example",)}, "bob@acme.example", None, None),
    ],
)
def test_a_required_domain_or_link_makes_people_managed(
    settings: dict[str, object], address: str, days: int | None, linked: int | None
) -> None:
    provider, now = acme(session_hours=8, **settings), clock.now()
    ends = [provider.access_until(address, linked=one, now=now) for one in (False, True)]
    assert ends == [one and now + timedelta(days=one) for one in (days, linked)]
    assert provider.session_lifetime(address) == (linked and timedelta(hours=8))


def end_of(user: User) -> object:
    found = find_user(user.id)
    assert found is not None
    return found.access_until


def test_people_get_an_end_when_the_provider_is_required(cloud: Cloud, bob: User) -> None:
    provider = add_acme(mode=Mode.REQUIRED, exceptions=("ada@acme.example",))
    eve = create_user("eve@elsewhere.example", "Eve", now=clock.now())
    now = clock.now()
    changed = access.settle_access(provider, now=now)
    assert [user.email for user in changed] == ["bob@acme.example"]
    assert (end_of(bob), end_of(cloud.user), end_of(eve)) == (now + 30 * DAY, None, None)
    # Done again, later, it gives nobody more time.
    assert access.settle_access(provider, now=now + 10 * DAY) == []
    assert [(one.user.email, one.is_linked, one.is_managed) for one in access.people_of(provider)] == [
        ("ada@acme.example", False, False),
        ("bob@acme.example", False, True),
    ]


def test_someone_whom_the_operator_adds_later_gets_an_end_too(cloud: Cloud, later: Clock) -> None:
    add_acme(mode=Mode.REQUIRED, keys_days=7)
    carl = create_user("carl@acme.example", "Carl", now=clock.now())
    assert carl.access_until == clock.now() + 7 * DAY
    eve = create_user("eve@elsewhere.example", "Eve", now=clock.now())
    assert eve.access_until is None


def test_going_back_to_passwords_revives_nobody(cloud: Cloud, bob: User) -> None:
    now = clock.now()
    end_access(bob, at=now)
    end_access(cloud.user, at=now + DAY)
    changed = access.settle_access(add_acme(mode=Mode.OPTIONAL), now=now)
    assert [user.email for user in changed] == ["ada@acme.example"]
    assert (end_of(bob), end_of(cloud.user)) == (now, None)


def test_an_exception_gets_access_back(cloud: Cloud, bob: User) -> None:
    end_access(bob, at=clock.now())
    provider = add_acme(mode=Mode.REQUIRED, exceptions=("bob@acme.example",))
    access.settle_access(provider, now=clock.now())
    assert end_of(bob) is None


def test_people_of_a_domain_that_left_the_provider_are_not_managed(bob: User) -> None:
    now = clock.now()
    end_access(bob, at=now + DAY)
    provider = add_acme(mode=Mode.REQUIRED, domains=())
    access.settle_access(provider, former_domains=("acme.example",), now=now)
    assert end_of(bob) is None


def test_people_of_another_provider_keep_their_end(bob: User) -> None:
    """The operator removes a domain that the provider does not have."""
    ends_at = clock.now() + DAY
    end_access(bob, at=ends_at)
    add_acme(mode=Mode.REQUIRED)
    other = add_acme(id="other", domains=())
    access.settle_access(other, former_domains=("acme.example",), now=clock.now())
    assert end_of(bob) == ends_at


def test_more_time_is_for_people_who_still_have_access(cloud: Cloud, bob: User) -> None:
    """The provider is down, and someone left the company last month."""
    now = clock.now()
    provider = add_acme(mode=Mode.REQUIRED)
    carl = create_user("carl@acme.example", "Carl", now=now - 25 * DAY)
    end_access(cloud.user, at=now + MOMENT)
    end_access(bob, at=now)
    changed = access.extend_access(provider, 3, now=now)
    assert [user.email for user in changed] == ["ada@acme.example"]
    assert (end_of(cloud.user), end_of(bob)) == (now + 3 * DAY, now)
    # Nobody gets less time than they have.
    assert end_of(carl) == now + 5 * DAY
    access.extend_access(provider, 3, only=(bob.id,), now=now)
    assert end_of(bob) == now + 3 * DAY


def test_sessions_of_a_provider_can_be_ended(bob: User) -> None:
    now = clock.now()
    _, theirs = signed_in(bob, authenticated_at=now, now=now)
    _, other = signed_in(bob, provider="other", authenticated_at=now, now=now)
    _, own = start_session(bob, now=now)
    assert access.end_sessions_of("acme") == 1
    assert find_session(theirs, now=now) is None
    assert find_session(other, now=now)
    assert find_session(own, now=now)
    assert access.end_sessions_of("acme") == 0
