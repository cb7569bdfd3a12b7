"""The hourly schedule"""

from datetime import timedelta

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.api_keys.repository import get
from tests.requests import Cloud, invoke


def test_only_expired_keys_are_deleted(cloud: Cloud) -> None:
    now = clock.now()
    new = NewKey(user_id=cloud.user.id, expires_in_s=3600)
    ended, _ = create_key(new, now=now - timedelta(hours=2))
    lives, _ = create_key(new, now=now)
    invoke("api_keys.sweep_expired_keys.handler", {})
    assert get(ended.key_hash) is None
    assert get(lives.key_hash) == lives
    assert get(cloud.key.key_hash) is not None
