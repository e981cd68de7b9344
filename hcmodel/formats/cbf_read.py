"""Reading the Conic Benchmark Format (CBF, versions 1 to 4) as a model in the file's own variables.

    optimise  Σ⟨F, X⟩ + aᵀx + b   s.t.   Σ⟨F_i, X⟩ + a_iᵀx + b_i  in K,   H x + D  semidefinite

Friberg (2016), "The conic benchmark format". Vectors become one variable `x`, matrices `X1`, `X2`, …;
each run of equal cones becomes one constraint. Parts that hcmodel cannot express are named in the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel import atoms
from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.model import Maximize, Minimize, Model
from hcmodel.expressions.node import as_expression
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]

REFUSED = {
    "INT": "integer variables (section INT); hcmodel has continuous variables only",
    "CHANGE": "several problems in one file (section CHANGE); save each to its own file",
}
NO_CONE = {
    "EXP*": "the dual exponential cone (EXP*)",
    "POW*": "dual power cones (POW*)",
    "POW*CONES": "dual power cones (POW*CONES)",
}


@dataclass
class _File:
    """The sections of a file, as they stand there."""

    name: str
    version: int = 0
    sense: str = "MIN"
    variables: list[tuple[str, int]] = field(default_factory=list)
    matrices: list[int] = field(default_factory=list)
    rows: list[tuple[str, int]] = field(default_factory=list)
    matrix_rows: list[int] = field(default_factory=list)
    powers: list[FloatArray] = field(default_factory=list)
    entries: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(length for _, length in self.variables)

    @property
    def row_count(self) -> int:
        return sum(length for _, length in self.rows)


# Sections of entries: how many indices stand before the number.
ENTRIES = {
    "OBJFCOORD": 3,
    "OBJACOORD": 1,
    "FCOORD": 4,
    "ACOORD": 2,
    "BCOORD": 1,
    "HCOORD": 4,
    "DCOORD": 3,
}


class _Lines:
    """The lines of a file without comments, with their numbers for error messages."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines = [
            (number, line.partition("#")[0].strip())
            for number, line in enumerate(text.splitlines(), 1)
        ]
        self._next = 0
        self.number = 0

    def more(self) -> str | None:
        """The next line with something on it; None at the end."""
        while self._next < len(self._lines):
            self.number, line = self._lines[self._next]
            self._next += 1
            if line:
                return line
        return None

    def words(self, count: int, what: str) -> list[str]:
        line = self.more()
        words = [] if line is None else line.split()
        if len(words) != count:
            raise self.error(f"{what}: {count} entries are expected in a line, not '{line}'")
        return words

    def integers(self, count: int, what: str) -> list[int]:
        words = self.words(count, what)
        try:
            return [int(word) for word in words]
        except ValueError:
            raise self.error(f"{what}: '{' '.join(words)}' is not a list of integers") from None

    def error(self, message: str) -> ModelError:
        return ModelError(f"{self.name}:{self.number}: {message}")


def read_cbf(path: Path, text: str) -> Model:
    """The model of a file."""
    return _Builder(_parsed(_Lines(text, str(path)))).model()


def _parsed(lines: _Lines) -> _File:
    file = _File(lines.name)
    while (word := lines.more()) is not None:
        if word in REFUSED:
            raise lines.error(f"hcmodel cannot read {REFUSED[word]}")
        if word in NO_CONE:
            raise lines.error(f"hcmodel cannot read {NO_CONE[word]}")
        if word in ENTRIES:
            file.entries[word] = _entries(lines, word)
        elif word in _SECTIONS:
            _SECTIONS[word](lines, file)
        else:
            known = ", ".join((*_SECTIONS, *ENTRIES))
            raise lines.error(f"unknown section '{word}'; those of CBF that are read: {known}")
    if not file.version:
        raise ModelError(f"{lines.name}: this is not a CBF file: it has no section VER")
    return file


def _read_version(lines: _Lines, file: _File) -> None:
    (file.version,) = lines.integers(1, "VER")
    if not 1 <= file.version <= 4:
        raise lines.error(f"CBF version {file.version} is not known; versions 1 to 4 are")


