"""`larder run` and `larder proxy`: Larder as the cache of other build tools."""

from collections.abc import Callable
from typing import TypeVar

import click
from larder_proxy import process
from larder_proxy.clients import TOOLS
from larder_proxy.command import accepted, exports, started
from larder_proxy.run import WAIT_SECONDS
from larder_proxy.run import run as run_build

from larder_cli.commands import examples, json_option
from larder_cli.output import echo, print_json

T = TypeVar("T")


def _known(work: Callable[[], T]) -> T:
    try:
        return work()
    except process.Problem as problem:
        raise click.ClickException(str(problem)) from problem


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=examples(
        "larder run -- npx turbo run build",
        "larder run -- npx nx run-many -t build",
        "larder run -- cargo build --release",
        'larder run -- make CC="ccache gcc"',
    ),
)
@click.argument("build", nargs=-1, required=True, type=click.UNPROCESSED, metavar="BUILD...")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3_600),
    default=WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for uploads after the build.",
)
@click.option(
    "--id-token-command",
    metavar="COMMAND",
    help="A command that prints the id token of this CI job.",
)
@click.pass_context
def run(
    ctx: click.Context,
    build: tuple[str, ...],
    wait: float,
    id_token_command: str | None,
) -> None:
    """Run a build with Larder as the cache of its tools.

    turbo, Nx, Gradle, sccache, ccache, moon and Rush use it. TURBO_API, TURBO_TEAM or TURBO_TEAMID, and TURBO_TOKEN are
    those of turbo. A job of a CI with an id token needs no key, nor does a computer with `turbo login`. Without a
    cache, the build runs all the same. The exit status is that of the build.
    """
    ctx.exit(run_build(list(build), wait=wait, id_token_command=id_token_command))


@click.command("accept", epilog=examples("larder accept https://cache.example.com"))
@click.argument("url", metavar="URL")
@json_option
def accept(url: str, as_json: bool) -> None:
    """Let an address of this repository have your token.

    The files of a repository can name an address: turbo.json and .turbo/config.json. `larder run`, `doctor` and `why`
    send a token there only if your own settings have the address, too, or after this command.
    """
    try:
        text = accepted(url)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        print_json({"url": url, "accepted": True})
    else:
        echo(text)


@click.group(
    "proxy",
    epilog=examples("larder proxy start", "larder proxy env nx", "larder proxy stop"),
)
def proxy() -> None:
    """Run the cache of other build tools as a process.

    `larder run` does the same for one build. Use the process for tools with daemons that outlive a build.
    """


@proxy.command("start", epilog=examples("larder proxy start", "larder proxy start --port 41300"))
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=process.PORT,
    show_default=True,
    help="The port on 127.0.0.1.",
)
@json_option
def start(port: int, as_json: bool) -> None:
    """Start the process, if it does not run."""
    state = _known(lambda: process.start(port))
    if as_json:
        print_json({"url": state.url, "pid": state.pid})
    else:
        echo(started(state))


@proxy.command("stop", epilog=examples("larder proxy stop"))
@json_option
def stop(as_json: bool) -> None:
    """Have the process wait for its uploads, and stop it."""
    _known(process.stop)
    if as_json:
        print_json({"stopped": True})
    else:
        echo("larder proxy has stopped.")


@proxy.command("status", epilog=examples("larder proxy status --json"))
@json_option
def status(as_json: bool) -> None:
    """Show what the process has done."""
    counts = _known(process.counts)
    if as_json:
        print_json(counts)
    else:
        lost, said = counts.pop("not_stored"), counts.pop("said")
        shown = {**counts, **{f"not stored ({reason})": count for reason, count in lost.items()}}
        echo(
            *(f"{name.replace('_', ' ')}: {count}" for name, count in shown.items() if count != ""),
            *said,
        )


@proxy.command("env", epilog=examples("larder proxy env sccache", 'eval "$(larder proxy env)"'))
@click.argument("tool", type=click.Choice(TOOLS), required=False)
@json_option
def env(tool: str | None, as_json: bool) -> None:
    """Print the variables of the tools, as lines for a shell."""
    if as_json:
        print_json(_known(lambda: process.variables(tool)))
    else:
        echo(*_known(lambda: exports(tool)))
