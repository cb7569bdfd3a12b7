"""The text on the screen when the local cloud is ready."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from larder.settings import listed
from larder_cli.doctor.findings import PREFLIGHT_LINE
from local.environment import OPERATOR_EMAIL
from local.turbo_env import TurboEnv

_SIGN_UP = {
    "open": "Everyone who can reach this address can sign up",
    "invited": "Only people with an invitation can sign up",
    "closed": "No one can sign up",
}


def banner(
    api_url: str,
    folder: Path,
    turbo: TurboEnv | None,
    *,
    first_start: bool,
    operator_emails: str,
    sign_up_policy: str,
    console_url: str | None = None,
    outbox_url: str | None = None,
    edge_url: str = "",
    company_url: str | None = None,
    remarks: Sequence[str] = (),
) -> str:
    made = "Created" if first_start else "Kept"
    user = "the operator" if OPERATOR_EMAIL in listed(operator_emails.lower()) else "the user"
    short_env = _short(folder / "turbo.env")
    lines = ["", f"  Larder's local cloud is running at {api_url}", ""]
    if console_url:
        lines += ["  Open the console. This link signs you in, once:", "", f"    {console_url}", ""]
    if turbo:
        lines += ["  Paste these lines where you run turbo:", ""]
        lines += [f"    export {line}" for line in turbo.lines()]
        lines += [
            "",
            "  Then, twice: turbo run build --cache=remote:rw",
            "  Artifacts over about 4.5 MB need this line in turbo.json, as in the cloud:",
            "",
            f"    {PREFLIGHT_LINE}",
            "",
            "  Or sign in with turbo to your own account:",
            "",
            f"    turbo login --api {api_url} --login {api_url}",
            "",
            f"  {made}: {user} {OPERATOR_EMAIL}, the team {turbo.team}, and a key (also in {short_env})",
        ]
    if turbo:
        lines += [f"  {_SIGN_UP[sign_up_policy]} (LARDER_SIGN_UP_POLICY={sign_up_policy})"]
    if outbox_url:
        lines += [f"  Sent mail is shown at {outbox_url}"]
    if edge_url:
        lines += [f"  Artifacts of any size, signed or not, pass through the edge at {edge_url}"]
    if company_url:
        lines += [
            f"  Company sign-in has an example: Example Company, at {company_url} (PROVIDER=0 leaves it out)"
        ]
    lines += [f"  The documentation of this version is at {api_url}/docs"]
    lines += [f"  {remark}" for remark in remarks]
    lines += [f"  Data: {_short(folder)}   logs: {_short(folder / 'logs')}   stop: Ctrl-C", ""]
    return "\n".join(lines)


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
