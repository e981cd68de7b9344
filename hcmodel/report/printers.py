"""Solves while they run: the verbose table and the progress line, behind one interface."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hcmodel.records import dataclass
from hcmodel.report.text import counted, solution_text
from hcmodel.report.words import certificate_words
from hcmodel.solvers.result import Record

if TYPE_CHECKING:
    from hcmodel.reductions.canonical import CanonicalProblem
    from hcmodel.solving.solution import Solution

RULE = "-" * 82
# The longest phase is "convex program".
HEADER = (
    f"{'iter':>5} {'phase':<14} {'calls':>7} {'objective':>14} {'violation':>10} "
    f"{'residual':>9} {'step':>8} {'shift':>8}"
)
# Seconds before the first line is shown, and between two: short solves stay silent.
PATIENCE, PERIOD = 2.0, 0.5
# Seconds between the lines in a pipe, where none can be written over.
PIPE_PERIOD = 5.0
# Cells of the bar on which the gap falls, from 1 to the tolerance.
CELLS = 10
WIDTH = 100
# The value of `progress` that asks for lines in pipes too.
ALWAYS = "always"


@dataclass(frozen=True)
class Heading:
    """What a solve begins with: sizes, coordinates, method and the reason for it, engine."""

    method: str
    tolerance: float
    canonical: CanonicalProblem
    coordinates: str
    engine: str

    def lines(self) -> list[str]:
        """As the verbose table shows them."""
        canonical = self.canonical
        equalities = canonical.outer.size - canonical.outer.inequalities
        sizes = [
            counted(canonical.layout.size, "unknown"),
            counted(canonical.outer.inequalities, "inequality", "inequalities"),
            counted(equalities, "equality", "equalities"),
            counted(sum(root.size for root in canonical.roots), "function"),
        ]
        return [
            f"sizes        {', '.join(sizes)}",
            f"coordinates  {self.coordinates}",
            f"method       {self.method}",
            f"engine       {self.engine}",
            f"tolerance    {self.tolerance:g}",
        ]


class Printer(Protocol):
    """Shows a solve while it runs."""

    def header(self, heading: Heading) -> None: ...
    def row(self, record: Record) -> None: ...
    def footer(self, solution: Solution) -> None: ...
    def close(self) -> None:
        """Called however the solve ends."""


class VerbosePrinter:
    """Configuration, header, one row per iteration, footer."""

    def header(self, heading: Heading) -> None:
        print(RULE, *heading.lines(), RULE, HEADER, sep="\n")

    def row(self, record: Record) -> None:
        print(
            f"{record.iteration:>5} {record.phase:<14} {record.calls:>7} "
            f"{_cell(record.objective, 14, '.7e')} {_cell(record.violation, 10, '.2e')} "
            f"{_cell(record.residual, 9, '.1e')} {_cell(record.step, 8, '.1e')} "
            f"{_cell(record.shift, 8, '.1e')}"
        )

    def footer(self, solution: Solution) -> None:
        print(RULE)
        print(certificate_words(solution))
        print(RULE)
        print(solution_text(solution))

    def close(self) -> None:
        pass


class ProgressLine:
    """A line about a solve that takes longer than two seconds, from a thread of its own.

    On a terminal and in a notebook it is written over, and removed at the end. In a pipe nothing is
    shown, unless `always` asks for a new line every few seconds.
    """

    def __init__(self, always: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stdout if in_notebook() else sys.stderr
        self._over = in_notebook() or self._stream.isatty()
        self._always, self._clock = always, clock
        self._began = self._last = clock()
        self._record: Record | None = None
        self._tolerance, self._written = 1.0, False
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def header(self, heading: Heading) -> None:
        self._tolerance = heading.tolerance
        if self._over or self._always:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(PERIOD):
            self.beat()

    def row(self, record: Record) -> None:
        self._record = record

    def beat(self) -> None:
        """Write the line, if it is time for one."""
        now = self._clock()
        if now - self._began < PATIENCE:
            return
        if not self._over and self._written and now - self._last < PIPE_PERIOD:
            return
        text = progress_text(self._record, now - self._began, self._tolerance)
        self._stream.write(f"\r\x1b[K{text}" if self._over else f"{text}\n")
        self._stream.flush()
        self._last, self._written = now, True

    def footer(self, solution: Solution) -> None:
        pass

    def close(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        if self._over and self._written:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress_text(record: Record | None, seconds: float, tolerance: float) -> str:
    """Phase, calls, value, violation, and how far the gap has fallen towards the tolerance."""
    start = f"{seconds:5.0f} s  "
    if record is None:
        return start + "solving"
    parts = [record.phase, f"{record.calls} calls"]
    if np.isfinite(record.objective):
        parts.append(f"value {record.objective:.8g}")
    if np.isfinite(record.violation):
        parts.append(f"violation {record.violation:.1e}")
    gap = record.objective - record.bound
    name, left = ("gap", abs(gap)) if np.isfinite(gap) else ("residual", record.residual)
    if np.isfinite(left):
        parts.append(f"{name} {left:.1e} {fallen(left, tolerance)}")
    return (start + ", ".join(parts))[:WIDTH]


def fallen(left: float, tolerance: float) -> str:
    """A bar that is empty at 1 and full at the tolerance, on a logarithmic scale."""
    if tolerance >= 1.0:
        return ""
    share = np.log(max(left, tolerance)) / np.log(tolerance)
    full = int(np.clip(round(CELLS * float(share)), 0, CELLS))
    return f"[{'#' * full}{'-' * (CELLS - full)}]"


def in_notebook() -> bool:
    """Whether output goes to a notebook, which writes lines over as terminals do."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class Reporter:
    """Hands the records of a solve to a printer, if one was asked for, and to the user's callback."""

    def __init__(
        self,
        callback: Callable[[Record], bool | None] | None,
        *,
        verbose: bool = False,
        progress: bool | str = False,
    ) -> None:
        self._callback = callback
        self._printers: list[Printer] = []
        if verbose:
            self._printers.append(VerbosePrinter())
        elif progress:
            self._printers.append(ProgressLine(always=progress == ALWAYS))

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        for printer in self._printers:
            printer.close()

    def header(self, heading: Callable[[], Heading]) -> None:
        """Show what a run begins with, which is made where somebody looks at it."""
        for printer in self._printers:
            printer.header(heading())

    @property
    def watch(self) -> Callable[[Record], bool] | None:
        """What takes the records of a run; None if they are not read before its end."""
        return None if self._callback is None and not self._printers else self.row

    def row(self, record: Record) -> bool:
        """Show a record; True where the user's callback stops the solve."""
        answer = None if self._callback is None else self._callback(record)
        for printer in self._printers:
            printer.row(record)
        return bool(answer)

    def footer(self, solution: Solution) -> None:
        for printer in self._printers:
            printer.footer(solution)


def _cell(value: float, width: int, style: str) -> str:
    return f"{value:>{width}{style}}" if np.isfinite(value) else f"{'-':>{width}}"
