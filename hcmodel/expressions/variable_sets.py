"""The set that a variable lies in, with everything that is asked of it.

A set is one class: how its arrays are stored in the flat vector, the solvers' domain, what is known of
sign, interval and definiteness, its text in a model file and in LaTeX, and which values fit. A new set is
one more class here, with a keyword in `Variable` that makes it.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.shapes import Shape
from hcmodel.records import dataclass, replace
from hcmodel.solvers import sets
from hcmodel.solvers.algebra.marks import every, some
from hcmodel.solvers.algebra.symmetric import ROOT_TWO, to_vector, triangle
from hcmodel.solvers.numerics import PRODUCT_ROUNDING

if TYPE_CHECKING:
    from hcmodel.expressions.leaves import Variable
    from hcmodel.solvers.sets.box import Box
    from hcmodel.solvers.sets.domain import Domain

Entries = NDArray[np.bool_]

# A matrix this near to its transpose, relative to its size, differs from it by rounding. Data that were
# printed with ten digits pass, a matrix with an entry that is wrong does not.
ASYMMETRY = 1e-9


@dataclass(frozen=True, eq=False)
class VariableSet(ABC):
    """A set of arrays of one shape, with bounds on the single entries.

    `pos` says that every entry is positive: 0 itself is never needed. `name` is the variable's, for
    messages. The base class answers for arrays that are stored as they are.
    """

    name: str
    shape: Shape
    lower: np.ndarray
    upper: np.ndarray
    pos: bool

    # ---- storage in the flat vector

    @property
    def stored_size(self) -> int:
        """The number of stored entries."""
        return self.lower.size

    def expand(self, xp: Any, stored: Any) -> Any:
        """The array from its stored entries; linear in them."""
        return stored if len(self.shape) == 1 else xp.reshape(stored, self.shape)

    def store(self, array: np.ndarray) -> np.ndarray:
        """The stored entries of an array, the inverse of `expand`."""
        return np.asarray(array, dtype=float).reshape(-1)

    def places(self) -> np.ndarray:
        """For each entry of the array, in C order, the place at which it is stored."""
        return np.arange(self.stored_size)

    def storing(self) -> scipy.sparse.csr_array:
        """`store` as a matrix that takes the entries of the array in C order."""
        return scipy.sparse.csr_array(scipy.sparse.eye_array(self.stored_size))

    # ---- the solvers' view

    @abstractmethod
    def domain(self, steep: Entries | None = None) -> Domain:
        """The set of the stored entries.

        `steep` marks entries that move by factors though their lower bound is 0, where each entry
        moves on its own.
        """

    # ---- what is known of the values

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the entries, of the variable's shape or scalars for all of them."""
        return self.lower, self.upper

    @property
    def wider(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Bounds that do in place of these where only the signs of entries need these."""
        return None

    @property
    def has_bounds(self) -> bool:
        """Whether any entry has a bound of its own."""
        return some(np.isfinite(self.lower)) or some(np.isfinite(self.upper))

    @property
    def positive(self) -> bool:
        """Whether every entry is promised to be positive, though the interval may begin at 0."""
        return False

    @property
    def has_logarithm(self) -> bool:
        """Whether the variable can be described by the logarithms of its entries."""
        return False

    @property
    def is_box(self) -> bool:
        """Whether the bounds on single entries are all there is: the entries are independent."""
        return False

    @property
    def is_curved(self) -> bool:
        """Whether the boundary is that of a matrix cone, which no bound on entries describes."""
        return False

    @property
    def is_symmetric(self) -> bool:
        """Whether the arrays are symmetric matrices."""
        return False

    @property
    def eigenvalue_bounds(self) -> tuple[float, float] | None:
        """The smallest and largest eigenvalue of symmetric matrices; None without such bounds."""
        return None

    @property
    def is_distribution(self) -> bool:
        """Whether the last axis holds distributions: nonnegative entries that sum to 1."""
        return False

    def fitting(self, array: np.ndarray, what: str) -> np.ndarray:
        """An array of the right shape as a value of the variable, without differences by rounding.

        Bounds are not checked: a start may violate them. A DataError names `what` does not fit.
        """
        return array

    # ---- text

    def declaration(self, write: Callable[[np.ndarray, str], str]) -> str:
        """What follows name and shape in a model file; `write` gives the text of an array.

        The second argument of `write` is a name for an array that is too long for the text.
        """
        words = self._words(write)
        if self.lower.size == 0:
            return words
        lower, upper = write(self.lower, "lower"), write(self.upper, "upper")
        if self.pos:
            words += " > 0"
            lower = "-inf" if lower == "0" else lower
        if lower != "-inf" and upper != "inf":
            return f"{words} in [{lower}, {upper}]"
        if lower != "-inf":
            words += f" >= {lower}"
        if upper != "inf":
            words += f" <= {upper}"
        return words

    def _words(self, write: Callable[[np.ndarray, str], str]) -> str:
        """The words of the declaration that say which kind of set it is."""
        return ""

    @abstractmethod
    def summary(self) -> str:
        """The set in one line of `hcmodel show`, after "in"."""

    def ends(self) -> tuple[str, str]:
        """The smallest and largest lower bound as text, and those of the upper bounds."""
        if not self.lower.size:
            return "-∞", "∞"
        ends = [(float(np.min(bound)), float(np.max(bound))) for bound in (self.lower, self.upper)]
        texts = [f"{low:g}" if low == high else f"{low:g}…{high:g}" for low, high in ends]
        return texts[0].replace("inf", "∞"), texts[1].replace("inf", "∞")


@dataclass(frozen=True, eq=False)
class BoxSet(VariableSet):
    """Entries within their own bounds; `wider` is given where rows imply these bounds."""

    wider: tuple[np.ndarray, np.ndarray] | None = None

    def domain(self, steep: Entries | None = None) -> Domain:
        low, high = np.ravel(self.lower), np.ravel(self.upper)
        positive = (low > 0) | self.pos
        return sets.Box(low, high, positive if steep is None else positive | np.ravel(steep))

    @property
    def is_box(self) -> bool:
        return True

    @property
    def positive(self) -> bool:
        return self.pos

    @property
    def has_logarithm(self) -> bool:
        return self.pos or every(self.lower > 0)

    def summary(self) -> str:
        lower, upper = self.ends()
        return f"[{lower}, {upper}]".replace("∞", "inf")


@dataclass(frozen=True, eq=False)
class SimplexSet(VariableSet):
    """Distributions along the last axis, possibly with tighter bounds on their entries than 0 and 1."""

    def __post_init__(self) -> None:
        if not self.shape or self.shape[-1] == 0:
            raise ModelError(
                f"variable '{self.name}' is a simplex and needs a last axis to sum over; its "
                f"shape is {self.shape}"
            )
        conflict = simplex_conflict(self.lower, self.upper)
        if conflict is not None:
            row, reason = conflict
            where = f"row {list(row)} of variable" if row else "variable"
            raise ModelError(f"{where} '{self.name}' is in a simplex, but {reason}")

    def domain(self, steep: Entries | None = None) -> Domain:
        length = self.shape[-1]
        count = self.lower.size // length
        low, high = np.ravel(self.lower), np.ravel(self.upper)
        # The simplex itself bounds its entries by 0 and 1.
        if every(low <= 0) and every(high >= 1):
            return sets.Simplices(count, length)
        return sets.BoundedSimplices(count, length, low, high)

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.has_bounds:
            return np.array(0.0), np.array(1.0)
        return np.maximum(self.lower, 0.0), np.minimum(self.upper, 1.0)

    @property
    def is_distribution(self) -> bool:
        return True

    def _words(self, write: Callable[[np.ndarray, str], str]) -> str:
        return " in simplex"

    def summary(self) -> str:
        return "simplex"


@dataclass(frozen=True, eq=False)
class SymmetricSet(VariableSet):
    """Symmetric matrices, stored once as the scaled upper triangle.

    Entries (i, j) and (j, i) are one number, so the tighter bounds hold for both.
    """

    def __post_init__(self) -> None:
        if len(self.shape) != 2 or self.shape[0] != self.shape[1] or not self.lower.size:
            raise ModelError(
                f"variable '{self.name}' is symmetric or PSD and needs a square shape (n, n) with "
                f"n >= 1, not {self.shape}"
            )
        lower, upper = np.maximum(self.lower, self.lower.T), np.minimum(self.upper, self.upper.T)
        if (lower > upper).any():
            i, j = (int(place) for place in np.argwhere(lower > upper)[0])
            raise ModelError(
                f"variable '{self.name}' is symmetric, but its bounds at {[i, j]} and {[j, i]} leave no "
                f"number: lower {lower[i, j]:g}, upper {upper[i, j]:g}"
            )
        lower.flags.writeable = upper.flags.writeable = False
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def stored_size(self) -> int:
        order = self.shape[0]
        return order * (order + 1) // 2

    def expand(self, xp: Any, stored: Any) -> Any:
        places, factors = _spread(self.shape[0])
        return xp.reshape(stored[places] * factors, self.shape)

    def store(self, array: np.ndarray) -> np.ndarray:
        return to_vector(np.asarray(array, dtype=float))

    def places(self) -> np.ndarray:
        return _spread(self.shape[0])[0]

    def storing(self) -> scipy.sparse.csr_array:
        """One of the two triangles."""
        order = self.shape[0]
        rows, columns = triangle(order)
        values = np.where(rows == columns, 1.0, ROOT_TWO)
        places = rows * order + columns
        return scipy.sparse.csr_array(
            (values, (np.arange(rows.size), places)), shape=(rows.size, order * order)
        )

    def domain(self, steep: Entries | None = None) -> Domain:
        return self._entries() if self.has_bounds else sets.SymmetricMatrices(self.shape[0])

    def _entries(self) -> Box:
        """The bounds on entries, in the order and scale of the stored ones."""
        low, high = _stored(self.lower), _stored(self.upper)
        return sets.Box(low, high, (low > 0) | self.pos)

    @property
    def is_symmetric(self) -> bool:
        return True

    def fitting(self, array: np.ndarray, what: str) -> np.ndarray:
        differences = np.abs(array - array.T)
        largest = float(differences.max())
        if largest > ASYMMETRY * max(1.0, float(np.abs(array).max())):
            i, j = (int(place) for place in np.unravel_index(differences.argmax(), array.shape))
            raise DataError(
                f"{what} is not symmetric, but the variable is: entry {[i, j]} is {array[i, j]:g} and "
                f"entry {[j, i]} is {array[j, i]:g}; give (M + M.T) / 2 if that is what you mean"
            )
        return np.asarray(0.5 * (array + array.T)) if largest else array

    def _words(self, write: Callable[[np.ndarray, str], str]) -> str:
        return " symmetric"

    def summary(self) -> str:
        return "symmetric"


@dataclass(frozen=True, eq=False)
class SemidefiniteSet(SymmetricSet):
    """Symmetric matrices with eigenvalues between two numbers, the smaller one not negative."""

    eigenvalues: tuple[float, float] = field(default=(0.0, np.inf))

    @property
    def eigenvalue_bounds(self) -> tuple[float, float] | None:
        return self.eigenvalues

    def domain(self, steep: Entries | None = None) -> Domain:
        smallest, largest = self.eigenvalues
        matrices = sets.SymmetricMatrices(self.shape[0], smallest, largest)
        if not self.has_bounds:
            return matrices
        try:
            return sets.BoundedMatrices(matrices, self._entries())
        except ValueError:
            raise ModelError(
                f"variable '{self.name}' has no value: no matrix has eigenvalues between {smallest:g} "
                f"and {largest:g} and entries within the bounds; widen one of them"
            ) from None

    @property
    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        largest = np.array(self.eigenvalues[1])
        return -largest, largest

    @property
    def is_curved(self) -> bool:
        return True

    def _words(self, write: Callable[[np.ndarray, str], str]) -> str:
        low, high = (write(np.array(each), "eigenvalue") for each in self.eigenvalues)
        return f" in psd({low}, {high})" if high != "inf" else f" in psd({low})"

    def summary(self) -> str:
        return "psd"


def make_domain(
    variables: Sequence[Variable],
    steep: Mapping[Variable, Entries] | None = None,
    nonnegative: Mapping[Variable, Entries] | None = None,
) -> Domain:
    """The product of the variables' domains; neighbouring boxes are one box.

    `steep` marks entries of boxes that move by factors though their lower bound is 0, `nonnegative`
    those that have the lower bound 0 at least, unless that would leave them no number above it.
    """
    marks, bounded = steep or {}, nonnegative or {}
    return sets.side_by_side(
        _without_negatives(variable.set, bounded.get(variable)).domain(marks.get(variable))
        for variable in variables
    )


def _without_negatives(values: VariableSet, nonnegative: Entries | None) -> VariableSet:
    if nonnegative is None or not values.is_box:
        return values
    cut = nonnegative & (values.lower < 0.0) & (values.upper > 0.0)
    return replace(values, lower=np.where(cut, 0.0, values.lower)) if cut.any() else values


def simplex_conflict(lower: np.ndarray, upper: np.ndarray) -> tuple[tuple[int, ...], str] | None:
    """The first row that no distribution within the bounds exists for, and why; None if all have one."""
    low, high = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    least, most = low.sum(axis=-1), high.sum(axis=-1)
    slack = PRODUCT_ROUNDING * lower.shape[-1]
    for kind, wrong in (
        ("entry", (low > high).any(axis=-1)),
        ("lower", least > 1.0 + slack),
        ("upper", most < 1.0 - slack),
    ):
        if not np.any(wrong):
            continue
        row = tuple(int(place) for place in np.argwhere(wrong)[0])
        if kind == "entry":
            return row, "one of its bounds leaves no number between 0 and 1"
        total = float(least[row] if kind == "lower" else most[row])
        side = "more" if kind == "lower" else "less"
        return row, f"its {kind} bounds sum to {total:g}, {side} than 1"
    return None


@functools.cache
def _spread(order: int) -> tuple[np.ndarray, np.ndarray]:
    """For each entry of a symmetric matrix, where it is stored and by what it is scaled."""
    rows, columns = triangle(order)
    places = np.zeros((order, order), dtype=int)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)
    factors = np.where(np.eye(order, dtype=bool), 1.0, 1.0 / ROOT_TWO)
    return places.reshape(-1), factors.reshape(-1)


def _stored(bound: np.ndarray) -> np.ndarray:
    """A symmetric array of bounds in the order and scale of a stored matrix."""
    finite = np.where(np.isfinite(bound), bound, 0.0)
    infinite = np.where(np.isfinite(bound), 0.0, np.sign(bound))
    places = to_vector(infinite)
    return np.where(places == 0.0, to_vector(finite), np.where(places > 0, np.inf, -np.inf))
