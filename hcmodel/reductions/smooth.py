"""An end of a chain: a model as a compiled stack φ and an outer part, for methods that ask an oracle.

Coordinates are an argument: x itself, logarithms of some entries, or a general map u = c(x). The first
two change the vector that methods see; under a map methods take steps in x that are measured in u.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.code_map import map_of
from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.registry import AUTO, compile_stack
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.maps.declared import complete
from hcmodel.maps.separable import LOG, plain_entries
from hcmodel.records import cached_property, dataclass
from hcmodel.reductions.canonical import CanonicalProblem, canonicalize
from hcmodel.reductions.reduction import Duals, Reduction, same_objects
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.oracle import Oracle, Stack
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.sets.domain import Domain

if TYPE_CHECKING:
    from hcmodel.reductions.sums.known_sums import KnownFunctions
    from hcmodel.solvers.coordinates.general import MapCoordinates

FloatArray = NDArray[np.float64]

# Unknowns up to which dense second derivatives are computed, and sparse ones: beyond, a Newton step
# took longer than ten first-order steps on the chains and random programs of tests/benchmarks/large.py.
DENSE_LIMIT = 1200
SPARSE_LIMIT = 20_000


# Forms kept for one problem: as written, lifted and in hidden coordinates, and room for earlier values.
KEPT = 8


class Compiler:
    """Canonical problems and stacks of one problem: equal lists of roots are compiled once."""

    def __init__(self, engine: str = AUTO) -> None:
        self.engine = engine
        self._known: list[tuple[tuple[Expression, ...], Layout, CompiledStack]] = []
        self._canonical: list[CanonicalProblem] = []
        self.compilations = 0

    def canonical(self, model: Model) -> CanonicalProblem:
        """The canonical problem of a model; another form of a known one costs nothing."""
        for known in self._canonical:
            if known.fits(model):
                return known.in_forms_of(model)
        found = canonicalize(model)
        self._canonical = [*self._canonical, found][-KEPT:]
        return found

    def stack(
        self,
        roots: Sequence[Expression],
        layout: Layout,
        entries: Sequence[Expression] = (),
        sums: KnownFunctions | None = None,
        model: Model | None = None,
    ) -> CompiledStack:
        """The stack of `roots`, the first of which is the objective, and the map's entries."""
        wanted = (*roots, *entries)
        for known, its_layout, stack in self._known:
            if same_objects(known, wanted) and same_objects(its_layout.variables, layout.variables):
                return stack
        self.compilations += 1
        terms = () if sums is None else sums.terms(roots, layout)
        compiled = compile_stack(
            roots, layout, 1, entries, engine=self.engine, known=terms, model=model
        )
        self._known = [*self._known, (wanted, layout, compiled)][-KEPT:]
        return compiled


@dataclass(frozen=True, eq=False)
class SmoothProgram:
    """What methods see: functions, outer part, domain, and the coordinates to step in.

    `entries` are those of a map, which `map_geometry` belongs to.
    """

    canonical: CanonicalProblem
    compiled: CompiledStack
    stack: Stack
    domain: Domain
    map_geometry: MapCoordinates | None = None
    entries: tuple[Expression, ...] = ()

    @property
    def layout(self) -> Layout:
        return self.canonical.layout

    @property
    def outer(self) -> Outer:
        return self.canonical.outer

    def oracle(self) -> Oracle:
        """A fresh oracle, which counts from 0."""
        return Oracle(self.stack, self.outer)

    @property
    def geometry(self) -> Coordinates:
        return self.map_geometry or PlainCoordinates(self.domain)

    @property
    def logs(self) -> NDArray[np.bool_]:
        """Which unknowns are logarithms."""
        stack = self.stack
        return stack.logs if isinstance(stack, LogStack) else np.zeros(self.layout.size, dtype=bool)

    @property
    def affords_hessian(self) -> bool:
        """Whether second derivatives are worth their price: few unknowns, or a sparse pattern.

        Coordinates that are a map of all unknowns make dense matrices whatever the pattern is. Those
        of black boxes take a sweep of the user's code for each unknown, and kinks in them go unseen.
        """
        if self.compiled.has_black_boxes:
            return False
        size = self.layout.size
        if size <= DENSE_LIMIT:
            return True
        sparse = self.map_geometry is None and size <= SPARSE_LIMIT
        return sparse and self.compiled.sparse_hessian

    @cached_property
    def bending(self) -> tuple[Variable, ...]:
        """The variables with bounds that are curved in the coordinates of the map."""
        if self.map_geometry is None:
            return ()
        marked = self.map_geometry.bending
        return tuple(
            variable
            for variable in self.layout.variables
            if variable.has_bounds and marked[self.layout.slice(variable)].any()
        )


