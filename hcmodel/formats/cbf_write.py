"""Writing a cone program in the Conic Benchmark Format, version 3.

The file has the cone form of a proven model, in its hidden coordinates. CBF has no names and no quadratic
objective: comments say what the coordinates are, and a quadratic term becomes a rotated cone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.solvers.algebra.symmetric import ROOT_TWO, triangle
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram

FloatArray = NDArray[np.float64]

NAMES = {
    ConeKind.ZERO: "L=",
    ConeKind.NONNEGATIVE: "L+",
    ConeKind.SECOND_ORDER: "Q",
    ConeKind.EXPONENTIAL: "EXP",
}
# Unknowns up to which a quadratic term is factorised: a dense matrix of 128 MB.
LARGEST_QUADRATIC = 4000


def cbf_text(program: ConeProgram, comments: Sequence[str]) -> str:
    """The file of a cone program; comments come first."""
    return _Writer(program).text(comments)


class _Writer:
    def __init__(self, program: ConeProgram) -> None:
        self.matrix = program.sparse.tocsr()
        self.offset = program.offset
        self.linear = program.linear
        self.constant = program.constant or 0.0
        self.size = self.linear.size
        self.cones: list[str] = []
        self.rows: list[tuple[dict[int, float], float]] = []
        self.powers: list[float] = []
        self.matrices: list[tuple[int, list[int]]] = []
        start = 0
        for cone in program.cones:
            self._add(cone, list(range(start, start + cone.size)))
            start += cone.size
        self.objective = {j: float(v) for j, v in enumerate(self.linear) if v}
        if program.quadratic.nnz:
            self._add_quadratic(program.quadratic.toarray())

    def _row(self, number: int) -> tuple[dict[int, float], float]:
        """b − A x for one row."""
        start, stop = self.matrix.indptr[number], self.matrix.indptr[number + 1]
        pairs = zip(self.matrix.indices[start:stop], self.matrix.data[start:stop], strict=True)
        return {int(j): -float(v) for j, v in pairs if v}, float(self.offset[number])

    def _add(self, cone: ConeBlock, rows: list[int]) -> None:
        if not rows:
            return
        if cone.kind is ConeKind.PSD_TRIANGLE:
            self.matrices.append((cone.order, rows))
            return
        if cone.kind is ConeKind.EXPONENTIAL:  # CBF counts (z, y, x)
            order = [row for first in rows[0::3] for row in (first + 2, first + 1, first)]
            self.cones += ["EXP 3"] * (len(rows) // 3)
            self.rows += [self._row(row) for row in order]
            return
        if cone.kind is ConeKind.POWER:
            assert cone.exponent is not None
            self.powers.append(cone.exponent)
            self.cones += [f"@{len(self.powers) - 1}:POW 3"] * (len(rows) // 3)
        else:
            self.cones.append(f"{NAMES[cone.kind]} {len(rows)}")
        self.rows += [self._row(row) for row in rows]

    def _add_quadratic(self, quadratic: FloatArray) -> None:
        """½ xᵀP x as a new variable t with 2·t·1 >= ‖Lᵀx‖², P = L Lᵀ."""
        if self.size > LARGEST_QUADRATIC:
            raise ModelError(
                f"a quadratic term of {self.size} unknowns is too large to be written as a cone"
            )
        values, vectors = np.linalg.eigh(quadratic)
        kept = values > DATA_ROUNDING * max(float(values.max()), 0.0)
        factor = vectors[:, kept] * np.sqrt(values[kept])
        bound = self.size
        self.size += 1
        self.objective[bound] = 1.0
        self.cones.append(f"QR {2 + int(kept.sum())}")
        self.rows += [({bound: 1.0}, 0.0), ({}, 1.0)]
        for column in factor.T:
            self.rows.append(({j: float(v) for j, v in enumerate(column) if v}, 0.0))

    def text(self, comments: Sequence[str]) -> str:
        parts = ["".join(f"# {line}\n" for line in comments) + "VER\n3\n", "OBJSENSE\nMIN\n"]
        if self.powers:
            lines = [f"2\n{_number(a)}\n{_number(1 - a)}\n" for a in self.powers]
            parts.append(f"POWCONES\n{len(self.powers)} {2 * len(self.powers)}\n" + "".join(lines))
        parts.append(f"VAR\n{self.size} 1\nF {self.size}\n")
        if self.matrices:
            orders = "".join(f"{order}\n" for order, _ in self.matrices)
            parts.append(f"PSDCON\n{len(self.matrices)}\n{orders}")
        if self.rows:
            cones = "".join(f"{cone}\n" for cone in self.cones)
            parts.append(f"CON\n{len(self.rows)} {len(self.cones)}\n{cones}")
        parts.append(
            _section("OBJACOORD", [f"{j} {_number(v)}" for j, v in self.objective.items()])
        )
        if self.constant:
            parts.append(f"OBJBCOORD\n{_number(self.constant)}\n")
        inner = [
            f"{i} {j} {_number(v)}" for i, (row, _) in enumerate(self.rows) for j, v in row.items()
        ]
        parts.append(_section("ACOORD", inner))
        offsets = [f"{i} {_number(b)}" for i, (_, b) in enumerate(self.rows) if b]
        parts.append(_section("BCOORD", offsets))
        moving, fixed = self._matrix_entries()
        parts += [_section("HCOORD", moving), _section("DCOORD", fixed)]
        return "\n".join(part for part in parts if part)

    def _matrix_entries(self) -> tuple[list[str], list[str]]:
        moving, fixed = [], []
        for number, (order, rows) in enumerate(self.matrices):
            uppers, lowers = triangle(order)
            for row, i, j in zip(rows, lowers, uppers, strict=True):
                scale = 1.0 if i == j else 1 / ROOT_TWO
                own, offset = self._row(row)
                moving += [f"{number} {k} {i} {j} {_number(scale * v)}" for k, v in own.items()]
                if offset:
                    fixed.append(f"{number} {i} {j} {_number(scale * offset)}")
        return moving, fixed


def _section(name: str, lines: Sequence[str]) -> str:
    return f"{name}\n{len(lines)}\n" + "".join(f"{line}\n" for line in lines) if lines else ""


def _number(value: float) -> str:
    return repr(float(value))


def described(names: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """Comments that say which unknowns of the file are which coordinates."""
    ends = np.cumsum([0, *sizes])
    return [
        f"x{start} … x{stop - 1}: {name}" if stop - start > 1 else f"x{start}: {name}"
        for name, (start, stop) in zip(names, pairwise(int(end) for end in ends), strict=True)
    ]
