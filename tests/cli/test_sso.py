"""`larder sso`, and `larder users suspend` and `resume`."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from larder import clock
from larder.accounts.access import suspend_user
from larder.accounts.linking import list_accounts
from larder.accounts.models import User
from larder.accounts.service import create_user, find_user
from larder.accounts.sessions import find_session, start_session
from larder.sso import repository, service
from larder.sso.memberships import changes_at_sign_in, list_mappings, map_group
from larder.sso.models import IdentityProvider, Mode, VerifiedBy
from larder.tables import IDENTITY, commit
from larder.teams.members import remove_member, role_of
from larder.teams.models import Role
from larder.trust.models import NewRule
from larder.trust.rules import create_rule
from larder_cli.main import cli
from larder_cli.sso.settings import claims_of_issuer
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Cloud
from tests.sso.people import end_access
from tests.sso.providers import ENDPOINTS, add_acme, link, signed_in
from tests.sso.running_provider import CLIENT_ID, SECRET, RunningProvider

from .conftest import Larder, change_cloud_json

DAY = timedelta(days=1)


@pytest.fixture
def provider() -> Iterator[RunningProvider]:
    with RunningProvider.running() as running:
        yield running


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secret.txt"
    path.write_text(f"{SECRET}\n")
    return str(path)


@pytest.fixture
def add(larder: Larder, provider: RunningProvider, secret_file: str) -> "Add":
    return Add(larder, provider, secret_file)


class Add:
    """Runs `larder sso add acme` with more options."""

    def __init__(self, larder: Larder, provider: RunningProvider, secret_file: str) -> None:
        self._larder = larder
        self._provider = provider
        self.secret_file = secret_file

    def arguments(self, *more: str) -> tuple[str, ...]:
        given = {
            "--name": "Acme",
            "--issuer": self._provider.issuer,
            "--client-id": CLIENT_ID,
            "--client-secret-file": self.secret_file,
        }
        typed = [word for pair in given.items() if pair[0] not in more for word in pair]
        return ("sso", "add", "acme", *typed, *more)

    def __call__(self, *more: str) -> Any:
        return self._larder.json(*self.arguments(*more))

    def refusal(self, *more: str) -> str:
        return self._larder.refusal(*self.arguments(*more))


@pytest.fixture
def bob(cloud: Cloud) -> User:
    return create_user("bob@acme.example", "Bob", password=PASSWORD, now=clock.now())


def stored() -> IdentityProvider:
    return service.require_provider("acme")


# Add a provider --------------------------------------------------------------------------------


def test_add_pins_the_configuration(add: Add, provider: RunningProvider, larder: Larder, api_url: str) -> None:
    added = add("--domain", "Acme.example", "--groups-claim", "groups", "--hidden")
    assert added["redirect_uri"] == f"{api_url}/api/auth/callback/acme"
    assert (added["token"], added["keys"]) == (f"{provider.issuer}/token", f"{provider.issuer}/keys")
    assert (added["mode"], added["domains"], added["hidden"]) == ("optional", ["acme.example"], True)
    assert service.unsealed_secrets(stored(), now=clock.now()) == [SECRET]
    assert SECRET not in str(added)
    (listed,) = larder.json("sso", "list")
    assert listed == added
    shown = larder.json("sso", "show", "acme")
    assert {**listed, **shown} == shown
    assert [change["action"] for change in shown["changes"]] == ["provider_added"]


def test_the_output_says_what_to_do_next(add: Add, larder: Larder, api_url: str) -> None:
    output = larder(*add.arguments()).output
    assert f"Allow the redirect URI {api_url}/api/auth/callback/acme at the provider" in output
    assert "larder sso test acme" in output


def test_the_secret_comes_from_a_question_that_does_not_show_it(add: Add, larder: Larder) -> None:
    words = [word for word in add.arguments() if word not in ("--client-secret-file", add.secret_file)]
    result = CliRunner().invoke(cli, [*larder.target, *words], input=f"{SECRET}\n")
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    assert service.unsealed_secrets(stored(), now=clock.now()) == [SECRET]


def test_the_secret_comes_from_standard_input(add: Add, larder: Larder) -> None:
    arguments = [*larder.target, *add.arguments("--client-secret-file", "-")]
    assert CliRunner().invoke(cli, arguments, input=f"{SECRET}\n").exit_code == 0
    assert service.unsealed_secrets(stored(), now=clock.now()) == [SECRET]


def test_no_command_takes_a_secret_as_an_argument(larder: Larder) -> None:
    for command in ("add", "rotate-secret"):
        assert "--client-secret " not in larder("sso", command, "--help").output


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "café", "a" * 2049])
def test_a_broken_secret_is_refused(add: Add, text: str) -> None:
    Path(add.secret_file).write_text(text)
    assert "must be one line of 1 to 2048 ASCII characters" in add.refusal()
    assert service.list_providers() == []


def test_a_configuration_of_another_issuer_is_refused(add: Add, provider: RunningProvider) -> None:
    """Attack 12: the issuer of many tenants."""
    provider.configuration["issuer"] = "https://login.microsoftonline.com/{tenantid}/v2.0"
    assert "Use the issuer of your own tenant" in add.refusal()
    assert service.list_providers() == []


def test_a_provider_that_does_not_answer_is_refused(add: Add, provider: RunningProvider) -> None:
    provider.configuration = {}
    assert "replied with 404, not 200: check the issuer" in add.refusal()
    assert "nothing listens there" in add.refusal("--issuer", "http://127.0.0.1:1")


def test_an_issuer_on_a_loopback_address_is_only_for_a_local_cloud(add: Add, data_folder: Path) -> None:
    change_cloud_json(data_folder, LARDER_BASE_URL="https://cache.example.com")
    assert "issuer: must be an https URL" in add.refusal()


def test_a_client_id_that_a_token_of_a_ci_job_can_have_is_refused(add: Add, cloud: Cloud, api_url: str) -> None:
    """Attack 9: a CI job asks for a token with our client id."""
    assert "which is the audience of CI jobs" in add.refusal("--client-id", api_url)
    assert "which is the audience of CI jobs" in add.refusal("--client-id", f"{api_url}/")
    new = NewRule(provider="github", repository="acme/web", audience="larder-ci")
    create_rule(cloud.team.id, new, by=None, origin=api_url, now=clock.now())
    assert "of acme has the audience larder-ci" in add.refusal("--client-id", "larder-ci")


def test_a_domain_of_another_provider_is_refused(add: Add) -> None:
    add_acme(id="other")
    refusal = add.refusal("--domain", "acme.example")
    assert "acme.example belongs to the provider other: remove it there first" in refusal


def test_an_operator_in_a_domain_is_warned_of(add: Add, larder: Larder, data_folder: Path) -> None:
    """Attack 17: the provider's admin claims an operator's address."""
    change_cloud_json(data_folder, LARDER_OPERATOR_EMAILS="Root@acme.example,ops@elsewhere.example")
    result = larder(*add.arguments("--domain", "acme.example"))
    assert "Root@acme.example is an operator" in result.stderr
    assert "ops@" not in result.stderr
    assert "is an operator" in larder("sso", "list").stderr


def test_addresses_without_a_claim_are_warned_of(add: Add, larder: Larder) -> None:
    result = larder(*add.arguments("--domain", "acme.example", "--verified-by", "domain"))
    assert "People must not be able to change their own address there" in result.stderr
    assert stored().verified_by is VerifiedBy.DOMAIN


def test_hosts_that_are_not_on_the_internet_are_warned_of(
    larder: Larder, data_folder: Path, provider: RunningProvider
) -> None:
    change_cloud_json(data_folder, LARDER_BASE_URL="https://cache.example.com")
    local = "https://localhost"
    add_acme(endpoints=replace(ENDPOINTS, token=f"{local}/token", jwks=f"{local}/keys"))
    result = larder("sso", "test", "acme", status=1)
    assert "localhost has an address here that is not on the internet" in result.stderr


def test_two_values_of_a_claim_are_alternatives(add: Add) -> None:
    claims = ("--require-claim", "hd=a.example", "--require-claim", "hd=b.example")
    assert add(*claims, "--require-claim", "tid=1")["required_claims"] == {
        "hd": ["a.example", "b.example"],
        "tid": ["1"],
    }
    assert "--require-claim must be NAME=VALUE" in add._larder.refusal(
        *add.arguments("--require-claim", "hd"), status=2
    )


# Change a provider -----------------------------------------------------------------------------


def test_set_changes_what_is_named(add: Add, larder: Larder) -> None:
    before = add("--domain", "acme.example", "--require-claim", "hd=acme.example")
    changed = larder.json(
        *("sso", "set", "acme", "--add-domain", "acme.net", "--keys-days", "14"),
        *("--scopes", "openid email", "--drop-claim", "hd", "--no-sign-up", "--no-auth-time"),
    )
    assert {name: changed[name] for name in changed if changed[name] != before[name]} == {
        "domains": ["acme.example", "acme.net"],
        "keys_days": 14,
        "scopes": ["openid", "email"],
        "required_claims": {},
        "signs_up": False,
        "sends_auth_time": False,
        "version": 2,
    }
    assert "name at least one setting" in larder.refusal("sso", "set", "acme", status=2)
    assert "there is no provider other" in larder.refusal("sso", "set", "other", "--hidden")


def test_the_domain_that_google_names_follows_the_domains(larder: Larder) -> None:
    """Attack 13: a private Google account with an address of the company has no hd."""
    google = "https://accounts.google.com"
    hd = claims_of_issuer(google, ("acme.example",))
    assert hd == {"hd": ("acme.example",)}
    assert claims_of_issuer("https://acme.okta.com", ("acme.example",)) == {}
    add_acme(issuer=google, required_claims=hd)
    changed = larder.json("sso", "set", "acme", "--add-domain", "acme.net")
    assert changed["required_claims"] == {"hd": ["acme.example", "acme.net"]}
    chosen = larder.json("sso", "set", "acme", "--require-claim", "hd=acme.net")
    assert chosen["required_claims"] == {"hd": ["acme.net"]}
    larder("sso", "set", "acme", "--add-domain", "acme.org")
    assert stored().required_claims == {"hd": ("acme.net",)}


def test_removing_a_domain_of_a_required_provider_frees_its_people(larder: Larder, bob: User) -> None:
    add_acme(mode=Mode.REQUIRED)
    end_access(bob, at=clock.now() + DAY)
    larder("sso", "set", "acme", "--remove-domain", "acme.example")
    freed = find_user(bob.id)
    assert freed is not None
    assert freed.access_until is None


def test_an_interrupted_change_of_the_domains_is_finished(larder: Larder, bob: User) -> None:
    add_acme(mode=Mode.REQUIRED, domains=())
    end_access(bob, at=clock.now() + DAY)
    larder("sso", "set", "acme", "--remove-domain", "acme.example")
    freed = find_user(bob.id)
    assert freed is not None
    assert freed.access_until is None


def test_rotate_secret_keeps_the_former_one_for_a_day(larder: Larder, add: Add, tmp_path: Path) -> None:
    add()
    (tmp_path / "new.txt").write_text("another")
    before = clock.now()
    printed = larder.json("sso", "rotate-secret", "acme", "--client-secret-file", str(tmp_path / "new.txt"))
    assert printed["former_secret_until"] >= clock.to_iso(before + DAY)
    assert service.unsealed_secrets(stored(), now=clock.now()) == ["another", SECRET]


def test_refresh_shows_the_difference_before_it_counts(larder: Larder, add: Add, provider: RunningProvider) -> None:
    add()
    assert larder.json("sso", "refresh", "acme") == {"id": "acme", "changed": False}
    provider.configuration["jwks_uri"] = f"{provider.issuer}/new/keys"
    refused = CliRunner().invoke(cli, [*larder.target, "sso", "refresh", "acme"], input="n\n")
    assert f"keys: {provider.issuer}/keys is now {provider.issuer}/new/keys" in refused.stderr
    assert stored().endpoints.jwks == f"{provider.issuer}/keys"
    assert larder.json("sso", "refresh", "acme", "--yes")["changed"] is True
    assert (stored().endpoints.jwks, stored().version) == (f"{provider.issuer}/new/keys", 2)


def test_another_address_of_the_deployment_needs_another_redirect_uri(
    larder: Larder, add: Add, data_folder: Path, api_url: str
) -> None:
    add()
    moved = api_url.replace("127.0.0.1", "localhost")
    change_cloud_json(data_folder, LARDER_BASE_URL=moved)
    assert f"redirect_to: {api_url} is now {moved}" in str(results(larder, 1)["configuration"])
    larder("sso", "refresh", "acme", "--yes")
    assert stored().origin == moved
    assert results(larder, 0)["configuration"] is None


# Test a provider -------------------------------------------------------------------------------


def results(larder: Larder, status: int) -> dict[str, str | None]:
    output = larder("sso", "test", "acme", "--json", status=status).stdout
    return {one["check"]: one["detail"] for one in json.loads(output)}


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_working_provider_passes(larder: Larder, add: Add, provider: RunningProvider, method: str) -> None:
    provider.configuration["token_endpoint_auth_methods_supported"] = [method]
    add()
    assert results(larder, 0) == dict.fromkeys(("configuration", "keys", "clock", "client"))


def test_each_check_says_what_is_wrong(larder: Larder, add: Add, provider: RunningProvider) -> None:
    add()
    provider.secret = "another"
    provider.skew = timedelta(minutes=5)
    provider.keys = [{"kty": "oct", "kid": "1"}, {"kty": "RSA", "use": "enc"}]
    provider.configuration["token_endpoint"] = f"{provider.issuer}/other"
    found = {name: detail or "" for name, detail in results(larder, 1).items()}
    assert "is now" in found["configuration"]
    assert "larder sso refresh acme" in found["configuration"]
    assert "has no key for RS256" in found["keys"]
    assert re.search(r"differs from this computer's by (300|299) s", found["clock"])
    assert "invalid_client: the client id or the secret is wrong" in found["client"]


def test_another_reply_of_the_token_endpoint_fails(larder: Larder, add: Add, provider: RunningProvider) -> None:
    add()
    provider.error = "redirect_uri_mismatch"
    assert results(larder, 1)["client"] == (
        "the token endpoint replied with redirect_uri_mismatch, not invalid_grant: check the client there"
    )


def test_a_secret_that_cannot_be_decrypted_fails(larder: Larder, add: Add) -> None:
    add()
    commit(IDENTITY.update("sso-providers", "acme", set={"secret": "bm90IHNlYWxlZA=="}))
    assert "cannot be decrypted: store the secret again" in str(results(larder, 1)["client"])


# The people ------------------------------------------------------------------------------------


def test_require_lists_who_has_never_signed_in_and_asks(larder: Larder, bob: User) -> None:
    link(bob, add_acme())
    asked = CliRunner().invoke(cli, [*larder.target, "sso", "require", "acme"], input="n\n")
    assert "Warning: nobody has signed in with Acme yet" in asked.stderr
    assert "ada@acme.example has never signed in with Acme" in asked.stderr
    assert "bob@acme.example has" not in asked.stderr
    assert stored().mode is Mode.OPTIONAL

    done = larder.json("sso", "require", "acme", "--yes", "--keys-days", "7")
    assert done["changed"] == ["ada@acme.example", "bob@acme.example"]
    assert done["not_signed_in"] == ["ada@acme.example"]
    assert (stored().mode, stored().keys_days) == (Mode.REQUIRED, 7)
    managed = find_user(bob.id)
    assert managed is not None
    assert managed.access_until is not None
    assert 6 * DAY < managed.access_until - clock.now() <= 7 * DAY
    assert larder.json("sso", "require", "acme", "--yes")["changed"] == []


def test_exceptions_are_replaced_or_kept(larder: Larder, bob: User) -> None:
    add_acme()
    require = ("sso", "require", "acme", "--yes")
    larder(*require, "--except", "BOB@acme.example")
    assert stored().exceptions == ("bob@acme.example",)
    larder(*require)
    assert stored().exceptions == ("bob@acme.example",)
    (listed,) = larder.json("sso", "list")
    assert listed["exceptions"] == ["bob@acme.example"]
    assert larder.json(*require, "--no-exceptions")["changed"] == ["bob@acme.example"]
    assert stored().exceptions == ()
    six = [word for n in range(6) for word in ("--except", f"{n}@acme.example")]
    assert "at most 5 addresses" in larder.refusal(*require, *six)
    assert "is not in a domain" in larder.refusal(*require, "--except", "a@b.example")


def test_a_provider_without_a_domain_is_not_required(larder: Larder) -> None:
    add_acme(domains=())
    assert "acme has no domain: name one" in larder.refusal("sso", "require", "acme", "--yes")


def test_optional_names_who_stays_without_access(larder: Larder, bob: User) -> None:
    add_acme()
    larder("sso", "require", "acme", "--yes")
    end_access(bob, at=clock.now())
    done = larder.json("sso", "optional", "acme")
    assert (done["mode"], done["changed"]) == ("optional", ["ada@acme.example"])
    assert done["without_access"] == ["bob@acme.example"]
    assert larder.json("users", "resume", "bob@acme.example")["access_until_at"] is None


def test_extend_gives_more_time(larder: Larder, cloud: Cloud, bob: User) -> None:
    now = clock.now()
    add_acme(mode=Mode.REQUIRED)
    end_access(cloud.user, at=now + timedelta(minutes=1))
    end_access(bob, at=now)
    (extended,) = larder.json("sso", "extend", "acme", "--days", "3")
    assert extended["email"] == "ada@acme.example"
    (extended,) = larder.json("sso", "extend", "acme", "--days", "5", "--user", "bob@acme.example")
    assert extended["email"] == "bob@acme.example"
    assert larder.json("sso", "extend", "acme", "--days", "1") == []
    create_user("eve@elsewhere.example", "Eve", now=now)
    assert "does not have to sign in with acme" in larder.refusal(
        "sso", "extend", "acme", "--days", "1", "--user", "eve@elsewhere.example"
    )


def test_unlink_makes_room_for_another_person(larder: Larder, bob: User) -> None:
    now = clock.now()
    link(bob, add_acme())
    _, theirs = signed_in(bob, authenticated_at=now, now=now)
    _, own = start_session(bob, now=now)
    assert larder.json("sso", "unlink", "acme", "bob@acme.example")["unlinked"] is True
    assert find_session(theirs, now=now) is None
    assert find_session(own, now=now)
    assert list_accounts(bob.id)[1] == []
    again = larder.refusal("sso", "unlink", "acme", "bob@acme.example")
    assert "has no account of acme" in again


def test_remove_ends_sessions_and_frees_the_domain(larder: Larder, bob: User) -> None:
    now = clock.now()
    provider = add_acme(mode=Mode.REQUIRED)
    link(bob, provider)
    end_access(bob, at=now + DAY)
    _, token = signed_in(bob, authenticated_at=now, now=now)
    carl = create_user("carl@acme.example", "Carl", now=now)
    link(carl, provider)
    asked = CliRunner().invoke(cli, [*larder.target, "sso", "remove", "acme"], input="n\n")
    assert "carl@acme.example has no password" in asked.stderr
    assert "bob@acme.example has no password" not in asked.stderr
    assert service.find_provider("acme")
    assert larder.json("sso", "remove", "acme", "--yes") == {"id": "acme", "removed": True, "sessions_ended": 1}
    assert find_session(token, now=now) is None
    freed = find_user(bob.id)
    assert freed is not None
    assert freed.access_until is None
    assert service.find_domain("acme.example") is None
    assert "there is no provider acme" in larder.refusal("sso", "remove", "acme", "--yes")


def test_an_interrupted_removal_is_finished(larder: Larder, bob: User) -> None:
    now = clock.now()
    _, token = signed_in(bob, authenticated_at=now, now=now)
    assert repository.get("acme") is None
    assert larder.json("sso", "remove", "acme", "--yes")["sessions_ended"] == 1
    assert find_session(token, now=now) is None


def test_an_interrupted_removal_leaves_no_groups_and_managed_members(larder: Larder, bob: User, cloud: Cloud) -> None:
    now, team_id = clock.now(), cloud.team.id
    provider = add_acme()
    map_group("acme", team_id, None, Role.VIEWER)
    commit(*changes_at_sign_in(provider, (), bob.id, now=now).writes)
    assert repository.remove(provider)
    assert larder.json("sso", "remove", "acme", "--yes")["removed"]
    assert list_mappings("acme") == []
    remove_member(team_id, bob.id, by=None)
    assert role_of(team_id, bob.id) is None
    assert "there is no provider acme" in larder.refusal("sso", "remove", "acme", "--yes")


def test_suspend_and_resume(larder: Larder, bob: User) -> None:
    now = clock.now()
    _, token = start_session(bob, now=now)
    suspended = larder.json("users", "suspend", "BOB@acme.example")
    assert suspended["suspended_at"] is not None
    assert (suspended["sessions_ended"], len(suspended["keys_ended"])) == (1, 0)
    assert find_session(token, now=now) is None
    listed = {one["email"]: one for one in larder.json("users", "list")}
    assert listed["bob@acme.example"]["suspended_at"] == suspended["suspended_at"]
    assert larder.json("users", "resume", "bob@acme.example")["suspended_at"] is None
    assert find_session(token, now=now)
    assert "there is no user" in larder.refusal("users", "suspend", "nobody@acme.example")


def test_resume_says_if_the_user_has_to_sign_in_first(larder: Larder, bob: User) -> None:
    add_acme(mode=Mode.REQUIRED)
    suspend_user(bob.id, now=clock.now())
    end_access(bob, at=clock.now())
    output = larder("users", "resume", "bob@acme.example").output
    assert "has access again after the next sign-in with their company" in output


@pytest.mark.usefixtures("mail_function")
def test_the_deletion_of_a_user_says_that_they_can_come_back(larder: Larder, bob: User) -> None:
    add_acme()
    output = larder("users", "delete", "bob@acme.example", "--yes").output
    assert "If bob@acme.example signs in with Acme again, they get a new, empty user" in output


# The signing secret ----------------------------------------------------------------------------


def test_client_secrets_outlive_rotations_of_the_signing_secret(
    larder: Larder, add: Add, data_folder: Path, option: SetOption
) -> None:
    path = data_folder / "local.json"
    path.write_text(json.dumps({"signing_secret": "first"}))
    change_cloud_json(data_folder, LARDER_SIGNING_SECRET="first")
    add()
    for arguments in ((), ("--force",), ("--force", "--drop-old"), ("--force",)):
        larder("rotate-signing-secret", *arguments)
        # As the next start of the local cloud does it.
        secrets = json.loads(path.read_text())["signing_secret"]
        change_cloud_json(data_folder, LARDER_SIGNING_SECRET=secrets)
        option("signing_secret", secrets)
        assert service.unsealed_secrets(stored(), now=clock.now()) == [SECRET]


def test_a_lost_client_secret_is_named(larder: Larder, add: Add, data_folder: Path) -> None:
    (data_folder / "local.json").write_text(json.dumps({"signing_secret": "first"}))
    change_cloud_json(data_folder, LARDER_SIGNING_SECRET="first")
    add()
    (data_folder / "local.json").write_text(json.dumps({"signing_secret": "unrelated"}))
    warned = larder("rotate-signing-secret", "--force").stderr
    assert "larder sso rotate-secret acme" in warned


# Roles in teams --------------------------------------------------------------------------------


def test_map_and_unmap_a_group(larder: Larder, cloud: Cloud) -> None:
    add_acme(groups_claim="groups")
    group = ("acme", "--group", "eng", "--team", "acme")
    mapped = larder.json("sso", "map", *group, "--role", "developer")
    expected = {"team": "acme", "groups": {"eng": "DEVELOPER"}, "everyone": None}
    assert mapped == {"id": "acme", **expected}
    everyone = ("acme", "--everyone", "--team", cloud.team.id)
    larder("sso", "map", *everyone, "--role", "VIEWER")
    assert larder.json("sso", "show", "acme")["teams"] == [{**expected, "everyone": "VIEWER"}]
    assert "Team acme: eng DEVELOPER, everyone VIEWER" in larder("sso", "show", "acme").stdout
    larder("sso", "unmap", *everyone)
    larder("sso", "unmap", *group)
    assert larder.json("sso", "show", "acme")["teams"] == []
    assert "is not mapped" in larder.refusal("sso", "unmap", *group)


def test_map_warns_of_owners_and_refuses_what_has_no_effect(larder: Larder, cloud: Cloud) -> None:
    add_acme()
    warned = larder("sso", "map", "acme", "--everyone", "--team", "acme", "--role", "OWNER")
    assert "can now make anyone an owner of acme" in warned.stderr
    group = ("acme", "--group", "eng", "--team", "acme", "--role", "ADMIN")
    assert "--groups-claim" in larder.refusal("sso", "map", *group)
    assert "no provider other" in larder.refusal("sso", "map", "other", *everyone_of("acme"))
    assert "no team nowhere" in larder.refusal("sso", "map", "acme", *everyone_of("nowhere"))
    larder.refusal("sso", "map", "acme", "--team", "acme", "--role", "ADMIN", status=2)


def everyone_of(team: str) -> tuple[str, ...]:
    return ("--everyone", "--team", team, "--role", "ADMIN")
