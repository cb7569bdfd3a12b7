"""POST /api/auth/sign-up/email"""

import json
import re
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.email_jobs import VerifyEmail
from larder.accounts.models import User
from larder.accounts.repository import ending_setup
from larder.accounts.service import check_credentials, delete_user, find_user_by_email, read_account
from larder.addresses import canonical
from larder.invitations import repository
from larder.invitations.models import LIFETIME, Invitation, Invitee
from larder.invitations.service import accept, create_invitations, withdraw
from larder.settings import settings
from larder.tables import commit
from larder.teams.models import Role
from larder.teams.teams import create_team, delete_team
from tests.conftest import SetOption
from tests.default_template import template
from tests.faults import answering, error, just_before, unreachable
from tests.functions.accounts.conftest import PASSWORD
from tests.mailbox import Mailbox, link_in
from tests.proofs.aws_calls import counted
from tests.requests import DOMAIN, Browser, Cloud, Reply, invoke

PATH = "/sign-up/email"
EVE = {"name": "Eve", "email": "eve@example.com", "password": PASSWORD}


def sign_up(browser: Browser | None = None, /, **fields: Any) -> Reply:
    return (browser or Browser()).post(PATH, {**EVE, **fields})


def sessions() -> int:
    items = aws.dynamodb().scan(TableName=settings().identity_table)["Items"]
    return sum("session#" in item["pk"]["S"] for item in items)


def test_a_busy_table_is_not_reported_as_a_taken_address(aws_in_memory: None) -> None:
    """DynamoDB cancels the transaction in both cases."""
    busy = error("TransactionCanceledException", CancellationReasons=[{"Code": "ThrottlingError"}])
    with answering("dynamodb", "TransactWriteItems", busy):
        assert sign_up().refusal == (503, "TRY_AGAIN")
    assert sign_up().status == 200


def test_the_user_is_created_and_signed_in(aws_in_memory: None) -> None:
    browser = Browser()
    reply = sign_up(browser)
    assert reply.status == 200
    assert list(reply.json) == ["token", "user"]
    assert re.fullmatch(r"[A-Za-z0-9]{32}", reply.json["token"])
    user = reply.json["user"]
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(moment, user["createdAt"])
    assert user == {
        "id": user["id"],
        "email": "eve@example.com",
        "name": "Eve",
        "image": None,
        "emailVerified": False,
        "createdAt": user["createdAt"],
        "updatedAt": user["createdAt"],
    }
    assert browser.get("/get-session").json["user"] == user


def test_the_session_records_address_and_user_agent(aws_in_memory: None) -> None:
    browser = Browser()
    sign_up(browser)
    session = browser.get("/get-session").json["session"]
    assert (session["ipAddress"], session["userAgent"]) == ("192.0.2.1", "Browser/1.0")


def test_only_the_hash_of_the_password_is_stored(aws_in_memory: None, option: SetOption) -> None:
    option("scrypt_cost", 16384)
    user_id = sign_up().json["user"]["id"]
    stored = read_account(user_id).password_hash
    assert stored is not None
    assert re.fullmatch(r"[0-9a-f]{32}:[0-9a-f]{128}", stored)
    assert PASSWORD not in str(aws.dynamodb().scan(TableName=settings().identity_table))


def test_a_form_is_accepted(aws_in_memory: None) -> None:
    form = b"name=Eve&email=eve%40example.com&password=correct+horse"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert Browser().post(PATH, raw=form, headers=headers).status == 200
    assert check_credentials("eve@example.com", "correct horse").name == "Eve"


