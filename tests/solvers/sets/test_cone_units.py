"""Units inside matrix cones, against the definition P ↦ L⁻¹ P L⁻ᵀ with P = L Lᵀ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.qp.program import Cone
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.cone_units import centred, natural_directions
from hcmodel.solvers.sets.matrices import SymmetricMatrices
from hcmodel.solvers.sets.product import Product


def graded(order: int, seed: int) -> np.ndarray:
    """A definite matrix with eigenvalues from 1e-4 to 1e4."""
    frame = np.linalg.qr(np.random.default_rng(seed).normal(size=(order, order)))[0]
    return (frame * np.geomspace(1e-4, 1e4, order)) @ frame.T


@pytest.mark.parametrize("seed", range(3))
def test_a_natural_direction_has_length_1_in_the_metric_of_the_logarithm_of_the_determinant(
    seed: int,
) -> None:
    P = graded(4, seed)
    domain = SymmetricMatrices(4, smallest=0.0)
    steps = domain.step_rows(to_vector(P), np.ones(10))
    natural, inside = natural_directions(steps, np.eye(10))
    assert inside.all()
    inverse = np.linalg.inv(P)
    for column in natural.T:
        D = to_matrix(column)
        assert np.trace(inverse @ D @ inverse @ D) == pytest.approx(1.0, rel=1e-5)


def test_directions_outside_cones_stay_as_they_are() -> None:
    domain = Product([Box.of(2, -1.0, 1.0), SymmetricMatrices(2, smallest=0.0)])
    point = np.concatenate([np.zeros(2), to_vector(np.diag([1e-2, 1e2]))])
    steps = domain.step_rows(point, np.ones(5))
    natural, inside = natural_directions(steps, np.eye(5))
    assert inside.tolist() == [False, False, True, True, True]
    np.testing.assert_array_equal(natural[:, :2], np.eye(5)[:, :2])


@pytest.mark.parametrize("seed", range(3))
def test_a_centred_cone_holds_the_same_steps_and_has_the_identity_as_its_offset(seed: int) -> None:
    generator = np.random.default_rng(seed)
    P = graded(3, seed)
    cone = Cone("psd", sp.csr_array(generator.normal(size=(6, 4))), to_vector(P))
    moved = centred(cone)
    np.testing.assert_allclose(to_matrix(moved.offset), np.eye(3), atol=1e-6)
    clear = {True: 0, False: 0}
    for _ in range(200):
        step = 10.0 ** generator.uniform(-5, 4) * generator.normal(size=4)
        least = [
            np.linalg.eigvalsh(to_matrix(each.offset + each.matrix @ step))[0]
            for each in (cone, moved)
        ]
        if abs(least[0]) > 1e-9:  # elsewhere rounding decides
            assert (least[0] > 0) == (least[1] > 0)
            clear[bool(least[0] > 0)] += 1
    assert min(clear.values()) > 10


def test_at_the_edge_and_at_0_the_units_stay_finite() -> None:
    for matrix in (np.zeros((2, 2)), np.diag([0.0, 1.0])):
        cone = Cone("psd", sp.csr_array(np.eye(3)), to_vector(matrix))
        moved = centred(cone)
        assert np.isfinite(moved.matrix.toarray()).all()
        assert np.isfinite(moved.offset).all()
