"""The entry point that the package installs."""

import sys


def main() -> None:
    """Run the command of the command line. Builds wait for `larder run`, which needs no other command."""
    if sys.argv[1:2] == ["run"]:
        from larder_cli.proxy import run

        run.main(sys.argv[2:], prog_name="larder run", help_option_names=["-h", "--help"])
    else:
        from larder_cli.main import cli

        cli(prog_name="larder")
