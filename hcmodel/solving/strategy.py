"""Which method runs on which form of a model, in which order, and why.

`auto` solves a proven model as one convex program, where there is one. Otherwise it takes
Newton's method where hidden coordinates are proven or declared, prox-linear where they are not, and the
next method on the list when a run ends without a point of which anything can be shown.
Where second derivatives are dense and the unknowns many, curvature comes from gradients instead.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hcmodel.errors import HCWarning, ModelError, NotHiddenConvexError
from hcmodel.expressions.leaves import Expression
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers.limits import TimeExhausted
from hcmodel.solvers.loop import WholeProgram
from hcmodel.solvers.methods import MethodEntry, find_method, make_options
from hcmodel.solving.request import SolveRequest


@dataclass(frozen=True)
class StageLimits:
    """Oracle calls after which a run counts as stalled, chosen on the development set (calls.py)."""

    second_order: int = 10_000
    """The longest successful run of a method of second order takes about 7,500 calls."""
    released: int = 160
    """Without the bounds that bend there may be no minimiser; runs that succeed take under 100 calls."""
    few: int = 30
    """Unknowns up to which the cone program is faster than the interior-point method (speed.py)."""
    not_many: int = 50
    short: int = 550
    """Unknowns and exponents up to which it is so for sparse sums of exponentials: the programs car and
    isil01 of CBLIB (cblib.py) take 0.8 and 0.7 of the time, random ones with 560 exponents the same."""
    sparse: float = 0.1
    """Density up to which the cone program is faster for linear models: single runs of processes with 100
    and 200 states and 8 successors, and with 20 to 300 states and all successors, on a loaded machine."""
    numbers: int = 3000
    """Numbers in the rows up to which it is so for dense ones: processes with 40 and 100 unknowns take
    0.85 of the time, random programs with 20 × 40 and 30 × 100 numbers 0.7 and 0.9, with 60 × 150 1.5."""
    large_array: int = 5000
    """The order up to which the interior-point method takes arrays (LARGEST_ORDER)."""
    bundle: int = 100
    """Unknowns up to which black boxes go to the bundle at once (tests/benchmarks/black_boxes.py)."""
    fallback: int = 2000
    """The first-order method where both methods of second order have failed."""


LIMITS = StageLimits()


@dataclass(frozen=True)
class Stage:
    """One run: a method on a form, and the reason for it in a few words."""

    entry: MethodEntry
    form: Form
    why: str
    options: Any = None
    max_calls: int | None = None
    whole: Callable[[], WholeProgram | Refusal] | None = None
    """Makes the convex program of a direct method, when the stage is run."""
    follows: bool = False
    """Whether it continues the run before it whatever that has shown, as a polish does."""
    affordable: Callable[[], bool] | None = None
    """Asked when it is its turn; a run that is not affordable is left out."""
    ends_at_kinks: bool = False
    """Whether gradients that jump end it: another method follows that takes kinks."""
    instead: Callable[[], Form | None] | None = None
    """Makes the form of other coordinates, when the stage is run: for a direct method, and for its proof.
    It is left out where there is none, and its point counts only if it is shown to be optimal."""
    without_sets: bool = False
    """Whether sets of variables are left out that other runs keep: a point outside is not looked at."""


class Queue:
    """Runs in their order. Those after the first are made when it is asked whether there are more.

    Making the first one may raise `TimeExhausted`; for a later one there is the start of these forms.
    """

    def __init__(self, forms: Forms, stages: Iterable[Stage]) -> None:
        self._coming = iter(stages)
        self._left = list(itertools.islice(self._coming, 1))
        self._forms = forms
        self.taken = list[Stage]()
        """Those that had their turn."""

    def __bool__(self) -> bool:
        return bool(self._left) or self._fill()

    @property
    def first(self) -> Stage:
        """The one whose turn is next; there has to be one."""
        return self._left[0] if self else next(self._coming)

    def pop(self) -> Stage:
        """The one whose turn it is."""
        stage = self.first
        del self._left[0]
        self.taken.append(stage)
        return stage

    def again(self, stage: Stage | None) -> None:
        """Run this one, if it is one, before the others."""
        self._left[:0] = [] if stage is None else [stage]

    def end(self) -> None:
        """Run no others."""
        self._coming, self._left = iter(()), []

    def _fill(self) -> bool:
        try:
            self._left += itertools.islice(self._coming, 1)
        except TimeExhausted:
            self._left.append(start_only(self._forms))
        return bool(self._left)


def stages(request: SolveRequest, forms: Forms, hidden: Form | None) -> Iterable[Stage]:
    """The runs that a request asks for."""
    entry = request.entry
    if entry is None:
        return _automatic(forms, hidden)
    found = _named(entry, forms, hidden, request.options)
    if request.polish and not entry.second_order:
        found += _polishing(forms, hidden)
    if entry.needs_smooth and forms.lifted.compiled.kinked:
        warnings.warn(
            f"{entry.name} is made for smooth rows, and this model has kinks that no linear row "
            "can express (max, abs or a norm under a minus sign, or a norm2): it may stop early at "
            "one",
            HCWarning,
            stacklevel=5,
        )
    return found


def written_in_map(request: SolveRequest, forms: Forms) -> Stage | None:
    """The convex program in the entries of a declared map, where the model is written in these alone.

    It takes less time than the search for coordinates that the sets of the variables are known in.
    """
    hidden = forms.in_map() if request.entry is None else None
    found = next(_whole(hidden), None)
    return None if found is None else replace(found, without_sets=True)


def start_only(forms: Forms, why: str = "no time left") -> Stage:
    """What is run where making the forms and programs has used up the time: it ends with the start.

    The method is one that imports nothing else.
    """
    return Stage(find_method("ippm-swsg"), forms.written, why)


def _automatic(forms: Forms, hidden: Form | None) -> Iterator[Stage]:
    if forms.written.compiled.has_black_boxes:
        yield from _black_boxes(forms, hidden)
        return
    whole = _whole(hidden)
    first = next(whole, None)
    if first is None:
        yield from _without_program(forms, hidden)
        return
    yield first
    yield from _in_logarithms(forms, hidden)
    yield from whole
    yield from _after_whole(forms, hidden)


def _without_program(forms: Forms, hidden: Form | None) -> list[Stage]:
    """The runs on a model of which no convex program is known."""
    found: list[Stage] = []
    if hidden is not None and hidden.affords_hessian:
        found += _newton(hidden, max_calls=LIMITS.second_order)
    if forms.lifted.affords_hessian:
        why = "as the run before it stalled" if found else _without_coordinates(hidden)
        linear = find_method("prox-linear")
        found.append(Stage(linear, forms.lifted, why, max_calls=LIMITS.second_order))
        sized = forms.in_own_size()
        if sized is not None:
            why = "the logarithm of an objective far below 1"
            found.append(Stage(linear, sized, why, max_calls=LIMITS.second_order))
    limit = LIMITS.fallback if found else None
    if not found:
        found.append(_limited_memory(forms, hidden))
    found.append(
        Stage(find_method("sbl-adals"), forms.lifted, "first-order method", max_calls=limit)
    )
    return found


def _in_logarithms(forms: Forms, hidden: Form | None) -> list[Stage]:
    """The cone program in logarithms, for a model that is proven in its variables too.

    Those come first, as values of 0 have no logarithm. Where they differ by many orders of magnitude, a
    program in them may not be solved; in logarithms it has no large numbers.
    """
    if hidden is None or not forms.may_be_logarithmic(hidden):
        return []
    cone = find_method("cone")
    return [Stage(cone, hidden, "in logarithms", instead=forms.in_logarithms)]


def made_instead(stage: Stage) -> Stage | None:
    """The stage in its other coordinates; None where the model is not proven in them."""
    assert stage.instead is not None
    assert stage.entry.program is not None
    form = stage.instead()
    if form is None:
        return None
    whole = functools.partial(form.whole, stage.entry.program)
    return replace(stage, form=form, whole=whole, why=known_coordinates(form))


def _after_whole(forms: Forms, hidden: Form | None) -> list[Stage]:
    """What follows a convex program that was not solved.

    The pattern of second derivatives, which a large model as written may take minutes for, is found when
    a run needs it. A first-order method is left for models that cannot afford them: after the others it
    helped none of 600 random convex models.
    """
    assert hidden is not None
    newton = _newton(hidden, max_calls=LIMITS.second_order)
    found = [replace(stage, affordable=lambda: hidden.affords_hessian) for stage in newton]
    found.append(
        Stage(
            find_method("prox-linear"),
            forms.lifted,
            "as the run before it stalled",
            max_calls=LIMITS.second_order,
            affordable=lambda: forms.lifted.affords_hessian,
        )
    )
    last = Stage(
        find_method("sbl-adals"),
        forms.lifted,
        "first-order method",
        max_calls=LIMITS.fallback,
        affordable=lambda: not (hidden.affords_hessian or forms.lifted.affords_hessian),
    )
    return [*found, last]


def _black_boxes(forms: Forms, hidden: Form | None) -> list[Stage]:
    """Methods that take gradients only, since second derivatives of black boxes cost many calls.

    With coordinates the bundle needs no smoothness, but a point for each unknown at least. Without them
    a quasi-Newton method is right where the functions are smooth, and stalls soon where they are not.
    """
    linear, size = find_method("prox-linear"), forms.lifted.canonical.layout.size
    curvature = {"curvature": "bfgs"}
    smooth = Stage(
        linear,
        forms.lifted,
        "black boxes",
        curvature,
        max_calls=LIMITS.second_order,
        ends_at_kinks=True,
    )
    sampling = Stage(find_method("gradient-sampling"), forms.written, "kinks in black boxes")
    if hidden is None:
        rows = forms.lifted.canonical.outer.size
        # without rows its BFGS steps are those of a quasi-Newton method for smooth functions
        return [smooth, sampling] if rows else [replace(sampling, why="black boxes"), smooth]
    known = known_coordinates(hidden)
    bundle = Stage(find_method("hidden-bundle"), hidden, f"black boxes, {known}")
    if size <= LIMITS.bundle:
        return [bundle, smooth, sampling]
    if hidden.map_geometry is None:
        smooth = replace(smooth, form=hidden, why=f"black boxes, {known}")
    return [smooth, replace(bundle, why="for kinks and the certificate"), sampling]


def _whole(hidden: Form | None) -> Iterator[Stage]:
    """The model as one convex program, where it is proven and has such a form.

    The interior-point method on the smooth form comes first where all functions are affine or sums of
    exponentials in the coordinates and the unknowns are not few; the cone program elsewhere, where the
    exponents are few, and for linear models whose rows are sparse, as Clarabel's factorisation is by
    blocks.
    """
    if hidden is None or hidden.proof is None:
        return
    names = ["cone", "interior-point"]
    many = hidden.canonical.layout.size > LIMITS.few and not _has_short_sums(hidden)
    if many and hidden.is_structured and not _is_sparse_linear(hidden):
        names.reverse()
    refused = True
    for entry in map(find_method, names):
        assert entry.program is not None
        # the programs of the others are made when it is their turn
        refused = refused and isinstance(hidden.whole(entry.program), Refusal)
        if not refused:
            yield _stage_of(entry, hidden, known_coordinates(hidden))
    if not refused:
        yield _with_slacks(hidden)


def _with_slacks(hidden: Form, options: Any = None) -> Stage:
    """The cone program once more, with unknowns for the differences of sides of matrix inequalities.

    It is solved without them first: that takes half of the time, and now and then the point does not
    satisfy the rows exactly enough.
    """
    cone = find_method("cone")
    kept = replace(make_options(cone, options), slacks=True)

    def affordable() -> bool:
        from hcmodel.solvers.qp.matrix_slacks import without_slacks

        whole = hidden.whole("cone")
        return not isinstance(whole, Refusal) and without_slacks(whole.program) is not None

    found = _stage_of(cone, hidden, "with slacks of matrix inequalities", kept)
    return replace(found, affordable=affordable)


def _is_sparse_linear(hidden: Form) -> bool:
    """Or dense, and small, or too large for the arrays of the interior-point method.

    With a bound for each unknown these have the order of the rows (`LowRankEquations`).
    """
    density = hidden.linear_density
    if density is None:
        return False
    size, rows = hidden.canonical.layout.size, hidden.canonical.outer.size
    order = rows if hidden.all_bounded and rows <= size // 2 else size
    small = density * size * rows <= LIMITS.numbers
    return density <= LIMITS.sparse or small or order > LIMITS.large_array


def _has_short_sums(hidden: Form) -> bool:
    if hidden.arrays is None or hidden.canonical.layout.size > LIMITS.not_many:
        return False
    return 0 < hidden.arrays.exponents <= LIMITS.short


def _stage_of(entry: MethodEntry, hidden: Form, why: str, options: Any = None) -> Stage:
    assert entry.program is not None
    return Stage(entry, hidden, why, options, whole=functools.partial(hidden.whole, entry.program))


def _polishing(forms: Forms, hidden: Form | None) -> list[Stage]:
    """What follows a first-order method with `polish=True`: the fitting method of second order."""
    if hidden is not None and hidden.affords_hessian:
        found = _newton(hidden)
    elif forms.lifted.affords_hessian:
        found = _named(find_method("prox-linear"), forms, hidden, None)
    else:
        found = [_limited_memory(forms, hidden)]
    return [replace(found[0], follows=True), *found[1:]]


def _newton(hidden: Form, options: Any = None, max_calls: int | None = None) -> list[Stage]:
    """Newton's method in hidden coordinates, first without the bounds that bend there."""
    newton, why = find_method("hidden-newton"), known_coordinates(hidden)
    bounded = Stage(newton, hidden, why, options, max_calls)
    if hidden.released is None:
        return [bounded]
    names = ", ".join(variable.name for variable in hidden.program.bending)
    return [
        Stage(
            newton, hidden.released, f"{why}, bounds of {names} left out", options, LIMITS.released
        ),
        replace(bounded, why=f"bounds of {names} kept"),
    ]


