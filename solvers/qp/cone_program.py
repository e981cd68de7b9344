"""Cone programs and their solutions, in terms that no backend owns.

    minimise  ½ xᵀP x + qᵀx + c   s.t.   A x + s = b,   s in K = K_1 × … × K_p

    dual:     maximise  −½ xᵀP x − bᵀz + c   s.t.   P x + Aᵀz + q = 0,   z in K*

The cones and the order of their entries are Clarabel's (Goulart and Chen 2024, section 1): the
exponential cone holds (x, y, z) with y·exp(x/y) <= z, y > 0, and the PSD cone holds the upper triangle of
a symmetric matrix, column by column, with its off-diagonal entries multiplied by √2.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp.columns import Columns

FloatArray = NDArray[np.float64]


class ConeKind(Enum):
    """The value is the definition of the cone."""

    ZERO = "s = 0"
    NONNEGATIVE = "s >= 0"
    SECOND_ORDER = "‖s[1:]‖ <= s[0]"
    EXPONENTIAL = "s[1]·exp(s[0]/s[1]) <= s[2], s[1] > 0"
    POWER = "s[0]^α · s[1]^(1−α) >= |s[2]|, s[0] >= 0, s[1] >= 0"
    PSD_TRIANGLE = "the symmetric matrix with the scaled upper triangle s is positive semidefinite"


@dataclass(frozen=True)
class ConeBlock:
    """`size` rows of s in one cone; `exponent` is α of a power cone.

    A block of 3k rows of kind `EXPONENTIAL` or `POWER` is k cones of three rows each.
    """

    kind: ConeKind
    size: int
    exponent: float | None = None

    def __post_init__(self) -> None:
        if self.kind in (ConeKind.EXPONENTIAL, ConeKind.POWER) and self.size % 3:
            raise ValueError(f"{self.size} rows are not cones of three rows each")
        if (self.kind is ConeKind.POWER) != (self.exponent is not None):
            raise ValueError("a power cone has an exponent, and no other cone has one")
        if self.exponent is not None and not 0 < self.exponent < 1:
            raise ValueError(f"the exponent of a power cone is in (0, 1), not {self.exponent}")
        order = self.order
        if self.kind is ConeKind.PSD_TRIANGLE and order * (order + 1) // 2 != self.size:
            raise ValueError(f"{self.size} is not the number of entries of a triangle")

    @property
    def order(self) -> int:
        """The order of the matrix whose triangle has `size` entries."""
        return round(float(np.sqrt(8 * self.size + 1) - 1) / 2)


@dataclass(frozen=True)
class ConeProgram:
    """`quadratic` is P as a whole symmetric matrix, a csc_matrix; `matrix` is A.

    A is a csc_matrix or has the same parts as `Columns`, which take less time to make.
    `constant` is c, which no solver looks at; None where it is not known.
    """

    quadratic: scipy.sparse.csc_matrix
    linear: FloatArray
    matrix: Any
    offset: FloatArray
    cones: tuple[ConeBlock, ...]
    constant: float | None = None

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        shapes = (self.quadratic.shape, self.linear.shape, self.offset.shape)
        if shapes != ((columns, columns), (columns,), (rows,)):
            raise ValueError(f"A has shape {self.matrix.shape}, but P, q, b have shapes {shapes}")
        if sum(cone.size for cone in self.cones) != rows:
            raise ValueError(f"the cones do not add up to the {rows} rows of A")

    @cached_property
    def sparse(self) -> scipy.sparse.csc_matrix:
        """A as a matrix of scipy."""
        return self.matrix.sparse() if isinstance(self.matrix, Columns) else self.matrix

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The column of each entry of A, in the order in which these are stored."""
        return np.arange(self.linear.size).repeat(np.diff(self.matrix.indptr))

    @cached_property
    def cone_of_row(self) -> NDArray[np.intp]:
        """The first row of the cone that each row belongs to; numbers have a cone each."""
        found, first = np.arange(self.offset.size), 0
        for cone in self.cones:
            own = slice(first, first + cone.size)
            if cone.kind in (ConeKind.EXPONENTIAL, ConeKind.POWER):
                found[own] -= np.arange(cone.size) % 3
            elif cone.kind not in (ConeKind.ZERO, ConeKind.NONNEGATIVE):
                found[own] = first
            first = own.stop
        return found

    def pull(self, z: FloatArray) -> FloatArray:
        """Aᵀz; a transpose of A that scipy makes for it takes longer than the product."""
        products = self.matrix.data * z[self.matrix.indices]
        return np.asarray(np.bincount(self.columns, products, self.linear.size), dtype=float)

    def pulled_sizes(self, z: FloatArray) -> FloatArray:
        """|A|ᵀ|z|."""
        products = np.abs(self.matrix.data * z[self.matrix.indices])
        return np.asarray(np.bincount(self.columns, products, self.linear.size), dtype=float)

    @property
    def is_linear(self) -> bool:
        """Whether this is a linear program: no quadratic part, and no cone but ZERO and NONNEGATIVE."""
        kinds = {cone.kind for cone in self.cones}
        return not self.quadratic.nnz and kinds <= {ConeKind.ZERO, ConeKind.NONNEGATIVE}

    @cached_property
    def is_semidefinite(self) -> bool:
        """Whether matrices are among the cones, and no cone is there that is not its own dual."""
        kinds = {cone.kind for cone in self.cones}
        return ConeKind.PSD_TRIANGLE in kinds and not kinds & {ConeKind.EXPONENTIAL, ConeKind.POWER}


