"""The audit table: who got access, by what, and what was replaced. Each entry is in the transaction of its action."""

from urllib.parse import parse_qs, urlsplit

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import create_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, find_key, list_keys, rotate_key
from larder.api_keys.properties import NewKey
from larder.audit.models import Action
from larder.audit.service import read_entries
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.settings import settings
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import find_team
from tests.addresses import prove_address
from tests.conftest import SetOption
from tests.direct_uploads import announce, upload
from tests.faults import answering, error
from tests.functions.accounts.conftest import PASSWORD
from tests.mailbox import Mailbox
from tests.requests import Browser, Cloud, Sender, browser_of

Shown = tuple[str, str, str | None, str | None]
TURBO = "http://127.0.0.1:9789"
MANAGER = {"artifacts": ("read", "write", "manage")}


@pytest.fixture(autouse=True)
def quick_hashes(option: SetOption) -> None:
    option("scrypt_cost", 1024)


@pytest.fixture
def ada(aws_in_memory: None) -> User:
    return create_user("ada@example.com", "Ada", password=PASSWORD, now=clock.now())


def audited(owner: str, *actions: str) -> list[Shown]:
    """The entries of a user or team, oldest first: action, subject, user and credential of the actor."""
    page = read_entries(owner, limit=100, now=clock.now())
    assert page.next_before is None
    shown = []
    for entry in reversed(page.entries):
        actor = entry.actor
        by = (actor.user_id, actor.credential_id) if actor else (None, None)
        if entry.action in actions:
            shown.append((entry.action.value, entry.subject, *by))
    return shown


def session_of(user: User) -> tuple[str, str]:
    """The id and token of a new session."""
    session, token = start_session(user, now=clock.now())
    return session.id, token


