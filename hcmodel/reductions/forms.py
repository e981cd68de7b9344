"""The forms in which methods see a model, and the way from each back to the model as written.

Three forms of one model: as written (`Problem.canonical`), with its kinks lifted, and in hidden
coordinates, with its kinks lifted and its rows in the normal form in which they are convex. A `Form`
holds the compiled stack, the outer part, the domain and the geometry of one of them, and walks points
and multipliers back.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.registry import AUTO, compile_stack
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import merge
from hcmodel.expressions.leaves import Expression, Leaf, Variable
from hcmodel.maps.declared import complete
from hcmodel.maps.separable import declared_coordinates, plain_entries
from hcmodel.proof.prove import NormalRow, Proof, prove
from hcmodel.reductions.canonical import CanonicalProblem, canonicalize
from hcmodel.reductions.lift import Definition, Lifted, lift
from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.general import MapGeometry
from hcmodel.solvers.coordinates.geometry import (
    Geometry,
    LogStack,
    PlainGeometry,
)
from hcmodel.solvers.oracle import Evaluation, Oracle, Stack
from hcmodel.solvers.outer import form_numbers
from hcmodel.solvers.result import Record
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# Unknowns up to which dense second derivatives are worth their price, and sparse ones.
DENSE_LIMIT = 1200
SPARSE_LIMIT = 20_000


@dataclass(frozen=True)
class TightGeometry:
    """A geometry that pulls the variables which bound kinks down to what they bound."""

    inner: Geometry
    form: Form

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Any:
        return self.inner.frame(evaluation, curvature)

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        return self.inner.hessian(oracle, evaluation, multipliers)

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        return self.form.tightened(self.inner.retract(x, step))

    def bends(self, x: FloatArray) -> bool:
        return self.inner.bends(x)

    def plain(self) -> Geometry:
        return TightGeometry(self.inner.plain(), self.form)


@dataclass(frozen=True)
class Form:
    """One form of a model. `written` is the canonical problem of the model as it was written.

    `entries` are those of a declared map. `kind` is "written",
    "lifted", "separable" (identity and logarithms) or "mapped".
    """

    kind: str
    written: CanonicalProblem
    canonical: CanonicalProblem
    compiled: CompiledStack
    stack: Stack
    domain: Domain
    definitions: tuple[Definition, ...] = ()
    defining: CompiledStack | None = None
    map_geometry: MapGeometry | None = None
    entries: tuple[Expression, ...] = ()
    proof: Proof | None = None

    def refresh(self) -> None:
        """Read the parameters."""
        self.compiled.refresh()
        if self.map_geometry is not None:
            self.map_geometry.forget()
        if self.defining is not None:
            self.defining.refresh()

    def oracle(self) -> Oracle:
        return Oracle(self.stack, self.canonical.outer)

    @functools.cached_property
    def released(self) -> Form | None:
        """The same without the bounds that bend in hidden coordinates; None where there are none.

        A minimiser of it that keeps those bounds is one of the model too. They would stand in the way
        of straight lines in u that leave the box and come back. Functions of the user's own are not
        asked for values outside their bounds.
        """
        geometry = self.map_geometry
        if geometry is None or not self.bending_names() or self.compiled.has_black_boxes:
            return None
        free = self.domain.without_bounds(geometry.bending)
        straight = np.zeros_like(geometry.bending)
        return replace(
            self, domain=free, map_geometry=replace(geometry, domain=free, bending=straight)
        )

    @property
    def geometry(self) -> Geometry:
        inner: Geometry = self.map_geometry or PlainGeometry(self.domain)
        return TightGeometry(inner, self) if self.definitions else inner

    @property
    def affords_hessian(self) -> bool:
        """Whether second derivatives are worth their price: few unknowns, or a sparse pattern.

        Coordinates that are a map of all unknowns make dense matrices whatever the pattern is.
        """
        size = self.canonical.layout.size
        if size <= DENSE_LIMIT:
            return True
        sparse = self.map_geometry is None and size <= SPARSE_LIMIT
        return sparse and self.compiled.sparse_hessian

    def plain_objective(self, value: float) -> float:
        """The objective to be minimised, from the number that methods see in this form."""
        return self.canonical.outer.plain_objective(value)

    def record(self, record: Record) -> Record:
        """A line of the trace with the plain objective."""
        plain = self.plain_objective
        return replace(
            record,
            objective=plain(record.objective),
            level=plain(record.level),
            bound=plain(record.bound),
        )

    def bending_names(self) -> list[str]:
        """The variables with bounds that bend in the coordinates of a declared map."""
        geometry, layout = self.map_geometry, self.canonical.layout
        return [
            variable.name
            for variable in layout.variables
            if geometry is not None
            and variable.has_bounds
            and geometry.bending[layout.slice(variable)].any()
        ]

    def coordinate_names(self) -> list[str]:
        """The coordinates of a proven form, as people write them."""
        assert self.proof is not None
        return [
            f"log({variable.name})" if kind == "log" else variable.name
            for variable, kind in self.proof.coordinates.items()
        ]

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

    def duals(self, evaluation: Evaluation, multipliers: FloatArray) -> dict[int, FloatArray]:
        """Multipliers of the constraints as written, by position, from those of this form's rows.

        Where a row between logarithms holds with equality, left times its gradient is that of the
        difference; an objective through its logarithm leaves F times its multipliers.
        """
        own = multipliers / self._row_factors(evaluation)
        return {block.position: block.dual(own) for block in self.canonical.blocks}

    def multipliers(self, evaluation: Evaluation, duals: Mapping[int, FloatArray]) -> FloatArray:
        """The way back: multipliers of this form's rows from those of the constraints as written."""
        result = np.zeros(self.canonical.outer.size)
        for block in self.canonical.blocks:
            dual = duals.get(block.position)
            if dual is None or dual.size != block.constraint.size:
                continue
            full = dual.reshape(-1)
            if block.entries.size < full.size:
                square = dual.reshape(block.constraint.shape)
                full = (square + square.T - np.diag(np.diag(square))).reshape(-1)
            result[block.rows] = full[block.entries]
        return result * self._row_factors(evaluation)

    def _row_factors(self, evaluation: Evaluation) -> FloatArray:
        outer = self.canonical.outer
        if outer.is_written:
            return np.ones(outer.size)
        values = self.compiled.evaluate(self._point(evaluation.point), "all").values
        split = self.compiled.objective_size
        return outer.row_factors(values[:split], values[split:])


