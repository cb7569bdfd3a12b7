"""`larder doctor`: each finding, from files, variables and the answers of a deployment. tests/e2e/test_doctor.py asks a
local cloud.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from larder_proxy import jsonc

from larder import clock
from larder.web.replies.errors import REPLIES
from larder_cli import output
from larder_cli.doctor.findings import PREFLIGHT_LINE, RULES
from larder_cli.main import cli

from .conftest import Larder
from .stub import Stub

TOKEN = "larder_" + "k" * 64
LONG_KEY = "s" * 32
GOOD = {"remoteCache": {"preflight": True}}
VARIABLES = {
    "TURBO_API": "https://cache.example.com",
    "TURBO_TOKEN": TOKEN,
    "TURBO_TEAM": "acme",
    "TURBO_RUN_SUMMARY": "true",
}


@dataclass
class Repository:
    root: Path
    environment: pytest.MonkeyPatch

    def write(self, name: str, value: object) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))

    def stores(self, *sizes: int, folder: str = ".turbo/cache") -> None:
        """Artifacts in turbo's local cache. The files are sparse."""
        for number, size in enumerate(sizes):
            path = self.root / folder / f"{number:016x}.tar.zst"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(size)

    def sets(self, **variables: str) -> None:
        for name, value in variables.items():
            self.environment.setenv(name, value)

    def report(self, *arguments: str, folder: Path | None = None) -> dict[str, Any]:
        """The JSON, after checking the exit status and that the token is not in it."""
        command = ["doctor", str(folder or self.root), *arguments, "--json"]
        result = CliRunner().invoke(cli, command, prog_name="larder")
        report = json.loads(result.stdout)
        assert result.exit_code == bool(report["problems"])
        assert TOKEN not in result.output
        return dict(report)

    def found(self, *, offline: bool = False) -> dict[str, dict[str, str]]:
        """The findings, by id."""
        report = self.report("--offline") if offline else self.report()
        return {finding["id"]: finding for finding in report["findings"]}


@pytest.fixture
def repository(tmp_path: Path, own_environment: pytest.MonkeyPatch) -> Repository:
    """One in which doctor finds nothing."""
    for name in ("CI", "XDG_CONFIG_HOME", "APPDATA"):
        own_environment.delenv(name, raising=False)
    own_environment.setenv("HOME", str(tmp_path / "home"))
    made = Repository(tmp_path / "web", own_environment)
    made.write("turbo.json", GOOD)
    made.write("node_modules/turbo/package.json", {"version": "2.11.11"})
    made.sets(**VARIABLES)
    return made


# ------------------------------------------------------------------------------------------- jsonc


def test_comments_and_trailing_commas_are_ignored_outside_of_strings() -> None:
    text = '{\n  // "a": 1,\n  "b": "//x /* y */ \\" ,}", /* two\nlines */ "c": [1, 2,],\n}\n'
    assert jsonc.parse(text) == {"b": '//x /* y */ " ,}', "c": [1, 2]}
    assert jsonc.line_of(text, "b") == 3
    assert jsonc.line_of(text, "c") == 4
    assert jsonc.line_of(text, "a") is None
    with pytest.raises(ValueError, match="line 2"):
        jsonc.parse('{\n"a" 1}')


# ------------------------------------------------------------------------- files and variables


def test_a_repository_that_caches_everything_has_no_findings(repository: Repository) -> None:
    repository.stores(120_000_000, 100)
    report = repository.report("--offline")
    assert report["findings"] == []
    settings = {setting["name"]: (setting["value"], setting["where"]) for setting in report["settings"]}
    assert settings == {
        "turbo": ("2.11.11", "node_modules/turbo"),
        "address": ("https://cache.example.com", "TURBO_API"),
        "team": ("acme", "TURBO_TEAM"),
        "token": ("set", "TURBO_TOKEN"),
        "preflight": ("on", "turbo.json:1"),
        "signature": ("off", "turbo's default"),
        "timeout": ("30 s", "turbo's default"),
        "uploadTimeout": ("60 s", "turbo's default"),
        "largest artifact": ("120.0 MB, of 2", ".turbo/cache"),
    }
    shown = Larder()("doctor", str(repository.root), "--offline").stdout
    assert "no problems, no warnings" in shown


@dataclass(frozen=True)
class Case:
    """A change of the good repository, and what doctor finds in it."""

    id: str
    where: str
    found: str
    paste: str = ""
    cache: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)
    files: Mapping[str, object] = field(default_factory=dict)
    stored: tuple[int, ...] = ()
    others: frozenset[str] = frozenset()
    """The findings that come with it."""


