"""Bounds of nodes in cone programs, on models whose least value follows from monotonicity.

Each model is solved once; the value of the program and the value of the model at its point both have to
be the number by hand (`cone_values.solved`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.leaves import Apply
from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.cone import Cone
from hcmodel.reductions.cone.cone_bounds import Translation
from hcmodel.reductions.cone.cone_sides import NoConeForm, Side
from hcmodel.solvers.qp import solve_cone
from tests.hcmodel.reductions.cone_values import solved

LOW, HIGH = 0.4, 3.0


def kinds(program: Any) -> Counter[str]:
    """How many rows there are in cones of each kind."""
    found: Counter[str] = Counter()
    for cone in program.cones:
        found[cone.kind.name] += cone.size
    return found


# ---- differences through logarithms: t <= log(a − b) as exp(t − log a) + exp(log b − log a) <= 1


@pytest.mark.parametrize(
    ("make", "value"),
    [
        pytest.param(lambda x: 1 / (x[0] - 0.1 * x[1]), 1 / (HIGH - 0.1 * LOW), id="of variables"),
        pytest.param(lambda x: x[1] / (4 - x[0]), LOW / (4 - LOW), id="a number less a variable"),
        pytest.param(
            lambda x: x[1] / (20 - x[0] * x[1] - x[0]), LOW / (20 - LOW**2 - LOW), id="less a sum"
        ),
        pytest.param(
            lambda x: -x[1] / (x[0] * x[1] - 20), LOW / (20 - LOW**2), id="negative with its sign"
        ),
        pytest.param(
            lambda x: hc.sum(1 / (20 - x * x[::-1] - x[0])), 2 / (20 - LOW**2 - LOW), id="arrays"
        ),
    ],
)
def test_logarithms_of_differences(make: Callable[[Any], Any], value: float) -> None:
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    found, program = solved(hc.Minimize(make(x)), hidden=[hc.log(x)])
    assert found == pytest.approx(value, rel=1e-6)
    assert kinds(program)["EXPONENTIAL"]  # and no other bent cone
    assert set(kinds(program)) == {"EXPONENTIAL", "NONNEGATIVE"}


def test_a_difference_of_arrays_that_broadcast_is_bounded_entry_by_entry() -> None:
    # 6 − x[j] − x[i] >= 4/x[j]: at i = j it holds between the roots 1 and 2 of 2 t² − 6 t + 4
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    row = 6 - x - hc.reshape(x, (2, 1)) >= 4 / x
    value, _ = solved(hc.Minimize(hc.prod(x)), [row], hidden=[hc.log(x)])
    assert value == pytest.approx(1.0, rel=1e-5)


# ---- sums


def test_a_sum_of_powers_in_a_row_is_one_sum_of_exponentials() -> None:
    """x₀ x₁ + 1/x₁ <= 3 x₀: two cones for two terms, 1 − z₁ − z₂ >= 0, and no unknown for the sum."""
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    _, program = solved(
        hc.Minimize(1 / (x[0] * x[1])), [x[0] * x[1] + 1 / x[1] <= 3 * x[0]], hidden=[hc.log(x)]
    )
    assert program.linear.size == 2 + 2
    assert kinds(program) == {"EXPONENTIAL": 6, "NONNEGATIVE": 4 + 1}


@pytest.mark.parametrize(
    ("make", "terms"),
    [
        pytest.param(lambda x: (x[0] + 1 / x[1]) * x[1] ** 0.5 + 1 / x[0], 3, id="times a power"),
        pytest.param(lambda x: x[1] ** 0.5 * (x[0] + 1 / x[1]) + 1 / x[0], 3, id="a power times"),
        pytest.param(lambda x: (x[0] + x[1]) / x[0] ** 2 + 1 / x[1], 3, id="over a power"),
        pytest.param(
            lambda x: -(np.array([-3.0, -0.5]) @ x) + 1 / x[0], 3, id="weights below 0, negated"
        ),
        pytest.param(lambda x: hc.sum(np.array([3.0, 0.5]) * x) + 1 / x[0], 3, id="weights"),
        pytest.param(lambda x: hc.sum(hc.outer(x, 1 / x)), 4, id="an array of products"),
        pytest.param(lambda x: x @ (1 / x[::-1]) + x[0], 3, id="a contraction"),
    ],
)
def test_sums_of_powers_are_multiplied_out(make: Callable[[Any], Any], terms: int) -> None:
    """One cone for each term, t for the logarithm of the sum, and nothing for the sums inside."""
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    _, program = solved(hc.Minimize(make(x)), hidden=[hc.log(x)])
    assert program.linear.size == 2 + 1 + terms
    assert kinds(program)["EXPONENTIAL"] == 3 * terms


def test_a_product_of_two_sums() -> None:
    # (x₀ + x₁)(x₀ + 1/x₁) with x₁ = 1 at x₀ = 0.4, where its slope by x₁, 0.4 − 0.4/x₁², is 0
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    value, _ = solved(hc.Minimize((x[0] + x[1]) * (x[0] + 1 / x[1])), hidden=[hc.log(x)])
    assert value == pytest.approx(1.4**2, rel=1e-6)


# ---- signs and factors


def test_sizes_of_negative_affine_functions_have_logarithms() -> None:
    # (x₀ − 5)(x₁ − 5) is largest at 0.4, where both factors are −4.6
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    value, _ = solved(hc.Maximize((x[0] - 5) * (x[1] - 5)), hidden=[x])
    assert value == pytest.approx(4.6**2, rel=1e-6)


def test_factors_that_may_be_zero() -> None:
    # with x₀ <= 3: (√x₀ + √x₁) √x₁ and min(x₀, 2 x₁) x₁ are largest at the upper ends
    x = hc.Variable(2, name="x", bounds=(0, HIGH))
    roots = (hc.sqrt(x[0]) + hc.sqrt(x[1])) * hc.sqrt(x[1])
    assert solved(hc.Maximize(roots))[0] == pytest.approx(2 * HIGH, rel=1e-6)
    least = hc.minimum(x[0], 2 * x[1]) * x[1]
    assert solved(hc.Maximize(least))[0] == pytest.approx(HIGH**2, rel=1e-6)


def test_reciprocals_of_negative_numbers_from_below() -> None:
    w = hc.Variable(name="w", bounds=(-4, -1))
    z = hc.Variable(name="z", bounds=(-2, 2))
    assert solved(hc.Maximize(1 / w + z))[0] == pytest.approx(2 - 1 / 4, rel=1e-6)
    # exp(z)/w + z has the slope −exp(z)/4 + 1 at w = −4: z = log 4
    assert solved(hc.Maximize(hc.exp(z) / w + z))[0] == pytest.approx(np.log(4) - 1, rel=1e-6)


def test_products_of_negative_numbers_from_below() -> None:
    # their sizes are log-convex: 1/(w₀ w₁ w₂) is −1/64 at −4
    w = hc.Variable(3, name="w", bounds=(-4, -1))
    z = hc.Variable(name="z", bounds=(-2, 2))
    value, program = solved(hc.Maximize(1 / (w[0] * w[1] * w[2]) + z))
    assert value == pytest.approx(2 - 1 / 64, rel=1e-6)
    assert set(kinds(program)) == {"EXPONENTIAL", "NONNEGATIVE"}


def test_concave_factors_are_positive_where_a_root_of_them_is_defined() -> None:
    # 5 − z² has both signs for z up to 2.5; it is 4 at z = 1
    z = hc.Variable(name="z", bounds=(1, 2.5))
    x = hc.Variable(name="x", bounds=(LOW, HIGH))
    value, _ = solved(hc.Maximize(hc.sqrt(5 - z**2) * hc.sqrt(3 - z)))
    assert value == pytest.approx(2 * np.sqrt(2), rel=1e-6)
    value, _ = solved(hc.Minimize(1 / (x * (5 - z**2) ** 0.7)))
    assert value == pytest.approx(1 / (HIGH * 4**0.7), rel=1e-6)
    value, _ = solved(hc.Minimize((5 - z**2) ** -0.7 / x))
    assert value == pytest.approx(1 / (HIGH * 4**0.7), rel=1e-6)
    value, _ = solved(hc.Maximize((5 - z**2) ** 1.5))
    assert value == pytest.approx(8.0, rel=1e-6)


def test_atoms_of_sizes_have_logarithms_of_negative_arguments() -> None:
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    value, _ = solved(hc.Minimize(hc.abs(-x[0] - x[1]) * x[0]), hidden=[hc.log(x)])
    assert value == pytest.approx(2 * LOW**2, rel=1e-6)


# ---- squares


def test_exponentials_among_squares() -> None:
    # exp(z₀) = exp(z₀/2)², so that exp(z₀) + z₁² <= 5 is one norm; z₀ is largest at z₁ = 0
    z = hc.Variable(2, name="z", bounds=(-2, 2))
    value, program = solved(hc.Maximize(z[0]), [hc.exp(z[0]) + z[1] ** 2 <= 5])
    assert value == pytest.approx(np.log(5), rel=1e-6)
    assert kinds(program)["SECOND_ORDER"] == 4  # t + 1, two squares and t − 1
    # in the objective they are not squares: their cone is simpler
    _, program = solved(hc.Minimize(hc.exp(z[0]) + z[1] ** 2))
    assert program.quadratic.nnz == 1
    assert kinds(program)["EXPONENTIAL"] == 3


def test_a_logarithmic_coordinate_beside_a_square() -> None:
    # x₀ + z² <= 5 holds x₀ <= 5 at z = 0, and 1/x₀ is least there
    x, z = hc.Variable(name="x", bounds=(LOW, 9)), hc.Variable(name="z", bounds=(-2, 2))
    value, _ = solved(hc.Minimize(1 / x), [x + z**2 <= 5], hidden=[hc.log(x), z])
    assert value == pytest.approx(1 / 5, rel=1e-6)
    value, _ = solved(
        hc.Minimize(hc.sqrt(x + z**2) + 1 / x), [x * hc.exp(z) >= 1], hidden=[hc.log(x), z]
    )
    # √x + 1/x with z = 0 is least at x = 2^(2/3), and larger z only adds
    assert value == pytest.approx(2 ** (1 / 3) + 2 ** (-2 / 3), rel=1e-6)


def test_sums_of_squares_that_are_moved() -> None:
    """(t − 1)² + t² is at most 5 up to t = 2, and at most 1 up to t = 1."""
    z = hc.Variable(2, name="z", bounds=(-9, 9))
    sums = (z - 1) ** 2 + z**2
    value, program = solved(hc.Maximize(z[0] + 10 * z[1]), [sums[::-1] <= np.array([5.0, 1.0])])
    assert value == pytest.approx(1 + 10 * 2, rel=1e-6)
    assert kinds(program)["SECOND_ORDER"] == 2 * 4  # a cone for each entry, of two squares
    rows = hc.vstack([sums, z[::-1] ** 2]) <= np.array([[5.0, 1.0], [2.0, 2.0]])
    value, _ = solved(hc.Maximize(hc.sum(z)), [rows])
    assert value == pytest.approx(np.sqrt(2) + 1, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda z: hc.sqrt(hc.max((z - 1) ** 2)),
        lambda z: hc.max((z - 1) ** 2) / (10 + z[0]),
        lambda z: (hc.max((z - 1) ** 2) + z[0] ** 2) / (10 + z[0]),
    ],
    ids=["a root", "over an affine function", "in a sum"],
)
def test_maxima_of_squares_are_no_sums_of_squares(make: Callable[[Any], Any]) -> None:
    """They have convex roots, so that these models are proven; there is no cone form, and no error."""
    z = hc.Variable(2, name="z", bounds=(-9, 9))
    problem = hc.Problem(hc.Minimize(make(z) + 0.1 * z[0]))
    with pytest.raises(hc.ModelError, match="has no cone form"):
        problem.get_problem_data()


# ---- squares in the objective


@pytest.mark.parametrize(
    ("make", "factor", "slope", "constant"),
    [
        pytest.param(lambda x: 2 * (hc.sum_squares(x) + hc.sum(x) + 5), 4.0, 2.0, 10.0, id="times"),
        pytest.param(lambda x: (hc.sum_squares(x) - 3 * hc.sum(x)) / 4, 0.5, -0.75, 0, id="over"),
        pytest.param(lambda x: -2 * (3 - hc.sum_squares(x)), 4.0, 0.0, -6.0, id="less than 0"),
        pytest.param(
            lambda x: hc.sum(x) - (1 - 3 * hc.quad_form(x, np.eye(2))), 6.0, 1.0, -1.0, id="a form"
        ),
        pytest.param(lambda x: hc.sum_squares(x - 1) + 0 * x[0], 2.0, -2.0, 2.0, id="shifted"),
    ],
)
def test_factors_of_squares_in_the_objective(
    make: Callable[[Any], Any], factor: float, slope: float, constant: float
) -> None:
    """w Σ x² + s Σ x + c has P = 2 w I, q = s and the constant c, and no cone but bounds."""
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    _, program = solved(hc.Minimize(make(x)))
    assert program.quadratic.toarray() == pytest.approx(factor * np.eye(2))
    assert program.linear == pytest.approx(np.full(2, slope))
    assert program.constant == pytest.approx(constant)
    assert kinds(program) == {"NONNEGATIVE": 4}


@pytest.mark.parametrize(
    ("make", "value"),
    [
        # over x in [0.4, 3]: the square is least at 0.4, the quotient where the divisor is largest
        pytest.param(lambda x: x[0] ** 2 * (3 / (x[1] + 1)), 3 * LOW**2 / 4, id="3 over"),
        pytest.param(lambda x: 5 * (x[0] ** 2 / (x[1] + 1)), 5 * LOW**2 / 4, id="5 times"),
        pytest.param(
            lambda x: -((x[0] - 5) ** 2 / (x[1] - 4)), 4 / 3.6, id="over negative numbers"
        ),
        pytest.param(
            lambda x: x[0] ** 2 * (2 / (x[1] - 4)) * -1, 2 * LOW**2 / 3.6, id="2 over negative ones"
        ),
        # both entries are 2² over 4 at x = 3
        pytest.param(lambda x: hc.sum((x - 5) ** 2 / (x[1] + 1)), 2.0, id="a sum of quotients"),
    ],
)
def test_squares_over_affine_functions(make: Callable[[Any], Any], value: float) -> None:
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    found, program = solved(hc.Minimize(make(x)), hidden=[x])
    assert found == pytest.approx(value, rel=1e-6)
    assert kinds(program)["SECOND_ORDER"]


# ---- the least relaxation


@pytest.mark.parametrize(
    ("make", "logs", "amount"),
    [
        # a row between logarithms gives by a factor: 0.4 + 0.4 is twice 0.4
        pytest.param(lambda x: x[0] + x[1] <= LOW, True, np.log(2), id="a sum between logarithms"),
        # other rows give relative to the size of their numbers: 2 log 0.4 is to be 3 log 0.4
        pytest.param(lambda x: x[0] * x[1] <= LOW**3, True, 1 / 3, id="a product"),
        pytest.param(lambda x: x[0] * x[1] == LOW**3, True, 1 / 3, id="an equality of products"),
        pytest.param(lambda x: x[0] + x[1] + 8 <= 0.0, False, (8 + 2 * LOW) / 8, id="a plain row"),
        pytest.param(lambda x: x[0] + x[1] == -8.0, False, (8 + 2 * LOW) / 8, id="an equality"),
        pytest.param(lambda x: x[0] + x[1] == 8.0, False, 2 / 8, id="from the other side"),
    ],
)
def test_the_least_amount_by_which_rows_have_to_give(
    make: Callable[[Any], Any], logs: bool, amount: float
) -> None:
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    own = [hc.log(x)] if logs else [x]
    form = hc.Problem(hc.Minimize(x[0]), [make(x)], hidden=own).forms().hidden()
    assert form is not None
    assert isinstance(form.cone, Cone)
    relaxed = form.cone.relaxed()
    solution = solve_cone(relaxed.program)
    assert solution.primal[relaxed.amount] == pytest.approx(amount, abs=1e-6)


# ---- ways that fail


@pytest.fixture
def translation() -> Translation:
    x = hc.Variable(2, name="x", bounds=(LOW, HIGH))
    form = hc.Problem(hc.Minimize(hc.exp(x[0]) + hc.exp(x[1]) + hc.norm(x))).forms().hidden()
    assert form is not None
    assert form.last is not None
    return Translation(form.chain.end.before, form.last, {})


def test_what_a_way_began_is_taken_back_before_the_next(translation: Translation) -> None:
    """Bounds that are kept without their rows would bound nothing."""
    nodes = [node for node in translation.model.nodes if isinstance(node, Apply)]
    (norm,) = [node for node in nodes if node.atom.name == "norm"]
    bent = next(node for node in nodes if node.atom.name == "exp")
    before = translation.rows.mark()

    def begin(expression: Apply, side: Side) -> None:
        translation.plain(bent, side)
        translation.plain(norm, side)
        assert translation.norms

    def finish(expression: Apply, side: Side) -> Affine:
        assert translation.rows.mark() == before
        assert not translation.norms
        return translation.plain(bent, side)

    found = translation._first(bent, Side.ABOVE, (begin, finish), "")
    assert found.matrix is not None
    assert found.matrix.indices.tolist() == [before.size]
    assert translation.rows.size == before.size + 1
    assert len(translation.rows.blocks) == before.blocks + 1


def test_the_first_reason_is_the_one_that_is_given(translation: Translation) -> None:
    node = next(node for node in translation.model.nodes if isinstance(node, Apply))

    def stops(reason: str) -> Callable[[Apply, Side], Affine | None]:
        def way(expression: Apply, side: Side) -> Affine | None:
            raise NoConeForm(expression, reason)

        return way

    ways = (stops("one"), lambda expression, side: None, stops("two"))
    with pytest.raises(NoConeForm, match="one"):
        translation._first(node, Side.ABOVE, ways, "three")
    with pytest.raises(NoConeForm, match="three"):
        translation._first(node, Side.ABOVE, ways[1:2], "three")
