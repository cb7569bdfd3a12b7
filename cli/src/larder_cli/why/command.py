"""`larder why`: the options and the run."""

import os
from pathlib import Path

import click

from larder.misses.causes import Class
from larder.misses.comparison import compare
from larder.misses.records import record
from larder.misses.summaries import Summary
from larder_cli.commands import examples, json_option
from larder_cli.doctor.client import NoRepository, read_client
from larder_cli.output import echo, print_json
from larder_cli.why.checkout import read_hints
from larder_cli.why.redaction import redacted
from larder_cli.why.report import markdown, text
from larder_cli.why.summaries import dry_run, newest, read_summary

_SETUP_FAILED = 3


@click.command(
    "why",
    epilog=examples(
        "larder why --last",
        "larder why build --against .turbo/runs/36BZkPZ2WvAw4rLnTqMzCx0Ed8s.json",
        "larder why main.json branch.json --markdown",
        "larder why --last --fail-on setup --redact",
    ),
)
@click.argument("names", nargs=-1, metavar="[TASK|FILE]...")
@click.option(
    "--last",
    "is_last",
    is_flag=True,
    help="Compare the newest summary in .turbo/runs with the one before.",
)
@click.option(
    "--against",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The summary of the run to compare a dry run of TASK with.",
)
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print Markdown for a job summary or a comment."
)
@click.option(
    "--redact",
    is_flag=True,
    help="Print labels in place of the names of variables, paths and packages.",
)
@click.option("--offline", is_flag=True, help="Have the dry run send nothing to the remote cache.")
@click.option(
    "--fail-on",
    type=click.Choice([Class.SETUP.value]),
    help="End with the exit status 3 if a cause is outside the code.",
)
@json_option
@click.pass_context
def why(
    ctx: click.Context,
    names: tuple[str, ...],
    is_last: bool,
    against: Path | None,
    as_markdown: bool,
    redact: bool,
    offline: bool,
    fail_on: str | None,
    as_json: bool,
) -> None:
    """Explain why tasks miss the cache.

    Compares what turbo hashed in two runs, from turbo's own run summaries. Name two files, the older first; or use
    --last; or name tasks and --against, which runs `turbo run TASK --dry=json` here. It needs no deployment and no AWS
    account. Values of variables are in no summary, and are never printed.

    turbo writes a summary of each run to .turbo/runs if TURBO_RUN_SUMMARY is true. docs/why.md explains each cause.
    """
    if as_json and as_markdown:
        raise click.UsageError("choose --json or --markdown")
    base, run = _summaries(names, is_last=is_last, against=against, is_offline=offline)
    if not base.tasks.keys() & run.tasks.keys():
        raise click.ClickException(
            "the two runs have no task in common: compare runs of the same tasks and packages"
        )
    root = _root()
    hints = read_hints(root, base, run, is_dry_run=against is not None) if root else None
    comparison = compare(base, run, hints)
    compared = record(comparison)
    shown = redacted(compared) if redact else compared
    if as_json:
        print_json(shown)
    else:
        echo(*(markdown if as_markdown else text)(shown))
    if fail_on and any(one.class_ == fail_on for one in comparison.causes):
        ctx.exit(_SETUP_FAILED)


def _summaries(
    names: tuple[str, ...], *, is_last: bool, against: Path | None, is_offline: bool
) -> tuple[Summary, Summary]:
    """The summary of the baseline, and of the run in question."""
    files = [name for name in names if name.endswith(".json")]
    if is_last and not names and against is None:
        older, newer = newest(_repository(), 2)
        return read_summary(older), read_summary(newer)
    if len(files) == 2 == len(names) and against is None and not is_last:
        return read_summary(Path(files[0])), read_summary(Path(files[1]))
    if against is not None and names and not files and not is_last:
        if option := next((name for name in names if name.startswith("-")), None):
            raise click.UsageError(f"{option} is not a task")
        base = read_summary(against)
        return base, dry_run(_repository(), Path.cwd(), names, is_offline=is_offline)
    if names and not files and not is_last:
        raise click.UsageError(
            "name the run to compare with: --against FILE. turbo writes the file of each run to .turbo/runs if "
            "TURBO_RUN_SUMMARY is true"
        )
    raise click.UsageError(
        "name two files of .turbo/runs, or tasks and --against FILE, or use --last alone"
    )


def _repository() -> Path:
    try:
        return read_client(Path.cwd(), os.environ).root
    except NoRepository as error:
        raise click.UsageError(str(error)) from error


def _root() -> Path | None:
    """The repository of turbo here, if there is one: two files can be compared anywhere."""
    try:
        return read_client(Path.cwd(), os.environ).root
    except NoRepository:
        return None
