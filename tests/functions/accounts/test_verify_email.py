"""GET /api/auth/verify-email"""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_callback_token, issue_confirmation_token, issue_verification_token
from larder.accounts.models import PasswordChange, User
from larder.accounts.password_resets import issue_reset_token, reset_password
from larder.accounts.service import change_password, create_user, delete_user, find_user, find_user_by_email
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.signing import encode_token, sign
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.functions.accounts.conftest import MAIL_CONTEXT, PASSWORD, prove, verify
from tests.mailbox import Mailbox
from tests.requests import Browser, Reply, Sender, browser_of


def follow(token: str, callback: str | None = None) -> Reply:
    query = f"token={quote(token)}" + ("" if callback is None else f"&callbackURL={quote(callback)}")
    return Browser().get(f"/verify-email?{query}")


def confirm(token: str) -> Reply:
    return Browser().post("/confirm-email-change", {"token": token})


def is_verified(user: User) -> bool:
    stored = find_user(user.id)
    return stored is not None and stored.email_verified


def is_proven(user: User) -> bool:
    stored = find_user(user.id)
    return stored is not None and stored.proven


def test_the_link_in_the_mail_verifies_the_address(ada: User, mailbox: Mailbox) -> None:
    Browser().post("/send-verification-email", {"email": ada.email, "callbackURL": "/welcome#top"})
    reply = Browser().get(mailbox.link().removeprefix("/api/auth"))
    assert (reply.status, reply.headers["location"]) == (302, "/welcome#top")
    assert is_verified(ada)


def test_an_invalid_link_redirects_to_the_callback_of_the_mail(ada: User, mailbox: Mailbox) -> None:
    Browser().post("/send-verification-email", {"email": ada.email, "callbackURL": "/welcome"})
    _, callback = mailbox.link().removeprefix("/api/auth").split("&")
    reply = Browser().get(f"/verify-email?token=forged&{callback}")
    assert (reply.status, reply.headers["location"]) == (302, "/welcome?error=invalid_token")
    assert not is_verified(ada)


def test_the_token_of_a_callback_verifies_no_one(ada: User) -> None:
    assert follow(issue_callback_token("/welcome", now=clock.now())).status == 401
    assert not is_verified(ada)


def test_without_a_callback_the_reply_is_json(ada: User) -> None:
    reply = follow(issue_verification_token(ada, now=clock.now()))
    assert (reply.status, reply.json) == (200, {"status": True, "user": None})
    assert is_verified(ada)


def test_a_link_can_be_followed_again(ada: User) -> None:
    token = issue_verification_token(ada, now=clock.now())
    follow(token)
    assert follow(token).status == 200


@pytest.mark.parametrize(
    ("callback", "location"),
    [
        ("/welcome", "/welcome?error=invalid_token"),
        ("/welcome?a=b", "/welcome?a=b&error=invalid_token"),
        ("/welcome#top", "/welcome?error=invalid_token#top"),
        ("/welcome?error=y&a=b&token=x", "/welcome?a=b&token=x&error=invalid_token"),
    ],
)
def test_a_bad_link_redirects_with_an_error(ada: User, callback: str, location: str) -> None:
    reply = follow("forged.to.ken", callback)
    assert (reply.status, reply.headers["location"]) == (302, location)
    assert not is_verified(ada)


@pytest.mark.parametrize(
    ("bend", "location"),
    [
        (lambda token: token, "/verified"),
        (lambda token: f"{token}&amp;callbackURL=/welcome", "/verified"),
        (lambda token: token[:-9], "/verified?error=invalid_token"),
    ],
)
def test_a_browser_gets_a_page_for_a_link_that_a_mail_program_has_bent(
    ada: User, bend: Callable[[str], str], location: str
) -> None:
    token = issue_verification_token(ada, now=clock.now())
    headers = {"accept": "text/html,*/*;q=0.8"}
    reply = Browser().get(f"/verify-email?token={bend(token)}", headers=headers)
    assert (reply.status, reply.headers["location"]) == (302, location)
    assert is_verified(ada) == ("error" not in location)