CACHE = "https://cache.example.com"
KEY = "TURBO_REMOTE_CACHE_SIGNATURE_KEY"
CASES = (
    Case("no-address", "turbo.json:1", "No address is set", "TURBO_API=", variables={"TURBO_API": None}),
    Case(*("no-address", "TURBO_API", "turbo uses https://vercel.com/api", "TURBO_API="),
        variables={"TURBO_API": "https://vercel.com/api"}),
    Case(*("invalid-address", "TURBO_API", "cache.example.com is not an address", "TURBO_API="),
        variables={"TURBO_API": "cache.example.com"}),
    Case(*("invalid-address", "TURBO_API", "https://cache.example.com is not", "TURBO_API="),
        variables={"TURBO_API": "https://ada:secret@cache.example.com"}),
    Case(*("invalid-address", "TURBO_API", "https://cache:port is not", "TURBO_API="),
        variables={"TURBO_API": "https://cache:port"}),
    Case(*("plain-http", "TURBO_API", "is not https", "TURBO_API=https://cache.example.com"),
        variables={"TURBO_API": "http://cache.example.com"}),
    Case(*("proxied-address", "HTTP_PROXY", "turbo asks a proxy", "NO_PROXY=.corp,127.0.0.1"),
        variables={"TURBO_API": "http://127.0.0.1:3000", "http_proxy": "http://proxy:3128", "NO_PROXY": ".corp"}),
    Case(*("slash-at-end", "TURBO_API", "ends with a slash", "TURBO_API=https://cache.example.com"),
        variables={"TURBO_API": f"{CACHE}/"}),
    Case(*("login-address", "turbo.json:1", "loginUrl is not", f'"loginUrl": "{CACHE}"'), cache={"apiUrl": CACHE},
        variables={"TURBO_API": None}),
    Case(*("login-refused", "turbo.json:1", "http://cache.example.com", f'"loginUrl": "{CACHE}"'),
        cache={"loginUrl": "http://cache.example.com"}),
    Case(*("caching-off", "turbo.json:1", "enabled is false", '"enabled": true'), cache={"enabled": False}),
    Case(*("cache-flags", "TURBO_FORCE", "restores nothing", "unset TURBO_FORCE"), variables={"TURBO_FORCE": "true"}),
    Case(*("cache-flags", "TURBO_REMOTE_CACHE_READ_ONLY", "uploads nothing", "unset"),
        variables={"TURBO_REMOTE_CACHE_READ_ONLY": "1"}),
    Case(*("cache-flags", "TURBO_CACHE", "uploads nothing", "unset TURBO_CACHE"),
        variables={"TURBO_CACHE": "local:rw,remote:r"}),
    Case(*("cache-flags", "TURBO_CACHE", "restores nothing", "unset TURBO_CACHE"),
        variables={"TURBO_CACHE": "remote:w"}),
    Case(*("cache-flags", "TURBO_CACHE", "uses no remote cache", "unset TURBO_CACHE"),
        variables={"TURBO_CACHE": "local:rw"}),
    Case(*("preflight-off", "turbo.json:1", "2 of 3 artifacts in .turbo/cache are over 4.5 MB"), PREFLIGHT_LINE,
        cache={"preflight": False}, stored=(100, 4_600_000, 5_000_000)),
    Case(*("preflight-off", "turbo.json:1", "1 of 2 artifacts in .turbo/cache is over 4.5 MB"), PREFLIGHT_LINE,
        cache={"preflight": False}, stored=(100, 5_000_000)),
    Case(*("preflight-off", "TURBO_PREFLIGHT", "Preflight is off.", PREFLIGHT_LINE),
        variables={"TURBO_PREFLIGHT": "0"}, others=frozenset({"hidden-setting"})),
    Case(*("preflight-needless", "turbo.json:1", "The largest of 20 artifacts in .turbo/cache has 4.0 MB"),
        '"remoteCache": { "preflight": false }', cache={"preflight": True}, stored=(*[100] * 19, 4_000_000)),
    Case("short-download-timeout", "turbo.json:1", "after 10 s. The largest artifact in .turbo/cache has 50.0 MB",
        '"timeout": 30', cache={"timeout": 10}, stored=(50_000_000,)),
    Case(*("short-upload-timeout", "TURBO_REMOTE_CACHE_UPLOAD_TIMEOUT", "after 5 s"), '"uploadTimeout": 30',
        variables={"TURBO_REMOTE_CACHE_UPLOAD_TIMEOUT": "5"}, stored=(50_000_000,)),
    Case(*("invalid-value", "TURBO_PREFLIGHT", "'yes' is not 1 or 0", "TURBO_PREFLIGHT=1"),
        variables={"TURBO_PREFLIGHT": "yes"}),
    Case(*("invalid-value", "TURBO_REMOTE_CACHE_TIMEOUT", "'1m' is not a number of seconds"),
        "TURBO_REMOTE_CACHE_TIMEOUT=30", variables={"TURBO_REMOTE_CACHE_TIMEOUT": "1m"}),
    Case(*("invalid-value", "turbo.json:1", "is not true or false"), cache={"signature": "true"}),
    Case(*("hidden-setting", "TURBO_API", f"turbo uses {CACHE} of TURBO_API, not https://old"),
        cache={"apiUrl": "https://old.example.com"}),
    Case(*("hidden-setting", "TURBO_TEAM", "turbo uses acme of TURBO_TEAM, not web of .turbo/config"),
        files={".turbo/config.json": {"teamslug": "web"}}),
    Case(*("empty-variable", "TURBO_API", "turbo ignores apiUrl of turbo.json:1", "unset TURBO_API"),
        cache={"apiUrl": CACHE, "loginUrl": CACHE}, variables={"TURBO_API": ""}, others=frozenset({"no-address"})),
    Case(*("package-settings", "packages/ui/turbo.json", "sets remoteCache"),
        files={"packages/ui/turbo.json": {"extends": ["//"], "remoteCache": {"preflight": True}}}),
    Case("no-team", "TURBO_TEAM", "No team", "TURBO_TEAM=", variables={"TURBO_TEAM": None}),
    Case(*("invalid-team-id", "TURBO_TEAMID", "acme is not the id", "TURBO_TEAM=acme"),
        variables={"TURBO_TEAM": None, "TURBO_TEAMID": "acme"}),
    Case(*("no-token", "TURBO_TOKEN", "No token", f"turbo login --api {CACHE} --login {CACHE}"),
        variables={"TURBO_TOKEN": None}),
    Case(*("no-token", "TURBO_TOKEN", "No token", "TURBO_TOKEN: ${{ secrets.TURBO_TOKEN }}"),
        variables={"TURBO_TOKEN": None, "CI": "true"}),
    Case(*("invalid-token", "TURBO_TOKEN", "not one word", "TURBO_TOKEN=..."), variables={"TURBO_TOKEN": f"{TOKEN}\n"}),
    Case(*("invalid-token", "TURBO_TOKEN", "not one word", "TURBO_TOKEN=..."), variables={"TURBO_TOKEN": f'"{TOKEN}"'}),
    Case(*("invalid-token", "TURBO_TOKEN", "or not Larder's", "TURBO_TOKEN=..."), variables={"TURBO_TOKEN": "vca_abc"}),
    Case(*("signature-without-key", "turbo.json:1", f"{KEY} is not set", f"{KEY}=$(openssl"),
        cache={"signature": True}),
    Case(*("key-without-signature", KEY, "signature is not true", '"signature": true'), variables={KEY: LONG_KEY}),
    Case(*("weak-signature-key", KEY, "The key has 6 bytes", f"{KEY}=$(openssl rand -hex 32)"),
        cache={"signature": True}, variables={KEY: "secret"}),
    Case(*("weak-signature-key", KEY, "The key has 0 bytes", f"{KEY}=$(openssl rand -hex 32)"),
        cache={"signature": True}, variables={KEY: ""}),
    Case(*("signature-without-preflight", "turbo.json:1", "Preflight is off", PREFLIGHT_LINE),
        cache={"signature": True, "preflight": False}, variables={KEY: LONG_KEY}),
    Case(*("old-turbo", "node_modules/turbo", "turbo is 2.10.12", "turbo@latest"),
        files={"node_modules/turbo/package.json": {"version": "2.10.12"}}),
    Case(*("untested-turbo", "node_modules/turbo", "turbo 3.0.0 is not one of them"),
        files={"node_modules/turbo/package.json": {"version": "3.0.0"}}),
    Case(*("unknown-turbo", "package.json", "not known"),
        files={"node_modules/turbo/package.json": {}, "package.json": {"devDependencies": {"turbo": "^2.5.0"}}}),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{one.id}-{n}" for n, one in enumerate(CASES)])
def test_a_finding(repository: Repository, case: Case) -> None:
    repository.write("turbo.json", {"remoteCache": {**GOOD["remoteCache"], **case.cache}})
    for name, value in case.variables.items():
        if value is None:
            repository.environment.delenv(name, raising=False)
        else:
            repository.sets(**{name: value})
    for name, content in case.files.items():
        repository.write(name, content)
    repository.stores(*case.stored)
    found = repository.found(offline=True)
    assert found.keys() == {case.id} | case.others
    (one,) = (found[case.id],)
    assert one["where"] == case.where
    assert case.found in one["found"]
    assert case.paste in one["paste"]
    assert bool(case.paste) == bool(one["paste"])
    assert one["rule"] == RULES[case.id].text
    assert "secret@" not in json.dumps(found)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("package-lock.json", {"packages": {"node_modules/turbo": {"version": "2.5.8"}}}),
        ("pnpm-lock.yaml", "packages:\n\n  turbo@2.5.8:\n    resolution: {}\n"),
        ("pnpm-lock.yaml", "packages:\n\n  /turbo/2.5.8:\n    resolution: {}\n"),
        ("yarn.lock", 'turbo@^2.0.0:\n  version "2.5.8"\n'),
        ("yarn.lock", '"turbo@npm:^2.0.0":\n  version: 2.5.8\n'),
        ("bun.lock", '{"packages": {\n    "turbo": ["turbo@2.5.8", ""],\n}}'),
        ("package.json", {"devDependencies": {"turbo": "2.5.8"}}),
    ],
    ids=["npm", "pnpm", "pnpm 6", "yarn 1", "yarn 4", "bun", "package.json"],
)
def test_the_version_comes_from_the_lock_file(repository: Repository, file: str, content: object) -> None:
    repository.write("node_modules/turbo/package.json", {})
    repository.write(file, content)
    (turbo, *_) = repository.report("--offline")["settings"]
    assert (turbo["value"], turbo["where"]) == ("2.5.8", file)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("package-lock.json", {"packages": []}),
        ("package-lock.json", {"packages": {"node_modules/turbo": "2.5.8"}}),
        ("package.json", {"devDependencies": ["turbo"]}),
        ("package-lock.json", '{"packages":' + "[" * 200_000),
    ],
    ids=["packages", "a package", "dependencies", "nesting"],
)
def test_a_damaged_file_names_no_version(repository: Repository, file: str, content: object) -> None:
    repository.write("node_modules/turbo/package.json", {})
    repository.write(file, content)
    (turbo, *_) = repository.report("--offline")["settings"]
    assert turbo["name"] == "turbo"
    assert turbo["value"] != "2.5.8"


