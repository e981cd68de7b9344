"""Is the model hidden convex? Proof first, then an honest attempt at refutation.

`proven` rests on the structural proof, `refuted` on a counterexample that can be checked by hand. All
else is `not refuted`, with the number of samples that did not refute it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import CONSTANTS, MULTISTART, SAMPLE
from hcmodel.analysis.constants import constants_in
from hcmodel.analysis.counterexample import Counterexample
from hcmodel.analysis.hidden_map import HiddenMap
from hcmodel.analysis.multistart import refute_by_kkt
from hcmodel.analysis.refutation import NO_SAMPLE, refute
from hcmodel.certify.declared.curvature_boxes import OPEN, SHOWN, Settlement, settle_form
from hcmodel.engines.structured import StructuredStack
from hcmodel.errors import HCError, ModelError
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.printing import infix
from hcmodel.grammar import syntax
from hcmodel.grammar.diagnostics import normalize_newlines
from hcmodel.maps.declared import complete
from hcmodel.maps.separable import LOG
from hcmodel.proof.failure import Failure
from hcmodel.proof.prove import Proof
from hcmodel.records import dataclass
from hcmodel.reductions.fixed import Fixed
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Refusal
from hcmodel.reductions.substitution import Substitution
from hcmodel.report.analysis import analysis_html, analysis_json, analysis_text, model_text
from hcmodel.solvers.limits import TimeExhausted, until
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import ConeStatus
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.request import check_number

FloatArray = NDArray[np.float64]

OWN = "the proof uses coordinates of its own: the declared ones were not refuted, nor proven"
OUT_OF_TIME = "the time limit ended the analysis before anything was shown"
PROVEN, NOT_REFUTED, REFUTED = "proven", "not refuted", "refuted"


@dataclass(frozen=True)
class Analysis:
    """What was shown of a model.

    `coordinates` are texts: by variable where a proof was found, `u1`, `u2`, … for the entries of a
    declared map, empty where nothing is known. `failure` says what keeps the model from a proof.
    `smallest_eigenvalue` is the least curvature in u that sampling saw, relative to the
    function's own derivatives. `labels` tell of each constant whether it is a bound or an estimate.
    """

    verdict: str
    coordinates: Mapping[str, str]
    derivation: str | None = None
    failure: Failure | None = None
    counterexample: Counterexample | None = None
    constants: Constants = field(default_factory=Constants)
    labels: Mapping[str, str] = field(default_factory=dict)
    samples: int = 0
    smallest_eigenvalue: float | None = None
    conditions: tuple[str, ...] = ()
    model: str | None = None
    """The model in hidden coordinates, where a map of the catalogue gave them."""
    near_misses: tuple[str, ...] = ()
    """What was in the way of maps of the catalogue, where there is no proof."""
    source: str | None = field(default=None, repr=False)
    written: Model | None = field(default=None, repr=False, compare=False)
    """The model that was analysed."""

    def __str__(self) -> str:
        return analysis_text(self)

    def _repr_html_(self) -> str:
        return analysis_html(self)

    def to_json(self) -> dict[str, Any]:
        """The object that `hcmodel check --json` prints."""
        return analysis_json(self)


def check_counts(samples: int | None, seed: int) -> None:
    """Raise unless both are whole numbers that a sample can be drawn with."""
    given = SAMPLE.points if samples is None else samples
    for name, number, least in (("samples", given, 1), ("seed", seed, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise ModelError(f"{name} is a whole number of at least {least}, not {number!r}")


def analyze(
    forms: Callable[[], Forms],
    samples: int | None = None,
    seed: int = 0,
    time_limit: float | None = None,
) -> Analysis:
    """As `analyzed`, within a time limit in seconds; what is not found in time is not refuted."""
    check_counts(samples, seed)
    check_number("time_limit", time_limit, positive=True)
    try:
        with until(None if time_limit is None else time.monotonic() + time_limit):
            own = forms()
            return replace(analyzed(own, samples, seed), written=own.sign.before)
    except TimeExhausted:
        return Analysis(NOT_REFUTED, {}, conditions=(OUT_OF_TIME,))


def analyzed(forms: Forms, samples: int | None = None, seed: int = 0) -> Analysis:
    """Prove the model hidden convex, or try to refute it on `samples` points; see `Analysis`.

    Without a number of samples nothing is sampled where the proof answers: the constants are those that
    follow from the sets alone.
    """
    model, wanted = forms.sign.before, samples
    samples = SAMPLE.points if wanted is None else wanted
    if model.hidden is None:
        return _without_map(forms, wanted, seed)
    coordinates = forms.declared()
    declared = None if coordinates is None else forms.prove(coordinates, model.source)
    if declared is not None and declared.proven:
        return _proven(forms, declared, wanted, seed)
    parts = complete(model.hidden, model.variables)
    free = forms.prove(source=model.source)
    mapped = None if free.proven else _invertible(forms)
    if mapped is not None and mapped.explains(parts):
        return _mapped(forms, ())
    hidden = HiddenMap(forms, parts)
    settled = _settled(forms)
    if settled.convex:
        return _enclosed(forms, hidden)
    findings = refute(hidden, samples, seed, _suspects(forms, settled))
    conditions = list(findings.conditions)
    if findings.counterexample is None and free.proven:
        return _proven(forms, free, samples, seed, (OWN,))
    if findings.counterexample is None and mapped is not None:
        return _mapped(forms, (OWN,))
    if free.proven or mapped is not None:
        found = _texts(free.coordinates) if mapped is None else _mapped(forms, ()).coordinates
        texts = ", ".join(found.values())
        conditions.append(f"without the declaration the model is proven, in {texts}")
    constants, labels = constants_in(forms, None, min(samples, CONSTANTS.samples), seed)
    return Analysis(
        verdict=NOT_REFUTED if findings.counterexample is None else REFUTED,
        coordinates=_declared_texts(model, hidden),
        failure=(declared or free).failure,
        counterexample=findings.counterexample,
        constants=constants,
        labels=labels,
        samples=findings.samples,
        smallest_eigenvalue=findings.smallest_eigenvalue,
        conditions=(*conditions, *_data_condition(model)),
        near_misses=forms.discovery.near_misses,
        source=_text(model),
    )


def _settled(forms: Forms) -> Settlement:
    """What enclosures of second derivatives say of the declared coordinates."""
    try:
        form = forms.as_declared()
        if form.compiled.has_black_boxes:
            return OPEN
        with np.errstate(all="ignore"):
            return settle_form(form)
    except HCError:  # coordinates that are singular are refuted below, with an example
        return OPEN


def _suspects(forms: Forms, settled: Settlement) -> list[FloatArray]:
    """Points near which the objective bends down: samples miss a narrow well."""
    found = [] if settled.bends_at is None else [settled.bends_at, *settled.lowest]
    form = forms.as_declared() if found else forms.written
    return [forms.written.domain.project(form.chain.point_back(point)) for point in found]


def _enclosed(forms: Forms, hidden: HiddenMap) -> Analysis:
    """A model whose declared coordinates enclosures have confirmed."""
    model = forms.sign.before
    constants, labels = constants_in(forms, None, 0, 0)
    return Analysis(
        verdict=PROVEN,
        coordinates=_declared_texts(model, hidden),
        derivation=SHOWN,
        constants=constants,
        labels=labels,
        conditions=_data_condition(model),
        source=_text(model),
    )


def _without_map(forms: Forms, samples: int | None, seed: int) -> Analysis:
    model = forms.sign.before
    proof = forms.prove(source=model.source)
    if proof.proven:
        return _proven(forms, proof, samples, seed)
    known = None
    if _has_many_terms(forms):
        known = refute_by_kkt(forms, samples or SAMPLE.points, seed)
    refuted = known is not None and known[0] is not None
    if not refuted and _invertible(forms) is not None:
        return _mapped(forms, ())
    numbers = None if refuted else forms.with_numbers()
    if numbers is not None:
        return _with_numbers(forms, *numbers)
    example, seen = known or refute_by_kkt(forms, samples or SAMPLE.points, seed)
    return Analysis(
        verdict=NOT_REFUTED if example is None else REFUTED,
        coordinates={},
        failure=proof.failure,
        counterexample=example,
        samples=seen,
        conditions=(
            *(() if seen else (NO_SAMPLE,)),
            *(() if example is not None else _certifying(forms)),
            *_data_condition(model),
        ),
        near_misses=() if refuted else forms.discovery.near_misses,
        source=_text(model),
    )


def _certifying(forms: Forms) -> tuple[str, ...]:
    """What is said of coordinates that are not invertible, in which a solve is certified all the same."""
    found = forms.discovery.substitution
    if found is None:
        return ()
    own = forms.front.slacks | forms.discovery.auxiliary
    names = (found.texts.get(v, v.name) for v in found.after.variables if v not in own)
    return (
        f"a convex program in {', '.join(names)} has the same optimum, so that solve() certifies it; "
        "these coordinates are not invertible, so that they do not prove that the model is hidden convex",
    )


def _has_many_terms(forms: Forms) -> bool:
    """Whether objective and rows are sums of so many products of powers that maps take long.

    Their derivatives do not, so that a refutation is looked for before a map.
    """
    compiled = forms.written.compiled
    if not isinstance(compiled, StructuredStack) or compiled.kinked:
        return False
    if not all(compiled.structured[: compiled.program.stop]):
        return False
    return compiled.terms[0].weights.size >= MULTISTART.many_terms


def _proven(
    forms: Forms, proof: Proof, samples: int | None, seed: int, conditions: tuple[str, ...] = ()
) -> Analysis:
    model = forms.sign.before
    few = min(samples or 0, CONSTANTS.samples)
    constants, labels = Constants(), dict[str, str]()
    try:
        constants, labels = constants_in(forms, forms.coordinates_of(proof), few, seed)
    except TimeExhausted:
        conditions = (*conditions, "the time limit left no time for estimates of the constants")
    return Analysis(
        verdict=PROVEN,
        coordinates=_texts(
            {v: kind for v, kind in proof.coordinates.items() if v not in forms.front.slacks}
        ),
        derivation=str(proof.derivation),
        constants=constants,
        labels=labels,
        conditions=(*conditions, *_data_condition(model)),
        source=_text(model),
    )


def _with_numbers(forms: Forms, fixed: Fixed, proof: Proof) -> Analysis:
    """A model that is proven with numbers for variables that rows fix."""
    model = forms.sign.before
    constants, labels = constants_in(forms, None, 0, 0)
    own = {v: kind for v, kind in proof.coordinates.items() if v not in forms.front.slacks}
    said = f"rows fix {', '.join(fixed.names)}: numbers in the derivation stand for it"
    return Analysis(
        verdict=PROVEN,
        coordinates=_texts(own),
        derivation=str(proof.derivation),
        constants=constants,
        labels=labels,
        conditions=(said, *_data_condition(model)),
        source=_text(model),
    )


def _invertible(forms: Forms) -> Substitution | None:
    """The catalogue's coordinates where they are invertible; others certify optima, and prove no more."""
    found = forms.discovery.substitution
    if found is None or not found.injective or (found.is_open and not _has_image(forms, found)):
        return None
    return found


