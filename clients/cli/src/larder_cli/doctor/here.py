"""The checks of the repository and its environment. They need no network."""

import math
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from larder_proxy.address import Address
from larder_proxy.proxies import proxy_for
from larder_proxy.settings import DEFAULT, Settings

from larder_cli.doctor.findings import MAX_BODY_BYTES, PREFLIGHT_LINE, Finding, Level
from larder_cli.doctor.repository import (
    Artifacts,
    Version,
    package_configurations,
    package_manager,
)
from larder_cli.output import human_size

KEY_OF_SIGNATURES = "TURBO_REMOTE_CACHE_SIGNATURE_KEY"
SAMPLE = "https://cache.example.com"
KEY_BYTES = 32
DOWNLOAD_BYTES_A_SECOND = 4_000_000
UPLOAD_BYTES_A_SECOND = 2_000_000
DIRECT_UPLOADS_FROM = (2, 10, 13)
"""Older clients append the team to a presigned URL, which breaks its signature."""
MANY_ARTIFACTS = 20
"""So many artifacts in turbo's own folder show how large those of the repository are."""
SMALL_BYTES = 1_000_000
"""If all known artifacts are smaller, others are hardly too large for a function."""
TESTED = ((1, 13, 4), (2, 11, 11))

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOSTED = frozenset({"vercel.com", "api.vercel.com"})


def findings_here(
    client: Settings, version: Version | None, artifacts: Artifacts, *, was_offered: bool
) -> Iterator[Finding]:
    """`was_offered` says that the deployment has answered which uploads it offers to this version."""
    for one in client.invalid:
        yield Finding(id="invalid-value", where=one.where, found=one.found, paste=one.paste)
    yield from _address(client)
    yield from _login(client)
    yield from _switches(client)
    yield from _precedence(client)
    yield from _packages(client)
    yield from _team(client)
    yield from _token(client)
    yield from _signatures(client)
    if not is_sidecar(client):
        yield from _preflight(client, artifacts)
    yield from _timeouts(client, artifacts)
    yield from _version(client, version, artifacts, was_offered=was_offered)
    yield from _summaries(client)


def is_usable(address: str | None) -> bool:
    """Whether doctor sends the token there."""
    if address is None or not _is_address(address) or is_hosted(address):
        return False
    url = urlsplit(address)
    return url.scheme == "https" or url.hostname in _LOOPBACK


def is_sidecar(client: Settings) -> bool:
    """Whether turbo asks `larder run` or `larder proxy`, which take artifacts of every size from every turbo."""
    return client.api is not None and client.api == client.environment.get("LARDER_PROXY")


def is_hosted(address: str) -> bool:
    return urlsplit(address).hostname in _HOSTED


def shown(address: str) -> str:
    """The address without the user and password that it may have."""
    scheme, _, rest = address.rpartition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if scheme else rest.rpartition("@")[2]


def _is_address(address: str) -> bool:
    try:
        url = urlsplit(address)
        # The port raises ValueError if it is no number.
        is_whole = bool(url.hostname) and url.port != 0 and "@" not in url.netloc
        return is_whole and url.scheme in ("http", "https")
    except ValueError:
        return False


def _address(client: Settings) -> Iterator[Finding]:
    where, address = client.value("apiUrl").where, client.text("apiUrl")
    if address is None or (_is_address(address) and is_hosted(address)):
        found = "No address is set." if address is None else f"turbo uses {address}."
        where = client.line("remoteCache") if address is None else where
        yield Finding(id="no-address", where=where, found=found, paste=f"TURBO_API={SAMPLE}")
        return
    if not _is_address(address):
        found = f"{shown(address)} is not an address."
        yield Finding(id="invalid-address", where=where, found=found, paste=f"TURBO_API={SAMPLE}")
        return
    if not is_usable(address):
        found = f"{address} is not https."
        secure = address.replace("http:", "https:", 1)
        yield Finding(id="plain-http", where=where, found=found, paste=f"TURBO_API={secure}")
    to, environment = Address(address), client.environment
    if to.host in _LOOPBACK and proxy_for(environment, to):
        found = f"turbo asks a proxy for {address}."
        paste = f"NO_PROXY={','.join(filter(None, (environment.get('NO_PROXY'), to.host)))}"
        yield Finding(
            id="proxied-address", where=f"{to.scheme.upper()}_PROXY", found=found, paste=paste
        )
    if address.endswith("/"):
        paste = f"TURBO_API={client.api}"
        yield Finding(
            id="slash-at-end", where=where, found=f"{address} ends with a slash.", paste=paste
        )


def _login(client: Settings) -> Iterator[Finding]:
    """Only if the address is in turbo.json: else people name both addresses when they log in."""
    login, address = client.text("loginUrl"), client.text("apiUrl")
    if login is not None and not is_usable(login):
        where, paste = client.value("loginUrl").where, f'"loginUrl": "{client.api or SAMPLE}"'
        yield Finding(
            id="login-refused", where=where, found=f"loginUrl is {shown(login)}.", paste=paste
        )
    from_file = client.value("apiUrl").where.startswith(Path(client.file).name)
    if login is None and from_file and is_usable(address):
        found = "apiUrl is set, and loginUrl is not."
        paste = f'"loginUrl": "{client.api}"'
        where = client.value("apiUrl").where
        yield Finding(id="login-address", where=where, found=found, paste=paste)


