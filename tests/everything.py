"""Everything that a request of the catalogue can name."""

from dataclasses import replace
from datetime import timedelta

from larder import clock
from larder.accounts.link_tokens import issue_confirmation_token, issue_verification_token
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.teams.members import add_member
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant
from tests.catalogue import NAMES, Names, valid
from tests.issuer import GITHUB, ORIGIN, Issuer, github_claims
from tests.requests import Sender
from tests.sso.providers import add_acme, link


def create_everything(ada: User, acme: Team, *, password: str, mark: str = "x", issuer: str = GITHUB) -> Names:
    """Create it for a user with a proven address and this password, and for their team.

    `mark` is in the names and addresses that have to be unique. `issuer` issues the id token.
    """
    now = clock.now()
    # Tests begin with what the first of them made, minutes ago.
    later = now + timedelta(hours=1)
    bob = create_user(f"bob@{mark}.example", "Bob", now=now)
    # A second owner, because Ada may not leave a team without owners.
    add_member(acme.id, bob.id, Role.OWNER, now=now)
    other = create_team("Other", f"other-{mark}", owner_user_id=bob.id, now=now)
    invitee = Invitee(email=ada.email, address=ada.email, role=Role.MEMBER)
    (invitation,) = invitations.create_invitations(other.id, [invitee], by=None, now=now)
    new_key = NewKey(user_id=ada.id, team_id=acme.id, metadata={"repo": "web"})
    key, token = create_key(new_key, now=now)
    id_tokens = Issuer(issuer)
    id_tokens.publish()
    pinned = {"repository_id": "74", "repository_owner_id": "65"}
    new_rule = NewRule(provider="github", issuer=issuer, pinned=pinned)
    rule = create_rule(acme.id, new_rule, by=None, origin=ORIGIN, now=now)
    provider = add_acme(id=f"acme-{mark}", domains=(f"company-{mark}.example",))
    new_email = f"ada@new-{mark}.example"
    names = Names(
        team=acme.slug,
        hash=f"{mark}45347b63f",
        member=bob.id,
        key=token,
        key_id=key.id,
        session=start_session(ada, now=now)[1],
        other_session=start_session(ada, now=now)[1],
        email=ada.email,
        password=password,
        new_email=new_email,
        invited_email=f"carol@{mark}.example",
        new_slug=f"new-{mark}",
        renamed_slug=f"renamed-{mark}",
        reset_token=issue_reset_token(ada, now=now),
        verification_token=issue_verification_token(ada, now=now),
        confirmation_token=issue_confirmation_token(ada, new_email=new_email, callback_url="", now=now),
        invitation_token=invitations.issue_token(invitation),
        rule=rule.id,
        run="stored",
        id_token=id_tokens.mint({**github_claims(), "exp": clock.to_epoch_seconds(later)}),
        provider=provider.id,
        provider_domain=provider.domains[0],
        linked_account=link(ada, provider).id,
        login_code=turbo_login.create_token(ada, Grant(sso_team=acme.id), now=later).text,
    )
    put = valid("PUT /v8/artifacts/{hash}", names)
    assert put(Sender(token, slug=acme.slug)).status == 202
    report = valid("POST /v1/runs", names)
    report = replace(report, json=report.json | {"id": names.run})
    assert report(Sender(token, slug=acme.slug)).status == 200
    return names


def make_everything() -> Names:
    """Everything that a request of Ada, an operator, can name."""
    now, password = clock.now(), NAMES.password
    ada = create_user("ada@example.com", "Ada", password=password, email_verified=True, now=now)
    acme = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    return create_everything(ada, acme, password=password)
