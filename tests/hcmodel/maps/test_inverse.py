"""The inverse map: covariances by their inverses, and normal distributions by natural parameters."""

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps import inverse
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms
from tests.proven import is_proven

POINTS = np.random.default_rng(0).normal(size=(12, 3)) @ np.diag([1.0, 0.6, 1.4]) + [1.0, -2.0, 0.5]
MEAN = POINTS.mean(axis=0)
SECOND = POINTS.T @ POINTS / 12
COVARIANCE = np.cov(POINTS.T, bias=True)


def likelihood(covariance: np.ndarray) -> float:
    """The least value of logdet(Σ) + trace(S Σ⁻¹), at Σ = S."""
    return float(np.linalg.slogdet(covariance)[1] + covariance.shape[0])


def by_trace(matrix: hc.Variable) -> hc.Expression:
    return hc.logdet(matrix) + hc.trace(COVARIANCE @ hc.inv(matrix))


def by_scaled_parts(matrix: hc.Variable) -> hc.Expression:
    """Twice Σ in both functions, half of the other sides, transposed."""
    inner = hc.trace(hc.inv(2 * matrix).T @ COVARIANCE.T) * 2
    return inner + hc.logdet(2 * matrix) - 3 * np.log(2.0)


def by_fractions(matrix: hc.Variable) -> hc.Expression:
    centred = (POINTS - MEAN).T / np.sqrt(12)
    return hc.matrix_frac(centred, matrix) + hc.logdet(matrix)


def by_solving(matrix: hc.Variable) -> hc.Expression:
    return hc.trace(hc.solve(matrix, COVARIANCE)) + hc.logdet(matrix)


@pytest.mark.parametrize("written", [by_trace, by_scaled_parts, by_fractions, by_solving])
def test_the_likelihood_of_a_covariance_is_proven_however_it_is_written(written):
    matrix = hc.Variable((3, 3), name="Sigma", PSD=(1e-2, 1e2), symmetric=True)
    problem = hc.Problem(hc.Minimize(written(matrix)))
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in inv(Sigma)" in problem.solution.method
    assert problem.value == pytest.approx(likelihood(COVARIANCE), rel=1e-7)
    assert matrix.value == pytest.approx(COVARIANCE, abs=1e-3)


def test_bounds_on_the_covariance_are_kept():
    """Against CVXPY in the inverse."""
    cvxpy = pytest.importorskip("cvxpy")
    limit = np.diag([0.9, 0.5, 1.5])
    matrix = hc.Variable((3, 3), name="Sigma", PSD=(1e-2, 1e2), symmetric=True)
    problem = hc.Problem(hc.Minimize(by_trace(matrix)), [hc.trace(matrix) <= 2.2, matrix << limit])
    problem.solve()
    u = cvxpy.Variable((3, 3), PSD=True)
    objective = cvxpy.trace(COVARIANCE @ u) - cvxpy.log_det(u)
    rows = [cvxpy.tr_inv(u) <= 2.2, u >> np.linalg.inv(limit)]
    reference = cvxpy.Problem(cvxpy.Minimize(objective), rows).solve("CLARABEL")
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(reference, rel=1e-6)
    assert np.linalg.eigvalsh(limit - matrix.value).min() >= -1e-6


@pytest.mark.parametrize("language", [False, True])
def test_a_normal_distribution_is_fitted_in_natural_parameters(language):
    """The maximum of the likelihood is at the mean and the covariance of the points."""
    if language:
        text = """
            param k, n, x[k,n]
            var S[n,n] symmetric in psd(0.01, 100)
            var mu[n]
            minimize k*logdet(S) + sum(quad_form(x[i,:] - mu, inv(S)) for i in 1..k)
        """
        problem = hc.parse(text, data={"x": POINTS.tolist()})
    else:
        matrix = hc.Variable((3, 3), name="S", PSD=(1e-2, 1e2), symmetric=True)
        mean = hc.Variable(3, name="mu")
        fractions = sum(hc.matrix_frac(each - mean, matrix) for each in POINTS)
        problem = hc.Problem(hc.Minimize(12 * hc.logdet(matrix) + fractions))
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in inv(S), mu @ U" in problem.solution.method
    assert problem.value == pytest.approx(12 * likelihood(COVARIANCE), rel=1e-7)
    assert problem.solution.point["mu"] == pytest.approx(MEAN, abs=1e-3)


def test_likelihoods_that_are_not_concave_in_the_inverse_are_not_claimed():
    matrix = hc.Variable((3, 3), name="Sigma", PSD=(1e-2, 1e2), symmetric=True)
    for problem in (
        hc.Problem(hc.Minimize(-by_trace(matrix))),
        hc.Problem(hc.Minimize(by_trace(matrix)), [hc.trace(matrix) >= 9]),
        hc.Problem(hc.Minimize(by_trace(matrix)), [matrix[0, 1] == 0]),
    ):
        assert discover(Forms(problem.model).bounds.after).substitution is None


def test_a_bound_that_is_not_definite_is_named():
    matrix = hc.Variable((3, 3), name="Sigma", PSD=True)
    problem = hc.Problem(hc.Minimize(by_trace(matrix)), [matrix << np.diag([1.0, 1.0, 0.0])])
    found = discover(Forms(problem.model).bounds.after)
    assert any("not positive definite" in each.reason for each in found.obstacles)


def test_a_wrong_rule_is_caught_by_the_comparison(monkeypatch):
    wrong = 0, lambda others, inner, logdet: -logdet
    monkeypatch.setitem(inverse.RULES, "logdet", wrong)
    matrix = hc.Variable((3, 3), name="Sigma", PSD=(1e-2, 1e2), symmetric=True)
    found = discover(Forms(hc.Problem(hc.Minimize(by_trace(matrix))).model).bounds.after)
    assert found.substitution is None


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_the_logarithm_of_a_determinant_is_that_of_the_likelihood(scale: float) -> None:
    """log(det(c Σ)) as it is written in books; the covariance is that of the data."""
    seen = np.array([[1.0, 0.5], [0.5, 2.0]])
    covariance = hc.Variable((2, 2), name="covariance", PSD=1e-4)
    fit = hc.trace(hc.inv(covariance) @ seen)
    problem = hc.Problem(hc.Minimize(hc.log(hc.det(scale * covariance)) + fit))
    problem.solve()
    assert problem.status == "optimal"
    expected = 2 + np.log(np.linalg.det(scale * seen))
    assert problem.value == pytest.approx(expected, rel=1e-6)
    assert covariance.value == pytest.approx(seen, rel=1e-4)


def test_a_determinant_of_a_matrix_that_may_be_indefinite_is_left() -> None:
    """det > 0 also where both eigenvalues are negative: there log(det) is no log det."""
    matrix = hc.Variable((2, 2), name="matrix", symmetric=True, bounds=(-2, 2))
    problem = hc.Problem(hc.Maximize(hc.log(hc.det(matrix)) - hc.trace(matrix)))
    assert not is_proven(problem)