def _read_sense(lines: _Lines, file: _File) -> None:
    (file.sense,) = lines.words(1, "OBJSENSE")
    if file.sense not in ("MIN", "MAX"):
        raise lines.error(f"OBJSENSE is MIN or MAX, not '{file.sense}'")


def _read_matrices(lines: _Lines, file: _File) -> None:
    (count,) = lines.integers(1, "PSDVAR")
    file.matrices = [lines.integers(1, "PSDVAR")[0] for _ in range(count)]


def _read_matrix_rows(lines: _Lines, file: _File) -> None:
    (count,) = lines.integers(1, "PSDCON")
    file.matrix_rows = [lines.integers(1, "PSDCON")[0] for _ in range(count)]


def _read_variables(lines: _Lines, file: _File) -> None:
    file.variables = _cones(lines, "VAR")


def _read_rows(lines: _Lines, file: _File) -> None:
    file.rows = _cones(lines, "CON")


def _read_powers(lines: _Lines, file: _File) -> None:
    count, _ = lines.integers(2, "POWCONES")
    for _ in range(count):
        (length,) = lines.integers(1, "POWCONES")
        file.powers.append(np.array([_number(lines, "POWCONES") for _ in range(length)]))


_SECTIONS = {
    "VER": _read_version,
    "OBJSENSE": _read_sense,
    "PSDVAR": _read_matrices,
    "VAR": _read_variables,
    "PSDCON": _read_matrix_rows,
    "CON": _read_rows,
    "POWCONES": _read_powers,
}


def _number(lines: _Lines, what: str) -> float:
    (word,) = lines.words(1, what)
    return _real(lines, word, what)