@pytest.mark.parametrize(
    "spelling", ["ada@example.com", "ADA@EXAMPLE.COM", " ada@example.com ", "ada@\uff45xample.com"]
)
def test_a_taken_address_is_refused_in_every_spelling(ada: User, spelling: str) -> None:
    reply = sign_up(email=spelling, password="another password")
    assert reply.refusal == (422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL")
    assert reply.cookies == ()
    assert check_credentials("ada@example.com", PASSWORD) == ada


# The password's length --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "refused"),
    [
        ("x" * 7, "PASSWORD_TOO_SHORT"),
        ("x" * 8, None),
        ("x" * 128, None),
        ("x" * 129, "PASSWORD_TOO_LONG"),
        ("\U0001f511" * 3, "PASSWORD_TOO_SHORT"),
        ("\U0001f511" * 4, None),
        ("\U0001f511" * 64, None),
        ("\U0001f511" * 64 + "x", "PASSWORD_TOO_LONG"),
        ("\x00" * 8, "PASSWORD_TOO_SHORT"),
        ("1234567\x00", "PASSWORD_TOO_SHORT"),
        ("\x001234567", None),
        ("", "PASSWORD_TOO_SHORT"),
    ],
)
def test_a_password_has_8_to_128_utf16_units(aws_in_memory: None, password: str, refused: str | None) -> None:
    reply = sign_up(password=password)
    if refused:
        assert reply.refusal == (400, refused)
        assert find_user_by_email("eve@example.com") is None
    else:
        assert reply.status == 200
        assert check_credentials("eve@example.com", password).name == "Eve"


@pytest.mark.parametrize(("length", "how"), [(9, "fewer"), (21, "more")])
def test_a_password_error_names_the_configured_limits(
    aws_in_memory: None, option: SetOption, length: int, how: str
) -> None:
    option("minimum_password_length", 10)
    option("maximum_password_length", 20)
    reply = sign_up(password="x" * length)
    assert reply.json["message"] == f"password: must have 10 to 20 characters, not {how}"


def test_a_password_matches_in_every_unicode_form(aws_in_memory: None) -> None:
    sign_up(password="p\u00e4ssw\u00f6rd \ufb01")
    assert check_credentials("eve@example.com", "pa\u0308sswo\u0308rd fi").name == "Eve"


# Options ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), [("sign_up_policy", "closed"), ("enable_email_and_password", "false")])
def test_signing_up_can_be_disabled(aws_in_memory: None, option: SetOption, name: str, value: str) -> None:
    option(name, value)
    assert sign_up().refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")
    assert find_user_by_email("eve@example.com") is None


@pytest.mark.parametrize(
    ("email", "status"),
    [
        ("eve@example.com", 200),
        ("eve@EXAMPLE.com", 200),
        ("eve@b\u00fccher.example", 200),
        ("eve@xn--bcher-kva.example", 200),
        ("eve@sub.example.com", 400),
        ("eve@evilexample.com", 400),
        ("eve@example.com.evil.example", 400),
    ],
)
def test_only_addresses_of_allowed_domains_can_sign_up(
    aws_in_memory: None, option: SetOption, email: str, status: int
) -> None:
    option("allowed_email_domains", "@Example.com, b\u00fccher.example")
    reply = sign_up(email=email)
    assert reply.status == status
    assert status == 200 or reply.json == {
        "code": "EMAIL_PASSWORD_SIGN_UP_DISABLED",
        "message": "Addresses of this domain cannot sign up. Ask the operator to add you.",
    }


@pytest.fixture
def invited_only(option: SetOption) -> None:
    option("sign_up_policy", "invited")


def invite(team_id: str, email: str = "eve@example.com", *, now: datetime | None = None) -> Invitation:
    invitee = Invitee(email=email, address=canonical(email), role=Role.MEMBER)
    (made,) = create_invitations(team_id, [invitee], by=None, now=now or clock.now())
    return made


def test_a_stranger_cannot_sign_up_at_a_new_deployment() -> None:
    """The default of the template, which the environment of the tests replaces."""
    assert template().environment["LARDER_SIGN_UP_POLICY"] == "invited"


def test_without_an_invitation_no_one_signs_up(cloud: Cloud, invited_only: None) -> None:
    invite(cloud.team.id, "bob@example.com")
    reply = sign_up()
    assert reply.refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")
    assert "Ask an owner of a team to invite you" in reply.json["message"]
    assert find_user_by_email("eve@example.com") is None


def test_a_refusal_does_not_reveal_who_has_an_account(cloud: Cloud, invited_only: None) -> None:
    unknown, known = sign_up(), sign_up(email=cloud.user.email)
    assert (unknown.status, unknown.body) == (known.status, known.body)


