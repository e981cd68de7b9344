"""Slopes at the edge of a domain, where entries are 0: finite ones are those of tangents.

A bound rests on tangents of convex functions. Where the slope is infinite, as that of √x at 0, an engine
says so; a finite number in its place would make a false bound.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.table import ATOMS
from hcmodel.proof.prove import prove
from hcmodel.testing.samples import ALL_SAMPLES, Sample

# Relative to the sizes of what is compared.
ROUNDING = 1e-7
POINTS = 8


def unknowns(sample: Sample) -> list[hc.Variable]:
    shapes = [np.shape(argument) for argument in sample.arguments]
    return [hc.Variable(shape, name=f"v{i}", nonneg=True) for i, shape in enumerate(shapes)]


def curvature(sample: Sample) -> float:
    """1 where the sum of the entries is proven convex, −1 where it is concave, 0 else."""
    if ATOMS[sample.name].black_box or sample.constant:
        return 0.0
    total = hc.sum(sample.build(*unknowns(sample)))
    convex, concave = (prove(total, sign, []).proven for sign in (1.0, -1.0))
    return float(convex) - float(concave)


CURVED = [sample for sample in ALL_SAMPLES if curvature(sample) and (sample.arguments[0] > 0).all()]


def engines() -> list[str]:
    return ["autograd"] + ["casadi"] * (importlib.util.find_spec("casadi") is not None)


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("sample", CURVED, ids=str)
def test_finite_slopes_at_0_are_those_of_tangents(sample: Sample, engine: str) -> None:
    rng = np.random.default_rng(3)
    total = hc.sum(sample.build(*unknowns(sample)))
    form = hc.Problem(hc.Minimize(total)).forms(engine).written
    oracle, size = form.oracle(), form.domain.dimension
    inside = [oracle.at(rng.uniform(0.1, 3.0, size)) for _ in range(POINTS)]
    sign = curvature(sample)
    for number in range(POINTS):
        zeros = rng.random(size) < 0.5 if number else np.ones(size, dtype=bool)
        edge = oracle.at(np.where(zeros, 0.0, rng.uniform(0.1, 3.0, size)))
        if not (edge.finite and edge.differentiable):
            continue  # as an engine has to say where a slope is infinite
        for other in filter(lambda each: each.finite, inside):
            rise = edge.gradient @ (other.point - edge.point)
            room = ROUNDING * (1 + abs(other.objective) + abs(rise))
            assert sign * (other.objective - edge.objective - rise) >= -room


def test_there_are_atoms_to_be_tested() -> None:
    names = {sample.name for sample in CURVED}
    assert {"geo_mean", "kl_div", "rel_entr", "entr", "sqrt"} <= names
