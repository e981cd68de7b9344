"""What an atom is algebraically: a product of matrices, an invertible function, a bound on pieces.

Inverses and pieces work on the arguments themselves, arrays or expressions, and not on facts about
them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from hcmodel.expressions.node import Expression
from hcmodel.records import dataclass

# Positions of arguments.
Places = Container[int]
EVERY_ARGUMENT: Places = range(sys.maxsize)

# The exponent of all entries, one for each entry, or None where it is not known.
Exponent = float | np.ndarray | None
# Those of a monomial, one for each argument that is raised to a power.
Exponents = tuple[Exponent, ...]
# (xp, result) → the one argument that is not constant, entry by entry.
Inverse = Callable[[Any, Any], Any]
Row = tuple[Expression, Expression]


class Adjoint(NamedTuple):
    """What solves the transposed system of an atom that solves a linear one: the name of an atom.

    ⟨w, f(A, b)⟩ = ⟨g(A.T, w), b⟩, where the right-hand side of a function of A alone is the identity;
    `by_columns`: this holds of each column of the result and of b.
    """

    atom: str
    by_columns: bool = True


class Factor(NamedTuple):
    """One factor of a product of matrices: an argument, its transpose, or its inverse.

    A vector is a column; as a row it is `transposed`. An inverse may be transposed too.
    """

    place: int
    transposed: bool = False
    inverted: bool = False


@dataclass(frozen=True)
class Pieces:
    """A function with kinks as a bound t: on its linear pieces, or by a matrix that is semidefinite.

    With `above` the function is the least t that satisfies the rows, else the largest such t.
    `rows(arguments, t)` are pairs (smaller side, larger side). `monotone` says that every row has the
    arguments on the smaller side if `above`, on the larger side otherwise, and nowhere else.

    A function that linear rows do not express may have `semidefinite(arguments, t)`: a symmetric matrix
    that is positive semidefinite just for the t that bound it.

    Where a function is a sum of such bounds, `bounded(arguments)` is the expression that t bounds
    and `value(t)` the function's value; without them these are the function and t.
    """

    above: bool
    rows: Callable[[Sequence[Expression], Expression], list[Row]]
    monotone: bool
    bounded: Callable[[Sequence[Expression]], Expression] | None = None
    value: Callable[[Expression], Expression] | None = None
    semidefinite: Callable[[Sequence[Expression], Expression], Expression] | None = None
