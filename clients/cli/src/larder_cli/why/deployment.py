"""What a deployment says about misses.

It gets the token over https or on this computer, and at an address that only the repository names not at all.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from shlex import quote as quote_argument
from typing import Any, cast
from urllib.parse import quote, urlencode

import click
from larder_proxy.settings import Settings

from larder.why.records import ComparisonJson
from larder_cli.doctor.findings import RULES
from larder_cli.doctor.here import SAMPLE, is_sendable, is_usable, shown
from larder_cli.http import Answer, Unreachable, about_silence, exchange

_PAGE_OF_RUNS = 100
_MAX_PAGES = 10

_TO_REPORT = "A build reports itself: larder run -- npx turbo run build"
_MISSING = {
    "inputs_off": (
        "the team does not explain misses: an owner or admin turns it on in the settings of the console, or the "
        "operator with `larder teams run-inputs {team} names`"
    ),
    "no_baseline": f"no baseline: no run has been reported yet, of CI or of you here. {_TO_REPORT}",
    "no_time": "the deployment found no baseline within five seconds: name a run with --against ID",
}
_NO_SUCH_BASELINE = (
    "no baseline: no reported run that can be compared is --against {}. Name another one, or report a run. "
    + _TO_REPORT
)
_MISSING_OF_RUN = {
    "cache_unused": (
        "run {id} did not use the cache, so nothing of it is a miss: turbo had no team, or its remote cache was off. "
        "`larder doctor` shows what keeps turbo from using it"
    ),
    "no_inputs": (
        "run {id} has no inputs: its report had none, or it is of a scope that you do not read. "
        + _TO_REPORT
    ),
    "no_baseline": (
        "there was no run to compare run {id} with when it was reported: name one, such as --against main"
    ),
}
_ADVICE = {
    "unauthorized": RULES["token-refused"].text,
    "not_a_team_member": RULES["other-team"].text,
    "missing_permission": "The token needs artifacts: read.",
    "too_many_requests": "A credential gets 60 comparisons an hour. Compare two files meanwhile.",
    "run_too_large": "Name fewer tasks, or compare two files.",
}


@dataclass(frozen=True, slots=True)
class Deployment:
    address: str
    token: str = field(repr=False)
    team: Mapping[str, str]

    def causes(self, report: Mapping[str, Any], against: str | None) -> ComparisonJson:
        """Why the tasks of a report miss. Raises click.ClickException."""
        query = {} if against is None else {"against": against}
        body = gzip.compress(json.dumps(report, separators=(",", ":")).encode())
        reply = self._ask("POST", "/v1/causes", query, body)
        if reply.get("causes") is None:
            raise click.ClickException(self._about_missing(str(reply.get("missing")), against))
        return cast(ComparisonJson, reply["causes"])

    def run(self, id: str, against: str | None) -> ComparisonJson:
        """Why the tasks of a reported run missed, as stored, or compared again with `against`.

        `id` can be its beginning. Raises click.ClickException.
        """
        found = next((run for run in self._runs() if str(run["id"]).startswith(id)), None)
        if found is None:
            raise click.ClickException(
                f"no run of the newest {_PAGE_OF_RUNS * _MAX_PAGES:,} of 30 days has the id {id}: the console lists "
                "the runs of the team"
            )
        path = f"/v1/runs/{quote(str(found['id']), safe='')}"
        query = {} if against is None else {"against": against}
        reply = self._ask("GET", path, {"startedAt": str(found["startedAt"]), **query})
        if reply.get("causes") is None:
            missing = str(reply.get("missing"))
            if against is None and missing in _MISSING_OF_RUN:
                raise click.ClickException(_MISSING_OF_RUN[missing].format(id=found["id"]))
            raise click.ClickException(self._about_missing(missing, against))
        return cast(ComparisonJson, reply["causes"])

    def history(self, hash: str) -> Mapping[str, Any]:
        """What became of a hash in the reported runs. Raises click.ClickException."""
        return self._ask("GET", "/v1/tasks/history", {"hashes": hash})

    def _runs(self) -> Iterator[Mapping[str, Any]]:
        """The newest first."""
        query = {"limit": str(_PAGE_OF_RUNS)}
        for _ in range(_MAX_PAGES):
            page = self._ask("GET", "/v1/runs", query)
            yield from page["runs"]
            if page["pagination"]["next"] is None:
                return
            query["before"] = page["pagination"]["next"]

    def _ask(
        self, method: str, path: str, query: Mapping[str, str], body: bytes = b""
    ) -> dict[str, Any]:
        headers = {"User-Agent": "larder-why", "Authorization": f"Bearer {self.token}"}
        if body:
            headers |= {"Content-Type": "application/octet-stream"}
        url = f"{self.address}{path}?{urlencode({**self.team, **query})}"
        try:
            answer = exchange(method, url, headers=headers, body=body)
        except Unreachable as error:
            raise click.ClickException(
                f"no response of {self.address}: {error}. Next: {about_silence(error)}. To compare without it, name a "
                "file: --against FILE"
            ) from error
        if answer.status != 200 or not isinstance(answer.json, dict):
            raise click.ClickException(self._about_refusal(f"{method} {path}", answer))
        return answer.json

    def _about_refusal(self, request: str, answer: Answer) -> str:
        if answer.code is None and answer.status in (200, 404, 405):
            return (
                f"{self.address} does not know {request}: it is older than this command, or not Larder. Ask its "
                "operator for an upgrade, or compare with a file: --against FILE"
            )
        error = answer.json if isinstance(answer.json, dict) else {}
        message = str(error.get("message") or "").replace(self.token, "...")
        said = f"{answer.status} {answer.code or ''}".strip() + (f": {message}" if message else "")
        seconds = answer.headers.get("retry-after", "")
        again = f"Try again in {seconds} s." if seconds else ""
        advice = _ADVICE.get(answer.code or "", "Try again." if answer.status >= 500 else "")
        return " ".join(one for one in (f"{self.address} answers {said}", advice, again) if one)

    def _about_missing(self, missing: str, against: str | None) -> str:
        if missing == "no_baseline" and against is not None:
            return _NO_SUCH_BASELINE.format(against)
        text = _MISSING.get(missing, f"the deployment did not compare the run: {missing}")
        return text.format(team=self.team.get("slug") or self.team.get("teamId"))


def deployment_of(client: Settings) -> Deployment:
    """The deployment that turbo uses. Raises click.ClickException, which names the setting that is missing."""
    address, token = client.api, client.text("token")
    if address is None or not is_usable(address):
        found = f"{shown(address)} is no https address" if address else "no address is set"
        raise click.ClickException(
            f"{found}: set TURBO_API to that of your cache, such as {SAMPLE}, or compare with a file: --against FILE"
        )
    if token is None or not is_sendable(token):
        raise click.ClickException(
            f"no token of Larder is set: run `turbo login --api {address} --login {address}`, or set TURBO_TOKEN"
        )
    if not client.gives_token:
        raise click.ClickException(
            f"only the repository names {address}, so the token was not sent there. If it is your cache: "
            f"larder accept {quote_argument(address)}"
        )
    if not client.team:
        raise click.ClickException("no team is set: set TURBO_TEAM to the slug of your team")
    return Deployment(address, token, client.team)