def test_a_package_uses_the_settings_of_the_root(repository: Repository) -> None:
    repository.write("turbo.json", '{\n  // ours\n  "remoteCache": {\n    "preflight": true,\n  },\n}')
    repository.write("packages/ui/turbo.json", '{"extends": ["//"], /* none */}')
    # Not a file of a package either.
    (repository.root / "packages" / "turbo.json").symlink_to("not-there")
    report = repository.report("--offline", folder=repository.root / "packages" / "ui")
    assert report["root"] == str(repository.root)
    assert {"name": "preflight", "value": "on", "where": "turbo.json:4"} in report["settings"]


def test_the_token_of_turbo_login_is_used(repository: Repository) -> None:
    repository.environment.delenv("TURBO_TOKEN")
    folder = repository.root.parent / "home" / ".config"
    repository.environment.setenv("TURBO_CONFIG_DIR_PATH", str(folder))
    repository.write("../home/.config/turborepo/auth.json", {"token": TOKEN})
    settings = repository.report("--offline")["settings"]
    assert {"name": "token", "value": "set", "where": "turbo login"} in settings


def test_a_token_and_a_team_of_vercel_count_without_those_of_larder(repository: Repository) -> None:
    for name in ("TURBO_TOKEN", "TURBO_TEAM"):
        repository.environment.delenv(name)
    repository.sets(VERCEL_ARTIFACTS_TOKEN=TOKEN, VERCEL_ARTIFACTS_OWNER="team_1")
    settings = {setting["name"]: setting["where"] for setting in repository.report("--offline")["settings"]}
    assert settings["token"] == "VERCEL_ARTIFACTS_TOKEN"
    assert settings["team"] == "VERCEL_ARTIFACTS_OWNER"


