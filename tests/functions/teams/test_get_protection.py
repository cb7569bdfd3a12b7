"""GET /v1/teams/{idOrSlug}/protection"""

from larder.clock import to_ms
from larder.teams.models import Role
from larder.teams.protection import ProtectionChange, change_protection
from tests.functions.teams.people import Person, joined, key_of, newcomer, outcome
from tests.requests import Cloud

PROTECTION = "/v1/teams/acme/protection"


def test_a_team_is_not_protected_at_first(ada: Person) -> None:
    assert ada.send("GET", PROTECTION).json == {
        "protected": False,
        "trustedFrom": None,
        "keepStored": False,
        "people": "own",
        "overwrites": "keep",
        "unsigned": "accept",
    }


def test_every_member_and_a_key_can_read_it(cloud: Cloud, ada: Person) -> None:
    protection = change_protection(cloud.team.id, ProtectionChange(protected=True), by=None)
    viewer = joined(cloud, Role.VIEWER)
    for send in (viewer.send, key_of(ada, {"teams": ("read",)})):
        read = send("GET", PROTECTION).json
        assert (read["protected"], read["trustedFrom"]) == (True, to_ms(protection.trusted_from))


def test_403_for_a_key_without_permission_and_404_for_strangers(cloud: Cloud) -> None:
    assert outcome(cloud.send("GET", PROTECTION)) == (403, "missing_permission")
    assert outcome(newcomer().send("GET", PROTECTION)) == (404, "team_not_found")
