"""Covariances over several stages: inequalities in place of the equations that propagate them.

A plant with gains K_t and noise has covariances

    S_{t+1} == (A + B K_t) S_t (A + B K_t)ᵀ + W,    W ⪰ 0

which are quadratic in the gain even in the coordinates S and Y = K S. As inequalities ⪰ they are convex
there (`matrix_product`), and nothing is lost: for given gains the solution of the equations is the least
of all S that satisfy the inequalities, stage by stage. So where objective and rows do not decrease as
covariances grow at fixed gains, the inequalities have the same optimum, and the way back computes the
covariances from the gains. What grows with S at a fixed gain is

    ⟨Q, S⟩ + 2 ⟨N, K S⟩ + ⟨R, K S Kᵀ⟩    with    [[Q, Nᵀ], [N, R]] ⪰ 0

The equation P == F P Fᵀ + W of a plant that has settled belongs to `product` (`matrix_inequalities`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.definiteness import is_semidefinite
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.congruences import congruence
from hcmodel.maps.expanded import Expanded, Row
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.matrix_inequalities import slack_of
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Covariances(Map):
    """S_{t+1} ⪰ (A + B K_t) S_t (A + B K_t)ᵀ + W in place of ==; see the module."""

    name = "covariances"
    summary = (
        "covariances of stages as inequalities, S ⪰ F S Fᵀ + W; back: equations, stage by stage"
    )
    literature = "Boyd, El Ghaoui, Feron, Balakrishnan 1994; Liu, Rapakoulias, Tsiotras 2022"
    example = "covariances.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        stages = _in_order(_stages(model))
        if not any(stage.moves for stage in stages):
            return
        wrong = _decreasing(model, stages)
        if wrong is not None:
            yield Obstacle("covariances", wrong)
        else:
            yield _Covariances(model, stages)


@dataclass(frozen=True, eq=False)
class _Loop:
    """F S Fᵀ with F = A + G K; S is a variable or a constant, and K may be absent."""

    drift: FloatArray
    factor: FloatArray
    gain: Variable | None
    turned: bool
    inner: Variable | FloatArray

    def at(self, point: Points) -> FloatArray:
        closed, inner = self.drift + self._moved(point), self._inner(point)
        return np.asarray(closed @ inner @ closed.T)

    def change(self, point: Points, moves: Points) -> FloatArray:
        """How it moves with the gain and with S."""
        closed, inner = self.drift + self._moved(point), self._inner(point)
        half = self._moved(moves) @ inner @ closed.T
        found = half + half.T
        if isinstance(self.inner, Variable):
            found = found + closed @ moves[self.inner] @ closed.T
        return np.asarray(found)

    def _moved(self, point: Points) -> FloatArray:
        """G K."""
        if self.gain is None:
            return np.zeros(self.drift.shape)
        values = np.atleast_2d(point[self.gain])
        return np.asarray(self.factor @ (values.T if self.turned else values))

    def _inner(self, point: Points) -> FloatArray:
        return point[self.inner] if isinstance(self.inner, Variable) else self.inner


@dataclass(frozen=True, eq=False)
class _Stage:
    """The equation S == Σ F S' F'ᵀ + W of a covariance, `weight` times which is the row."""

    row: Row
    weight: float
    covariance: Variable
    loops: tuple[_Loop, ...]
    noise: FloatArray

    @property
    def moves(self) -> bool:
        """Whether there is a gain in it."""
        return any(loop.gain is not None for loop in self.loops)

    @property
    def sources(self) -> list[Variable]:
        return [loop.inner for loop in self.loops if isinstance(loop.inner, Variable)]

    def at(self, point: Points) -> FloatArray:
        total = sum((loop.at(point) for loop in self.loops), self.noise)
        return np.asarray(total + total.T) / 2


# ---- recognition


def _is_covariance(variable: Variable) -> bool:
    return variable.set.is_curved and variable.set.is_symmetric


def _stages(model: Expanded) -> list[_Stage]:
    """The rows that define a covariance by others, each covariance once."""
    found: dict[Variable, _Stage] = {}
    for row in model.rows:
        shape = row.sums.shape
        if row.sense != "==" or len(shape) != 2 or shape[0] != shape[1] or row.factor is not None:
            continue
        for variable in _variables(model, row.sums):
            if not _is_covariance(variable) or variable.shape != shape or variable in found:
                continue
            stage = _stage(model, row, variable)
            if stage is not None:
                found[variable] = stage
                break
    return list(found.values())


def _stage(model: Expanded, row: Row, covariance: Variable) -> _Stage | None:
    numbers = model.symbols.of_variable(covariance)
    marks = row.sums.holding(numbers)
    own = row.sums.chosen(marks)
    if own.key.size != own.size or (own.key != np.ravel(numbers) + 1).any():
        return None
    weight = float(own.weight[0])
    slack = slack_of(model, row)
    if (own.weight != weight).any() or (slack is not None and slack is not covariance):
        return None  # with another slack it is an inequality
    found = _decomposed(model, row.sums.chosen(~marks).scaled(-1.0 / weight))
    return None if found is None else _Stage(row, weight, covariance, *found)


def _variables(model: Expanded, sums: Sums) -> list[Variable]:
    """The variables in a sum; functions count as none."""
    found = [source for source, _, _ in model.symbols.grouped(sums.symbols_used())]
    return [source for source in found if isinstance(source, Variable)]


def _decomposed(model: Expanded, sums: Sums) -> tuple[tuple[_Loop, ...], FloatArray] | None:
    """A matrix as Σ F S Fᵀ + W with W ⪰ 0; None where it is no such sum."""
    loops: list[_Loop] = []
    rest = sums
    for matrix in filter(_is_covariance, _variables(model, sums)):
        marks = rest.holding(model.symbols.of_variable(matrix))
        loop = _loop(model, rest.chosen(marks), matrix)
        if loop is None:
            return None
        loops.append(loop)
        rest = rest.chosen(~marks)
    if not rest.is_constant:
        found = _from_constant(model, rest)
        if found is None:
            return None
        loops.append(found[0])
        rest = found[1]
    return (tuple(loops), rest.value) if is_semidefinite(rest.value) else None


def _gains(model: Expanded, sums: Sums, order: int) -> Iterator[tuple[Variable, Numbers, bool]]:
    """The one variable beside a covariance, as it is and transposed, where it has as many columns."""
    others = [each for each in _variables(model, sums) if not _is_covariance(each)]
    if len(others) != 1 or others[0].ndim > 2:
        return
    numbers = np.atleast_2d(model.symbols.of_variable(others[0]))
    for turned in (False, True):
        wide = numbers.T if turned else numbers
        if wide.shape[1] == order:
            yield others[0], wide, turned


def _loop(model: Expanded, part: Sums, matrix: Variable) -> _Loop | None:
    """F with F S Fᵀ = part, from the terms in S alone and from those in S[1,1]."""
    inner, size = model.symbols.of_variable(matrix), part.shape[0]
    order = inner.shape[0]
    alone = _weights(part, _pairs(inner))
    drift = congruence(alone, size) if alone else None
    if drift is None:
        drift = np.zeros((size, order))
    if _is_loop(model, part, Sums.constant(drift, part.coding), inner):
        return _Loop(drift, np.zeros((size, 0)), None, False, matrix)
    for gain, wide, turned in _gains(model, part, order):
        squares = _weights(part, _pairs(wide[:, 0], wide[:, 0], int(inner[0, 0])))
        factor = congruence(squares, size) if squares else None
        if factor is None:
            continue
        moved = symbol_sums(model.symbols, wide)
        for sign in (1.0, -1.0):
            closed = Sums.constant(drift, part.coding)
            closed = closed + Sums.constant(sign * factor, part.coding) @ moved
            if _is_loop(model, part, closed, inner):
                return _Loop(drift, sign * factor, gain, turned, matrix)
    return None


def _is_loop(model: Expanded, part: Sums, closed: Sums, inner: Numbers) -> bool:
    return (closed @ symbol_sums(model.symbols, inner) @ closed.transposed()).equals(part)


Pairs = Mapping[tuple[int, ...], tuple[int, int]]


def _pairs(one: Numbers, two: Numbers | None = None, third: int | None = None) -> Pairs:
    """The places of products of symbols by their sorted digits: of a matrix, or of two lines of K."""
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    if two is None:
        for i, j in np.ndindex(*one.shape):
            found.setdefault((int(one[i, j]) + 1,), (i, j))
        return found
    for a, first in enumerate(one.tolist()):
        for b, second in enumerate(two.tolist()):
            digits = [first + 1, second + 1] + ([] if third is None else [third + 1])
            found.setdefault(tuple(sorted(digits)), (a, b))
    return found


def _weights(sums: Sums, places: Pairs) -> dict[int, FloatArray]:
    """For each entry the symmetric matrix of the weights of some products."""
    order = 1 + max(max(pair) for pair in places.values())
    found: dict[int, FloatArray] = {}
    for entry, digits, weight in zip(
        sums.entry.tolist(), sums.digits.tolist(), sums.weight.tolist(), strict=True
    ):
        pair = places.get(tuple(sorted(filter(None, digits))))
        if pair is not None:
            matrix = found.setdefault(entry, np.zeros((order, order)))
            matrix[pair] += weight / 2
            matrix[pair[::-1]] += weight / 2
    return found


def _from_constant(model: Expanded, sums: Sums) -> tuple[_Loop, Sums] | None:
    """(A + G K) S (A + G K)ᵀ with a constant S, and what is left: both are found up to a factor.

    G comes from the squares of one column of K, S from the products of one row, A S from what is
    linear in K.
    """
    size = sums.shape[0]
    others = [each for each in _variables(model, sums) if each.ndim <= 2]
    if len(others) != 1:
        return None
    numbers = np.atleast_2d(model.symbols.of_variable(others[0]))
    for turned in (False, True):
        wide = numbers.T if turned else numbers
        rows, order = wide.shape
        squares = [_weights(sums, _pairs(column, column)) for column in wide.T]
        sizes = [max((np.abs(each).max() for each in own.values()), default=0.0) for own in squares]
        factor = congruence(squares[int(np.argmax(sizes))], size) if max(sizes) > 0 else None
        if factor is None:
            continue
        i, a = np.unravel_index(int(np.abs(factor).argmax()), factor.shape)
        own = _weights(sums, _pairs(wide[a], wide[a])).get(int(i) * (size + 1))
        if own is None:
            continue
        inner = own / factor[i, a] ** 2
        linear = np.zeros((size, size, rows, order))
        places = {int(number) + 1: place for place, number in np.ndenumerate(wide)}
        for entry, digits, weight in zip(
            sums.entry.tolist(), sums.digits.tolist(), sums.weight.tolist(), strict=True
        ):
            present = [digit for digit in digits if digit]
            if len(present) == 1 and present[0] in places:
                linear[divmod(entry, size)][places[present[0]]] = weight
        drift = _drift(linear, factor) @ np.linalg.pinv(inner, hermitian=True)
        coding = sums.coding
        closed = Sums.constant(drift, coding)
        closed = closed + Sums.constant(factor, coding) @ symbol_sums(model.symbols, wide)
        rest = sums - closed @ Sums.constant(inner, coding) @ closed.transposed()
        # what least squares have left where nothing should be; the row itself stays as it is
        rest = rest.chosen(np.abs(rest.weight) > DATA_ROUNDING * np.abs(sums.weight).max())
        if rest.is_constant and is_semidefinite(inner):
            return _Loop(drift, factor, others[0], turned, inner), rest
    return None


def _drift(linear: FloatArray, factor: FloatArray) -> FloatArray:
    """Z with Z[i,q] G[j,b] + Z[j,q] G[i,b] = linear[i,j,b,q], by least squares."""
    size, rows = factor.shape
    unit = np.eye(size)
    system = np.einsum("ik,jb->ijbk", unit, factor) + np.einsum("jk,ib->ijbk", unit, factor)
    wanted = linear.reshape(size * size * rows, -1)
    return np.asarray(np.linalg.lstsq(system.reshape(-1, size), wanted, rcond=None)[0])


def _in_order(stages: Sequence[_Stage]) -> list[_Stage]:
    """The stages, each after those that it comes from; none where they go in a circle."""
    known = {stage.covariance: stage for stage in stages}
    graph = {
        stage.covariance: [each for each in stage.sources if each in known] for stage in stages
    }
    try:
        return [known[each] for each in TopologicalSorter(graph).static_order()]
    except CycleError:
        return []


# ---- nothing is lost


def _decreasing(model: Expanded, stages: Sequence[_Stage]) -> str | None:
    """What is in the way: something that may decrease as a covariance grows; None where nothing is."""
    for stage in stages:
        variable = stage.covariance
        lowest = 0.0 if variable.eigenvalue_bounds is None else variable.eigenvalue_bounds[0]
        least = is_semidefinite(stage.noise - lowest * np.eye(len(stage.noise)))
        if variable.has_bounds or not least:
            return f"the bounds of {variable.name} may hold its entries"
    defining = {id(stage.row) for stage in stages}
    for stage in stages:
        numbers = model.symbols.of_variable(stage.covariance)
        inside = (sums for each in model.functions() for sums in each.arguments)
        if any(sums.holding(numbers).any() for sums in inside):
            return f"{stage.covariance.name} stands in a function"
        if not _grows(model, model.objective, stage.covariance):
            return f"the objective may decrease as {stage.covariance.name} grows"
        for row in model.rows:
            if id(row) not in defining and not _row_grows(model, row, stage.covariance):
                name = "a row" if row.position is None else f"c{row.position + 1}"
                return f"{name} may decrease as {stage.covariance.name} grows"
    return None


def _row_grows(model: Expanded, row: Row, matrix: Variable) -> bool:
    """Whether a row that holds is still satisfied with a smaller covariance."""
    marks = row.sums.holding(model.symbols.of_variable(matrix))
    if not marks.any():
        return True
    if row.sense != "==":
        return _grows(model, row.sums, matrix)
    slack = slack_of(model, row)
    if slack is None:
        return False
    own = row.sums.holding(model.symbols.of_variable(slack))
    scale = float(row.sums.weight[own][0])  # the slack is −(the rest)/scale
    return _loop(model, row.sums.chosen(marks).scaled(1.0 / scale), matrix) is not None


def _grows(model: Expanded, sums: Sums, matrix: Variable) -> bool:
    """Whether no entry decreases as a covariance grows, at fixed gains."""
    inner = model.symbols.of_variable(matrix)
    part = sums.chosen(sums.holding(inner)).reshaped((sums.size,))
    return all(_entry_grows(model, each, inner) for each in part.entries() if each.key.size)


def _entry_grows(model: Expanded, part: Sums, inner: Numbers) -> bool:
    order = inner.shape[0]
    state = _weights(part, _pairs(inner)).get(0, np.zeros((order, order)))
    matrix = symbol_sums(model.symbols, inner)
    alone = _inner_product(state, matrix)
    if alone.equals(part):
        return is_semidefinite(state)
    for _, wide, _ in _gains(model, part, order):
        rows = wide.shape[0]
        square = _weights(part, _pairs(wide[:, 0], wide[:, 0], int(inner[0, 0])))
        both = square.get(0, np.zeros((rows, rows)))
        cross = _cross(part, _pairs(wide[:, 0], inner[0]), (rows, order))
        gain = symbol_sums(model.symbols, wide)
        mixed = _inner_product(2 * cross, gain @ matrix)
        squares = _inner_product(both, gain @ matrix @ gain.transposed())
        if (alone + mixed + squares).equals(part):
            return is_semidefinite(np.block([[state, cross.T], [cross, both]]))
    return False


def _cross(part: Sums, places: Pairs, shape: tuple[int, int]) -> FloatArray:
    """Half the weights of products of two different lines, in a scalar."""
    found = np.zeros(shape)
    for digits, weight in zip(part.digits.tolist(), part.weight.tolist(), strict=True):
        pair = places.get(tuple(sorted(filter(None, digits))))
        if pair is not None:
            found[pair] = weight / 2
    return found


def _inner_product(weights: FloatArray, matrix: Sums) -> Sums:
    whole = matrix.scaled(weights)
    return whole.grouped(np.zeros(whole.size, dtype=np.intp), ())


# ---- the step


class _Covariances(Step):
    """Slacks that are 0, and covariances from the gains."""

    name = "covariances"
    gone = ()

    def __init__(self, model: Expanded, stages: Sequence[_Stage]) -> None:
        self._stages = tuple(stages)
        slacks: dict[int, tuple[Variable, float]] = {}
        for stage in stages:
            if stage.moves:  # else it is linear in S
                name = fresh_name(model, f"slack·{stage.covariance.name}")
                slack = Variable(stage.covariance.shape, name=name, PSD=True)
                slacks[id(stage.row)] = slack, stage.weight
        self.new = tuple(slack for slack, _ in slacks.values())
        rows = []
        for row in model.rows:
            if id(row) in slacks:
                slack, weight = slacks[id(row)]
                own = symbol_sums(model.symbols, model.symbols.of_variable(slack))
                row = replace(row, sums=row.sums - own.scaled(weight))
            rows.append(row)
        variables = (*model.variables, *self.new)
        self.after = replace(model, rows=tuple(rows), variables=variables, is_original=False)

    def forward(self, point: Points) -> None:
        for slack in self.new:
            point[slack] = np.zeros(slack.shape)

    def back(self, point: Points) -> None:
        self.settle(point)

    def tangent_back(self, point: Points, moves: Points) -> None:
        for stage in self._stages:
            loops = [loop.change(point, moves) for loop in stage.loops]
            moves[stage.covariance] = sum(loops, np.zeros(stage.noise.shape))

    def settle(self, point: Points) -> None:
        """Covariances from gains, stage by stage."""
        for stage in self._stages:
            point[stage.covariance] = stage.at(point)
