"""Every way to solve the linear system, against the matrix written out from its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.second_order.interior_point import (
    InteriorPointStatus,
    LogSums,
    SmoothConvexProgram,
    Sums,
    solve,
)
from hcmodel.solvers.second_order.interior_point import block_factor as block_factors
from hcmodel.solvers.second_order.interior_point import factorisation as factorisations
from hcmodel.solvers.second_order.interior_point.block_factor import BlockFactor
from hcmodel.solvers.second_order.interior_point.conjugate_gradients import ConjugateGradients
from hcmodel.solvers.second_order.interior_point.convex_program import Groups
from hcmodel.solvers.second_order.interior_point.dense_equations import (
    DenseEquations,
    LowRankEquations,
    OrthogonalEquations,
)
from hcmodel.solvers.second_order.interior_point.factorisation import (
    DenseCholesky,
    FactorisationError,
    SparseFactor,
)
from hcmodel.solvers.second_order.interior_point.linear_system import Weights
from hcmodel.solvers.second_order.interior_point.normal_equations import normal_equations
from hcmodel.solvers.second_order.interior_point.operators import Operators
from hcmodel.solvers.second_order.interior_point.sparse_equations import (
    GenericEquations,
    PackedEquations,
    SparseEquations,
)
from hcmodel.solvers.second_order.interior_point.standard_form import standard_form
from tests.problems.smooth_programs import cblib, chain, dense_program, gate_sizing

FloatArray = NDArray[np.float64]

WAYS = [
    DenseEquations,
    LowRankEquations,
    OrthogonalEquations,
    PackedEquations,
    SparseEquations,
    GenericEquations,
]


def random_program(
    seed: int, *, equalities: int, size: int = 12, long: bool = False
) -> SmoothConvexProgram:
    """Rows of every kind: one logarithm, two in one row, shared plain terms, mixed, affine."""
    random = np.random.default_rng(seed)

    def exponents(count: int) -> FloatArray:
        kept = random.uniform(size=(count, size)) < 0.3
        return np.asarray(random.normal(size=(count, size)) * kept)

    rows = 6
    logs = LogSums(
        exponents(9),
        random.normal(size=9),
        np.array([0, 0, 1, 1, 1, 2, 2, 3, 3]),
        np.array([0, 1, 2, 2]),
    )
    weights = np.zeros((rows + 1, 5))
    weights[[3, 4, 4, 5, 0], [0, 0, 1, 2, 3]] = random.exponential(size=5)
    weights[2, 4] = 1.0
    affine = exponents(rows + 1)
    affine[[0, 1, 3]] = 0.0
    if long:
        affine[6] = random.normal(size=size)
    bound = random.exponential(size=size) + 0.5
    more: dict[str, Any] = {}
    if equalities:
        more = {
            "equality": random.normal(size=(equalities, size)),
            "equality_bound": random.normal(size=equalities),
        }
    return SmoothConvexProgram(
        affine,
        random.normal(size=rows + 1),
        -bound,
        bound,
        logs,
        Sums(exponents(5), random.normal(size=5), weights),
        **more,
    )


def random_weights(operators: Operators, seed: int) -> Weights:
    random = np.random.default_rng(seed)
    form = operators.form
    multipliers = random.exponential(size=operators.pairs) + 0.1
    values = random.exponential(size=form.offsets.size) + 0.1
    sums = operators.groups.sums(values[: form.log_terms])
    values[: form.log_terms] /= operators.groups.spread(sums)
    pairs = random.exponential(size=operators.pairs) + 0.1
    pairs[0] = 0.0
    return Weights(
        values * operators.term_weights(multipliers),
        values,
        pairs,
        multipliers[form.group_rows],
    )


def whole_system(operators: Operators, weights: Weights) -> FloatArray:
    """[M, Aᵀ; A, 0] with M from the definition, by dense matrices."""
    form = operators.form

    def array(matrix: Any) -> FloatArray:
        return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())

    E, J = array(form.exponents), array(form.affine).copy()
    logs = form.log_terms
    M = E.T @ np.diag(weights.terms) @ E
    for group, row in enumerate(form.group_rows):
        members = np.flatnonzero(form.groups == group)
        mean = weights.values[members] @ E[members]
        J[row] += mean
        M -= weights.groups[group] * np.outer(mean, mean)
    if form.weights is not None:
        J += array(form.weights) @ (weights.values[logs:, None] * E[logs:])
    M += J[1:].T @ np.diag(weights.pairs[1 : operators.head]) @ J[1:]
    for index, first in (
        (form.lower_index, operators.head),
        (form.upper_index, operators.first_upper),
    ):
        M[index, index] += weights.pairs[first : first + index.size]
    A = array(form.equality)
    return np.block([[M, A.T], [A, np.zeros((A.shape[0], A.shape[0]))]])


def right_hand_side(
    operators: Operators, weights: Weights, parts: tuple[FloatArray, FloatArray, FloatArray]
) -> FloatArray:
    dual, deviations, pairs = parts
    scaled = weights.pairs * pairs
    terms = weights.terms * deviations + weights.values * operators.term_weights(scaled)
    return dual - operators.transposed(terms, scaled)


class TestLinearSystem:
    @pytest.mark.parametrize("equalities", [0, 3])
    @pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
    @pytest.mark.parametrize("seed", range(3))
    def test_every_way_solves_the_same_system(self, way: Any, equalities: int, seed: int) -> None:
        operators = Operators(standard_form(random_program(seed, equalities=equalities)))
        self.compare(way(operators), operators, seed)

    def test_long_rows_stay_out_of_the_matrix(self) -> None:
        size = 300
        program = random_program(4, equalities=2, size=size, long=True)
        operators = Operators(standard_form(program))
        equations = SparseEquations(operators)
        assert equations._long_constant.size + equations._long_varying.size > 0
        self.compare(equations, operators, 4)

    def compare(self, equations: Any, operators: Operators, seed: int) -> None:
        random = np.random.default_rng(seed)
        form = operators.form
        weights = random_weights(operators, seed)
        deviations = random.normal(size=form.offsets.size)
        means = operators.groups.sums((weights.values * deviations)[: form.log_terms])
        deviations[: form.log_terms] -= operators.groups.spread(means)
        pairs = random.normal(size=operators.pairs)
        pairs[0] = 0.0
        dual = random.normal(size=form.size)
        equality = random.normal(size=operators.equalities)
        equations.factorise(weights)
        found = equations.solve(dual, deviations, pairs, equality)
        right = right_hand_side(operators, weights, (dual, deviations, pairs))
        expected = np.linalg.solve(
            whole_system(operators, weights), np.concatenate([right, equality])
        )
        # the ridge of the sparse matrices is 1e-8; iterative refinement takes it out
        np.testing.assert_allclose(found.u, expected[: form.size], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.equality, expected[form.size :], rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize(
        ("program", "way"),
        [
            (dense_program(30, 60), DenseEquations),
            (dense_program(300, 20), LowRankEquations),
            (cblib("mra01"), PackedEquations),
            (chain(2000), SparseEquations),
            (gate_sizing(300), SparseEquations),
        ],
        ids=["dense", "low-rank", "small-sparse", "chain", "gates"],
    )
    def test_the_way_is_chosen_by_sizes_and_sparsity(
        self, program: SmoothConvexProgram, way: type
    ) -> None:
        assert isinstance(normal_equations(Operators(standard_form(program))), way)


class TestOperators:
    @pytest.mark.parametrize("program", [random_program(5, equalities=0), cblib("car"), chain(40)])
    def test_forward_and_transposed_are_adjoint(self, program: SmoothConvexProgram) -> None:
        """J d · w = d · Jᵀw."""
        operators = Operators(standard_form(program))
        weights = random_weights(operators, 1)
        random = np.random.default_rng(2)
        d, w = random.normal(size=operators.form.size), random.normal(size=operators.pairs)
        w[0] = 0.0
        product, _ = operators.forward(d, operators.exponents @ d, weights.values)
        back = operators.transposed(weights.values * operators.term_weights(w), w)
        assert product @ w == pytest.approx(back @ d, rel=1e-12)

    def test_derivatives_of_programs(self) -> None:
        """Central differences of the values, and the weighted gradient from the Jacobian's rows."""
        program = random_program(6, equalities=0)
        random = np.random.default_rng(0)
        u, d = 0.3 * random.normal(size=12), random.normal(size=12)
        step = 1e-6
        slope = (program.values(u + step * d) - program.values(u - step * d)) / (2 * step)
        jacobian = program.jacobian(u)
        np.testing.assert_allclose(jacobian @ d, slope, rtol=1e-6, atol=1e-7)
        weights = random.normal(size=program.row_count + 1)
        np.testing.assert_allclose(program.gradient(u, weights), jacobian.T @ weights, atol=1e-12)


