"""The set of a variable times a positive factor: u = s·x for x in X, as a variable and rows.

Bounds l <= x <= h are l·s <= u <= h·s; distributions have entries that sum to s; of a positive
semidefinite matrix with eigenvalues in [l, h], u − l·s·I and h·s·I − u are semidefinite. All rows are
linear in u and s, and together with s > 0 they say neither more nor less than x in X.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.map import Points, fresh_name, symbol_sums
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.symmetric import upper_entries

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ScaledSet:
    """u in place of x; `slacks` are semidefinite matrices, each with the sums that it is equal to."""

    new: Variable
    slacks: tuple[tuple[Variable, Sums], ...]
    rows: tuple[Row, ...]

    def forward(self, evaluation: Evaluation, point: Points) -> None:
        """Add the values of the slacks."""
        for slack, sums in self.slacks:
            point[slack] = evaluation.of(sums)


def scaled_set(
    model: Expanded, variable: Variable, scales: Numbers, *, positive: bool = True
) -> ScaledSet:
    """The set of s·x; `scales` has the symbol of s for each entry of x, −1 where it is 1.

    `positive` says that s is never 0.
    """
    held = variable.set
    ends = (held.lower, held.upper) if held.is_curved else held.interval
    low, high = (np.broadcast_to(end, variable.shape).astype(float) for end in ends)
    name = fresh_name(model, f"{variable.name}_scaled")
    new = Variable(variable.shape, name=name, **_kind(variable, positive))
    symbols = model.symbols
    own = symbol_sums(symbols, symbols.of_variable(new))
    symbols.roles[new] = "product"
    s = _factors(model, scales, variable.shape)
    rows: list[Row] = []
    first = _first_places(variable)
    matched = first & (low == high)
    if matched.any():
        rows.append(_bound(own - s.scaled(low), matched, "=="))
    for end, sign in ((low, -1.0), (high, 1.0)):
        wanted = first & ~matched & np.isfinite(end)
        if held.is_distribution:
            wanted &= end != (0.0 if sign < 0 else 1.0)
        elif not held.is_symmetric:
            wanted &= end != 0  # a sign, which u has itself
        if wanted.any():
            rows.append(_bound((own - s.scaled(end)).scaled(sign), wanted, "<="))
    if held.is_distribution:
        rows.append(_distribution(own, s))
    slacks = _definite(model, variable, own, s) if held.is_curved else []
    for slack, sums in slacks:
        row = sums - symbol_sums(symbols, symbols.of_variable(slack))
        rows.append(Row(row, "==", None, entries=upper_entries(slack.shape[0])))
    return ScaledSet(new, tuple(slacks), tuple(rows))


def _kind(variable: Variable, positive: bool) -> dict[str, Any]:
    """What is known of u: its signs, symmetry and definiteness are those of x."""
    held = variable.set
    if held.is_curved:
        return {"PSD": True}
    if held.is_symmetric:
        return {"symmetric": True}
    if held.is_distribution:
        return {"nonneg": True}
    low, high = (np.broadcast_to(end, variable.shape) for end in held.interval)
    if positive and (variable.pos or (variable.size and (low > 0).all())):
        return {"pos": True}
    if (low >= 0).all():
        return {"nonneg": True}
    bounds = np.where(low >= 0, 0.0, -np.inf), np.where(high <= 0, 0.0, np.inf)
    return {"bounds": bounds} if any(np.isfinite(each).any() for each in bounds) else {}


def _factors(model: Expanded, scales: Numbers, shape: tuple[int, ...]) -> Sums:
    """The factor of each entry as sums."""
    coding = model.symbols.coding
    alone = scales < 0
    found = symbol_sums(model.symbols, np.where(alone, 0, scales)).scaled(~alone)
    return (found + Sums.constant(alone.astype(float), coding)).reshaped(shape)


def _bound(sums: Sums, wanted: Marks, sense: str) -> Row:
    """The row of the entries that have a bound."""
    places = np.flatnonzero(wanted.reshape(-1))
    return Row(sums.taken(places, (places.size,)), sense, None)


def _first_places(variable: Variable) -> Marks:
    """The entries that are told apart: a triangle of a symmetric matrix, else all."""
    if variable.set.is_symmetric:
        return np.triu(np.ones(variable.shape, dtype=bool))
    return np.ones(variable.shape, dtype=bool)


def _distribution(own: Sums, s: Sums) -> Row:
    """The entries along the last axis sum to s."""
    length = own.shape[-1]
    groups = np.arange(own.size) // length
    first = np.arange(0, own.size, length)
    count = first.size
    return Row(own.grouped(groups, (count,)) - s.taken(first, (count,)), "==", None)


def _definite(
    model: Expanded, variable: Variable, own: Sums, s: Sums
) -> list[tuple[Variable, Sums]]:
    """u − l·s·I and h·s·I − u, where they say more than u ⪰ 0."""
    least, most = variable.set.eigenvalue_bounds or (0.0, np.inf)
    identity = s.scaled(np.eye(variable.shape[0]))
    found = []
    for end, sign in ((least, 1.0), (most, -1.0)):
        if np.isfinite(end) and (sign < 0 or end > 0):
            name = fresh_name(model, f"{variable.name}·slack")
            slack = Variable(variable.shape, name=name, PSD=True)
            model.symbols.of_variable(slack)
            found.append((slack, added([own.scaled(sign), identity.scaled(-sign * end)])))
    return found
