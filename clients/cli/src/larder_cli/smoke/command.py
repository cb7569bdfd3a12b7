"""`larder smoke`: the options, the run and the output."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click
from click.core import ParameterSource
from larder_proxy.settings import Settings

from larder import clock, settings
from larder_cli.commands import examples, table_options
from larder_cli.http import Unreachable
from larder_cli.outcomes import Failed, Outcome, show, tried
from larder_cli.output import echo, print_json, print_table
from larder_cli.quantities import size_bytes
from larder_cli.smoke.checks import (
    CHECKS,
    ESSENTIAL,
    Site,
    account_runs_enough_functions,
    clean_up,
)
from larder_cli.smoke.log_lines import requests_are_logged
from larder_cli.smoke.times import TIMES, Times, measure
from larder_cli.target import Target, enter, stack_output


@click.command(
    "smoke",
    epilog=examples(
        "larder smoke --url https://cache.example.com --key ... --team acme",
        "larder --stack larder-prod smoke --key ...",
        "larder --local .larder smoke",
    ),
)
@click.option(
    "--url",
    metavar="URL",
    envvar="TURBO_API",
    show_envvar=True,
    help="The URL of the API. By default, that of the stack or the local cloud.",
)
@click.option(
    "--key",
    metavar="KEY",
    envvar="TURBO_TOKEN",
    show_envvar=True,
    help=(
        "An API key that can read and write. By default, that of the local cloud. Prefer the "
        "variable, because other users of the machine can see the command line."
    ),
)
@click.option(
    "--team",
    metavar="TEAM",
    envvar="TURBO_TEAM",
    show_envvar=True,
    help="The slug or id of the team, for a key that is not bound to one.",
)
@click.option(
    "--large",
    "large_bytes",
    metavar="SIZE",
    type=size_bytes,
    default="50MB",
    help=(
        "The size of the upload that goes straight to S3, by default 50MB. Use less on a slow "
        "connection."
    ),
)
@table_options
@click.pass_context
def smoke(
    ctx: click.Context,
    url: str | None,
    key: str | None,
    team: str | None,
    large_bytes: int,
    as_json: bool,
) -> None:
    """Check that a live deployment works for clients.

    Takes half a minute. Stores seven artifacts with new hashes, and deletes them at the end. If the key cannot delete
    artifacts, it replaces each with one byte. With --stack it also looks up the requests in the log, and how
    many functions the account runs at once. Prints what to do about each failed check and, if all pass, how long
    each kind of request takes from here.
    """
    target = ctx.find_object(Target) or Target()
    site = _site(ctx, url, key, team, large_bytes)
    if not as_json:
        echo(site.url)
    outcomes: list[Outcome] = []
    times: list[Times] = []
    for outcome in _run(site, target.stack, times):
        outcomes.append(outcome)
        if not as_json:
            show(outcome, site.url)
    failed = sum(one.outcome != "passed" for one in outcomes)
    if as_json:
        checks, requests = ([asdict(one) for one in found] for found in (outcomes, times))
        print_json({"url": site.url, "failed": failed, "checks": checks, "requests": requests})
    else:
        seconds = sum(one.seconds for one in outcomes)
        passed = len(outcomes) - failed
        echo(f"{passed} of {len(outcomes)} checks passed in {seconds:.0f} s")
        if times:
            echo(
                "",
                f"Milliseconds from here: to connect, the first request, the median of {TIMES} more",
            )
            shown = [
                {"request": time.request}
                | {
                    name: f"{getattr(time, f'{name}_ms'):.0f}"
                    for name in ("connect", "first", "median")
                }
                for time in times
            ]
            print_table(shown, ("request", "connect", "first", "median"), empty="", as_json=False)
    if failed:
        ctx.exit(1)


def _site(
    ctx: click.Context, url: str | None, key: str | None, team: str | None, large_bytes: int
) -> Site:
    """Choose the site to test. Values from --stack and --local override the environment variables.

    The variables may belong to another deployment.
    """
    target = ctx.find_object(Target) or Target()
    typed = {
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if target.stack is not None:
        enter(target)
        url = url if "url" in typed else stack_output(target.stack, "ApiUrl")
    elif target.local is not None:
        lines = _turbo_env(target.local)
        url = url if "url" in typed else lines.get("TURBO_API")
        key = key if "key" in typed else lines.get("TURBO_TOKEN")
        team = team if "team" in typed else lines.get("TURBO_TEAM")
    else:
        # As turbo, but not from a folder: its files must not choose who gets the key.
        known = Settings(None, os.environ)
        url, key = url or known.api, key or known.text("token")
        team = team or next(iter(known.team.values()), None)
    if url is None:
        raise click.UsageError("no URL is set: give it with --url or TURBO_API")
    if key is None:
        raise click.UsageError("no key is set: give it with TURBO_TOKEN or --key")
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise click.UsageError(f"--url: {url} is not a URL such as https://cache.example.com")
    return Site(url=url.rstrip("/"), key=key, team=team or None, large_bytes=large_bytes)


def _turbo_env(data: Path) -> dict[str, str]:
    try:
        lines = (data / "turbo.env").read_text().splitlines()
    except OSError as error:
        raise click.ClickException(
            f"no local cloud has been started on {data}: start it with `make serve`"
        ) from error
    return dict(line.split("=", 1) for line in lines if line.startswith("TURBO_"))


def _run(site: Site, stack: str | None, times: list[Times]) -> Iterator[Outcome]:
    """The checks in order. If all pass, `times` gets how long requests take."""
    began, all_passed = clock.now(), True
    for name, check in CHECKS:
        outcome = tried(name, partial(check, site))
        all_passed &= outcome.outcome == "passed"
        yield outcome
        if name in ESSENTIAL and outcome.outcome == "failed":
            return
    if stack is not None:
        name = "the account runs enough functions at once"
        yield tried(name, partial(account_runs_enough_functions, settings.region()))
        yield tried("the requests are logged", partial(requests_are_logged, site, stack, began))
    if all_passed:
        # The checks say what is wrong. This only measures.
        with suppress(Unreachable):
            times += measure(site)
    yield tried("the artifacts are deleted", partial(_cleaned_up, site))


def _cleaned_up(site: Site) -> str:
    deleted, left = clean_up(site)
    if left:
        raise Failed(
            f"{left} artifacts stay until their retention passes",
            "nothing: they are complete and do no harm",
        )
    replaced = len(site.stored) - deleted
    return f"{deleted} artifacts deleted, {replaced} replaced with one byte each"