class TestFactorisations:
    def test_a_singular_matrix_gets_a_larger_diagonal(self) -> None:
        vector = np.array([1.0, 2.0, 3.0])
        factor = DenseCholesky(np.outer(vector, vector))
        assert np.isfinite(factor.solve(vector)).all()

    @pytest.mark.parametrize("installed", [True, False])
    def test_superlu_takes_the_place_of_qdldl(
        self, installed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if installed:
            pytest.importorskip("qdldl")
        else:
            monkeypatch.setattr(factorisations, "_qdldl", lambda: None)
        random = np.random.default_rng(0)
        dense = random.normal(size=(20, 20)) * (random.uniform(size=(20, 20)) < 0.2)
        definite = dense @ dense.T + np.eye(20)
        border = random.normal(size=(3, 20))
        matrix = np.block([[definite, border.T], [border, -np.eye(3)]])
        upper = sp.csc_matrix(np.triu(matrix))
        factor = SparseFactor(upper.indices, upper.indptr, 23)
        for scale in (1.0, 2.0):  # the second time with the same pattern
            factor.factorise(scale * upper.data)
            solution = factor.solve(np.ones(23))
            np.testing.assert_allclose(scale * matrix @ solution, np.ones(23), atol=1e-9)


@pytest.mark.parametrize("sizes", [(3, 2, 2), (2, 2), (5,), (1, 4, 3), (2, 9, 9)])
def test_groups_of_one_size_and_a_first_one_of_another(sizes: tuple[int, ...]) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    entries = np.random.default_rng(1).normal(size=groups.size)
    table, parts = Groups(groups, len(sizes)), np.split(entries, np.cumsum(sizes)[:-1])
    np.testing.assert_allclose(table.sums(entries), [part.sum() for part in parts])
    np.testing.assert_array_equal(table.largest(entries), [part.max() for part in parts])
    values = np.arange(len(sizes)) + 0.5
    np.testing.assert_array_equal(table.spread(values), np.repeat(values, sizes))
    np.testing.assert_array_equal(table.spread(values > 1), np.repeat(values > 1, sizes))


def filled(size: int, border: int) -> tuple[Any, Any]:
    """A sparse definite matrix whose factor fills up, with a border, and its upper triangle."""
    rng = np.random.default_rng(3)
    ends = rng.integers(size, size=(2, 3 * size))
    links = sp.csr_array((rng.normal(size=3 * size), ends), shape=(size, size))
    inner = links @ links.T + sp.diags_array(np.full(size, 0.1))
    sides = sp.csr_array(rng.normal(size=(size, border)))
    whole = sp.csc_matrix(
        sp.block_array([[inner, sides], [sides.T, -sp.eye_array(border)]] if border else [[inner]])
    )
    upper = sp.csc_matrix(sp.triu(whole, format="csc"))
    upper.sort_indices()
    return whole, upper


def always_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of the matrix."""
    for name, value in (("LEAST_WORK", 0.0), ("OPERATIONS_PER_BLOCK", 0.0)):
        monkeypatch.setattr(block_factors, name, value)


@pytest.mark.parametrize("border", [0, 3])
def test_a_factorisation_by_blocks(border: int, monkeypatch: pytest.MonkeyPatch) -> None:
    always_blocks(monkeypatch)
    whole, upper = filled(150, border)
    factor = block_factors.block_factor(upper.indices, upper.indptr, 150)
    assert factor is not None
    right = np.random.default_rng(4).normal(size=150 + border)
    factor._inner.failed = True  # conjugate gradients
    for entries in (upper.data, 2 * upper.data):
        factor.factorise(entries)
        expected = np.linalg.solve(entries[0] / upper.data[0] * whole.toarray(), right)
        np.testing.assert_allclose(factor.solve(right), expected, rtol=1e-8, atol=1e-9)
    with pytest.raises(FactorisationError):
        factor.factorise(-upper.data)


def test_blocks_are_taken_where_the_factor_fills_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _, upper = filled(300, 0)
    chain_like = sp.csc_matrix(sp.diags_array([np.ones(299), np.ones(300)], offsets=[1, 0]))
    monkeypatch.setattr(block_factors, "LEAST_WORK", 1e5)
    monkeypatch.setattr(block_factors, "OPERATIONS_PER_BLOCK", 1e3)
    assert block_factors.block_factor(upper.indices, upper.indptr, 300) is not None
    assert block_factors.block_factor(chain_like.indices, chain_like.indptr, 300) is None


class TestConjugateGradients:
    @pytest.mark.parametrize("border", [0, 3])
    def test_no_factorisation_is_needed(self, border: int, monkeypatch: pytest.MonkeyPatch) -> None:
        always_blocks(monkeypatch)
        monkeypatch.setattr(block_factors, "OPERATIONS_PER_ENTRY", 1e-2)
        monkeypatch.delattr(block_factors.BlockFactor, "factorise")
        whole, upper = filled(150, border)
        factor = block_factors.block_factor(upper.indices, upper.indptr, 150)
        assert factor is not None
        right = np.random.default_rng(4).normal(size=150 + border)
        for scale in (1.0, 2.0):
            factor.factorise(scale * upper.data)
            expected = np.linalg.solve(scale * whole.toarray(), right)
            np.testing.assert_allclose(factor.solve(right), expected, rtol=1e-4, atol=1e-5)

    def test_the_preconditioner_is_above_the_matrix(self) -> None:
        """What is added for an entry that is left out is semidefinite: so it is definite if M is."""
        whole, upper = filled(150, 0)
        gradients = ConjugateGradients(upper, BlockFactor(upper), 1000)
        gradients.factorise(upper.data)
        scale = 1 / np.sqrt(whole.diagonal())
        scaled = scale[:, None] * whole.toarray() * scale
        preconditioner = np.linalg.inv(
            np.stack([gradients._preconditioner.solve(each) for each in np.eye(150)])
        )
        assert np.linalg.eigvalsh(preconditioner - scaled)[0] > -1e-9
        assert np.count_nonzero(np.triu(np.abs(preconditioner) > 1e-9, 1)) == 75

    @pytest.mark.parametrize("wrong", [-1.0, 0.0, np.nan])
    def test_a_diagonal_that_is_not_positive_is_an_error(self, wrong: float) -> None:
        _, upper = filled(150, 0)
        gradients = ConjugateGradients(upper, BlockFactor(upper), 1000)
        entries = upper.data.copy()
        entries[0] = wrong
        with pytest.raises(FactorisationError):
            gradients.factorise(entries)

    def test_a_matrix_that_is_not_definite_is_an_error(self) -> None:
        upper = sp.csc_matrix(np.array([[1.0, 2.0], [0.0, 1.0]]))
        gradients = ConjugateGradients(upper, BlockFactor(upper), 1000)
        gradients.factorise(upper.data)
        with pytest.raises(FactorisationError):
            gradients.solve(np.array([1.0, -1.0]))

    def test_equations_go_on_by_factorisation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One slow solution ends the use of conjugate gradients, and the answer is that of blocks."""
        operators = Operators(standard_form(gate_sizing(150, long=True)))
        weights = random_weights(operators, 1)
        right = np.random.default_rng(2).normal(size=operators.form.size)
        sides = (right, None, np.zeros(operators.pairs), np.zeros(0))
        entry_by_entry = SparseEquations(operators)
        entry_by_entry.factorise(weights)
        assert isinstance(entry_by_entry._factor, SparseFactor)
        always_blocks(monkeypatch)
        monkeypatch.setattr(block_factors, "OPERATIONS_PER_ENTRY", np.inf)  # no step
        equations = SparseEquations(operators)
        for _ in range(2):
            equations.factorise(weights)
            expected = entry_by_entry.solve(*sides).u
            np.testing.assert_allclose(equations.solve(*sides).u, expected, rtol=1e-6, atol=1e-9)
        assert equations._factor._inner.failed

    def test_long_wires_are_solved_without_a_factorisation(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """10,000 gates took 336 s by factorisations of 10¹¹ operations each, and take 14 s."""
        program = gate_sizing(150, long=True)
        expected = solve(program)
        always_blocks(monkeypatch)
        monkeypatch.setattr(block_factors, "OPERATIONS_PER_ENTRY", 1e-2)
        monkeypatch.delattr(block_factors.BlockFactor, "factorise")
        found = solve(program)
        assert found.status is InteriorPointStatus.SOLVED
        assert found.residuals.largest <= 1e-9
        assert found.value == pytest.approx(expected.value, rel=1e-9)
        assert found.iterations == expected.iterations
