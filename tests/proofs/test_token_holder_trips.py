"""How many times the calls of `turbo login`, `link` and `logout` wait for AWS, with any amount of stored data."""

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

# request -> round trips with a key, and with a session that this instance has not seen
TRIPS = {
    "GET /v2/user": (3, 3),
    "GET /v2/teams": (4, 4),
    "GET /v2/teams/acme": (4, 4),
    "GET /v2/teams/{id}": (3, 3),
    "GET /v5/user/tokens/current": (2, 2),
    "DELETE /v3/user/tokens/current": (3, 4),
}


@pytest.mark.parametrize("by", ["key", "session"])
@pytest.mark.parametrize("crowded", [False, True], ids=["alone", "crowded"])
@pytest.mark.parametrize("request_line", TRIPS)
def test_round_trips_and_no_scan(request_line: str, crowded: bool, by: str, cloud: Cloud) -> None:
    now = clock.now()
    if crowded:
        for number in range(8):
            other = create_user(f"other-{number}@elsewhere.example", "Other", now=now)
            add_member(cloud.team.id, other.id, Role.MEMBER, now=now)
            create_team("Other", f"other-{number}", owner_user_id=other.id, now=now)
            create_key(NewKey(user_id=cloud.user.id), now=now)
    key = create_key(NewKey(user_id=cloud.user.id), now=now)[1]
    send = Sender(key if by == "key" else start_session(cloud.user, now=now)[1])
    method, _, path = request_line.replace("{id}", cloud.team.id).partition(" ")
    with counted() as calls:
        reply = send(method, path)
    assert reply.status == 200
    assert calls.sequential == TRIPS[request_line][by == "session"], calls.steps
    assert "Scan" not in str(calls.steps)