def without_rows(program: ConeProgram, dropped: NDArray[np.bool_]) -> ConeProgram:
    """The program without some rows; of cones other than ZERO and NONNEGATIVE all or none."""
    return ConeProgram(
        program.quadratic,
        program.linear,
        _rows_left(program.matrix, ~dropped).sparse(),
        program.offset[~dropped],
        cones_left(program.cones, dropped),
        program.constant,
    )


def within(program: ConeProgram, entries: NDArray[np.intp], size: float) -> ConeProgram:
    """The program with rows after its own that keep some unknowns between −size and size."""
    chosen = scipy.sparse.eye_array(program.linear.size, format="csr")[entries]
    return replace(
        program,
        matrix=scipy.sparse.csc_matrix(scipy.sparse.vstack([program.sparse, chosen, -chosen])),
        offset=np.append(program.offset, np.full(2 * entries.size, size)),
        cones=(*program.cones, ConeBlock(ConeKind.NONNEGATIVE, 2 * entries.size)),
    )


def cones_left(cones: Iterable[ConeBlock], dropped: NDArray[np.bool_]) -> tuple[ConeBlock, ...]:
    """The cones without rows that are dropped: of other cones than those of numbers, whole ones."""
    found, first = [], 0
    for cone in cones:
        own = dropped[first : first + cone.size]
        stay = cone.size - int(np.count_nonzero(own))
        first += cone.size
        if stay == cone.size:
            found.append(cone)
        elif stay and (
            cone.kind in (ConeKind.ZERO, ConeKind.NONNEGATIVE) or _whole_triples(cone, own)
        ):
            found.append(replace(cone, size=stay))
        elif stay:
            raise ValueError(f"{stay} of {cone.size} rows of a cone of kind {cone.kind.name}")
    return tuple(found)


def _rows_left(matrix: Any, kept: NDArray[np.bool_]) -> Columns:
    """A matrix in compressed columns without the other rows."""
    own, numbers = kept[matrix.indices], kept.cumsum()
    starts = np.concatenate([[0], own.cumsum()])[matrix.indptr]
    indices = (numbers - 1)[matrix.indices[own]]
    return Columns(matrix.data[own], indices, starts, (int(numbers[-1]), matrix.shape[1]))


def _whole_triples(cone: ConeBlock, dropped: NDArray[np.bool_]) -> bool:
    """Whether of several cones of three rows each some are dropped whole."""
    if cone.kind not in (ConeKind.EXPONENTIAL, ConeKind.POWER):
        return False
    triples = dropped.reshape(-1, 3)
    return bool((triples.all(axis=1) == triples.any(axis=1)).all())


