"""The forms of one problem: as written, with its kinks lifted, and in hidden coordinates.

They are made when they are first asked for, and kept while they fit the parameters' values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.registry import AUTO
from hcmodel.errors import ModelError
from hcmodel.expressions.graph import merge
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.curvature import can_be_log
from hcmodel.facts.node_facts import Facts
from hcmodel.maps.separable import declared_coordinates
from hcmodel.proof.first_look import needs_a_map
from hcmodel.proof.prove import Proof, attempt, prove
from hcmodel.proof.visible import VisibleProof
from hcmodel.records import cached_property, replace
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.chain import Chain
from hcmodel.reductions.form import Form, proof_of_end
from hcmodel.reductions.front import Front
from hcmodel.reductions.lift import Lift
from hcmodel.reductions.normal_rows import NormalRows
from hcmodel.reductions.reduction import ModelReduction, same_objects
from hcmodel.reductions.sign import Sign, signed_objective
from hcmodel.reductions.smooth import Compiler, Smooth
from hcmodel.reductions.sums.sum_arrays import (
    needs_logarithms,
)
from hcmodel.reductions.triangle import Triangle

if TYPE_CHECKING:
    # imported by the functions that make one: many models need none of them
    from hcmodel.maps.map import Obstacle
    from hcmodel.proof.failure import Failure
    from hcmodel.reductions.discovery import Discovery
    from hcmodel.reductions.fixed import Fixed
    from hcmodel.reductions.map_entries import MapEntries

FloatArray = NDArray[np.float64]

# Points at which a declared map may be singular before it counts as singular everywhere, and the share of
# the largest move from which a variable counts as moving.
RANK_SAMPLES = 4
MOVING = 1e-3


class Forms:
    """The forms of one model, which is a minimisation after `front` and `sign`.

    These come before all chains, so that a point of any chain's model has the slacks in it.
    """

    def __init__(self, model: Model, engine: str = AUTO, *, as_written: bool = False) -> None:
        self.front = Front.of(model, as_written=as_written)
        self.sign = Sign.of(self.front.after)
        self.model = self.sign.after
        self.compiler = Compiler(engine)
        self._bounds: Bounds | None = None
        self._fixed: tuple[Model, Fixed | None] | None = None
        self._written: Form | None = None
        self._lift: Lift | None = None
        self._lifted: Form | None = None
        self._mapped: Form | None = None
        self._sized: tuple[Hashable, Form | None] | None = None  # for which values of parameters
        self._in_map: tuple[Form | None] | None = None  # once it was asked for
        self._entries: tuple[tuple[MapEntries, Proof] | None] | None = None
        self._proven: tuple[_Key, Form] | None = None
        self._answered: tuple[Hashable, Form | None] | None = None  # for which values of parameters
        self._discovery: tuple[Hashable, Discovery] | None = None
        self._facts: tuple[Model, Hashable, Facts] | None = None  # for which values of parameters
        self.failure: Failure | None = None
        """What keeps the model from a proof, as far as `hidden` has looked for one."""

    @property
    def engine(self) -> str:
        """The name of the engine that compiled the model."""
        return self.written.compiled.engine

    def refresh(self) -> None:
        """Read the parameters; forms that rested on other values are made again when asked for."""
        self.front.refresh()
        if not self.written.chain.refresh():
            self._written = self._lifted = self._mapped = self._proven = self._answered = None
        if self._lift is not None and not self._lift.refresh():
            self._lift = self._lifted = self._mapped = self._proven = self._answered = None
        for form in (self._lifted, self._mapped):
            if form is not None:
                form.chain.end.refresh()

    def check_structure(self) -> None:
        """Drop forms that do not fit the parameters' values, without reading the parameters."""
        if self._written is not None and not self._written.chain.fits():
            self._written = self._lifted = self._mapped = self._proven = self._answered = None

    @property
    def user(self) -> Model:
        """The model of the user."""
        return self.front.before

    @property
    def written(self) -> Form:
        """The model as written."""
        if self._written is None:
            self._written = self._form([])
        return self._written

    @property
    def bounds(self) -> Bounds:
        """The model with rows that are bounds in its variables' sets, as proofs see it."""
        if self._bounds is None or not self._bounds.refresh():
            self._bounds = Bounds.of(self.model)
        return self._bounds

    def prove(self, fixed: Mapping[Variable, str] | None = None, source: Any = None) -> Proof:
        """The proof of the model; rows that are bounds count as bounds, idle ones not if need be."""
        proof = self._proof(fixed or {}, source)
        if not proof.proven and self._leave_out_idle_rows():
            proof = self._proof(fixed or {}, source)
        return proof

    def _proof(self, fixed: Mapping[Variable, str], source: Any) -> Proof:
        bounds, (goal, sign) = self.bounds, self._goal
        pinned = {bounds.renewed(variable): kind for variable, kind in fixed.items()}
        text = bounds.after.source if source is not None else None
        return prove(goal, sign, bounds.after.constraints, fixed=pinned, source=text)

    @property
    def _goal(self) -> tuple[Expression, float]:
        """The objective with rows that are bounds counted as bounds, and the sign that it has.

        What is minimised with a minus sign, as −x·y, is maximised: its logarithm may be concave.
        """
        return signed_objective(self.bounds.after)

    def declared(self) -> dict[Variable, str] | None:
        """The declared coordinates where they are logarithms and the variables themselves."""
        bounds = self.bounds
        if bounds.after.hidden is None:
            return None
        renewed = [bounds.renewed(variable) for variable in self.model.variables]
        found = declared_coordinates(bounds.after.hidden, renewed)
        if found is None:
            return None
        return {bounds.original(variable): kind for variable, kind in found.items()}

    def coordinates_of(self, proof: Proof) -> dict[Variable, str]:
        """The coordinates of a proof by the variables of the model as written."""
        found = {self.bounds.original(each): kind for each, kind in proof.coordinates.items()}
        return {variable: found.get(variable, "identity") for variable in self.model.variables}

    @property
    def lift(self) -> Lift:
        if self._lift is None:
            self._lift = Lift.of(self.model, self._known_facts(self.model))
        return self._lift

    @property
    def _values(self) -> tuple[Hashable, ...]:
        """The versions of the parameters' values."""
        return tuple(parameter.version for parameter in self.model.parameters)

    def _known_facts(self, model: Model) -> Facts:
        """What is known of the expressions of a model at the parameters' current values.

        Who asks first gets an empty record and fills it; others get copies of it.
        """
        known, values = self._facts, self._values
        if known is not None and known[0] is model and known[1] == values:
            return known[2].copy()
        self._facts = model, values, Facts()
        return self._facts[2]

    @property
    def lifted(self) -> Form:
        """The model with its kinks lifted; as written where it has none."""
        if self._lifted is None:
            self._lifted = self._form([self.lift]) if self.lift.definitions else self.written
        return self._lifted

    def in_own_size(self) -> Form | None:
        """The lifted form with −log(−F) for an objective F; None unless F is nowhere above 0.

        So a positive function is maximised whatever its size: likelihoods are 1e-19.
        """
        values = self._values
        if self._sized is None or self._sized[0] != values:
            self._sized = values, self._made_in_own_size()
        return self._sized[1]

    def _made_in_own_size(self) -> Form | None:
        steps: list[ModelReduction] = [self.lift] if self.lift.definitions else []
        model = self.lift.after if steps else self.model
        if signed_objective(model)[1] > 0 or self._calls_user:
            return None
        if any(parameter.value is None for parameter in model.parameters):
            return None
        if not np.max(Facts()[model.objective.expression].interval[1]) <= 0:
            return None
        rows = model.with_rows(model.constraints, "negative log")
        return self._form([*steps, NormalRows(model, rows)])

    def hidden(self, source: Any = None) -> Form | None:
        """The model in hidden coordinates, proven or declared, for the parameters' current values."""
        values = self._values
        if self._answered is None or self._answered[0] != (values, source is None):
            form = self._renewed_form()
            if form is None and self.model.hidden is None:
                form = self._visible_form()
            if form is None:
                form = self._found(source)
            self._answered = (values, source is None), form
        return self._answered[1]

    def may_be_logarithmic(self, form: Form) -> bool:
        """Whether a proven form is in the model's own variables, and some of these have logarithms."""
        if form.proof is None or form.texts or self.model.hidden is not None:
            return False
        if "log" in form.proof.coordinates.values():
            return False
        return any(can_be_log(variable) for variable in self.bounds.after.variables)

    def in_logarithms(self) -> Form | None:
        """The model in the logarithms of all variables that have one; None where it is not proven there.

        It is made for one solve: the form at hand stays.
        """
        original, variables = self.bounds.original, self.bounds.after.variables
        proof = self.prove({original(each): "log" for each in variables if can_be_log(each)})
        if not proof.proven:
            return None
        before = self._proven
        try:
            self._proven = None
            return self._proven_form(proof)
        finally:
            self._proven = before

    def in_map(self) -> Form | None:
        """The model in the entries of a declared map that it is written in; None where it is not proven.

        The sets of the variables are left out, so that its solution may be outside of them. It is for
        models without parameters: with new values of these, the form of the catalogue is at hand.
        """
        if self._in_map is None:
            self._in_map = (self._made_in_map(),)
        return self._in_map[0]

    def leave_map(self) -> None:
        """To be called where the solution in the entries of the map is none of the model."""
        self._in_map = (None,)

    def _made_in_map(self) -> Form | None:
        found = self._proven_in_map()
        if found is None:
            return None
        entries, proof = found
        before = self._proven
        try:
            self._proven = None
            steps = [*self._first(), entries]
            form = self._normal_form(steps, entries.after, proof, True)
        finally:
            self._proven = before
        return replace(form, texts=entries.texts)

    def _proven_in_map(self) -> tuple[MapEntries, Proof] | None:
        """The model in the entries of a declared map that it is written in alone, and its proof."""
        model = self.bounds.after
        if model.hidden is None or model.parameters or self._calls_user:
            return None
        if self.declared() is not None:
            return None
        from hcmodel.reductions.map_entries import MapEntries

        if self._entries is None:
            self._entries = (None,)
            entries = MapEntries.of(model, self._known_facts(model))
            if entries is not None:
                goal, sign = signed_objective(entries.after)
                proof = attempt(goal, sign, entries.after.constraints)
                if proof is not None and proof.proven:
                    self._entries = ((entries, proof),)
        return self._entries[0]

    def _is_convex_in_map(self) -> bool:
        """Whether the functions, with differences of sides, are proven convex in entries of the map."""
        found = self._proven_in_map()
        if found is None or self.lift.definitions:
            return False
        proof = found[1]
        plain = proof.objective_form == "plain" and "log" not in proof.coordinates.values()
        return plain and all(row.form == "difference" for row in proof.rows)

    def as_declared(self) -> Form:
        """The model in the declared coordinates, whatever the proof and the catalogue say of them."""
        declared = self.declared()
        if declared is None:
            return self._mapped_form()
        proof = self.prove(declared)
        return self._proven_form(proof) if proof.proven else self._separable_form(proof)

    def _found(self, source: Any) -> Form | None:
        """The form in hidden coordinates: proven, by a map of the catalogue, or as declared."""
        if self.model.hidden is None:
            return self._found_freely(source)
        proof, declared = None, self.declared()
        if self._calls_user:
            if declared is None:
                return self._mapped_form()
            pinned = {self.bounds.renewed(each): kind for each, kind in declared.items()}
            return self._separable_form(VisibleProof(pinned, (), proven=False))
        if declared is not None:
            proof = self.prove(declared, source)
            self.failure = proof.failure
            if proof.proven:
                return self._proven_form(proof)
        # the user of a map that moves entries together has hardly written a convex model
        looks = [self._freely_proven, lambda source: self._discovered()]
        for look in reversed(looks) if declared is None else looks:
            found = look(source)
            if found is not None:
                return found
        return self._mapped_form() if proof is None else self._separable_form(proof)

    def _freely_proven(self, source: Any) -> Form | None:
        """The form of a model that is proven without a map; None where it is not."""
        free = self._attempted(source)
        return self._proven_form(free) if free is not None and free.proven else None

    def _found_freely(self, source: Any) -> Form | None:
        """The form in hidden coordinates of a model that declares none; None where there is none."""
        found = self._fixed_form()
        if found is not None:
            self.failure = None
            return found
        proof = None if needs_a_map(self.bounds.after) else self._attempted(source)
        if proof is None or not proof.proven:
            looked = proof is not None  # then signs and ranges of all expressions are known
            if looked and self._leave_out_idle_rows():
                return self._found_freely(source)
            found = self._discovered()
            if found is not None:
                return found
            if not looked and self._leave_out_idle_rows():
                return self._found_freely(source)
            proof = proof or self.prove(source=source)
        self.failure = proof.failure
        return self._proven_form(proof) if proof.proven else None

    def _leave_out_idle_rows(self) -> bool:
        """Whether rows that hold wherever the sets do stood in the way of a proof; they do no longer."""
        found = self.bounds.without_idle_rows(self._known_facts(self.bounds.after))
        if found is not None:
            self._bounds = found
        return found is not None

    def _attempted(self, source: Any) -> Proof | None:
        """A proof without a map; None, or a proof that failed, where a map has to be found."""
        model = self.bounds.after
        text = model.source if source is not None else None
        facts, (goal, sign) = self._known_facts(model), self._goal
        return attempt(goal, sign, model.constraints, source=text, facts=facts)

    def _visible_form(self) -> Form | None:
        """The form of a geometric program in the logarithms of all variables; None for other models.

        Only where the variables themselves are no coordinates, which come first where both are.
        """
        bounds = self.bounds.after
        if self.lift.has_kinks or not all(can_be_log(variable) for variable in bounds.variables):
            return None
        compiled, outer = self.written.compiled, self.written.canonical.outer
        if not needs_logarithms(compiled, outer):
            return None
        proof, before = VisibleProof.of(bounds.variables, bounds.constraints), self._proven
        form = self._kept([*self._first(), NormalRows.of(bounds, proof)], None, proof, proof)
        if form.arrays is None:
            self._proven = before
            return None
        self.failure = None
        return form

    def _renewed_form(self) -> Form | None:
        """The proven form at hand with new values of parameters, where its arrays show convexity.

        Rows stay as the proof arranged them, which rests on no value but on terms that are 0: so all
        constants have to keep their signs.
        """
        form = None if self._answered is None else self._answered[1]
        if form is None or form.proof is None or self.lift.has_kinks:
            return None
        if not form.proof.constants_keep_signs():
            return None
        chain, steps = form.chain, (*self._first(), *form.chain.steps[-2:])
        model = chain.end.before
        sets = [variable.set for variable in model.variables]
        if not same_objects(chain.steps, steps) or not same_objects(form.canonical.sets, sets):
            return None
        if not chain.refresh():
            return None
        form = replace(form, renewed=True)
        return form if form.is_structured else None

    def _form(self, steps: Sequence[ModelReduction], **coordinates: Any) -> Form:
        model = steps[-1].after if steps else self.model
        triangle = Triangle.of(model)
        known = next(filter(None, (step.known for step in reversed(steps))), self.front.known)
        end = Smooth.of(triangle.after, self.compiler, known=known, **coordinates)
        if steps:
            end.refresh()  # a stack that was compiled for an earlier form has read other values
        return Form(Chain((*steps, triangle), end), slacks=self.front.slacks)

    def _mapped_form(self) -> Form:
        """The model with its kinks lifted, in the coordinates of a declared map."""
        if self._mapped is None:
            steps = [self.lift] if self.lift.definitions else []
            form = self._form(steps, hidden=self.model.hidden)
            form = replace(form, hidden=True, written_in_map=self._is_convex_in_map)
            _check_rank(form)
            self._mapped = form
        return self._mapped

    def _proven_form(self, proof: Proof) -> Form:
        """The model in the coordinates of a proof, rows in normal form, kinks lifted."""
        return self._normal_form(self._first(), self.bounds.after, proof, self.lift.has_kinks)

    @property
    def discovery(self) -> Discovery:
        """What the maps of the catalogue make of the model, at the parameters' current values."""
        from hcmodel.reductions.discovery import discover  # most models need none of them

        model = self.bounds.after
        values = (id(model), *(each.version for each in self.model.parameters))
        if self._discovery is None or self._discovery[0] != values:
            found = discover(model)
            lift = Lift.of(model) if found.proof is None else None
            if lift is not None and lift.definitions:
                # maps look at each row by itself: the largest of several functions is one of each
                again = discover(lift.after)
                found = replace(again, lift=lift) if again.proof is not None else found
            from hcmodel.reductions.split import Split

            split = Split.of(model) if lift is not None and found.proof is None else None
            if split is not None and split.after is not model:
                again = discover(split.after)
                found = replace(again, split=split) if again.proof is not None else found
            self._discovery = values, found
        return self._discovery[1]

    @property
    def near_miss(self) -> Obstacle | None:
        """What was in the way of a map, where maps were tried: an unmet condition if there is one."""
        if self._discovery is None:
            return None
        from hcmodel.maps.conditions import Unmet

        found = self._discovery[1].obstacles
        return min(found, key=lambda each: not isinstance(each, Unmet), default=None)

    @property
    def lost_bounds(self) -> tuple[Variable, ...]:
        """The variables whose bounds are not convex in the coordinates of the catalogue at hand."""
        found = None if self._discovery is None else self._discovery[1].substitution
        names = () if found is None else found.released
        return tuple(each for each in self.bounds.after.variables if each.name in names)

    def _discovered(self) -> Form | None:
        """The model in coordinates of the catalogue, where these prove it."""
        discovery = self.discovery
        if discovery.substitution is None or discovery.proof is None:
            return None
        substitution = discovery.substitution
        steps = [*self._first(), *filter(None, [discovery.lift, discovery.split]), substitution]
        form = self._normal_form(steps, substitution.after, discovery.proof, True)
        return replace(
            form,
            slacks=form.slacks | discovery.auxiliary,
            texts=substitution.texts,
            implied=substitution.implied,
            divisors=substitution.divisors,
        )

    def _fixed_form(self) -> Form | None:
        """The form of a model with variables that rows fix, where it is proven with numbers for them."""
        found = self.with_numbers()
        if found is None:
            return None
        fixed, proof = found
        return self._normal_form([*self._first(), fixed], fixed.after, proof, True)

    def with_numbers(self) -> tuple[Fixed, Proof] | None:
        """The model with numbers for variables that rows fix, and its proof; None without one of them."""
        model = self.bounds.after
        if self._fixed is None or self._fixed[0] is not model:
            from hcmodel.reductions.fixed import Fixed

            self._fixed = model, Fixed.of(model)
        fixed = self._fixed[1]
        if fixed is None:
            return None
        goal, sign = signed_objective(fixed.after)
        proof = attempt(goal, sign, fixed.after.constraints)
        return None if proof is None or not proof.proven else (fixed, proof)

    def _normal_form(
        self, first: Sequence[ModelReduction], model: Model, proof: Proof, kinks: bool
    ) -> Form:
        """A model after some reductions with its rows as a proof has them, kinks lifted."""
        plain = [*first, NormalRows.of(model, proof)]
        if not kinks:
            return self._kept(plain, None, proof, proof)
        arranged = NormalRows.of(model, proof, forms=False)
        facts = proof.curvatures.facts.copy()
        lift = Lift.of(arranged.after, facts)
        if not lift.definitions:
            return self._kept(plain, None, proof, proof)
        objective, sign = signed_objective(lift.after)
        rows, known = lift.after.constraints, set(lift.after.variables).issuperset(facts.variables)
        again = prove(
            objective, sign, rows, fixed=proof.coordinates, facts=facts if known else None
        )
        if not again.proven:  # the pieces of a log-convex kink need not be: it stays as it is
            return self._kept(plain, None, proof, proof)
        normal = NormalRows.of(lift.after, again)
        return self._kept([*first, arranged, lift, normal], lift, proof, again)

    def _first(self) -> list[ModelReduction]:
        """What comes before all other reductions to hidden coordinates."""
        return [self.bounds] if self.bounds.rows else []

    @property
    def _calls_user(self) -> bool:
        """Whether a function of the user has variables inside: nothing can be proven of the model."""
        return any(
            isinstance(node, Apply) and node.atom.black_box and node.variables()
            for node in self.model.nodes
        )

    def _separable_form(self, proof: Proof | VisibleProof) -> Form:
        """Coordinates that are declared and not proven leave the rows as they were written."""
        first = self._first()
        lift = Lift.of(self.bounds.after) if first else self.lift
        if not lift.definitions:
            return self._kept(first, None, proof, proof)
        return self._kept([*first, lift], lift, proof, proof)

    def _kept(
        self,
        steps: Sequence[ModelReduction],
        lift: Lift | None,
        proof: Proof | VisibleProof,
        last: Proof | VisibleProof,
    ) -> Form:
        """The form of these reductions; the one at hand where nothing but data has changed."""
        plain = self.bounds.after if lift is None else lift.before
        final = steps[-1].after if steps else self.model
        rows = tuple((constraint.sense, constraint.form) for constraint in final.constraints)
        coordinates = tuple((each.name, kind) for each, kind in last.coordinates.items())
        lifted = None if lift is None else lift.key()
        if lift is None and steps:
            plain = final
        sets = tuple(variable.set for variable in plain.variables)
        key = _Key(plain, (lifted, rows, final.objective_form, coordinates, proof.proven, sets))
        kept = self._proven is not None and self._proven[0].fits(key)
        if not kept:
            form = self._form(steps, coordinates=last.coordinates)
            self._proven = key, replace(form, hidden=True)
        assert self._proven is not None
        form = self._proven[1]
        form.chain.end.refresh()
        if not proof.proven:
            return form
        if lift is not None and kept:  # that form has variables of its own for the kinks
            last = proof_of_end(form, last)
        return replace(form, proof=proof, found_last=last)


