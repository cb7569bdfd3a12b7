"""A sign-in with a provider, from the start to the session."""

from tests.sso.conftest import Journey, error_of


def test_a_new_person_gets_a_user_and_a_session(journey: Journey) -> None:
    reply = journey.sign_in()
    assert error_of(reply) is None
    assert reply.headers["location"] == "/console"
    user = journey.session()["user"]
    assert (user["email"], user["name"], user["emailVerified"]) == (
        "ada@acme.example",
        "Ada Lovelace",
        True,
    )
    assert error_of(journey.sign_in()) is None
    assert journey.session()["user"]["id"] == user["id"]
