"""The forms in which methods see a model, and the way from each back to the model as written.

Three forms of one model: as written (`Problem.canonical`), with its kinks lifted, and in hidden
coordinates, with its kinks lifted and its rows in the normal form in which they are convex. A `Form`
holds the compiled stack, the outer part, the domain and the geometry of one of them, and walks points
and multipliers back.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.canonical import CanonicalProblem, canonicalize
from hcmodel.constraint import Constraint
from hcmodel.engines.autograd_ import AutogradStack, compile_stack
from hcmodel.expression import Expression, Variable
from hcmodel.graph import merge
from hcmodel.hidden.map import complete
from hcmodel.hidden.proof import Proof, prove
from hcmodel.hidden.separable import plain_entries
from hcmodel.lifting import Definition, Lifted, lift
from hcmodel.solvers.coordinates import Geometry, LogStack, MapGeometry, PlainGeometry, log_domain
from hcmodel.solvers.domain import Domain
from hcmodel.solvers.oracle import Evaluation, Oracle, Stack

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TightGeometry:
    """A geometry that pulls the variables which bound kinks down to what they bound."""

    inner: Geometry
    form: Form

    def frame(self, evaluation: Evaluation) -> Any:
        return self.inner.frame(evaluation)

    def hessian(
        self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        return self.inner.hessian(oracle, evaluation, multipliers)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        return self.form.tightened(self.inner.retract(x, step))


@dataclass(frozen=True)
class Form:
    """One form of a model. `written` is the canonical problem of the model as it was written.

    `logs` marks the entries of the flat vector that are logarithms here. `kind` is "written",
    "lifted", "separable" (identity and logarithms) or "mapped".
    """

    kind: str
    written: CanonicalProblem
    canonical: CanonicalProblem
    compiled: AutogradStack
    stack: Stack
    domain: Domain
    logs: NDArray[np.bool_]
    definitions: tuple[Definition, ...] = ()
    defining: AutogradStack | None = None
    map_geometry: MapGeometry | None = None
    proof: Proof | None = None

    def refresh(self) -> None:
        """Read the parameters."""
        self.compiled.refresh()
        if self.defining is not None:
            self.defining.refresh()

    def oracle(self) -> Oracle:
        return Oracle(self.stack, self.canonical.outer)

    @property
    def geometry(self) -> Geometry:
        inner: Geometry = self.map_geometry or PlainGeometry(self.domain)
        return TightGeometry(inner, self) if self.definitions else inner

    def from_written(self, x: FloatArray) -> FloatArray:
        """A point of the model as written, in this form."""
        own = np.zeros(self.canonical.layout.size)
        for variable, block in zip(
            self.written.layout.variables, self.written.layout.blocks, strict=True
        ):
            place = self._block(variable)
            if place is not None:
                own[place] = x[block.start : block.stop]
        self._fill(own, x)
        own = np.clip(own, *_reach(self.canonical.domain, own))
        return self._coordinates(own)

    def to_written(self, u: FloatArray) -> FloatArray:
        """A point of this form in the model as written; what it leaves open is at the middle."""
        own = self._point(u)
        x = self.written.domain.middle()
        for variable, block in zip(
            self.written.layout.variables, self.written.layout.blocks, strict=True
        ):
            place = self._block(variable)
            if place is not None:
                x[block.start : block.stop] = own[place]
        return x

    def tightened(self, u: FloatArray) -> FloatArray:
        """The same point with the variables that bound kinks at what they bound."""
        if self.defining is None:
            return u
        own = self._point(u)
        self._fill(own, self.to_written(u))
        return self.domain.project(self._coordinates(own))

    def _fill(self, own: FloatArray, x: FloatArray) -> None:
        if self.defining is None:
            return
        values = self.defining.evaluate(x, "all").values
        start = 0
        for definition in self.definitions:
            size = definition.variable.size
            place = self._block(definition.variable)
            if place is not None:
                own[place] = values[start : start + size]
            start += size

    def _block(self, variable: Variable) -> slice | None:
        layout = self.canonical.layout
        if not layout.holds(variable):
            return None
        block = layout.blocks[layout.position(variable)]
        return slice(block.start, block.stop)

    def _point(self, u: FloatArray) -> FloatArray:
        return self.stack.point(u) if isinstance(self.stack, LogStack) else u.copy()

    def _coordinates(self, x: FloatArray) -> FloatArray:
        return self.stack.coordinates(x) if isinstance(self.stack, LogStack) else x

    def multipliers_as_written(
        self, evaluation: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        """Multipliers of the rows as written, from those of this form at a point of it.

        A row between logarithms has left ∇row = ∇left − ∇right where it holds with equality, and an
        objective through its logarithm has F times the multipliers.
        """
        outer, size = self.canonical.outer, self.written.outer.size
        result = np.zeros(size)
        values = self.compiled.evaluate(self._point(evaluation.point), "all").values
        split = self.compiled.objective_size
        slope = outer.objective_slope(values[:split])
        left = outer.left @ values[split:]
        own = np.where(outer.log_rows, multipliers / np.where(outer.log_rows, left, 1.0), multipliers)
        own = own / slope
        blocks = {block.position: block for block in self.canonical.blocks}
        for block in self.written.blocks:
            mine = blocks[block.position]
            dual = mine.dual(own)
            full = dual.reshape(-1)
            if block.entries.size < full.size:
                doubled = (dual + dual.T).reshape(-1)
                diagonal = np.arange(dual.shape[0]) * (dual.shape[0] + 1)
                doubled[diagonal] = full[diagonal]
                full = doubled
            result[block.rows] = full[block.entries]
        return result


def _reach(domain: Domain, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    projected = domain.project(point)
    return np.minimum(projected, point), np.maximum(projected, point)


def lifted_form(written: CanonicalProblem, stack: AutogradStack, lifted: Lifted) -> Form:
    """The model with its kinks lifted, in its own coordinates."""
    none = np.zeros(written.layout.size, dtype=bool)
    if not lifted.definitions:
        return Form("written", written, written, stack, stack, written.domain, none)
    canonical = canonicalize(lifted.objective, written.sign, lifted.constraints)
    compiled = compile_stack(canonical.roots, canonical.layout, 1)
    return Form(
        kind="lifted",
        written=written,
        canonical=canonical,
        compiled=compiled,
        stack=compiled,
        domain=canonical.domain,
        logs=np.zeros(canonical.layout.size, dtype=bool),
        definitions=lifted.definitions,
        defining=_defining(lifted.definitions, written),
    )


def _defining(
    definitions: Sequence[Definition], written: CanonicalProblem
) -> AutogradStack | None:
    roots = [definition.expression for definition in definitions]
    return compile_stack(roots, written.layout, 1) if roots else None


def separable_form(
    written: CanonicalProblem,
    proof: Proof,
    objective: Expression,
    constraints: Sequence[Constraint],
) -> Form | None:
    """The model in the coordinates of a proof, rows in normal form, kinks lifted.

    None where the lifted model is not proven in these coordinates.
    """
    rows = [
        Constraint(row.left, "==" if row.equality else "<=", row.right, constraint.name)
        for row, constraint in zip(proof.rows, constraints, strict=True)
    ]
    lifted = lift(objective, written.sign, rows)
    coordinates = dict(proof.coordinates)
    forms = [row.form for row in proof.rows]
    objective_form = proof.objective_form
    if lifted.definitions:
        again = prove(
            lifted.objective, written.sign, lifted.constraints, fixed=proof.coordinates
        )
        if not again.proven:
            return None
        coordinates, objective_form = dict(again.coordinates), again.objective_form
        forms = [row.form for row in again.rows]
        rows = [
            Constraint(row.left, "==" if row.equality else "<=", row.right, each.name)
            for row, each in zip(again.rows, lifted.constraints, strict=True)
        ]
    else:
        rows = list(lifted.constraints)
    canonical = canonicalize(lifted.objective, written.sign, rows)
    log_rows = np.zeros(canonical.outer.size, dtype=bool)
    for block in canonical.blocks:
        log_rows[block.rows] = forms[block.position] == "log"
    outer = replace(canonical.outer, log_objective=objective_form == "log", log_rows=log_rows)
    canonical = replace(canonical, outer=outer)
    logs = np.zeros(canonical.layout.size, dtype=bool)
    for variable, block in zip(canonical.layout.variables, canonical.layout.blocks, strict=True):
        logs[block.start : block.stop] = coordinates.get(variable) == "log"
    compiled = compile_stack(canonical.roots, canonical.layout, 1)
    return Form(
        kind="separable",
        written=written,
        canonical=canonical,
        compiled=compiled,
        stack=LogStack(compiled, logs) if logs.any() else compiled,
        domain=log_domain(canonical.domain, logs),
        logs=logs,
        definitions=lifted.definitions,
        defining=_defining(lifted.definitions, written),
        proof=proof,
    )


def mapped_form(
    written: CanonicalProblem, lifted: Lifted, hidden: Sequence[Expression]
) -> Form:
    """The model with its kinks lifted, in the coordinates of a declared map."""
    canonical = canonicalize(lifted.objective, written.sign, lifted.constraints)
    entries = complete(hidden, canonical.layout.variables)
    compiled = compile_stack(canonical.roots, canonical.layout, 1, entries)
    geometry = MapGeometry(compiled, canonical.domain, _bending(entries, canonical))
    return Form(
        kind="mapped",
        written=written,
        canonical=canonical,
        compiled=compiled,
        stack=compiled,
        domain=canonical.domain,
        logs=np.zeros(canonical.layout.size, dtype=bool),
        definitions=lifted.definitions,
        defining=_defining(lifted.definitions, written),
        map_geometry=geometry,
    )


def _bending(entries: Sequence[Expression], canonical: CanonicalProblem) -> NDArray[np.bool_]:
    """Entries of boxes that are no coordinates themselves: their bounds may be curved in u."""
    straight = plain_entries(entries, canonical.layout.variables)
    bending = np.zeros(canonical.layout.size, dtype=bool)
    for variable, block in zip(canonical.layout.variables, canonical.layout.blocks, strict=True):
        if variable.domain_kind == "box":
            bending[block.start : block.stop] = ~np.ravel(straight[variable])
    return bending


def structure_key(objective: Expression, constraints: Sequence[Constraint]) -> Hashable:
    """Equal for models of the same graph, so that a form compiled for one serves the other."""
    roots = [objective, *(side for each in constraints for side in (each.lhs, each.rhs))]
    graph = merge(roots)
    steps = tuple(
        (step.atom.name, step.arguments, tuple(sorted(step.params.items())))
        if step.atom is not None
        else step.leaf.merge_key()  # type: ignore[union-attr]
        for step in graph.steps
    )
    return steps, graph.roots, tuple(each.sense for each in constraints)


def proof_key(proof: Proof, objective: Expression) -> Hashable:
    """What a separable form depends on."""
    rows = [
        Constraint(row.left, "==" if row.equality else "<=", row.right) for row in proof.rows
    ]
    coordinates: Mapping[Variable, str] = proof.coordinates
    return (
        structure_key(objective, rows),
        tuple(row.form for row in proof.rows),
        proof.objective_form,
        tuple((id(variable), kind) for variable, kind in coordinates.items()),
    )