@pytest.mark.parametrize("spelling", ["eve@example.com", "EVE@Example.com", " eve@example.com "])
def test_an_invited_person_can_sign_up(cloud: Cloud, invited_only: None, spelling: str) -> None:
    invite(cloud.team.id)
    assert sign_up(email=spelling).status == 200


def test_an_address_of_an_allowed_domain_needs_no_invitation(
    cloud: Cloud, invited_only: None, option: SetOption
) -> None:
    option("allowed_email_domains", "example.com")
    assert sign_up().status == 200
    other = {"email": "eve@elsewhere.example"}
    assert sign_up(**other).refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")
    invite(cloud.team.id, other["email"])
    assert sign_up(**other).status == 200


def test_an_expired_invitation_does_not_count(cloud: Cloud, invited_only: None) -> None:
    invite(cloud.team.id, now=clock.now() - LIFETIME)
    assert sign_up().refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")


def test_a_withdrawn_invitation_does_not_count(cloud: Cloud, invited_only: None) -> None:
    made = invite(cloud.team.id)
    withdraw(cloud.team.id, made.id, by=None, now=clock.now())
    assert sign_up().refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")


def test_an_accepted_invitation_does_not_count(cloud: Cloud, invited_only: None) -> None:
    accept(invite(cloud.team.id), "someone", now=clock.now())
    assert sign_up().refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")


def test_an_invitation_of_a_second_team_counts_after_the_first_is_withdrawn(cloud: Cloud, invited_only: None) -> None:
    other = create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    first, _ = invite(cloud.team.id), invite(other.id)
    withdraw(cloud.team.id, first.id, by=None, now=clock.now())
    assert sign_up().status == 200


def test_a_new_invitation_of_the_address_replaces_the_first(cloud: Cloud, invited_only: None) -> None:
    """A request that withdraws the first one at the same moment does not end the second."""
    first, _ = invite(cloud.team.id), invite(cloud.team.id)
    assert not repository.delete(first, by=None)
    assert sign_up().status == 200


def test_the_invitations_of_a_deleted_team_do_not_count(cloud: Cloud, invited_only: None) -> None:
    invite(cloud.team.id)
    delete_team(cloud.team.id, by=None, now=clock.now())
    invoke("teams.sweep_deleted_teams.handler", {})
    assert sign_up().refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")


def test_the_checks_of_the_domain_and_for_an_invitation_are_a_read_each(cloud: Cloud, invited_only: None) -> None:
    with counted() as calls:
        sign_up()
    assert [call.operation for call in calls.made] == ["GetItem", "Query"]


# The link to verify the address -----------------------------------------------------------------


@pytest.fixture
def link_sent(option: SetOption, mailbox: Mailbox) -> Mailbox:
    option("send_verification_on_sign_up", "true")
    return mailbox


FUNCTION = "larder-prod-SignUp-7hQ2kLm9XyZ1"


