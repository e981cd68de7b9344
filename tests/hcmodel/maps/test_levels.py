"""Ratios as rows: levels are proven however the rows are written, and nothing is claimed that is not so.

Values are those of the linear program in (y, w) written by hand, of a search over one number, or of many
local searches.
"""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import hcmodel as hc
from hcmodel.facts.polynomials import Sums
from hcmodel.maps import levels
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms
from tests.extent import ALL, first, several

A = np.array([[1.0, 2, 1], [2, 0.5, 1]])
B = np.array([3.0, 2.5])
ABOVE = np.array([2.0, 1, 0.5])
BELOW = np.array([0.5, 1, 0.2])
ROOT = np.array([[0.2, 0.0, 0.0], [0.05, 0.1, 0.0], [0.02, -0.03, 0.15]])
EXCESS = np.array([0.07, 0.03, 0.05])


def claims(problem: hc.Problem) -> bool:
    return discover(Forms(problem.model).bounds.after).substitution is not None


def maps_of(problem: hc.Problem) -> list[str]:
    found = discover(Forms(problem.model).bounds.after).substitution
    return [] if found is None else [step.name for step in found.steps]


def assert_proven(problem: hc.Problem, value: float) -> None:
    assert problem.solve() == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert problem.status == "optimal"
    assert "proven convex in t, " in problem.solution.method


def best_ratio(above: np.ndarray = ABOVE, one: float = 0.3) -> float:
    """Charnes and Cooper by hand: the linear program in (y, w)."""
    rows = np.column_stack([A, -B])
    equation = np.append(BELOW, 1.5)[None, :]
    found = linprog(-np.append(above, one), rows, np.zeros(2), equation, [1.0])
    return -float(found.fun)


# ---- a ratio of affine functions


def pair() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable(3, name="x", nonneg=True), hc.Variable(name="t")


def as_written() -> hc.Problem:
    x, t = pair()
    return hc.Problem(hc.Maximize(t), [t * (BELOW @ x + 1.5) <= ABOVE @ x + 0.3, A @ x <= B])


def on_one_side() -> hc.Problem:
    x, t = pair()
    row = ABOVE @ x - sum(x[i] * t * BELOW[i] for i in (2, 0, 1)) - t * 1.5 >= -0.3
    return hc.Problem(hc.Maximize(t), [-2 * (A @ x) >= -2 * B, row])


def divided() -> hc.Problem:
    x, t = pair()
    ratio = (ABOVE @ x + 0.3) / (BELOW @ x + 1.5)
    return hc.Problem(hc.Maximize(t), [t <= ratio, A @ x <= B])


def divided_and_not() -> hc.Problem:
    """The same row twice, once with 3 D."""
    x, t = pair()
    rows = [t <= (3 * ABOVE @ x + 0.9) / (3 * BELOW @ x + 4.5), A @ x <= B]
    return hc.Problem(hc.Maximize(t), [*rows, t * (BELOW @ x + 1.5) <= ABOVE @ x + 0.3])


def by_an_equality() -> hc.Problem:
    x, t = pair()
    return hc.Problem(hc.Minimize(-t), [t * (BELOW @ x + 1.5) == ABOVE @ x + 0.3, A @ x <= B])


def negated() -> hc.Problem:
    x, t = pair()
    row = t * (-(BELOW @ x) - 1.5) >= -(ABOVE @ x) - 0.3
    return hc.Problem(hc.Minimize(1 - 2 * t), [row, A @ x <= B])


def in_tens() -> hc.Problem:
    x, t = pair()
    row = t * (BELOW @ x / 10 + 1.5) / 7 <= (ABOVE @ x / 10 + 0.3) / 7
    return hc.Problem(hc.Maximize(t), [row, A @ x <= 10 * B])


def with_bounds() -> hc.Problem:
    x, t = hc.Variable(3, name="x", bounds=(0, 5)), hc.Variable(name="t", bounds=(-1, 20))
    return hc.Problem(hc.Maximize(t), [(BELOW @ x + 1.5) * t <= 0.3 + ABOVE @ x, A @ x <= B])


def with_parameters() -> hc.Problem:
    x, t = pair()
    above, below = (hc.Parameter(3, name=n, value=v) for n, v in (("a", ABOVE), ("c", BELOW)))
    one = hc.Parameter(name="one", value=0.3)
    row = t * (below.T @ x + 5 * one) <= above.T @ x + one
    return hc.Problem(hc.Maximize(t), [row, A @ x <= B])


def by_the_inverse() -> hc.Problem:
    """The least D/N: 1/t takes the place of the level."""
    x, _ = pair()
    t = hc.Variable(name="t", pos=True)
    return hc.Problem(hc.Minimize(t), [(BELOW @ x + 1.5) / t <= ABOVE @ x + 0.3, A @ x <= B])


def in_the_language() -> hc.Problem:
    text = """
        param A[2,3], b[2], above[3], below[3]
        var x[3] >= 0
        var t
        let cost = 1.5 + sum(below[i] * x[i] for i in 1..3)
        maximize t
        subject to
            ratio: t * cost <= sum(above[i] * x[i] for i in 1..3) + 0.3
            row[k in 1..2]: sum(A[k,i] * x[i] for i in 1..3) <= b[k]
    """
    return hc.parse(text, {"A": A, "b": B, "above": ABOVE, "below": BELOW})


