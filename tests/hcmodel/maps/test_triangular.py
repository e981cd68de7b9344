"""Triangular maps: residuals of Rosenbrock-like chains are coordinates."""

from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.facts.node_facts import Facts
from hcmodel.facts.polynomials import Coding, Sums
from hcmodel.maps import triangular
from hcmodel.maps.algebra.rewriting import substituted
from hcmodel.reductions import discovery
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.substitution import functions_after

EXAMPLES = Path(__file__).parents[3] / "examples"


def smooth() -> hc.Problem:
    x = hc.Variable(4, name="x", bounds=(-3, 3))
    residual = x[1:] - x[:-1] ** 2
    return hc.Problem(hc.Minimize((1 - x[0]) ** 2 + 100 * hc.sum_squares(residual)))


def with_kinks() -> hc.Problem:
    """Nesterov's Chebyshev-Rosenbrock function."""
    x = hc.Variable(5, name="x", bounds=(-3, 3))
    return hc.Problem(
        hc.Minimize(hc.abs(x[0] - 1) / 4 + hc.sum(hc.abs(x[1:] - 2 * x[:-1] ** 2 + 1)))
    )


def with_functions() -> hc.Problem:
    """Scalars in another order, scaled, and an exponential in place of a square."""
    last, first, middle = (hc.Variable(name=name, bounds=(-3, 3)) for name in "zxy")
    one, two = 3 * middle - 3 * hc.exp(first), 0.5 * last - 0.5 * middle * first
    return hc.Problem(hc.Minimize(one**2 + two**2 + (first - 0.5) ** 2), [one <= two])


def in_the_language() -> hc.Problem:
    text = """
        param n = 4
        var x[n] in [-3, 3]
        minimize (1 - x[1])^2 + sum(100*(x[i+1] - x[i]^2)^2 for i in 1..n-1)
    """
    return hc.parse(text)


@pytest.mark.parametrize("written", [smooth, with_kinks, with_functions, in_the_language])
def test_chains_of_residuals_are_proven_and_solved(written):
    problem = written()
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in" in problem.solution.method
    assert problem.value == pytest.approx(0.0, abs=1e-8)


def test_the_example_is_proven_with_and_without_its_map():
    text = (EXAMPLES / "rosenbrock.hc").read_text()
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("hidden"))
    for each in (text, bare):
        problem = hc.parse(each, data={"n": 6})
        problem.solve()
        assert problem.status == "optimal"
        assert "proven" in problem.solution.method
        assert problem.solution.point["x"] == pytest.approx(np.ones(6), abs=1e-4)


def test_a_bound_that_cuts_the_optimum_off_is_not_ignored():
    """x2 <= 0.5 holds at the optimum: the map loses the bound, the result does not."""
    x = hc.Variable(2, name="x", bounds=(-3, [3, 0.5]))
    problem = hc.Problem(hc.Minimize((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2))
    problem.solve()
    grid = np.linspace(0.6, 0.8, 20_001)
    best = ((1 - grid) ** 2 + 100 * (0.5 - grid**2) ** 2).min()
    assert problem.value == pytest.approx(best, rel=1e-5)
    assert x.value[1] <= 0.5 + 1e-6
    bound = problem.solution.certificate.lower_bound
    assert problem.status == "optimal"
    assert best - 1e-5 <= bound <= best + 1e-6


def test_a_residual_that_is_a_term_of_the_objective_is_no_coordinate():
    """The least value is at the bound of x1, which the map would lose."""
    x = hc.Variable(2, name="x", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(x[0] - hc.cos(3 * x[1])))
    assert discover(Forms(problem.model).bounds.after).substitution is None


def test_variables_that_stand_elsewhere_too_are_not_taken():
    x = hc.Variable(2, name="x", bounds=(-3, 3))
    residual = x[1] - x[0] ** 2
    for problem in (
        hc.Problem(hc.Minimize(residual**2 + hc.cos(3 * x[1]))),
        hc.Problem(hc.Minimize(residual**2 - x[1]), [x[1] * x[0] <= 1]),
        hc.Problem(hc.Minimize(residual**2 - (x[1] - 2 * x[0] ** 2) ** 2)),
    ):
        assert discover(Forms(problem.model).bounds.after).substitution is None


def test_a_wrong_residual_is_caught_by_the_comparison(monkeypatch):
    true = triangular._cut
    monkeypatch.setattr(
        triangular,
        "_cut",
        lambda model, found: true(model, {s: each.scaled(1.01) for s, each in found.items()}),
    )
    assert discover(Forms(smooth().model).bounds.after).substitution is None


def test_bounds_that_bend_the_wrong_way_end_a_proposal_before_the_model_is_made(monkeypatch):
    """x_2 <= 2.5 is concave in u and tried first; x_2 >= -1 stays, and everything else is made once."""
    x = hc.Variable(2, name="x", bounds=(-1, 2.5))
    c = hc.hstack([x[0] - 1, 2 * hc.abs(x[0]) + x[1] - 1])
    problem = hc.Problem(hc.Minimize(hc.norm(c, np.inf)))
    made = []

    def watched(model, steps):
        made.append([])
        for place, function in functions_after(model, steps):
            made[-1].append(place)
            yield place, function

    monkeypatch.setattr(discovery, "functions_after", watched)
    found = discover(Forms(problem.model).bounds.after)
    assert found.proof is not None
    assert made == [[1], [1, 0]]
    assert found.substitution.released == ("x",)


def test_facts_that_are_copied_grow_apart():
    x, y = hc.Variable(name="x"), hc.Variable(name="y")
    facts = Facts()
    facts.add(x + 1)
    other = facts.copy()
    assert other[x + 1].number == facts[x + 1].number
    other.add(y)
    assert (facts.variables, other.variables) == ([x], [x, y])


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_symbols_take_the_place_of_others_in_all_products(factor) -> None:
    """x·y + 2x + z with y and z in place of x and y, or with multiples of them."""
    coding = Coding.of(8)
    x, y, z = (Sums.symbols(np.array(number), coding) for number in range(3))
    found = substituted(x.times(y) + x.scaled(2.0) + z, {0: y.scaled(factor), 1: z.scaled(factor)})
    expected = y.times(z).scaled(factor**2) + y.scaled(2 * factor) + z
    assert found.equals(expected)


def test_products_that_become_equal_are_added_up() -> None:
    coding = Coding.of(8)
    x, y = (Sums.symbols(np.array(number), coding) for number in range(2))
    found = substituted(x + y.scaled(2.0) - x.times(y), {0: y})
    assert found.equals(y.scaled(3.0) - y.times(y))