@pytest.fixture
def new_deployment(aws_in_memory: None, option: SetOption, monkeypatch: pytest.MonkeyPatch) -> None:
    """One without users, which lets nobody sign up, and whose stack's link has FUNCTION as its code."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", FUNCTION)
    option("LARDER_SIGN_UP_POLICY", "closed")
    option("LARDER_REQUIRE_EMAIL_VERIFICATION", "true")


def test_the_link_of_a_new_stack_makes_the_first_user_without_an_email(new_deployment: None, mailbox: Mailbox) -> None:
    browser = Browser()
    reply = sign_up(browser, setupCode=FUNCTION)
    assert reply.status == 200
    assert reply.json["token"]
    user = find_user_by_email(EVE["email"])
    assert user is not None
    assert (user.email_verified, user.proven) == (True, True)
    assert not mailbox.payloads
    again = sign_up(email="mallory@example.com", setupCode=FUNCTION)
    assert again.refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")
    assert "works once" in again.json["message"]


@pytest.mark.parametrize("code", ["", "SignUp", FUNCTION[:-1], FUNCTION.lower(), "\ud800", "a" * 65])
def test_another_code_makes_no_user(new_deployment: None, code: str) -> None:
    assert sign_up(setupCode=code).status == 400
    assert find_user_by_email(EVE["email"]) is None


@pytest.mark.parametrize("name", ["SignUp", "larder", ""])
def test_the_name_of_a_function_that_cloudformation_did_not_choose_is_no_code(
    new_deployment: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", name)
    assert sign_up(setupCode=name).refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")


def test_of_two_first_users_at_once_there_is_one(new_deployment: None) -> None:
    with just_before("dynamodb", "TransactWriteItems", lambda: commit(ending_setup())):
        assert sign_up(setupCode=FUNCTION).refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")
    assert find_user_by_email(EVE["email"]) is None


def test_no_setup_where_there_are_users(new_deployment: None, ada: User) -> None:
    assert sign_up(setupCode=FUNCTION).refusal == (400, "EMAIL_PASSWORD_SIGN_UP_DISABLED")


def test_the_setup_stays_closed_when_its_user_is_deleted(new_deployment: None) -> None:
    sign_up(setupCode=FUNCTION)
    user = find_user_by_email(EVE["email"])
    assert user is not None
    delete_user(user.id, now=clock.now())
    assert sign_up(setupCode=FUNCTION).status == 400


def test_a_link_is_sent_by_default() -> None:
    """The environment of the tests replaces this default."""
    assert template().environment["LARDER_SEND_VERIFICATION_ON_SIGN_UP"] == "true"


def test_a_link_is_sent_that_proves_the_address(link_sent: Mailbox) -> None:
    browser = Browser()
    assert sign_up(browser, callbackURL="/welcome").json["token"]
    (message,) = link_sent.deliver()
    assert (message.to, message.subject) == ("eve@example.com", "Larder: Verify your address")
    reply = browser.get(link_in(message).removeprefix("/api/auth"))
    assert (reply.status, reply.headers["location"]) == (302, "/welcome")
    user = find_user_by_email("eve@example.com")
    assert user is not None
    assert user.proven


def test_no_link_is_sent_if_the_option_says_so(link_sent: Mailbox, option: SetOption) -> None:
    option("send_verification_on_sign_up", "false")
    assert sign_up().status == 200
    assert link_sent.jobs == []


def test_no_link_is_sent_to_a_taken_address(ada: User, link_sent: Mailbox) -> None:
    assert sign_up(email=ada.email).status == 422
    assert link_sent.jobs == []


@pytest.mark.parametrize("sends", ["true", "false"])
def test_sending_the_link_takes_no_additional_round_trip(link_sent: Mailbox, option: SetOption, sends: str) -> None:
    option("send_verification_on_sign_up", sends)
    with counted() as calls:
        sign_up()
    assert calls.sequential == 3, calls.steps


def test_the_user_is_signed_in_even_if_the_link_cannot_be_sent(link_sent: Mailbox) -> None:
    browser = Browser()
    with unreachable("lambda", "Invoke"):
        assert sign_up(browser).status == 200
    assert browser.get("/get-session").json is not None


# With required verification, replies do not reveal whether an address is taken -------------------


@pytest.fixture
def verification(option: SetOption) -> None:
    option("require_email_verification", "true")


def test_no_session_before_the_address_is_verified(aws_in_memory: None, verification: None, mailbox: Mailbox) -> None:
    reply = sign_up(callbackURL="/welcome")
    assert (reply.status, reply.json["token"], reply.cookies) == (200, None, ())
    assert sessions() == 0
    (job,) = mailbox.jobs
    assert isinstance(job, VerifyEmail)
    assert job.email == "eve@example.com"
    assert (job.callback_url, job.mail_context.base_url) == ("/welcome", f"https://{DOMAIN}")
    assert (job.mail_context.request.method, job.mail_context.request.path) == ("POST", f"/api/auth{PATH}")
    assert (job.mail_context.request.ip_address, job.mail_context.request.user_agent) == ("192.0.2.1", "Browser/1.0")
    (message,) = mailbox.deliver()
    assert message.to == "eve@example.com"
    assert "&callback=" in message.text


def test_a_taken_address_gets_the_same_reply(ada: User, verification: None, mailbox: Mailbox) -> None:
    new, taken = sign_up(), sign_up(email="Ada@Example.com", name="Eve")
    assert (new.status, new.cookies) == (taken.status, taken.cookies) == (200, ())
    assert list(new.headers.items()) == list(taken.headers.items())
    assert shape(new.json) == shape(taken.json)
    assert list(new.json["user"]) == list(taken.json["user"])
    assert len(new.body) == len(taken.body) + len("eve@") - len("ada@")
    shown = taken.json["user"]
    assert (shown["name"], shown["email"], shown["emailVerified"]) == ("Eve", "ada@example.com", False)
    assert shown["id"] != ada.id
    assert check_credentials("ada@example.com", PASSWORD) == ada


def shape(value: Any) -> Any:
    """The keys in order, with the length of each text."""
    if isinstance(value, dict):
        return [(name, shape(inner)) for name, inner in value.items()]
    return len(value) if isinstance(value, str) else value


def test_a_taken_address_takes_the_same_calls(
    ada: User, verification: None, mailbox: Mailbox, hashes: list[int]
) -> None:
    sign_up(email="first@example.com")
    costs = []
    for email in ("eve@example.com", "ada@example.com"):
        hashes.clear()
        jobs = len(mailbox.jobs)
        with counted() as calls:
            assert sign_up(email=email).status == 200
        made = Counter(call.operation for call in calls.made)
        costs.append((made, list(hashes), len(mailbox.jobs) - jobs))
    assert costs[0] == costs[1] == ({"GetItem": 1, "TransactWriteItems": 1}, [1024], 1)


def test_the_owner_of_a_taken_address_gets_a_notice_without_a_verification_link(
    ada: User, verification: None, mailbox: Mailbox
) -> None:
    sign_up(email="ada@example.com", password="a stranger's password")
    (message,) = mailbox.deliver()
    assert message.to == "ada@example.com"
    assert "You already have an account" in message.subject
    assert "verify-email" not in message.text


def test_the_notice_has_no_words_of_the_stranger(ada: User, verification: None, mailbox: Mailbox) -> None:
    words = "Your-account-is-blocked.Call-+1-555-0100-now"
    sign_up(email="ada@example.com", name=words, callbackURL=f"/{words}")
    (message,) = mailbox.deliver()
    for word in ("blocked", "555"):
        assert word not in message.subject + message.text + message.html


def test_a_bad_field_gets_the_same_reply_for_every_address(ada: User, verification: None, mailbox: Mailbox) -> None:
    for email in ("eve@example.com", "ada@example.com"):
        assert sign_up(email=email, password="short").refusal == (400, "PASSWORD_TOO_SHORT")
        assert sign_up(email=email, name="").refusal == (400, "VALIDATION_ERROR")
    assert mailbox.jobs == []


# Bad requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "Eve\r\nBcc: mallory@example.com"}, "name"),
        ({"name": "Eve\x00"}, "name"),
        ({"image": "javascript:alert(1)"}, "image"),
        ({"image": "data:text/html,x"}, "image"),
        ({"image": "https://x.example/\r\nx"}, "image"),
        ({"image": "https://x.example/" + "x" * 2048}, "image"),
        ({"rememberMe": "yes"}, "rememberMe"),
        ({"callbackURL": 1}, "callbackURL"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(aws_in_memory: None, fields: dict[str, Any], field: str) -> None:
    reply = sign_up(**fields)
    assert reply.refusal == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith(f"[body.{field}] ")
    assert find_user_by_email("eve@example.com") is None


def test_every_field_that_breaks_a_rule_is_named(aws_in_memory: None) -> None:
    reply = Browser().post(PATH, {"email": "eve2", "password": 1})
    assert reply.refusal == (400, "VALIDATION_ERROR")
    assert reply.json["message"] == ("[body.name] Field required; [body.password] Input should be a valid string")


def test_a_lone_surrogate_in_a_password_is_hashed_as_better_auth_does(aws_in_memory: None) -> None:
    raw = json.dumps({**EVE, "password": "\ud800abcdefgh"}).encode()
    assert Browser().post(PATH, raw=raw).status == 200
    assert check_credentials("eve@example.com", "\ufffdabcdefgh").name == "Eve"
