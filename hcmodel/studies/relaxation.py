"""The least relaxation of an infeasible model: which rows are relaxed, and by how much.

    lhs <= rhs + s,  s >= 0,  least Σ s          lhs <= rhs·σ,  σ >= 1,  least Σ log σ

Where several relaxations have the same total, one of few rows is taken: the total is solved a second
time with weights that differ by a thousandth, smaller ones for rows that gave more, and a third time
without the rows that then give hardly anything. What is found counts if its total is the same.

A row is relaxed by an amount where that keeps the model convex in its hidden coordinates: everywhere,
except that a row in logarithms is relaxed by an amount only if it has a constant upper limit, and by a
factor otherwise. Sets of variables are not relaxed. The relaxed
model is proven, solved and certified like any other model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel import atoms
from hcmodel.certify.domains.nowhere import nowhere_in
from hcmodel.errors import ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.model import Minimize, Model
from hcmodel.expressions.node import as_expression
from hcmodel.expressions.sparse_data import dense
from hcmodel.facts.node_facts import Facts
from hcmodel.records import dataclass
from hcmodel.reductions.forms import Forms
from hcmodel.report.json import plain
from hcmodel.report.text import counted
from hcmodel.solving.conclude import named_parts
from hcmodel.solving.judge import Status
from hcmodel.solving.naming import Naming, label
from hcmodel.solving.solution import Solution

FloatArray = NDArray[np.float64]

AMOUNT, FACTOR = "amount", "factor"
SOLVED = (Status.OPTIMAL, Status.LOCALLY_OPTIMAL, Status.OPTIMAL_INACCURATE)
# Times the solver's tolerance, and the size of the row's sides: less than this is not giving at all.
NOTHING = 10.0
# By how much the weights of rows differ that decide between relaxations of equal totals. A vertex of a
# linear program stays optimal; where a smaller or larger share moves an optimum, the total grows.
DIFFERENCE = 1e-3
# The share of the largest amount up to which rows are then tried without any.
FEW = 1e-4


@dataclass(frozen=True)
class Give:
    """What one row has to give. `amount` is added to the right-hand side, `factor` multiplies it."""

    name: str
    kind: str
    sense: str
    amount: float
    """The amount by which the right-hand side moves, or the factor: 1 or more, also where it divides."""
    right: float
    """The right-hand side at the relaxed point, as written."""

    def __str__(self) -> str:
        if self.kind == AMOUNT:
            return f"{self.name}: right-hand side {self.amount:+.6g}"
        verb = "times" if self.sense in ("<=", "*") else "divided by"
        return f"{self.name}: right-hand side {verb} {self.amount:.6g}"


@dataclass(frozen=True)
class Relaxation:
    """The least relaxation: relaxed rows, the total, and the solve that found it.

    `total` is the sum of all amounts and of the logarithms of all factors, with their weights.
    """

    total: float | None
    rows: tuple[Give, ...]
    solution: Solution = field(repr=False)
    amounts: Mapping[str, FloatArray] = field(repr=False)
    """By constraint, what is added to the right-hand side; 0 where a row does not give."""
    factors: Mapping[str, FloatArray] = field(repr=False)
    """By constraint, what multiplies the right-hand side; 1 where a row does not give."""
    point: Mapping[str, FloatArray] = field(repr=False)
    excluding: tuple[str, ...] = ()
    """Rows and bounds that can hold together, but not where every function is defined: some of them have
    to be relaxed, by an arbitrarily small amount."""

    @property
    def status(self) -> str:
        """Of the solve: with `optimal`, less than `total` does not suffice."""
        return self.solution.status.value

    @property
    def is_feasible(self) -> bool:
        """Whether the model is feasible as it is: no row has to give."""
        return self.total is not None and not self.rows and not self.excluding

    def __getitem__(self, name: str) -> Give:
        for row in self.rows:
            if row.name == name:
                return row
        listed = ", ".join(row.name for row in self.rows) or "none"
        raise KeyError(f"{name!r} does not have to be relaxed; rows that have to: {listed}")

    def _repr_html_(self) -> str:
        from hcmodel.report.notebook import text_html

        return text_html(self)

    def __str__(self) -> str:
        if self.total is None:
            conflict = ", ".join(self.solution.conflict)
            rest = f"; {conflict} cannot hold together, and only rows that are named are relaxed"
            return f"no relaxation was found ({self.status}{rest if conflict else ''})"
        if not self.rows and self.excluding:
            names = ", ".join(self.excluding)
            leave = "leaves" if len(self.excluding) == 1 else "leave"
            return (
                f"{names} {leave} no point at which every function is defined: a relaxation is enough, "
                "however small, that leads away from there"
            )
        if not self.rows:
            return "no row has to be relaxed: the model is feasible"
        verb = "has" if len(self.rows) == 1 else "have"
        rows = counted(len(self.rows), "row")
        head = f"{rows} {verb} to be relaxed, by {self.total:.6g} in total ({self.status}):"
        return "\n".join([head, *(f"  {row}" for row in self.rows)])

    def to_json(self, model: str | None = None) -> dict[str, Any]:
        """A dict of plain numbers and lists, ready for `json.dumps`."""
        return {
            "model": model,
            "status": self.status,
            "total": plain(self.total),
            "gap": plain(self.solution.certificate.gap),
            "rows": [
                {
                    "name": row.name,
                    "kind": row.kind,
                    "sense": row.sense,
                    "amount": plain(row.amount),
                }
                for row in self.rows
            ],
            "variables": {name: plain(array) for name, array in self.point.items()},
        }


@dataclass(frozen=True)
class _Row:
    """A constraint with the variables by which it gives, up and down."""

    name: str
    constraint: Constraint
    kind: str
    up: Variable | None = None
    down: Variable | None = None

    def given(self) -> FloatArray:
        """What is added to the right-hand side, or multiplies it."""
        neutral = 0.0 if self.kind == AMOUNT else 1.0
        shape = () if self.constraint.is_semidefinite else self.constraint.shape
        up = np.full(shape, neutral) if self.up is None else np.asarray(self.up.value)
        down = np.full(shape, neutral) if self.down is None else np.asarray(self.down.value)
        if self.kind == AMOUNT:
            return np.asarray(up - down)
        return np.asarray(up / down)


class RelaxedModel:
    """A model whose rows may be relaxed, with the total as its objective."""

    def __init__(
        self,
        forms: Forms,
        only: Iterable[str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.model, self._forms = forms.user, forms
        naming = Naming.of(self.model)
        chosen = _chosen(naming.constraints, only, "rows")
        scale = _weights(naming.constraints, weights)
        logs = _logarithms(forms)
        self.rows = [
            self._row(name, constraint, logs)
            for name, constraint in zip(naming.constraints, self.model.constraints, strict=True)
            if chosen is None or name in chosen
        ]
        if not self.rows:
            raise ModelError("the model has no rows, and the sets of variables are not relaxed")
        by_constraint = {id(row.constraint): row for row in self.rows}
        constraints = [
            _relaxed(by_constraint[id(each)]) if id(each) in by_constraint else each
            for each in self.model.constraints
        ]
        self._scale = scale
        total = self._total()
        hidden = (
            None  # the new variables are in no declared map; the proof finds coordinates itself
        )
        self.after = replace(
            self.model, objective=Minimize(total), constraints=tuple(constraints), hidden=hidden
        )

    def _total(self, weights: Mapping[str, FloatArray] | None = None) -> Expression:
        """What is minimised; `weights` are those of the entries of the added variables, by name."""
        total: Expression = as_expression(0.0)
        for row in self.rows:
            total = total + self._scale.get(row.name, 1.0) * _cost(row, weights)
        return total

    def least(self, solve: Callable[[Model], Solution | None], tolerance: float) -> Relaxation:
        """The relaxation, with few rows where several have the same total.

        `solve` gives None where there is no time for another solve.
        """
        first = solve(self.after)
        assert first is not None
        found = self.found(first, tolerance)
        if len(found.rows) < 2 or first.status is not Status.OPTIMAL or first.value is None:
            return found
        again = solve(replace(self.after, objective=Minimize(self._total(self._preferred()))))
        if again is None or again.status not in SOLVED:
            return found
        last = solve(self._without_small())
        if last is None or last.value is None or last.status is not Status.OPTIMAL:
            return found
        if last.value > first.value + NOTHING * tolerance * max(1.0, abs(first.value)):
            return found
        other = self.found(last, tolerance)
        return other if len(other.rows) < len(found.rows) else found

    def _added(self) -> list[tuple[Variable, FloatArray]]:
        """The added variables, and what each entry costs in total."""
        found = []
        for row in self.rows:
            for each in (row.up, row.down):
                if each is not None:
                    value = np.asarray(each.value, dtype=float)
                    found.append((each, np.log(value) if row.kind == FACTOR else value))
        return found

    def _preferred(self) -> dict[str, FloatArray]:
        """Weights near 1 of all added variables: smaller where they are larger, and no two alike."""
        added = self._added()
        sizes = np.concatenate([np.ravel(cost) for _, cost in added])
        weights = 1.0 + DIFFERENCE * np.argsort(np.argsort(-sizes, kind="stable")) / sizes.size
        found, start = {}, 0
        for each, cost in added:
            found[each.name] = weights[start : start + each.size].reshape(cost.shape)
            start += each.size
        return found

    def _without_small(self) -> Model:
        """The relaxed model in which entries that hardly give do not give."""
        added = self._added()
        least = FEW * max(float(np.max(cost, initial=0.0)) for _, cost in added)
        constraints = list(self.after.constraints)
        for each, cost in added:
            neutral = float(np.min(each.lower))
            if not cost.shape:
                constraints += [] if cost > least else [each == neutral]
                continue
            small = np.nonzero(cost <= least)
            if small[0].size:
                constraints.append(each[small] == neutral)
        return replace(self.after, constraints=tuple(constraints))

    def _row(self, name: str, constraint: Constraint, logs: set[int]) -> _Row:
        """The variables of one constraint."""
        kind = _kind(constraint, logs)
        shape = () if constraint.is_semidefinite else constraint.shape
        least = {"nonneg": True} if kind == AMOUNT else {"bounds": (1.0, None), "pos": True}
        rises = {"<=": (True, False), "<<": (True, False), "==": (True, True)}
        up, down = rises.get(constraint.sense, (False, True))
        return _Row(
            name,
            constraint,
            kind,
            Variable(shape, name=f"up·{name}", **least) if up else None,
            Variable(shape, name=f"down·{name}", **least) if down else None,
        )

    def found(self, solution: Solution, tolerance: float) -> Relaxation:
        """The relaxation that a solve of `after` has found; its variables have their values."""
        naming = Naming.of(self.model)
        own = {variable.name for variable in self.model.variables}
        point = {name: value for name, value in solution.point.items() if name in own}
        amounts: dict[str, FloatArray] = {}
        factors: dict[str, FloatArray] = {}
        if solution.status not in SOLVED:
            return Relaxation(None, (), solution, amounts, factors, point)
        gives = []
        for row in self.rows:
            given, right = row.given(), _right(row)
            size = 1.0 if row.kind == FACTOR else np.maximum(np.abs(right), _left(row))
            neutral = 1.0 if row.kind == FACTOR else 0.0
            idle = np.abs(given - neutral) <= NOTHING * tolerance * np.maximum(size, tolerance)
            given = np.where(idle, neutral, given)
            (factors if row.kind == FACTOR else amounts)[row.name] = given
            for entry in zip(*np.nonzero(~idle), strict=True) if idle.ndim else [()] * int(~idle):
                place = tuple(int(i) for i in entry)
                name = label(row.name, place, naming.families, naming.first)
                gives.append(_give(row, name, float(given[place]), float(right[place])))
        total = solution.value if gives else 0.0
        excluding = () if gives else self._excluding()
        return Relaxation(total, tuple(gives), solution, amounts, factors, point, excluding)

    def _excluding(self) -> tuple[str, ...]:
        """The rows and bounds that leave no point at which every function is defined."""
        found = nowhere_in(self._forms)
        return () if found is None else named_parts(self._forms, found.parts)


def _give(row: _Row, name: str, given: float, right: float) -> Give:
    sense = row.constraint.sense
    if row.kind == AMOUNT:
        return Give(name, AMOUNT, sense, given, right)
    if sense == "==":
        sense = "*" if given >= 1 else "/"
    return Give(name, FACTOR, sense, max(given, 1 / given), right)


def _right(row: _Row) -> FloatArray:
    if row.constraint.is_semidefinite:
        return np.zeros(())
    value = np.asarray(dense(row.constraint.rhs.value), dtype=float)
    return np.broadcast_to(value, row.constraint.shape)


def _left(row: _Row) -> FloatArray:
    if row.constraint.is_semidefinite:
        return np.asarray(np.abs(dense(row.constraint.lhs.value)).max(initial=0.0))
    value = np.abs(np.asarray(dense(row.constraint.lhs.value), dtype=float))
    return np.broadcast_to(value, row.constraint.shape)


def _logarithms(forms: Forms) -> set[int]:
    """The variables whose logarithms are the coordinates in which the model is proven convex."""
    forms.refresh()
    form = forms.hidden(forms.user.source)
    if form is None or form.proof is None:
        return set()
    found = forms.coordinates_of(form.proof)  # type: ignore[arg-type]
    return {id(variable) for variable, kind in found.items() if kind == "log"}


def _kind(constraint: Constraint, logs: set[int]) -> str:
    """Whether a constraint gives an amount or a factor."""
    if constraint.is_semidefinite:
        return AMOUNT
    variables = [*constraint.lhs.variables(), *constraint.rhs.variables()]
    if not variables or any(id(variable) not in logs for variable in variables):
        return AMOUNT
    limit = {"<=": constraint.rhs, ">=": constraint.lhs}.get(constraint.sense)
    if limit is not None and not limit.variables():
        return AMOUNT
    facts = Facts()
    positive = all(
        facts[side].sign.value == "positive" for side in (constraint.lhs, constraint.rhs)
    )
    return FACTOR if positive else AMOUNT


def _relaxed(row: _Row) -> Constraint:
    """The constraint with what it gives on its larger side."""
    constraint, lhs, rhs = row.constraint, row.constraint.lhs, row.constraint.rhs
    if constraint.is_semidefinite:
        identity = np.eye(constraint.shape[0])
        if row.up is not None:
            return constraint.like(lhs, _plus(rhs, row.up * identity))
        return constraint.like(_plus(lhs, row.down * identity), rhs)  # type: ignore[operator]
    if row.kind == AMOUNT:
        if row.up is not None:
            rhs = rhs + row.up
        if row.down is not None:
            lhs, rhs = (lhs, rhs - row.down) if constraint.sense == "==" else (lhs + row.down, rhs)
        return constraint.like(lhs, rhs)
    if row.up is not None:
        rhs = rhs * row.up
    if row.down is not None:
        lhs = lhs * row.down
    return constraint.like(lhs, rhs)


def _plus(side: Expression, added: Expression) -> Expression:
    return added if side.shape == () else side + added


def _cost(row: _Row, weights: Mapping[str, FloatArray] | None = None) -> Expression:
    parts = [each for each in (row.up, row.down) if each is not None]
    terms = [atoms.log(each) if row.kind == FACTOR else each for each in parts]
    if weights is not None:
        terms = [
            as_expression(weights[each.name]) * term
            for each, term in zip(parts, terms, strict=True)
        ]
    sums = [atoms.sum(term) if term.shape else term for term in terms]
    return sums[0] if len(sums) == 1 else sums[0] + sums[1]


def _chosen(names: tuple[str, ...], only: Any, what: str) -> set[str] | None:
    if only is None:
        return None
    if not isinstance(only, (str, Iterable)):
        raise ModelError(f"{what} are names of constraints, not {only!r}")
    listed = [only] if isinstance(only, str) else list(only)
    wanted = {each if isinstance(each, str) else getattr(each, "name", None) for each in listed}
    _check_known(wanted, names, what)
    return {str(each) for each in wanted}


def _weights(names: tuple[str, ...], weights: Mapping[str, float] | None) -> dict[str, float]:
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise ModelError("weights are a dict {name of a row: positive number}")
    _check_known(set(weights), names, "weights")
    for name, weight in weights.items():
        if not (isinstance(weight, (int, float)) and weight > 0 and np.isfinite(weight)):
            raise ModelError(f"the weight of row '{name}' is a positive number, not {weight!r}")
    return {name: float(weight) for name, weight in weights.items()}


def _check_known(wanted: set[Any], names: tuple[str, ...], what: str) -> None:
    unknown = sorted(str(each) for each in wanted if each not in names)
    if unknown:
        raise ModelError(
            f"{what}: there is no row named {', '.join(unknown)}; the rows are: {', '.join(names)}"
        )
