"""From the classes of larder.errors: the table of codes in docs/errors.md."""

from __future__ import annotations

from collections.abc import Iterator

from larder.errors import LarderError
from tools.generate.text import table_row


def table() -> None:
    """Every refusal, by status. A class that does not say when it is raised is the same to clients as its parent."""
    print(table_row("Status", "Code", "When", "What to do"))
    print("|---|---|---|---|")
    for error in sorted(_classes(LarderError), key=lambda error: error.status):
        if "when" in vars(error):
            print(table_row(str(error.status), f"`{error.code}`", error.when, error.advice))


def _classes(parent: type[LarderError]) -> Iterator[type[LarderError]]:
    for error in parent.__subclasses__():
        yield error
        yield from _classes(error)