def test_nobody_needs_preflight_if_all_of_many_artifacts_are_small(repository: Repository) -> None:
    repository.write("turbo.json", {"remoteCache": {**GOOD["remoteCache"], "preflight": False}})
    repository.stores(*[100] * 20)
    assert repository.found(offline=True) == {}


@pytest.mark.parametrize("value", [None, "", "TRUE", "yes", "0"])
def test_without_summaries_of_runs(repository: Repository, value: str | None) -> None:
    repository.environment.delenv("TURBO_RUN_SUMMARY")
    if value is not None:
        repository.sets(TURBO_RUN_SUMMARY=value)
    (found,) = repository.found(offline=True).values()
    assert (found["id"], found["where"]) == ("summaries-off", "TURBO_RUN_SUMMARY")


def test_summaries_of_runs_by_a_file(repository: Repository) -> None:
    repository.environment.delenv("TURBO_RUN_SUMMARY")
    repository.write(".turbo/config.json", {"runSummary": True})
    assert repository.found(offline=True) == {}
    repository.write(".turbo/config.json", {"runSummary": False})
    assert repository.found(offline=True)["summaries-off"]["where"] == ".turbo/config.json"


def test_turbo_jsonc_and_another_cache_folder_are_read(repository: Repository) -> None:
    (repository.root / "turbo.json").unlink()
    repository.write("turbo.jsonc", {**GOOD, "cacheDir": "cached"})
    repository.stores(7_000, folder="cached")
    settings = repository.report("--offline")["settings"]
    assert {"name": "largest artifact", "value": "7.0 kB, of 1", "where": "cached"} in settings


def test_no_limit_of_time_is_never_too_short(repository: Repository) -> None:
    repository.stores(10_000_000_000)
    repository.write("turbo.json", {"remoteCache": {"preflight": True, "timeout": 0, "uploadTimeout": 0}})
    assert repository.found(offline=True) == {}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "there is no turbo.json in"),
        ({"turbo.json": "{}", "turbo.jsonc": "{}"}, "turbo.json and turbo.jsonc"),
        ({"turbo.json": '{\n"remoteCache": }'}, "not valid JSON: Expecting value: line 2"),
        ({"turbo.json": "[]"}, "not a JSON object"),
    ],
)
def test_without_a_configuration_the_status_is_2(repository: Repository, files: dict[str, str], message: str) -> None:
    folder = repository.root / "elsewhere"
    folder.mkdir()
    (repository.root / "turbo.json").unlink()
    for name, content in files.items():
        repository.write(f"elsewhere/{name}", content)
    assert message in Larder().refusal("doctor", str(folder), status=2)


# ------------------------------------------------------------------------------------- the deployment