def _has_image(forms: Forms, substitution: Substitution) -> bool:
    """Whether the minimum of the model in new coordinates is that of a point of the model."""
    form = forms.hidden()
    whole = None if form is None else form.whole("cone")
    if whole is None or isinstance(whole, Refusal):
        return False
    solution = make_cone_backend().solve(whole.program, ConeOptions())
    if not solution.usable:
        return solution.status is ConeStatus.UNBOUNDED
    assert form is not None
    value = form.oracle().at(solution.primal[: form.domain.dimension]).objective
    for step in reversed(form.chain.steps):
        if step is substitution:
            break
        value = step.value_back(value)
    return substitution.is_below(value)


def _mapped(forms: Forms, conditions: tuple[str, ...]) -> Analysis:
    """A model that is proven in coordinates of the catalogue."""
    model, discovery = forms.sign.before, forms.discovery
    substitution, proof = discovery.substitution, discovery.proof
    assert substitution is not None
    assert proof is not None
    constants, labels = constants_in(forms, None, 0, 0)
    hidden = forms.front.slacks | discovery.auxiliary
    texts = _texts({v: kind for v, kind in proof.coordinates.items() if v not in hidden})
    for variable, text in substitution.texts.items():
        if variable.name in texts:
            own = texts[variable.name]
            texts[variable.name] = own.replace(variable.name, text)
    released = tuple(
        f"the bounds of {name} are not convex in these coordinates: the verdict is for points where "
        "none is active"
        for name in substitution.released
    )
    return Analysis(
        verdict=PROVEN,
        coordinates=texts,
        derivation=str(proof.derivation),
        constants=constants,
        labels=labels,
        conditions=(*conditions, *released, *_data_condition(model)),
        model=model_text(substitution.after),
        source=_text(model),
    )


def _texts(coordinates: Mapping[Variable, str]) -> dict[str, str]:
    return {
        variable.name: f"log({variable.name})" if kind == LOG else variable.name
        for variable, kind in coordinates.items()
    }


def _declared_texts(model: Model, hidden: HiddenMap) -> dict[str, str]:
    """The entries of a declared map as written, and the variables that it does not mention."""
    first = 0 if model.source is None else 1
    texts = [infix(part, first) for part in hidden.parts]
    if model.source is not None:
        lines = normalize_newlines(model.source.text).split("\n")
        spans = [
            expression.span
            for statement in model.source.model.statements
            if isinstance(statement, syntax.Hidden)
            for expression in statement.expressions
        ]
        for i, span in enumerate(spans[: len(texts)]):
            if span.line == span.end_line:
                texts[i] = lines[span.line - 1][span.column - 1 : span.end_column - 1]
    return {f"u{i}": text for i, text in enumerate(texts, start=1)}


def _data_condition(model: Model) -> tuple[str, ...]:
    return ("the verdict is for the parameters' current values",) if model.parameters else ()


def _text(model: Model) -> str | None:
    return None if model.source is None else str(model.source.text)
