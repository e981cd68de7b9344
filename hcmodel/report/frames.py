"""Results as tables. pandas comes with the extra `data` and is imported only where it is needed."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.errors import DataError
from hcmodel.expressions.output_files import write_text
from hcmodel.solvers.result import COLUMNS

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution


def require_pandas() -> Any:
    """The module, or one line on how to install it."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise DataError("tables of pandas need pandas: pip install 'hcmodel[data]'") from None


def solution_records(solution: Solution) -> list[dict[str, Any]]:
    """One dict for each entry: kind, name, index, value, and the duals of the bounds of a variable."""
    rows: list[dict[str, Any]] = []
    for name, array in solution.point.items():
        bounds = solution.bound_duals.get(name)
        for place, value in np.ndenumerate(np.asarray(array)):
            duals = [np.nan, np.nan]
            if bounds is not None:
                duals = [
                    float(np.broadcast_to(side, np.shape(array))[place])
                    for side in (bounds.lower, bounds.upper)
                ]
            index = _shown(name, place, solution.index)
            rows.append(_record("variable", name, index, float(value), *duals))
    for name, array in solution.duals.items():
        for place, value in np.ndenumerate(np.asarray(array)):
            index = _shown(name, place, solution.index)
            rows.append(_record("dual", name, index, float(value), np.nan, np.nan))
    return rows


def _record(
    kind: str, name: str, index: Any, value: float, lower: float, upper: float
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "index": index,
        "value": value,
        "lower_dual": lower,
        "upper_dual": upper,
    }


def _shown(
    name: str, place: tuple[int, ...], index: Mapping[str, tuple[tuple[Any, ...], ...]]
) -> Any:
    """The index of an entry as its front end counts: a number, a label, or a tuple of several."""
    axes = index.get(name)
    known = axes is not None and len(axes) == len(place)
    labels = tuple(axes[axis][i] for axis, i in enumerate(place)) if axes and known else place
    if not labels:
        return ""
    return labels[0] if len(labels) == 1 else labels


def trace_records(solution: Solution) -> list[dict[str, Any]]:
    """One dict for each record of the trace, with the entries of the point where points were kept."""
    rows = []
    for record in solution.trace:
        row = {name: getattr(record, name) for name in COLUMNS}
        for name, array in (record.point or {}).items():
            for place, value in np.ndenumerate(np.asarray(array)):
                index = _shown(name, place, solution.index)
                shown = ",".join(map(str, index)) if isinstance(index, tuple) else str(index)
                row[f"{name}[{shown}]" if shown else name] = float(value)
        rows.append(row)
    return rows


def trace_csv(solution: Solution) -> str:
    """The trace as CSV."""
    rows = trace_records(solution)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def records_csv(records: Sequence[Mapping[str, Any]], path: str | Path | None) -> str | None:
    """Records as CSV: written to a file, or returned as text."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    for record in records:
        index = record["index"]
        shown = ",".join(map(str, index)) if isinstance(index, tuple) else index
        numbers = {key: "" if value != value else value for key, value in record.items()}  # NaN
        writer.writerow({**numbers, "index": shown})
    if path is None:
        return text.getvalue()
    write_text(path, text.getvalue())
    return None
