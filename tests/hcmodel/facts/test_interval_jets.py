"""Enclosures of values, gradients and Hessians over boxes hold what the engines compute inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.graph import merge
from hcmodel.expressions.layout import Layout
from hcmodel.facts.interval_jets import Interval, Jet, NotEnclosed, enclosed, seeds
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.numerics import TINY
from tests.extent import several

FORMULAS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: hc.exp(x[0] * x[1]) - x[2],
    "log": lambda x: hc.log(x[0] + x[1] ** 2) * x[2] + hc.log1p(x[0]),
    "quotient": lambda x: x[0] / (x[1] + x[2]) + hc.inv_pos(x[1]),
    "powers": lambda x: x[0] ** 1.5 * x[1] ** -2 + x[2] ** 3 + hc.sqrt(x[0]) + 2 ** x[1],
    "sines": lambda x: hc.sin(3 * x[0]) * hc.cos(x[1] - x[2]),
    "sigmoids": lambda x: hc.softplus(x[0] - 2 * x[1]) + hc.sigmoid(x[2]) + hc.tanh(x[1] - 1),
    "sums": lambda x: hc.sum(x**2) + hc.mean(x) ** 4 + hc.norm(x),
    "matrices": lambda x: hc.quad_form(x, np.diag([1.0, 2, 3])) + (np.ones((2, 3)) @ x)[0] ** 2,
    "kinks": lambda x: hc.abs(x[0] - 3) * x[1] + hc.maximum(x[0], x[1] + 5) * x[2],
    "pieces": lambda x: hc.sum(hc.hstack([x[0] * x[1], x[2] ** 2])) + hc.sum(hc.entr(x)),
    "bump": lambda x: hc.exp(-100 * (x[0] - 0.7) ** 2) / x[1] + x[2] / 3,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives_inside_a_box_are_inside_the_enclosures(name: str) -> None:
    rng, x = np.random.default_rng(1), hc.Variable(3, name="x", bounds=(0.2, 2))
    expression = FORMULAS[name](x)
    form = hc.Problem(hc.Minimize(expression)).forms().written
    oracle, boxes = form.oracle(), several(6, 60)
    ends = np.sort(rng.uniform(0.2, 2.0, (2, boxes, 3)), axis=0)
    ends[1, : boxes // 2] = ends[0, : boxes // 2] + 1e-3  # half of them small
    (jet,) = enclosed(
        merge([expression]), Layout([x]), seeds(ends[0], ends[1], np.zeros(3, dtype=bool))
    )
    for box in range(boxes):
        for share in (np.zeros(3), np.ones(3), rng.uniform(size=3)):
            point = ends[0, box] + share * (ends[1, box] - ends[0, box])
            there, hessian = oracle.at(point), as_dense(form.stack.hessian(point, np.ones(1)))
            _inside(there.objective, jet.value, box, 1e-12)
            _inside(there.gradient, jet.gradient, box, 1e-10)
            _inside(hessian, jet.hessian, box, 1e-8)


def _inside(number: Any, interval: Interval, box: int, rounding: float) -> None:
    low, high = interval.low[box], interval.high[box]
    slack = rounding * (1 + np.abs(number))  # the engine's own
    assert np.all(low - slack <= number)
    assert np.all(number <= high + slack)


def test_enclosures_of_points_are_narrow() -> None:
    x = hc.Variable(3, name="x", bounds=(0.2, 2))
    point, plain = np.array([[0.5, 1.1, 1.7]]), np.zeros(3, dtype=bool)
    for name, formula in FORMULAS.items():
        (jet,) = enclosed(merge([formula(x)]), Layout([x]), seeds(point, point, plain))
        width = jet.hessian.high - jet.hessian.low
        assert np.all(width <= 1e-10 * (1 + np.abs(jet.hessian.low))), name


def test_logarithmic_unknowns() -> None:
    # x = exp(u), and x² = exp(2u) has the second derivative 4·exp(2u)
    x = hc.Variable(name="x", pos=True)
    u = np.log(np.array([[1.5]]))
    (jet,) = enclosed(merge([x**2]), Layout([x]), seeds(u, u, np.array([True])))
    assert jet.hessian.low == pytest.approx(4 * 1.5**2)


def test_what_underflows_is_not_zero() -> None:
    # over an unbounded interval the exact 0 of exp(−10⁶) would hide a slope without a bound
    tail = seeds(np.array([[1e6]]), np.array([[np.inf]]), np.zeros(1, dtype=bool))
    x = hc.Variable(name="x")
    (jet,) = enclosed(merge([hc.exp(-x)]), Layout([x]), tail)
    assert jet.value.high >= TINY
    (jet,) = enclosed(merge([x * hc.exp(-x)]), Layout([x]), tail)
    assert jet.value.high == np.inf
    small = Interval.exactly(np.array(1e-200))
    assert (small * small).high > 0 >= (small * -small).high
    assert (small * small).low == 0


@pytest.mark.parametrize(
    "formula",
    [lambda x: hc.det(hc.diag(x)), lambda x: hc.function(lambda z: z[0], x, grad=lambda z: z)],
)
def test_a_formula_without_enclosure_says_so(formula: Callable[[Any], Any]) -> None:
    x = hc.Variable(2, name="x", bounds=(1, 2))
    box = seeds(np.ones((1, 2)), 2 * np.ones((1, 2)), np.zeros(2, dtype=bool))
    with pytest.raises(NotEnclosed):
        enclosed(merge([formula(x)]), Layout([x]), box)


def test_a_pole_or_an_undecided_kink_leaves_nothing_known() -> None:
    x = hc.Variable(name="x", bounds=(-1, 1))
    box = seeds(-np.ones((1, 1)), np.ones((1, 1)), np.zeros(1, dtype=bool))
    for formula in (1 / x, hc.abs(x), hc.log(x), x**-2, hc.sqrt(x)):
        (jet,) = enclosed(merge([formula]), Layout([x]), box)
        assert isinstance(jet, Jet)
        assert np.isinf(jet.hessian.high).all(), str(formula)
        assert np.isinf(jet.hessian.low).all(), str(formula)
