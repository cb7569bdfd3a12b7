"""The entry point that the package installs."""

import sys


def main() -> None:
    """Run the command of the command line. Builds wait for `larder run`, which needs no package but for its help."""
    if sys.argv[1:2] == ["run"] and not {"-h", "--help"} & {*sys.argv[2:3]}:
        from larder_proxy.command import program

        program()
    else:
        from larder_cli.main import cli

        cli(prog_name="larder")
