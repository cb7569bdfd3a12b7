"""What the deployment commands print while CloudFormation works."""

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import click

from larder_cli.output import echo, echo_progress

_LINE_EVERY_S = 20.0
_NAMED = {
    "AWS::Lambda::Function": "functions",
    "AWS::IAM::Role": "roles",
    "AWS::DynamoDB::Table": "tables",
}


class Terminal:
    """The terminal of a person, or the log of a pipeline. `asks` is off with `--yes`.

    With `as_json`, what people read goes to standard error.
    """

    def __init__(self, *, asks: bool, as_json: bool = False) -> None:
        self._asks = asks
        self.as_json = as_json
        self._began = time.monotonic()
        self._printed = float("-inf")
        self._is_live = sys.stderr.isatty()
        self._is_line_open = False

    def say(self, *lines: str) -> None:
        if self._is_line_open:
            echo("", err=True)
            self._is_line_open = False
        echo(*lines, err=self.as_json)

    def confirm(self, question: str) -> bool:
        return click.confirm(question, err=self.as_json) if self._asks else True

    def progress(self, resources: list[Mapping[str, Any]], changes: int) -> None:
        now = time.monotonic()
        if not self._is_live and now - self._printed < _LINE_EVERY_S:
            return
        self._printed = now
        seconds = int(now - self._began)
        counts = Counter(resource["ResourceType"] for resource in resources)
        named = ", ".join(f"{word} {counts[kind]}" for kind, word in _NAMED.items() if counts[kind])
        total = f" of {changes}" if changes else ""
        line = f"  {len(resources)}{total}   {seconds // 60}:{seconds % 60:02}   {named}"
        self._is_line_open = self._is_live
        echo_progress(line, is_live=self._is_live)
