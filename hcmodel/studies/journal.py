"""The file of a sweep: rows are appended as they arrive, so that nothing finished is lost.

It is an ordinary CSV file. The column `study` is a fingerprint of model, data and options, so that a
resumed sweep never mixes rows of different models.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Any

from hcmodel.errors import DataError
from hcmodel.expressions.leaves import Apply, Constant, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import fingerprint
from hcmodel.records import dataclass
from hcmodel.studies.grid import Point
from hcmodel.studies.sweep_table import ERROR, NOT_RUN, Layout, SweepRow, text_cells

STUDY = "study"
# Functions of Python print with their place in memory, which says nothing about them.
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass
class Journal:
    """The file, opened for the rows to come."""

    path: Path
    layout: Layout
    study: str
    known: dict[tuple[Any, ...], SweepRow] = field(default_factory=dict)
    _file: IO[str] | None = None

    @property
    def columns(self) -> list[str]:
        return [*self.layout.columns(), STUDY]

    def read(self) -> None:
        """Take the rows that an earlier run has finished."""
        if not self.path.is_file():
            return
        with self.path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        if not rows:
            return
        if rows[0] != self.columns:
            raise DataError(
                f"{self.path}: its columns are not those of this sweep, so it cannot be resumed; choose "
                "another file, or run without resume to write it anew"
            )
        for cells in rows[1:]:
            if len(cells) != len(self.columns):
                continue  # a line that was being written when the run was killed
            named = dict(zip(self.columns, cells, strict=True))
            if named[STUDY] != self.study:
                raise DataError(
                    f"{self.path}: written by a sweep of another model, or with other data or options; "
                    "it cannot be resumed: choose another file, or run without resume to write it anew"
                )
            row = self.layout.row(0, named)
            if row.status not in (ERROR, NOT_RUN):
                self.known[Point(0, row.parameters, row.start).key()] = row

    def open(self) -> None:
        """Write the header and the rows that are known; later rows are appended."""
        self._write_all(self.known.values())
        self._file = self.path.open("a", encoding="utf-8", newline="")

    def append(self, row: SweepRow) -> None:
        """Write one row and see that it is in the file."""
        assert self._file is not None
        self._file.write(self._text([row]))
        self._file.flush()

    def finish(self, rows: Iterable[SweepRow]) -> None:
        """The whole table in the order of the grid, without points that were not run."""
        self.close()
        self._write_all([row for row in rows if row.status != NOT_RUN])

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_all(self, rows: Iterable[SweepRow]) -> None:
        """The file as a whole or not at all."""
        beside = self.path.with_name(self.path.name + ".part")
        header = io.StringIO(newline="")
        csv.writer(header, lineterminator="\n").writerow(self.columns)
        try:
            beside.write_text(header.getvalue() + self._text(rows), encoding="utf-8", newline="")
            os.replace(beside, self.path)
        except OSError as error:
            raise DataError(f"{self.path}: {error.strerror or error}") from None

    def _text(self, rows: Iterable[SweepRow]) -> str:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        for row in rows:
            writer.writerow({**text_cells(self.layout.cells(row)), STUDY: self.study})
        return text.getvalue()


def study_of(model: Model, swept: Sequence[str], options: Mapping[str, Any]) -> str:
    """A fingerprint of everything but the swept values that a row depends on."""
    digest = hashlib.sha256()
    nodes = model.nodes_and_hidden
    places = {id(node): place for place, node in enumerate(nodes)}
    for node in nodes:
        digest.update(_described(node, places, swept).encode())
    digest.update(f"{model.objective.word} {places[id(model.objective.expression)]}".encode())
    for constraint in model.constraints:
        sides = (places[id(constraint.lhs)], constraint.sense, places[id(constraint.rhs)])
        digest.update(f"{constraint.name} {sides}".encode())
    digest.update(f"{[places[id(each)] for each in model.hidden or ()]}".encode())
    digest.update(repr(sorted(options.items())).encode())
    return digest.hexdigest()[:12]


def _described(node: Expression, places: Mapping[int, int], swept: Sequence[str]) -> str:
    """A node as text; parameters that are swept without their values."""
    if isinstance(node, Apply):
        arguments = [places[id(argument)] for argument in node.args]
        return f"{node.atom.name} {arguments} {ADDRESS.sub('', repr(node.params))}\n"
    if isinstance(node, Variable):
        ends = (node.lower.tobytes(), node.upper.tobytes(), node.eigenvalue_bounds)
        start = None if node.start is None else node.start.tobytes()
        return f"{node!r} {type(node.set).__name__} {ends} {start!r}\n"
    if isinstance(node, Parameter) and (node.name in swept or node.value is None):
        return f"{node!r}\n"
    assert isinstance(node, Parameter | Constant)
    return f"{node.shape} {fingerprint(node.value)!r}\n"