def test_without_a_callback_a_bad_link_is_reported_by_its_code(ada: User) -> None:
    now = clock.now()
    old = issue_verification_token(ada, now=now - timedelta(hours=1))
    gone = create_user("gone@example.com", "Gone", password=PASSWORD, now=now)
    orphan = issue_verification_token(gone, now=now)
    delete_user(gone.id, now=now)
    assert follow("forged.to.ken").refusal == (401, "INVALID_TOKEN")
    assert follow(old).refusal == (401, "TOKEN_EXPIRED")
    assert follow(orphan).refusal == (401, "USER_NOT_FOUND")


def test_a_link_verifies_only_the_user_it_was_sent_for(ada: User) -> None:
    """A later user of the address is not verified by a link that the previous user still has."""
    now = clock.now()
    token = issue_verification_token(ada, now=now)
    delete_user(ada.id, now=now)
    heir = create_user(ada.email, "Heir", password=PASSWORD, now=now)
    assert follow(token).refusal == (401, "USER_NOT_FOUND")
    assert not is_verified(heir)


def test_a_token_signed_for_another_purpose_verifies_no_one(ada: User) -> None:
    token = encode_token({"userId": ada.id}, now=clock.now(), lifetime_s=60)
    assert follow(token).refusal == (401, "INVALID_TOKEN")
    assert not is_verified(ada)


def test_the_signature_of_a_session_is_no_token(ada: User) -> None:
    """The cookie has it, in another form of base64."""
    _, session = start_session(ada, now=clock.now())
    signature = urlsafe_b64encode(b64decode(sign(session))).rstrip(b"=").decode()
    assert follow(f"{session}.{signature}").refusal == (401, "INVALID_TOKEN")
    assert confirm(f"{session}.{signature}").refusal == (401, "INVALID_TOKEN")


def test_it_redirects_only_to_trusted_pages(ada: User) -> None:
    token = issue_verification_token(ada, now=clock.now())
    assert follow(token, "https://evil.example/").refusal == (403, "INVALID_CALLBACK_URL")
    assert not is_verified(ada)


def test_a_link_without_a_token_is_refused(aws_in_memory: None) -> None:
    reply = Browser().get("/verify-email")
    assert reply.refusal == (400, "VALIDATION_ERROR")
    assert reply.json["message"] == "[query.token] is required"


def test_the_link_to_a_new_address_changes_it(ada: User, browser: Browser, mailbox: Mailbox) -> None:
    browser.post("/change-email", {"newEmail": "Ada@New.example", "callbackURL": "/changed"})
    reply = Browser().get(mailbox.link().removeprefix("/api/auth"))
    assert (reply.status, reply.headers["location"]) == (302, "/changed")
    stored = find_user_by_email("ada@new.example")
    assert stored is not None
    assert (stored.id, stored.email_verified) == (ada.id, True)
    assert find_user_by_email("ada@example.com") is None


def test_the_link_to_the_old_address_leads_to_a_page_and_changes_nothing(
    ada: User, browser: Browser, mailbox: Mailbox
) -> None:
    """A mail scanner opens it too. Only the page's button confirms the change (test_confirm_new_email.py)."""
    verify(ada)
    browser.post("/change-email", {"newEmail": "ada@new.example", "callbackURL": "/changed"})
    link = mailbox.link().removeprefix("/api/auth")
    token = link.partition("token=")[2].partition("&")[0]
    for opened_by in (Browser(), browser):
        reply = opened_by.get(link)
        assert (reply.status, reply.headers["location"]) == (302, f"/verified?confirm={token}")
    assert mailbox.jobs == []
    assert find_user_by_email("ada@new.example") is None


