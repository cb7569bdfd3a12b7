"""This version reads the recordings of all versions, and the data that it writes itself.

A recording, recorded/<version>.json, has every item and object that a version stored, and its replies. `make
record-release` writes it at the release.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import time_machine

from larder import clock
from larder.accounts.link_tokens import issue_verification_token
from larder.accounts.service import create_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.artifacts import rebuild_index, sweep
from larder.artifacts.repository.totals import read_totals
from larder.teams.members import role_of
from larder.teams.models import Role
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.teams import find_team
from larder_cli.deploy.release import version_key
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys
from tests.mailbox import Mailbox
from tests.requests import Browser, Reply, Sender, deliver
from tests.sso.conftest import ORIGIN as LOOPBACK
from tests.sso.conftest import Journey, add, error_of
from tests.sso.hostile_provider import serving_provider
from tests.upgrades.history import DIRECT, LARGE, OPTIONS, PASSWORD, REPLACED, SMALL, TAGGED, UNSETTLED, answered, live
from tests.upgrades.stores import Stored, empty, put_back, taken
from tools.generate.text import json_lines

RECORDED = Path(__file__).parent / "recorded"
THIS = version("larder")
RELEASED = sorted((path.stem for path in RECORDED.glob("*.json")), key=version_key)
NOW = "data of this version"

CHANGES_WITH_TIME = {
    *("lastRequest", "expiresAt", "updatedAt", "token", "lastRefillAt", "tryAgainIn"),
    "requestCount",  # 0.1.0 counted every use of a key without limits; newer releases count one a minute on /v8
}
"""Fields of which only the presence is compared."""


def record(option: SetOption, mailbox: Mailbox) -> Stored:
    """Use a deployment, copy its data, and record its replies."""
    began = clock.now()
    past = live(option, mailbox)
    stored = taken()
    return {
        "version": THIS,
        "recorded_at": clock.to_iso(began),
        "past": asdict(past),
        "answers": answered(past.questions, past.credentials),
        "stored": stored,
    }


LEFT_OUT_SINCE = {
    # GET and HEAD omit it if it is unknown, after a direct upload. Clients treat a missing one as 0.
    ("x-artifact-duration", "0")
}
"""Values that newer releases omit from replies on purpose."""


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """What an upgrade removed or changed. It can add."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name not in after:
                if (name, value) not in LEFT_OUT_SINCE:
                    yield f"{where}.{name} is gone"
            elif name not in CHANGES_WITH_TIME or value is None or after[name] is None:
                yield from differences(value, after[name], f"{where}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif before != after:
        yield f"{where} was {before!r}, is {after!r}"


def read(release: str) -> str:
    return (RECORDED / f"{release}.json").read_text()


_of_now: list[str] = []
"""Created once per process."""


@pytest.fixture(
    # Most deployments have this version, or the one before.
    params=[*(one if one == RELEASED[-2] else pytest.param(one, marks=pytest.mark.slow) for one in RELEASED), NOW]
)
def recording(request: pytest.FixtureRequest, option: SetOption, mailbox: Mailbox) -> Iterator[Stored]:
    """This version on the data of the recorded one, a minute after the recording."""
    if request.param == NOW and not _of_now:
        _of_now.append(json.dumps(record(option, mailbox)))
        for logical_id in taken()["tables"]:
            empty(logical_id)
    text = _of_now[0] if request.param == NOW else read(request.param)
    recorded: Stored = json.loads(text)
    for name, value in OPTIONS.items():
        option(name, value)
    after = datetime.fromisoformat(recorded["recorded_at"]) + timedelta(minutes=1)
    with time_machine.travel(after, tick=True):
        put_back(recorded["stored"])
        yield recorded


def ask(recorded: Stored, *, only: str = "") -> None:
    """Repeat the recorded questions. The replies must have everything that the recorded ones have."""
    past = recorded["past"]
    again = answered(past["questions"], past["credentials"])
    found = [
        f"{question['method']} {question['path']} {difference}"
        for question, before, after in zip(past["questions"], recorded["answers"], again, strict=True)
        if question["path"].startswith(only)
        for difference in differences(before, after)
    ]
    assert found == []


def send_as(recorded: Stored, name: str) -> Sender:
    return Sender(None, authorization=recorded["past"]["credentials"][name]["authorization"])


def follow(link: str) -> Reply:
    path, _, query = link.partition("?")
    return deliver("GET", path, query, [("x-forwarded-proto", "https")], b"")


def test_this_version_is_recorded(request: pytest.FixtureRequest, option: SetOption, mailbox: Mailbox) -> None:
    path = RECORDED / f"{THIS}.json"
    if request.config.getoption("--record-release", default=False):
        path.write_text(json_lines(record(option, mailbox), depth=2))
    assert path.is_file(), "run `make record-release` and commit what it writes"


def test_a_recording_has_items_of_every_table(recording: Stored) -> None:
    held = {name for name, items in recording["stored"]["tables"].items() if items}
    assert held == recording["stored"]["tables"].keys()
    assert recording["stored"]["objects"]


def test_every_question_gets_the_same_reply(recording: Stored) -> None:
    ask(recording)


def test_the_index_is_rebuilt_from_the_bucket(recording: Stored) -> None:
    empty("ArtifactsTable")
    report = rebuild_index.rebuild_index(now=clock.now(), workers=1)
    keys = [one["key"] for one in recording["stored"]["objects"]]
    hashes = {key.rpartition("/")[0] for key in keys if key.startswith("artifacts/")}
    assert report.indexed == len(hashes)
    ask(recording, only="/v8/artifacts")


def test_uploads_still_work_with_the_old_data(recording: Stored) -> None:
    ci = send_as(recording, "ci")
    team = find_team("acme")
    assert team is not None
    before = read_totals(team.id).artifacts
    assert ci("PUT", f"/v8/artifacts/{SMALL}", body=b"again").status == 202
    assert ci("GET", f"/v8/artifacts/{SMALL}").body == b"again"
    keys = [one["key"] for one in recording["stored"]["objects"]]
    (unsettled,) = (key for key in keys if f"/{UNSETTLED}/" in key)
    announce(unsettled)
    reply = ci("HEAD", f"/v8/artifacts/{UNSETTLED}")
    assert (reply.status, reply.headers["content-length"]) == (200, str(len(LARGE) + 9))
    assert read_totals(team.id).artifacts == before + 1


def test_protection_hides_the_old_data_and_gives_it_back(recording: Stored) -> None:
    ci, team = send_as(recording, "ci"), find_team("acme")
    assert team is not None
    change_protection(team.id, ProtectionChange(protected=True), by=None)
    with time_machine.travel(clock.now() + timedelta(seconds=3), tick=True):
        for hash in (SMALL, TAGGED, REPLACED, DIRECT, UNSETTLED):
            assert ci("GET", f"/v8/artifacts/{hash}").status == 404
        assert ci("PUT", f"/v8/artifacts/{SMALL}", body=b"again").status == 202
        assert ci("GET", f"/v8/artifacts/{SMALL}").body == b"again"
        change_protection(team.id, ProtectionChange(protected=False), by=None)
        ask(recording, only="/v8/artifacts")


def test_links_in_mail_still_work(recording: Stored, mailbox: Mailbox, request: pytest.FixtureRequest) -> None:
    links: dict[str, str] = recording["past"]["links"]
    # Links of 0.1.0 that change an address stay valid after the user secures the account. They are refused.
    is_refused = "error" in follow(links["change email"]).headers["location"]
    assert is_refused is (request.node.callspec.params["recording"] == "0.1.0")
    (token,) = (follow(links["reset"]).headers["location"].partition("token=")[2],)
    reset = Browser().post("/reset-password", {"newPassword": "another password", "token": token})
    assert reset.status == 200
    person = {"email": "ada@acme.example", "password": "another password"}
    assert Browser().post("/sign-in/email", person).status == 200


def test_users_prove_their_address_with_a_session(recording: Stored) -> None:
    cookie = recording["past"]["credentials"]["ada"]["cookie"]
    ada = find_user_by_email("ada@acme.example")
    assert ada is not None
    assert not ada.proven
    token = issue_verification_token(ada, now=clock.now())
    Browser(cookies=dict([cookie.split("=", 1)])).get(f"/verify-email?token={token}")
    proven = find_user_by_email("ada@acme.example")
    assert proven is not None
    assert proven.proven


def test_teams_can_be_renamed_joined_and_deleted(recording: Stored, mailbox: Mailbox) -> None:
    cookie = recording["past"]["credentials"]["ada"]["cookie"]
    session = Sender(unquote(cookie.partition("=")[2]).rpartition(".")[0])
    assert session("PATCH", "/v2/teams/acme", json_body={"slug": "acme-inc"}).status == 200
    assert send_as(recording, "ci")("GET", "/v8/artifacts/status").status == 200
    members = session("GET", "/v3/teams/acme/members").json["members"]
    assert {member["email"] for member in members} == {"ada@acme.example", "vera@acme.example"}
    if link := recording["past"]["links"].get("invitation"):
        eve = create_user("eve@acme.example", "Eve", email_verified=True, now=clock.now())
        join = {"token": link.partition("token=")[2]}
        joined = Sender(start_session(eve, now=clock.now())[1])
        assert joined("POST", "/v1/teams/join", json_body=join).json["role"] == "DEVELOPER"
    assert session("DELETE", "/v1/teams/acme").status == 200
    assert send_as(recording, "ci")("GET", "/v8/artifacts/status").status == 403


def test_users_and_keys_can_be_changed(recording: Stored) -> None:
    cookie = recording["past"]["credentials"]["ada"]["cookie"]
    name, _, value = cookie.partition("=")
    ada = Browser(cookies={name: value})
    assert ada.post("/update-user", {"name": "Ada L."}).status == 200
    (ci,) = (key for key in ada.get("/api-key/list").json if key["name"] == "ci")
    assert ada.post("/api-key/update", {"keyId": ci["id"], "name": "deploy"}).status == 200
    assert send_as(recording, "ci")("GET", "/v8/artifacts/status").status == 200
    assert ada.post("/api-key/delete", {"keyId": ci["id"]}).status == 200
    assert send_as(recording, "ci")("GET", "/v8/artifacts/status").status == 401


def test_a_password_is_in_the_account_record_after_the_next_change(recording: Stored) -> None:
    ada, bob = (
        Browser(cookies=dict([recording["past"]["credentials"][name]["cookie"].split("=", 1)]))
        for name in ("ada", "bob")
    )
    accounts = [one.get("/list-accounts").json for one in (ada, bob)]
    assert [[one["providerId"] for one in listed] for listed in accounts] == [["credential"]] * 2
    assert ada.post("/update-user", {"name": "Ada L."}).status == 200
    change = {"currentPassword": PASSWORD, "newPassword": "another password"}
    assert bob.post("/change-password", change).status == 200
    users = [item for item in taken()["tables"]["IdentityTable"] if item["sk"] == {"S": "user"}]
    assert not [item["pk"] for item in users if "password" in item]
    assert ada.get("/list-accounts").json == accounts[0]
    for email, password in (("ada@acme.example", PASSWORD), ("bob@acme.example", "another password")):
        person = {"email": email, "password": password}
        assert Browser().post("/sign-in/email", person).status == 200


def test_a_user_signs_in_with_a_provider_and_keeps_what_they_have(
    recording: Stored, option: SetOption, mailbox: Mailbox
) -> None:
    option("base_url", LOOPBACK)
    ada = find_user_by_email("ada@acme.example")
    assert ada is not None
    with serving_provider() as provider:
        add(provider, id="company")
        journey = Journey(provider, Browser())
        journey.start(provider="company")
        reply = journey.callback(provider.authorize(journey.url), at="company")
    assert error_of(reply) is None
    assert journey.session()["user"]["id"] == ada.id
    team = find_team("acme")
    assert team is not None
    assert role_of(team.id, ada.id) is Role.OWNER
    # A stranger may have made the account: its keys end, and can be made again.
    assert not ada.proven
    assert send_as(recording, "ci")("GET", "/v8/artifacts/status").status == 401
    signed_in = find_user_by_email("ada@acme.example")
    assert signed_in is not None
    assert signed_in.proven


def test_the_sweep_deletes_expired_data(recording: Stored) -> None:
    team = find_team("acme")
    assert team is not None
    ci = send_as(recording, "ci")
    removed = recording["past"].get("to_be_removed", [])
    assert [ci("HEAD", f"/v8/artifacts/{hash}").status for hash in removed] == [200] * len(removed)
    sweep.sweep(now=clock.now() + timedelta(hours=1))
    assert [ci("HEAD", f"/v8/artifacts/{hash}").status for hash in removed] == [404] * len(removed)
    assert ci("HEAD", f"/v8/artifacts/{SMALL}").status == 200
    later = clock.now() + timedelta(days=31)
    for hours in range(3):
        report = sweep.sweep(now=later + timedelta(hours=hours))
        assert (report.failed, report.finished) == (0, True)
    # The lifecycle of the bucket deletes the inputs of runs.
    assert [key for key in object_keys() if not key.startswith("inputs/")] == []
    assert read_totals(team.id).size_bytes == read_totals(team.id).artifacts == 0


def test_a_change_is_detected_and_an_addition_is_not() -> None:
    before = {"a": 1, "b": [{"c": None}], "token": "x"}
    assert list(differences(before, {"a": 1, "b": [{"c": None, "d": 2}], "token": "y"})) == []
    assert list(differences(before, {"a": 2, "b": []})) == [
        ".a was 1, is 2",
        ".b was [{'c': None}], is []",
        ".token is gone",
    ]
