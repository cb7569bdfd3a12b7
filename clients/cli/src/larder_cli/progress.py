"""A progress counter on standard error: live on a terminal, otherwise a line every few seconds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from larder_cli.output import echo

LINE_EVERY_S = 10.0


@contextmanager
def counting(what: str, *, line_every_s: float = LINE_EVERY_S) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number done so far. The total is unknown."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _lines(what, line_every_s)
        return
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.completed:,} {task.description}"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    # Transient, because the summary follows on standard output.
    with Progress(*columns, console=console, transient=True) as progress:
        task: TaskID = progress.add_task(what, total=None, rate="")
        rate = _rate_since(time.monotonic())
        yield lambda done: progress.update(task, completed=done, rate=rate(done))


def _lines(what: str, line_every_s: float) -> Callable[[int], None]:
    began = last = time.monotonic()
    rate = _rate_since(began)

    def count(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= line_every_s:
            last = now
            echo(f"{done:,} {what}, {rate(done)}, {now - began:.0f} s", err=True)

    return count


def _rate_since(began: float) -> Callable[[int], str]:
    return lambda done: f"{done / max(time.monotonic() - began, 0.001):,.0f}/s"
