"""All printing to terminals, in one place: the verbose table, the progress line, the result."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hcmodel.solvers.result import Record

if TYPE_CHECKING:
    from hcmodel.reductions.canonical import CanonicalProblem
    from hcmodel.solving.solution import Solution

RULE = "-" * 78
HEADER = (
    f"{'iter':>5} {'phase':<12} {'calls':>7} {'objective':>14} {'violation':>10} "
    f"{'residual':>9} {'step':>8} {'shift':>8}"
)
LONGEST_LIST = 8
MOST_ROWS = 12


class VerbosePrinter:
    """Configuration, header, one row per iteration, footer."""

    def header(self, method: str, tolerance: float, canonical: CanonicalProblem) -> None:
        equalities = canonical.outer.size - canonical.outer.inequalities
        print(RULE)
        print(f"hcmodel  method = {method}  tol = {tolerance:g}")
        print(
            f"unknowns = {canonical.layout.size}  inequalities = {canonical.outer.inequalities}  "
            f"equalities = {equalities}  functions = {sum(root.size for root in canonical.roots)}"
        )
        print(RULE)
        print(HEADER)

    def row(self, record: Record) -> None:
        print(
            f"{record.iteration:>5} {record.phase:<12} {record.calls:>7} "
            f"{_cell(record.objective, 14, '.7e')} {_cell(record.violation, 10, '.2e')} "
            f"{_cell(record.residual, 9, '.1e')} {_cell(record.step, 8, '.1e')} "
            f"{_cell(record.shift, 8, '.1e')}"
        )

    def footer(self, solution: Solution) -> None:
        print(RULE)
        print(solution_text(solution))

    def close(self) -> None:
        pass


class ProgressLine:
    """One line that is written over; shown on a terminal, silent in a pipe."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._last = 0.0

    def header(self, method: str, tolerance: float, canonical: CanonicalProblem) -> None:
        pass

    def row(self, record: Record) -> None:
        now = time.monotonic()
        if self._shown and now - self._last > 0.1:
            self._last = now
            text = f"{record.phase}: {record.calls} calls, objective {record.objective:.8g}, "
            text += f"violation {record.violation:.1e}"
            sys.stderr.write("\r\x1b[K" + text[:78])
            sys.stderr.flush()

    def footer(self, solution: Solution) -> None:
        pass

    def close(self) -> None:
        if self._shown and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Printer(Protocol):
    """Shows a solve while it runs."""

    def header(self, method: str, tolerance: float, canonical: CanonicalProblem) -> None: ...
    def row(self, record: Record) -> None: ...
    def footer(self, solution: Solution) -> None: ...
    def close(self) -> None:
        """Called however the solve ends."""


class Reporter:
    """Hands the records of a solve to a printer, if one was asked for, and to the user's callback."""

    def __init__(
        self,
        callback: Callable[[Record], bool | None] | None,
        *,
        verbose: bool = False,
        progress: bool = False,
    ) -> None:
        self._callback = callback
        self._printers: list[Printer] = []
        if verbose:
            self._printers.append(VerbosePrinter())
        elif progress:
            self._printers.append(ProgressLine())

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        for printer in self._printers:
            printer.close()

    def header(self, method: str, tolerance: float, canonical: CanonicalProblem) -> None:
        for printer in self._printers:
            printer.header(method, tolerance, canonical)

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


def solution_text(solution: Solution) -> str:
    """The result at a glance."""
    calls, certificate = solution.oracle_calls, solution.certificate
    lines = [f"status        {solution.status.value} ({solution.message})"]
    if solution.value is not None:
        lines.append(f"value         {solution.value:.10g}")
    if certificate.gap is not None:
        lines.append(f"gap           {certificate.gap:.2e} ({certificate.kind})")
    if certificate.violation is not None:
        lines.append(f"violation     {certificate.violation:.2e}")
    if certificate.stationarity is not None:
        lines.append(f"KKT residual  {certificate.stationarity:.2e}")
    if solution.conflict:
        lines.append(f"conflict      {', '.join(solution.conflict)}")
    lines += _table("variable", solution.point)
    lines += _table("dual", solution.duals)
    lines.append(
        f"{solution.method}: {solution.iterations} iterations, {calls.total} oracle calls at "
        f"{calls.points} points, {solution.solve_seconds:.3g} s"
        + (f" (compiled in {solution.compile_seconds:.2g} s)" if solution.compile_seconds else "")
    )
    own = solution.function_calls
    if own.total or own.cached:
        parts = [f"{own.values} for values", f"{own.gradients} for gradients"]
        parts += [f"{own.cached} from the cache"] if own.cached else []
        lines.append(f"your functions: {', '.join(parts)}")
    return "\n".join(lines)


def _table(title: str, arrays: Mapping[str, Any]) -> list[str]:
    lines = []
    for position, (name, array) in enumerate(arrays.items()):
        if position == MOST_ROWS:
            lines.append(f"              … and {len(arrays) - MOST_ROWS} more")
            break
        label = title if position == 0 else ""
        lines.append(f"{label:<13} {name} = {short_array(array)}")
    return lines


def short_array(array: Any) -> str:
    """A number, or an array on one line, with its middle left out where it is long."""
    values = np.asarray(array, dtype=float)
    if values.ndim == 0:
        return f"{float(values):.6g}"
    flat = [f"{value:.6g}" for value in values.reshape(-1)[: LONGEST_LIST + 1]]
    if values.size > LONGEST_LIST:
        flat = [*flat[: LONGEST_LIST - 1], "…", f"{values.reshape(-1)[-1]:.6g}"]
    shape = "" if values.ndim == 1 and values.size <= LONGEST_LIST else f"  {values.shape}"
    return f"[{', '.join(flat)}]{shape}"