class _Key:
    """What a compiled form depends on; a new value of a parameter mostly leaves it as it is.

    The structure of the model is looked at when there is another one to compare it with.
    """

    def __init__(self, model: Model, facts: tuple[Hashable, ...]) -> None:
        self.model, self.facts = model, facts

    @cached_property
    def structure(self) -> Hashable:
        return _structure(self.model)

    def fits(self, other: _Key) -> bool:
        return self.facts == other.facts and self.structure == other.structure


def _check_rank(form: Form) -> None:
    """Raise where declared coordinates cannot tell the points of the model apart.

    A map that stands still in some direction at several samples does so everywhere.
    """
    geometry, generator = form.map_geometry, np.random.default_rng(0)
    if geometry is None:
        return
    lost: FloatArray | None = None
    for _ in range(RANK_SAMPLES):
        tangent = geometry.tangent(form.domain.sample(generator))
        if not tangent.defined:
            continue
        still = tangent.still
        if still is None:
            return
        lost = tangent.directions @ still
    if lost is None:
        return
    layout = form.canonical.layout
    sizes = [np.abs(lost[layout.slice(each)]).max(initial=0.0) for each in layout.variables]
    moving = [
        variable.name
        for variable, size in zip(layout.variables, sizes, strict=True)
        if size > MOVING * max(sizes)
    ]
    raise ModelError(
        f"the declared coordinates do not determine {', '.join(moving)}: at every sampled point there is "
        "a direction in which none of them changes; declare another coordinate, or drop the declaration"
    )


def _structure(model: Model) -> Hashable:
    graph = merge(model.roots)
    steps = tuple(
        step.leaf.merge_key()
        if step.leaf is not None
        else (step.atom, step.arguments, tuple(sorted(step.params.items())))
        for step in graph.steps
    )
    return steps, graph.roots
