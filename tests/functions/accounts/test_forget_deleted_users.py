"""The hourly schedule"""

from datetime import timedelta

from larder import clock
from larder.accounts.service import deleted_users, remove_user
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key, list_keys
from larder.teams.service import role_of
from tests.faults import unreachable
from tests.requests import Cloud, invoke

HANDLER = "accounts.forget_deleted_users.handler"


def test_what_a_deletion_left_over_is_ended(cloud: Cloud) -> None:
    """The request was cut off after the user was gone, before their keys were."""
    create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    remove_user(cloud.user.id, now=clock.now())
    assert len(list_keys(cloud.user.id)) == 2
    invoke(HANDLER, {})
    assert list_keys(cloud.user.id) == []
    assert role_of(cloud.team.id, cloud.user.id) is None


def test_the_note_is_kept_until_every_index_has_followed(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(minutes=5)
    remove_user(cloud.user.id, now=deleted_at)
    invoke(HANDLER, {})
    assert deleted_users() == [(cloud.user.id, deleted_at)]


def test_then_nothing_is_kept_of_the_user(cloud: Cloud) -> None:
    remove_user(cloud.user.id, now=clock.now() - timedelta(hours=1))
    invoke(HANDLER, {})
    assert deleted_users() == []


def test_the_note_is_kept_as_long_as_a_membership_could_not_be_ended(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(hours=1)
    remove_user(cloud.user.id, now=deleted_at)
    with unreachable("dynamodb", "TransactWriteItems"):
        invoke(HANDLER, {})
    assert deleted_users() == [(cloud.user.id, deleted_at)]
    invoke(HANDLER, {})
    assert deleted_users() == []
    assert role_of(cloud.team.id, cloud.user.id) is None
