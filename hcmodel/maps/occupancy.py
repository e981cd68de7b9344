"""Occupancies: a distribution times how often it is drawn from, in place of both.

A policy π[s,·] enters a decision process through λ[s,a] = d[s] π[s,a] alone, where d[s] >= 0 says how
often state s is visited. In λ everything is linear:

    d[s] π[s,a]  →  λ[s,a],      d[s]  →  Σ_a λ[s,a]

as the entries of π[s,·] sum to 1. A distribution that occurs alone, as at the first of several stages, is
its own λ, with the sum 1. The visits are a variable, or the solution of a linear system
N(π) d = μ, which becomes the row N d = μ: column s of N depends on π[s,·] alone, so that N d is linear in
λ.
The solution of the system is never negative where μ >= 0 and each column of N has no negative entry on
the diagonal, no positive one off it, and a sum that is not negative: where no column is 0, as in a state
that is never left, N = (I − T) D with T >= 0 of column sums at most 1, which has the eigenvalue 1 only
where N is singular (discounted processes, and shortest paths, whose columns may sum to 0). Averages over
a long time have visits d = T(π)ᵀ d that sum to 1. The way back is π = λ / Σ_a λ; in a state that is
never visited any policy will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.rewriting import applied
from hcmodel.maps.algebra.scaling import Scaling
from hcmodel.maps.map import (
    Map,
    Obstacle,
    Points,
    Step,
    Together,
    described,
    fresh_name,
    symbol_sums,
)
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Occupancy(Map):
    """λ = d·π; see the module."""

    name = "occupancy"
    summary = "λ = d π for a policy π and visits d; back: π = λ / Σ λ"
    literature = "Manne 1960; Altman 1999; Puterman 1994"
    example = "cmdp.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        policies = [each for each in model.variables if each.set.is_distribution and each.size]
        found = {policy: visits for policy in policies if (visits := _visits(model, policy))}
        if len(found) > 1:
            yield from _together(model, list(found))
        for policy, visits in found.items():
            yield _substituted(model, policy, visits)


def _together(model: Expanded, policies: Sequence[Variable]) -> Iterator[Step]:
    """The policies of several stages at once: none of them alone makes the model convex."""
    steps = list[Step]()
    for policy in policies:
        visits = _visits(model, policy)
        step = None if visits is None else _substituted(model, policy, visits)
        if isinstance(step, Step):
            steps.append(step)
            model = step.after
    if len(steps) > 1:
        yield Together(steps)


@dataclass(frozen=True, eq=False)
class _Visits:
    """The factor of each distribution, and what these factors are: variables or a solution."""

    symbols: Numbers
    """One for each distribution; −1 for those that stand alone."""
    variables: tuple[Variable, ...]
    functions: tuple[Opaque, ...]


def _visits(model: Expanded, policy: Variable) -> _Visits | None:
    """The visits of each distribution: by a system that they solve, or by what stands with it."""
    symbols = model.symbols
    own = symbols.of_variable(policy).reshape(-1, policy.shape[-1])
    states = np.full(symbols.count + 1, -1, dtype=np.int64)
    states[own.reshape(-1) + 1] = np.repeat(np.arange(own.shape[0]), own.shape[1])
    for function in model.functions():
        if function.atom.equation is not None and len(function.shape) == 1:
            owner = _owners(function.arguments[0], states)
            if owner is not None and np.array_equal(np.sort(owner), np.arange(own.shape[0])):
                visits = np.empty(own.shape[0], dtype=np.int64)
                visits[owner] = function.numbers
                return _Visits(visits, (), (function,))
    found = np.full(own.shape[0], -1, dtype=np.int64)
    variables: dict[Variable, None] = {}
    for state, partners in _partners(model, states).items():
        for symbol in partners:
            source, _ = symbols.source(symbol)
            if not isinstance(source, Variable) or source is policy:
                continue
            if (np.asarray(source.set.interval[0]) >= 0).all():
                variables[source] = None
                found[state] = symbol
                break
    taken = found[found >= 0]
    if not taken.size or np.unique(taken).size < taken.size:
        return None
    return _Visits(found, tuple(variables), ())


def _owners(matrix: Sums, states: Numbers) -> Numbers | None:
    """The state whose distribution each column of a matrix is affine in; None where one has none."""
    digits = matrix.digits
    if (digits[:, 1:] > 0).any():
        return None
    digit = digits[:, 0]
    varying = digit > 0
    state = states[digit[varying]]
    columns = matrix.entry[varying] % matrix.shape[1]
    owner = np.full(matrix.shape[1], -1, dtype=np.int64)
    owner[columns] = state
    if (owner < 0).any() or (owner[columns] != state).any():
        return None
    return owner


def _partners(model: Expanded, states: Numbers) -> dict[int, list[int]]:
    """The symbols that stand in products with entries of each distribution, the most frequent first."""
    pairs: list[Numbers] = [np.zeros(0, dtype=np.int64)]
    count = model.symbols.count + 1
    for sums in model.everywhere():
        digits = sums.digits
        state = states[digits]
        rows = (state >= 0).sum(axis=1) == 1
        own = np.repeat(state[rows].max(axis=1, initial=-1), digits.shape[1])
        other = digits[rows].reshape(-1)
        kept = (other > 0) & (states[other] < 0)
        pairs.append(own[kept] * count + other[kept] - 1)  # one number: rows take longer to sort
    every, counts = np.unique(np.concatenate(pairs), return_counts=True)
    found: dict[int, list[int]] = {}
    for pair in every[np.argsort(-counts, kind="stable")].tolist():
        found.setdefault(pair // count, []).append(pair % count)
    return found


def _substituted(model: Expanded, policy: Variable, visits: _Visits) -> Step | Obstacle:
    symbols, coding = model.symbols, model.symbols.coding
    rows: list[Row] = []
    for function in visits.functions:
        if not _never_negative(model, function, policy):
            return Obstacle("occupancy", "the visits are not known to be nonnegative")
        unknown = Sums.symbols(function.numbers, coding)
        assert function.atom.equation is not None
        rows.append(Row(function.atom.equation(function.arguments, unknown), "==", None))
    new = Variable(policy.shape, name=fresh_name(model, "occupancy"), nonneg=True)
    numbers = symbols.of_variable(new).reshape(-1, policy.shape[-1])
    own = symbols.of_variable(policy).reshape(-1, policy.shape[-1])
    factors: dict[int, Sums] = {}
    products: dict[int, tuple[int, int]] = {}
    for state, factor in enumerate(visits.symbols.tolist()):
        pairs = zip(own[state].tolist(), numbers[state].tolist(), strict=True)
        if factor < 0:
            factors |= {x: symbol_sums(symbols, np.array(u)) for x, u in pairs}
        else:
            factors[factor] = Sums.total(numbers[state], coding)
            products |= {x: (u, factor) for x, u in pairs}
    alone = np.flatnonzero(visits.symbols < 0)
    if alone.size:
        lines = symbol_sums(symbols, own[alone])
        sums = lines.grouped(np.repeat(np.arange(alone.size), own.shape[1]), (alone.size,))
        rows.append(Row(sums - Sums.constant(np.ones(alone.size), coding), "==", None))
    rows += _bounds(model, policy, own, visits)
    factored = visits.symbols[visits.symbols >= 0]
    rewriting = Scaling(symbols, products, factors, np.concatenate([own.reshape(-1), factored]))
    gone = (policy, *visits.variables)
    after = applied(model, rewriting, gone=gone, new=(new,), rows=map(rewriting.row, rows))
    if isinstance(after, np.ndarray):
        word = described(symbols, int(after[0]))
        return Obstacle("occupancy", f"{word} appears without the visits of its state")
    return _Policy(policy, visits, new, after)


def _bounds(model: Expanded, policy: Variable, own: Numbers, visits: _Visits) -> list[Row]:
    """Bounds on the policy and on visits that are variables, as rows."""
    symbols, coding, rows = model.symbols, model.symbols.coding, list[Row]()
    ends = [
        np.broadcast_to(end, policy.shape).reshape(own.shape)
        for end in (policy.lower, policy.upper)
    ]
    for end, sign, trivial in ((ends[0], -1.0, 0.0), (ends[1], 1.0, 1.0)):
        tight = np.isfinite(end) & (sign * end < sign * trivial)
        if tight.any():
            factor = visits.symbols[np.nonzero(tight)[0]]
            x = symbol_sums(symbols, own[tight]) - Sums.constant(end[tight], coding)
            s = symbol_sums(symbols, np.maximum(factor, 0)).scaled(factor >= 0)
            s = s + Sums.constant((factor < 0).astype(float), coding)
            rows.append(Row(x.times(s).scaled(sign), "<=", None))
    for variable in visits.variables:
        flat = symbol_sums(symbols, symbols.of_variable(variable)).reshaped((variable.size,))
        low, high = np.ravel(variable.lower), np.ravel(variable.upper)
        if (low > 0).any():
            rows.append(Row(Sums.constant(low, coding) - flat, "<=", None))
        if variable.set.is_distribution:
            lines = np.repeat(np.arange(variable.size // variable.shape[-1]), variable.shape[-1])
            ones = Sums.constant(np.ones(lines[-1] + 1), coding)
            rows.append(Row(flat.grouped(lines, ones.shape) - ones, "==", None))
        elif np.isfinite(high).any():
            places = np.flatnonzero(np.isfinite(high))
            part = flat.taken(places, (places.size,)) - Sums.constant(high[places], coding)
            rows.append(Row(part, "<=", None))
    return rows


def _never_negative(model: Expanded, function: Opaque, policy: Variable) -> bool:
    """Whether the solution of the system is nonnegative for every policy; see the module."""
    if len(function.arguments) != 2 or not function.arguments[1].is_constant:
        return False
    if (function.arguments[1].value < 0).any():
        return False
    columns = columns_by_action(model, function.arguments[0], policy)
    if columns is None:
        return False
    places = np.arange(columns.shape[0])
    diagonal = columns[places, places]
    off = columns.copy()
    off[places, places] = 0.0
    sums = diagonal + off.sum(axis=0)
    return bool(
        (off <= 0).all() and (diagonal >= 0).all() and (sums >= -DATA_ROUNDING * diagonal).all()
    )


def columns_by_action(model: Expanded, matrix: Sums, policy: Variable) -> FloatArray | None:
    """A square matrix at each action of the policy, [row, column, action].

    Each column has to be affine in one distribution of the policy; it is then, for every policy, a mean
    of its columns here. None where one is not.
    """
    size, digits = matrix.shape[0], matrix.digits
    own = model.symbols.of_variable(policy).reshape(-1, policy.shape[-1])
    state = np.full(model.symbols.count + 1, -1, dtype=np.int64)
    action = state.copy()
    state[own.reshape(-1) + 1] = np.repeat(np.arange(own.shape[0]), own.shape[1])
    action[own.reshape(-1) + 1] = np.tile(np.arange(own.shape[1]), own.shape[0])
    digit, (rows, columns) = digits[:, 0], divmod(matrix.entry, size)
    varying = digit > 0
    owner = np.full(size, -1, dtype=np.int64)
    owner[columns[varying]] = state[digit[varying]]
    strange = (state[digit[varying]] < 0) | (owner[columns[varying]] != state[digit[varying]])
    if digits[:, 1:].any() or strange.any():
        return None
    found = np.zeros((size, size, own.shape[1]))
    found[rows[~varying], columns[~varying]] = matrix.weight[~varying, None]
    places = rows[varying], columns[varying], action[digit[varying]]
    found[places] += matrix.weight[varying]  # terms are merged: no place occurs twice
    return found


class _Policy(Step):
    """π and d in place of λ."""

    name = "occupancy"

    def __init__(self, policy: Variable, visits: _Visits, new: Variable, after: Expanded) -> None:
        self.gone = (policy, *visits.variables)
        self.new = (new,)
        self.after = after
        self._visits = visits
        factor = visits.variables[0].name if visits.variables else "visits"
        self.texts = {new: f"{factor} * {policy.name}"}

    def forward(self, point: Points) -> None:
        known = self._visits.symbols >= 0
        symbols = symbol_sums(self.after.symbols, self._visits.symbols[known])
        visits = np.ones(known.size)
        visits[known] = Evaluation(self.after.symbols, point).of(symbols)
        policy = point[self.gone[0]]
        point[self.new[0]] = policy * visits.reshape(*policy.shape[:-1], 1)

    def tangent_back(self, point: Points, moves: Points) -> None:
        """dπ = (dλ − π Σ dλ) / Σ λ, and dd = Σ dλ."""
        policy, change = point[self.gone[0]], moves[self.new[0]]
        visits = point[self.new[0]].sum(axis=-1, keepdims=True)
        moved = change.sum(axis=-1, keepdims=True)
        seen = visits > np.finfo(float).tiny
        share = (change - policy * moved) / np.where(seen, visits, 1.0)
        moves[self.gone[0]] = np.where(seen, share, 0.0)
        for variable in self._visits.variables:
            rest = moves.get(variable, np.zeros(variable.shape))
            moves[variable] = self._filled(variable, moved.reshape(-1), rest)

    def back(self, point: Points) -> None:
        occupancy = np.maximum(point[self.new[0]], 0.0)
        visits = occupancy.sum(axis=-1, keepdims=True)
        seen = visits > np.finfo(float).tiny
        share = np.where(seen, occupancy / np.where(seen, visits, 1.0), 1.0 / occupancy.shape[-1])
        point[self.gone[0]] = share
        flat = visits.reshape(-1)
        for variable in self._visits.variables:
            middle = variable.set.expand(np, variable.set.domain().middle())
            rest = point.get(
                variable, np.asarray(middle)
            )  # entries that are no visits are still there
            point[variable] = self._filled(variable, flat, rest)

    def _filled(self, variable: Variable, visits: FloatArray, rest: FloatArray) -> FloatArray:
        """The visits where they are entries of a variable."""
        numbers, values = self.after.symbols.of_variable(variable), np.array(rest, dtype=float)
        for place, symbol in enumerate(self._visits.symbols.tolist()):
            values[numbers == symbol] = visits[place]
        return values
