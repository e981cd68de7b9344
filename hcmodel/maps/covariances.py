"""Covariances over several stages: inequalities in place of the equations that propagate them.

A plant with gains K_t and noise has covariances

    S_{t+1} == (A + B K_t) S_t (A + B K_t)ᵀ + W,    W ⪰ 0

which are quadratic in the gain even in the coordinates S and Y = K S. As inequalities ⪰ they are convex
there (`matrix_product`), and nothing is lost: for given gains the solution of the equations is the least
of all S that satisfy the inequalities, stage by stage. So where objective and rows do not decrease as
covariances grow at fixed gains, the inequalities have the same optimum, and the way back computes the
covariances from the gains. Bounds of S that these may violate are left out, and the point is tested
against them. What grows with S at a fixed gain is

    ⟨Q, S⟩ + 2 ⟨N, K S⟩ + ⟨R, K S Kᵀ⟩    with    [[Q, Nᵀ], [N, R]] ⪰ 0

The equation P == F P Fᵀ + W of a plant that has settled belongs to `product` (`matrix_inequalities`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.conditions import Unmet
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.matrix_algebra.congruences import congruence
from hcmodel.maps.matrix_algebra.growing import (
    Loop,
    grows,
    is_covariance,
    loop_of,
    pairs_of,
    plain_variables,
    row_grows,
    weights_at,
)
from hcmodel.maps.matrix_algebra.slacks import slack_of
from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.definite import is_semidefinite
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
            yield Unmet("covariances", wrong)
        else:
            yield _Covariances(model, stages)


@dataclass(frozen=True, eq=False)
class _Stage:
    """The equation S == Σ F S' F'ᵀ + W of a covariance, `weight` times which is the row."""

    row: Row
    weight: float
    covariance: Variable
    loops: tuple[Loop, ...]
    noise: FloatArray

    @property
    def moves(self) -> bool:
        """Whether there is a gain in it."""
        return any(loop.gain is not None for loop in self.loops)

    @property
    def may_be_too_small(self) -> bool:
        """Whether bounds of the covariance are not known to hold for the solution of the equation."""
        lowest = (self.covariance.eigenvalue_bounds or (0.0, np.inf))[0]
        above = is_semidefinite(self.noise - lowest * np.eye(len(self.noise)))
        return self.covariance.has_bounds or not above

    @property
    def sources(self) -> list[Variable]:
        return [loop.inner for loop in self.loops if isinstance(loop.inner, Variable)]

    def at(self, point: Points) -> FloatArray:
        total = sum((loop.at(point) for loop in self.loops), self.noise)
        return np.asarray(total + total.T) / 2


# ---- recognition


def _stages(model: Expanded) -> list[_Stage]:
    """The rows that define a covariance by others, each covariance once."""
    found: dict[Variable, _Stage] = {}
    for row in model.rows:
        shape = row.sums.shape
        if row.sense != "==" or len(shape) != 2 or shape[0] != shape[1] or row.factor is not None:
            continue
        for variable in plain_variables(model.symbols, row.sums):
            if not is_covariance(variable) or variable.shape != shape or variable in found:
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


def _decomposed(model: Expanded, sums: Sums) -> tuple[tuple[Loop, ...], FloatArray] | None:
    """A matrix as Σ F S Fᵀ + W with W ⪰ 0; None where it is no such sum."""
    loops: list[Loop] = []
    rest = sums
    for matrix in filter(is_covariance, plain_variables(model.symbols, sums)):
        marks = rest.holding(model.symbols.of_variable(matrix))
        loop = loop_of(model.symbols, rest.chosen(marks), matrix)
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


def _from_constant(model: Expanded, sums: Sums) -> tuple[Loop, Sums] | None:
    """(A + G K) S (A + G K)ᵀ with a constant S, and what is left: both are found up to a factor.

    G comes from the squares of one column of K, S from the products of one row, A S from what is
    linear in K.
    """
    size = sums.shape[0]
    others = [each for each in plain_variables(model.symbols, sums) if each.ndim <= 2]
    if len(others) != 1:
        return None
    numbers = np.atleast_2d(model.symbols.of_variable(others[0]))
    for turned in (False, True):
        wide = numbers.T if turned else numbers
        rows, order = wide.shape
        squares = [weights_at(sums, pairs_of(column, column)) for column in wide.T]
        sizes = [max((np.abs(each).max() for each in own.values()), default=0.0) for own in squares]
        factor = congruence(squares[int(np.argmax(sizes))], size) if max(sizes) > 0 else None
        if factor is None:
            continue
        i, a = np.unravel_index(int(np.abs(factor).argmax()), factor.shape)
        own = weights_at(sums, pairs_of(wide[a], wide[a])).get(int(i) * (size + 1))
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
            return Loop(drift, factor, others[0], turned, inner), rest
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
    defining = {id(stage.row) for stage in stages}
    for stage in stages:
        if not grows(model.symbols, model.objective, stage.covariance):
            return f"the objective may decrease as {stage.covariance.name} grows"
        for row in model.rows:
            if id(row) not in defining and not row_grows(model, row, stage.covariance):
                return f"{model.name_of(row)} may decrease as {stage.covariance.name} grows"
    return None


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
        self.released = tuple(each.covariance.name for each in stages if each.may_be_too_small)
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