def lifted_form(
    written: CanonicalProblem,
    lifted: Lifted,
    hidden: Sequence[Expression] | None = None,
    engine: str = AUTO,
) -> Form:
    """The model with its kinks lifted, in its own coordinates or in those of a declared map."""
    canonical = canonicalize(lifted.objective, written.sign, lifted.constraints)
    entries = () if hidden is None else complete(hidden, canonical.layout.variables)
    compiled = compile_stack(canonical.roots, canonical.layout, 1, entries, engine=engine)
    geometry = None
    if hidden is not None:
        geometry = MapGeometry(
            compiled, canonical.domain, _bending(entries, canonical), _curved(entries, canonical)
        )
    return Form(
        kind="lifted" if hidden is None else "mapped",
        written=written,
        canonical=canonical,
        compiled=compiled,
        stack=compiled,
        domain=canonical.domain,
        definitions=lifted.definitions,
        defining=_defining(lifted.definitions, written, engine),
        map_geometry=geometry,
        entries=entries,
    )


def _defining(
    definitions: Sequence[Definition], written: CanonicalProblem, engine: str
) -> CompiledStack | None:
    roots = [definition.expression for definition in definitions]
    return compile_stack(roots, written.layout, 1, engine=engine) if roots else None


def separable_form(
    written: CanonicalProblem, proof: Proof, lifted: Lifted, again: Proof, engine: str = AUTO
) -> Form:
    """The model in the coordinates of a proof, rows in normal form, kinks lifted.

    `again` is the proof of the lifted model. Coordinates that are declared and not proven leave the
    rows as they were written.
    """
    rows = list(lifted.constraints)
    forms, objective_form = ["difference"] * len(rows), "plain"
    coordinates = dict(proof.coordinates)
    if proof.proven and not lifted.definitions:
        forms, objective_form = [row.form for row in proof.rows], proof.objective_form
    elif proof.proven:
        coordinates, objective_form = dict(again.coordinates), again.objective_form
        forms = [row.form for row in again.rows]
        rows = [
            _normal(row, each.name)
            for row, each in zip(again.rows, lifted.constraints, strict=True)
        ]
    canonical = canonicalize(lifted.objective, written.sign, rows)
    if objective_form == "log" and written.sign < 0:
        objective_form = "negative log"
    numbers = form_numbers(forms)
    row_forms = np.zeros(canonical.outer.size, dtype=np.intp)
    for block in canonical.blocks:
        row_forms[block.rows] = numbers[block.position]
    outer = replace(canonical.outer, objective_form=objective_form, forms=row_forms)
    canonical = replace(canonical, outer=outer)
    logs = np.zeros(canonical.layout.size, dtype=bool)
    for variable, place in zip(canonical.layout.variables, canonical.layout.blocks, strict=True):
        logs[place.start : place.stop] = coordinates.get(variable) == "log"
    compiled = compile_stack(canonical.roots, canonical.layout, 1, engine=engine)
    return Form(
        kind="separable",
        written=written,
        canonical=canonical,
        compiled=compiled,
        stack=LogStack(compiled, logs) if logs.any() else compiled,
        domain=canonical.domain.in_logarithms(logs),
        definitions=lifted.definitions,
        defining=_defining(lifted.definitions, written, engine),
        proof=proof if proof.proven else None,
    )


def _normal(row: NormalRow, name: str | None) -> Constraint:
    return Constraint(row.left, "==" if row.equality else "<=", row.right, name)