class Answering(Stub):
    """A deployment that offers direct uploads."""

    def offers(self, location: str) -> None:
        self.says("OPTIONS /v8/artifacts", 200, location=location)


@pytest.fixture
def stub(repository: Repository) -> Iterator[Answering]:
    """A deployment in which doctor finds nothing."""
    with Answering().running() as made:
        made.says("GET /api/auth/ok", 200, {"ok": True})
        made.says("GET /v8/artifacts/status", 200, {"status": "enabled"})
        made.says("GET /v5/user/tokens/current", 200, {"token": {"scopes": [{"type": "user"}]}})
        made.offers(address("team_1"))
        repository.sets(TURBO_API=made.url)
        yield made


SIGNED = "X-Amz-Signature=abc"
EDGE = "k=1&e=2&m=3&s=4"


def address(owner: str, scope: str = "", query: str = SIGNED) -> str:
    upload = "019000000000" + "0" * 16
    return f"https://bucket.s3.example.com/artifacts/{owner}/0123456789abcdef{scope}/{upload}?{query}"


def error(code: str, message: str = "No.") -> dict[str, Any]:
    return {"error": {"code": code, "message": message}, "code": code, "message": message}


def tokens_sent(stub: Answering) -> set[str]:
    return {one.headers["Authorization"] for one in stub.asked if "Authorization" in one.headers}


def log_in(repository: Repository, **more: str) -> None:
    """Have the token from `turbo login` alone."""
    repository.environment.delenv("TURBO_TOKEN")
    folder = repository.root.parent / "home" / ".config"
    repository.environment.setenv("TURBO_CONFIG_DIR_PATH", str(folder))
    repository.write("../home/.config/turborepo/config.json", {"token": TOKEN, **more})


@pytest.mark.parametrize("has_login", [True, False], ids=["turbo login", "TURBO_TOKEN"])
@pytest.mark.parametrize("file", [".turbo/config.json", "turbo.json"])
def test_an_address_of_the_repository_gets_no_token(
    repository: Repository, stub: Answering, file: str, has_login: bool
) -> None:
    repository.environment.delenv("TURBO_API")
    named = {"apiUrl": stub.url}
    repository.write(file, {"remoteCache": {"preflight": True, **named}, **named})
    if has_login:
        # The address of a login hides the one of turbo.json.
        log_in(repository, **({} if file == "turbo.json" else {"apiUrl": "https://c.example"}))
    (finding,) = (one for one in repository.report()["findings"] if one["id"] == "token-not-sent")
    assert finding["where"].startswith(file)
    assert finding["paste"] == f"larder accept {stub.url}"
    assert [one.path for one in stub.asked] == ["/api/auth/ok"]
    assert tokens_sent(stub) == set()
    report = repository.report("--api", stub.url)
    assert not [one for one in report["findings"] if one["id"] == "token-not-sent"]
    assert tokens_sent(stub) == {f"Bearer {TOKEN}"}
    stub.asked.clear()
    repository.environment.chdir(repository.root)
    assert stub.url in Larder()("accept", stub.url).output
    assert "token-not-sent" not in repository.found()
    assert tokens_sent(stub) == {f"Bearer {TOKEN}"}


def test_the_address_of_the_login_gets_its_token(repository: Repository, stub: Answering) -> None:
    repository.environment.delenv("TURBO_API")
    log_in(repository, apiUrl=f"{stub.url}/")
    repository.write(".turbo/config.json", {"apiUrl": stub.url})
    repository.report()
    assert tokens_sent(stub) == {f"Bearer {TOKEN}"}


def test_a_repository_may_send_its_own_token(repository: Repository, stub: Answering) -> None:
    for name in ("TURBO_API", "TURBO_TOKEN"):
        repository.environment.delenv(name)
    repository.write(".turbo/config.json", {"apiUrl": stub.url, "token": TOKEN})
    repository.report()
    assert tokens_sent(stub) == {f"Bearer {TOKEN}"}


HOSTILE = "\x1b]0;x\x07\x1b[31m\r::add-mask::x\n::warning::y\u202ez\x9b2J\x7f"


def check_output(*arguments: str) -> None:
    result = CliRunner().invoke(cli, ["doctor", *arguments], prog_name="larder")
    assert result.exit_code in (0, 1, 2)
    for line in result.output.splitlines():
        assert line.isprintable(), line
        assert not line.startswith("::"), line


