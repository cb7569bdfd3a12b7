"""GET /v1/teams/{idOrSlug}/protection"""

from datetime import timedelta

import time_machine

from larder import clock
from larder.clock import to_ms
from larder.teams.protection import ProtectionChange, change_protection
from tests.functions.teams.people import Person, key_of
from tests.requests import Cloud
from tests.trust.scene import CLEAN, POISON, protected, put, session, trusted_key

PROTECTION = "/v1/teams/acme/protection"


def test_a_team_is_not_protected_at_first(ada: Person) -> None:
    assert ada.send("GET", PROTECTION).json == {
        "protected": False,
        "trustedFrom": None,
        "keepStored": False,
        "people": "own",
        "overwrites": "keep",
        "unsigned": "accept",
        "lastSharedUploadAt": None,
        "idle": False,
    }


def test_it_says_whether_trusted_credentials_upload(cloud: Cloud, ada: Person) -> None:
    key = key_of(ada, {"teams": ("read",)})

    def shown(*, days: int) -> tuple[int | None, bool]:
        with time_machine.travel(clock.now() + timedelta(days=days), tick=True):
            reply = key("GET", PROTECTION).json
        return reply["lastSharedUploadAt"], reply["idle"]

    with protected(cloud):
        put(session(cloud), "abc", POISON)
        assert (shown(days=0), shown(days=13), shown(days=15)) == ((None, False), (None, False), (None, True))
        with time_machine.travel(clock.now() + timedelta(days=5), tick=True):
            before = to_ms(clock.now())
            put(trusted_key(cloud), "abc", CLEAN)
        last, idle = shown(days=15)
        assert last is not None
        assert last >= before
        assert idle is False
        assert shown(days=20) == (last, True)


def test_stored_artifacts_that_are_kept_are_no_reason_for_a_warning(cloud: Cloud, ada: Person) -> None:
    change_protection(cloud.team.id, ProtectionChange(protected=True, keep_stored=True), by=None)
    assert ada.send("GET", PROTECTION).json["idle"] is False