def test_a_deployment_can_change_addresses_without_a_confirmation(
    ada: User, browser: Browser, mailbox: Mailbox, option: SetOption
) -> None:
    verify(ada)
    option("confirm_email_change", "false")
    browser.post("/change-email", {"newEmail": "ada@new.example"})
    assert [message.to for message in mailbox.deliver()] == ["ada@new.example"]


def test_another_spelling_of_a_verified_address_needs_no_confirmation(
    ada: User, browser: Browser, mailbox: Mailbox
) -> None:
    verify(ada)
    spelling = "\uff41da@example.com"  # a full-width a
    browser.post("/change-email", {"newEmail": spelling})
    assert [job.email for job in mailbox.jobs] == [spelling]


def test_a_confirmation_is_not_sent_for_a_taken_address(
    ada: User, bob: User, browser: Browser, mailbox: Mailbox
) -> None:
    verify(ada)
    assert browser.post("/change-email", {"newEmail": bob.email}).status == 200
    assert mailbox.deliver() == []


@pytest.mark.parametrize("deleted", [True, False], ids=["deleted user", "other address"])
def test_a_confirmation_ends_with_the_address(ada: User, mailbox: Mailbox, deleted: bool) -> None:
    now = clock.now()
    token = issue_confirmation_token(ada, new_email="ada@new.example", callback_url="", now=now)
    if deleted:
        delete_user(ada.id, now=now)
    else:
        follow(issue_verification_token(ada, new_email="ada@other.example", now=now))
    assert follow(token).refusal == (401, "USER_NOT_FOUND")
    assert confirm(token).refusal == (401, "USER_NOT_FOUND")


def test_an_address_taken_in_the_meantime_is_not_assigned(ada: User) -> None:
    now = clock.now()
    token = issue_verification_token(ada, new_email="ada@new.example", now=now)
    create_user("ada@new.example", "Faster", password=PASSWORD, now=now)
    assert follow(token).refusal == (401, "INVALID_TOKEN")
    assert find_user(ada.id) == ada


def test_a_link_to_a_new_address_can_be_followed_again(ada: User, mailbox: Mailbox) -> None:
    token = issue_verification_token(ada, new_email="ada@new.example", now=clock.now())
    assert follow(token).status == 200
    assert follow(token).status == 200


def test_the_previous_address_is_notified(ada: User, browser: Browser, mailbox: Mailbox) -> None:
    """If someone took over the account, the owner can still read mail at the previous address."""
    browser.post("/change-email", {"newEmail": "eve@new.example"})
    link = mailbox.link().removeprefix("/api/auth")
    before = clock.now()
    assert Browser().get(link).status == 302
    notice, *_ = mailbox.deliver()
    assert (notice.to, notice.subject) == ("ada@example.com", "Larder: Your address was changed")
    assert f"to the address e***@new.example on {before:%Y-%m-%d %H:}" in notice.text
    assert "eve@" not in notice.text
    assert "Contact the operator of Larder" in notice.text


def test_the_previous_address_is_notified_once_per_change(ada: User, mailbox: Mailbox) -> None:
    token = issue_verification_token(ada, new_email="ada@new.example", now=clock.now())
    for _ in range(3):
        assert follow(token).status == 200
    assert [message.to for message in mailbox.deliver()] == ["ada@example.com"]


def test_the_notice_is_worded_differently_if_another_user_has_the_address_now(ada: User, mailbox: Mailbox) -> None:
    follow(issue_verification_token(ada, new_email="ada@new.example", now=clock.now()))
    create_user("ada@example.com", "Heir", now=clock.now())
    (message,) = mailbox.deliver()
    assert "The account with the address ada@example.com" in message.text
    assert "sign in to that account" in message.text


@pytest.mark.parametrize("new_email", [None, "bob@example.com"], ids=["verified", "taken"])
def test_no_notice_if_no_address_changes(ada: User, bob: User, mailbox: Mailbox, new_email: str | None) -> None:
    follow(issue_verification_token(ada, new_email=new_email, now=clock.now()))
    assert mailbox.deliver() == []