def _named(entry: MethodEntry, forms: Forms, hidden: Form | None, options: Any) -> list[Stage]:
    """The runs of a method that was asked for by name."""
    if entry.program is not None:
        found = [_direct(entry, hidden, options)]
        if hidden is not None and entry.name == "cone":
            found.append(_with_slacks(hidden, options))
        return found
    if entry.needs_coordinates:
        if hidden is None:
            raise NotHiddenConvexError(
                f"{entry.name} works in hidden coordinates, and none are known: no proof was found "
                "(problem.analyze() says why) and none are declared; declare them with hidden=[…], or "
                "use method='prox-linear'"
            )
        if entry.takes_cuts:
            return [Stage(entry, hidden, known_coordinates(hidden), options)]
        return _newton(hidden, options)
    if entry.linear_sets:
        return [_on_linear_sets(entry, forms, hidden, options)]
    smooth = entry.needs_smooth or entry.second_order
    return [Stage(entry, forms.lifted if smooth else forms.written, "as asked for", options)]


def _on_linear_sets(entry: MethodEntry, forms: Forms, hidden: Form | None, options: Any) -> Stage:
    """The run of a method that takes either coordinates, but no sets of matrices."""
    wanted = make_options(entry, options).coordinates
    changed = hidden if hidden is not None and hidden.map_geometry is None else None
    if wanted == "hidden" and changed is None:
        raise NotHiddenConvexError(
            f"{entry.name} works in hidden coordinates where these are a change of variables that is "
            "known, and none is (problem.analyze() says why); use coordinates='own'"
        )
    form, why = forms.lifted, "as asked for"
    if changed is not None and wanted != "own" and _is_linear(changed):
        form, why = changed, known_coordinates(changed)
    if not _is_linear(form):
        raise ModelError(
            f"{entry.name} takes variables in boxes and simplices, and this model has matrices that are "
            "semidefinite; use method='auto'"
        )
    return Stage(entry, form, why, options)


