"""The commands of larder.pyz. The installed `larder` has the same ones."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from larder_proxy.run import WAIT_SECONDS, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import NoReturn

    from larder_proxy import process

_RUN = """\
Run a build with Larder as the cache of its tools: turbo, Nx, Gradle, sccache, ccache, moon, Rush.

  larder run -- npx turbo run build
  larder run -- npx nx run-many -t build
  larder run -- cargo build --release
  larder run -- make CC="ccache gcc"

TURBO_API, TURBO_TEAM or TURBO_TEAMID, and TURBO_TOKEN are those of turbo. A job of a CI with an id token needs no key,
nor does a computer with `turbo login`. Without a cache, the build runs all the same.
"""
_PROXY = """\
Run the same as a process of its own, for tools with daemons.

  larder proxy start
  eval "$(larder proxy env)"
"""


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:2] == ["run", "--"] and given[2:]:
        return run(given[2:])
    # Takes longer than all that a build without options needs.
    import argparse

    from larder_proxy.clients import TOOLS

    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="larder", description=_RUN, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    one = commands.add_parser("run", help="run a build", description=_RUN, formatter_class=raw)
    one.add_argument(
        "--wait",
        type=float,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help="how long to wait for uploads",
    )
    one.add_argument(
        "--id-token-command", metavar="COMMAND", help="prints the id token of this job"
    )
    one.add_argument("build", nargs=argparse.REMAINDER, metavar="-- BUILD ...")
    proxy = commands.add_parser(
        "proxy", help="a process of its own", description=_PROXY, formatter_class=raw
    )
    acts = proxy.add_subparsers(dest="act", required=True, metavar="ACT")
    for name, text in (("start", "start it"), ("serve", "stay in the foreground")):
        act = acts.add_parser(name, help=text)
        act.add_argument("--port", type=int)
    acts.add_parser("stop", help="wait for its uploads, and stop it")
    acts.add_parser("status", help="show what it has done")
    env = acts.add_parser("env", help="print the variables of the tools as lines of a shell")
    env.add_argument("tool", nargs="?", choices=TOOLS)
    accept = commands.add_parser("accept", help="let an address of a repository have the token")
    accept.add_argument("url")
    asked = parser.parse_args(given)
    if asked.command == "accept":
        print(accepted(asked.url))
        return 0
    if asked.command == "proxy":
        return _proxy(asked)
    build = asked.build[1:] if asked.build[:1] == ["--"] else asked.build
    if not build:
        one.error("name the build after --")
    return run(
        build,
        wait=asked.wait,
        id_token_command=asked.id_token_command,
    )


def program() -> NoReturn:
    """Run the command of the command line, and end the process."""
    for number in range(3):
        with suppress(OSError):
            os.fstat(number)
            continue
        # Closed: a connection would get the number, and the build inherit it. This one ends as the build starts.
        os.open(os.devnull, os.O_RDWR)
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):
            stream.flush()
    # The interpreter would take 10 ms to free what nobody needs any more.
    os._exit(status)


def _proxy(asked: argparse.Namespace) -> int:
    # `larder run` starts sooner without it.
    from larder_proxy import process

    given = getattr(asked, "port", None)
    port = process.PORT if given is None else given
    try:
        if asked.act == "serve":
            return process.serve(port)
        if asked.act == "start":
            print(started(process.start(port)))
        elif asked.act == "stop":
            process.stop()
        elif asked.act == "status":
            import json

            print(json.dumps(process.counts(), indent=2))
        else:
            print("\n".join(exports(asked.tool)))
    except process.Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def accepted(url: str) -> str:
    """Let an address have the token in this repository. Raises OSError."""
    from larder_proxy.settings import Settings

    settings = Settings(os.getcwd(), os.environ)
    settings.accept(url)
    return f"{settings.root}: the token goes to {url}, if the repository names it."


def started(state: process.State) -> str:
    return f'larder proxy listens at {state.url}. Next: eval "$(larder proxy env)"'


def exports(tool: str | None) -> list[str]:
    """Lines for a POSIX shell. Raises Problem."""
    from larder_proxy import process

    return [f"export {name}='{value}'" for name, value in process.variables(tool).items()]
