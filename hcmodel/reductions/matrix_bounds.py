"""Matrix inequalities that bound the eigenvalues of a variable: `P >> 0`, `P >> 1e-3 * I`, `P << 4 * I`.

They come as equalities with a semidefinite slack, f P + g I == S, where S stands nowhere else. The set of
P says the same without row and slack, and proofs then know that P is definite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Apply, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import SemidefiniteSet, VariableSet
from hcmodel.records import dataclass
from hcmodel.reductions.entry_paths import Liveness, entries_on, path_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MatrixRow:
    """The constraint `factor * variable + shift * I == slack`: a limit of the variable's eigenvalues.

    `own` says that the limit is the tightest and this row's alone.
    """

    position: int
    variable: Variable
    slack: Variable
    factor: float
    shift: float
    own: bool = True

    @property
    def lower(self) -> bool:
        return self.factor > 0

    @property
    def limit(self) -> float:
        return -self.shift / self.factor

    def slack_of(self, stored: FloatArray) -> FloatArray:
        """The stored slack that goes with a stored matrix."""
        identity = self.slack.set.store(np.eye(self.slack.shape[0]))
        return self.factor * stored + self.shift * identity

    def slack_slope(self, slope: FloatArray) -> FloatArray:
        """What a row of its own holds back of the Lagrangian's slope in the variable, for the slack."""
        if not self.own:
            return np.zeros_like(slope)
        values, vectors = np.linalg.eigh(self.slack.set.expand(np, slope) / self.factor)
        held = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return self.slack.set.store(held)


def matrix_rows(model: Model, live: Liveness) -> list[MatrixRow]:
    """The rows of this kind, for the parameters' current values."""
    found = []
    for position, constraint in enumerate(model.constraints):
        row = _matrix_row(position, constraint, live)
        if row is not None:
            found.append(row)
    if not found:
        return []
    used = [argument for node in model.nodes if isinstance(node, Apply) for argument in node.args]
    used += [side for each in model.constraints for side in (each.lhs, each.rhs)]
    used.append(model.objective.expression)
    slacks = {row.slack for row in found}
    counts = dict.fromkeys(slacks, 0)
    for each in used:
        if isinstance(each, Variable) and each in slacks:
            counts[each] += 1
    return [row for row in found if counts[row.slack] == 1]


def _matrix_row(position: int, constraint: Constraint, live: Liveness) -> MatrixRow | None:
    slack = constraint.rhs
    if constraint.sense != "==" or not isinstance(slack, Variable) or slack.has_bounds:
        return None
    path = path_of(constraint.lhs, live)
    if slack.set.eigenvalue_bounds != (0.0, np.inf) or path is None:
        return None
    variable = path[0]
    if not variable.set.is_symmetric or variable.shape != slack.shape or variable is slack:
        return None
    entries = entries_on(*path)
    if entries is None:
        return None
    places, factors, offsets = (np.broadcast_to(each, slack.shape) for each in entries)
    numbers = np.arange(variable.size).reshape(variable.shape)
    factor, shift = float(factors[0, 0]), float(offsets[0, 0])
    plain = np.array_equal(np.minimum(places, places.T), np.minimum(numbers, numbers.T))
    if not plain or (factors != factor).any() or (offsets != shift * np.eye(len(offsets))).any():
        return None
    return MatrixRow(position, variable, slack, factor, shift)


Limits = Mapping[Variable, tuple[float, float]]


def eigenvalue_limits(rows: Sequence[MatrixRow]) -> tuple[list[MatrixRow], Limits]:
    """The rows that variables' sets can say, and the limits with them.

    Sets of matrices begin at 0 or above: a row that leaves room for negative eigenvalues stays a row.
    """
    limits: dict[Variable, tuple[float, float]] = {}
    taken: list[MatrixRow] = []
    for variable in dict.fromkeys(row.variable for row in rows):
        own = [row for row in rows if row.variable is variable]
        before = variable.set.eigenvalue_bounds or (-np.inf, np.inf)
        low = max(before[0], *(row.limit for row in own if row.lower), -np.inf)
        high = min(before[1], *(row.limit for row in own if not row.lower), np.inf)
        if not 0.0 <= low <= high:
            continue
        if (low, high) != before:
            limits[variable] = low, high
        claimed = [low == before[0], high == before[1]]
        for row in own:
            side = 0 if row.lower else 1
            tight = not claimed[side] and row.limit == (low, high)[side]
            claimed[side] |= tight
            taken.append(MatrixRow(row.position, variable, row.slack, row.factor, row.shift, tight))
    return taken, limits


def set_with(variable: Variable, limits: tuple[float, float]) -> VariableSet:
    """The variable's set with these limits of the eigenvalues."""
    old = variable.set
    return SemidefiniteSet(old.name, old.shape, old.lower, old.upper, old.pos, limits)
