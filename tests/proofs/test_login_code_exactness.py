"""A code of `turbo login --sso-team` creates one key for parallel requests, on the local DynamoDB server."""

from collections import Counter

import pytest

from larder import clock
from larder.api_keys.keys import list_keys
from larder.errors import InvalidLoginCode
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant
from tests.proofs.overlapping import Overlap, all_at_once, every_overlap, outcome
from tests.requests import Cloud

pytestmark = pytest.mark.slow

PARALLEL = 20


@every_overlap
def test_a_code_creates_one_key(new_team: Cloud, overlap: Overlap) -> None:
    code = turbo_login.create_token(new_team.user, Grant(sso_team=new_team.team.id), now=clock.now()).text
    before = len(list_keys(new_team.user.id))
    done = all_at_once([outcome(lambda: turbo_login.exchange_code(code, "", now=clock.now()))] * PARALLEL, overlap)
    answers = Counter(one.answer for one in done)
    assert answers == {"done": 1, InvalidLoginCode.__name__: PARALLEL - 1}
    assert len(list_keys(new_team.user.id)) == before + 1