def test_no_notice_for_another_spelling_of_the_address(aws_in_memory: None, mailbox: Mailbox) -> None:
    ada = create_user("ada@bücher.example", "Ada", now=clock.now())
    now = clock.now()
    follow(issue_verification_token(ada, new_email="ada@xn--bcher-kva.example", now=now))
    stored = find_user(ada.id)
    assert stored is not None
    assert stored.email_verified
    assert mailbox.deliver() == []


def test_the_address_changes_even_if_the_notice_cannot_be_sent(ada: User) -> None:
    token = issue_verification_token(ada, new_email="ada@new.example", now=clock.now())
    with unreachable("lambda", "Invoke"):
        assert follow(token).status == 200
    assert find_user_by_email("ada@new.example") is not None


def reset(ada: User) -> None:
    now = clock.now()
    reset_password(issue_reset_token(ada, now=now), "another correct horse", MAIL_CONTEXT, now=now)


def choose_another_password(ada: User) -> None:
    change = PasswordChange(current=PASSWORD, new="another correct horse", ends_other_sessions=False)
    change_password(ada.id, change, now=clock.now())


@pytest.mark.parametrize(
    "taken_back",
    [reset, choose_another_password, lambda ada: revoke_sessions(ada.id)],
    ids=["reset", "change of the password", "end of all sessions"],
)
def test_a_link_to_a_new_address_ends_when_the_user_secures_the_account(
    ada: User, browser: Browser, mailbox: Mailbox, taken_back: Callable[[User], None]
) -> None:
    """Someone who took over a session can have the link sent to their own address."""
    browser.post("/change-email", {"newEmail": "thief@evil.example"})
    link = mailbox.link().removeprefix("/api/auth")
    taken_back(ada)
    reply = Browser().get(link)
    assert reply.headers["location"].endswith("?error=invalid_token")
    stored = find_user(ada.id)
    assert stored is not None
    assert stored.email == ada.email


@pytest.mark.parametrize(
    "taken_back",
    [reset, choose_another_password, lambda ada: revoke_sessions(ada.id)],
    ids=["reset", "change of the password", "end of all sessions"],
)
def test_a_confirmation_ends_when_the_user_secures_the_account(
    ada: User, mailbox: Mailbox, taken_back: Callable[[User], None]
) -> None:
    token = issue_confirmation_token(ada, new_email="ada@new.example", callback_url="", now=clock.now())
    taken_back(ada)
    mailbox.payloads.clear()
    assert follow(token).refusal == (401, "INVALID_TOKEN")
    assert confirm(token).refusal == (401, "INVALID_TOKEN")
    assert mailbox.jobs == []


def test_no_link_to_a_new_address_if_the_sessions_have_ended_in_the_meantime(
    ada: User, browser: Browser, mailbox: Mailbox
) -> None:
    browser.post("/change-email", {"newEmail": "thief@evil.example"})
    revoke_sessions(ada.id)
    assert mailbox.deliver() == []


def test_a_link_to_a_new_address_from_version_0_1_0_does_not_work(ada: User) -> None:
    """It stays valid after the user secures the account. These links expired after an hour."""
    claims = {"email": ada.email, "userId": ada.id, "updateTo": "ada@new.example"}
    token = encode_token(claims, now=clock.now(), lifetime_s=60)
    assert follow(token).refusal == (401, "INVALID_TOKEN")
    assert find_user(ada.id) == ada


