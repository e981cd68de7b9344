"""A model: sense, objective, constraints, declared coordinates, and where it was written.

`Model` is frozen. The front ends make it, reductions take one and give another, and `Problem` is a thin
facade around one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.foreign_habits import OBJECTIVE, missing_attribute
from hcmodel.expressions.graph import (
    Graph,
    Merged,
    graph_values,
    join_sums,
    merged,
    topological_order,
    values_once,
)
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Parameter, Variable
from hcmodel.expressions.node import Apply, Expression, as_expression
from hcmodel.expressions.posynomials import Posynomials, posynomials
from hcmodel.expressions.printing import rich
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.memory import CollectionPaused


class Objective:
    """An expression with one entry, and whether it is minimised or maximised."""

    sign: float
    word: str

    def __init__(self, expression: Any) -> None:
        self.expression: Expression = as_expression(expression)
        if self.expression.size != 1:
            raise ModelError(
                f"the objective has shape {self.expression.shape}, but only one number can be "
                f"{self.word}d; take hc.sum or another reduction of it"
            )

    @property
    def value(self) -> float | None:
        """The value at the variables' and parameters' current values, None where one is missing."""
        found = self.expression.value
        return None if found is None else float(np.asarray(found).reshape(()))

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(OBJECTIVE, name, type(self).__name__)

    def __add__(self, other: Any) -> NoReturn:
        raise ModelError(
            "objectives are not added or scaled; do that inside: hc.Minimize(a + 2 * b)"
        )

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = __add__

    def __repr__(self) -> str:
        return f"{self.word} {self.expression}"

    def _repr_latex_(self) -> str | None:
        return rich("latex", self)

    def _repr_html_(self) -> str | None:
        return rich("html", self)


class Constraints(tuple[Constraint, ...]):
    """The constraints of a problem, in order. A list can be added to them, for another problem."""

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def append(self, *_: Any) -> NoReturn:
        raise ModelError(
            "the constraints of a problem are fixed; make a new one: hc.Problem(problem.objective, "
            "problem.constraints + [another])"
        )

    extend = insert = remove = pop = clear = append


class Minimize(Objective):
    """The objective of a minimisation."""

    sign = 1.0
    word = "minimize"


class Maximize(Objective):
    """The objective of a maximisation."""

    sign = -1.0
    word = "maximize"


# What a model knows of its expressions once it was asked.
EXPRESSION_FACTS = frozenset(
    (
        *("nodes", "nodes_and_hidden", "merged", "graph", "posynomials", "unexplained"),
        *("user_functions", "variables", "layout", "parameters"),
    )
)


@dataclass(frozen=True, eq=False)
class Model:
    """What the user wrote; `families`, `ranges` and `source` belong to models in the language."""

    objective: Minimize | Maximize
    constraints: tuple[Constraint, ...] = ()
    hidden: tuple[Expression, ...] | None = None
    families: Mapping[str, Any] = field(default_factory=dict)
    ranges: Mapping[str, Any] = field(default_factory=dict)
    source: Any = None
    objective_form: str = "plain"
    """How methods see the objective: a name of `solvers.row_forms.OBJECTIVE_FORMS`."""

    @staticmethod
    def checked(objective: Any, constraints: Any = (), hidden: Any = None) -> Model:
        """The model of what a user handed in, or an error that says what is wrong with it."""
        if not isinstance(objective, Objective):
            raise ModelError("the objective is hc.Minimize(...) or hc.Maximize(...)")
        if isinstance(constraints, Constraint):
            constraints = (constraints,)
        if not isinstance(constraints, Iterable):
            raise ModelError(f"constraints are a list of constraints, not {constraints!r}")
        listed = tuple(constraints)
        for constraint in listed:
            if isinstance(constraint, (list, tuple)):
                raise ModelError(
                    "constraints are one flat list; a list inside of it is written with a star: "
                    "[*rows, another]"
                )
            if not isinstance(constraint, Constraint):
                raise ModelError(
                    f"{constraint!r} is not a constraint; write expression <= expression, or with >=, "
                    "==, >> or <<"
                )
        model = Model(objective, listed, _as_parts(hidden))  # type: ignore[arg-type]
        model.check()
        return model

    def check(self) -> None:
        """Raise where the model has no variables, names twice, or coordinates of foreign variables."""
        if not self.variables:
            raise ModelError("the problem has no variables; nothing is left to choose")
        _check_names("variables", [variable.name for variable in self.variables])
        _check_names("constraints", [c.name for c in self.constraints if c.name is not None])
        for variable in self.variables:
            if variable.set.is_curved:
                variable.set.domain()  # an error where bounds on entries leave no matrix
        known = set(self.variables)
        for node in topological_order(self.hidden or ()):
            if isinstance(node, Variable) and node not in known:
                raise ModelError(f"hidden names variable '{node.name}', which the model lacks")

    def __getstate__(self) -> dict[str, Any]:
        """What was written: nodes and graph know expressions by identity, which a copy does not keep."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def with_rows(self, constraints: tuple[Constraint, ...], objective_form: str) -> Model:
        """The model with its rows, and how methods see the objective, written in another way.

        What is known of its expressions stays known where they are the same.
        """
        found = replace(self, constraints=constraints, objective_form=objective_form)
        senses = [[row.sense for row in each.constraints] for each in (self, found)]
        if senses[0] == senses[1] and all(map(operator.is_, found.roots, self.roots)):
            known = self.__dict__.keys() & EXPRESSION_FACTS
            found.__dict__.update({name: self.__dict__[name] for name in known})
        return found

    @property
    def sign(self) -> float:
        """1 for a minimisation and −1 for a maximisation."""
        return self.objective.sign

    @property
    def roots(self) -> tuple[Expression, ...]:
        """The objective, then both sides of each constraint."""
        sides = [side for each in self.constraints for side in (each.lhs, each.rhs)]
        return (self.objective.expression, *sides)

    @cached_property
    def nodes(self) -> tuple[Expression, ...]:
        """All nodes of objective and constraints, every node after its arguments."""
        return tuple(topological_order(self.roots))

    @cached_property
    def merged(self) -> Merged:
        """The steps of all nodes, equal ones as one."""
        return merged(self.nodes)

    @cached_property
    def graph(self) -> Graph:
        """The steps that compute objective and constraints."""
        return join_sums(self.merged.graph(self.roots))

    def values_at(self, x: np.ndarray) -> list[np.ndarray]:
        """The values of the roots at a point, parameters at their current values."""
        return graph_values(self.graph, self.layout, x)

    def values_once(self, x: np.ndarray) -> list[np.ndarray]:
        """`values_at` in less time for one point or a few."""
        return values_once(self.layout, x, self.nodes, self.roots)

    @cached_property
    def nodes_and_hidden(self) -> tuple[Expression, ...]:
        """All nodes of objective, constraints and declared coordinates."""
        if not self.hidden:
            return self.nodes
        return tuple(topological_order([*self.roots, *self.hidden]))

    @cached_property
    def posynomials(self) -> Posynomials | None:
        """The terms of a geometric program that is written term by term; None of other models."""
        if isinstance(self.objective, Maximize):
            return None
        with CollectionPaused():
            return posynomials(self.objective.expression, self.constraints)

    @cached_property
    def unexplained(self) -> tuple[Expression, ...]:
        """All nodes of objective, constraints and coordinates but those that are in `posynomials`."""
        if self.posynomials is None:
            return self.nodes_and_hidden
        return tuple(topological_order(self.hidden or ()))

    @cached_property
    def user_functions(self) -> tuple[Apply, ...]:
        """The nodes that are functions of the user, maps included."""
        nodes = self.unexplained
        return tuple([each for each in nodes if isinstance(each, Apply) and each.atom.black_box])

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of objective and constraints, in order of appearance."""
        if self.posynomials is not None:
            return self.posynomials.variables
        return tuple(node for node in self.nodes if isinstance(node, Variable))

    @cached_property
    def layout(self) -> Layout:
        """Where each variable stands in the flat vector of a point."""
        return Layout(self.variables)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of objective, constraints and declared coordinates."""
        return tuple(node for node in self.unexplained if isinstance(node, Parameter))


def _as_parts(hidden: Any) -> tuple[Expression, ...] | None:
    if hidden is None:
        return None
    parts: Sequence[Any] = hidden if isinstance(hidden, (list, tuple)) else [hidden]
    if not all(isinstance(part, Expression) for part in parts):
        raise ModelError(
            "hidden is an expression or a list of them, such as [hc.log(x)] or, for a map that is code, "
            "[hc.Map(forward)(x)]"
        )
    return tuple(parts)


def _check_names(kind: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two {kind} are named '{name}'; give each its own name")
        seen.add(name)
