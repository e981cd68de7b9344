"""Statements to a `Problem`: declarations in their order, then objective, constraints, coordinates.

A statement with a mistake is left out and its name poisoned; at the end all mistakes are raised
together.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hcmodel.errors import HCError, HCWarning
from hcmodel.expression import Constraint, Expression, Variable, as_expression
from hcmodel.frontend import comprehension, indexing
from hcmodel.frontend.data import Arrays
from hcmodel.frontend.expressions import Evaluator, check_shapes
from hcmodel.frontend.mistakes import Collector, Mistake, PoisonedError
from hcmodel.frontend.names import Kind, Names, Symbol, structural_names, unresolved
from hcmodel.frontend.parameters import ParameterData
from hcmodel.frontend.values import (
    Axis,
    Dimension,
    Value,
    aligned,
    check_entries,
    lengths,
    shown,
    spread,
)
from hcmodel.grammar import Span, syntax
from hcmodel.graph import topological_order
from hcmodel.problem import Maximize, Minimize, Problem

MAX_UNKNOWNS = 1_000_000
MAX_ROWS = 2_000_000


@dataclass(frozen=True)
class Family:
    """An indexed constraint: entry `members[r]` of the index ranges stands in row r.

    `members` is None for a whole rectangle of ranges, whose rows are then in C order. A range is
    None where it depends on another index.
    """

    indices: tuple[str, ...]
    ranges: tuple[Dimension | None, ...]
    members: np.ndarray | None


@dataclass(frozen=True)
class Parts:
    """What a model is made of, before it becomes a problem."""

    objective: Minimize | Maximize
    constraints: tuple[Constraint, ...]
    hidden: tuple[Expression, ...] | None
    families: dict[str, Family]
    ranges: dict[str, tuple[Dimension, ...]]  # of the variables


@dataclass
class _Found:
    """What the statements have given so far."""

    objective: Minimize | Maximize | None = None
    objective_span: Span | None = None
    constraints: list[Constraint] = field(default_factory=list)
    written: int = 0  # constraint statements
    rows: int = 0
    unknowns: int = 0
    hidden: list[Expression] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)  # of constraints


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
        self._reported: set[str] = set()

    def parts(self) -> Parts:
        """All parts, or one error with all mistakes."""
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
            for name in found.variables
            if (symbol := self.names.get(name)) is not None and symbol.value is not None
        }
        hidden = tuple(found.hidden) or None
        return Parts(found.objective, tuple(found.constraints), hidden, found.families, ranges)

    def problem(self) -> Problem:
        """The problem, with the side tables of families and ranges on it."""
        parts = self.parts()
        self._warn_of_unused(parts)
        try:
            problem = Problem(parts.objective, parts.constraints, parts.hidden)
        except HCError as error:
            span = self.found.objective_span or self._end()
            self.collector.add(Mistake(str(error), span))
            self.collector.raise_found()
            raise
        vars(problem).update(families=parts.families, ranges=parts.ranges)
        return problem

    def _end(self) -> Span:
        span = self.model.span
        last = self.model.statements[-1].span if self.model.statements else span
        return Span(last.line, last.column, last.line, last.column + 1)

    def _warn_of_unused(self, parts: Parts) -> None:
        sides = [side for each in parts.constraints for side in (each.lhs, each.rhs)]
        used = set(topological_order([parts.objective.expression, *sides]))
        unused = [name for name, each in self.found.variables.items() if each not in used]
        if unused:
            listed = ", ".join(f"`{name}`" for name in unused)
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
            self.collector.add(Mistake(str(error), statement.span))
        except RecursionError:
            message = "this statement is nested too deep"
            self.collector.add(Mistake(message, statement.span, "name its parts with `let`"))
        if name is not None and self.names.get(name.identifier) is None:
            self.names.declare(Symbol(name.identifier, Kind.LET, name.span, None))

    def _names_are_known(self, statement: syntax.Statement) -> bool:
        known = True
        for part in _parts_with_names(statement):
            for wrong in unresolved(part, self.names):
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
            self._constraint(statement)
        elif isinstance(statement, syntax.Hidden):
            for expression in statement.expressions:
                self.found.hidden.append(as_expression(self.evaluator.evaluate(expression).node))
        else:
            self._start(statement)

    def _set(self, statement: syntax.SetDeclaration) -> None:
        members = indexing.dimension(self.evaluator, statement.value, is_shape=False)
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
        dimensions = tuple(
            indexing.dimension(self.evaluator, entry, is_shape=True) for entry in statement.shape
        )
        shape = tuple(each.length for each in dimensions)
        check_entries(shape)
        self.found.unknowns += int(np.prod(shape, dtype=int))
        if self.found.unknowns > MAX_UNKNOWNS:
            raise Mistake(
                f"the model has more than {MAX_UNKNOWNS} unknowns, the limit", statement.span
            )
        lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        pos = simplex = False
        psd: bool | tuple[float, float] = False
        for domain in statement.domains:
            if isinstance(domain, syntax.Simplex):
                simplex = True
            elif isinstance(domain, syntax.PositiveSemidefinite):
                limits = [
                    default if limit is None else float(self._limit(limit, ()))
                    for limit, default in ((domain.lower, 0.0), (domain.upper, np.inf))
                ]
                psd = (limits[0], limits[1])
            elif isinstance(domain, syntax.Interval):
                lower = np.maximum(lower, self._limit(domain.lower, shape))
                upper = np.minimum(upper, self._limit(domain.upper, shape))
            else:
                limit = self._limit(domain.value, shape)
                if domain.operator == "<=":
                    upper = np.minimum(upper, limit)
                    continue
                if domain.operator == ">":
                    if np.any(limit != 0):
                        raise Mistake(
                            "a variable's strict bound is `> 0`", domain.span, "write `>=`"
                        )
                    pos = True
                lower = np.maximum(lower, limit)
        self._check_box(statement, lower, upper, dimensions, pos)
        if not shape and (statement.symmetric or psd):
            raise Mistake(
                f"`{name.identifier}` is a number; only a matrix is symmetric or psd",
                statement.span,
            )
        variable = Variable(
            shape,
            name.identifier,
            bounds=(lower, upper),
            pos=pos,
            symmetric=statement.symmetric,
            PSD=psd,
            simplex=simplex,
        )
        self.found.variables[name.identifier] = variable
        value = Value(variable, dimensions=dimensions)
        self.names.declare(Symbol(name.identifier, Kind.VARIABLE, name.span, value))

    def _limit(self, node: syntax.Expression, shape: tuple[int, ...]) -> np.ndarray:
        value = self.evaluator.constant("a bound").evaluate(node)
        try:
            return np.broadcast_to(np.asarray(value.node, dtype=float), shape)
        except ValueError:
            raise Mistake(
                f"a bound of shape {shown(value.shape)} does not fit a variable of {shown(shape)}",
                node.span,
            ) from None

    def _check_box(
        self,
        statement: syntax.VariableDeclaration,
        lower: np.ndarray,
        upper: np.ndarray,
        dimensions: Sequence[Dimension],
        pos: bool,
    ) -> None:
        empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
        if pos:
            empty |= upper <= 0
        if not empty.any():
            return
        entry = tuple(int(i) for i in np.argwhere(empty)[0])
        labels = ",".join(str(d.values[i]) for d, i in zip(dimensions, entry, strict=True))
        name = statement.name.identifier
        where = f"{name}[{labels}]" if labels else name
        raise Mistake(
            f"`{where}` has no room between its bounds {lower[entry]:g} and {upper[entry]:g}",
            statement.span,
            "write the smaller bound first",
        )

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
        if int(np.prod(value.shape, dtype=int)) != 1:
            raise Mistake(
                f"the objective is an array of {shown(value.shape)}; only one number can be "
                f"{statement.sense.value}d",
                statement.expression.span,
                "take `sum(…)` or another reduction of it",
            )
        kind = Minimize if statement.sense is syntax.Sense.MINIMIZE else Maximize
        self.found.objective = kind(as_expression(value.node))
        self.found.objective_span = statement.expression.span

    def _constraint(self, statement: syntax.Constraint) -> None:
        self.found.written += 1
        number = f"c{self.found.written}"
        name = None if statement.name is None else statement.name.identifier
        opened = comprehension.open_generators(
            self.evaluator, statement.generators, statement.condition, join_all=True
        )
        comparison = statement.comparison
        sides = [opened.evaluator.evaluate(operand) for operand in comparison.operands]
        chain = len(sides) == 3
        if name is None and (chain or len(self.found.constraints) + 1 != self.found.written):
            name = number
        for position, operator in enumerate(comparison.operators):
            left, right = sides[position : position + 2]
            span = comparison.operands[position].span.to(comparison.operands[position + 1].span)
            check_shapes(operator, left, right, span)
            if left.is_number and right.is_number:
                raise Mistake("this constraint has no variable", span)
            full = name
            if chain:
                lower_first = operator == "<="
                full = f"{name}.{'lower' if (position == 0) == lower_first else 'upper'}"
            self._add(full, operator, left, right, opened.axes, span)
        if name is not None and statement.generators:
            self.found.families[name] = self._family(statement, opened)

    def _add(
        self,
        name: str | None,
        operator: str,
        left: Value,
        right: Value,
        axes: tuple[Axis, ...],
        span: Span,
    ) -> None:
        if name is not None:
            if name in self.found.names:
                raise Mistake(f"two constraints are named `{name}`", span, "give each its own name")
            self.found.names.add(name)
        own = np.broadcast_shapes(left.shape, right.shape)
        shape = (*lengths(axes), *own)
        check_entries(shape)
        if 0 in shape:
            return
        self.found.rows += int(np.prod(shape, dtype=int))
        if self.found.rows > MAX_ROWS:
            raise Mistake(f"the model has more than {MAX_ROWS} constraints, the limit", span)
        nodes = [aligned(each, axes, len(own)) for each in (left, right)]
        if np.broadcast_shapes(*(tuple(node.shape) for node in nodes)) != shape:
            whole = spread(Value(left.node, left.axes), axes)
            nodes[0] = aligned(whole, axes, len(own))
        lhs, rhs = (as_expression(node) for node in nodes)
        self.found.constraints.append(Constraint(lhs, operator, rhs, name))

    def _family(self, statement: syntax.Constraint, opened: comprehension.Opened) -> Family:
        indices = tuple(each.index.identifier for each in statement.generators)
        ranges: list[Dimension | None] = []
        for generator in statement.generators:
            mentioned = {
                each.identifier
                for each in syntax.walk(generator.index_set)
                if isinstance(each, syntax.Name)
            }
            if mentioned & set(indices):
                ranges.append(None)
            else:
                ranges.append(
                    indexing.dimension(self.evaluator, generator.index_set, is_shape=False)
                )
        members = None
        if opened.tuples is not None:
            columns = [np.asarray(opened.evaluator.scope[index].node) for index in indices]
            members = np.stack(columns, axis=1).astype(int)
        return Family(indices, tuple(ranges), members)


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


def _parts_with_names(statement: syntax.Statement) -> list[syntax.Node]:
    """The nodes of a statement in which names are used, not declared."""
    if isinstance(statement, syntax.SetDeclaration):
        return [statement.value]
    if isinstance(statement, syntax.ParameterDeclaration):
        default = [] if statement.default is None else [statement.default]
        return [*statement.shape, *statement.bounds, *default]
    if isinstance(statement, syntax.VariableDeclaration):
        return [*statement.shape, *statement.domains]
    return [statement]
