"""The catalogue of requests: every request succeeds if what it names exists."""

from dataclasses import replace

import pytest

from larder import clock
from larder.accounts.link_tokens import issue_confirmation_token, issue_verification_token
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.changes import NewKey
from larder.api_keys.service import create_key
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import create_team
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant
from tests.catalogue import NAMES, Names, entries, operations, valid
from tests.conftest import SetOption
from tests.issuer import ORIGIN, Issuer, github_claims
from tests.requests import Sender


@pytest.fixture
def names(aws_in_memory: None, option: SetOption, mailbox: object, removal_jobs: object) -> Names:
    """Everything that a request can name exists."""
    option("scrypt_cost", 1024)
    option("operator_emails", "ada@example.com")
    option("trusted_origins", NAMES.trusted_origin)
    now, password = clock.now(), NAMES.password
    ada = create_user("ada@example.com", "Ada", password=password, email_verified=True, now=now)
    bob = create_user("bob@acme.example", "Bob", now=now)
    acme = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    # A second owner, because Ada may not leave a team without owners.
    add_member(acme.id, bob.id, Role.OWNER, now=now)
    other = create_team("Other", "other", owner_user_id=bob.id, now=now)
    invitee = Invitee(email=ada.email, address=ada.email, role=Role.MEMBER)
    (invitation,) = invitations.create_invitations(other.id, [invitee], by=None, now=now)
    key, token = create_key(NewKey(user_id=ada.id, team_id=acme.id), now=now)
    issuer = Issuer()
    issuer.publish()
    pinned = {"repository_id": "74", "repository_owner_id": "65"}
    new = NewRule(provider="github", pinned=pinned)
    rule = create_rule(acme.id, new, by=None, origin=ORIGIN, now=now)
    names = Names(
        team=acme.slug,
        member=bob.id,
        key=token,
        key_id=key.id,
        session=start_session(ada, now=now)[1],
        other_session=start_session(ada, now=now)[1],
        email=ada.email,
        reset_token=issue_reset_token(ada, now=now),
        verification_token=issue_verification_token(ada, now=now),
        confirmation_token=issue_confirmation_token(
            ada, new_email="ada@new.example", callback_url="", now=now
        ),
        invitation_token=invitations.issue_token(invitation),
        rule=rule.id,
        id_token=issuer.mint(github_claims()),
        login_code=turbo_login.create_token(ada, Grant(sso_team=acme.id), now=now).text,
    )
    put = valid("PUT /v8/artifacts/{hash}", hash=names.hash)
    assert put(Sender(token, slug=acme.slug)).status == 202
    return names


@pytest.mark.parametrize("operation", operations())
def test_every_request_succeeds(operation: str, names: Names) -> None:
    if operation == "POST /api/auth/sign-up/email":
        names = replace(names, email="eve@example.com")
    if operation == "POST /v1/teams/{idOrSlug}/members/teams/join":
        names = replace(names, team="other")
    request = valid(operation, names)
    if operation.startswith(("PUT /v8/", "OPTIONS /v8/artifacts/{")):
        request = valid(operation, names, hash="new")
    token = {"key": names.key, "session": names.session, None: None}[request.by]
    reply = request(Sender(token, slug="acme" if request.for_team else None))
    assert reply.status < 400, f"{reply}: change the entry in tests/catalogue.py"


def test_every_entry_has_a_route() -> None:
    assert entries() - set(operations()) == set()
