"""The model in the coordinates of a declared map, where it is written in these alone.

    minimise norm(c, inf)   s.t.   norm(c - d, 1) <= 0.8,   c = (x_1 - 1, 2|x_1| - x_2 - 1) declared

is an ordinary model in u = c(x): the nodes of c become variables, and nothing has to be recognised. The
sets of variables that are no parts of the map themselves are left out but for the intervals of c that
they imply, so that a bound of the model in u is one of the model in x whatever the map is. The point that
comes back, by Newton's method on c(x) = u, is judged in the model as written; where there is none in the
sets of x, nothing is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.exchanged import exchanged, follow
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import is_sparse
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.facts.node_facts import Facts
from hcmodel.maps.declared import complete
from hcmodel.records import cached_property, replace
from hcmodel.reductions.reduction import Claim, Duals, ModelReduction
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.coordinates.newton import SEARCH, Target, newton
from hcmodel.solvers.numerics import MERIT_ROUNDING

FloatArray = NDArray[np.float64]

# The derivatives of the map, by differences, take a value for each unknown, and are dense: 5 ms for this
# many. The catalogue takes larger models by whole arrays.
MOST_UNKNOWNS = 100
# Steps with the derivatives at one point: a triangular map needs as many as it has unknowns, and some
# more as these derivatives are exact to DIFFERENCE only.
MOST_STEPS, SPARE_STEPS = 50, 4
# The root of the machine epsilon, below which a difference of values is mostly rounding.
DIFFERENCE = 1e-8
# The derivatives of the way back are asked for at single points (`engines/deferred`).
ENGINE = "autograd"

# An operation: its place, its function, the places of its arguments, and its keywords.
_Operation = tuple[int, Callable[..., Any], list[int], dict[str, Any]]


class MapEntries(ModelReduction):
    """The model with variables for the parts of the declared map, which are all that it has of x."""

    keeps = frozenset({Claim.OPTIMAL, Claim.BOUND})

    def __init__(self, before: Model, after: Model, parts: Sequence[Expression]) -> None:
        """`parts` are what the variables of `after` stand for, in their order."""
        super().__init__(before, after)
        self.parts = tuple(parts)
        self.outside = tuple(variable.name for variable in before.variables)
        # the last point that was found, by its image as it was asked for and as it is
        self._points: dict[bytes, FloatArray] = {}
        self._images: dict[bytes, FloatArray] = {}

    @staticmethod
    def of(model: Model, facts: Facts) -> MapEntries | None:
        """The reduction; None where the model has variables beside the map, or it is not square or large.

        `facts` are those at hand of expressions of the model; what is missing is added to them.
        """
        parts = complete(model.hidden or (), model.variables)
        square = sum(part.size for part in parts) == model.layout.size <= MOST_UNKNOWNS
        if not square or not all(variable.set.is_box for variable in model.variables):
            return None
        if any(isinstance(each, Constant) and is_sparse(each.value) for each in model.nodes):
            return None  # some operations take it only where it is made dense
        if not all(_has_interval(part, facts) for part in parts):
            return None
        names = _names(model, len(parts))
        meaning = {_variable(*each, facts): each[0] for each in zip(parts, names, strict=True)}
        after = _rewritten(model, {id(part): new for new, part in meaning.items()})
        if set(after.variables) != set(meaning):
            return None
        return MapEntries(model, after, [meaning[each] for each in after.variables])

    @property
    def texts(self) -> dict[Variable, str]:
        """The new variables in the terms of those before."""
        pairs = zip(self.after.variables, self.parts, strict=True)
        return {new: str(part) for new, part in pairs if new is not part}

    # ---- points

    @cached_property
    def _tape(self) -> tuple[list[Any], list[tuple[int, int]], list[_Operation], list[int]]:
        """The values of constants, the places of variables, the operations, the places of the parts."""
        constants: list[Any] = []
        variables: list[tuple[int, int]] = []
        operations: list[_Operation] = []
        place: dict[int, int] = {}
        for number, node in enumerate(topological_order(self.parts)):
            place[id(node)] = number
            constants.append(None)
            if isinstance(node, Apply):
                arguments = [place[id(each)] for each in node.args]
                operations.append((number, node.atom.function, arguments, dict(node.params)))
            elif isinstance(node, Variable):
                variables.append((number, self.before.layout.position(node)))
            else:
                constants[number] = node.value
        return constants, variables, operations, [place[id(part)] for part in self.parts]

    def _values(self, x: FloatArray) -> FloatArray:
        """The map at a point. It is evaluated at a dozen points, for which no engine is asked."""
        constants, variables, operations, parts = self._tape
        values, blocks = list(constants), self.before.layout.unpack(np, x)
        for number, position in variables:
            values[number] = blocks[position]
        try:
            for number, function, arguments, params in operations:
                values[number] = function(np, *[values[each] for each in arguments], **params)
        except np.linalg.LinAlgError:
            return np.full(x.size, np.nan)
        return np.concatenate([np.asarray(values[each], dtype=float).reshape(-1) for each in parts])

    def _linearised(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The image and, by differences, its derivatives: they only lead Newton's method."""
        values, columns = self._values(x), []
        for place, length in enumerate((DIFFERENCE * np.maximum(np.abs(x), 1.0)).tolist()):
            beside = x.copy()
            beside[place] += length
            columns.append((self._values(beside) - values) / (beside[place] - x[place]))
        return values, np.array(columns).T

    def point(self, x: FloatArray) -> FloatArray:
        found = self._images.get(x.tobytes())
        if found is not None:
            return found.copy()
        with np.errstate(all="ignore"):
            return self._values(x)

    def point_back(self, u: FloatArray) -> FloatArray:
        """The middle of the sets where no point with the image u is found."""
        key = u.tobytes()
        if key not in self._points:
            with np.errstate(all="ignore"):
                x, values = self._solved(u) or self._start[:2]
            self._images = {x.tobytes(): values}
            self._points = {key: x, values.tobytes(): x}
        return self._points[key].copy()

    @cached_property
    def _start(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The middle of the sets, its image, and the derivatives there."""
        middle = make_domain(self.before.variables).middle()
        return middle, *self._linearised(middle)

    def _solved(self, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """x with c(x) = u, and c(x), by Newton's method, first with the derivatives at the start.

        Of a triangular map with x_k in c_k by a constant factor, each of the first steps makes one more
        entry exact.
        """
        x, values, slopes = self._start
        sizes = np.abs(slopes)
        with suppress(np.linalg.LinAlgError):
            inverse = np.linalg.inv(slopes)
            for _ in range(min(u.size, MOST_STEPS) + SPARE_STEPS):
                miss = u - values
                if every(np.abs(miss) <= MERIT_ROUNDING * (np.abs(u) + sizes @ np.abs(x))):
                    return x, values
                x = x + inverse @ miss
                values = self._values(x)
        target = Target(self._values, self._linearised, np.eye(u.size), u)
        found = newton(target, self._start[0], SEARCH)
        return None if found is None else (found, self._values(found))

    def tangent_back(self, u: FloatArray, direction: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(self._slopes(u), direction))

    def cotangent(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(self._slopes(u).T, weights))

    def _slopes(self, u: FloatArray) -> FloatArray:
        """The derivatives of the map at the point with the image u."""
        layout, count = self.before.layout, len(self.parts)
        stack = compile_stack(self.parts, layout, count, engine=ENGINE, structured=False)
        found = stack.evaluate(self.point_back(u), "objective").jacobian()
        return found if isinstance(found, np.ndarray) else found.toarray()

    # ---- multipliers

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        """Rows are the same functions of the same points."""
        return replace(duals, sets=None)

    def set_duals_back(self, u: FloatArray, sets: FloatArray) -> FloatArray:
        return np.zeros(self.before.layout.size)


def _names(model: Model, count: int) -> list[str]:
    """Names that no variable of the model has."""
    taken = {variable.name for variable in model.variables}
    numbered = ("u" if number == 1 else f"u{number}" for number in itertools.count(1))
    return list(itertools.islice((name for name in numbered if name not in taken), count))


def _has_interval(part: Expression, facts: Facts) -> bool:
    """Whether there are numbers that a part may be: a map that is defined nowhere has none."""
    low, high = facts[part].interval
    return every(np.asarray((low <= high) & (low < np.inf) & (high > -np.inf)))


def _variable(part: Expression, name: str, facts: Facts) -> Variable:
    """The variable for a part of the map: its own, or one with the interval that the sets of x imply."""
    if isinstance(part, Variable):
        return part
    low, high = (np.array(np.broadcast_to(end, part.shape)) for end in facts[part].interval)
    return Variable(part.shape, name=name, bounds=(low, high))


def _rewritten(model: Model, new: dict[int, Expression]) -> Model:
    """The model with variables for the parts of the map."""
    follow(model.nodes, new)
    return exchanged(model, new, hidden=None, source=None)
