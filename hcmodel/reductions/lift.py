"""Kinks as rows: max, abs, norm1 and norminf replaced by variables that bound them.

    minimise max(a, b)    becomes    minimise t   s.t.   a <= t,  b <= t

Kinks that a semidefinite matrix expresses, as those of the largest eigenvalue, get a slack beside t:

    minimise lambda_max(A)    becomes    minimise t   s.t.   t I − A == S,  S positive semidefinite

A piece is lifted where only larger values of it make things worse (min and minimum: smaller ones), so
that the bound is tight at every solution. Elsewhere, under a minus sign or in an equality, it stays
inside the functions, which are then kinked. Directions are found from the roots down, by the
monotonicity that the atom table proves; the graph is then built again from the leaves up. The rows
are those that an atom declares as its `pieces`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.algebra import Pieces
from hcmodel.atoms.atom import NO_PIECES
from hcmodel.atoms.rules import Argument, Monotonicity
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import (
    Graph,
    graph_values,
    join_sums,
    merge,
    topological_order,
)
from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.expressions.model import Minimize, Model
from hcmodel.expressions.sparse_data import dense
from hcmodel.expressions.variable_sets import BoxSet
from hcmodel.facts.node_facts import Facts
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.reductions.entry_paths import Liveness, entries_on, path_of
from hcmodel.reductions.reduction import (
    BoundOrigin,
    Duals,
    ModelReduction,
    Origin,
    moved_point,
)

FloatArray = NDArray[np.float64]

UP, DOWN = 1, 2  # bits: larger values make things worse, smaller ones do
BOTH = UP | DOWN
# Of the two sides of a constraint.
SIDES = {"<=": (UP, DOWN), ">=": (DOWN, UP), "==": (BOTH, BOTH)}


@dataclass(frozen=True)
class Definition:
    """A variable that was added, and what it bounds."""

    variable: Variable
    expression: Expression
    place: int
    """Where the node behind it stands in the topological order of the model."""
    floor: FloatArray | None = None
    """What its lower bounds say in the place of rows, as t >= 0 for the larger of x and 0."""


@dataclass(frozen=True)
class Lifted:
    """The model with its kinks lifted: the constraints as written first, then the new ones."""

    objective: Expression
    constraints: tuple[Constraint, ...]
    definitions: tuple[Definition, ...]
    sources: tuple[Hashable, ...] = ()
    """For each row that was added the kink behind it, and the number of the row among its rows."""
    has_kinks: bool = False

    def key(self) -> Hashable:
        """Equal for liftings of one model that differ in nothing."""
        return tuple(
            (
                each.place,
                each.variable.lower.tobytes(),
                each.variable.upper.tobytes(),
                each.variable.pos,
            )
            for each in self.definitions
        )


def lift(
    objective: Expression,
    sign: float,
    constraints: Sequence[Constraint],
    facts: Facts | None = None,
    nodes: Sequence[Expression] | None = None,
) -> Lifted:
    """`sign` is 1 to minimise and −1 to maximise; without kinks nothing is changed.

    `facts` are those at hand of expressions of the model; what is missing is added to them. `nodes` are
    all of them, every node after its arguments, where they are known.
    """
    roots = [objective]
    wanted = [UP if sign > 0 else DOWN]
    for constraint in constraints:
        roots += [constraint.lhs, constraint.rhs]
        wanted += SIDES[constraint.sense]
    order = topological_order(roots) if nodes is None else nodes
    pieces = {id(node): found for node in order if (found := pieces_of(node)) is not None}
    if not pieces:
        return Lifted(objective, tuple(constraints), ())
    facts = Facts() if facts is None else facts
    facts.add(objective)  # the order of proofs, which variables are listed in
    for constraint in constraints:
        for side in (constraint.lhs, constraint.rhs)[:: -1 if constraint.sense == ">=" else 1]:
            facts.add(side)
    worse = directions(order, list(zip(roots, wanted, strict=True)), facts, pieces)
    builder = _Builder(facts, worse, pieces)
    for node in order:
        builder.build(node)
    rebuilt = [
        _constraint_like(each, builder.new[id(each.lhs)], builder.new[id(each.rhs)])
        for each in constraints
    ]
    return Lifted(
        builder.new[id(objective)],
        (*rebuilt, *builder.rows),
        tuple(builder.definitions),
        tuple(builder.sources),
        has_kinks=True,
    )


def _constraint_like(constraint: Constraint, lhs: Expression, rhs: Expression) -> Constraint:
    if lhs is constraint.lhs and rhs is constraint.rhs:
        return constraint
    return constraint.like(lhs, rhs)


def pieces_of(node: Expression) -> Pieces | None:
    if not isinstance(node, Apply) or node.atom.pieces is NO_PIECES:
        return None
    arguments = [Argument(argument.shape) for argument in node.args]
    return node.atom.pieces(arguments, dict(node.params))


def directions(
    order: Sequence[Expression],
    roots: Sequence[tuple[Expression, int]],
    facts: Facts,
    known: dict[int, Pieces],
) -> dict[int, int]:
    """For each node the ways, as bits, in which its value can make things worse."""
    found: dict[int, int] = {id(node): 0 for node in order}
    for root, bits in roots:
        found[id(root)] |= bits
    for node in reversed(order):
        if not isinstance(node, Apply):
            continue
        bits = found[id(node)]
        pieces = known.get(id(node))
        if pieces is not None and is_lifted(node, pieces, bits):
            passed = [bits if pieces.monotone else BOTH] * len(node.args)
        else:
            arguments = [facts[argument].argument for argument in node.args]
            moves = node.atom.monotonicity(arguments, dict(node.params))
            passed = [_through(move, bits) for move in moves]
        for argument, own in zip(node.args, passed, strict=True):
            found[id(argument)] |= own
    return found


def is_lifted(node: Expression, pieces: Pieces, bits: int) -> bool:
    """Whether a node whose value matters in these directions is replaced by a bound."""
    return bits == (UP if pieces.above else DOWN) and bool(node.variables())


def _through(move: Monotonicity, bits: int) -> int:
    if move is Monotonicity.INCREASING:
        return bits
    if move is Monotonicity.DECREASING:
        return (UP if bits & DOWN else 0) | (DOWN if bits & UP else 0)
    return 0 if move is Monotonicity.CONSTANT or not bits else BOTH


class _Builder:
    """The graph with lifted pieces replaced, from the leaves up."""

    def __init__(self, facts: Facts, directions: dict[int, int], pieces: dict[int, Pieces]) -> None:
        self.facts = facts
        self.directions = directions
        self.pieces = pieces
        self.new: dict[int, Expression] = {}
        self.rows: list[Constraint] = []
        self.definitions: list[Definition] = []
        self.sources: list[tuple[Expression, int]] = []

    def build(self, node: Expression) -> None:
        self.new[id(node)] = self._built(node)

    def _built(self, node: Expression) -> Expression:
        if not isinstance(node, Apply):
            return node
        arguments = tuple([self.new[id(argument)] for argument in node.args])
        pieces = self.pieces.get(id(node))
        if pieces is not None and is_lifted(node, pieces, self.directions[id(node)]):
            return self._bounded(node, pieces, arguments)
        for new, old in zip(arguments, node.args, strict=True):
            if new is not old:
                break
        else:
            return node
        return Apply(node.atom, arguments, node.params, node.shape)

    def _bounded(
        self, node: Apply, pieces: Pieces, arguments: tuple[Expression, ...]
    ) -> Expression:
        """The value of a node in terms of a variable that bounds its pieces."""
        t = self.bound(pieces.bounded(node.args) if pieces.bounded else node)
        floor = np.full(t.shape, -np.inf)
        for number, (smaller, larger) in enumerate(pieces.rows(arguments, t)):
            if self._is_bound(smaller, t):
                np.maximum.at(floor, _places(larger, t), dense(smaller.value))
            else:
                self.rows.append(Constraint(smaller, "<=", larger))
                self.sources.append((node, number))
        self.definitions[-1] = replace(self.definitions[-1], floor=floor)
        _loosen(t, floor)
        if pieces.semidefinite is not None:
            slack = self._slack(pieces.semidefinite(node.args, node))
            self.rows.append(Constraint(pieces.semidefinite(arguments, t), "==", slack))
            self.sources.append((node, 0))
        return pieces.value(t) if pieces.value else t

    def _slack(self, defined: Expression) -> Variable:
        """A semidefinite variable that is to equal `defined`."""
        name = f"bound·{len(self.definitions) + 1}"
        variable = Variable(defined.shape, name=name, PSD=True)
        self.definitions.append(Definition(variable, defined, len(self.new)))
        return variable

    def bound(self, defined: Expression) -> Variable:
        """A variable that is to bound `defined`, with what is proven of its range."""
        known = self.facts[defined]
        low, high = known.interval
        if not ((low < np.inf) & (high > -np.inf) & (low <= high)).all():
            # defined nowhere, as the evaluation of the model will show
            low, high = np.asarray(-np.inf), np.asarray(np.inf)
        positive = bool((low > 0).all()) or known.sign.value == "positive"
        positive = positive and bool((high > 0).all())  # the root of what is negative has no value
        variable = Variable(
            defined.shape,
            name=f"bound·{len(self.definitions) + 1}",
            bounds=(np.broadcast_to(low, defined.shape), np.broadcast_to(high, defined.shape)),
            pos=positive,
        )
        self.definitions.append(Definition(variable, defined, len(self.new)))
        return variable

    def _is_bound(self, argument: Expression, t: Variable) -> bool:
        """Whether the lower bounds of t say just that it is not below a constant.

        Higher ones, and those that fix t, rest on bounds of variables, and a conflict does without them.
        """
        if not isinstance(argument, Constant):
            return False
        lower, upper = (np.broadcast_to(end, t.shape) for end in (t.lower, t.upper))
        return bool(np.all(dense(argument.value) == lower) and np.all(lower < upper))


def _loosen(t: Variable, floor: FloatArray) -> None:
    """Move the bounds that rows imply away from t, so that they balance no part of a slope.

    At t they would share the multipliers of its rows, and what is missing there would be missing in the
    multipliers of x. Proofs rest on signs, so these stay; cone programs do without them, and get the
    wider ones. A lower bound at its `floor` stands in the place of rows.
    """
    low, high = (np.broadcast_to(end, t.shape) for end in (t.lower, t.upper))
    kept = (low == floor) | np.isinf(low), np.isinf(high)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.where(np.isfinite(low), np.abs(low), 0.0) + np.where(kept[1], 0.0, np.abs(high))
        margin = np.where(sizes > 0.0, sizes, 1.0)
        lower, upper = np.where(kept[0], low, low - margin), np.where(kept[1], high, high + margin)
    t.set = BoxSet(
        t.set.name,
        t.set.shape,
        lower=np.where((low < 0) | kept[0], lower, low / 2),
        upper=np.where((high > 0) | kept[1], upper, high / 2),
        pos=t.set.pos,
        wider=(lower, upper),
    )


def _places(side: Expression, t: Variable) -> Any:
    """The entries of t that a side of a row has."""
    if side is t:
        return ...
    path = path_of(side, Liveness())
    assert path is not None
    found = entries_on(*path)
    assert found is not None
    return np.unravel_index(found[0], t.shape)


class Lift(ModelReduction):
    """The model with its kinks as rows. Points get the values of the variables that bound them."""

    duals_at_points = False

    def __init__(self, before: Model, lifted: Lifted) -> None:
        after = before
        if lifted.definitions:
            objective = Minimize(lifted.objective)
            after = replace(before, objective=objective, constraints=lifted.constraints)
        super().__init__(before, after)
        self.lifted = lifted

    @staticmethod
    def of(model: Model, facts: Facts | None = None) -> Lift:
        objective, rows = model.objective.expression, model.constraints
        nodes = model.nodes if model.posynomials is None else ()  # sums of terms have no kinks
        return Lift(model, lift(objective, model.sign, rows, facts, nodes))

    @property
    def definitions(self) -> tuple[Definition, ...]:
        return self.lifted.definitions

    @property
    def has_kinks(self) -> bool:
        """Whether the model has polyhedral kinks at all, lifted or not."""
        return self.lifted.has_kinks

    def key(self) -> Hashable:
        return self.lifted.key()

    def implies(self, origin: BoundOrigin) -> bool:
        """The bounds of a variable that was added do, but for those that stand in the place of rows."""
        for definition in self.definitions:
            if definition.variable is origin.variable and definition.floor is not None:
                lower = np.broadcast_to(origin.variable.lower, origin.variable.shape)
                floor = np.broadcast_to(definition.floor, origin.variable.shape)
                return origin.side != "lower" or bool(floor[origin.entry] < lower[origin.entry])
        return False

    def refresh(self) -> bool:
        """Directions and bounds of what is lifted rest on signs and intervals, hence on data."""
        return not self.has_kinks or Lift.of(self.before).key() == self.key()

    def point(self, x: FloatArray) -> FloatArray:
        u = moved_point(
            self.before, self.after, x, fill=np.nan
        )  # definitions are the new variables
        layout = self.after.layout
        values = graph_values(self._graph, self.before.layout, x)
        for definition, value in zip(self.definitions, values, strict=True):
            if layout.holds(definition.variable):
                u[layout.slice(definition.variable)] = definition.variable.set.store(value)
        return u

    @cached_property
    def _graph(self) -> Graph:
        """What is defined, for evaluations at one point after the other."""
        return join_sums(merge([definition.expression for definition in self.definitions]))

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        added = tuple(duals.added.get(source) for source in self.lifted.sources)
        return replace(duals, rows=(*duals.rows, *added))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        count = len(self.before.constraints)
        pairs = zip(self.lifted.sources, duals.rows[count:], strict=True)
        added = {source: dual for source, dual in pairs if dual is not None}
        return replace(duals, rows=duals.rows[:count], added={**duals.added, **added})

    def origin(self, origin: Origin) -> Origin | None:
        return origin if origin.position < len(self.before.constraints) else None
