"""A believable team in a local cloud: members, keys, rules, a history of builds, artifacts and reported runs.

What builds did in the past is written to the tables, because the endpoints count what happens now.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from larder.artifacts.repository.table import partition_of

from .cloud import LocalCloud

PACKAGES = ("web", "docs", "admin", "checkout", "@acme/ui", "@acme/auth", "@acme/api-client")
TASKS = {"build": 48_000, "test": 75_000, "lint": 9_000, "typecheck": 21_000}
VENDORS = {"GITHUB_ACTIONS": 0.6, "GITLAB": 0.08, None: 0.32}
RUNS = 60


def usage(
    server: LocalCloud, owner: str, days: int, *, keys: tuple[tuple[str, str | None], ...] = (), seed: int = 1
) -> None:
    """The figures of `days` days up to today. `keys` are ids with their users. The first one reports most."""
    chance = random.Random(seed)
    with server.table("LARDER_USAGE_TABLE").batch_writer() as batch:
        for ago in range(days):
            day = datetime.now(UTC).date() - timedelta(days=ago)
            works = 1.0 if day.weekday() < 5 else 0.15
            tasks = int(chance.uniform(700, 1_100) * works * (1.4 - ago / max(days, 2)))
            item: dict[str, Any] = {"owner": owner, "day": f"day#{day}#0", "ci_vendors": set()}
            for vendor, share in VENDORS.items():
                figures = _figures(round(tasks * share), chance, quality=0.9 - 0.25 * ago / days)
                for name, value in figures.items():
                    item[name] = item.get(name, 0) + value
                    if vendor is not None and value:
                        item[f"ci.{vendor}.{name}"] = value
                        item["ci_vendors"].add(vendor)
            batch.put_item(Item=item)
            uploads = item["remote_misses"]
            archived = {"uploads": uploads, "uploaded_bytes": uploads * 1_400_000} if ago > 1 else {}
            stored = round(2_000 * (1 - ago / 2 / days) * chance.uniform(0.93, 1.05))
            archived |= {"stored_bytes": stored * 3_000_000, "stored_artifacts": stored}
            if ago > 0:
                batch.put_item(Item={"owner": owner, "day": day.isoformat(), **archived})
            for number, (id, user) in enumerate(keys):
                figures = _figures(tasks // 2 ** (number + 1), chance, quality=0.9 - 0.05 * number)
                part = {"owner": owner, "day": f"by#{day}#{id}#0", **figures}
                batch.put_item(Item=part if user is None else {**part, "user_id": user})


def _figures(tasks: int, chance: random.Random, *, quality: float) -> dict[str, int]:
    hits = round(tasks * quality * chance.uniform(0.92, 1.04))
    local = round(hits * chance.uniform(0.2, 0.35))
    misses = max(0, tasks - hits)
    return {
        "events": 2 * tasks - local,
        "hits": hits,
        "misses": misses + tasks - local,
        "local_hits": local,
        "local_misses": tasks - local,
        "remote_hits": hits - local,
        "remote_misses": misses,
        "time_saved_ms": hits * chance.randint(25_000, 40_000),
    }


def job(server: LocalCloud, owner: str, rule: str, token: str, ref: str) -> None:
    """The entry of the audit that a CI job got a token with this id."""
    now = datetime.now(UTC).timestamp()
    details = {"team": owner, "repository": "acme/web", "ref": ref, "url": f"https://ci.acme.example/{ref}"}
    server.table("LARDER_AUDIT_TABLE").put_item(
        Item={
            "owner": f"token#{token}",
            "id": "0" * 28,
            "at": int(now * 1000),
            "action": "token_issued",
            "subject": rule,
            "artifacts": 0,
            "size_bytes": 0,
            "details": details,
            "expires_at": int(now) + 86_400,
        }
    )


def artifacts(
    server: LocalCloud, owner: str, count: int, writers: list[tuple[str, str | None]], hashes: Sequence[str] = ()
) -> None:
    """Artifacts in the index, with the owner's totals. They have no objects: nothing reads them. `writers` are the ids
    of keys and their users. `hashes` are those of the newest artifacts.
    """
    chance = random.Random(2)
    table = server.table("LARDER_ARTIFACTS_TABLE")
    stored = 0
    with table.batch_writer() as batch:
        for number in range(count):
            name = hashlib.sha256(f"{owner}{number}".encode()).hexdigest()
            hours = (number + 1) / 20 if number < len(hashes) else 1 + chance.random() ** 2 * 600
            at = datetime.now(UTC) - timedelta(hours=hours)
            created_at = int(at.timestamp() * 1000)
            size = int(math.exp(chance.gauss(13, 2)))
            stored += size
            writer, user = chance.choice(writers)
            upload_id = f"{created_at:012x}{name[:16]}"
            hash = hashes[number] if number < len(hashes) else name[16:32]
            item = {
                "owner": partition_of(owner, hash),
                "hash": hash,
                "upload_id": upload_id,
                "size_bytes": size,
                "sha256": name,
                "created_at": created_at,
                "uploaded_at": created_at,
                "writer": writer,
                "user_id": user,
                "duration_ms": chance.randint(2_000, 90_000),
                "ci": "GITHUB_ACTIONS" if user is None or number % 3 else None,
                "sha": name[:40],
                "sweep_shard": str(number % 8),
                "sweep_at": int((at + timedelta(days=30)).timestamp()),
            }
            batch.put_item(Item={key: value for key, value in item.items() if value is not None})
    table.update_item(
        Key={"owner": owner, "hash": "#totals"},
        # They are due for the daily check.
        UpdateExpression="ADD size_bytes :bytes, artifacts :count SET sweep_shard = :shard, sweep_at = :zero",
        ExpressionAttributeValues={":bytes": stored, ":count": count, ":shard": "0", ":zero": 0},
    )


COMMITS = (
    {"branch": "main", "subject": "Cache the price list", "author": "Ada Lovelace"},
    {"branch": "main", "subject": "Update dependencies", "author": "Grace Hopper"},
    {"branch": "checkout-v2", "subject": "Show taxes in the cart", "author": "Alan Turing", "pullRequest": 118},
    {"branch": "fix-login", "subject": "Keep the address at sign-in", "author": "Grace Hopper", "pullRequest": 121},
)


def summaries(count: int, *, hours: float = 150) -> Iterator[dict[str, Any]]:
    """Files of `turbo run --summarize` of the last hours, the oldest first.

    Packages get another hash when they change: `web` often, and after the first quarter `docs#build` in every run, also
    at the same commit. Now and then, `checkout#test` is built again with the hash that it had before.
    """
    chance = random.Random(3)
    now = datetime.now(UTC)
    versions = dict.fromkeys(PACKAGES, 0)
    for number in range(count):
        started = int((now - timedelta(hours=hours * (count - 1 - number) / count)).timestamp() * 1000)
        # Two jobs build each commit.
        commit = number // 2
        changed = set()
        if number % 2 == 0:
            changed = {name for name in PACKAGES if chance.random() < (0.6 if name == "web" else 0.2)}
        for package in changed:
            versions[package] += 1
        tasks, ended = [], started
        for package in PACKAGES:
            for name, usual in TASKS.items():
                drifts = (package, name) == ("docs", "build") and number >= count // 4
                again = (package, name) == ("checkout", "test") and chance.random() < 0.3
                version = number if drifts else versions[package]
                is_hit = not (package in changed or drifts or again)
                took = int(usual * chance.uniform(0.6, 1.6) * (2 if package == "web" else 1))
                ended = max(ended, started + (900 if is_hit else took))
                tasks.append(
                    {
                        "package": package,
                        "task": name,
                        "hash": hashlib.sha256(f"{package}{name}{version}".encode()).hexdigest()[:16],
                        "cache": {"status": "HIT", "source": "REMOTE", "timeSaved": took}
                        if is_hit
                        else {"status": "MISS"},
                        "execution": {
                            "startTime": started,
                            "endTime": started + (900 if is_hit else took),
                            "exitCode": int(name == "test" and chance.random() < 0.01),
                        },
                    }
                )
        yield {
            "id": f"run{number:06}",
            "turboVersion": "2.11.11",
            "execution": {"startTime": started, "endTime": ended, "exitCode": 0},
            "scm": {**COMMITS[commit % len(COMMITS)], "sha": hashlib.sha1(str(commit).encode()).hexdigest()},
            "tasks": tasks,
        }


def explanations(server: LocalCloud, owner: str, summaries: list[dict[str, Any]]) -> None:
    """Store why the tasks of each run missed: compared with the run before, as Larder does for a report with inputs."""
    table = server.table("LARDER_USAGE_TABLE")
    for base, summary in itertools.pairwise(summaries):
        place = f"{summary['execution']['startTime']:012x}#{summary['id']}"
        explanation = _explanation(base, summary)
        causes = [[one["kind"], one["subject"], None, one["buildMs"]] for one in explanation["causes"]]
        table.update_item(
            Key={"owner": owner, "day": f"point#{place}"},
            UpdateExpression="SET causes = :causes",
            ExpressionAttributeValues={":causes": [one for one in causes if one[0] != "file"]},
        )
        text = json.dumps(explanation)
        table.update_item(
            Key={"owner": owner, "day": f"run#{place}"},
            UpdateExpression="SET explanation = :packed",
            ExpressionAttributeValues={":packed": base64.b64encode(zlib.compress(text.encode())).decode()},
        )


def _explanation(base: dict[str, Any], summary: dict[str, Any]) -> dict[str, Any]:
    before = {(one["package"], one["task"]): one["hash"] for one in base["tasks"]}
    causes: dict[str, dict[str, Any]] = {}
    statuses = {(one["package"], one["task"]): one["cache"]["status"] for one in summary["tasks"]}
    again = []
    for task in summary["tasks"]:
        package, name = task["package"], task["task"]
        took = task["execution"]["endTime"] - task["execution"]["startTime"]
        id = f"{package}#{name}"
        # A changed package misses with all of its tasks.
        drifts = id == "docs#build" and statuses["docs", "lint"] == "HIT"
        if task["cache"]["status"] == "HIT":
            continue
        if before[package, name] == task["hash"]:
            again.append({"task": id, "hash": task["hash"], "reason": "evicted", "certain": True})
            continue
        path = f"packages/{package}/src/index.ts"
        kind, subject = ("env", "NEXT_PUBLIC_BUILD_TIME") if drifts else ("file", path)
        cause = causes.setdefault(
            subject,
            {
                "kind": kind,
                "subject": subject,
                "task": None,
                "how": "changed",
                "more": 0,
                "values": [],
                "hints": [{"hint": "volatile_name", "values": []}] if drifts else [],
                "commit": None if drifts else summary["scm"]["sha"][:8],
                "class": "setup" if drifts else "code",
                "direct": [],
                "directCount": 0,
                "below": 0,
                "alone": 0,
                "buildMs": 0,
                "advice": "volatile-variable" if drifts else "source-file",
            },
        )
        cause["direct"].append(id)
        cause["directCount"] += 1
        cause["alone"] += 1
        cause["buildMs"] += took
    compared = [
        {"id": one["id"], "startedAt": one["execution"]["startTime"], "turboVersion": one["turboVersion"]}
        | {name: one["scm"][name] for name in ("branch", "sha")}
        for one in (base, summary)
    ]
    at = summary["execution"]["startTime"] - 3_600_000
    return {
        "baseline": {**compared[0], "chosen": "ancestor"},
        "run": compared[1],
        "tasks": len(summary["tasks"]),
        "changed": sum(one["directCount"] for one in causes.values()),
        "restored": 0,
        "complete": True,
        "causes": sorted(causes.values(), key=lambda one: -one["buildMs"]),
        "sameHash": [{**one, "at": at, "evidence": ["evicted_before"]} for one in again],
        "sameHashCount": len(again),
        "new": [],
        "newCount": 0,
        "gone": [],
        "goneCount": 0,
        "notes": [],
    }


def hashes_of(summaries: Iterable[dict[str, Any]]) -> list[str]:
    """The hashes of the tasks, the newest first."""
    named = [task["hash"] for summary in summaries for task in summary["tasks"]]
    return list(dict.fromkeys(reversed(named)))


def runs(server: LocalCloud, token: str, slug: str, summaries: Iterable[dict[str, Any]]) -> None:
    headers = {"authorization": f"Bearer {token}", "x-artifact-client-ci": "GITHUB_ACTIONS"}
    with httpx.Client(
        base_url=server.url, headers=headers, params={"slug": slug}, trust_env=False, timeout=60
    ) as client:
        for summary in summaries:
            client.post("/v1/runs", json=summary).raise_for_status()


def team(server: LocalCloud, owner_email: str, slug: str) -> str:
    """A team with the data of the screenshots. Returns its id."""
    made = server.larder("teams", "create", "--name", "Acme Web", "--slug", slug, "--owner", owner_email)
    people = {"Grace Hopper": "ADMIN", "Alan Turing": "DEVELOPER", "Edsger Dijkstra": "DEVELOPER"}
    people["Barbara Liskov"] = "VIEWER"
    for name, role in people.items():
        email = f"{name.split()[0].lower()}@acme.example"
        server.larder("users", "create", "--email", email, "--name", name)
        server.larder("teams", "add-member", slug, email, "--role", role)
    server.larder("teams", "invite", slug, "margaret@acme.example", "--role", "DEVELOPER")
    # So that what is stored below is not hidden.
    server.larder("teams", "protect", slug, "--keep-stored")
    web = server.larder("trust", "add", slug, "--github", "acme/web")
    server.larder("trust", "add", slug, "--gitlab", "acme/mobile", "--others", "read")
    keys = [
        server.larder("keys", "create", "--user", owner_email, "--team", slug, "--name", name, *more)
        for name, *more in (("github-actions", "--trusted"), ("pull-requests",), ("nightly", "--expires-in", "10d"))
    ]
    owner = str(made["id"])
    writers: list[tuple[str, str | None]] = [(key["id"], key["user_id"]) for key in keys]
    usage(server, owner, 365, keys=((web["id"], None), *writers))
    tokens = [hashlib.sha256(str(number).encode()).hexdigest()[:32] for number in range(4)]
    for token in tokens:
        job(server, owner, web["id"], token, "refs/heads/main")
    writers += [(token, web["id"]) for token in tokens]
    reported = list(summaries(RUNS, hours=200))
    artifacts(server, owner, 2_000, writers, hashes_of(reported))
    runs(server, keys[0]["key"], slug, reported)
    explanations(server, owner, reported)
    server.larder("sweep")
    return owner