def _real(lines: _Lines, word: str, what: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise lines.error(f"{what}: '{word}' is not a number") from None


def _cones(lines: _Lines, what: str) -> list[tuple[str, int]]:
    """The cones of VAR or CON, whose sizes have to add up."""
    total, count = lines.integers(2, what)
    found = []
    for _ in range(count):
        kind, size = lines.words(2, what)
        if not size.isdigit():
            raise lines.error(f"{what}: '{size}' is not the size of a cone")
        plain = "POW*" if kind.endswith(":POW*") else kind
        if plain in NO_CONE:
            raise lines.error(f"hcmodel cannot read {NO_CONE[plain]}")
        if kind not in ("F", "L+", "L-", "L=", "Q", "QR", "EXP") and not kind.endswith(":POW"):
            raise lines.error(f"unknown cone '{kind}'; known: F, L+, L-, L=, Q, QR, EXP, @k:POW")
        found.append((kind, int(size)))
    if sum(size for _, size in found) != total:
        raise lines.error(f"{what}: the cones do not add up to {total} entries")
    return found


def _entries(lines: _Lines, what: str) -> FloatArray:
    (count,) = lines.integers(1, what)
    width = ENTRIES[what] + 1
    found = np.empty((count, width))
    for row in range(count):
        words = lines.words(width, what)
        found[row] = [_real(lines, word, what) for word in words]
    return found


def _read_objective_constant(lines: _Lines, file: _File) -> None:
    file.entries["OBJBCOORD"] = np.array([[_number(lines, "OBJBCOORD")]])


_SECTIONS["OBJBCOORD"] = _read_objective_constant


class _Builder:
    """The model of the sections of a file."""

    def __init__(self, file: _File) -> None:
        self.file = file
        self.x = self._vector() if file.size else None
        self.matrices = [
            Variable((order, order), name=f"X{number}", PSD=True)
            for number, order in enumerate(file.matrices, 1)
        ]

    def _vector(self) -> Variable:
        lower, upper = np.full(self.file.size, -np.inf), np.full(self.file.size, np.inf)
        for kind, place in _places(self.file.variables):
            if kind in ("L+", "L="):
                lower[place] = 0.0
            if kind in ("L-", "L="):
                upper[place] = 0.0
        bounded = np.isfinite(lower).any() or np.isfinite(upper).any()
        return Variable(self.file.size, name="x", bounds=(lower, upper) if bounded else None)

    def model(self) -> Model:
        objective = self._objective()
        constraints = [*self._cone_rows(), *self._matrix_rows()]
        kind = Minimize if self.file.sense == "MIN" else Maximize
        return Model.checked(kind(objective), constraints)

    def _checked(self, what: str, columns: list[int]) -> FloatArray:
        """The entries of a section, if their indices are in range."""
        entries = self.file.entries.get(what)
        if entries is None:
            return np.zeros((0, len(columns) + 1))
        for column, limit in enumerate(columns):
            worst = entries[:, column]
            if worst.size and (worst.min() < 0 or worst.max() >= limit):
                raise DataError(
                    f"{self.file.name}: {what} has the index {int(worst.max())} where indices run "
                    f"from 0 to {limit - 1}"
                )
        return entries

    def _objective(self) -> Expression:
        file = self.file
        total = as_expression(float(file.entries.get("OBJBCOORD", np.zeros((1, 1)))[0, 0]))
        linear = np.zeros(file.size)
        for column, number in self._checked("OBJACOORD", [file.size]):
            linear[int(column)] += number
        if self.x is not None and linear.any():
            total = total + linear @ self.x
        order = max(file.matrices, default=0)
        entries = self._checked("OBJFCOORD", [len(file.matrices), order, order])
        for number, variable in enumerate(self.matrices):
            own = entries[entries[:, 0] == number]
            if own.size:
                weights = _symmetric(own[:, 1:], variable.shape[0])
                total = total + atoms.sum(weights * variable)
        return total

    def _cone_rows(self) -> Iterator[Constraint]:
        file, count = self.file, self.file.row_count
        entries = self._checked("ACOORD", [count, file.size])
        places = (entries[:, 0].astype(int), entries[:, 1].astype(int))
        self._matrix = scipy.sparse.csr_array((entries[:, 2], places), shape=(count, file.size))
        self._offset = np.zeros(count)
        for row, number in self._checked("BCOORD", [count]):
            self._offset[int(row)] += number
        order = max(file.matrices, default=0)
        self._inner = self._checked("FCOORD", [count, len(file.matrices), order, order])
        for kind, place in _joined(_places(file.variables)):
            if kind in ("Q", "QR", "EXP") or kind.endswith(":POW"):
                assert self.x is not None
                yield from self._in_cone(kind, [self.x[place]])
        for number, (kind, place) in enumerate(_joined(_places(file.rows)), 1):
            for part, constraint in enumerate(self._in_cone(kind, place)):
                yield constraint.named(f"con{number}" if part == 0 else f"con{number}.{part}")

    def _affine(self, rows: Any) -> Expression:
        """a_iᵀx + Σ⟨F_i, X⟩ + b_i for some rows."""
        if isinstance(rows, list):
            return rows[0]  # type: ignore[no-any-return]
        index = np.arange(self.file.row_count)[rows]
        total: Expression = as_expression(self._offset[index])
        matrix = self._matrix[index]
        if self.x is not None and matrix.nnz:
            total = (
                matrix @ self.x + self._offset[index]
                if self._offset[index].any()
                else matrix @ self.x
            )
        own = self._inner[np.isin(self._inner[:, 0], index)]
        for number, variable in enumerate(self.matrices):
            part = own[own[:, 1] == number]
            if part.size:
                weights = [
                    _symmetric(part[part[:, 0] == row][:, 2:], variable.shape[0]).reshape(-1)
                    for row in index
                ]
                flat = atoms.reshape(variable, (variable.size,))
                total = total + np.array(weights) @ flat
        return total

    def _in_cone(self, kind: str, rows: Any) -> Iterator[Constraint]:
        if kind == "F":
            return
        if kind in ("L+", "L-", "L="):
            side = self._affine(rows)
            zero = as_expression(0.0)
            sense = {"L+": ">=", "L-": "<=", "L=": "=="}[kind]
            yield Constraint(side, sense, zero)
        elif kind == "EXP":
            yield from self._exponential(rows)
        elif kind == "Q":
            part = self._affine(rows)
            yield Constraint(atoms.norm(part[1:]), "<=", part[0])
        elif kind == "QR":
            part = self._affine(rows)
            stacked = atoms.hstack([np.sqrt(2.0) * part[2:], part[0] - part[1]])
            yield Constraint(atoms.norm(stacked), "<=", part[0] + part[1])
            yield Constraint(part[0] + part[1], ">=", as_expression(0.0))
        else:
            yield from self._power(kind, rows)

    def _exponential(self, rows: Any) -> Iterator[Constraint]:
        """Triples (t, s, r) with t >= s·exp(r/s): exponentials where all s are constant."""
        whole = self._affine(rows)
        if whole.size % 3:
            raise ModelError(f"{self.file.name}: exponential cones have three rows each")
        t, s, r = whole[0::3], whole[1::3], whole[2::3]
        if not isinstance(rows, list):
            second = np.arange(self.file.row_count)[rows][1::3]
            inner = np.isin(second, self._inner[:, 0])
            if (
                not self._matrix[second].nnz
                and not inner.any()
                and (self._offset[second] > 0).all()
            ):
                scale = self._offset[second]
                ones = bool((scale == 1).all())
                first = atoms.exp(r) if ones else scale * atoms.exp(r / scale)
                yield Constraint(first, "<=", t)
                return
        yield Constraint(atoms.rel_entr(s, t), "<=", -r)

    def _power(self, kind: str, rows: Any) -> Iterator[Constraint]:
        """Π x_i^(α_i/Σα) >= ‖z‖ for @k:POW."""
        number = kind[1:].partition(":")[0]
        if not number.isdigit() or int(number) >= len(self.file.powers):
            raise ModelError(f"{self.file.name}: the cone {kind} has no exponents in POWCONES")
        weights = self.file.powers[int(number)]
        part, count = self._affine(rows), weights.size
        bases, rest = part[:count], part[count:]
        tail = atoms.abs(rest[0]) if rest.size == 1 else atoms.norm(rest)
        shares = weights / weights.sum()
        product = atoms.geo_mean(bases, shares.tolist())
        yield Constraint(tail, "<=", product)
        yield Constraint(bases, ">=", as_expression(0.0))

    def _matrix_rows(self) -> Iterator[Constraint]:
        file, orders = self.file, self.file.matrix_rows
        top = max(orders, default=0)
        inner = self._checked("HCOORD", [len(orders), file.size, top, top])
        fixed = self._checked("DCOORD", [len(orders), top, top])
        for number, order in enumerate(orders):
            own, constant = inner[inner[:, 0] == number], fixed[fixed[:, 0] == number]
            total: Expression = as_expression(_symmetric(constant[:, 1:], order))
            if own.size and self.x is not None:
                total = total + self._pencil(own, order)
            zero = as_expression(0.0)
            yield Constraint(total, ">>", zero).named(f"psd{number + 1}")

    def _pencil(self, entries: FloatArray, order: int) -> Expression:
        """Σ_j x_j H_j as a matrix."""
        assert self.x is not None
        rows, columns, which = [], [], []
        numbers = []
        for _, column, i, j, number in entries:
            for a, b in {(int(i), int(j)), (int(j), int(i))}:
                rows.append(a)
                columns.append(b)
                which.append(int(column))
                numbers.append(number)
        flat = np.array(rows) * order + np.array(columns)
        matrix = scipy.sparse.csr_array((numbers, (flat, which)), shape=(order**2, self.file.size))
        whole = atoms.reshape(matrix @ self.x, (order, order))
        return (whole + whole.T) / 2  # which is known to be symmetric


def _symmetric(entries: FloatArray, order: int) -> FloatArray:
    """A symmetric matrix from entries (i, j, number) of one triangle."""
    matrix = np.zeros((order, order))
    for i, j, number in entries:
        matrix[int(i), int(j)] += number
        if i != j:
            matrix[int(j), int(i)] += number
    return matrix


def _places(cones: list[tuple[str, int]]) -> list[tuple[str, slice]]:
    found, start = [], 0
    for kind, size in cones:
        found.append((kind, slice(start, start + size)))
        start += size
    return found


def _joined(places: list[tuple[str, slice]]) -> list[tuple[str, slice]]:
    """Cones that follow each other and are entry by entry, or triples, as one."""
    found: list[tuple[str, slice]] = []
    for kind, place in places:
        if found and found[-1][0] == kind and kind in ("L+", "L-", "L=", "F", "EXP"):
            found[-1] = (kind, slice(found[-1][1].start, place.stop))
        else:
            found.append((kind, place))
    return found
