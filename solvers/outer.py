"""How objective and rows are made from the stack φ: the static outer part of a canonical problem.

Nothing here is compiled. A row compares two affine combinations of φ, `left <= right` or
`left == right`, and its normal form (`row_forms`) says which number the methods see: the difference
left − right, say, or log left − log right. The objective has a form likewise. Another form of the same
problem is another `Outer` over the same stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.row_forms import OBJECTIVE_FORMS, ROW_FORMS, ObjectiveForm, RowForm

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Side:
    """One side of the rows as a function of φ: an entry of φ for each row, or a combination of entries.

    In canonical problems each side is an entry (`places`). Choosing entries is faster than a product
    with a sparse matrix, which small problems would notice.
    """

    width: int
    places: IndexArray | None
    combination: scipy.sparse.csr_array | None = None

    @staticmethod
    def of(matrix: scipy.sparse.csr_array) -> Side:
        """The combinations that the rows of a matrix are."""
        chooses = (np.diff(matrix.indptr) == 1).all() and (matrix.data == 1).all()
        return Side(matrix.shape[1], matrix.indices if chooses else None, matrix)

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        """∂side/∂φ."""
        if self.combination is not None:
            return self.combination
        places = self.entries
        parts = (np.ones(places.size), places, np.arange(places.size + 1))
        return scipy.sparse.csr_array(parts, shape=(places.size, self.width))

    @property
    def entries(self) -> IndexArray:
        """The entry of φ that each row is."""
        if self.places is None:
            raise ValueError("the sides of these rows are combinations of several entries")
        return self.places

    @property
    def size(self) -> int:
        """How many rows there are."""
        return int(self.matrix.shape[0]) if self.places is None else self.places.size

    def values(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ values if self.places is None else values[self.places])

    def rows(self, jacobian: Any) -> Any:
        """The derivatives, from those of φ."""
        if self.places is None or not isinstance(jacobian, np.ndarray):
            return self.matrix @ jacobian
        return jacobian[self.places]

    def spread(self, weights: FloatArray) -> FloatArray:
        """Weights on φ, from those on the rows."""
        if self.places is None:
            return np.asarray(self.matrix.T @ weights)
        found = np.bincount(self.places, weights=weights, minlength=self.width)
        return np.asarray(found, dtype=float)

    def between(self, rows: IndexArray) -> Side:
        """Some of the rows."""
        if self.places is None:
            return Side(self.width, None, self.matrix[rows])
        return self if rows.size == self.places.size else Side(self.width, self.places[rows])


@dataclass(frozen=True)
class Outer:
    """`objective` weighs the objective part of φ; `left` and `right` the constraint part.

    The first `inequalities` rows are inequalities, the others equalities. `objective_form` is a name of
    `OBJECTIVE_FORMS`; `forms` has the position in `ROW_FORMS` of each row's form (`form_numbers` makes
    it from names), and is empty where all rows are differences.
    """

    objective: FloatArray
    left: Side
    right: Side
    inequalities: int
    objective_form: str = "plain"
    forms: IndexArray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    floors: FloatArray | None = None
    """The least size that each row is measured against, where that is not 1 (`row_floors`)."""

    def __post_init__(self) -> None:
        if self.forms.size not in (0, self.size):
            raise ValueError(f"{self.forms.size} forms for {self.size} rows")

    @staticmethod
    def of_rows(inequalities: int, equalities: int) -> Outer:
        """Rows that are entries of φ themselves, against zero."""
        count = inequalities + equalities
        zero = Side(count, None, scipy.sparse.csr_array((count, count)))
        return Outer(np.ones(1), Side(count, np.arange(count)), zero, inequalities)

    @cached_property
    def _groups(self) -> tuple[tuple[RowForm, IndexArray], ...]:
        """The forms in use and the rows of each."""
        table, numbers = tuple(ROW_FORMS.values()), self.forms
        first = int(numbers[0]) if numbers.size else 0
        if not numbers.size or every(numbers == first):
            return ((table[first], np.arange(self.size)),)
        return tuple((table[i], (numbers == i).nonzero()[0]) for i in np.unique(numbers))

    @cached_property
    def _only_differences(self) -> bool:
        return not np.count_nonzero(self.forms)

    @cached_property
    def _difference(self) -> scipy.sparse.csr_array | None:
        """∂rows/∂φ where it is constant: all rows are differences."""
        return self.difference if self._only_differences else None

    @cached_property
    def difference(self) -> scipy.sparse.csr_array:
        """The derivatives of left − right by φ."""
        return scipy.sparse.csr_array(self.left.matrix - self.right.matrix)

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.left, self.right

    @cached_property
    def _objective_form(self) -> ObjectiveForm:
        return OBJECTIVE_FORMS[self.objective_form]

    @property
    def size(self) -> int:
        return self.left.size

    @property
    def is_written(self) -> bool:
        """Whether methods see the differences left − right and the plain objective."""
        return self.objective_form == "plain" and self._only_differences

    def plain_objective(self, value: float) -> float:
        """The objective before its form was applied, from the number that methods see."""
        return self._objective_form.plain(value)

    def objective_value(self, values: FloatArray) -> float:
        return self._objective_form.value(float(self.objective @ values))

    def objective_slope(self, values: FloatArray) -> float:
        """The derivative of the objective as it is seen by the plain one."""
        return self._objective_form.slope(float(self.objective @ values))

    def objective_gradient(self, values: FloatArray, jacobian: Any) -> FloatArray:
        plain = np.asarray(self.objective @ jacobian, dtype=float).reshape(-1)
        return plain * self.objective_slope(values)

    def row_values(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows, and the sizes against which their violations are measured."""
        left, right = self.left.values(values), self.right.values(values)
        with np.errstate(all="ignore"):
            if len(self._groups) == 1:
                form, _ = self._groups[0]
                rows, magnitudes = form.values(left, right), form.magnitudes(left, right)
            else:
                rows, magnitudes = np.empty((2, self.size))
                for form, own in self._groups:
                    rows[own] = form.values(left[own], right[own])
                    magnitudes[own] = form.magnitudes(left[own], right[own])
            if self.floors is not None:
                sizes = np.maximum(np.abs(left), np.abs(right))
                magnitudes = np.minimum(magnitudes, np.maximum(sizes, self.floors))
        return rows, magnitudes

    def row_sizes(self, values: FloatArray) -> FloatArray:
        """max(|left|, |right|) of the rows that are differences, infinity of the others."""
        left, right = (side.values(values) for side in self._sides)
        sizes = np.maximum(np.abs(left), np.abs(right))
        return np.where(self.forms != 0, np.inf, sizes) if self.forms.size else sizes

    def row_jacobian(self, values: FloatArray, jacobian: Any) -> Any:
        """∂rows/∂x, dense or sparse as the Jacobian of φ is."""
        if is_sparse(jacobian):
            return scipy.sparse.csr_array(self._weighing(values) @ jacobian)
        if self._only_differences:
            return np.asarray(self.left.rows(jacobian) - self.right.rows(jacobian))
        by_left, by_right = self._slopes(values)
        left, right = self.left.rows(jacobian), self.right.rows(jacobian)
        return np.asarray(left * by_left[:, None] + right * by_right[:, None])

    def row_factors(self, top: FloatArray, values: FloatArray) -> FloatArray:
        """Multipliers over these are those of the rows left − right beside the plain objective."""
        if self._only_differences:
            return np.full(self.size, self.objective_slope(top))
        left, right = self.left.values(values), self.right.values(values)
        with np.errstate(all="ignore"):
            if len(self._groups) == 1:
                return self.objective_slope(top) / self._groups[0][0].factors(left, right)
            found = np.empty(self.size)
            for form, own in self._groups:
                found[own] = form.factors(left[own], right[own])
            return self.objective_slope(top) / found

    def _slopes(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The derivatives of each row by its two sides."""
        if self._only_differences:
            ones = np.ones(self.size)
            return ones, -ones
        left, right = self.left.values(values), self.right.values(values)
        with np.errstate(all="ignore"):
            if len(self._groups) == 1:
                return self._groups[0][0].slopes(left, right)
            by_left, by_right = np.empty((2, self.size))
            for form, own in self._groups:
                by_left[own], by_right[own] = form.slopes(left[own], right[own])
        return by_left, by_right

    def _weighing(self, values: FloatArray) -> scipy.sparse.csr_array:
        """∂rows/∂φ."""
        if self._difference is not None:
            return self._difference
        left, right = self._slopes(values)
        return scipy.sparse.csr_array(
            _scaled(self.left.matrix, left) + _scaled(self.right.matrix, right)
        )

    def lagrangian_weights(
        self, top: FloatArray | None, values: FloatArray, multipliers: FloatArray
    ) -> FloatArray:
        """Weights on φ whose gradient is that of the Lagrangian F1 + Σ multipliers·rows.

        `top` holds the objective part of φ at the point, `values` the constraint part; without `top`,
        F1 is left out.
        """
        by_left, by_right = self._slopes(values)
        left, right = (
            self.left.spread(by_left * multipliers),
            self.right.spread(by_right * multipliers),
        )
        slope = 0.0 if top is None else self.objective_slope(top)
        return np.concatenate([self.objective * slope, left + right])

    def lagrangian_squares(
        self,
        top: FloatArray | None,
        values: FloatArray,
        slopes: tuple[Any, Any],
        multipliers: FloatArray,
    ) -> list[tuple[FloatArray, Any]]:
        """What the forms add to the weighted Hessian of φ: a sum of weighted squares of gradients.

        `slopes` are the Jacobians of the two parts. Each pair holds weights and rows of derivatives.
        """
        found: list[tuple[FloatArray, Any]] = []
        bent = None if top is None else self._objective_form.square(float(self.objective @ top))
        if bent is not None:
            gradient = np.asarray(self.objective @ slopes[0]).reshape(1, -1)
            found.append((np.array([bent[0]]), bent[1] * gradient))
        if self._difference is not None:
            return found
        for form, rows in self._groups:
            used = rows[multipliers[rows] != 0]
            if not used.size:
                continue
            left, right = self.left.between(used), self.right.between(used)
            for square in form.squares(left.values(values), right.values(values)):
                gradients = [
                    _scaled(side.rows(slopes[1]), factor)
                    for side, factor in ((left, square.left), (right, square.right))
                    if factor is not None
                ]
                total = gradients[0] if len(gradients) == 1 else gradients[0] + gradients[1]
                found.append((square.weight * multipliers[used], total))
        return found


def row_floors(jacobian: Any, units: FloatArray) -> FloatArray:
    """min(1, max_j |∂row/∂x_j| unit_j): a row in small units is measured in these.

    A row without a finite slope is measured against 1.
    """
    slopes: Any = abs(jacobian) * units[None, :]
    largest: Any = slopes.max(axis=1) if slopes.shape[1] else np.zeros(slopes.shape[0])
    dense = largest.toarray() if is_sparse(largest) else largest
    floors = np.asarray(dense).reshape(-1)
    return np.where(np.isfinite(floors), np.clip(floors, TINY, 1.0), 1.0)


def form_numbers(names: Sequence[str]) -> IndexArray:
    """The positions in `ROW_FORMS` of forms by name, one for each row."""
    positions = {name: number for number, name in enumerate(ROW_FORMS)}
    return np.array([positions[name] for name in names], dtype=np.intp)


def _scaled(rows: Any, by: FloatArray) -> Any:
    """Each row times a number."""
    if not is_sparse(rows):
        return rows * by[:, None]
    rows = scipy.sparse.csr_array(rows)
    entries = rows.data * by.repeat(np.diff(rows.indptr))
    return scipy.sparse.csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)