def test_no_text_from_outside_reaches_the_terminal_raw(repository: Repository, stub: Answering, tmp_path: Path) -> None:
    for request in ("GET /v8/artifacts/status", "GET /api/auth/ok", "OPTIONS /v8/artifacts"):
        stub.says(request, 403, error(HOSTILE, HOSTILE))
        check_output(str(repository.root))
        stub.says(request, 200, {"status": HOSTILE, "ok": True})
    stub.says("GET /v8/artifacts/status", 200, {"status": HOSTILE})
    check_output(str(repository.root))
    repository.sets(**dict.fromkeys(("TURBO_TEAM", "TURBO_TIMEOUT", "TURBO_CACHE"), HOSTILE))
    repository.sets(TURBO_PREFLIGHT=HOSTILE, TURBO_TEAMID=HOSTILE, TURBO_CACHE_DIR=HOSTILE)
    repository.write("node_modules/turbo/package.json", {"version": f"2.1.0{HOSTILE}"})
    repository.write(
        "turbo.json", {"remoteCache": dict.fromkeys(("apiUrl", "teamSlug", "teamId", "loginUrl"), HOSTILE)}
    )
    check_output(str(repository.root))
    repository.environment.delenv("TURBO_API")
    check_output(str(repository.root))
    repository.write(".turbo/config.json", {"apiUrl": f"https://x/{HOSTILE}", "teamId": HOSTILE})
    check_output(str(repository.root), "--offline")
    folder = tmp_path / f"a{HOSTILE}".replace("/", "")
    folder.mkdir()
    check_output(str(folder))
    (folder / "turbo.json").write_text("{")
    check_output(str(folder))
    (folder / "turbo.json").write_text(json.dumps(GOOD))
    package = folder / f"p{HOSTILE}" / "turbo.json"
    package.parent.mkdir()
    package.write_text(json.dumps({"extends": ["//"], "remoteCache": {}}))
    check_output(str(folder))
    (folder / "turbo.jsonc").write_text("{}")
    check_output(str(folder))
    check_output(str(folder / HOSTILE))
    repository.sets(TURBO_ROOT_TURBO_JSON=HOSTILE)
    check_output(str(repository.root))


def test_every_command_prints_through_one_place() -> None:
    """`echo`, `print_line`, `print_record` and `print_table` replace control characters."""
    folder = Path(output.__file__).parent
    raw = re.compile(r"click\.(?:secho|echo)\((?!f\"\{mark(?:ed)?\}  \", nl=False\))|\bprint\(")
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if raw.search(path.read_text())}
    assert found == {"output.py"}


def test_a_deployment_that_takes_everything_has_no_findings(repository: Repository, stub: Answering) -> None:
    report = repository.report()
    assert report["findings"] == []
    facts = {setting["name"]: setting["value"] for setting in report["settings"]}
    assert facts["caching"] == "enabled"
    assert facts["large uploads"] == "straight to storage, without signatures"
    first, *others = stub.asked
    assert "Authorization" not in first.headers
    for one in others:
        assert one.path.endswith("?slug=acme")
        assert one.headers["Authorization"] == f"Bearer {TOKEN}"
        assert TOKEN not in one.path


@pytest.mark.parametrize(
    ("status", "code", "id", "where"),
    [
        (401, "unauthorized", "token-refused", "TURBO_TOKEN"),
        (403, "not_a_team_member", "other-team", "TURBO_TEAM"),
        (403, "invalid_team", "invalid-team", "TURBO_TEAM"),
        (403, "teams_differ", "teams-differ", "TURBO_TEAM"),
        (402, "account_soft_blocked", "blocked", ""),
        (402, "payment_missing", "blocked", ""),
        (429, "rate_limited", "rate-limited", ""),
        (500, "internal_error", "unexpected", ""),
    ],
)
def test_a_refused_token(repository: Repository, stub: Answering, status: int, code: str, id: str, where: str) -> None:
    stub.says("GET /v8/artifacts/status", status, error(code, f"No {TOKEN}."))
    (finding,) = repository.found().values()
    assert finding["id"] == id
    assert finding["where"] == (where or stub.url)
    assert finding["found"] == f"{status} {code}: No ...."


@pytest.mark.parametrize(
    ("files", "variables", "where", "paste"),
    [
        ({}, {}, "TURBO_TEAM", "TURBO_TEAM=my-team"),
        ({}, {"TURBO_TEAMID": "team_1"}, "TURBO_TEAMID", "unset TURBO_TEAMID"),
        ({"teamId": "team_1"}, {}, ".turbo/config.json", "turbo unlink"),
    ],
)
def test_the_line_to_paste_changes_the_setting_that_decides(
    repository: Repository, stub: Answering, files: dict[str, str], variables: dict[str, str], where: str, paste: str
) -> None:
    """The id goes before the slug, so TURBO_TEAM alone would change nothing."""
    if files:
        repository.write(".turbo/config.json", files)
    repository.sets(**variables)
    stub.says("GET /v8/artifacts/status", 403, error("teams_differ"))
    finding = repository.found()["teams-differ"]
    assert (finding["where"], finding["paste"]) == (where, paste)


@pytest.mark.parametrize(
    ("sizes", "level"),
    [
        ((), "warning"),
        ((999_999,), "note"),
        ((100, 1_000_000), "warning"),
        ((100,) * 20, None),
        ((5_000_000,), "problem"),
    ],
)
@pytest.mark.parametrize("id", ["preflight-off", "old-turbo"])
def test_only_what_loses_hits_now_is_a_problem(
    repository: Repository, id: str, sizes: tuple[int, ...], level: str | None
) -> None:
    """A fresh clone, as each job of CI is one, knows no artifact."""
    if id == "preflight-off":
        repository.write("turbo.json", {"remoteCache": {"preflight": False}})
    else:
        repository.write("node_modules/turbo/package.json", {"version": "2.3.4"})
    repository.stores(*sizes)
    found = repository.found(offline=True).get(id)
    assert (found and found["level"]) == level
    if found and id == "preflight-off" and level == "note":
        # To turn it on would only be slower.
        assert (found["found"], found["paste"]) == (
            "Preflight is off. The largest of 1 artifacts in .turbo/cache has 1.0 MB.",
            "",
        )


