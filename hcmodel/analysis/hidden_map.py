"""A map u = c(x) together with the functions of a model, on the tangent space of X.

X may be thinner than the space it lies in (simplices), and c may have more entries than X has
dimensions (a symmetric P counts twice in P itself). So directions are written x + Z y with Z the
tangent basis of the domain, and derivatives by u come from J Z, which must have full column rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import SAMPLE
from hcmodel.engines.engine import CompiledStack, Forward
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.leaves import Expression
from hcmodel.records import cached_property, dataclass
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.algebra.hessians import Hessian, as_dense
from hcmodel.solvers.algebra.storage import as_array
from hcmodel.solvers.coordinates.general import MapCoordinates
from hcmodel.solvers.coordinates.tangent import Tangent
from hcmodel.solvers.limits import check_time
from hcmodel.solving.naming import Naming, named_point

FloatArray = NDArray[np.float64]

# The number of the objective among the functions; rows are counted from 0.
OBJECTIVE = -1


class HiddenMap:
    """Objective, rows and map, compiled into one stack; without parts the map is empty."""

    def __init__(self, forms: Forms, parts: Sequence[Expression] = ()) -> None:
        forms.check_structure()
        canonical = forms.written.canonical
        self.layout = canonical.layout
        self.naming = Naming.of(forms.user)
        self._origin = canonical.origin
        self._front = forms.front
        self.domain = canonical.domain
        self.parts = tuple(parts)
        self.size = sum(part.size for part in self.parts)
        # Objective and rows are one part of the stack here: they are always asked for together.
        self.stack: CompiledStack = compile_stack(
            canonical.roots,
            canonical.layout,
            len(canonical.roots),
            self.parts,
            engine=forms.compiler.engine,
        )
        self.stack.refresh()
        straight = np.zeros(self.domain.dimension, dtype=bool)
        self.coordinates = MapCoordinates(self.stack, self.domain, straight)
        outer = canonical.outer
        self.objective_weights = np.asarray(outer.objective, dtype=float)
        self.left, self.right = outer.left, outer.right
        self.rows = outer.size
        self.inequalities = int(outer.inequalities)

    @cached_property
    def basis(self) -> FloatArray:
        """Z, orthonormal columns along which X extends."""
        return np.asarray(self.domain.tangent_basis().toarray())

    @property
    def dimension(self) -> int:
        """The dimension of X."""
        return int(self.basis.shape[1])

    def at(self, x: FloatArray) -> MapPoint:
        return MapPoint(np.array(x, dtype=float), self)

    def inverse(self, image: FloatArray, start: MapPoint) -> MapPoint | None:
        """A point that the map sends to `image` to rounding, in X or not; None where none was found."""
        found = self.coordinates.inverse(image, start.point)
        there = None if found is None else self.at(found)
        return there if there is not None and there.invertible else None

    def weights(self, function: int, hidden: FloatArray | None = None) -> FloatArray:
        """The function as a weighted sum of the stack, minus hidden·c."""
        rows = np.zeros(self.rows)
        if function != OBJECTIVE:
            rows[function] = 1.0
        return self.lagrangian_weights(float(function == OBJECTIVE), rows, hidden)

    def lagrangian_weights(
        self, objective: float, rows: FloatArray, hidden: FloatArray | None = None
    ) -> FloatArray:
        """objective·F + rows·g − hidden·c as weights on the stack."""
        tail = np.zeros(self.size) if hidden is None else -hidden
        inner = self.left.spread(rows) - self.right.spread(rows)
        return np.concatenate([objective * self.objective_weights, inner, tail])

    def natural_basis(self, x: FloatArray) -> FloatArray:
        """The tangent basis with columns as long as a natural move at x."""
        metric = np.asarray(self.domain.metric(x))
        return self.basis * np.sqrt(self.basis.T**2 @ metric**2)

    def sample(self, count: int, generator: np.random.Generator) -> list[MapPoint]:
        """Up to `count` points of X at which all functions are defined."""
        points: list[MapPoint] = []
        for _ in range(SAMPLE.draws * count):
            if len(points) == count:
                break
            point = self.at(self.domain.sample(generator))
            if point.finite and point.invertible:
                points.append(point)
        return points

    def name(self, function: int) -> str:
        """What the function is called in reports."""
        if function == OBJECTIVE:
            return "objective"
        origin = self._front.origin(self._origin(function))
        assert origin is not None  # functions are objective and rows as written
        return self.naming.row(origin)

    def arrays(self, x: FloatArray) -> dict[str, FloatArray]:
        """A point, or a direction, by the names of the variables."""
        return named_point(self.layout, x)


@dataclass(frozen=True)
class MapPoint:
    """Values and first derivatives at one point, computed when they are asked for."""

    point: FloatArray
    map: HiddenMap = field(repr=False)

    @cached_property
    def _functions(self) -> Forward:
        return self.map.stack.evaluate(self.point, "objective")

    @cached_property
    def _tangent(self) -> Tangent:
        return self.map.coordinates.tangent(self.point)

    @property
    def objective(self) -> float:
        """F1, to be minimised."""
        return float(self.map.objective_weights @ self._functions.values[:1])

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """Left and right side of each row."""
        inner = self._functions.values[1:]
        return self.map.left.values(inner), self.map.right.values(inner)

    @cached_property
    def rows(self) -> FloatArray:
        left, right = self.sides
        return np.asarray(left - right)

    @cached_property
    def magnitudes(self) -> FloatArray:
        """max(1, |left|, |right|): what a violation of a row is measured by."""
        left, right = self.sides
        return np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))

    @cached_property
    def image(self) -> FloatArray:
        """c(x)."""
        return self.map.coordinates.image(self.point) if self.map.size else np.zeros(0)

    @cached_property
    def map_jacobian(self) -> FloatArray:
        """J Z."""
        tangent = self._tangent
        return np.asarray(tangent.derivative / np.linalg.norm(tangent.directions, axis=0))

    @property
    def rank(self) -> int:
        """The number of directions in which the map moves."""
        return self._tangent.rank

    @cached_property
    def row_jacobian(self) -> FloatArray:
        """∂rows/∂x."""
        inner = as_array(self._functions.jacobian())[1:]
        return np.asarray(self.map.left.rows(inner) - self.map.right.rows(inner))

    def gradient(self, function: int) -> FloatArray:
        """The gradient of a function in x, by one sweep."""
        check_time()  # one of thousands of rows, and each may be wide
        weights = self.map.weights(function)
        return self._functions.pullback(weights[: self._functions.values.size])

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self._functions.values).all() and np.isfinite(self.image).all())

    @property
    def invertible(self) -> bool:
        """Whether the map and its derivatives are finite, so that Newton's method can go on."""
        if not self.map.size:
            return True
        return bool(np.isfinite(self.image).all() and np.isfinite(self.map_jacobian).all())

    @property
    def violation(self) -> float:
        """The largest relative violation of a row."""
        count = self.map.inequalities
        parts = np.concatenate([np.maximum(self.rows[:count], 0.0), np.abs(self.rows[count:])])
        return float(np.max(parts / self.magnitudes, initial=0.0))

    def slope(self, function: int) -> FloatArray:
        """s with Jᵀs = ∇F on the tangent space: the gradient of the function by u."""
        return np.asarray(self._tangent.slopes(self.gradient(function)[None, :])[0])

    def hidden_hessian(self, function: int) -> FloatArray:
        """B on the tangent space: Jᵀ∇²H J for F = H∘c."""
        weights = self.map.weights(function)[: self.map.stack.size]

        def second(hidden: FloatArray | None) -> Hessian:
            more = np.zeros(self.map.size) if hidden is None else hidden
            return as_dense(self.map.stack.hessian(self.point, np.concatenate([weights, more])))

        gradient = self.gradient(function)
        return as_dense(self.map.coordinates.hidden_hessian(self.point, gradient, second))
