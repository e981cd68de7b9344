"""Products gathered into functions: equal numbers, and convex functions where these are known."""

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.facts.expansion import expand
from hcmodel.maps.algebra.assembly import Assembly
from hcmodel.maps.algebra.expanded import Evaluation
from hcmodel.maps.algebra.gather import gathered
from hcmodel.proof.prove import prove

x = hc.Variable(3, name="x")
u = hc.Variable(3, name="u", bounds=(0, 2))
p = hc.Variable(3, name="p", bounds=(0.1, 2))
s = hc.Variable(name="s", bounds=(0.1, 2))
Q = np.array([[2.0, 1, 0], [1, 2, 1], [0, 1, 2]])

CONVEX = {
    "square": x[0] * x[0] - 3 * x[1],
    "cross terms": x[0] * x[0] + 2 * x[0] * x[1] + x[1] * x[1] + 4 * x[2] * x[2],
    "form": x @ Q @ x,
    "indexed": hc.sum(x * (Q @ x)) - 2 * x[1],
    "array": x * x + x,
    "over a variable": (x @ Q @ x) / s,
    "over a sum": (x[0] * x[0] + 3 * x[1] * x[1]) / hc.sum(p),
    "with linear parts over a sum": (x[0] ** 2 + 2 * x[0] + 1) / (p[0] + s),
    "over itself": p[0] * p[0] / (p[0] + p[1]),
    "a fraction of one variable": -p[0] / (p[0] + 1),
    "a product cancels": (p[0] * p[1] + p[1] * s) / (p[0] + s) + x[0] ** 2,
    "u log u": hc.sum(p * hc.log(p)),
    "divergence": hc.sum(p * hc.log(p) - p * hc.log(p[2] + s)) + 2 * p[0] * hc.log(p[0]),
    "a share": hc.sum(p * hc.log(p)) - hc.sum(p) * hc.log(hc.sum(p)),
    "half of a share": p[0] * hc.log(p[0])
    - 0.5 * (p[0] + p[1]) * hc.log(p[0] + p[1])
    + p[1] * hc.log(p[1]),
    "with a logarithm": (p[0] - 1) * hc.log(p[0]),
    "entropy of a sum": (p[0] + p[1]) * hc.log(2 * p[0] + 2 * p[1]),
    "a mean of three": -((p[0] * p[1] * p[2]) ** (1 / 3)),
    "less than a mean": -(p[0] ** 0.3) * p[1] ** 0.5 * 2,
    "a mean of what may be 0": -hc.sqrt(u[0] * u[1]),
    "root": (x @ Q @ x + 1) ** 0.5,
    "root and square": hc.sqrt(x @ Q @ x) + x[0] * x[0],
    "geometric mean": -(p[0] ** 0.5) * (s + p[1]) ** 0.5 - p[1] ** 0.25 * p[2] ** 0.75,
    "norm squared over s": hc.square(hc.norm(x)) / s,
}

NOT_CONVEX = {
    "product": x[0] * x[1],
    "indefinite": x[0] * x[0] - x[1] * x[1],
    "indefinite over s": (x[0] * x[0] - x[1] * x[1]) / s,
    "a quotient": x[0] / s,
    "entropy": hc.sum(hc.entr(p)),
    "share, turned": hc.sum(p) * hc.log(hc.sum(p)) - hc.sum(p * hc.log(p)),
    "too much of a share": hc.sum(p * hc.log(p)) - 2 * hc.sum(p) * hc.log(hc.sum(p)),
    "another logarithm": p[0] * hc.log(p[1]),
    "over something negative": x[0] ** 2 / (s - 3),
    "concave fraction": p[0] / (p[0] + 1),
}


def assembled(expression):
    (sums,), symbols = expand([hc.sum(expression)], spare=200)
    return sums, symbols


@pytest.mark.parametrize("name", [*CONVEX, *NOT_CONVEX])
def test_gathering_changes_no_number(name):
    expression = {**CONVEX, **NOT_CONVEX}[name]
    (sums,), symbols = expand([expression], spare=200)
    found = gathered(sums, symbols)
    generator = np.random.default_rng(1)
    for _ in range(3):
        point = {v: generator.uniform(0.1, 2, size=v.shape) for v in (x, u, p, s)}
        numbers = Evaluation(symbols, point)
        np.testing.assert_allclose(numbers.of(found), numbers.of(sums), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", CONVEX)
def test_convex_sums_of_products_are_proven(name):
    sums, symbols = assembled(CONVEX[name])
    expression = Assembly(symbols).expression(sums)
    held = {v: "identity" for v in (p, s) if v in symbols.variables}
    assert prove(expression, 1.0, [], fixed=held).proven


@pytest.mark.parametrize("name", NOT_CONVEX)
def test_other_sums_of_products_are_not_proven(name):
    sums, symbols = assembled(NOT_CONVEX[name])
    held = {v: "identity" for v in (p, s) if v in symbols.variables}
    assert not prove(Assembly(symbols).expression(sums), 1.0, [], fixed=held).proven


def test_every_row_of_an_array_is_gathered_on_its_own():
    rows = hc.concatenate(hc.reshape(x[0] * x[0] / s, (1,)), hc.reshape(x @ Q @ x, (1,)), x)
    (sums,), symbols = expand([rows], spare=200)
    assert int(gathered(sums, symbols).degrees.max()) == 1


def test_concave_sums_are_gathered_too():
    sums, symbols = assembled(-(x @ Q @ x) - hc.sum(p * hc.log(p)))
    expression = Assembly(symbols).expression(sums)
    assert prove(expression, -1.0, [], fixed={p: "identity"}).proven