@pytest.mark.parametrize(
    ("variable", "value", "level"),
    [
        ("TURBO_FORCE", "1", "problem"),
        ("TURBO_CACHE", "local:rw", "problem"),
        ("TURBO_CACHE", "remote:w", "problem"),
        ("TURBO_CACHE", "remote:r", "warning"),
        ("TURBO_REMOTE_CACHE_READ_ONLY", "1", "warning"),
        ("TURBO_TEAM", "", "problem"),
        ("TURBO_TEAMID", "", "warning"),
    ],
)
def test_a_variable_that_leaves_hits_is_no_problem(
    repository: Repository, variable: str, value: str, level: str
) -> None:
    """Without TURBO_TEAMID, turbo uses TURBO_TEAM."""
    repository.write(".turbo/config.json", {"teamid": "team_1", "teamslug": "acme"})
    repository.sets(**{variable: value})
    found = [one for one in repository.found(offline=True).values() if one["where"] == variable]
    assert found[0]["level"] == level


@pytest.mark.parametrize(("code", "id"), [("unauthorized", "token-refused"), ("not_a_team_member", "other-team")])
def test_what_keeps_all_hits_away_comes_first(repository: Repository, stub: Answering, code: str, id: str) -> None:
    repository.write("turbo.json", {"remoteCache": {"preflight": False}})
    repository.stores(5_000_000)
    stub.says("GET /v8/artifacts/status", 401 if id == "token-refused" else 403, error(code))
    assert list(repository.found()) == [id, "preflight-off"]


def test_the_version_of_turbo_on_the_path(repository: Repository, tmp_path: Path) -> None:
    """As after `npm install --global turbo`."""
    repository.write("node_modules/turbo/package.json", {})
    program = tmp_path / "bin" / "turbo"
    program.parent.mkdir()
    repository.sets(PATH=str(program.parent), TURBO_TOKEN=TOKEN)
    for says, known in (("2.11.11", True), ("turbo 2", False)):
        program.write_text(f'#!/bin/sh\n[ -z "$TURBO_TOKEN" ] && echo "{says}"\n')
        program.chmod(0o755)
        assert ("unknown-turbo" not in repository.found(offline=True)) is known
    program.write_text("no program")
    assert "unknown-turbo" in repository.found(offline=True)


@pytest.mark.parametrize(
    ("files", "paste"),
    [
        ({"package.json": {}}, "npm install --save-dev turbo@latest"),
        ({"yarn.lock": ""}, "yarn add --dev turbo@latest"),
        (
            {"package.json": {"packageManager": "pnpm@9.1.0"}, "yarn.lock": ""},
            "pnpm add --save-dev --workspace-root turbo@latest",
        ),
        ({"bun.lock": ""}, "bun add --dev turbo@latest"),
    ],
)
def test_the_line_to_paste_is_of_the_repositorys_package_manager(
    repository: Repository, files: dict[str, object], paste: str
) -> None:
    repository.write("node_modules/turbo/package.json", {"version": "2.3.4"})
    for name, value in files.items():
        repository.write(name, value)
    assert repository.found(offline=True)["old-turbo"]["paste"] == paste


@pytest.mark.parametrize(
    ("status", "id"), [("disabled", "team-off"), ("paused", "team-off"), ("over_limit", "quota-full")]
)
def test_a_team_that_caches_nothing(repository: Repository, stub: Answering, status: str, id: str) -> None:
    stub.says("GET /v8/artifacts/status", 200, {"status": status})
    stub.says("OPTIONS /v8/artifacts", 403, error(f"remote_caching_{status}"))
    (finding,) = repository.found().values()
    assert finding["id"] == id
    assert status in finding["found"]


@pytest.mark.parametrize(
    ("code", "level"),
    [
        ("read_only", "warning"),
        ("missing_permission", "warning"),
        ("missing_role", "warning"),
        ("email_not_proven", "problem"),
    ],
)
def test_a_token_that_only_reads(repository: Repository, stub: Answering, code: str, level: str) -> None:
    """Many are made for that. No one leaves an address unconfirmed on purpose."""
    assert (403, code) in {(reply.status, reply.code) for reply in REPLIES.values()}
    stub.says("OPTIONS /v8/artifacts", 403, error(code))
    (finding,) = repository.found().values()
    assert (finding["id"], finding["where"], finding["level"]) == ("read-only", "TURBO_TOKEN", level)


def test_a_token_that_expires_soon(repository: Repository, stub: Answering) -> None:
    def expires_in(**left: int) -> dict[str, Any]:
        expires_at = clock.to_ms(clock.now() + timedelta(**left))
        return {"token": {"scopes": [{"type": "team", "expiresAt": expires_at}]}}

    stub.says("GET /v5/user/tokens/current", 200, expires_in(days=8))
    assert repository.found() == {}
    stub.says("GET /v5/user/tokens/current", 200, expires_in(days=6))
    (finding,) = repository.found().values()
    assert (finding["id"], finding["where"]) == ("token-expires", "TURBO_TOKEN")
    # The token of a CI job.
    stub.says("GET /v5/user/tokens/current", 401, error("unauthorized"))
    assert repository.found() == {}


