"""Two builds of a small monorepo with turbo: the second one is restored from a deployed stack."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e import turbo
from tests.e2e.monorepo import Package, generate, output_digests, wipe_outputs_and_local_cache
from tests.emulator.process import ROOT


def check_first_hit(url: str, key: str, folder: Path) -> None:
    """Build twice in the new folder `monorepo`, for the team `acme`. One output needs a presigned URL."""
    remote = {"TURBO_API": url, "TURBO_TOKEN": key, "TURBO_TEAM": "acme"}
    command = turbo.installed(turbo.NEWEST, ROOT / ".tools" / "turbo")
    client = turbo.Client(command, turbo.NEWEST, remote, folder, preflight=True)
    monorepo = folder / "monorepo"
    generate(monorepo, [Package("lib", 2_000, ()), Package("app", 6_000_000, ("lib",))], home=folder)
    (monorepo / "turbo.json").write_text(json.dumps(turbo.turbo_json(turbo.NEWEST)))
    turbo.build(client, monorepo)
    before = output_digests(monorepo)
    wipe_outputs_and_local_cache(monorepo)
    again = turbo.build(client, monorepo)
    assert again.full_turbo, again.text
    assert again.remote_hits == {"lib", "app"}
    assert output_digests(monorepo) == before