class _Endless:
    """Unknowns that lead into all their cones where they grow, or fall, whatever the other unknowns are.

    So does t in ‖s‖ <= t, in t >= a and t >= b, or in exp(s) <= t. The square s² <= t is the norm
    ‖(2 s, t − 1)‖ <= t + 1: the difference of two rows is a positive number, and their sum grows.
    """

    def __init__(self, program: ConeProgram) -> None:
        self.program = program
        kinds = [(cone.kind, cone.size) for cone in program.cones]
        self._single = np.concatenate(
            [np.full(size, kind is ConeKind.NONNEGATIVE) for kind, size in kinds], dtype=bool
        )
        starts = np.cumsum([0, *(size for _, size in kinds)])[:-1]
        self._tops = np.zeros(self._single.size, dtype=bool)
        self._thirds = np.zeros(self._single.size, dtype=bool)
        for (kind, size), first in zip(kinds, starts.tolist(), strict=True):
            self._tops[first] = kind is ConeKind.SECOND_ORDER
            if kind is ConeKind.EXPONENTIAL:
                self._thirds[first + 2 : first + size : 3] = True

    def rows(self, live: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Rows of live entries with such unknowns, among those that are wanted."""
        program, matrix = self.program, self.program.matrix
        rows, columns, width = matrix.indices, program.columns, program.linear.size
        entries = np.bincount(rows[live], minlength=self._single.size)
        thirds = self._thirds[rows]
        thirds[thirds] &= (entries[rows[thirds] - 1] == 0) & (program.offset[rows[thirds] - 1] > 0)
        grows = live & (self._single[rows] | self._tops[rows] | thirds)
        squared = self._squared(live, entries)
        by_column = np.bincount(columns[live & ~squared], minlength=width)
        endless = wanted & (by_column > 0)
        ups = np.bincount(columns[grows & (matrix.data < 0)], minlength=width) == by_column
        downs = np.bincount(columns[grows & (matrix.data > 0)], minlength=width) == by_column
        return np.asarray(rows[live & (endless & (ups | downs))[columns]])

    def _squared(self, live: NDArray[np.bool_], entries: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Entries of a cone of the second order beside one of the same size in its first row.

        Both are the only ones of their rows, and the row that does not grow with the two is positive.
        """
        matrix, offset = self.program.matrix, self.program.offset
        rows, columns = matrix.indices, self.program.columns
        found, data = np.zeros(rows.size, dtype=bool), matrix.data
        lone = np.flatnonzero(live & (entries[rows] == 1))
        keys = self.program.cone_of_row[rows[lone]] * self.program.linear.size + columns[lone]
        tops, others = lone[self._tops[rows[lone]]], lone[~self._tops[rows[lone]]]
        if not tops.size:
            return found
        is_top = self._tops[rows[lone]]
        order = np.argsort(keys[is_top])
        at = np.searchsorted(keys[is_top][order], keys[~is_top])
        paired = at < tops.size
        paired[paired] = keys[is_top][order][at[paired]] == keys[~is_top][paired]
        others, beside = others[paired], tops[order][at[paired]]
        rest = offset[rows[beside]] - np.sign(data[beside] * data[others]) * offset[rows[others]]
        alone = np.bincount(beside, minlength=rows.size)[beside] == 1
        found[others] = alone & (np.abs(data[others]) == np.abs(data[beside])) & (rest > 0)
        return found


def without_idle(
    program: ConeProgram, dropped: NDArray[np.bool_], own: int
) -> tuple[ConeProgram, NDArray[np.bool_]]:
    """The program without some rows and what then says nothing, and the mask of the rows that are left.

    A cone says nothing where an unknown that nothing limits leads into it (`_Endless`). Unknowns that
    stand nowhere are left out too, but for the first `own`. Clarabel takes its matrix, in `Columns`:
    searches for a conflict make many of them.
    """
    matrix, width = program.matrix, program.linear.size
    rows, columns = matrix.indices, program.columns
    needed = (np.arange(width) < own) | (program.linear != 0)
    needed[program.quadratic.indices] = True
    endless, dropped = _Endless(program), dropped.copy()
    while True:
        live = ~dropped[rows]
        by_column = np.bincount(columns[live], minlength=width)
        idle = endless.rows(live, ~needed)
        if not idle.size:
            break
        dropped |= np.isin(program.cone_of_row, program.cone_of_row[idle])
    kept, left = (needed | (by_column > 0)).nonzero()[0], ~dropped
    smaller, quadratic = _rows_left(matrix, left), program.quadratic
    if kept.size < width:
        starts = np.append(smaller.indptr[kept], smaller.nnz)  # the others are empty
        smaller = Columns(smaller.data, smaller.indices, starts, (smaller.shape[0], kept.size))
        quadratic = quadratic[kept][:, kept] if quadratic.nnz else no_quadratic(kept.size)
    cones = cones_left(program.cones, dropped)
    linear, offset = program.linear[kept], program.offset[left]
    return ConeProgram(quadratic, linear, smaller, offset, cones, program.constant), left


def cone_program(
    linear: FloatArray,
    matrix: Any,
    offset: FloatArray,
    cones: Iterable[ConeBlock],
    quadratic: Any = None,
    constant: float | None = None,
) -> ConeProgram:
    """A cone program from dense or sparse matrices; `quadratic` is the whole matrix P or None."""
    return ConeProgram(
        no_quadratic(len(linear)) if quadratic is None else _columns(quadratic),
        np.asarray(linear, dtype=float),
        _columns(matrix),
        np.asarray(offset, dtype=float),
        tuple(cones),
        constant,
    )


def _columns(matrix: Any) -> scipy.sparse.csc_matrix:
    """The matrix in compressed columns; itself where it is, since it is never changed."""
    if type(matrix) is scipy.sparse.csc_matrix and matrix.dtype == float:
        return matrix
    return scipy.sparse.csc_matrix(matrix, dtype=float)


@functools.lru_cache(maxsize=16)
def no_quadratic(size: int) -> scipy.sparse.csc_matrix:
    """P of a program without a quadratic part; series of small programs have many of them."""
    return scipy.sparse.csc_matrix((size, size), dtype=float)


class ConeStatus(Enum):
    SOLVED = "solved"
    ALMOST_SOLVED = "solved to reduced accuracy"
    INFEASIBLE = "no x satisfies the rows; z is a certificate"
    ALMOST_INFEASIBLE = "no x seems to satisfy the rows; z is an inaccurate certificate"
    UNBOUNDED = "the objective has no minimum; x is a certificate"
    ALMOST_UNBOUNDED = "the objective seems to have no minimum; x is an inaccurate certificate"
    TIME_LIMIT = "the time limit was reached"
    ITERATION_LIMIT = "the iteration limit was reached"
    FAILED = "the backend found no answer"


@dataclass(frozen=True)
class ConeSolution:
    """Primal x and s, dual z.

    `INFEASIBLE`: z is a certificate (Farkas), Aᵀz = 0, z in K*, bᵀz = −1.
    `UNBOUNDED`: x is a direction of recession, P x = 0, −A x in K, qᵀx = −1, and s = −A x.
    `beside`: x and s are those of a point next to the minimum, which z belongs to (`nonsingular`).
    """

    status: ConeStatus
    primal: FloatArray
    slack: FloatArray
    dual: FloatArray
    iterations: int = 0
    beside: bool = False

    @property
    def usable(self) -> bool:
        return self.status in (ConeStatus.SOLVED, ConeStatus.ALMOST_SOLVED)

    @property
    def is_direction(self) -> bool:
        """Whether the primal is a direction, for which the right-hand side does not count."""
        return self.status in (ConeStatus.UNBOUNDED, ConeStatus.ALMOST_UNBOUNDED)


@dataclass(frozen=True)
class ConeResiduals:
    """How far the solution is from what its status says, in the units of the data.

    For `INFEASIBLE` and `UNBOUNDED` the residuals are those of the certificate, scaled to bᵀz = −1 or
    qᵀx = −1 (infinite if the sign is wrong). Otherwise they are those of the optimality conditions.
    """

    primal: float  # |A x + s − b| and the violation of s in K
    dual: float  # |P x + Aᵀz + q| and the violation of z in K*
    gap: float  # |xᵀP x + qᵀx + bᵀz|

    @property
    def largest(self) -> float:
        return max(self.primal, self.dual, self.gap)


def cone_residuals(program: ConeProgram, solution: ConeSolution) -> ConeResiduals:
    """The residuals of a solution or a certificate from the data, not from a backend's word."""
    x, s, z = solution.primal, solution.slack, solution.dual
    if solution.status in (ConeStatus.INFEASIBLE, ConeStatus.ALMOST_INFEASIBLE):
        value = -float(program.offset @ z)
        dual = max(_size(program.pull(z)), cone_violation(program.cones, z, dual=True))
        return ConeResiduals(0.0, dual / abs(value), 0.0) if value > 0 else _wrong_sign()
    if solution.status in (ConeStatus.UNBOUNDED, ConeStatus.ALMOST_UNBOUNDED):
        value = -float(program.linear @ x)
        direction = -(program.sparse @ x)
        primal = max(_size(program.quadratic @ x), cone_violation(program.cones, direction))
        return ConeResiduals(primal / abs(value), 0.0, 0.0) if value > 0 else _wrong_sign()
    curved = program.quadratic @ x
    return ConeResiduals(
        max(
            _size(program.sparse @ x + s - program.offset),
            cone_violation(program.cones, s),
        ),
        max(
            _size(curved + program.pull(z) + program.linear),
            cone_violation(program.cones, z, dual=True),
        ),
        float(abs(x @ curved + program.linear @ x + program.offset @ z)),
    )


def is_accurate(program: ConeProgram, solution: ConeSolution, tolerance: float) -> bool:
    """Whether the residuals are small beside the terms that cancel in them."""
    found = cone_residuals(program, solution)
    x, z = np.abs(solution.primal), np.abs(solution.dual)
    matrix, quadratic = abs(program.sparse), abs(program.quadratic)
    slopes = matrix.T @ z + quadratic @ x + np.abs(program.linear)
    rows = matrix @ x + np.abs(program.offset)
    value = float(x @ (quadratic @ x) + np.abs(program.linear) @ x + np.abs(program.offset) @ z)
    sizes = [float(np.max(slopes, initial=TINY)), float(np.max(rows, initial=TINY)), value]
    errors = found.dual, found.primal, found.gap
    return all(error <= tolerance * size for error, size in zip(errors, sizes, strict=True))


def _wrong_sign() -> ConeResiduals:
    return ConeResiduals(np.inf, np.inf, np.inf)


def _size(vector: FloatArray) -> float:
    return float(np.max(np.abs(vector), initial=0.0))


# ---- violation of the cones


def cone_violation(cones: Iterable[ConeBlock], vector: FloatArray, *, dual: bool = False) -> float:
    """The largest amount by which an entry of the vector has to change to satisfy its cone's inequality.

    It is 0 for a member of the cone, and at least the distance to the cone divided by √3 otherwise.
    """
    worst, first = 0.0, 0
    for cone in cones:
        entries = vector[first : first + cone.size]
        first += cone.size
        if entries.size:
            worst = max(worst, _violation(cone, entries, dual))
    return worst


def _violation(cone: ConeBlock, entries: FloatArray, dual: bool) -> float:
    if cone.kind is ConeKind.ZERO:
        return 0.0 if dual else _size(entries)
    if cone.kind is ConeKind.NONNEGATIVE:
        return max(0.0, -float(entries.min()))
    if cone.kind is ConeKind.SECOND_ORDER:
        return max(0.0, float(np.linalg.norm(entries[1:]) - entries[0]))
    if cone.kind is ConeKind.PSD_TRIANGLE:
        return max(0.0, -float(np.linalg.eigvalsh(to_matrix(entries))[0]))
    triples = entries.reshape(-1, 3).T
    if cone.kind is ConeKind.POWER:
        assert cone.exponent is not None
        amounts = _power_violation(triples, cone.exponent, dual)
    else:
        with np.errstate(all="ignore"):
            amounts = (_dual_exponential_violation if dual else _exponential_violation)(triples)
    return max(0.0, float(amounts.max()))


def _power_violation(triples: FloatArray, exponent: float, dual: bool) -> FloatArray:
    """The dual cone is (u/α)^α (v/(1−α))^(1−α) >= |w|."""
    scale = np.array([[exponent], [1 - exponent]]) if dual else np.ones((2, 1))
    first, second = np.maximum(triples[:2], 0.0) / scale
    reach = first**exponent * second ** (1 - exponent)
    return np.asarray(np.maximum(-triples[:2].min(axis=0), np.abs(triples[2]) - reach))


def _exponential_violation(triples: FloatArray) -> FloatArray:
    """Either z has to grow to y·exp(x/y), or x has to fall to y·log(z/y); the smaller one counts."""
    x, y, z = triples
    grown = y * np.exp(x / y) - z
    fallen = np.where(z > 0, x - y * np.log(z / y), np.inf)
    edge = np.maximum(np.maximum(-y, x), -z)  # the closure holds x <= 0, y = 0, z >= 0
    return np.asarray(np.where(y > 0, np.fmin(grown, fallen), edge))


def _dual_exponential_violation(triples: FloatArray) -> FloatArray:
    """The dual cone is −u·exp(v/u) <= e·w, u < 0, closed with u = 0, v >= 0, w >= 0."""
    u, v, w = triples
    grown = -u * np.exp(v / u - 1) - w
    fallen = np.where(w > 0, u * (1 + np.log(w / -u)) - v, np.inf)
    edge = np.maximum(np.maximum(u, -v), -w)
    return np.asarray(np.where(u < 0, np.fmin(grown, fallen), edge))


def without_point(program: ConeProgram, status: ConeStatus) -> ConeSolution:
    """A solution that says only why there is none."""
    rows, columns = program.matrix.shape
    return ConeSolution(
        status, np.full(columns, np.nan), np.full(rows, np.nan), np.full(rows, np.nan)
    )
