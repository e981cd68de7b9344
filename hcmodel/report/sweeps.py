"""The table of a sweep as text, HTML, JSON and a picture; the progress line of a sweep."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.report.canvas import CYCLE, new_figure, plain_frame, saved
from hcmodel.report.json import plain

if TYPE_CHECKING:
    from hcmodel.studies.sweep_table import SweepRow, SweepTable

# Rows that are printed of a long table, half of them from its end; columns of entries that are shown.
MOST_ROWS = 24
MOST_ENTRIES = 6
# Seconds between two updates of the progress line.
UPDATE_SECONDS = 0.1
# Width and height of a picture in inches.
SIZE = (6.4, 4.2)


class SweepProgress:
    """One line that is written over: points that are done, that failed, and the time that is left."""

    def __init__(self, points: int | None, done: int, *, shown: bool) -> None:
        self._points, self._done, self._known = points, done, done
        self._failed = 0
        self._shown = shown and sys.stderr.isatty()
        self._last, self._began = 0.0, time.monotonic()

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def row(self, row: SweepRow) -> None:
        """One more point is done."""
        self._done += 1
        self._failed += not row.is_solved
        now = time.monotonic()
        if not self._shown or now - self._last <= UPDATE_SECONDS:
            return
        self._last = now
        if self._points is None:
            sys.stderr.write(f"\r\x1b[K{self._done} points")
            sys.stderr.flush()
            return
        left = (now - self._began) / (self._done - self._known) * (self._points - self._done)
        text = f"{self._done} of {self._points} points, {self._failed} not solved, "
        sys.stderr.write(f"\r\x1b[K{text}about {left:.0f} s left")
        sys.stderr.flush()


def sweep_text(table: SweepTable) -> str:
    """The table at a glance: parameters, status, value, gap and the first entries of the solution."""
    columns = _shown_columns(table)
    lines = [columns] + [_cells(table, row, columns) for row in _shown_rows(table)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    text = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    left_out = len(table.rows) - len(text) + 1
    if left_out > 0:
        text.insert(1 + MOST_ROWS // 2, f"… {left_out} rows more")
    counts = ", ".join(f"{count} {status}" for status, count in table.counts().items())
    points = "1 point" if len(table.rows) == 1 else f"{len(table.rows)} points"
    text.append(f"{points}: {counts}" + (", interrupted" if table.interrupted else ""))
    if table.curve is not None:
        text.append(str(table.curve))
    text += [f"row {row.number}: {row.error}" for row in table.rows if row.status == "error"][:3]
    return "\n".join(text)


def sweep_html(table: SweepTable) -> str:
    """The same as HTML, for notebooks."""
    columns = _shown_columns(table)
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(table, row, columns))
        + "</tr>"
        for row in _shown_rows(table)
    )
    more = len(table.rows) - len(_shown_rows(table))
    foot = f"<p>{_points(table)}" + (f", {more} of them not shown</p>" if more else "</p>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{foot}"


def _points(table: SweepTable) -> str:
    return "1 point" if len(table.rows) == 1 else f"{len(table.rows)} points"


def _shown_columns(table: SweepTable) -> list[str]:
    inputs = [c for part in ("parameters", "start") for c in _entries(table, part)]
    shown = [*inputs[:MOST_ENTRIES], "status", "value", "gap"]
    room = MOST_ENTRIES - min(len(inputs), MOST_ENTRIES - 2)
    return shown + _entries(table, "variables")[:room]


def _entries(table: SweepTable, part: str) -> list[str]:
    return [column for each in table.layout.array_columns(part).values() for column in each]


def _shown_rows(table: SweepTable) -> list[SweepRow]:
    rows, half = table.rows, MOST_ROWS // 2
    return list(rows) if len(rows) <= MOST_ROWS else [*rows[:half], *rows[-half:]]


def _cells(table: SweepTable, row: SweepRow, columns: list[str]) -> list[str]:
    cells: Mapping[str, Any] = table.layout.cells(row)
    return [_cell(cells[column], ".1e" if column == "gap" else ".6g") for column in columns]


def _cell(value: Any, style: str) -> str:
    if value is None:
        return "-"
    return f"{value:{style}}" if isinstance(value, float) else str(value)


def row_json(row: SweepRow) -> dict[str, Any]:
    """A row in the words of `hcmodel solve --json`."""
    return {
        "parameters": {name: plain(array) for name, array in row.parameters.items()},
        **(
            {"start": {name: plain(array) for name, array in row.start.items()}}
            if row.start
            else {}
        ),
        "status": row.status,
        "value": plain(row.value),
        "lower_bound": plain(row.lower_bound),
        "gap": plain(row.gap),
        "violation": plain(row.violation),
        "variables": {name: plain(array) for name, array in row.variables.items()},
        "duals": {name: plain(array) for name, array in row.duals.items()},
        "method": row.method,
        "iterations": row.iterations,
        "oracle_calls": row.oracle_calls,
        "solve_seconds": row.solve_seconds,
        "error": row.error or None,
    }


def sweep_figure(table: SweepTable, path: str | None, column: str) -> Any:
    """A column against one parameter, as a map over two, else against the number of the row."""
    found = np.asarray(table.column(column))
    if found.dtype == object:
        raise ModelError(
            f"'{column}' is not a column of numbers; plot the value, a variable or a dual"
        )
    values = found.reshape(len(table.rows), -1)
    figure = new_figure(*SIZE)
    axes = figure.subplots()
    scalars = [name for name, shape in table.layout.parameters.items() if shape == ()]
    grid = table.axes is not None and list(table.axes) == scalars
    if len(scalars) == 2 and grid and values.shape[1] == 1:
        _draw_map(figure, axes, table, scalars, values[:, 0], column)
    else:
        _draw_lines(axes, table, scalars[0] if len(scalars) == 1 else None, values, column)
    return saved(figure, path)


def _draw_lines(axes: Any, table: SweepTable, name: str | None, values: Any, column: str) -> None:
    across = np.arange(len(table.rows)) if name is None else table.column(name)
    order = np.argsort(across, kind="stable")
    shapes = {**table.layout.duals, **table.layout.variables}
    places = list(np.ndindex(shapes.get(column, ())))
    for number, entry in enumerate(values.T):
        index = (
            ",".join(str(table.layout.first + i) for i in places[number]) if len(places) > 1 else ""
        )
        label = f"{column}[{index}]" if index else column
        axes.plot(
            across[order], entry[order], marker=".", label=label, color=CYCLE[number % len(CYCLE)]
        )
    if table.curve is not None and column == "value":
        table.curve.draw(axes)
    axes.set(xlabel=name or "row", ylabel=column)
    plain_frame(axes)
    if 1 < values.shape[1] <= MOST_ENTRIES or (table.curve is not None and column == "value"):
        axes.legend()


def _draw_map(
    figure: Any, axes: Any, table: SweepTable, names: list[str], values: Any, column: str
) -> None:
    assert table.axes is not None
    first, second = (np.asarray(table.axes[name]) for name in names)
    picture = values.reshape(len(first), len(second))
    mesh = axes.pcolormesh(second, first, np.ma.masked_invalid(picture), shading="nearest")
    figure.colorbar(mesh, label=column)
    axes.set(xlabel=names[1], ylabel=names[0])