class TestAccounts:
    def test_sign_up_and_sign_in_name_the_session(self, aws_in_memory: None, mailbox: Mailbox) -> None:
        body = {"email": "bob@example.com", "password": PASSWORD, "name": "Bob"}
        Browser().post("/sign-up/email", body)
        Browser().post("/sign-in/email", {"email": body["email"], "password": PASSWORD})
        bob = find_user_by_email("bob@example.com")
        assert bob is not None
        up, first, second = audited(bob.id, "signed_up", "signed_in")
        assert up == ("signed_up", bob.id, bob.id, "password")
        assert first[0] == second[0] == "signed_in"
        ids = {one["id"] for one in browser_of(bob).get("/list-sessions").json}
        assert {first[1], second[1]} < ids
        assert first[2:] == second[2:] == (bob.id, "password")

    def test_a_refused_sign_in_has_no_entry(self, ada: User) -> None:
        wrong = {"email": ada.email, "password": "another password"}
        assert Browser().post("/sign-in/email", wrong).status == 401
        assert audited(ada.id, "signed_in") == []

    def test_ended_sessions(self, ada: User) -> None:
        one, token = session_of(ada)
        two, other = session_of(ada)
        three, last = session_of(ada)
        assert browser_of(ada, token=token).post("/sign-out", {}).status == 200
        assert browser_of(ada, token=other).post("/revoke-session", {"token": last}).status == 200
        assert browser_of(ada, token=other).post("/revoke-other-sessions", {}).status == 200
        assert browser_of(ada, token=other).post("/revoke-sessions", {}).status == 200
        assert audited(ada.id, "session_ended", "sessions_ended") == [
            ("session_ended", one, ada.id, one),
            ("session_ended", three, ada.id, two),
            ("sessions_ended", ada.id, ada.id, two),
            ("sessions_ended", ada.id, ada.id, two),
        ]

    def test_turbo_logout(self, ada: User) -> None:
        session, token = session_of(ada)
        assert Sender(token)("DELETE", "/v3/user/tokens/current").status == 200
        key, raw = create_key(NewKey(user_id=ada.id), now=clock.now())
        assert Sender(raw)("DELETE", "/v3/user/tokens/current").status == 200
        assert audited(ada.id, "session_ended", "key_deleted") == [
            ("session_ended", session, ada.id, session),
            ("key_deleted", key.id, ada.id, key.id),
        ]

    def test_a_change_of_the_password(self, ada: User) -> None:
        session, token = session_of(ada)
        change = {"newPassword": "a new password", "currentPassword": PASSWORD}
        reply = browser_of(ada, token=token).post("/change-password", {**change, "revokeOtherSessions": True})
        assert reply.status == 200
        assert {*audited(ada.id, "password_changed", "sessions_ended")} == {
            ("password_changed", ada.id, ada.id, session),
            ("sessions_ended", ada.id, ada.id, session),
        }

    def test_a_reset_says_what_it_ended(self, ada: User, mailbox: Mailbox) -> None:
        token = issue_reset_token(ada, now=clock.now())
        body = {"newPassword": "a new password", "token": token}
        assert Browser().post("/reset-password", body).status == 200
        actions = ("password_reset", "email_verified", "email_proven", "sessions_ended", "keys_deleted")
        assert {*audited(ada.id, *actions)} == {(action, ada.id, None, "link") for action in actions}

    def test_what_verifies_proves_and_changes_an_address(self, ada: User, mailbox: Mailbox) -> None:
        def follow(browser: Browser, new_email: str | None = None) -> None:
            token = issue_verification_token(ada, new_email=new_email, now=clock.now())
            assert browser.get(f"/verify-email?token={token}").status == 200

        own = browser_of(ada)
        follow(Browser())
        follow(own)
        follow(own)
        follow(own, "ada@new.example")
        assert audited(ada.id, "email_verified", "email_proven", "email_changed") == [
            ("email_verified", ada.id, None, "link"),
            ("email_proven", ada.id, ada.id, "link"),
            ("email_changed", ada.id, ada.id, "link"),
        ]

    def test_users_of_the_operator_and_deleted_users(self, ada: User, option: SetOption) -> None:
        option("enable_delete_user", "true")
        session, token = session_of(ada)
        reply = browser_of(ada, token=token).post("/delete-user", {"password": PASSWORD})
        assert reply.status == 200
        assert audited(ada.id, "user_created", "user_deleted") == [
            ("user_created", ada.id, None, None),
            ("user_deleted", ada.id, ada.id, session),
        ]

    def test_a_sign_in_without_its_entry_does_not_happen(self, ada: User) -> None:
        body = {"email": ada.email, "password": PASSWORD}
        refused = error("ValidationException")
        with answering("dynamodb", "TransactWriteItems", refused, only=names_the_audit):
            assert Browser().post("/sign-in/email", body).status >= 500
        assert audited(ada.id, "signed_in") == []


def names_the_audit(request: dict[str, object]) -> bool:
    return settings().audit_table in str(request["body"])


