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
from hcmodel.reductions.affine import Affine
from hcmodel.reductions.cone import Cone
from hcmodel.reductions.cone_bounds import Translation
from hcmodel.reductions.cone_sides import NoConeForm, Side
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
