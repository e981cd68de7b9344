"""Refutation without a map: a KKT point, or a sharp minimum, and a better feasible point.

Runs from several starts end in candidates. What is shown of each is decided in `stationary` (smooth
points) and `sharp` (kinks); a point about which there is any doubt refutes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import MULTISTART, STATIONARY
from hcmodel.analysis.counterexample import Counterexample
from hcmodel.analysis.hidden_map import HiddenMap, MapPoint
from hcmodel.analysis.sharp import sharp_minimum
from hcmodel.analysis.stationary import Stationary, is_clear, polish
from hcmodel.reductions.forms import Forms
from hcmodel.solvers import kkt
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.methods import minimize
from hcmodel.solvers.numerics import SUM_ROUNDING
from hcmodel.solving.start import start_vector

FloatArray = NDArray[np.float64]
# Where a run ends, and multipliers of the rows there.
End = tuple[FloatArray, FloatArray]


def refute_by_kkt(forms: Forms, samples: int, seed: int) -> tuple[Counterexample | None, int]:
    """A counterexample that holds under every map, if one is found, and the points looked at."""
    with np.errstate(all="ignore"):
        return _search(forms, samples, np.random.default_rng(seed))


def _search(
    forms: Forms, samples: int, generator: np.random.Generator
) -> tuple[Counterexample | None, int]:
    model = HiddenMap(forms)
    points = model.sample(samples, generator)
    domain = forms.written.domain
    starts = [start_vector(forms.model, domain, None, False), domain.middle()]
    starts = starts[:1] if np.array_equal(starts[0], starts[1]) else starts
    starts += [point.point for point in points[: MULTISTART.runs - len(starts)]]
    samples_too = [(point.point, np.zeros(model.rows)) for point in points]
    feasible = [point for point in points if point.violation == 0.0]
    shown: list[Stationary] = []
    seen: set[int] = set()

    def counterexample() -> Counterexample | None:
        return _counterexample(
            forms, model, [*feasible, *(s.point for s in shown)], shown, generator, seen
        )

    # Newton's method from samples takes a hundredth of the time of a run
    for x, multipliers in samples_too[: MULTISTART.newton_starts]:
        found = polish(model, x, multipliers)
        shown += [] if found is None else [found]
    example = counterexample()
    if example is not None:
        return example, len(points)
    ends, fruitless, total = list[End](), 0, 0
    for end, calls in _runs(forms, starts):
        ends += [] if end is None else [end]
        found = None if end is None else polish(model, *end)
        if found is not None:
            shown.append(found)
            example = counterexample()
            if example is not None:
                return example, len(points)
        fruitless, total = fruitless + 1 if found is None else 0, total + calls
        enough = fruitless >= MULTISTART.fruitless or total >= MULTISTART.calls
        if enough and not model.stack.kinked:
            break
    if model.stack.kinked:
        known = [each.point.point for each in shown]
        for x, _ in (*ends, *samples_too[: MULTISTART.sharp_starts]):
            found = sharp_minimum(model, x, generator, known)
            shown += [] if found is None else [found]
            known.append(x if found is None else found.point.point)
        example = counterexample()
    return example, len(points)


def _counterexample(
    forms: Forms,
    model: HiddenMap,
    feasible: Sequence[MapPoint],
    shown: Sequence[Stationary],
    generator: np.random.Generator,
    seen: set[int],
) -> Counterexample | None:
    """A point that is shown, and a better feasible one; `seen` are those that are not clear."""
    if not feasible:
        return None
    best = min(feasible, key=lambda point: point.objective)
    for found in sorted(shown, key=lambda each: -each.point.objective):
        difference = found.point.objective - best.objective
        size = max(1.0, abs(best.objective), abs(found.point.objective))
        if difference <= MULTISTART.better * size:
            break
        if id(found) in seen:
            continue
        if found.sharp or is_clear(model, found, difference, generator):
            return _described(forms, model, found, best)
        seen.add(id(found))
    return None


def _runs(forms: Forms, starts: Sequence[FloatArray]) -> Iterator[tuple[End | None, int]]:
    """Where the default method ends from each start, with the best multipliers there; and its calls."""
    written = forms.written
    written.compiled.refresh()
    for start in starts:
        result = minimize(
            written.oracle(),
            written.domain,
            start,
            method="sbl-adals",
            tolerance=MULTISTART.tolerance,
            max_calls=MULTISTART.calls_per_run,
        ).passed_on()
        check_time()
        if result.evaluation is None or not result.evaluation.differentiable:
            yield None, result.calls.total
            continue
        fitted = kkt.least_squares_multipliers(result.evaluation, written.domain, STATIONARY.near)
        multipliers = result.multipliers if fitted is None else fitted
        largest = float(np.max(np.abs(multipliers), initial=0.0))
        kept = np.where(
            np.abs(multipliers) > MULTISTART.least_multiplier * largest, multipliers, 0.0
        )
        yield (result.point, kept), result.calls.total


def _described(
    forms: Forms, model: HiddenMap, found: Stationary, better: MapPoint
) -> Counterexample:
    back = forms.sign.value_back
    word = "lower" if back(1.0) > 0 else "higher"
    metric = np.asarray(model.domain.metric(found.point.point))
    x = np.where(np.abs(found.point.point) < SUM_ROUNDING * metric, 0.0, found.point.point)
    what = "a strict local optimum" if found.sharp else "a KKT point"
    return Counterexample(
        kind="stationary point",
        function="objective",
        statement=(
            f"x is {what}, y is feasible and its value is {word}; in a hidden-convex problem every "
            "such point is a global optimum, whatever the map"
        ),
        points={"x": model.arrays(x), "y": model.arrays(better.point)},
        left=back(model.at(x).objective),
        right=back(better.objective),
        left_text="F(x)",
        right_text="F(y)",
        multipliers={
            name: np.asarray(dual)
            for name, dual in zip(
                model.naming.constraints,
                forms.front.duals_back(
                    x, forms.written.chain.duals_back(x, found.multipliers)
                ).rows,
                strict=True,
            )
        },
        residual=found.residual,
    )