class TestKeys:
    def test_an_entry_is_found_by_the_user_and_by_the_team(self, cloud: Cloud) -> None:
        session, token = session_of(cloud.user)
        send, api = Sender(token), "/api/auth/api-key"
        body = {"name": "ci", "teamId": cloud.team.id}
        key_id = send("POST", f"{api}/create", json_body=body).json["id"]
        change = {"keyId": key_id, "enabled": False}
        assert send("POST", f"{api}/update", json_body=change).json["enabled"] is False
        assert send("POST", f"{api}/delete", json_body={"keyId": key_id}).status == 200
        for owner in (cloud.user.id, cloud.team.id):
            found = audited(owner, "key_created", "key_changed", "key_deleted")
            assert [one for one in found if one[1] == key_id] == [
                ("key_created", key_id, cloud.user.id, session),
                ("key_changed", key_id, cloud.user.id, session),
                ("key_deleted", key_id, cloud.user.id, session),
            ]

    def test_a_key_without_a_team(self, ada: User) -> None:
        key, _ = create_key(NewKey(user_id=ada.id), now=clock.now())
        assert audited(ada.id, "key_created") == [("key_created", key.id, None, None)]

    def test_an_owner_deletes_the_key_of_a_member(self, cloud: Cloud) -> None:
        bob = create_user("bob@acme.example", "Bob", now=clock.now())
        add_member(cloud.team.id, bob.id, Role.DEVELOPER, now=clock.now())
        key, _ = create_key(NewKey(user_id=bob.id, team_id=cloud.team.id), now=clock.now())
        session, token = session_of(cloud.user)
        assert Sender(token)("DELETE", f"/v1/teams/acme/keys/{key.id}").status == 200
        for owner in (bob.id, cloud.team.id):
            assert audited(owner, "key_deleted") == [("key_deleted", key.id, cloud.user.id, session)]

    @pytest.mark.parametrize("overlap_s", [0, 60])
    def test_a_rotation_names_both_keys(self, ada: User, overlap_s: int) -> None:
        now = clock.now()
        old, _ = create_key(NewKey(user_id=ada.id), now=now)
        made = rotate_key(old.id, overlap_s=overlap_s, now=now)
        assert made is not None
        assert audited(ada.id, "key_created", "key_rotated", "key_changed", "key_deleted") == [
            ("key_created", old.id, None, None),
            ("key_rotated", old.id, None, None),
        ]
        newest, _ = read_entries(ada.id, actions=list(Action), limit=2, now=now).entries
        assert newest.details == {"successor": made[0].id}

    def test_turbo_login(self, cloud: Cloud) -> None:
        session, token = session_of(cloud.user)
        browser = browser_of(cloud.user, token=token)
        body = {"redirectUri": TURBO, "state": "s", "name": "turbo on Linux"}
        assert browser.post("/turbo-login", body).status == 200
        sso = {"redirectUri": TURBO, "state": "s", "team": "acme"}
        reply = browser.post("/turbo-login", sso)
        assert reply.status == 200, reply.body
        before = {key.id for key in list_keys(cloud.user.id)}
        (code,) = parse_qs(urlsplit(reply.json["url"]).query)["token"]
        exchanged = Sender(None)("GET", f"/registration/verify?token={code}&tokenName=x")
        assert exchanged.status == 200, exchanged.body
        after = {key.id for key in list_keys(cloud.user.id)}
        (by_code,) = after - before
        (by_session,) = before - {cloud.key.id}
        _, *found = audited(cloud.user.id, "key_created")
        assert found == [
            ("key_created", by_session, cloud.user.id, session),
            ("key_created", by_code, cloud.user.id, "code"),
        ]

    def test_a_key_whose_entry_cannot_be_stored_stays_as_it_is(self, cloud: Cloud) -> None:
        _, token = session_of(cloud.user)
        body = {"keyId": cloud.key.id}
        with answering("dynamodb", "TransactWriteItems", error("ValidationException"), only=names_the_audit):
            reply = Sender(token)("POST", "/api/auth/api-key/delete", json_body=body)
        assert reply.status >= 500
        assert find_key(cloud.key.id) is not None


