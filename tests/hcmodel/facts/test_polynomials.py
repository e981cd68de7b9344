"""Expressions multiplied out: equal ones have equal sums, however they are written."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.leaves import Expression
from hcmodel.facts import expansion, polynomials
from hcmodel.facts.expansion import expand
from hcmodel.facts.polynomials import Coding, Sums, TooLargeError

GENERATOR = np.random.default_rng(3)
A = GENERATOR.normal(size=(3, 3))
C = GENERATOR.normal(size=(2, 2))
P = hc.Variable((3, 3), PSD=True, name="P")
K = hc.Variable((2, 3), name="K")
x = hc.Variable(3, name="x", bounds=(0.5, 2))
cap = hc.Parameter(name="cap", value=2.0)

EQUAL: dict[str, tuple[Expression, Expression]] = {
    "trace of a product is cyclic": (hc.trace(C @ K @ P @ K.T), hc.trace(P @ K.T @ C @ K)),
    "a sum of entries": (
        hc.trace(A @ P),
        sum(A[i, j] * P[j, i] for i in range(3) for j in range(3)),
    ),
    "an elementwise product": (hc.trace(A @ P), hc.sum(A.T * P)),
    "an indexed product": (
        K @ P,
        hc.vstack(
            *[
                hc.hstack(*[sum(K[a, i] * P[i, j] for i in range(3)) for j in range(3)])
                for a in range(2)
            ]
        ),
    ),
    "transposes": ((K @ P).T, P @ K.T),
    "einsum": (hc.einsum("ai,ij->aj", K, P), K @ P),
    "a quadratic form": (hc.quad_form(x, A), hc.sum(hc.outer(x, x) * A)),
    "distributed": ((A + np.eye(3)) @ P, A @ P + P),
    "a parameter": (cap * x, 2.0 * x),
    "products along an axis": (
        hc.prod(
            hc.outer(x, x) * np.array([[1.0, 2.0, -3.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]), axis=1
        ),
        hc.hstack(-6 * x[0] ** 3 * hc.prod(x), 0 * x[0], x[2] ** 3 * hc.prod(x)),
    ),
    "a product of powers": (hc.prod(x ** np.array([0.5, 0.0, 2.0])), x[0] ** 0.5 * x[2] ** 2),
    "a square": (hc.square(x), x * x),
    "logarithms of products": (hc.log(2 * x[0] * x[1]), np.log(2) + hc.log(x[0]) + hc.log(x[1])),
    "entropies": (hc.rel_entr(x, 2.0), -hc.entr(x) - np.log(2) * x),
    "quotients": (x[0] / (x[1] + x[2]), (3 * x[0]) / (3 * x[2] + 3 * x[1])),
    "exponentials": (hc.exp(x + 1.0), np.exp(1.0) * hc.exp(x)),
    "differences": (x - x, 0.0 * x),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_expressions_have_equal_sums(name: str) -> None:
    """The two ways to write it are multiplied out over the same symbols."""
    (one, two), _ = expand(EQUAL[name])
    assert one.shape == two.shape
    assert one.equals(two)


def test_different_expressions_have_different_sums() -> None:
    """A weight, a factor or a transpose that is another one is seen."""
    for one, two in (
        (hc.trace(A @ P), hc.trace(A @ P) * 1.001),
        (K @ P, 1.0 * K @ P @ A),
        (A @ P, P @ A),
        (hc.exp(x), hc.exp(1.01 * x)),
    ):
        (left, right), _ = expand([one, two])
        assert not left.equals(right)


def test_the_numbers_are_those_of_the_expression() -> None:
    """Sums evaluated at a point are the value of the expression."""
    from hcmodel.maps.algebra.expanded import Evaluation

    root = np.full((3, 3), 0.3) + np.eye(3)
    values = {P: root @ root.T, K: GENERATOR.normal(size=(2, 3)), x: np.array([0.6, 1.1, 1.9])}
    for variable, value in values.items():
        variable.value = value
    for expression, _ in EQUAL.values():
        (sums,), symbols = expand([expression])
        assert Evaluation(symbols, values).of(sums) == pytest.approx(expression.value)


def test_products_that_are_too_long_are_refused() -> None:
    """A product of more factors than a key has digits."""
    coding = Coding.of(2**20)
    one = Sums.symbols(np.array([5]), coding)
    longest = one
    for _ in range(coding.most - 1):
        longest = longest.times(one)
    with pytest.raises(TooLargeError):
        longest.times(one)


def test_what_cancels_to_rounding_is_gone() -> None:
    """0.1 + 0.2 - 0.3 is no term."""
    (sums,), _ = expand([0.1 * x + 0.2 * x - 0.3 * x])
    assert sums.key.size == 0


def test_large_sums_are_compared_though_their_difference_would_be_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = np.arange(9).reshape(3, 3)
    one = Sums.symbols(numbers, Coding.of(2**20))
    other = Sums.symbols(numbers + (numbers == 4), Coding.of(2**20))
    symmetric = one + one.transposed()
    monkeypatch.setattr(polynomials, "MOST_TERMS", 20)
    assert symmetric.equals(symmetric.transposed())
    assert not one.equals(other)


@pytest.mark.parametrize(("name", "limit"), [("MOST_PROBED", 8), ("MOST_TERMS", 5)])
def test_long_cumulative_sums_are_not_multiplied_out(name, limit, monkeypatch) -> None:
    """6,000 entries make 18 million terms, whose listing took five seconds; they stay one symbol each."""
    monkeypatch.setattr(expansion, name, limit)
    monkeypatch.setattr(polynomials.Sums, "taken", None)  # what lists them is not reached
    (found,), _ = expansion.expand([hc.cumsum(x)])
    assert found.counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize("width", range(7))
def test_digits_and_keys_are_inverse_whatever_the_order(width: int) -> None:
    coding = Coding.of(100)
    digits = np.random.default_rng(width).integers(0, 100, size=(50, width))
    keys = coding.keys(digits)
    found = coding.digits(keys)
    expected = -np.sort(-digits, axis=1)[:, : found.shape[1]]
    np.testing.assert_array_equal(found[:, : expected.shape[1]], expected)
    assert not found[:, expected.shape[1] :].any()
    np.testing.assert_array_equal(coding.keys(found), keys)


def test_products_of_too_many_factors_have_no_key() -> None:
    coding = Coding.of(100)
    factors = np.ones((2, coding.most + 1), dtype=np.int64)
    with pytest.raises(TooLargeError):
        coding.keys(factors)
    factors[:, 0] = 0
    assert (coding.keys(factors) > 0).all()


@pytest.mark.parametrize("largest", [3, 2**20, 2**61])
@pytest.mark.parametrize("ordered", [True, False])
def test_equal_terms_are_added_up_however_long_their_keys_are(largest: int, ordered: bool) -> None:
    random = np.random.default_rng(6)
    entry, key = (
        random.integers(0, 5, size=40),
        random.choice([0, 1, largest - 1, largest], size=40),
    )
    weight = random.normal(size=40)
    if ordered:
        place = np.unique(np.stack([entry, key]), axis=1, return_index=True)[1]
        entry, key, weight = entry[place], key[place], weight[place]
    found = Sums.merged((5,), entry, key, weight, Coding.of(100))
    expected: dict[tuple[int, int], float] = {}
    for each in zip(entry.tolist(), key.tolist(), weight.tolist(), strict=True):
        expected[each[:2]] = expected.get(each[:2], 0.0) + each[2]
    assert list(zip(found.entry.tolist(), found.key.tolist(), strict=True)) == sorted(expected)
    np.testing.assert_allclose(found.weight, [expected[each] for each in sorted(expected)])


def test_the_number_that_a_sum_is_times_another_is_found_term_by_term() -> None:
    coding = Coding.of(20)
    terms = np.array([1, 2, 3])
    entry = np.zeros(3, dtype=np.intp)

    def of(*weights: float) -> Sums:
        return Sums((), entry, terms, np.array(weights), coding)

    assert of(3.0, -6.0, 1.5).multiple_of(of(2.0, -4.0, 1.0)) == 1.5
    assert of(-0.1, -0.2, -0.3).multiple_of(of(0.1, 0.2, 0.3)) == pytest.approx(-1.0)
    # small terms count as much as large ones
    assert of(1.0, 2e-14, 1.0).multiple_of(of(1.0, 1e-14, 1.0)) is None
    assert of(1.0, 1.0, 2.0).multiple_of(of(1.0, 1.0, 1.0)) is None
    other = Sums((), entry, np.array([1, 2, 4]), np.ones(3), coding)
    assert of(1.0, 1.0, 1.0).multiple_of(other) is None
    nothing = Sums.constant(0.0, coding)
    assert of(1.0, 1.0, 1.0).multiple_of(nothing) is None
    assert nothing.multiple_of(nothing) is None
