"""POST /login/oauth/token/revoke"""

from tests.functions.teams.rules import made
from tests.issuer import Issuer, github_claims
from tests.requests import Cloud, Sender
from tests.trust.exchanging import REVOKE, exchange, posted, refusal, revoke

STATUS = "/v8/artifacts/status"


def test_a_token_is_revoked_from_the_next_request_on(cloud: Cloud) -> None:
    made(cloud)
    issuer = Issuer()
    issuer.publish()
    token = exchange(issuer.mint(github_claims())).json["access_token"]
    assert Sender(token)("GET", STATUS).status == 200
    assert [revoke(token).status for _ in range(2)] == [200, 200]
    assert Sender(token)("GET", STATUS).status == 401


def test_other_tokens_get_the_same_reply_and_still_work(cloud: Cloud) -> None:
    for token in (cloud.token, "a" * 64, "x", "a" * 300, "\u00fc"):
        assert (revoke(token).status, revoke(token).body) == (200, b"")
    assert cloud.send("GET", STATUS).status == 200


def test_400_without_a_token(cloud: Cloud) -> None:
    assert refusal(posted(REVOKE, "")) == (400, "invalid_request")