class TestTeams:
    def test_the_life_of_a_team(self, cloud: Cloud, mailbox: Mailbox) -> None:
        session, token = session_of(cloud.user)
        ada, send = cloud.user.id, Sender(token)
        prove_address(cloud.user)
        send("POST", "/v1/teams", json_body={"slug": "web", "name": "Web"})
        team = find_team("web")
        assert team is not None
        bob = create_user("bob@acme.example", "Bob", email_verified=True, now=clock.now())
        invitee = Invitee(email=bob.email, address=bob.email, role=Role.DEVELOPER)
        (made,) = invitations.create_invitations(team.id, [invitee], by=None, now=clock.now())
        bobs, his = session_of(bob)
        body = {"token": invitations.issue_token(made)}
        assert Sender(his)("POST", "/v1/teams/join", json_body=body).status == 200
        path = f"/v1/teams/web/members/{bob.id}"
        assert send("PATCH", path, json_body={"role": "VIEWER"}).status == 200
        assert send("DELETE", path).status == 200
        assert send("DELETE", "/v1/teams/web").status == 200
        actions = ("team_created", "member_added", "role_changed", "member_removed", "team_deleted")
        assert audited(team.id, *actions) == [
            ("team_created", ada, ada, session),
            ("member_added", bob.id, bob.id, bobs),
            ("role_changed", bob.id, ada, session),
            ("member_removed", bob.id, ada, session),
            ("team_deleted", team.id, ada, session),
        ]
        page = read_entries(team.id, limit=10, now=clock.now())
        roles = {entry.action.value: entry.role for entry in page.entries if entry.role}
        assert roles == {
            "member_invited": "DEVELOPER",
            "member_added": "DEVELOPER",
            "role_changed": "VIEWER",
            "member_removed": "VIEWER",
        }

    def test_members_of_the_operator(self, cloud: Cloud) -> None:
        bob = create_user("bob@acme.example", "Bob", now=clock.now())
        for role in (Role.DEVELOPER, Role.OWNER, Role.OWNER):
            add_member(cloud.team.id, bob.id, role, now=clock.now())
        assert audited(cloud.team.id, "member_added", "role_changed") == [
            ("member_added", bob.id, None, None),
            ("role_changed", bob.id, None, None),
        ]

    def test_a_deleted_user_leaves_their_teams(self, cloud: Cloud) -> None:
        bob = create_user("bob@acme.example", "Bob", password=PASSWORD, now=clock.now())
        add_member(cloud.team.id, bob.id, Role.DEVELOPER, now=clock.now())
        assert browser_of(bob).post("/delete-user", {"password": PASSWORD}).status == 200
        assert audited(cloud.team.id, "member_removed") == [("member_removed", bob.id, bob.id, "deletion")]


class TestArtifacts:
    def test_only_a_replacement_by_another_writer_has_an_entry(self, cloud: Cloud) -> None:
        other, raw = create_key(NewKey(user_id=cloud.user.id, team_id=cloud.team.id), now=clock.now())
        for sender in (cloud.send, cloud.send, Sender(raw, slug="acme")):
            assert sender("PUT", "/v8/artifacts/a1", body=b"12345").status == 202
        assert cloud.send("GET", "/v8/artifacts/a1").status in (200, 302)
        assert audited(cloud.team.id, "artifact_replaced") == [("artifact_replaced", "a1", cloud.user.id, other.id)]

    def test_a_direct_upload_by_another_writer_has_one_too(self, cloud: Cloud) -> None:
        other, raw = create_key(NewKey(user_id=cloud.user.id, team_id=cloud.team.id), now=clock.now())
        assert cloud.send("PUT", "/v8/artifacts/a1", body=b"12345").status == 202
        announce(upload(Sender(raw, slug="acme"), "a1", b"another"))
        assert audited(cloud.team.id, "artifact_replaced") == [("artifact_replaced", "a1", cloud.user.id, other.id)]

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("HEAD", "/v8/artifacts/a1", None),
            ("GET", "/v8/artifacts/a1", None),
            ("POST", "/v8/artifacts", {"hashes": ["a1"]}),
            ("GET", "/v1/artifacts/a1", None),
        ],
    )
    def test_so_has_one_that_a_request_publishes_before_its_event(
        self, cloud: Cloud, method: str, path: str, body: dict[str, list[str]] | None
    ) -> None:
        new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, permissions=MANAGER)
        other, raw = create_key(new, now=clock.now())
        assert cloud.send("PUT", "/v8/artifacts/a1", body=b"12345").status == 202
        sender = Sender(raw, slug="acme")
        upload(sender, "a1", b"another")
        assert sender(method, path, json_body=body).status == 200
        assert audited(cloud.team.id, "artifact_replaced") == [("artifact_replaced", "a1", cloud.user.id, other.id)]
