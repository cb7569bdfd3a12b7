"""`larder why`: the options and the run."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from larder_proxy.settings import Settings

from larder.why.causes import Class, Kind
from larder.why.comparison import compare
from larder.why.inputs import report_of
from larder.why.records import ComparisonJson, record
from larder.why.summaries import Summary
from larder_cli.commands import examples, json_option
from larder_cli.output import echo, print_json
from larder_cli.why.checkout import read_checkout, read_hints
from larder_cli.why.completion import completed
from larder_cli.why.deployment import deployment_of
from larder_cli.why.fix import Fixes, find_fixes
from larder_cli.why.history import lines_of
from larder_cli.why.redaction import redacted
from larder_cli.why.report import fix_lines, markdown, text
from larder_cli.why.summaries import dry_run, newest, read_summary

_SETUP_FAILED = 3

_HASH = re.compile(r"[0-9a-f]{16}")
"""A hash of turbo."""

_RUN = re.compile(r"[A-Za-z0-9]{1,64}")
"""The id of a run, or one of `main`, `last` and `ci`."""

_USAGE = (
    "name tasks, two files of .turbo/runs, or a hash, or use --last or --run ID alone. "
    "larder why --help has examples"
)


@click.command(
    "why",
    epilog=examples(
        "larder why build test",
        "larder why build --against ci",
        "larder why --run 36BZkPZ2",
        "larder why 08e4547d5347b63f",
        "larder why --last --fail-on setup --redact",
        "larder why main.json branch.json --markdown",
        "larder why build --fix",
        "larder why build --against .turbo/runs/36BZkPZ2WvAw4rLnTqMzCx0Ed8s.json",
    ),
)
@click.argument("names", nargs=-1, metavar="[TASK|FILE|HASH]...")
@click.option(
    "--last",
    "is_last",
    is_flag=True,
    help="Compare the newest summary in .turbo/runs with the one before.",
)
@click.option(
    "--against",
    metavar="RUN|FILE",
    help="What to compare a dry run of TASK, or --run, with: main, last (your last one), ci, or the id of a run. For "
    "TASK also a file.",
)
@click.option("--run", "run_id", metavar="ID", help="Show why tasks of a reported run missed.")
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print Markdown for a job summary or a comment."
)
@click.option(
    "--redact",
    is_flag=True,
    help="Print labels in place of the names of variables, paths and packages.",
)
@click.option(
    "--offline", is_flag=True, help="Have a dry run against FILE send nothing to the remote cache."
)
@click.option(
    "--fail-on",
    type=click.Choice([Class.SETUP.value]),
    help="End with the exit status 3 if a cause is outside the code.",
)
@click.option(
    "--fix",
    "is_fix",
    is_flag=True,
    help="Also show the edits that prevent these misses, each proven by the hashes of turbo, and ask whether to apply "
    "them. In a pipe, it only shows them.",
)
@click.option("--yes", is_flag=True, help="Apply the edits of --fix without asking.")
@json_option
@click.pass_context
def why(
    ctx: click.Context,
    names: tuple[str, ...],
    is_last: bool,
    against: str | None,
    run_id: str | None,
    as_markdown: bool,
    redact: bool,
    offline: bool,
    fail_on: str | None,
    is_fix: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Explain why tasks miss the cache.

    Name tasks to compare what `turbo run TASK --dry=json` finds here with a run that your team has reported: that of
    the nearest commit, or of --against. It uses the address, token and team of turbo, as larder doctor does, and
    stores nothing. Name a hash to see what became of it.

    Or compare turbo's own run summaries, without a deployment: two files, the older first; or --last; or tasks and
    --against FILE. turbo writes a summary of each run to .turbo/runs if TURBO_RUN_SUMMARY is true.

    --fix tries an edit in a copy of the checkout for each cause that has one, such as a variable that changes with each
    commit, and shows it if turbo then computes the same hashes in both situations. Nothing else is ever edited.

    No AWS account is needed. Values of variables are in no summary, and are never printed. docs/why.md explains each
    cause.
    """
    if as_json and as_markdown:
        raise click.UsageError("choose --json or --markdown")
    if (is_fix and (as_markdown or redact or run_id)) or (yes and not is_fix):
        raise click.UsageError(
            "--fix works on this checkout: name tasks, --last or two files, and add --yes or --json"
        )
    is_hash = len(names) == 1 and _HASH.fullmatch(names[0]) is not None
    if is_hash and not (
        is_last or against or run_id or as_markdown or redact or offline or fail_on or is_fix
    ):
        history = deployment_of(_client()).history(names[0])
        print_json(history) if as_json else echo(*lines_of(names[0], history))
        return
    found = _compared(names, is_last=is_last, against=against, run_id=run_id, is_offline=offline)
    shown = redacted(found.shown) if redact else found.shown
    fixes = _fixes(found) if is_fix else None
    if not as_json:
        echo(*(markdown(shown) if as_markdown else text(shown, _address())))
    if fixes is not None:
        if not as_json:
            echo(*fix_lines(shown, fixes.shown))
        if fixes.after and (yes or _agrees(as_json=as_json)):
            fixes.apply(Path(_client().root))
            if not as_json:
                echo("Applied. turbo computes the proven hashes here.")
    if as_json:
        print_json(shown if fixes is None else {**shown, "fix": fixes.shown})
    if fail_on and fail_on in found.classes:
        ctx.exit(_SETUP_FAILED)


