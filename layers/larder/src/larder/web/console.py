"""The console: one page for all its views, from the files of `html/console/`.

Like other pages, it is the same for every user, and its script loads the data. Unlike theirs, its address holds no
secret, so a browser keeps it and asks only whether it has changed.

There are two such pages. The one that most users open first has the scripts of the views in `_FIRST_VIEWS`, so that it
is small. A link from it to another view loads the page with all scripts, which shows every view.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from larder import project
from larder.settings import settings
from larder.web.pages import (
    Handler,
    Page,
    Reply,
    assembled,
    common_values,
    logged_reply,
    page_reply,
    truth,
)

_STYLES = ("kit.css", "console/console.css")
_FIRST_VIEWS = frozenset({"", "keys", "members", "settings", "new-team"})
"""The views that the first page shows. The overview has no name."""

_SCRIPTS = (
    "base.js",
    "forms.js",
    # Everything else uses what stands before it.
    "console/vendor.js",
    "console/format.js",
    "console/api.js",
    "console/parts.js",
    "console/names.js",
    "console/chart.js",
    "console/confirm.js",
    "console/start.js",
    "console/storage.js",
    "console/causes.js",
    "console/findings.js",
    "console/overview.js",
    "console/keys.js",
    "console/members.js",
    "console/settings.js",
    "console/new-team.js",
    "console/search.js",
)

_MORE_SCRIPTS = (
    "provider-errors.js",
    "console/artifacts.js",
    "console/removals.js",
    "console/runs.js",
    "console/trend.js",
    "console/why.js",
    "console/run.js",
    "console/compare.js",
    "console/task.js",
    "console/activity.js",
    "console/rules.js",
    "console/key.js",
    "console/protection.js",
    "console/account.js",
)
"""Those of the views that only the other page shows."""

_LAST = "console/app.js"


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page that browsers keep, with its version for `ETag`."""

    page: Page
    version: str


@dataclass(frozen=True, slots=True)
class NotModified:
    """The browser has the page in this version."""

    version: str


def console(path: str) -> KeptPage:
    """The page at this path."""
    options = settings()
    values = {
        **common_values("Console"),
        "docs": project.DOCUMENTATION or "/docs",
        "version": f"{project.NAME} {project.VERSION}",
        "retention_days": str(options.retention_days),
        "run_days": str(options.run_retention_days),
        "evicts": truth(options.over_quota == "evict"),
        "longest_key_name": str(options.maximum_key_name_length),
        "longest_key_life": str(options.maximum_key_expires_in_seconds),
        "key_life": str(options.default_key_expires_in_seconds),
        "keys_choose_expiry": truth(not options.disable_custom_key_expiry),
        "creates_teams": truth(not options.disable_team_creation),
        "changes_email": truth(options.enable_change_email),
        "deletes_user": truth(options.enable_delete_user),
    }
    more = () if _view_of(path) in _FIRST_VIEWS else _MORE_SCRIPTS
    return _assembled((*_SCRIPTS, *more, _LAST), tuple(values.items()))


def _view_of(path: str) -> str:
    """The view that an address shows: `partsOf` of app.js, and a view without a team by its name."""
    place, *names = path.removeprefix("/console").strip("/").split("/")
    if place in ("t", "me"):
        names = names[1:] if place == "t" else names
        return names[0] if names else ""
    return place


def unless_known(kept: KeptPage, known: str) -> KeptPage | NotModified:
    """The page, or that the browser has it. `known` is the header If-None-Match."""
    tags = {tag.strip() for tag in known.split(",")}
    return NotModified(kept.version) if kept.version in tags else kept


def kept_page_handler(show: Callable[[str, str], KeptPage | NotModified]) -> Handler:
    """The function that Lambda calls for a page that browsers keep. `show` gets the path and the known versions."""

    def reply(event: dict[str, Any]) -> Reply:
        shown = show(event["rawPath"], event["headers"].get("if-none-match", ""))
        headers = {
            "Cache-Control": "no-cache",
            "ETag": shown.version,
            "Vary": "Accept-Encoding",
        }
        if isinstance(shown, NotModified):
            return {"statusCode": 304, "headers": headers}
        answer = page_reply(shown.page)
        return {**answer, "headers": {**answer["headers"], **headers}}

    return logged_reply(reply)


@cache
def _assembled(scripts: tuple[str, ...], values: tuple[tuple[str, str], ...]) -> KeptPage:
    page = assembled("console/body.html", {}, _STYLES, scripts, dict(values))
    # Weak, because the compressed page has the same tag.
    return KeptPage(page, f'W/"{sha256(page.html.encode()).hexdigest()[:32]}"')
