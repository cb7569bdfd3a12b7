"""`python -m local`: the local cloud's command line. Every flag has an environment variable."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from local.child_processes import end_with_parent, leave
from local.gateway.throttle import Limits
from local.serve import Options, serve
from local.stores import TABLES
from local.template import template_path
from local.workers.pool import default_size


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local",
        description="Larder on one machine.",
        epilog="Set Larder's own settings by their LARDER_... variables (docs/configuration.md).",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _add_serve(commands)
    _add_demo(commands)
    arguments = parser.parse_args()
    return int(arguments.run(arguments))


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve", usage="%(prog)s [OPTIONS]", help="run the local cloud until Ctrl-C"
    )
    parser.set_defaults(run=_serve)
    parser.add_argument(
        "--port",
        type=_port,
        default=os.environ.get("PORT") or "3000",
        help="port of the API; 0 chooses a free one (PORT, 3000)",
    )
    parser.add_argument(
        "--host",
        default=os.environ.get("HOST") or "127.0.0.1",
        help="address to listen on; 0.0.0.0 allows other machines (HOST, 127.0.0.1)",
    )
    parser.add_argument(
        "--public-host",
        default=os.environ.get("PUBLIC_HOST") or None,
        help="this machine's name for other machines, used in URLs and accepted in Host headers (PUBLIC_HOST)",
    )
    _add_data(parser)
    parser.add_argument(
        "--workers",
        type=positive,
        default=os.environ.get("FUNCTION_WORKERS") or str(default_size()),
        help="processes that run the functions (FUNCTION_WORKERS, 2 for each core and at least 4)",
    )
    parser.add_argument(
        "--template",
        type=Path,
        default=os.environ.get("TEMPLATE") or str(template_path()),
        help="the template to serve (TEMPLATE, template.yaml)",
    )
    parser.add_argument(
        "--fsync",
        action="store_true",
        default=os.environ.get("FSYNC") == "1",
        help="flush the disk at every write to a table, so that a power cut loses none (FSYNC=1)",
    )
    parser.add_argument(
        "--runtime",
        action="store_true",
        default=os.environ.get("RUNTIME") == "1",
        help="run the output of `make build` under AWS's own runtime client instead of the source (RUNTIME=1)",
    )
    parser.add_argument(
        "--tables",
        default=os.environ.get("TABLES") or TABLES,
        help="the module that serves the tables, and its arguments; the tests have one (TABLES, local.tables)",
    )
    parser.add_argument(
        "--expiry-seconds",
        type=positive,
        default=os.environ.get("EXPIRY_SECONDS") or "60",
        help="seconds between deletions of expired items (EXPIRY_SECONDS, 60)",
    )
    parser.add_argument(
        "--throttle",
        type=_rate_and_burst,
        default=os.environ.get("THROTTLE") or None,
        metavar="RATE/BURST",
        help="refuse requests as API Gateway does (429) above this rate per second and burst, such as 2000/5000, the"
        " default of a deployed stack (THROTTLE, no limit)",
    )
    parser.add_argument(
        "--concurrency",
        type=positive,
        default=os.environ.get("CONCURRENCY") or None,
        help="refuse requests as Lambda does (503) when this many functions run; new AWS accounts have 10"
        " (CONCURRENCY, no limit)",
    )
    parser.add_argument(
        "--edge",
        action="store_true",
        default=os.environ.get("EDGE") == "1",
        help="add the stand-in for the CloudFront distribution of docs/edge.md (EDGE=1). Deployments need Edge=true",
    )
    parser.add_argument(
        "--no-provider",
        dest="provider",
        action="store_false",
        default=os.environ.get("PROVIDER") != "0",
        help="leave out the provider for tests of company sign-in (PROVIDER=0)",
    )
    parser.add_argument(
        "--end-with-parent",
        action="store_true",
        help="exit when standard input ends, as the demo's own local cloud does",
    )


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo", help="build a sample monorepo twice, the second time from the cache"
    )
    parser.set_defaults(run=_demo)
    _add_data(parser)


def _demo(arguments: argparse.Namespace) -> int:
    # Each command imports its own modules, so that `serve` starts without those of the others.
    from local.demo.demonstration import demo

    return demo(arguments.data)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("DATA") or ".larder",
        help="folder for all stored data (DATA, .larder)",
    )


def _serve(arguments: argparse.Namespace) -> int:
    if arguments.end_with_parent:
        end_with_parent()
    return serve(
        Options(
            host=arguments.host,
            port=arguments.port,
            public_host=arguments.public_host,
            data=arguments.data,
            workers=arguments.workers,
            template=arguments.template.resolve(),
            fsync=arguments.fsync,
            runtime=arguments.runtime,
            tables=arguments.tables,
            expiry_s=arguments.expiry_seconds,
            limited=_limits(arguments.throttle, arguments.concurrency),
            edge=arguments.edge,
            provider=arguments.provider,
        )
    )


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) <= 65535):
        raise argparse.ArgumentTypeError("must be a number from 0 to 65535")
    return int(text)


def _rate_and_burst(text: str) -> tuple[int, int]:
    rate, _, burst = text.partition("/")
    if not (rate.isdecimal() and burst.isdecimal() and int(rate) and int(burst)):
        raise argparse.ArgumentTypeError("must be a rate and a burst, such as 2000/5000")
    return int(rate), int(burst)


def _limits(throttle: tuple[int, int] | None, concurrency: int | None) -> Limits:
    rate, burst = throttle or (None, 0)
    return Limits(rate=rate, burst=burst, concurrency=concurrency)


def positive(text: str) -> int:
    """An argument that is a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    leave(main())
