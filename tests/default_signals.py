"""Commands that heed Ctrl-C and the end of a terminal, also if the tests run under nohup or in the background."""

import sys

_RESET = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def with_default_signals(command: list[str]) -> list[str]:
    """The command as a process that ignores no signal. Processes inherit which signals are ignored."""
    return [sys.executable, "-c", _RESET, *command]
