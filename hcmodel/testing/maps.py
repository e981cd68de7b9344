"""`check_map`: a map of hidden coordinates on models that it is made for.

Every step that the map proposes is applied by itself. The models before and after it are compared at
points, as discovery compares them, and the reduction between them passes `check_reduction`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.matrix_equations import formally
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.map import Map, Obstacle, Step
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.substitution import AGREEMENT, Substitution
from hcmodel.testing.naming import named
from hcmodel.testing.reductions import NoSampleError, check_reduction

if TYPE_CHECKING:
    from hcmodel.problem import Problem

FloatArray = NDArray[np.float64]

# Steps of a map on one model that are checked: a map that splits a sum proposes as many as it has terms.
MOST_STEPS = 50


def check_map(
    map: Map, models: Iterable[Problem | Model], *, samples: int = 2, seed: int = 0
) -> int:
    """Check what a map makes of each of these models; the number of steps that were checked.

    `samples` is the number of points at which both sides of a step are compared. Raises `AssertionError`
    with the name of the map, the model and the step, and what failed. A map that proposes no step for one
    of the models fails too, with what it says is in the way.
    """
    checked = 0
    for number, each in enumerate(models, 1):
        model = each if isinstance(each, Model) else each.model
        with named(f"map '{map.name}' on model {number} ({model.objective!r})"):
            checked += _check_model(map, model, samples, seed)
    assert checked, f"map '{map.name}': there is no model to check it on"
    return checked


def _check_model(map: Map, model: Model, samples: int, seed: int) -> int:
    before = Forms(model).bounds.after  # a minimisation, as discovery hands it to maps
    proposed = list(itertools.islice(map.propose(Expanded.of(before)), MOST_STEPS))
    steps = [each for each in proposed if isinstance(each, Step)]
    obstacles = [str(each) for each in proposed if isinstance(each, Obstacle)]
    assert steps, f"it proposes nothing; in the way: {'; '.join(obstacles) or 'nothing is named'}"
    for step in steps:
        texts = ", ".join(f"{new.name} = {text}" for new, text in step.texts.items())
        with named(f"step '{step.name}'{f' with {texts}' if texts else ''}"):
            _check_step(before, step, samples, seed)
    return len(steps)


def _check_step(before: Model, step: Step, samples: int, seed: int) -> None:
    substitution = Substitution.of(before, [step])
    wrong = substitution.disagreement()
    assert wrong is None, wrong
    check = functools.partial(
        check_reduction,
        substitution,
        samples=samples,
        seed=seed,
        settle=functools.partial(_settled, substitution, step),
        # those of other steps are differences of `back`, and nothing of the map
        tangents=type(step).tangent_back is not Step.tangent_back,
    )
    try:
        check()
    except NoSampleError:
        with formally():  # hardly any random gain makes a loop stable
            check()


def _settled(substitution: Substitution, step: Step, x: FloatArray) -> FloatArray | None:
    """The point on the rows that the step takes out of the model; None where it has no image.

    A point that violates the sets of the variables may have one, and then the sides are compared there.
    """
    before, after = substitution.before, substitution.after
    point = dict(zip(before.variables, before.layout.unpack(np, x), strict=True))
    with np.errstate(all="ignore"):
        step.settle(point)
        step.forward(point)
        if not step.fits(point):
            return None
        settled = before.layout.pack([point[each] for each in before.variables])
        image = substitution.point(settled)
        again = substitution.point_back(image)
        if _equations_hold(before, again) and not _equations_hold(before, settled):
            # the way back solves equations of the model for what is gone
            settled, image = again, substitution.point(again)
        if not make_domain(before.variables).contains(settled):
            defined = all(np.isfinite(each).all() for each in after.values_once(image))
            return settled if defined else None
    if step.outside and not make_domain(after.variables).contains(image):
        return None
    return settled


def _equations_hold(model: Model, x: FloatArray) -> bool:
    """Whether a point satisfies every equality of the model, up to rounding."""
    _, *sides = model.values_once(x)
    for constraint, left, right in zip(model.constraints, sides[::2], sides[1::2], strict=True):
        size = 1.0 + np.abs(left) + np.abs(right)
        if constraint.sense == "==" and not (np.abs(left - right) <= AGREEMENT * size).all():
            return False
    return True
