"""`larder doctor`: the options, the run and the output."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from larder_proxy.settings import SECONDS, Settings

from larder_cli.commands import examples, json_option
from larder_cli.doctor.deployment import Deployment, ask_deployment
from larder_cli.doctor.findings import Finding, Level
from larder_cli.doctor.here import findings_here, shown
from larder_cli.doctor.repository import Artifacts, Version, local_artifacts, turbo_version
from larder_cli.output import Record, human_size, print_json, print_line, printable

_COLOURS = {Level.PROBLEM: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}
_UPLOADS = {
    "edge": "straight to storage, with their signatures",
    "s3": "straight to storage, without signatures",
    "sidecar": "by larder run",
    "function": "through a function, up to 4.5 MB",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """A line of the summary: what turbo or the deployment uses, and where it is set."""

    name: str
    value: str
    where: str = ""


@click.command(
    "doctor",
    epilog=examples(
        "larder doctor",
        "larder doctor ../web --json",
        "larder doctor --api https://cache.example.com",
        "larder doctor --offline",
    ),
)
@click.argument(
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
)
@click.option(
    "--offline", is_flag=True, help="Check only files and variables. Send nothing to the address."
)
@click.option(
    "--api",
    metavar="URL",
    help="The address of your cache, in place of the one that turbo uses. The token is sent there.",
)
@json_option
@click.pass_context
def doctor(ctx: click.Context, folder: Path, offline: bool, api: str | None, as_json: bool) -> None:
    """Find what keeps artifacts out of the cache.

    Run it in a repository that uses turbo, on a laptop or in CI, with the variables that turbo gets. It needs no AWS
    account. It reads turbo.json, .turbo/config.json, the login of turbo, package.json, the lock file and TURBO_*
    variables, asks the deployment what the token may do, and stores nothing there. The token is sent only to Larder,
    at the address of --api, TURBO_API or turbo login, and never printed.

    What keeps the next build from a hit comes first. The exit status is 1 if something loses hits now, 0 also with
    warnings, and 2 if FOLDER is in no repository of turbo.
    """
    client = Settings(str(folder.resolve()), os.environ, api)
    if client.problem:
        # One line, whatever a folder is called.
        raise click.UsageError(printable(client.problem))
    version, artifacts = turbo_version(client), local_artifacts(client)
    deployment = None if offline else ask_deployment(client, version, artifacts)
    was_offered = deployment is not None and deployment.uploads is not None
    found = [*findings_here(client, version, artifacts, was_offered=was_offered)]
    found += deployment.findings if deployment else []
    findings = sorted(found, key=lambda one: one.place)
    facts = _facts(client, version, artifacts, deployment)
    if as_json:
        print_json(_record(client, facts, findings))
    else:
        _show(client, facts, findings)
    if any(finding.level is Level.PROBLEM for finding in findings):
        ctx.exit(1)


def _facts(
    client: Settings, version: Version | None, artifacts: Artifacts, deployment: Deployment | None
) -> list[_Fact]:
    address, team = client.text("apiUrl"), client.team
    facts = [
        _Fact(name="turbo", value=version.text, where=version.where)
        if version
        else _Fact(name="turbo", value="unknown"),
        _Fact(
            name="address",
            value=shown(address) if address else "none",
            where=client.value("apiUrl").where,
        ),
        _Fact(
            name="team",
            value=", ".join(team.values()) or "none",
            where=client.value("teamId" if "teamId" in team else "teamSlug").where,
        ),
        _Fact(
            name="token",
            value="set" if client.text("token") else "none",
            where=client.value("token").where,
        ),
        *(
            _Fact(name=name, value=_on(client.is_on(name)), where=client.value(name).where)
            for name in ("preflight", "signature")
        ),
        *(
            _Fact(name=name, value=f"{client.seconds(name)} s", where=client.value(name).where)
            for name in SECONDS
        ),
    ]
    if artifacts.sizes:
        largest = f"{human_size(artifacts.largest)}, of {len(artifacts.sizes)}"
        facts.append(_Fact(name="largest artifact", value=largest, where=artifacts.where))
    if deployment is None or not deployment.is_larder:
        return facts
    asked = (
        ("caching", deployment.status),
        ("large uploads", _UPLOADS.get(deployment.uploads or "")),
        ("scope", deployment.scope),
    )
    facts += [
        _Fact(name=name, value=value, where=deployment.address) for name, value in asked if value
    ]
    return facts


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"


def _record(client: Settings, facts: Sequence[_Fact], findings: Sequence[Finding]) -> Record:
    counted = Counter(finding.level for finding in findings)
    return {
        "root": client.root,
        "settings": [
            {"name": fact.name, "value": fact.value, "where": fact.where} for fact in facts
        ],
        "problems": counted[Level.PROBLEM],
        "warnings": counted[Level.WARNING],
        "findings": [
            {
                "id": finding.id,
                "level": finding.level,
                "where": finding.where,
                "found": finding.found,
                "rule": finding.rule,
                "paste": finding.paste,
            }
            for finding in findings
        ],
    }


def _show(client: Settings, facts: Sequence[_Fact], findings: Sequence[Finding]) -> None:
    print_line(client.root)
    print_line()
    width = max(len(fact.name) for fact in facts)
    for one in facts:
        where = f"  ({one.where})" if one.where else ""
        print_line(f"  {one.name:<{width}}  {one.value}{where}")
    for finding in findings:
        print_line()
        mark = click.style(f"{finding.level.upper():>7}", fg=_COLOURS[finding.level])
        click.echo(f"{mark}  ", nl=False)
        print_line(f"{finding.where}: {finding.found}  [{finding.id}]")
        print_line(f"         {finding.rule}")
        if finding.paste:
            print_line(f"         paste: {finding.paste}")
    print_line()
    counted = Counter(one.level for one in findings)
    problems, warnings = counted[Level.PROBLEM], counted[Level.WARNING]
    print_line(f"{_number(problems, 'problem')}, {_number(warnings, 'warning')}")


def _number(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