class TestProof:
    """What a verification link proves depends on the session with which it is opened."""

    def test_a_mail_scanner_proves_nothing(self, ada: User) -> None:
        token = issue_verification_token(ada, now=clock.now())
        assert follow(token).status == 200
        assert is_verified(ada)
        assert not is_proven(ada)

    def test_the_users_own_cookie_proves_the_address(self, ada: User, browser: Browser) -> None:
        token = issue_verification_token(ada, now=clock.now())
        assert browser.get(f"/verify-email?token={token}").status == 200
        assert is_proven(ada)

    def test_the_users_own_bearer_token_proves_the_address(self, ada: User) -> None:
        token = issue_verification_token(ada, now=clock.now())
        session = start_session(ada, now=clock.now())[1]
        assert Sender(session)("GET", f"/api/auth/verify-email?token={token}").status == 200
        assert is_proven(ada)

    def test_a_link_that_a_scanner_has_opened_can_prove_the_address_later(self, ada: User, browser: Browser) -> None:
        token = issue_verification_token(ada, now=clock.now())
        follow(token)
        browser.get(f"/verify-email?token={token}")
        assert is_proven(ada)

    def test_another_users_session_proves_nothing(self, ada: User, bob: User) -> None:
        token = issue_verification_token(ada, now=clock.now())
        assert browser_of(bob).get(f"/verify-email?token={token}").status == 200
        assert is_verified(ada)
        assert not is_proven(ada)
        assert not is_proven(bob)

    def test_an_ended_session_proves_nothing(self, ada: User, browser: Browser) -> None:
        token = issue_verification_token(ada, now=clock.now())
        revoke_sessions(ada.id)
        assert browser.get(f"/verify-email?token={token}").status == 200
        assert not is_proven(ada)

    def test_a_key_proves_nothing(self, ada: User, option: SetOption) -> None:
        option("session_for_api_keys", "true")
        _, key = create_key(NewKey(user_id=ada.id), now=clock.now())
        token = issue_verification_token(ada, now=clock.now())
        Sender(None)("GET", f"/api/auth/verify-email?token={token}", headers={"x-api-key": key})
        assert is_verified(ada)
        assert not is_proven(ada)

    def test_a_new_address_is_not_proven_by_a_scanner(
        self, ada: User, browser: Browser, mailbox: Mailbox, option: SetOption
    ) -> None:
        """Otherwise a user with a proven address could take over the rights of another address."""
        option("confirm_email_change", "false")
        prove(ada)
        browser.post("/change-email", {"newEmail": "ops@corp.example"})
        assert Browser().get(mailbox.link().removeprefix("/api/auth")).status == 302
        stored = find_user(ada.id)
        assert stored is not None
        assert (stored.email, stored.email_verified) == ("ops@corp.example", True)
        assert not stored.proven

    def test_a_new_address_is_proven_with_the_users_session(
        self, ada: User, browser: Browser, mailbox: Mailbox
    ) -> None:
        browser.post("/change-email", {"newEmail": "ada@new.example"})
        browser.get(mailbox.link().removeprefix("/api/auth"))
        assert is_proven(ada)

    def test_another_spelling_of_a_proven_address_stays_proven(self, aws_in_memory: None) -> None:
        ada = create_user("ada@b\u00fccher.example", "Ada", email_verified=True, now=clock.now())
        now = clock.now()
        follow(issue_verification_token(ada, new_email="ada@xn--bcher-kva.example", now=now))
        assert is_proven(ada)

    def test_a_scanner_does_not_make_a_stranger_an_operator(
        self, ada: User, browser: Browser, option: SetOption
    ) -> None:
        """A stranger has signed up with an operator's address and has the link sent there."""
        option("operator_emails", ada.email)
        follow(issue_verification_token(ada, now=clock.now()))
        assert browser.post("/api-key/delete-all-expired-api-keys").refusal == (403, "OPERATOR_ONLY")
        token = issue_verification_token(ada, now=clock.now())
        browser.get(f"/verify-email?token={token}")
        assert browser.post("/api-key/delete-all-expired-api-keys").status == 200


def test_a_verification_link_stays_valid_after_a_password_change(ada: User) -> None:
    token = issue_verification_token(ada, now=clock.now())
    choose_another_password(ada)
    assert follow(token).status == 200