class Smooth(Reduction[Model, SmoothProgram]):
    """A model as a smooth program, in plain, logarithmic or mapped coordinates."""

    @staticmethod
    def of(
        model: Model,
        compiler: Compiler,
        *,
        coordinates: Mapping[Variable, str] | None = None,
        hidden: Sequence[Expression] | None = None,
        known: KnownFunctions | None = None,
    ) -> Smooth:
        """`coordinates` names those of each variable; `hidden` is a general map instead.

        `known` has functions of the model as sums.
        """
        canonical = compiler.canonical(model)
        entries = () if hidden is None else complete(hidden, model.variables)
        compiled = compiler.stack(canonical.roots, canonical.layout, entries, known, model)
        if hidden is not None:
            from hcmodel.solvers.coordinates.general import MapCoordinates

            geometry = MapCoordinates(
                compiled,
                canonical.domain,
                _bending(entries, model),
                _curved(entries, model),
                explicit=_explicit_inverse(entries, canonical.layout),
            )
            program = SmoothProgram(
                canonical, compiled, compiled, canonical.domain, geometry, entries
            )
            return Smooth(model, program)
        logs = np.zeros(canonical.layout.size, dtype=bool)
        for variable in canonical.layout.variables:
            logs[canonical.layout.slice(variable)] = (coordinates or {}).get(variable) == LOG
        if not some(logs):
            return Smooth(model, SmoothProgram(canonical, compiled, compiled, canonical.domain))
        stack = LogStack(compiled, logs)
        return Smooth(
            model, SmoothProgram(canonical, compiled, stack, canonical.domain.in_logarithms(logs))
        )

    def refresh(self) -> bool:
        self.after.compiled.refresh()
        if self.after.map_geometry is not None:
            self.after.map_geometry.forget()
        return True

    def point(self, x: FloatArray) -> FloatArray:
        stack = self.after.stack
        return stack.coordinates(x) if isinstance(stack, LogStack) else x

    def point_back(self, u: FloatArray) -> FloatArray:
        stack = self.after.stack
        return stack.point(u) if isinstance(stack, LogStack) else u.copy()

    def set_duals_back(self, u: FloatArray, sets: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return sets / self._slope(u)

    def tangent_back(self, u: FloatArray, direction: FloatArray) -> FloatArray:
        return direction * self._slope(u)

    def cotangent(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        return weights * self._slope(u)

    def _slope(self, u: FloatArray) -> FloatArray:
        """∂x/∂u, entry by entry."""
        stack = self.after.stack
        if not isinstance(stack, LogStack):
            return np.ones(u.size)
        return np.where(stack.logs, stack.point(u), 1.0)

    def multipliers(self, duals: Duals) -> FloatArray:
        """Multipliers of the rows, from those of the constraints."""
        return self.after.canonical.multipliers(duals)

    def by_constraint(self, multipliers: FloatArray) -> Duals:
        """Multipliers of the constraints, from those of the rows."""
        return self.after.canonical.duals(multipliers)


def _explicit_inverse(
    entries: Sequence[Expression], layout: Layout
) -> Callable[[FloatArray], FloatArray] | None:
    """The inverse of maps that are code with one, beside variables that are their own coordinates."""
    maps = [map_of(entry) for entry in entries]
    known = [
        (code is not None and code.inverse is not None) or isinstance(entry, Variable)
        for code, entry in zip(maps, entries, strict=True)
    ]
    boxes = all(variable.set.is_box for variable in layout.variables)
    if not (all(known) and any(code is not None for code in maps) and boxes):
        return None

    def inverse(u: FloatArray) -> FloatArray:
        x, start = np.full(layout.size, np.nan), 0
        for code, entry in zip(maps, entries, strict=True):
            own = u[start : start + entry.size]
            start += entry.size
            if code is None:
                assert isinstance(entry, Variable)
                x[layout.slice(entry)] = own
                continue
            assert isinstance(entry, Apply)
            for variable, part in zip(entry.args, code.inverted(own), strict=True):
                assert isinstance(variable, Variable)
                x[layout.slice(variable)] = np.ravel(part)
        return x

    return inverse


def _bending(entries: Sequence[Expression], model: Model) -> NDArray[np.bool_]:
    """Entries of boxes that are not coordinates themselves: their bounds may be curved in u.

    An entry whose bounds are equal is a number.
    """
    straight = plain_entries(entries, model.variables)
    bending = np.zeros(model.layout.size, dtype=bool)
    for variable in model.variables:
        if variable.set.is_box:
            moving = np.broadcast_to(variable.upper > variable.lower, variable.shape)
            bending[model.layout.slice(variable)] = ~np.ravel(straight[variable]) & moving.ravel()
    return bending


def curved_variables(
    entries: Sequence[Expression], variables: Sequence[Variable]
) -> tuple[Variable, ...]:
    """The matrix variables whose cone is curved in u, since they are no coordinates themselves."""
    return tuple(
        variable
        for variable in variables
        if variable.set.is_curved and not any(each is variable for each in entries)
    )


def _curved(entries: Sequence[Expression], model: Model) -> tuple[slice, ...]:
    curved = curved_variables(entries, model.variables)
    return tuple(model.layout.slice(variable) for variable in curved)