def test_a_personal_key_in_ci(repository: Repository, stub: Answering) -> None:
    stub.says("GET /v5/user/tokens/current", 200, {"token": {"scopes": [{"type": "team"}]}})
    assert repository.found() == {}
    repository.sets(CI="true")
    (finding,) = repository.found().values()
    assert (finding["id"], finding["where"]) == ("personal-key", "TURBO_TOKEN")
    assert finding["paste"] == "larder keys create --team acme --owned-by-team"
    # A key that the team owns, or the token of a CI job.
    stub.says("GET /v5/user/tokens/current", 401, error("unauthorized"))
    assert repository.found() == {}


def test_a_clock_that_is_wrong(repository: Repository, stub: Answering) -> None:
    for minutes, found in ((-10, "10 minutes ahead of"), (10, "10 minutes behind")):
        then = format_datetime(clock.now() + timedelta(minutes=minutes), usegmt=True)
        stub.says("GET /api/auth/ok", 200, {"ok": True}, date=then)
        (finding,) = repository.found().values()
        assert finding["id"] == "wrong-clock"
        assert found in finding["found"]


def test_a_server_that_is_not_larder_never_gets_the_token(repository: Repository, stub: Answering) -> None:
    stub.says("GET /api/api/auth/ok", 200, "<html>")
    repository.sets(TURBO_API=f"{stub.url}/api")
    (finding,) = repository.found().values()
    assert (finding["id"], finding["paste"]) == ("not-larder", f"TURBO_API={stub.url}")
    assert [one.path for one in stub.asked] == ["/api/api/auth/ok"]
    assert "Authorization" not in stub.asked[0].headers


def test_an_address_that_does_not_answer(repository: Repository) -> None:
    repository.sets(TURBO_API="https://no-such-host.invalid")
    (finding,) = repository.found().values()
    assert finding["id"] == "unreachable"
    assert "The host does not exist" in finding["found"]


def test_a_token_goes_to_no_address_without_https(repository: Repository) -> None:
    repository.sets(TURBO_API="http://no-such-host.invalid")
    assert repository.found().keys() == {"plain-http"}


def test_signatures_need_the_edge_for_preflight(repository: Repository, stub: Answering) -> None:
    repository.write("turbo.json", {"remoteCache": {"preflight": True, "signature": True}})
    repository.sets(TURBO_REMOTE_CACHE_SIGNATURE_KEY=LONG_KEY)
    (finding,) = repository.found().values()
    assert (finding["id"], finding["where"]) == ("signature-with-preflight", "turbo.json:1")
    stub.offers(address("team_1", query=EDGE))
    assert repository.found() == {}


def test_a_team_that_refuses_unsigned_artifacts(repository: Repository, stub: Answering) -> None:
    stub.says("OPTIONS /v8/artifacts", 200)
    (finding,) = repository.found().values()
    assert (finding["id"], finding["paste"]) == ("unsigned-refused", '"remoteCache": { "signature": true }')


def test_an_own_scope_and_an_own_cache(repository: Repository, stub: Answering) -> None:
    stub.offers(address("team_1", ".kabc"))
    (finding,) = repository.found().values()
    assert finding["id"] == "own-scope"
    stub.offers(address("u1"))
    (finding,) = repository.found().values()
    assert finding["id"] == "own-cache"


def test_the_deployment_says_what_an_old_client_gets(repository: Repository, stub: Answering) -> None:
    repository.write("node_modules/turbo/package.json", {"version": "2.10.12"})
    assert repository.found() == {}
    agents = [one.headers["User-Agent"] for one in stub.asked if one.method == "OPTIONS"]
    assert agents == ["larder-doctor", "turbo 2.10.12"]
    stub.refuses_agent = "turbo"
    assert repository.found().keys() == {"old-turbo"}


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ((200, {"said": []}), []),
        ((200, {"said": ["no cache: No"], "off": "No"}), ["no cache: No."]),
        ((200, {"said": [], "off": "No"}), ["No."]),
        ((404, ""), ["It answers 404 to /larder/status."]),
    ],
)
def test_larder_run_says_what_it_has_met_and_takes_every_artifact(
    repository: Repository, stub: Answering, answer: tuple[int, object], found: list[str]
) -> None:
    """With an old turbo, without preflight, and with a large artifact."""
    repository.write("turbo.json", {})
    repository.write("node_modules/turbo/package.json", {"version": "2.3.4"})
    repository.stores(6_000_000)
    repository.sets(LARDER_PROXY=stub.url)
    stub.says("GET /larder/status", *answer)
    findings = repository.found()
    assert findings.keys() <= {"sidecar"}
    assert [finding["found"] for finding in findings.values()] == found


def test_every_rule_has_a_test() -> None:
    tested = Path(__file__).read_text()
    assert [id for id in RULES if f'"{id}"' not in tested] == []