def _bending(entries: Sequence[Expression], canonical: CanonicalProblem) -> NDArray[np.bool_]:
    """Entries of boxes that are no coordinates themselves: their bounds may be curved in u."""
    straight = plain_entries(entries, canonical.layout.variables)
    bending = np.zeros(canonical.layout.size, dtype=bool)
    for variable, block in zip(canonical.layout.variables, canonical.layout.blocks, strict=True):
        if variable.set.is_box:
            bending[block.start : block.stop] = ~np.ravel(straight[variable])
    return bending


def _curved(entries: Sequence[Expression], canonical: CanonicalProblem) -> tuple[slice, ...]:
    """Where the matrix variables stand whose cone is curved in u: they are no coordinates."""
    return tuple(
        canonical.layout.slice(variable)
        for variable in canonical.layout.variables
        if variable.set.is_curved and not any(each is variable for each in entries)
    )


class Forms:
    """The forms of one problem, each compiled when first asked for and kept while it fits."""

    def __init__(
        self,
        written: CanonicalProblem,
        objective: Expression,
        constraints: Sequence[Constraint],
        hidden: Sequence[Expression] | None,
        compiled: CompiledStack | None = None,
        engine: str = AUTO,
    ) -> None:
        """`compiled` is the stack of the same roots, where there is one already."""
        self._compiled = compiled
        self.engine = engine
        self.canonical = written
        self._objective = objective
        self._constraints = tuple(constraints)
        self._hidden = None if hidden is None else tuple(hidden)
        self._kept: tuple[Hashable, Form] | None = None
        self._kept_pieces: Lifted | None = None
        self._pieces: Lifted | None = None
        self._lifted: Form | None = None
        self._mapped: Form | None = None
        self.compilations = 0

    @functools.cached_property
    def stack(self) -> CompiledStack:
        if self._compiled is not None:
            return self._compiled
        self.compilations += 1
        return compile_stack(self.canonical.roots, self.canonical.layout, 1, engine=self.engine)

    def update(self) -> None:
        """Lift again for the parameters' values of now; forms made for other bounds are dropped.

        Directions and bounds of what is lifted rest on signs and intervals, hence on data.
        """
        pieces = lift(self._objective, self.canonical.sign, self._constraints)
        if self._pieces is None or pieces.key() != self._pieces.key():
            self._pieces = pieces
            self._lifted = self._mapped = None

    @functools.cached_property
    def written(self) -> Form:
        written = self.canonical
        return Form("written", written, written, self.stack, self.stack, written.domain)

    @property
    def lifted(self) -> Form:
        """The model with its kinks lifted; as written where it has none."""
        if self._pieces is None:
            self.update()
        assert self._pieces is not None
        if self._lifted is None:
            pieces = self._pieces
            self._lifted = (
                lifted_form(self.canonical, pieces, engine=self.engine)
                if pieces.definitions
                else self.written
            )
        return self._lifted

    def hidden(self, source: Any = None) -> Form | None:
        """The model in hidden coordinates, proven or declared, for the parameters' values of now."""
        variables = self.canonical.layout.variables
        declared = None
        if self._hidden is not None:
            declared = declared_coordinates(self._hidden, variables)
            if declared is None:
                return self._mapped_form()
        proof = prove(
            self._objective, self.canonical.sign, self._constraints, fixed=declared, source=source
        )
        if not proof.proven and declared is None:
            return None
        rows = list(self._constraints)
        if proof.proven:
            rows = [
                _normal(row, each.name)
                for row, each in zip(proof.rows, self._constraints, strict=True)
            ]
        pieces = lift(self._objective, self.canonical.sign, rows)
        again = proof
        if proof.proven and pieces.definitions:
            again = prove(
                pieces.objective,
                self.canonical.sign,
                pieces.constraints,
                fixed=proof.coordinates,
            )
            if not again.proven:
                return None
        forms = tuple(row.form for row in again.rows), again.objective_form
        key = _key(proof, self._objective), pieces.key(), forms
        if self._kept is None or self._kept[0] != key:
            self._kept = key, separable_form(self.canonical, proof, pieces, again, self.engine)
            self._kept_pieces = pieces  # so that the identities in the key stay taken
        return self._kept[1]

    def _mapped_form(self) -> Form:
        if self._mapped is None:
            assert self._hidden is not None
            if self._pieces is None:
                self.update()
            assert self._pieces is not None
            self._mapped = lifted_form(self.canonical, self._pieces, self._hidden, self.engine)
        return self._mapped


def _key(proof: Proof, objective: Expression) -> Hashable:
    """What a separable form depends on; a new value of a parameter mostly leaves it as it is."""
    sides = [side for row in proof.rows for side in (row.left, row.right)]
    graph = merge([objective, *sides])
    steps = tuple(
        (step.atom, step.arguments, tuple(sorted(step.params.items())))
        if step.atom is not None
        else _leaf_key(step.leaf)
        for step in graph.steps
    )
    forms = tuple((row.equality, row.form) for row in proof.rows)
    coordinates = tuple((id(variable), kind) for variable, kind in proof.coordinates.items())
    return steps, graph.roots, forms, proof.proven, proof.objective_form, coordinates


def _leaf_key(leaf: Leaf | None) -> Hashable:
    assert leaf is not None
    return leaf.merge_key()
