"""`make screenshots`: the console of a seeded local cloud, as pictures in docs/console/."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from . import browser, cloud, console, seed
from .console import Person

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "console"
TEAM = "acme-web"
DESKTOP, PHONE = 1280, 390
PICTURES = (
    ("overview", "", "Overview", DESKTOP, False),
    ("overview-dark", "", "Overview", DESKTOP, True),
    ("overview-phone", "", "Overview", PHONE, False),
    ("runs", "/runs", "Runs", DESKTOP, False),
    ("runs-phone-dark", "/runs", "Runs", PHONE, True),
    ("protection", "/protection", "Protection", DESKTOP, False),
    ("keys-dark", "/keys", "Keys", DESKTOP, True),
    ("artifacts", "/artifacts", "Artifacts", DESKTOP, False),
    ("members-phone", "/members", "Members", PHONE, False),
)
"""Name, path of the view, its heading, width, and whether it is dark."""

MOST_BYTES = 1_500_000


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
            FOLDER.mkdir(exist_ok=True)
            for name, path, heading, width, dark in PICTURES:
                page.look(width=width, dark=dark)
                page.open(f"{server.url}/console/t/{TEAM}{path}")
                page.wait_for_heading(heading)
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
