"""Units for rows and unknowns of cone programs, semidefinite ones above all, to make numbers alike.

A state that is counted in thousandths has a variance of millionths: the entries of a covariance differ
by the squares of the units, and those of a matrix inequality, with products of a plant's matrices, by
more. Backends scale rows too, but a semidefinite cone only as a whole. It stays what it is under
S → D S D for every diagonal D, however, so that each row of the *matrix* can have a unit of its own:

    r_i a_ij c_j,   r_i = d_k d_l for the entry (k, l) of S,   r_i free for equations and inequalities

is made as near to ±1 as least squares of the logarithms do; the objective and the right-hand side are a
row and a column of their own. All units are powers of two: the numbers are exactly those of the program,
and what is proven of one program is proven of the other.

A. Curtis and J. Reid, *On the automatic scaling of matrices for Gaussian elimination*, IMA Journal of
Applied Mathematics 10 (1972).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.marks import all_finite, largest, least
from hcmodel.solvers.algebra.symmetric import triangle
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp.cone_program import ConeKind, ConeProgram, ConeSolution, ConeStatus

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class BalanceRules:
    """Which programs get other units (test_balance.py: regulators in random units)."""

    # The largest over the least of the entries of A and the largest of b and q, from which on: examples
    # with some bounds of 1000 have 5e5 and are solved in the units that they have.
    spread: float = 1e6
    # The same for programs without matrices: backends scale each of their rows and unknowns by up to 1e4.
    spread_of_numbers: float = 1e9
    # The residual of a row, relative to its own terms, from which on such a program is solved again.
    row_error: float = 1e-7  # ten times what backends end with
    # The weight of small units beside entries near 1: units that no entry decides stay 1.
    weight: float = 1e-3
    # Steps of conjugate gradients, at most; test_balance.py takes some dozens.
    steps: int = 200
    # Their accuracy: units are rounded to powers of two anyway.
    accuracy: float = 1e-3


RULES = BalanceRules()


@dataclass(frozen=True, eq=False)
class Balance:
    """The program in other units: A′ = R A C, b′ = β R b, q′ = ω C q, P′ = (ω/β) C P C."""

    program: ConeProgram
    rows: FloatArray
    columns: FloatArray
    objective: float
    offset: float

    @property
    def value(self) -> float:
        """What the objective is multiplied by."""
        return self.objective * self.offset

    def solution(self, found: ConeSolution) -> ConeSolution:
        """The solution of the program in its own units from one in these."""
        primal, slack = self.columns * found.primal, found.slack / self.rows
        dual = self.rows * found.dual
        if found.status in (ConeStatus.INFEASIBLE, ConeStatus.ALMOST_INFEASIBLE):
            return replace(found, primal=primal, slack=slack, dual=dual * self.offset)
        if found.status in (ConeStatus.UNBOUNDED, ConeStatus.ALMOST_UNBOUNDED):
            return replace(
                found, primal=primal * self.objective, slack=slack * self.objective, dual=dual
            )
        return replace(
            found,
            primal=primal / self.offset,
            slack=slack / self.offset,
            dual=dual / self.objective,
        )

    def taken(self, solution: ConeSolution) -> ConeSolution:
        """A solution in the units of the program, in these."""
        return replace(
            solution,
            primal=solution.primal / self.columns * self.offset,
            slack=solution.slack * self.rows * self.offset,
            dual=solution.dual / self.rows * self.objective,
        )


def in_units(program: ConeProgram, objective: float, offset: float) -> Balance:
    """The program with its objective and its right-hand side in other units, powers of two.

    A cone stays what it is when all its entries are multiplied by a number.
    """
    own = replace(
        program,
        quadratic=(objective / offset) * program.quadratic,
        linear=objective * program.linear,
        offset=offset * program.offset,
        constant=None if program.constant is None else objective * offset * program.constant,
    )
    rows, columns = np.ones(program.offset.size), np.ones(program.linear.size)
    return Balance(own, rows, columns, objective, offset)


def is_unbalanced(program: ConeProgram) -> bool:
    """Whether a program with matrices has numbers that are far apart."""
    if not any(cone.kind is ConeKind.PSD_TRIANGLE for cone in program.cones):
        return False
    return _spread(program.matrix.data, program.offset, program.linear) >= RULES.spread


def balanced(program: ConeProgram) -> Balance | None:
    """The program in units that suit it; None where those that it has do, or it has no matrices."""
    return in_like_units(program) if is_unbalanced(program) else None


def is_rough(program: ConeProgram, solution: ConeSolution) -> bool:
    """Whether numbers are far apart, and there is no solution or a row, in its own size, does not hold.

    A backend compares what is left of the rows with the largest of all numbers: the units are to blame.
    """
    if program.is_semidefinite:
        return False
    if _spread(program.matrix.data, program.offset, program.linear) < RULES.spread_of_numbers:
        return False
    return not solution.usable or row_error(program, solution) > RULES.row_error


def row_error(program: ConeProgram, solution: ConeSolution) -> float:
    """What is left of A x + s = b, relative to the sizes of the terms of each row."""
    matrix = program.sparse
    left = matrix @ solution.primal + solution.slack - program.offset
    sizes = abs(matrix) @ np.abs(solution.primal) + np.abs(solution.slack) + np.abs(program.offset)
    return float((np.abs(left) / np.maximum(sizes, TINY)).max(initial=0.0))


def in_like_units(program: ConeProgram) -> Balance | None:
    """The program in units that make its numbers alike; None where they do not, or no row has any."""
    if all(cone.kind in (ConeKind.EXPONENTIAL, ConeKind.POWER) for cone in program.cones):
        return None
    units, count = _row_units(program.cones)
    found = _fitted(program, units)
    rows = np.exp2(units @ found[:count])
    columns, (objective, offset) = np.exp2(found[count:-2]), np.exp2(found[-2:])
    scaled = program.matrix.data * rows[program.matrix.indices]
    scaled = scaled * columns.repeat(np.diff(program.matrix.indptr))
    own = ConeProgram(
        _scaled(program.quadratic, columns, objective / offset),
        objective * columns * program.linear,
        scipy.sparse.csc_matrix(
            (scaled, program.matrix.indices, program.matrix.indptr), shape=program.matrix.shape
        ),
        offset * rows * program.offset,
        program.cones,
        None if program.constant is None else objective * offset * program.constant,
    )
    parts = [(each.matrix.data, each.offset, each.linear) for each in (own, program)]
    if not (_spread(*parts[0]) < _spread(*parts[1]) and all(map(_are_normal, *parts))):
        return None
    return Balance(own, rows, columns, float(objective), float(offset))


def _are_normal(scaled: FloatArray, before: FloatArray) -> bool:
    """Whether no digit was lost below or above the range of floating point."""
    sizes = np.abs(scaled[before != 0])
    return bool(((sizes > TINY) & (sizes < 1.0 / TINY)).all())


def _spread(entries: FloatArray, offset: FloatArray, linear: FloatArray) -> float:
    """How far apart the entries of A are, and the largest ones of b and q from these."""
    ends = [largest(np.abs(each)) for each in (offset, linear)]
    sizes = np.abs(np.concatenate([entries, ends]))
    used = sizes[sizes > 0]
    return largest(used) / least(used) if used.size and all_finite(used) else 1.0


def _row_units(cones: tuple[Any, ...]) -> tuple[scipy.sparse.csr_matrix, int]:
    """Which units the unit of each row is the product of, and how many of them there are."""
    rows: list[IndexArray] = []
    columns: list[IndexArray] = []
    row = unit = 0
    for cone in cones:
        own = np.arange(row, row + cone.size)
        row += cone.size
        if cone.kind in (ConeKind.ZERO, ConeKind.NONNEGATIVE):
            rows.append(own)
            columns.append(unit + np.arange(cone.size))
            unit += cone.size
        elif cone.kind is ConeKind.PSD_TRIANGLE:
            for side in triangle(cone.order):
                rows.append(own)
                columns.append(unit + side)
            unit += cone.order
        elif cone.kind is ConeKind.SECOND_ORDER:
            rows.append(own)
            columns.append(np.full(cone.size, unit))
            unit += 1  # other cones keep their units
    places = (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csr_matrix((np.ones(places[0].size), places), shape=(row, unit)), unit


def _fitted(program: ConeProgram, units: scipy.sparse.csr_matrix) -> FloatArray:
    """Exponents of two, whole numbers: of the units of rows, of unknowns, of objective and offset."""
    count, width = units.shape[1], program.linear.size
    used = program.matrix.data != 0
    rows, sizes = program.matrix.indices[used], np.abs(program.matrix.data[used])
    columns = np.arange(width).repeat(np.diff(program.matrix.indptr))[used]
    right, linear = np.flatnonzero(program.offset), np.flatnonzero(program.linear)
    curved = np.flatnonzero(program.quadratic.diagonal())
    objective, offset = count + width, count + width + 1
    # each equation is about one number: a unit of its row, and others
    row_of = np.concatenate([rows, right])
    above = scipy.sparse.vstack(
        [
            units[row_of],
            scipy.sparse.csr_matrix((linear.size + curved.size, count)),
        ]
    )
    first = rows.size + right.size
    second = first + linear.size
    places = [
        (np.arange(rows.size), columns, 1.0),
        (rows.size + np.arange(right.size), np.full(right.size, offset - count), 1.0),
        (first + np.arange(linear.size), linear, 1.0),
        (first + np.arange(linear.size), np.full(linear.size, objective - count), 1.0),
        (second + np.arange(curved.size), curved, 2.0),
        (second + np.arange(curved.size), np.full(curved.size, objective - count), 1.0),
        (second + np.arange(curved.size), np.full(curved.size, offset - count), -1.0),
    ]
    beside = scipy.sparse.csr_matrix(
        (
            np.concatenate([np.full(each[0].size, each[2]) for each in places]),
            (
                np.concatenate([each[0] for each in places]),
                np.concatenate([each[1] for each in places]),
            ),
        ),
        shape=(second + curved.size, width + 2),
    )
    equations = scipy.sparse.csr_matrix(scipy.sparse.hstack([above, beside]))
    numbers = [
        sizes,
        np.abs(program.offset[right]),
        np.abs(program.linear[linear]),
        np.abs(program.quadratic.diagonal()[curved]),
    ]
    target = -np.log2(np.concatenate(numbers))
    found, *_ = scipy.sparse.linalg.lsqr(
        equations,
        target,
        damp=RULES.weight**0.5,
        atol=RULES.accuracy,
        btol=RULES.accuracy,
        iter_lim=RULES.steps,
    )
    return np.asarray(np.round(found))


def _scaled(quadratic: Any, columns: FloatArray, factor: float) -> Any:
    if not quadratic.nnz:
        return quadratic
    scale = scipy.sparse.diags_array(columns)
    return scipy.sparse.csc_matrix(factor * (scale @ quadratic @ scale))
