"""The table of a sign-in with a provider, without a deployment (`larder.accounts.provider_sign_in`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from larder import clock
from larder.accounts.models import Account, Credential, ProviderAccount, User
from larder.accounts.provider_sign_in import Decision, Found, decide, decide_to_link
from larder.sso.models import Identity
from larder.sso.refusals import SignInRefused
from tests.sso.providers import acme

NOW = clock.now()
ADDRESS = "ada@acme.example"
PERSON = Identity(
    provider=acme(),
    subject="ada-1",
    address=ADDRESS,
    email=ADDRESS,
    counts=True,
    name="Ada",
    groups=None,
    authenticated_at=NOW,
)
DOUBTFUL = replace(PERSON, counts=False)
NAMELESS = replace(PERSON, address=None, email=None, counts=False)
UNREACHABLE = replace(PERSON, address="ada@acme", email=None)
RENAMED = replace(PERSON, address="lovelace@acme.example", email="lovelace@acme.example")

USER = User(id="ada", email=ADDRESS, name="Ada", created_at=NOW, updated_at=NOW)
UNPROVEN = Account(user=USER, credential=Credential(password_hash="x", created_at=NOW, updated_at=NOW))
PROVEN = replace(UNPROVEN, user=replace(USER, email_verified=True, proven=True))
LINK = ProviderAccount(
    id="link",
    user_id="ada",
    provider_id="acme",
    issuer=PERSON.provider.issuer,
    subject="ada-1",
    address=ADDRESS,
    created_at=NOW,
    updated_at=NOW,
)
ANOTHER = replace(LINK, id="another", subject="ada-2")


def found(account: Account, *links: ProviderAccount, **more: Any) -> Found:
    return Found(account=account, address=ADDRESS, links=links, **more)


def known(account: Account, **more: Any) -> Found:
    return found(account, LINK, used=LINK, holder_id="ada", **more)


def outcome(decide_on: Callable[..., Decision], identity: Identity, stored: Found) -> object:
    """Whether it links, whether the password ends, the address and the audit. The code of a refusal."""
    try:
        decision = decide_on(identity, stored, now=NOW)
    except SignInRefused as refused:
        return refused.code.value
    user, actions = decision.new.user, [action.value for action in decision.actions]
    ends = decision.old is not None and decision.new.credential is None
    assert ends is decision.ends_keys
    return decision.links, ends, user.email, actions


KEPT: object = (False, False, ADDRESS, [])
LINKED: object = (True, False, ADDRESS, [])


@pytest.mark.parametrize(
    ("identity", "stored", "expected"),
    [
        (PERSON, known(PROVEN), KEPT),
        (DOUBTFUL, known(PROVEN), KEPT),
        (NAMELESS, known(UNPROVEN), KEPT),
        (PERSON, known(UNPROVEN), (False, True, ADDRESS, ["account_claimed"])),
        (RENAMED, known(PROVEN), (False, False, RENAMED.email, ["email_changed"])),
        (RENAMED, known(PROVEN, is_taken=True), KEPT),
        (UNREACHABLE, known(PROVEN), KEPT),
        (PERSON, Found(address=ADDRESS), (True, False, ADDRESS, ["signed_up"])),
        (DOUBTFUL, Found(can_sign_up=True), (True, False, ADDRESS, ["signed_up"])),
        (DOUBTFUL, Found(), "signup_disabled"),
        (NAMELESS, Found(), "email_not_found"),
        (UNREACHABLE, Found(address="ada@acme"), "email_not_found"),
        (PERSON, found(PROVEN), LINKED),
        (PERSON, found(UNPROVEN), (True, True, ADDRESS, ["account_claimed"])),
        (DOUBTFUL, found(PROVEN), "account_not_linked"),
        (DOUBTFUL, found(UNPROVEN), "account_not_linked"),
        (PERSON, found(PROVEN, ANOTHER), "account_not_linked"),
        (PERSON, found(PROVEN, replace(ANOTHER, issuer="https://former.example")), LINKED),
        (PERSON, found(UNPROVEN, ANOTHER), (True, True, ADDRESS, ["account_claimed"])),
    ],
)
def test_a_sign_in(identity: Identity, stored: Found, expected: object) -> None:
    assert outcome(decide, identity, stored) == expected


@pytest.mark.parametrize(
    ("identity", "stored", "expected"),
    [
        (PERSON, Found(), "state_mismatch"),
        (PERSON, known(PROVEN), KEPT),
        (PERSON, found(PROVEN, holder_id="bob"), "account_already_linked_to_different_user"),
        (PERSON, found(UNPROVEN), (True, False, ADDRESS, ["email_proven"])),
        (DOUBTFUL, found(UNPROVEN), LINKED),
        (RENAMED, found(PROVEN), LINKED),
        (replace(RENAMED, counts=False), found(PROVEN), "email_does_not_match"),
        (NAMELESS, found(PROVEN), "email_does_not_match"),
        (PERSON, found(PROVEN, ANOTHER), "unable_to_link_account"),
    ],
)
def test_a_link(identity: Identity, stored: Found, expected: object) -> None:
    assert outcome(decide_to_link, identity, stored) == expected


def test_what_keeps_a_person_out() -> None:
    suspended = replace(PROVEN, user=replace(PROVEN.user, suspended_at=NOW))
    with pytest.raises(SignInRefused, match="user_suspended"):
        decide(PERSON, known(suspended), now=NOW)
    away = replace(known(PROVEN), address="ada@home.example", manager=acme(id="corp"))
    with pytest.raises(SignInRefused, match="sso_required"):
        decide(DOUBTFUL, away, now=NOW)
