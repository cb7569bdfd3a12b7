"""The charts of the page, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.figures import Compared, Memory
from benchmarks.handler_cpu import HandlerCpu
from benchmarks.report import Run
from benchmarks.servers import ACCOUNTS_PEER, CACHE_PEER

_WIDTH = 9
_COLOURS = ("#1b6ca8", "#3fa796", "#e08e45", "#8a5a83")


def draw(run: Run, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    # Keep text as text. The fixed salt gives the same file for the same figures.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "larder", "font.size": 9})
    rows = [row for row in run.rows if isinstance(row, Compared)]
    for peer, name in ((CACHE_PEER, "cache"), (ACCOUNTS_PEER, "accounts")):
        _rates([row for row in rows if row.peer == peer], peer, folder / f"{name}.svg")
    _handlers(run.cpu, folder / "handlers.svg")
    if run.memory:
        _memory(run.memory, folder / "memory.svg")


def _rates(rows: Sequence[Compared], peer: str, path: Path) -> None:
    cases = list(dict.fromkeys(row.case for row in rows))
    clients = sorted({row.clients for row in rows})
    figure, axes = plt.subplots(figsize=(_WIDTH, 0.5 + 0.45 * len(cases)))
    thickness = 0.8 / len(clients)
    for place, count in enumerate(clients):
        its = [row for row in rows if row.clients == count]
        axes.barh(
            [cases.index(row.case) + (place - len(clients) / 2 + 0.5) * thickness for row in its],
            [row.rate for row in its],
            height=thickness,
            label=f"{count} client{'s' if count > 1 else ''}",
            color=_COLOURS[place % len(_COLOURS)],
        )
    axes.set_yticks(range(len(cases)), cases)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel(f"requests per second, as a multiple of {peer}'s (higher is better)")
    axes.legend(frameon=False, fontsize=8)
    _save(figure, axes, path)


def _handlers(cpu: Sequence[HandlerCpu], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(_WIDTH, 0.6 + 0.4 * len(cpu)))
    axes.barh([row.name for row in cpu], [row.ratio for row in cpu], color=_COLOURS[0], height=0.6)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.axvline(2, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlabel("CPU time of a warm call, as a multiple of its calls to AWS (lower is better)")
    _save(figure, axes, path)


def _memory(memory: Memory, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(_WIDTH, 3))
    passed, held = zip(*memory.samples, strict=True)
    axes.plot(passed, held, color=_COLOURS[0], linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("MB of artifacts uploaded and downloaded")
    axes.set_ylabel("memory of all processes in MB")
    _save(figure, axes, path)


def _save(figure: Figure, axes: Axes, path: Path) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