def _is_linear(form: Form) -> bool:
    """Whether the set of a form has bounds and linear equations only."""
    return all(cone.kind == "zero" for cone in form.domain.cone_rows().cones)


def _direct(entry: MethodEntry, hidden: Form | None, options: Any) -> Stage:
    """The run of a method that solves a whole convex program; an error where there is none."""
    assert entry.program is not None
    if hidden is None or hidden.proof is None:
        known = "none are known" if hidden is None else "those declared are not proven"
        raise NotHiddenConvexError(
            f"{entry.name} solves models that are proven convex in some coordinates, and {known} "
            "(problem.analyze() says why); use method='auto'"
        )
    whole = hidden.whole(entry.program)
    if isinstance(whole, Refusal):
        raise ModelError(
            f"there is no {entry.program} program of this model: {whole.reason}; use method='auto'"
        )
    return _stage_of(entry, hidden, "as asked for", options)


def _without_coordinates(hidden: Form | None) -> str:
    if hidden is None:
        return "no hidden coordinates known"
    mapped = hidden.map_geometry is not None
    return "too many unknowns for the map" if mapped else "too many unknowns for second derivatives"


def _limited_memory(forms: Forms, hidden: Form | None) -> Stage:
    """prox-linear with curvature from gradients, in hidden coordinates where these are not a map."""
    form, known = forms.lifted, _without_coordinates(hidden)
    if hidden is not None and hidden.map_geometry is None:
        form, known = hidden, known_coordinates(hidden)
    size = form.canonical.layout.size
    why = f"{known}; limited memory, as {size:,} unknowns make dense second derivatives expensive"
    options = {"curvature": "lbfgs"}
    return Stage(find_method("prox-linear"), form, why, options, max_calls=LIMITS.second_order)


def known_coordinates(hidden: Form) -> str:
    """How the coordinates of a form are known."""
    if hidden.proof is None:
        return "coordinates as declared"
    return f"proven convex in {_short(hidden.coordinate_names())}"


def solved_in(hidden: Form | None, declared: Sequence[Expression]) -> str:
    """The coordinates of a solve, and what is known about them."""
    if hidden is None:
        return "as written; no hidden coordinates are known (problem.analyze() says why)"
    if hidden.proof is None:
        return f"{_short([str(each) for each in declared])} (declared, not proven)"
    return f"{_short(hidden.coordinate_names())} (proven convex)"


def _short(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 4 else [*names[:3], "…"])


def describe(method: str, run: Sequence[Stage]) -> str:
    """What `solution.method` says: the method asked for, or what `auto` did and why."""
    if method != "auto":
        return ", then ".join(dict.fromkeys(stage.entry.name for stage in run))
    return "auto: " + ", then ".join(f"{stage.entry.name} ({stage.why})" for stage in run)
