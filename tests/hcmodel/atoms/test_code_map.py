"""Hidden coordinates that are code."""

from __future__ import annotations

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc


def forward(x):
    """Of Chebyshev and Rosenbrock's function."""
    return anp.concatenate([x[:1], x[1:] - 2 * x[:-1] ** 2 + 1])


def jacobian(x):
    found = np.eye(x.size)
    found[np.arange(1, x.size), np.arange(x.size - 1)] = -4 * x[:-1]
    return found


def inverse(u):
    x = np.array(u)
    for i in range(1, u.size):
        x[i] = u[i] + 2 * x[i - 1] ** 2 - 1
    return x


def problem_with(mapping: hc.Map, size: int = 4) -> hc.Problem:
    x = hc.Variable(size, name="x", bounds=(-2, 2), start=[-1.0] + [0.9] * (size - 1))

    def objective(x):
        u = forward(x)
        return anp.abs(u[0] - 1) / 4 + anp.sum(anp.abs(u[1:]))

    return hc.Problem(hc.Minimize(hc.function(objective, x)), hidden=[mapping(x)])


BOX = ([-2.0, -9.0, -9.0, -9.0], [2.0, 3.0, 3.0, 3.0])


@pytest.mark.parametrize(
    "mapping",
    [
        hc.Map(forward, image=BOX),
        hc.Map(forward, jacobian, inverse, BOX),
        hc.Map(forward, "3-point", inverse, BOX),
    ],
    ids=["forward", "all", "differences"],
)
def test_a_map_that_is_code_certifies_the_minimum(mapping: hc.Map) -> None:
    problem = problem_with(mapping)
    problem.solve()
    assert problem.status == "optimal"
    assert 0 <= problem.value <= 1e-6
    assert problem.solution.certificate.lower_bound <= 1e-9


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (hc.Map(forward, lambda x: jacobian(x).T), "derivative of u"),
        (hc.Map(forward, inverse=lambda u: u), "differs from x"),
        (hc.Map(forward, inverse=lambda u: u[:2]), "shapes"),
        (hc.Map(lambda x: x[:2], "2-point"), "entries"),
        (hc.Map(forward, image=(0.0, 1.0)), "outside of image"),
        (hc.Map(forward, lambda x: 1 / x), "jacobian returned the shapes"),
        (hc.Map(forward, lambda x: np.nan * jacobian(x)), "derivative of u"),
        (hc.Map(lambda x: np.log(-x), "2-point"), "is not finite at the start"),
        (hc.Map(lambda x: 1 // 0, "2-point"), "fails at the start: ZeroDivisionError"),
        (hc.Map(lambda x: "u", "2-point"), "arrays of numbers"),
    ],
)
def test_a_map_that_contradicts_itself_is_refused_at_the_start(
    mapping: hc.Map, message: str
) -> None:
    with pytest.raises(hc.ModelError, match=message):
        problem_with(mapping).solve()


def test_wrong_arguments_are_explained() -> None:
    with pytest.raises(hc.ModelError, match="callable"):
        hc.Map(3)
    with pytest.raises(hc.ModelError, match="pair"):
        hc.Map(forward, image=(1, 2, 3))
    with pytest.raises(hc.ModelError, match="variables"):
        hc.Map(forward)(np.ones(2))


def test_other_variables_are_their_own_coordinates() -> None:
    x = hc.Variable(2, name="x", bounds=(0.2, 5), start=[2.0, 0.5])
    y = hc.Variable(name="y", bounds=(-3, 3), start=2.0)
    logarithm = hc.Map(anp.log, lambda x: np.diag(1 / x), np.exp, (np.log(0.2), np.log(5)))
    cost = hc.function(lambda x, y: anp.maximum(x[0] * x[1], 1 / x[0]) + anp.abs(y - 1), x, y)
    problem = hc.Problem(hc.Minimize(cost), hidden=[logarithm(x)])
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(np.sqrt(0.2), rel=1e-5)  # x₂ = 0.2, x₁² = 1/x₂
