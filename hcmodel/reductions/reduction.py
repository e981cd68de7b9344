"""A reduction takes a model and gives a model, and knows the way back.

The ends of a chain give a program for a solver instead. Points are flat vectors, in the order of
`Model.layout`; duals are those of the constraints. Names and the user's sign stay outside the chain.
CVXPY's `apply` and `invert` and MathOptInterface's bridges are the examples that this follows.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.reductions.sums.known_sums import KnownFunctions

FloatArray = NDArray[np.float64]
Before = TypeVar("Before")
After = TypeVar("After")


class Claim(Enum):
    """What can be known of a model."""

    OPTIMAL = "the point is optimal"
    BOUND = "no feasible point has a lower value"
    INFEASIBLE = "no feasible point exists"
    UNBOUNDED = "feasible points have arbitrarily low values"


EVERY_CLAIM = frozenset(Claim)


@dataclass(frozen=True)
class Refusal:
    """Why a reduction does not apply, and the expression that is in the way."""

    expression: Expression | None
    reason: str


@dataclass(frozen=True)
class Duals:
    """Multipliers of the constraints of a model, by position; None where they are unknown.

    `added` keeps the multipliers of rows that the model does not have but a reduction adds, so that
    another reduction of the same kind finds them again. `sets` are those of the variables' sets: the
    gradient of the Lagrangian, which the sets balance. None where it is not known.
    """

    rows: tuple[FloatArray | None, ...]
    added: Mapping[Hashable, FloatArray] = field(default_factory=dict)
    sets: FloatArray | None = None


class Origin(NamedTuple):
    """Where a row comes from: a constraint, by its position, and an entry of it."""

    position: int
    entry: tuple[int, ...] = ()


# The sides that are of all entries of a variable together.
WHOLE = ("set", "ceiling")


@dataclass(frozen=True, eq=False)
class BoundOrigin:
    """Where a bound comes from: the set of a variable, and the entry that it bounds from one side.

    `side` is "lower", "upper" or "fixed"; "set" stands for what a set asks of all entries together, and
    "ceiling" for the largest eigenvalue that it allows.
    """

    variable: Variable
    side: str
    entry: tuple[int, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Variables compare by identity; `==` between them would be a constraint."""
        if not isinstance(other, BoundOrigin):
            return NotImplemented
        same = self.variable is other.variable
        return same and (self.side, self.entry) == (other.side, other.entry)

    def __hash__(self) -> int:
        return hash((id(self.variable), self.side, self.entry))


@dataclass(frozen=True)
class BoundRows:
    """Rows of a program from `start` on that bound entries of u; `side` as in `BoundOrigin`."""

    start: int
    side: str
    entries: NDArray[np.intp]


class Reduction(Generic[Before, After]):
    """Immutable; this base class is the identity on everything that a subclass does not change.

    `keeps` lists the claims that, where they are true of `after`, are true of `before`; `conditions` says
    in words what a claim that is carried back rests on.
    """

    keeps: frozenset[Claim] = EVERY_CLAIM
    conditions: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    """Where INFEASIBLE is not kept: the variables that points without an image differ in from others."""
    taken: tuple[int, ...] = ()
    """The constraints of `before` that no row of `after` comes from: its sets and own rows say them."""
    fixes: bool = False
    """Whether it has numbers in place of variables (`fixings`)."""
    duals_at_points: bool = True
    """Whether `duals` asks for the point."""

    def __init__(self, before: Before, after: After) -> None:
        self.before = before
        self.after = after

    @property
    def known(self) -> KnownFunctions | None:
        """What functions of `after` are as sums, where the reduction has made them of such."""
        return None

    def refresh(self) -> bool:
        """Read the parameters. False where the structure has changed and the reduction must be remade."""
        return True

    def has_image(self, x: FloatArray) -> bool:
        """Whether a point of `before` is one of `after`; if not, `point` gives one near to it."""
        return True

    def point(self, x: FloatArray) -> FloatArray:
        """The image of a point of `before`."""
        return moved_point(self.before, self.after, x)

    def point_back(self, u: FloatArray) -> FloatArray:
        """A point of `before` with the image u."""
        return moved_point(self.after, self.before, u)

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        """Multipliers of `after` from those of `before`; x is a point of `before`."""
        return duals

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        """Multipliers of `before` from those of `after`; u is a point of `after`."""
        return duals

    def plain_duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        """The same, where the multipliers of `after` are those of left − right for all rows."""
        return self.duals_back(u, duals)

    def set_duals_back(self, u: FloatArray, sets: FloatArray) -> FloatArray:
        """Multipliers of the sets of `before` from those of `after`."""
        return moved_point(self.after, self.before, sets, fill=0.0)

    def value(self, value: float) -> float:
        """The objective of `after` where that of `before` is `value`; increasing."""
        return value

    def value_back(self, value: float) -> float:
        """The inverse of `value`; bounds and levels walk back by it."""
        return value

    def tangent_back(self, u: FloatArray, direction: FloatArray) -> FloatArray:
        """The derivative of `point_back` along a direction."""
        return moved_point(self.after, self.before, direction, fill=0.0)

    def cotangent(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        """The transpose of `tangent_back`."""
        return moved_point(self.before, self.after, weights, fill=0.0)

    def fixings(self, variables: Sequence[Variable]) -> Sequence[int]:
        """The constraints of `before` by which `after` has numbers for some of these variables."""
        return ()

    def origin(self, origin: Origin) -> Origin | None:
        """Where a row of `after` comes from in `before`; None where the reduction added it."""
        return origin

    def implies(self, origin: BoundOrigin) -> bool:
        """Whether a bound of an added variable follows from `before`, and stands in no row's place."""
        return False


ModelReduction = Reduction[Model, Model]


def moved_point(old: Any, new: Any, x: FloatArray, *, fill: float | None = None) -> FloatArray:
    """A point of one model as a point of another, variable by variable.

    A variable that the old model lacks is at the middle of its set, or at `fill`.
    """
    if same_objects(old.layout.variables, new.layout.variables):
        return x.copy()
    result = np.empty(new.layout.size)
    for variable in new.layout.variables:
        place = new.layout.slice(variable)
        if old.layout.holds(variable):
            result[place] = x[old.layout.slice(variable)]
        else:
            result[place] = _middle(variable) if fill is None else fill
    return result


def same_objects(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two lists hold the same objects; `==` between expressions builds constraints."""
    return one is other or (len(one) == len(other) and all(map(operator.is_, one, other)))


def _middle(variable: Variable) -> FloatArray:
    return make_domain([variable]).middle()
