"""GET /api/auth/sso"""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.functions.pages.conftest import CLIENT, STATE
from tests.requests import Browser, Reply


def start(query: str) -> Reply:
    return Browser().get(f"/sso?{query}")


def test_it_redirects_to_the_login_page_of_the_team(aws_in_memory: None) -> None:
    reply = start(f"teamId=acme&mode=login&next=http%3A%2F%2F127.0.0.1%3A9789&state={STATE}")
    assert reply.status == 302
    page = urlsplit(reply.headers["location"])
    assert (page.scheme, page.netloc, page.path) == ("", "", "/turborepo/token")
    assert parse_qs(page.query, strict_parsing=True) == {"redirect_uri": [CLIENT], "team": ["acme"], "state": [STATE]}
    assert (reply.headers["cache-control"], reply.headers["referrer-policy"]) == ("no-store", "no-referrer")


def test_the_state_is_optional_for_older_clients(aws_in_memory: None) -> None:
    assert "state" not in start(f"teamId=acme&mode=login&next={CLIENT}").headers["location"]


def test_the_team_can_be_named_by_its_slug(aws_in_memory: None) -> None:
    assert "team=acme" in start(f"slug=acme&next={CLIENT}").headers["location"]


@pytest.mark.parametrize("query", ["", "teamId=", f"next={CLIENT}", f"slug=&next={CLIENT}"])
def test_400_without_a_team(aws_in_memory: None, query: str) -> None:
    assert start(query).refusal == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "query",
    [
        "teamId=acme&next=http%3A%2F%2Fevil.example",
        "teamId=acme&next=%0d%0aSet-Cookie:%20a=b",
        "teamId=%2F%2Fevil.example&next=x",
        "teamId=acme&next=x&state=%0d%0a%23%26redirect_uri%3Dy",
        "teamId=acme%26redirect_uri%3Dhttp%3A%2F%2Fevil.example&next=x",
        "teamId=acme&next=x&next=http://evil.example",
    ],
)
def test_it_redirects_nowhere_else_for_any_query(aws_in_memory: None, query: str) -> None:
    reply = start(query)
    page = urlsplit(reply.headers["location"])
    assert (page.scheme, page.netloc, page.path) == ("", "", "/turborepo/token")
    assert reply.headers["location"].isprintable()
    assert len(parse_qs(page.query)["redirect_uri"]) == 1
    assert reply.cookies == ()
