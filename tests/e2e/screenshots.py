"""`make screenshots`: the console of a seeded local cloud, as pictures in docs/console/."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import httpx

from . import browser, cloud, console, seed
from .console import Person

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "console"
TEAM = "acme-web"
DESKTOP, PHONE = 1280, 390
RUN = "/run"
"""The newest run that was compared and has more than one cause."""

PICTURES = (
    ("overview", "", "Overview", DESKTOP, False),
    ("overview-dark", "", "Overview", DESKTOP, True),
    ("overview-phone", "", "Overview", PHONE, False),
    ("runs", "/runs", "Runs", DESKTOP, False),
    ("run", RUN, "Run", DESKTOP, False),
    ("run-phone-dark", RUN, "Run", PHONE, True),
    ("task-dark", "/task?package=web&task=build", "web#build", DESKTOP, True),
    ("protection", "/protection", "Protection", DESKTOP, False),
    ("keys-dark", "/keys", "Keys", DESKTOP, True),
    ("artifacts", "/artifacts", "Artifacts", DESKTOP, False),
    ("members-phone", "/members", "Members", PHONE, False),
)
"""Name, path of the view, its heading, width, and whether it is dark."""

MOST_BYTES = 1_500_000


def run_view(api: httpx.Client) -> tuple[str, str]:
    """The path of RUN, and its heading."""
    runs = api.get("/v1/runs", params={"slug": TEAM}).json()["runs"]
    shown = next(run for run in runs if len(run["topCauses"]) > 1)
    return f"{RUN}?id={shown['id']}&startedAt={shown['startedAt']}", shown["title"]


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (
            cloud.running(ROOT, folder / "data", LARDER_HTTP_RATE_LIMIT_ENABLED="false") as server,
            browser.opened(folder / "profile") as page,
        ):
            ada = Person("Ada Lovelace", "ada@acme.example")
            console.sign_up(page, server, ada)
            seed.team(server, ada.email, TEAM)
            with console.api(page, server) as api:
                run = run_view(api)
            FOLDER.mkdir(exist_ok=True)
            for name, path, heading, width, dark in PICTURES:
                page.look(width=width, dark=dark)
                view, title = run if path == RUN else (path, heading)
                page.open(f"{server.url}/console/t/{TEAM}{view}")
                page.wait_for_heading(title)
                page.wait_until("return document.querySelector('.loading') === null")
                if heading == "Overview":
                    page.wait_for_text("than in the 30 days before")
                (FOLDER / f"{name}.png").write_bytes(page.picture())
    sizes = {path.name: path.stat().st_size for path in sorted(FOLDER.glob("*.png"))}
    for name, size in sizes.items():
        print(f"{size / 1000:7.0f} kB  docs/console/{name}")
    total = sum(sizes.values())
    print(f"{total / 1000:7.0f} kB")
    return int(total > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