def _switches(client: Settings) -> Iterator[Finding]:
    if not client.is_on("enabled", default=True):
        yield Finding(
            id="caching-off",
            where=client.value("enabled").where,
            found="remoteCache.enabled is false.",
            paste='"enabled": true',
        )
    for variable, effect, restores in (
        ("TURBO_FORCE", "turbo restores nothing, and builds everything", False),
        ("TURBO_REMOTE_CACHE_READ_ONLY", "turbo uploads nothing", True),
    ):
        if client.environment.get(variable) in ("1", "true"):
            yield _limiting(variable, client.environment[variable], effect, restores=restores)
    cache = client.environment.get("TURBO_CACHE")
    if cache is None:
        return
    pairs = (part.partition(":") for part in cache.split(","))
    actions = {kind.strip(): allowed for kind, _, allowed in pairs}.get("remote", "")
    if "w" not in actions or "r" not in actions:
        missing = "restores" if "w" in actions else "uploads" if "r" in actions else "uses"
        what = (
            "nothing from the remote cache"
            if missing == "restores"
            else "nothing to the remote cache"
        )
        effect = "turbo uses no remote cache" if missing == "uses" else f"turbo {missing} {what}"
        yield _limiting("TURBO_CACHE", cache, effect, restores="r" in actions)


def _limiting(variable: str, value: str, effect: str, *, restores: bool) -> Finding:
    found, worst = f"{variable}={value}: {effect}.", Level.WARNING if restores else Level.PROBLEM
    paste = f"unset {variable}"
    return Finding(id="cache-flags", where=variable, found=found, paste=paste, worst=worst)


def _precedence(client: Settings) -> Iterator[Finding]:
    for name, values in client.values.items():
        first, *others = values
        if not others:
            continue
        if first.value == "":
            found = f"{first.where} is empty. turbo ignores {name} of {others[0].where}."
            paste = f"unset {first.where}"
            # turbo needs no id if it has a slug.
            worst = Level.WARNING if name == "teamId" and client.team else Level.PROBLEM
            yield Finding(
                id="empty-variable", where=first.where, found=found, paste=paste, worst=worst
            )
        elif other := next((one for one in others if one.value != first.value), None):
            # A token of one's own in place of the one of `turbo login` is usual, and never shown.
            if name == "token":
                continue
            found = f"{name}: turbo uses {first.value} of {first.where}, not {other.value} of {other.where}."
            yield Finding(id="hidden-setting", where=first.where, found=found)


def _packages(client: Settings) -> Iterator[Finding]:
    root = Path(client.root)
    for path in package_configurations(root):
        where = path.relative_to(root).as_posix()
        yield Finding(id="package-settings", where=where, found=f"{where} sets remoteCache.")


def _team(client: Settings) -> Iterator[Finding]:
    id, slug = client.text("teamId"), client.text("teamSlug")
    if id is None and slug is None:
        paste = "TURBO_TEAM=my-team"
        yield Finding(id="no-team", where="TURBO_TEAM", found="No team is set.", paste=paste)
    elif id is not None and not id.startswith("team_"):
        where = client.value("teamId").where
        found = f"{id} is not the id of a team."
        yield Finding(id="invalid-team-id", where=where, found=found, paste=f"TURBO_TEAM={id}")


def _token(client: Settings) -> Iterator[Finding]:
    token, where = client.text("token"), client.value("token").where
    if token is None:
        in_ci = bool(client.environment.get("CI"))
        paste = "TURBO_TOKEN: ${{ secrets.TURBO_TOKEN }}" if in_ci else _login_command(client)
        found = "No token is set, and turbo login has stored none."
        yield Finding(id="no-token", where="TURBO_TOKEN", found=found, paste=paste)
    elif not is_sendable(token):
        paste = "TURBO_TOKEN=..."
        found = f"The token in {where} is not one word, or not Larder's."
        yield Finding(id="invalid-token", where=where, found=found, paste=paste)


def is_sendable(token: str) -> bool:
    is_word = token.isascii() and token.isprintable() and not set(token) & set(" \"'")
    return is_word and not token.startswith("vca_")


def _login_command(client: Settings) -> str:
    address = client.api if is_usable(client.api) else SAMPLE
    return f"turbo login --api {address} --login {address}"


