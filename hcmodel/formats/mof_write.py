"""Writing MathOptFormat (`.mof.json`): the model as written, entry by entry.

Affine entries are `ScalarAffineFunction`s, others `ScalarNonlinearFunction`s. Bounds are constraints on
variables; semidefinite matrices are triangles in `PositiveSemidefiniteConeTriangle`. Declared
coordinates and names of parameters have no place in the format: parameters are written by their values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.formats.scalars import Scalar, scalar, scalars
from hcmodel.solving.naming import Naming, label

# The version of the format that has all that is written here.
VERSION = {"major": 1, "minor": 7}
SETS = {"<=": ("LessThan", "upper"), ">=": ("GreaterThan", "lower"), "==": ("EqualTo", "value")}
# Nodes of one function: a JSON file of some ten megabytes.
MOST_NODES = 2_000_000


def mof_object(model: Model) -> dict[str, Any]:
    """The JSON object of a model."""
    return _Writer(model).object()


class _Writer:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.naming = Naming.of(model)
        self.names = {variable: self._entry_names(variable) for variable in model.variables}

    def _entry_names(self, variable: Variable) -> Any:
        """Names of the entries, counted from 1; the lower triangle of a symmetric matrix has none."""
        names = np.empty(variable.shape, dtype=object)
        for entry in np.ndindex(*variable.shape):
            place = tuple(sorted(entry)) if variable.set.is_symmetric else entry
            names[entry] = label(variable.name, place, {}, 1)
        return names

    def object(self) -> dict[str, Any]:
        model = self.model
        sense = "min" if model.sign > 0 else "max"
        (objective,) = scalars([model.objective.expression], self.names)
        return {
            "version": VERSION,
            "variables": [*self._variables()],
            "objective": {"sense": sense, "function": function(scalar(objective.reshape(-1)[0]))},
            "constraints": [*self._sets(), *self._rows()],
        }

    def _variables(self) -> Iterable[dict[str, Any]]:
        for variable in self.model.variables:
            done: set[str] = set()
            for entry in np.ndindex(*variable.shape):
                name = self.names[variable][entry]
                if name in done:
                    continue
                done.add(name)
                found: dict[str, Any] = {"name": name}
                if variable.start is not None:
                    found["primal_start"] = float(np.asarray(variable.start)[entry])
                yield found

    def _sets(self) -> Iterable[dict[str, Any]]:
        for variable in self.model.variables:
            yield from self._bounds(variable)
            names = self.names[variable]
            if variable.set.is_distribution:
                for row in names.reshape(-1, names.shape[-1]):
                    terms = [{"coefficient": 1.0, "variable": name} for name in row]
                    sums = {"type": "ScalarAffineFunction", "terms": terms, "constant": 0.0}
                    yield {"function": sums, "set": {"type": "EqualTo", "value": 1.0}}
            limits = variable.eigenvalue_bounds
            if limits is not None:
                yield from self._semidefinite(names, *limits)

    def _bounds(self, variable: Variable) -> Iterable[dict[str, Any]]:
        lower = np.broadcast_to(variable.lower, variable.shape)
        upper = np.broadcast_to(variable.upper, variable.shape)
        if variable.set.is_distribution:
            lower = np.maximum(lower, 0.0)
        done: set[str] = set()
        for entry in np.ndindex(*variable.shape):
            name, low, high = self.names[variable][entry], float(lower[entry]), float(upper[entry])
            if name in done:
                continue
            done.add(name)
            one = {"type": "Variable", "name": name}
            if np.isfinite(low) and np.isfinite(high):
                if low == high:
                    yield {"function": one, "set": {"type": "EqualTo", "value": low}}
                else:
                    yield {
                        "function": one,
                        "set": {"type": "Interval", "lower": low, "upper": high},
                    }
            elif np.isfinite(low):
                yield {"function": one, "set": {"type": "GreaterThan", "lower": low}}
            elif np.isfinite(high):
                yield {"function": one, "set": {"type": "LessThan", "upper": high}}

    def _semidefinite(self, names: Any, low: float, high: float) -> Iterable[dict[str, Any]]:
        order = names.shape[0]
        for sign, limit in ((1.0, low), (-1.0, high)):
            if np.isfinite(limit):
                entries = [
                    Scalar({names[i, j]: sign}, -sign * limit if i == j else 0.0)
                    for j in range(order)
                    for i in range(j + 1)
                ]
                yield {"function": vector_function(entries), "set": _triangle(order)}

    def _rows(self) -> Iterable[dict[str, Any]]:
        for name, constraint in zip(self.naming.constraints, self.model.constraints, strict=True):
            left, right = scalars([constraint.lhs, constraint.rhs], self.names)
            if constraint.is_semidefinite:
                yield self._matrix_row(name, constraint, left, right)
                continue
            left = np.broadcast_to(left, constraint.shape)
            right = np.broadcast_to(right, constraint.shape)
            kind, key = SETS[constraint.sense]
            for entry in np.ndindex(*constraint.shape):
                one, two = scalar(left[entry]), scalar(right[entry])
                limit = 0.0
                if two.is_affine:
                    limit, two = two.constant, Scalar(two.terms)
                whole = one - two
                if whole.is_affine:
                    limit, whole = limit - whole.constant, Scalar(whole.terms)
                if whole.is_constant:
                    raise ModelError(
                        f"row {name} has no variables, which this format does not know"
                    )
                title = label(name, entry, self.naming.families, self.naming.first)
                yield {
                    "name": title,
                    "function": function(whole),
                    "set": {"type": kind, key: limit},
                }

    def _matrix_row(
        self, name: str, constraint: Constraint, left: Any, right: Any
    ) -> dict[str, Any]:
        order = constraint.shape[0]
        left = np.broadcast_to(left, constraint.shape)
        right = np.broadcast_to(right, constraint.shape)
        if constraint.sense == "<<":
            left, right = right, left
        entries = [
            scalar(left[i, j]) - scalar(right[i, j]) for j in range(order) for i in range(j + 1)
        ]
        return {"name": name, "function": vector_function(entries), "set": _triangle(order)}


def _triangle(order: int) -> dict[str, Any]:
    return {"type": "PositiveSemidefiniteConeTriangle", "side_dimension": order}


def function(value: Scalar) -> dict[str, Any]:
    """The function of a scalar: affine, or nonlinear with a list of nodes."""
    if value.is_affine:
        terms = [{"coefficient": number, "variable": name} for name, number in value.terms.items()]
        return {"type": "ScalarAffineFunction", "terms": terms, "constant": value.constant}
    nodes = _Nodes()
    root = nodes.argument(value)
    return {"type": "ScalarNonlinearFunction", "root": root, "node_list": nodes.listed}


def vector_function(values: list[Scalar]) -> dict[str, Any]:
    if all(value.is_affine for value in values):
        terms = [
            {"output_index": row, "scalar_term": {"coefficient": number, "variable": name}}
            for row, value in enumerate(values, 1)
            for name, number in value.terms.items()
        ]
        constants = [value.constant for value in values]
        return {"type": "VectorAffineFunction", "terms": terms, "constants": constants}
    nodes = _Nodes()
    rows = [nodes.argument(value) for value in values]
    return {"type": "VectorNonlinearFunction", "rows": rows, "node_list": nodes.listed}


class _Nodes:
    """The list of nodes of a function; a scalar that is used twice stands there once."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self._numbers: dict[int, dict[str, Any]] = {}
        self._kept: list[Scalar] = []

    def argument(self, value: Scalar) -> Any:
        """A number, a name, or a reference to a node; arguments come before what uses them."""
        pending = [value]
        while pending:
            term = pending[-1]
            missing = [each for each in self._parts(term) if id(each) not in self._numbers]
            if missing and id(term) not in self._numbers:
                pending += missing
                continue
            pending.pop()
            if id(term) not in self._numbers:
                self._numbers[id(term)] = self._added(term)
                self._kept.append(term)  # its id stays taken
        return self._numbers[id(value)]

    def _parts(self, term: Scalar) -> tuple[Scalar, ...]:
        return term.arguments

    def _added(self, term: Scalar) -> Any:
        if not term.operator:
            return self._affine(term)
        return self._node(term.operator, [self._numbers[id(each)] for each in term.arguments])

    def _affine(self, term: Scalar) -> Any:
        parts: list[Any] = []
        for name, number in term.terms.items():
            parts.append(name if number == 1.0 else self._node("*", [number, name]))
        if term.constant or not parts:
            parts.append(term.constant)
        return parts[0] if len(parts) == 1 else self._node("+", parts)

    def _node(self, operator: str, arguments: list[Any]) -> dict[str, Any]:
        self.listed.append({"type": operator, "args": arguments})
        if len(self.listed) > MOST_NODES:
            raise ModelError(
                f"a function of the model has more than {MOST_NODES} operations entry by entry; write "
                "the model as .hc instead"
            )
        return {"type": "node", "index": len(self.listed)}
