"""What a sweep found: one row for each point, as columns, CSV, a table of pandas and a picture."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.expressions.by_name import UnknownNameError, unknown_name
from hcmodel.expressions.output_files import write_text
from hcmodel.records import dataclass
from hcmodel.solving.judge import Status
from hcmodel.solving.solution import Solution
from hcmodel.studies.grid import Point

FloatArray = NDArray[np.float64]

ERROR = "error"
NOT_RUN = "not_run"
SOLVED = (Status.OPTIMAL, Status.LOCALLY_OPTIMAL)
NUMBERS = ("value", "lower_bound", "gap", "violation")
COUNTS = ("iterations", "oracle_calls", "solve_seconds")


@dataclass(frozen=True)
class SweepRow:
    """One point: what was set, what the solve found, or the error that it ended with.

    `status` is that of the solution, `error` where the point could not be solved, and `not_run` where
    the sweep was interrupted before.
    """

    number: int
    parameters: Mapping[str, FloatArray]
    start: Mapping[str, FloatArray]
    status: str
    value: float | None = None
    lower_bound: float | None = None
    gap: float | None = None
    violation: float | None = None
    variables: Mapping[str, FloatArray] = field(default_factory=dict)
    duals: Mapping[str, FloatArray] = field(default_factory=dict)
    method: str = ""
    iterations: int | None = None
    oracle_calls: int | None = None
    solve_seconds: float | None = None
    error: str = ""

    @staticmethod
    def solved(point: Point, solution: Solution) -> SweepRow:
        """The row of a solution."""
        certificate = solution.certificate
        return SweepRow(
            point.number,
            point.parameters,
            point.start,
            solution.status.value,
            solution.value,
            certificate.lower_bound,
            certificate.gap,
            certificate.violation,
            solution.point,
            solution.duals,
            solution.method,
            solution.iterations,
            solution.oracle_calls.total,
            solution.solve_seconds,
        )

    @staticmethod
    def failed(point: Point, error: str, status: str = ERROR) -> SweepRow:
        """The row of a point without a solution."""
        return SweepRow(point.number, point.parameters, point.start, status, error=error)

    def at(self, point: Point) -> SweepRow:
        """The same row at the place of a point in another table."""
        return replace(self, number=point.number, parameters=point.parameters, start=point.start)

    @property
    def is_solved(self) -> bool:
        return self.status in SOLVED

    def __getitem__(self, name: str) -> Any:
        """A variable, a parameter or a dual by its name, else a field such as `value`."""
        for part in (self.variables, self.parameters, self.duals):
            if name in part:
                return part[name]
        if name in self.__dataclass_fields__:
            return getattr(self, name)
        known = [*self.variables, *self.parameters, *self.duals, *self.__dataclass_fields__]
        raise UnknownNameError(unknown_name(name, "column", known))


@dataclass(frozen=True)
class Layout:
    """The columns of a table of numbers: entries of arrays have one each, counted from `first`."""

    parameters: Mapping[str, tuple[int, ...]]
    starts: Mapping[str, tuple[int, ...]]
    variables: Mapping[str, tuple[int, ...]]
    duals: Mapping[str, tuple[int, ...]]
    first: int
    index: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    """For names of the language, the index or label of each place on each axis."""

    def parts(self) -> Iterator[tuple[str, str, Mapping[str, tuple[int, ...]]]]:
        """The attribute of a row, the prefix of its columns, and the shapes of its arrays."""
        yield "parameters", "parameter:", self.parameters
        yield "start", "start:", self.starts
        yield "variables", "variable:", self.variables
        yield "duals", "dual:", self.duals

    def array_columns(self, part: str) -> dict[str, list[str]]:
        """The columns of each array of a part. Prefixes are left out where names stay clear."""
        fixed = {*NUMBERS, *COUNTS, "status", "method", "error", "study"}
        names = Counter([*self.parameters, *self.variables])
        found = {}
        for own, prefix, shapes in self.parts():
            if own != part:
                continue
            for name, shape in shapes.items():
                clear = (
                    own in ("parameters", "variables") and name not in fixed and names[name] == 1
                )
                stem = name if clear else prefix + name
                axes = self.index.get(name) or [range(self.first, self.first + n) for n in shape]
                found[name] = [_entry(stem, place, axes) for place in np.ndindex(shape)]
        return found

    def columns(self) -> list[str]:
        """All columns, in order."""
        arrays = {part: self.array_columns(part) for part, _, _ in self.parts()}
        flat = {part: [c for each in own.values() for c in each] for part, own in arrays.items()}
        return [
            *flat["parameters"],
            *flat["start"],
            "status",
            *NUMBERS,
            *flat["variables"],
            *flat["duals"],
            "method",
            *COUNTS,
            "error",
        ]

    def cells(self, row: SweepRow) -> dict[str, Any]:
        """The row by columns; what is unknown is None."""
        names = ("status", *NUMBERS, "method", *COUNTS, "error")
        found: dict[str, Any] = {name: getattr(row, name) for name in names}
        for part, _, shapes in self.parts():
            arrays: Mapping[str, FloatArray] = getattr(row, part)
            for name, columns in self.array_columns(part).items():
                array = arrays.get(name)
                shape = shapes[name]
                if array is None or np.shape(array) != shape:
                    found.update(dict.fromkeys(columns))
                else:
                    found.update(zip(columns, np.asarray(array).reshape(-1).tolist(), strict=True))
        return found

    def row(self, number: int, cells: Mapping[str, str]) -> SweepRow:
        """The row that was written as text in these columns."""

        def number_of(text: str) -> float | None:
            return float(text) if text else None

        arrays: dict[str, dict[str, FloatArray]] = {}
        for part, _, shapes in self.parts():
            arrays[part] = {}
            for name, columns in self.array_columns(part).items():
                texts = [cells[column] for column in columns]
                if all(texts):
                    values = np.array([float(text) for text in texts])
                    arrays[part][name] = values.reshape(shapes[name])
        counts = {name: number_of(cells[name]) for name in COUNTS}
        return SweepRow(
            number,
            status=cells["status"],
            method=cells["method"],
            error=cells["error"],
            value=number_of(cells["value"]),
            lower_bound=number_of(cells["lower_bound"]),
            gap=number_of(cells["gap"]),
            violation=number_of(cells["violation"]),
            iterations=None if counts["iterations"] is None else int(counts["iterations"]),
            oracle_calls=None if counts["oracle_calls"] is None else int(counts["oracle_calls"]),
            solve_seconds=counts["solve_seconds"],
            parameters=arrays["parameters"],
            start=arrays["start"],
            variables=arrays["variables"],
            duals=arrays["duals"],
        )


def _entry(name: str, place: tuple[int, ...], axes: Sequence[Sequence[Any]]) -> str:
    keys = ",".join(str(axis[i]) for axis, i in zip(axes, place, strict=True))
    return f"{name}[{keys}]" if place else name


@dataclass(frozen=True)
class SweepTable:
    """The rows of a sweep, in the order of its grid.

    `table["value"]`, `table["x"]` and `table["cap"]` are columns as arrays, with NaN where a point has no
    solution. `interrupted` says that Ctrl-C ended the sweep: the rows that are missing are `not_run`.
    """

    rows: tuple[SweepRow, ...]
    layout: Layout
    axes: Mapping[str, FloatArray] | None = None
    interrupted: bool = False
    curve: Any = None
    """The certified curves of an adaptive sweep."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    @overload
    def __getitem__(self, key: int) -> SweepRow: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[SweepRow, ...]: ...
    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    def __getitem__(self, key: Any) -> Any:
        return self.column(key) if isinstance(key, str) else self.rows[key]

    def column(self, name: str) -> NDArray[Any]:
        """A column by name: a field of the rows, a parameter, a variable, or a constraint's dual."""
        for part, _, shapes in self.layout.parts():
            if name in shapes and not (part == "start" and name in self.layout.variables):
                nothing = np.full(shapes[name], np.nan)
                return np.array([getattr(row, part).get(name, nothing) for row in self.rows])
        if name in (*NUMBERS, *COUNTS):
            values = [getattr(row, name) for row in self.rows]
            return np.array([np.nan if value is None else value for value in values])
        if name in ("status", "error", "method"):
            return np.array([getattr(row, name) for row in self.rows], dtype=object)
        known = [key for _, _, shapes in self.layout.parts() for key in shapes]
        known += ["status", *NUMBERS, *COUNTS, "method", "error"]
        raise UnknownNameError(unknown_name(name, "column", known))

    def keys(self) -> list[str]:
        """The columns of the flat table."""
        return self.layout.columns()

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """The rows that have no solution: errors, and points that were not run."""
        return tuple(row for row in self.rows if row.status in (ERROR, NOT_RUN))

    def best(self, maximise: bool = False) -> SweepRow:
        """The solved row with the least value, or the largest."""
        rows = [row for row in self.rows if row.is_solved and row.value is not None]
        if not rows:
            raise ModelError("no point of this sweep was solved; its rows have the reasons")
        sign = -1.0 if maximise else 1.0
        return min(rows, key=lambda row: sign * (row.value or 0.0))

    def counts(self) -> dict[str, int]:
        """How many rows have each status."""
        return dict(Counter(row.status for row in self.rows))

    def records(self) -> list[dict[str, Any]]:
        """The flat table as one dict for each row."""
        return [self.layout.cells(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """A DataFrame with one row for each point (extra `data`)."""
        from hcmodel.report.frames import require_pandas

        pandas = require_pandas()
        return pandas.DataFrame.from_records(self.records(), columns=self.layout.columns())

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Write the flat table as CSV; without a path, return the text."""
        file = io.StringIO(newline="")
        writer = csv.DictWriter(file, self.layout.columns(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(text_cells(record) for record in self.records())
        if path is None:
            return file.getvalue()
        write_text(path, file.getvalue())
        return None

    def to_json(self) -> list[dict[str, Any]]:
        """One dict of plain numbers and lists for each row."""
        from hcmodel.report.sweeps import row_json

        return [row_json(row) for row in self.rows]

    def plot(self, path: str | None = None, column: str | None = None) -> Any:
        """A column (the value, if none is named) against the parameters (extra `plot`)."""
        from hcmodel.report.sweeps import sweep_figure

        return sweep_figure(self, path, column or "value")

    def __str__(self) -> str:
        from hcmodel.report.sweeps import sweep_text

        return sweep_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from hcmodel.report.sweeps import sweep_html

        return sweep_html(self)


def text_cells(record: Mapping[str, Any]) -> dict[str, str]:
    """Cells as text from which the same numbers are read back."""
    return {key: _text(value) for key, value in record.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)