def _signatures(client: Settings) -> Iterator[Finding]:
    key = client.environment.get(KEY_OF_SIGNATURES)
    paste = f"{KEY_OF_SIGNATURES}=$(openssl rand -hex {KEY_BYTES})"
    if not client.is_on("signature"):
        if key:
            yield Finding(
                id="key-without-signature",
                where=KEY_OF_SIGNATURES,
                found=f"{KEY_OF_SIGNATURES} is set, and signature is not true.",
                paste='"remoteCache": { "signature": true }',
            )
    elif key is None:
        where = client.value("signature").where
        found = f"signature is true, and {KEY_OF_SIGNATURES} is not set."
        yield Finding(id="signature-without-key", where=where, found=found, paste=paste)
    elif (size := len(key.encode())) < KEY_BYTES:
        found = f"The key has {size} bytes."
        yield Finding(id="weak-signature-key", where=KEY_OF_SIGNATURES, found=found, paste=paste)


def _preflight(client: Settings, artifacts: Artifacts) -> Iterator[Finding]:
    where = client.value("preflight").where
    too_large = artifacts.over(MAX_BODY_BYTES)
    is_needless = len(artifacts.sizes) >= MANY_ARTIFACTS and not too_large
    if client.is_on("preflight"):
        if is_needless:
            count, largest = len(artifacts.sizes), human_size(artifacts.largest)
            found = f"Preflight is on. The largest of {count} artifacts in {artifacts.where} has {largest}."
            paste = '"remoteCache": { "preflight": false }'
            yield Finding(id="preflight-needless", where=where, found=found, paste=paste)
        return
    if is_needless:
        return
    where = client.line("remoteCache") if where not in client.environment else where
    found = "Preflight is off."
    if too_large:
        verb = "is" if too_large == 1 else "are"
        found += f" {too_large} of {len(artifacts.sizes)} artifacts in {artifacts.where} {verb} over 4.5 MB."
    # Signed artifacts work with preflight only if the deployment has the edge.
    id = "signature-without-preflight" if client.is_on("signature") else "preflight-off"
    worst, paste = _worst(artifacts), PREFLIGHT_LINE
    if worst is Level.NOTE:
        paste, largest = "", human_size(artifacts.largest)
        found += (
            f" The largest of {len(artifacts.sizes)} artifacts in {artifacts.where} has {largest}."
        )
    yield Finding(id=id, where=where, found=found, paste=paste, worst=worst)


def _worst(artifacts: Artifacts) -> Level:
    """How bad it can be that nothing over 4.5 MB is stored, by the artifacts that are known."""
    if artifacts.over(MAX_BODY_BYTES):
        return Level.PROBLEM
    return Level.NOTE if artifacts.sizes and artifacts.largest < SMALL_BYTES else Level.WARNING


def _timeouts(client: Settings, artifacts: Artifacts) -> Iterator[Finding]:
    for name, id, speed, what in (
        ("timeout", "short-download-timeout", DOWNLOAD_BYTES_A_SECOND, "downloads"),
        ("uploadTimeout", "short-upload-timeout", UPLOAD_BYTES_A_SECOND, "uploads"),
    ):
        seconds = client.seconds(name)
        # turbo waits without a limit if it is 0.
        if not seconds or artifacts.largest <= seconds * speed:
            continue
        wanted = math.ceil(artifacts.largest / speed / 30) * 30
        size = human_size(artifacts.largest)
        found = f"turbo stops {what} after {seconds} s. The largest artifact in {artifacts.where} has {size}."
        where = client.value(name).where
        paste = f'"remoteCache": {{ "{name}": {wanted} }}'
        yield Finding(id=id, where=where, found=found, paste=paste)


def _version(
    client: Settings, version: Version | None, artifacts: Artifacts, *, was_offered: bool
) -> Iterator[Finding]:
    if version is None:
        found = "The version of turbo is not known."
        yield Finding(id="unknown-turbo", where="package.json", found=found)
        return
    if version.numbers < TESTED[0] or version.numbers[:2] > TESTED[1][:2]:
        found = f"turbo {version.text} is not one of them."
        yield Finding(id="untested-turbo", where=version.where, found=found)
    if version.numbers < DIRECT_UPLOADS_FROM and not (was_offered or is_sidecar(client)):
        yield from old_turbo(client, version, artifacts)


def _summaries(client: Settings) -> Iterator[Finding]:
    where = client.value("runSummary").where
    if not client.is_on("runSummary"):
        where = "TURBO_RUN_SUMMARY" if where == DEFAULT else where
        found = "turbo writes no summaries of runs."
        yield Finding(id="summaries-off", where=where, found=found, paste="TURBO_RUN_SUMMARY=true")


def old_turbo(client: Settings, version: Version, artifacts: Artifacts) -> Iterator[Finding]:
    """Nothing if the artifacts that are known need no direct upload."""
    too_large = artifacts.over(MAX_BODY_BYTES)
    if not too_large and len(artifacts.sizes) >= MANY_ARTIFACTS:
        return
    yield Finding(
        id="old-turbo",
        where=version.where,
        found=f"turbo is {version.text}.",
        paste=f"{_ADD[package_manager(Path(client.root))]} turbo@latest",
        worst=_worst(artifacts),
    )


_ADD = {
    "npm": "npm install --save-dev",
    "pnpm": "pnpm add --save-dev --workspace-root",
    "yarn": "yarn add --dev",
    "bun": "bun add --dev",
}
"""How each package manager adds a development dependency to the root."""
