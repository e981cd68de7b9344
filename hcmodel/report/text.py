"""A solution as text for terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution

LONGEST_LIST = 8
MOST_ROWS = 12
# Matrices with more entries are shown by their corners; lines are as wide as a terminal.
MOST_NUMBERS = 64
LINE, NARROWEST = 100, 40
# A gap or a dual below this share of the value, or of the largest dual, is rounding: a tenth of the
# default tolerance.
GAP_ROUNDING = DUAL_ROUNDING = 1e-7


def solution_text(solution: Solution, full: bool = False) -> str:
    """The result at a glance; `full` leaves nothing out of arrays and lists."""
    calls, certificate = solution.oracle_calls, solution.certificate
    lines = [f"status        {solution.status.value} ({solution.message})"]
    if solution.value is not None:
        lines.append(f"value         {solution.value:.10g}")
    if certificate.gap is not None:
        lines.append(f"gap           {_gap(solution)} ({certificate.kind})")
    if certificate.violation is not None:
        lines.append(f"violation     {certificate.violation:.2e}")
    if certificate.stationarity is not None:
        lines.append(f"KKT residual  {certificate.stationarity:.2e}")
    if solution.conflict:
        lines.append(f"conflict      {', '.join(solution.conflict)}")
    lines += _table("variable", solution.point, full, solution.index)
    lines += _table("dual", without_rounding(solution.duals), full, solution.index)
    lines.append(
        f"{solution.method}: {counted(solution.iterations, 'iteration')}, "
        f"{counted(calls.total, 'oracle call')} at {counted(calls.points, 'point')}, "
        f"{solution.solve_seconds:.3g} s"
        + (f" (compiled in {solution.compile_seconds:.2g} s)" if solution.compile_seconds else "")
    )
    own = solution.function_calls
    if own.total or own.cached:
        parts = [f"{own.values} for values", f"{own.gradients} for gradients"]
        parts += [f"{own.cached} from the cache"] if own.cached else []
        lines.append(f"your functions: {', '.join(parts)}")
    return "\n".join(lines)


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun: `1 point`, `2 points`."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def short_repr(solution: Solution) -> str:
    """One line for consoles and lists."""
    value = "None" if solution.value is None else f"{solution.value:.10g}"
    gap = "" if solution.certificate.gap is None else f", gap={_gap(solution)}"
    method = solution.method.partition(" (")[0]
    return f"Solution({solution.status.value}, value={value}{gap}, method={method!r})"


def _gap(solution: Solution) -> str:
    """The gap; below 0 it is 0 within rounding, or as much as the rows are violated."""
    gap = solution.certificate.gap
    assert gap is not None
    if gap < 0 and -gap <= GAP_ROUNDING * max(abs(solution.value or 0.0), 1.0):
        gap = 0.0
    words = ", below 0 by what the violated rows gain" if gap < 0 else ""
    return f"{gap:.2e}{words}"


def without_rounding(duals: Mapping[str, Any]) -> dict[str, Any]:
    """Duals with those set to 0 that are rounding beside the largest."""
    arrays = {name: np.asarray(dual, dtype=float) for name, dual in duals.items()}
    finite = [np.abs(each[np.isfinite(each)]) for each in arrays.values()]
    largest = max((float(np.max(each, initial=0.0)) for each in finite), default=0.0)
    small = DUAL_ROUNDING * largest
    return {name: np.where(np.abs(each) <= small, 0.0, each) for name, each in arrays.items()}


def _table(
    title: str, arrays: Mapping[str, Any], full: bool, index: Mapping[str, Any]
) -> list[str]:
    lines: list[str] = []
    for position, (name, array) in enumerate(arrays.items()):
        if position == MOST_ROWS and not full:
            lines.append(f"              … and {len(arrays) - MOST_ROWS} more (--full shows them)")
            break
        label = title if position == 0 else ""
        start, labelled = f"{label:<13} {name} = ", labelled_array(array, index.get(name))
        lines += shown_array(start, array, full) if labelled is None else [start + labelled]
    return lines


def shown_array(start: str, array: Any, full: bool = False) -> list[str]:
    """Lines that begin with `start`: numbers and vectors on one, matrices as matrices."""
    values = np.asarray(array, dtype=float)
    if values.ndim < 2 and not (full and values.size > LONGEST_LIST):
        return [start + short_array(values)]
    room = " " * len(start)
    shown = values.reshape(-1) if full or values.size <= MOST_NUMBERS else values.reshape(-1)[:1]
    width = max((len(_plain_number(each)) for each in shown), default=1) if values.ndim > 1 else 1
    styles: Any = {"float_kind": lambda value: _plain_number(value).rjust(width)}
    text = np.array2string(
        values,
        separator=", ",
        formatter=styles,
        max_line_width=max(LINE - len(start), NARROWEST),
        threshold=values.size if full else MOST_NUMBERS,
        edgeitems=3,
    )
    lines = [
        (start if number == 0 else room) + line for number, line in enumerate(text.splitlines())
    ]
    if values.size > MOST_NUMBERS and not full:
        lines[-1] += f"  {values.shape}"
    return lines


def _plain_number(value: float) -> str:
    return f"{value:.6g}" if value else "0"


def labelled_array(array: Any, axes: Any) -> str | None:
    """A short vector over a set of labels as `{N2: 0.4, O2: 1.2}`; None for other arrays."""
    if axes is None or len(axes) != 1 or np.shape(array) != (len(axes[0]),):
        return None
    if len(axes[0]) > LONGEST_LIST or not all(isinstance(key, str) for key in axes[0]):
        return None
    pairs = zip(axes[0], np.asarray(array).tolist(), strict=True)
    return "{" + ", ".join(f"{key}: {value:.6g}" for key, value in pairs) + "}"


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