@dataclass(frozen=True, slots=True)
class _Found:
    """A comparison, the classes of all of its causes, and what --fix needs: the files of each cause, and the run."""

    shown: ComparisonJson
    classes: set[str | None]
    paths: Sequence[Sequence[str]] = ()
    run: Summary | None = None


def _fixes(found: _Found) -> Fixes:
    from rich.console import Console

    client = _client()
    if found.run is None:
        raise click.UsageError(_USAGE)
    # turbo computes all hashes several times: a quarter of a minute for 1,000 tasks.
    with Console(stderr=True).status("Trying edits in a copy of this checkout ..."):
        return find_fixes(
            Path(client.root), Path(client.file).name, found.shown, found.paths, found.run
        )


def _agrees(*, as_json: bool) -> bool:
    """Asks on a terminal."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm("Apply these edits?")


def _compared(
    names: tuple[str, ...],
    *,
    is_last: bool,
    against: str | None,
    run_id: str | None,
    is_offline: bool,
) -> _Found:
    files = [name for name in names if name.endswith(".json")]
    if run_id is not None and not (names or is_last or is_offline):
        return _with_classes(deployment_of(_client()).run(run_id, against))
    if run_id is not None:
        raise click.UsageError(_USAGE)
    if is_last and not names and against is None:
        older, newer = newest(Path(_client().root), 2)
        return _of_files(read_summary(older), read_summary(newer))
    if len(files) == 2 == len(names) and against is None and not is_last:
        return _of_files(read_summary(Path(files[0])), read_summary(Path(files[1])))
    if not names or files or is_last:
        raise click.UsageError(_USAGE)
    if option := next((name for name in names if name.startswith("-")), None):
        raise click.UsageError(f"{option} is not a task")
    if against is not None and (not _RUN.fullmatch(against) or Path(against).is_file()):
        base = read_summary(Path(against))
        run = dry_run(Path(_client().root), Path.cwd(), names, is_offline=is_offline)
        return _of_files(base, run, is_dry_run=True)
    if is_offline:
        raise click.UsageError(
            "--offline asks no deployment: name the file to compare with, --against FILE"
        )
    return _asked(names, against)


def _asked(tasks: tuple[str, ...], against: str | None) -> _Found:
    """What the deployment says about a dry run here."""
    client = _client()
    deployment, root = deployment_of(client), Path(client.root)
    run = dry_run(root, Path.cwd(), tasks, is_offline=False)
    here = read_checkout(root, run)
    report = report_of(run, ancestors=here.ancestors, dirty=here.dirty, hints=here.hints)
    shown = deployment.causes(report, against)

    def ask(other: Summary) -> ComparisonJson:
        return deployment.causes(report_of(other), shown["baseline"]["id"])

    return _with_classes(*completed(shown, run, root, here.hints, ask), run)


def _of_files(base: Summary, run: Summary, *, is_dry_run: bool = False) -> _Found:
    if not base.tasks.keys() & run.tasks.keys():
        raise click.ClickException(
            "the two runs have no task in common: compare runs of the same tasks and packages"
        )
    root = _root()
    comparison = compare(
        base, run, read_hints(root, base, run, is_dry_run=is_dry_run) if root else None
    )
    # The JSON has the first causes only.
    classes = {cause.class_ for cause in comparison.causes}
    paths = [
        (cause.subject, *cause.more) if cause.kind in (Kind.FILE, Kind.GLOBAL_FILE) else ()
        for cause in comparison.causes
    ]
    return _Found(record(comparison), {*classes}, paths, run)


def _with_classes(
    compared: ComparisonJson, paths: Sequence[Sequence[str]] = (), run: Summary | None = None
) -> _Found:
    return _Found(compared, {cause["class"] for cause in compared["causes"]}, paths, run)


def _client() -> Settings:
    client = Settings(str(Path.cwd()), os.environ)
    if client.problem:
        raise click.UsageError(client.problem)
    return client


def _address() -> str:
    """The deployment that this repository uses. Empty if there is none."""
    client = Settings(str(Path.cwd()), os.environ)
    return "" if client.problem else client.api or ""


def _root() -> Path | None:
    """The repository of turbo here, if there is one: two files can be compared anywhere."""
    client = Settings(str(Path.cwd()), os.environ)
    return None if client.problem else Path(client.root)
