"""A map u = c(x) together with the functions of a model, on the tangent space of X.

X may be thinner than the space it lies in (simplices), and c may have more entries than X has
dimensions (a symmetric P counts twice in P itself). So directions are written x + Z y with Z the
tangent basis of the domain, and derivatives by u come from J Z, which must have full column rank.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.engine import CompiledStack, Forward
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.leaves import Expression
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solving.naming import Naming, named_point

FloatArray = NDArray[np.float64]

OBJECTIVE = -1
# Samples are drawn again, up to this many times, where a function is not defined.
DRAWS_PER_SAMPLE = 5


class HiddenMap:
    """Objective, rows and map, compiled into one stack; without parts the map is empty."""

    def __init__(self, forms: Forms, parts: Sequence[Expression] = ()) -> None:
        forms.check_structure()
        canonical = forms.written.canonical
        self.layout = canonical.layout
        self.origin = canonical.origin
        self.naming = Naming.of(forms.sign.before)
        self.domain = canonical.domain
        self.parts = tuple(parts)
        self.size = sum(part.size for part in self.parts)
        # The engine's two parts are here the functions and the map, which are asked for apart.
        self.stack: CompiledStack = compile_stack(
            (*canonical.roots, *self.parts),
            canonical.layout,
            len(canonical.roots),
            engine=forms.compiler.engine,
        )
        self.stack.refresh()
        outer = canonical.outer
        self.objective_weights = np.asarray(outer.objective, dtype=float)
        self.left, self.right = outer.left, outer.right
        self.difference = scipy.sparse.csr_array(outer.left - outer.right)
        self.rows = int(outer.left.shape[0])
        self.inequalities = int(outer.inequalities)

    @functools.cached_property
    def basis(self) -> FloatArray:
        """Z, orthonormal columns along which X extends."""
        return np.asarray(self.domain.tangent_basis().toarray())

    @property
    def dimension(self) -> int:
        """The dimension of X."""
        return int(self.basis.shape[1])

    def at(self, x: FloatArray) -> MapPoint:
        return MapPoint(np.array(x, dtype=float), self)

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
        return np.concatenate([objective * self.objective_weights, self.difference.T @ rows, tail])

    def natural_basis(self, x: FloatArray) -> FloatArray:
        """The tangent basis with columns as long as a natural move at x."""
        metric = np.asarray(self.domain.metric(x))
        return self.basis * np.sqrt(self.basis.T**2 @ metric**2)

    def sample(self, count: int, generator: np.random.Generator) -> list[MapPoint]:
        """Up to `count` points of X at which all functions are defined."""
        points: list[MapPoint] = []
        for _ in range(DRAWS_PER_SAMPLE * count):
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
        return self.naming.row(self.origin(function))

    def arrays(self, x: FloatArray) -> dict[str, FloatArray]:
        """A point, or a direction, by the names of the variables."""
        return named_point(self.layout, x)


@dataclass(frozen=True)
class MapPoint:
    """Values and first derivatives at one point, computed when they are asked for."""

    point: FloatArray
    map: HiddenMap = field(repr=False)

    @functools.cached_property
    def _functions(self) -> Forward:
        return self.map.stack.evaluate(self.point, "objective")

    @functools.cached_property
    def _map(self) -> Forward:
        return self.map.stack.evaluate(self.point, "constraints")

    @property
    def objective(self) -> float:
        """F1, to be minimised."""
        return float(self.map.objective_weights @ self._functions.values[:1])

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        """Left and right side of each row."""
        inner = self._functions.values[1:]
        return self.map.left @ inner, self.map.right @ inner

    @functools.cached_property
    def rows(self) -> FloatArray:
        left, right = self.sides
        return np.asarray(left - right)

    @functools.cached_property
    def magnitudes(self) -> FloatArray:
        """max(1, |left|, |right|): what a violation of a row is measured by."""
        left, right = self.sides
        return np.maximum(1.0, np.maximum(np.abs(left), np.abs(right)))

    @property
    def image(self) -> FloatArray:
        """c(x)."""
        return self._map.values

    @functools.cached_property
    def map_jacobian(self) -> FloatArray:
        """J Z."""
        return _dense(self._map.jacobian()) @ self.map.basis

    @functools.cached_property
    def row_jacobian(self) -> FloatArray:
        """∂rows/∂x."""
        return np.asarray(self.map.difference @ _dense(self._functions.jacobian())[1:])

    def gradient(self, function: int) -> FloatArray:
        """The gradient of a function in x, by one sweep."""
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
        target = self.map.basis.T @ self.gradient(function)
        if not np.isfinite(target).all():
            return np.full(self.map.size, np.nan)
        return np.asarray(np.linalg.lstsq(self.map_jacobian.T, target, rcond=1e-12)[0])

    def hidden_hessian(self, function: int) -> FloatArray:
        """∇²[F − s·c] in x, s held fixed: on the tangent space it is Jᵀ∇²H J for F = H∘c."""
        weights = self.map.weights(function, self.slope(function))
        return as_dense(self.map.stack.hessian(self.point, weights))


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
