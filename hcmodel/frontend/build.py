"""Statements to a `Model`: declarations in their order, then objective, constraints, coordinates.

A statement with a mistake is left out and its name poisoned; at the end all mistakes are raised
together.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from hcmodel.errors import HCError, HCWarning
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Constraint, Expression, Parameter, Variable, as_expression
from hcmodel.expressions.model import Maximize, Minimize, Model
from hcmodel.frontend import comprehension, subscripts
from hcmodel.frontend.constraints import Family, Rows
from hcmodel.frontend.data import Arrays
from hcmodel.frontend.expressions import Evaluator
from hcmodel.frontend.mistakes import Collector, Mistake, PoisonedError, in_words
from hcmodel.frontend.names import (
    Kind,
    Names,
    Symbol,
    function_names,
    structural_names,
    unresolved,
)
from hcmodel.frontend.parameters import ParameterData
from hcmodel.frontend.source import Source
from hcmodel.frontend.values import Dimension, Value, open_budget, shown, spread
from hcmodel.frontend.variables import MAX_UNKNOWNS, make_variable
from hcmodel.grammar import Span, syntax
from hcmodel.records import dataclass

LISTED = 5  # of the names that a warning is about


@dataclass(frozen=True)
class Parts:
    """What a model is made of, before it becomes a problem."""

    objective: Minimize | Maximize
    constraints: tuple[Constraint, ...]
    hidden: tuple[Expression, ...] | None
    families: dict[str, Family]
    ranges: dict[str, tuple[Dimension, ...]]  # of variables and parameters


@dataclass
class _Found:
    """What the statements have given so far."""

    objective: Minimize | Maximize | None = None
    objective_span: Span | None = None
    unknowns: int = 0
    hidden: list[tuple[Expression, Span]] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)


class Builder:
    """Walks the statements of one model."""

    def __init__(
        self, model: syntax.Model, arrays: Arrays, collector: Collector, beside: Path | None
    ) -> None:
        self.model = model
        self.collector = collector
        self.names = Names(model)
        self.evaluator = Evaluator(self.names)
        self.structural = structural_names(model)
        self.data = ParameterData(model, arrays, beside)
        self.found = _Found()
        self.rows = Rows()
        self._reported: set[str] = set()

    def parts(self) -> Parts:
        """All parts, or one error with all mistakes."""
        open_budget()
        for statement in self.model.statements:
            self._read(statement)
        for mistake in (*self.data.mistakes, *self.data.surplus()):
            self.collector.add(mistake)
        found = self.found
        has_objective = any(isinstance(s, syntax.Objective) for s in self.model.statements)
        if not has_objective:
            self.collector.add(
                Mistake(
                    "the model has no objective",
                    self._end(),
                    "write `minimize …` or `maximize …`; any feasible point: `minimize 0`",
                )
            )
        self.collector.raise_found()
        assert found.objective is not None
        ranges = {
            name: symbol.value.dimensions or ()
            for name in (
                *found.variables,
                *(each.name.identifier for each in self.data.declarations),
            )
            if (symbol := self.names.get(name)) is not None and symbol.value is not None
        }
        hidden = tuple(node for node, _ in found.hidden) or None
        return Parts(
            found.objective, tuple(self.rows.constraints), hidden, self.rows.families, ranges
        )

    def finished(self) -> Model:
        """The model, with the side tables of families and ranges on it."""
        parts = self.parts()
        self._check_use(parts)
        try:
            model = Model.checked(parts.objective, parts.constraints, parts.hidden)
        except HCError as error:
            self.collector.add(Mistake(in_words(str(error)), self._blamed(str(error))))
            self.collector.raise_found()
            raise
        return replace(model, families=parts.families, ranges=parts.ranges, source=self._source())

    def _source(self) -> Source:
        parameters: dict[str, Parameter | np.ndarray] = {}
        defaults: dict[str, np.ndarray] = {}
        for declaration in self.data.declarations:
            symbol = self.names.get(declaration.name.identifier)
            assert symbol is not None
            assert symbol.value is not None
            assert symbol.data is not None
            node = symbol.value.node
            parameters[symbol.name] = node if isinstance(node, Parameter) else symbol.data
            if declaration.default is not None and symbol.name not in self.data.arrays:
                defaults[symbol.name] = symbol.data
        starts = {variable: variable.start for variable in self.found.variables.values()}
        places = self.names.places
        return Source(
            self.collector.text,
            self.model,
            parameters,
            defaults,
            starts,
            places,
            self.collector.filename,
        )

    def _blamed(self, message: str) -> Span:
        """The declaration of the variable that a message names, else the objective."""
        for name in re.findall(r"variable '([^']+)'", message):
            for statement in self.model.statements:
                declared = _declared(statement)
                if declared is not None and declared.identifier == name:
                    return statement.span
        return self.found.objective_span or self._end()

    def _end(self) -> Span:
        span = self.model.span
        last = self.model.statements[-1].span if self.model.statements else span
        return Span(last.line, last.column, last.line, last.column + 1)

    def _check_use(self, parts: Parts) -> None:
        """Variables that neither objective nor constraints use: a mistake only in `hidden`."""
        sides = [side for each in parts.constraints for side in (each.lhs, each.rhs)]
        used = set(topological_order([parts.objective.expression, *sides]))
        for node, span in self.found.hidden:
            for variable in node.variables():
                if variable not in used:
                    message = (
                        f"`hidden` names `{variable.name}`, which neither objective nor "
                        "constraints use"
                    )
                    self.collector.add(Mistake(message, span))
        self.collector.raise_found()
        unused = [name for name, each in self.found.variables.items() if each not in used]
        if unused:
            listed = ", ".join(f"`{name}`" for name in unused[:LISTED])
            if len(unused) > LISTED:
                listed += f" and {len(unused) - LISTED} more"
            warnings.warn(
                f"{listed}: declared, but used by neither objective nor constraints; left out",
                HCWarning,
                stacklevel=4,
            )

    # ---- one statement

    def _read(self, statement: syntax.Statement) -> None:
        name = _declared(statement)
        try:
            if name is not None:
                self.names.check_declarable(name)
            if self._names_are_known(statement):
                self._take(statement)
                return
        except Mistake as mistake:
            self.collector.add(mistake)
        except PoisonedError:
            pass
        except HCError as error:
            self.collector.add(Mistake(in_words(str(error)), statement.span))
        except RecursionError:
            message = "this statement is nested too deep"
            self.collector.add(Mistake(message, statement.span, "name its parts with `let`"))
        if name is not None and self.names.get(name.identifier) is None:
            self._poison(name)

    def _poison(self, name: syntax.Name) -> None:
        """Keep later uses of the name silent; a function's name stays the function's."""
        if name.identifier not in function_names():
            self.names.declare(Symbol(name.identifier, Kind.LET, name.span, None))

    def _names_are_known(self, statement: syntax.Statement) -> bool:
        known = True
        for part, place in _parts_with_names(statement):
            for wrong in unresolved(part, self.names, place):
                known = False
                if isinstance(wrong, Mistake) and str(wrong) not in self._reported:
                    self._reported.add(str(wrong))
                    self.collector.add(wrong)
        return known

    def _take(self, statement: syntax.Statement) -> None:
        if isinstance(statement, syntax.SetDeclaration):
            self._set(statement)
        elif isinstance(statement, syntax.ParameterDeclaration):
            structural = statement.name.identifier in self.structural
            self.names.declare(self.data.bind(self.evaluator, statement, structural))
        elif isinstance(statement, syntax.LetDeclaration):
            self._let(statement)
        elif isinstance(statement, syntax.VariableDeclaration):
            self._variable(statement)
        elif isinstance(statement, syntax.Objective):
            self._objective(statement)
        elif isinstance(statement, syntax.Constraint):
            self.rows.take(self.evaluator, statement)
        elif isinstance(statement, syntax.Hidden):
            for expression in statement.expressions:
                node = as_expression(self.evaluator.evaluate(expression).node)
                if not node.variables():
                    raise Mistake(
                        "this coordinate has no variable",
                        expression.span,
                        "`hidden` lists expressions of the variables",
                    )
                self.found.hidden.append((node, expression.span))
        else:
            self._start(statement)

    def _set(self, statement: syntax.SetDeclaration) -> None:
        if isinstance(statement.value, syntax.Labels):
            names = statement.value.names
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise Mistake(f'"{twice[0]}" occurs twice in this set', statement.value.span)
            labelled = Dimension(len(names), names=names)
            value = Value(labelled.values.astype(float), dimensions=(labelled,))
            name = statement.name
            self.names.declare(Symbol(name.identifier, Kind.SET, name.span, value))
            return
        members = subscripts.dimension(self.evaluator, statement.value, is_shape=False)
        dimensions = (members,) if members.labels is None else None
        value = Value(members.values.astype(float), dimensions=dimensions)
        self.names.declare(Symbol(statement.name.identifier, Kind.SET, statement.name.span, value))

    def _let(self, statement: syntax.LetDeclaration) -> None:
        name = statement.name
        if not statement.generators:
            value = self.evaluator.evaluate(statement.value)
            value = Value(value.node)
        else:
            opened = comprehension.open_generators(self.evaluator, statement.generators, None)
            if opened.tuples is not None:
                raise Mistake(
                    "the ranges of a `let` cannot depend on each other",
                    statement.generators[0].span.to(statement.generators[-1].span),
                    "use whole ranges, and the dependent one where the name is used",
                )
            dimensions = comprehension.dimensions_of(self.evaluator, statement.generators)
            element = opened.evaluator.evaluate(statement.value)
            whole = spread(Value(element.node, element.axes), opened.axes)
            own = tuple(Dimension(length) for length in whole.shape)
            value = Value(whole.node, dimensions=(*dimensions, *own))
        self.names.declare(Symbol(name.identifier, Kind.LET, name.span, value))

    # ---- variables

    def _variable(self, statement: syntax.VariableDeclaration) -> None:
        name = statement.name
        variable, dimensions = make_variable(self.evaluator, statement)
        self.found.unknowns += variable.size
        if self.found.unknowns > MAX_UNKNOWNS:
            raise Mistake(
                f"the model has more than {MAX_UNKNOWNS} unknowns, the limit", statement.span
            )
        self.found.variables[name.identifier] = variable
        variable.labels = tuple(each.keys for each in dimensions) or None
        value = Value(variable, dimensions=dimensions)
        self.names.declare(Symbol(name.identifier, Kind.VARIABLE, name.span, value))

    def _start(self, statement: syntax.Start) -> None:
        name = statement.name
        symbol = self.names.find(name, ())
        variable = self.found.variables.get(name.identifier)
        if variable is None:
            raise Mistake(
                f"`{name.identifier}` is a {symbol.kind.value}; only a variable has a start",
                name.span,
            )
        value = self.evaluator.constant("a start").evaluate(statement.value)
        array = np.asarray(value.node, dtype=float)
        if not np.isfinite(array).all():
            raise Mistake("a start is finite", statement.value.span)
        try:
            variable.start = np.broadcast_to(array, variable.shape).copy()
        except ValueError:
            raise Mistake(
                f"a start of shape {shown(value.shape)} does not fit `{name.identifier}` of "
                f"{shown(variable.shape)}",
                statement.value.span,
            ) from None

    # ---- objective and constraints

    def _objective(self, statement: syntax.Objective) -> None:
        value = self.evaluator.evaluate(statement.expression)
        if math.prod(value.shape) != 1:
            raise Mistake(
                f"the objective is an array of {shown(value.shape)}; only one number can be "
                f"{statement.sense.value}d",
                statement.expression.span,
                "take `sum(…)` or another reduction of it",
            )
        kind = Minimize if statement.sense is syntax.Sense.MINIMIZE else Maximize
        self.found.objective = kind(as_expression(value.node))
        self.found.objective_span = statement.expression.span


def _declared(statement: syntax.Statement) -> syntax.Name | None:
    if isinstance(
        statement,
        syntax.SetDeclaration
        | syntax.ParameterDeclaration
        | syntax.LetDeclaration
        | syntax.VariableDeclaration,
    ):
        return statement.name
    return None


def _parts_with_names(statement: syntax.Statement) -> list[tuple[syntax.Node, str]]:
    """The nodes of a statement in which names are used, not declared, and the kind of place."""
    parts: list[syntax.Node] = [statement]
    if isinstance(statement, syntax.SetDeclaration):
        parts = [statement.value]
    elif isinstance(statement, syntax.ParameterDeclaration):
        default = [] if statement.default is None else [statement.default]
        parts = [*statement.shape, *statement.bounds, *default]
    elif isinstance(statement, syntax.VariableDeclaration):
        parts = [*statement.shape, *statement.domains]
    return [(part, "" if part is statement else "length") for part in parts]
