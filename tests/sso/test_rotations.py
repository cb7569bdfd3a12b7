"""Rotations during sign-ins: of the client secret, and of the signing secret that seals it and the state."""

from datetime import timedelta

import pytest
import time_machine

from larder import clock, signing
from larder.sso import service
from larder.sso.models import IdentityProvider
from tests.sso.conftest import Journey, error_of
from tests.sso.hostile_provider import HostileProvider
from tests.sso.providers import SECRET

NEW = "the-next-client-secret"


def restart() -> None:
    """As an instance that starts now, or after five minutes."""
    signing._kept.clear()


@pytest.mark.parametrize("first", ["here", "there"])
def test_a_client_secret_is_rotated_without_a_failed_sign_in(
    journey: Journey, hostile: HostileProvider, first: str
) -> None:
    """The new secret is stored here before the provider accepts it, or while it accepts both."""
    journey.start()
    if first == "there":
        hostile.secrets = (SECRET, NEW)
    service.rotate_secret("acme", NEW, now=clock.now())
    # The one that was in progress, and the next one.
    assert error_of(journey.callback(hostile.authorize(journey.url))) is None
    assert error_of(journey.sign_in()) is None
    hostile.secrets = (NEW,)
    assert error_of(journey.sign_in()) is None


def test_the_former_client_secret_is_not_sent_after_a_day(journey: Journey, hostile: HostileProvider) -> None:
    with time_machine.travel(clock.now() - timedelta(hours=25)):
        service.rotate_secret("acme", NEW, now=clock.now())
    assert error_of(journey.sign_in()) == "invalid_code"
    hostile.secrets = (NEW,)
    assert error_of(journey.sign_in()) is None


def test_the_signing_secret_is_rotated_without_a_failed_sign_in(journey: Journey, hostile: HostileProvider) -> None:
    """Also the second time, when the secret that sealed the client secret at first is dropped."""
    for hours, secret in enumerate(("the-second-one", "the-third-one")):
        # A rotation waits until every instance signs with the secret of the last one.
        with time_machine.travel(clock.now() + timedelta(hours=hours)):
            restart()
            journey.start()
            stored = signing.read_secrets()
            assert service.reseal_secrets(stored.current, stored.accepted) == []
            signing.put_secrets(current=secret, previous=stored.current)
            restart()
            assert error_of(journey.callback(hostile.authorize(journey.url))) is None
            assert error_of(journey.sign_in()) is None


def test_the_lost_signing_secret_ends_sign_ins_in_progress_and_no_others(
    journey: Journey, hostile: HostileProvider, added: IdentityProvider
) -> None:
    """As `--drop-old` does it."""
    journey.start()
    stored = signing.read_secrets()
    signing.put_secrets(current="the-second-one", previous=stored.current)
    service.reseal_secrets("the-second-one", ["the-second-one", stored.current])
    signing.put_secrets(current="the-second-one", previous=None)
    restart()
    reply = journey.callback(hostile.authorize(journey.url))
    assert error_of(reply) == "state_mismatch"
    assert error_of(journey.sign_in()) is None
    assert added.secret != service.require_provider("acme").secret