SPELLINGS = (
    *(as_written, on_one_side, divided, divided_and_not, by_an_equality, in_tens, with_bounds),
    *(with_parameters, in_the_language),
)


@pytest.mark.parametrize("problem", SPELLINGS)
def test_a_level_is_proven_however_its_row_is_written(problem):
    made = problem()
    sign = 1.0 if made.model.sign < 0 else -1.0
    assert_proven(made, sign * best_ratio())


def test_functions_of_the_level_and_of_the_objective():
    assert_proven(negated(), 1 - 2 * best_ratio())
    assert_proven(by_the_inverse(), 1 / best_ratio())


def test_levels_with_one_denominator_share_it():
    """The least of two ratios, and their sum with a level each."""
    x, t = pair()
    below = BELOW @ x + 1.5
    other = np.array([0.2, 1.5, 0.7])
    rows = [t * below <= ABOVE @ x + 0.3, t * below <= other @ x + 0.1, A @ x <= B]
    y, w, s = cp.Variable(3, nonneg=True), cp.Variable(nonneg=True), cp.Variable()
    cone = [BELOW @ y + 1.5 * w == 1, A @ y <= B * w]
    by_hand = cp.Problem(
        cp.Maximize(s), [*cone, s <= ABOVE @ y + 0.3 * w, s <= other @ y + 0.1 * w]
    )
    assert_proven(hc.Problem(hc.Maximize(t), rows), by_hand.solve(solver="CLARABEL"))
    t = hc.Variable(2, name="t")
    rows = [t * below <= hc.hstack([ABOVE @ x + 0.3, other @ x + 0.1]), A @ x <= B]
    assert_proven(hc.Problem(hc.Maximize(hc.sum(t)), rows), best_ratio(ABOVE + other, 0.4))


# ---- other functions


def test_a_concave_function_over_an_affine_one():
    x, t = pair()
    y, w = cp.Variable(3, nonneg=True), cp.Variable(nonneg=True)
    above = cp.sum(-cp.rel_entr(w, w + y))
    by_hand = cp.Problem(cp.Maximize(above), [BELOW @ y + 1.5 * w == 1, A @ y <= B * w])
    rows = [t * (BELOW @ x + 1.5) <= hc.sum(hc.log(1 + x)), A @ x <= B]
    assert_proven(hc.Problem(hc.Maximize(t), rows), by_hand.solve(solver="CLARABEL"))


@pytest.mark.parametrize(
    "deviation",
    [
        lambda x: hc.norm(ROOT.T @ x),
        lambda x: hc.sqrt(hc.quad_form(x, ROOT @ ROOT.T)),
        lambda x: hc.sqrt(hc.sum_squares(x @ ROOT)),
    ],
)
def test_a_sharpe_ratio_as_a_level(deviation):
    """Without short positions no weight is 0 here, so that the ratio is that without bounds."""
    x, t = hc.Variable(3, name="x", nonneg=True), hc.Variable(name="t")
    weight = np.linalg.solve(ROOT @ ROOT.T, EXCESS)
    assert (weight > 0).all()
    problem = hc.Problem(hc.Maximize(t), [t * deviation(x) <= EXCESS @ x, hc.sum(x) == 1])
    assert_proven(problem, float(np.sqrt(EXCESS @ weight)))


def test_a_convex_function_over_a_concave_one():
    x, t = hc.Variable(name="x", bounds=(0, 9)), hc.Variable(name="t")
    row = t * (hc.sqrt(x + 1) + 1) >= hc.abs(x - 5) + 1
    grid = np.linspace(4.9, 5.1, 200_001)
    assert_proven(
        hc.Problem(hc.Minimize(t), [row]),
        float(((np.abs(grid - 5) + 1) / (np.sqrt(grid + 1) + 1)).min()),
    )


# ---- what is not claimed


def test_a_denominator_that_may_be_0_is_none():
    """At x = 0 the row says nothing, and t is unbounded."""
    x, t = hc.Variable(2, name="x", bounds=(0, 1)), hc.Variable(name="t")
    for below in first(2, [hc.sum(x), hc.norm(x), hc.sum_squares(x)]):
        problem = hc.Problem(hc.Maximize(t), [t * below <= 2 * x[0] + x[1]])
        assert "levels" not in maps_of(problem)
        assert problem.solve() == np.inf
        assert problem.status == "unbounded"
        bounded = hc.Problem(hc.Maximize(t), [*problem.constraints, x[0] >= 0.2])
        assert "levels" in maps_of(bounded)


def test_different_denominators_are_not_claimed():
    x, t = pair()
    rows = [t * (BELOW @ x + 1.5) <= ABOVE @ x, t * (x[0] + 2) <= x[1] + 1, A @ x <= B]
    assert not claims(hc.Problem(hc.Maximize(t), rows))


