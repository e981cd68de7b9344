"""From sums back to expressions: linear matrices are written as people write them."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.leaves import Apply
from hcmodel.facts.expansion import expand
from hcmodel.maps.algebra.assembly import Assembly

GENERATOR = np.random.default_rng(5)
A, B = GENERATOR.normal(size=(3, 3)), GENERATOR.normal(size=(3, 2))
P = hc.Variable((3, 3), symmetric=True, name="P")
Y = hc.Variable((2, 3), name="Y")

WRITTEN = {
    "one product": A @ P + B @ Y,
    "symmetric": A @ P + P @ A.T + B @ Y + Y.T @ B.T + np.eye(3),
    "turned": P @ A + Y.T @ B.T,
    "zeros": np.diag([1.0, 0.0, 2.0]) @ P + 1.0,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_linear_matrices_are_products_again(name: str) -> None:
    (sums,), symbols = expand([WRITTEN[name]], spare=50)
    made = Assembly(symbols).expression(sums)
    assert expand([made - WRITTEN[name]])[0][0].key.size == 0
    inner, atoms = [made], set[str]()
    while inner:
        node = inner.pop()
        if isinstance(node, Apply):
            atoms.add(node.atom.name)
            inner += node.args
    assert "reshape" not in atoms  # as for a vector of all entries


LAM, MU = (hc.Variable(3, pos=True, name=name) for name in ("lam", "mu"))
READ = {
    "lam - 0.95 * mu": LAM - MU * np.full(3, 0.95),
    "lam + mu - 2": -2 + LAM * np.ones(3) + MU,
    "lam * mu": hc.hstack([LAM[i] * MU[i] for i in range(3)]),
    "-mu": 0 - MU,
    "2 * sum(lam) - sum(mu)": 2 * hc.sum(LAM) - np.ones(3) @ MU,
    "[1., 2., 3.] @ lam - 20": LAM @ np.array([1.0, 2.0, 3.0]) - 20,
}


@pytest.mark.parametrize("text", READ)
def test_sums_read_as_people_write_them(text: str) -> None:
    (sums,), symbols = expand([READ[text]], spare=50)
    made = Assembly(symbols).expression(sums)
    assert str(made) == text
    assert expand([made - READ[text]])[0][0].key.size == 0