def test_numerators_of_several_rows_that_may_be_negative_are_not_claimed():
    """With a convex D a smaller w helps a level whose numerator is negative."""
    x, t = hc.Variable(2, name="x", bounds=(-1, 1)), hc.Variable(2, name="t")
    below = hc.sum_squares(x) + 1
    rows = [t[0] * below <= x[0] - 0.5, t[1] * below <= 3 * x[1] + 1]
    assert not claims(hc.Problem(hc.Maximize(hc.sum(t)), rows))
    rows = [t[0] * below <= x[0] + 1, t[1] * below <= x[1] + 1]
    assert claims(hc.Problem(hc.Maximize(hc.sum(t)), rows))


def test_a_ratio_that_is_nowhere_positive_is_not_certified_by_its_relaxation():
    x, t = hc.Variable(name="x", bounds=(0.1, 10)), hc.Variable(name="t")
    problem = hc.Problem(hc.Maximize(t), [t * (x**2 + x + 1) <= hc.log(x) - 5])
    problem.solve(max_calls=several(100, 500))
    grid = np.linspace(0.1, 10, 100_001)
    best = float(((np.log(grid) - 5) / (grid**2 + grid + 1)).max())
    assert problem.value == pytest.approx(best, rel=1e-6)
    assert problem.status == "locally_optimal"
    assert problem.solution.lower_bound is None


def test_a_ratio_that_is_nowhere_positive_and_affine_in_a_square_is_certified():
    """With u = x² the denominator is affine, and the sign of the numerator does not matter."""
    x, t = hc.Variable(name="x", bounds=(0.1, 10)), hc.Variable(name="t")
    problem = hc.Problem(hc.Maximize(t), [t * (x**2 + 1) <= hc.log(x) - 5])
    assert problem.solve() == pytest.approx((np.log(10) - 5) / 101, rel=1e-7)
    assert problem.status == "optimal"


def random_level(seed: int) -> tuple[hc.Problem, float]:
    """A random model with one or two levels, and the best value of many local searches."""
    generator = np.random.default_rng(seed)
    n, rows = int(generator.integers(2, 5)), int(generator.integers(1, 3))
    above, shift = generator.normal(size=(rows, n)), generator.normal(size=rows)
    below, one = generator.normal(size=n), float(generator.uniform(0.2, 2))
    limit = generator.uniform(0.2, 1, size=n)
    x, t = hc.Variable(n, name="x", bounds=(-1, 1)), hc.Variable(name="t")
    made = [t * (below @ x + one) <= above[k] @ x + shift[k] for k in range(rows)]
    problem = hc.Problem(hc.Maximize(t), [*made, limit @ x <= 0.5, below @ x + one >= 0.05])

    def ratio(v: np.ndarray) -> float:
        return float(((above @ v + shift) / (below @ v + one)).min())

    held = [
        {"type": "ineq", "fun": lambda v: 0.5 - limit @ v},
        {"type": "ineq", "fun": lambda v: below @ v + one - 0.05},
    ]
    best = -np.inf
    for start in generator.uniform(-1, 1, size=(12, n)):
        found = minimize(lambda v: -ratio(v), start, bounds=[(-1, 1)] * n, constraints=held)
        inside = np.clip(found.x, -1, 1)
        if limit @ inside <= 0.5 + 1e-12 and below @ inside + one >= 0.05 - 1e-12:
            best = max(best, ratio(inside))
    return problem, best


@pytest.mark.parametrize("seed", range(30 if ALL else 5))
def test_no_point_is_better_than_the_bound_of_random_models(seed):
    problem, best = random_level(seed)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.lower_bound >= best - 1e-7 * max(1.0, abs(best))
    assert problem.value >= best - 1e-6 * max(1.0, abs(best))


def test_a_wrong_rule_is_found_out(monkeypatch):
    """The rest of a row that is not divided with it is another model."""
    whole = levels._Entry.divided

    def wrong(self, below: int, sign: float) -> Sums:
        return whole(self, below, sign) + Sums.constant(0.25, self.rest.coding)

    assert claims(as_written())
    monkeypatch.setattr(levels._Entry, "divided", wrong)
    assert not claims(as_written())


def test_multipliers_are_those_of_the_rows_as_they_are_written():
    """By differences of the best value as the sides of the rows move."""
    x, t = pair()
    side, shift = hc.Parameter(2, name="b", value=B), hc.Parameter(name="one", value=0.3)
    rows = [t * (BELOW @ x + 1.5) <= ABOVE @ x + shift, A @ x <= side]
    problem = hc.Problem(hc.Maximize(t), rows)
    problem.solve()
    found = [np.array(row.dual_value, dtype=float) for row in rows]
    ends = []
    for sign in (1.0, -1.0):
        shift.value = 0.3 + sign * 1e-4
        ends.append(problem.solve())
    assert float(found[0]) == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-4)
    shift.value = 0.3
    for place in range(2):
        moved = []
        for sign in (1.0, -1.0):
            side.value = B + sign * 1e-4 * np.eye(2)[place]
            moved.append(problem.solve())
        expected = (moved[0] - moved[1]) / 2e-4
        assert found[1][place] == pytest.approx(expected, rel=1e-4, abs=1e-6)
