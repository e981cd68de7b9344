"""Ranges of the unknowns of a cone program, step by step, against numbers worked out by hand.

Rounding is made as large as r = 1/64 here, so that every widening of an end shows in the numbers: an end
that is widened too little, or to the wrong side, is a range that may not hold the solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.certify.duals import cone_ranges, square_ranges
from hcmodel.certify.duals.cone_ranges import ConePlaces, Range, limit_by_inner_dual, ranges
from hcmodel.certify.duals.square_ranges import by_equations, by_matrices, by_squares
from hcmodel.solvers.algebra.symmetric import to_vector
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, cone_program

FloatArray = NDArray[np.float64]
INF = np.inf
R = 2.0**-6
ZERO, POSITIVE, BALL = ConeKind.ZERO, ConeKind.NONNEGATIVE, ConeKind.SECOND_ORDER
EXP, POWER, PSD = ConeKind.EXPONENTIAL, ConeKind.POWER, ConeKind.PSD_TRIANGLE


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cone_ranges, "DATA_ROUNDING", R)
    monkeypatch.setattr(square_ranges, "DATA_ROUNDING", R)
    with np.errstate(all="ignore"):  # as `ranges` has it
        yield


def program(
    linear: Sequence[float],
    rows: Sequence[Sequence[float]],
    offset: Sequence[float],
    cones: Iterable[ConeBlock],
    quadratic: Sequence[float] | None = None,
    constant: float | None = 0.0,
) -> ConeProgram:
    squares = None if quadratic is None else np.diag(quadratic)
    matrix = np.array(rows, dtype=float).reshape(len(offset), len(linear))
    return cone_program(
        np.array(linear, dtype=float), matrix, np.array(offset, float), cones, squares, constant
    )


def sweep(of: ConeProgram, level: float = 0.0) -> cone_ranges._Sweep:
    return cone_ranges._Sweep(of, ConePlaces.of(of), level)


def close(found: FloatArray, expected: Sequence[float]) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_rows_give_ranges_to_their_unknowns_one_pass_after_the_other() -> None:
    # x >= 0, y >= −1, x + 2 y <= 10 − 3
    own = sweep(
        program([1, 2], [[-1, 0], [0, -1]], [0, 1], [ConeBlock(POSITIVE, 2)], constant=3.0), 10.0
    )
    assert own.narrow()
    close(own.x.lower, [0.0, -(1 + R)])
    close(own.x.upper, [INF, INF])
    assert not own.finite
    assert own.narrow()
    # x <= 7 − 2·(−1 − r), 2 y <= 7 − 0; the rounding of the row is that of 7 and of 2 (1 + r)
    size = 7 + 2 * (1 + R)
    close(own.x.upper, [size + R * size, (7 + R * size) / 2])
    close(own.x.lower, [0.0, -(1 + R)])
    assert own.finite
    # nothing follows from what is known now: the ends of s were known before
    assert not own.narrow()
    # s = 0 + x and 1 + y, with the rounding of both ends; the level − x − 2 y is known since before
    first, second = size + R * size, (7 + R * size) / 2
    close(own.s.lower, [0.0, 0.0, 0.0])
    close(own.s.upper[:2], [first + R * first, 1 + second + R * (1 + (1 + R) + second)])
    close(own.s.upper[2:], [size + R * size])


def test_an_entry_of_a_cone_of_second_order_is_at_most_its_first_one() -> None:
    # s = (2, 1 − x) without an unknown in the first row
    own = sweep(program([0], [[0], [1]], [2, 1], [ConeBlock(BALL, 2)]))
    assert own.narrow()
    reach = (2 + 2 * R) * (1 + R)
    close(own.s.lower[:2], [2 - 2 * R, -reach])
    close(own.s.upper[:2], [2 + 2 * R, reach])
    # x = 1 − s, where the rounding of 1 and of each end of s counts
    close(own.x.upper, [1 + reach + R + R * reach])
    close(own.x.lower, [1 - reach - R - 2 * R * reach])


def test_rows_of_an_equation_bound_an_unknown_from_both_sides() -> None:
    # 2 x − 4 y = 6 with y in [1, 2]: x is in [5, 7]
    own = sweep(program([0, 0], [[2, -4]], [6], [ConeBlock(ZERO, 1)]))
    own.x.lower[:], own.x.upper[:] = [-INF, 1.0], [INF, 2.0]
    assert own.narrow()
    wide = R * (6 + 8 + 4)
    close(own.x.lower, [(6 + 4 - wide) / 2, 1.0])
    close(own.x.upper, [(6 + 8 + wide) / 2, 2.0])


def test_a_pass_goes_on_where_a_range_becomes_much_shorter() -> None:
    own = sweep(program([0], [[1]], [0], [ConeBlock(POSITIVE, 1)]))
    before = Range(np.array([2.0]), np.array([10.0]))
    own.x = Range(np.array([2.0]), np.array([5.9]))  # less than half
    assert own._narrower(before)
    own.x = Range(np.array([2.0]), np.array([6.1]))
    assert not own._narrower(before)
    own.x = Range(np.array([-INF]), np.array([1.0]))  # no length
    assert not own._narrower(before)
    open_below = Range(np.array([-INF]), np.array([1.0]))
    own.x = Range(np.array([-9.0]), np.array([1.0]))
    assert own._narrower(open_below)
    assert not own._narrower(Range(np.array([-9.0]), np.array([1.0])))


def by_cones(cone: ConeBlock, lower: Sequence[float], upper: Sequence[float]) -> Range:
    own = sweep(program([0], [[0]] * cone.size, [0] * cone.size, [cone]))
    given = Range(np.array([*lower, 0.0]), np.array([*upper, INF]))
    return own._by_cones(given)


@pytest.mark.parametrize(
    ("y", "best"),
    [
        ((0.0, INF), 1.0),  # y·log(e/y) is largest at y = 1
        ((2.0, 3.0), 2.0),  # and falls afterwards
        ((0.0, 0.5), 0.5),  # and rises before
    ],
)
def test_the_first_entry_of_an_exponential_cone_is_at_most_y_log_z_by_y(
    y: tuple[float, float], best: float
) -> None:
    found = by_cones(ConeBlock(EXP, 3), [-INF, y[0], 0.0], [INF, y[1], np.e])
    top = best * np.log(np.e / best)
    close(found.upper[:1], [top + R * (abs(top) + best)])
    close(found.lower[:3], [-INF, y[0], 0.0])


def test_an_exponential_cone_says_nothing_without_a_largest_z() -> None:
    found = by_cones(ConeBlock(EXP, 3), [-INF, 0.0, 0.0], [INF, INF, INF])
    assert found.upper[0] == INF
    known = by_cones(ConeBlock(EXP, 3), [-INF, 0.0, 0.0], [-3.0, INF, np.e])
    assert known.upper[0] == -3.0  # what is known already stays
    at_zero = by_cones(ConeBlock(EXP, 3), [-INF, 0.0, 0.0], [INF, 1.0, 0.0])
    assert at_zero.upper[0] == 0.0  # z = 0 leaves x <= 0


def test_a_power_cone_bounds_its_last_entry_by_a_mean() -> None:
    # 16^¼ · 81^¾ = 2 · 27
    found = by_cones(ConeBlock(POWER, 3, 0.25), [0, 0, -INF], [16, 81, INF])
    close(found.upper[2:3], [54 * (1 + R)])
    close(found.lower[2:3], [-54 * (1 + R)])
    nothing = by_cones(ConeBlock(POWER, 3, 0.25), [0, 0, -INF], [0, INF, INF])
    assert nothing.upper[2] == INF  # 0 times infinity
    empty = by_cones(ConeBlock(POWER, 3, 0.25), [0, 0, -INF], [-1, 81, INF])
    assert empty.upper[2] == 0.0


def test_an_entry_of_a_semidefinite_matrix_is_at_most_the_mean_of_its_diagonal() -> None:
    # |S_01| <= √(4·9), stored times √2
    found = by_cones(ConeBlock(PSD, 3), [0, -INF, 0], [4, INF, 9])
    close(found.upper[1:2], [np.sqrt(2) * 6 * (1 + R)])
    close(found.lower[1:2], [-np.sqrt(2) * 6 * (1 + R)])


def test_cones_know_the_signs_of_their_entries() -> None:
    blocks = [
        ConeBlock(ZERO, 1),
        ConeBlock(POSITIVE, 1),
        ConeBlock(BALL, 3),
        ConeBlock(EXP, 3),
        ConeBlock(POWER, 3, 0.5),
        ConeBlock(PSD, 3),
    ]
    own = sweep(program([0], [[0]] * 14, [0] * 14, blocks))
    nothing = -INF
    ball, exponential, power = [0, nothing, nothing], [nothing, 0, 0], [0, 0, nothing]
    assert own.s.lower.tolist() == [0, 0, *ball, *exponential, *power, 0, nothing, 0, 0]
    assert own.s.upper.tolist() == [0] + [INF] * 14
    assert own.places.members.tolist() == [3, 4]
    assert own.places.tops.tolist() == [2, 2]
    assert own.places.blocks == ((2, 11),)
    assert own.places.crossed.tolist() == [12]
    assert (own.places.rows.tolist(), own.places.columns.tolist()) == ([11], [13])


def traced(
    linear: Sequence[float], offset: Sequence[float], matrix: FloatArray | None = None
) -> FloatArray:
    """Limits of the entries of a 2×2 matrix S = X + B and of x >= 1, where <C, X> + c x <= 20."""
    rows = -np.eye(4) if matrix is None else matrix
    own = sweep(
        program(linear, rows.tolist(), [*offset, -1], [ConeBlock(PSD, 3), ConeBlock(POSITIVE, 1)]),
        20.0,
    )
    own.x.lower[3] = 1.0
    upper = own.s.upper.copy()
    own._by_traces(upper)
    return upper


def test_the_objective_bounds_the_trace_of_a_definite_matrix() -> None:
    # <3 I, S> = 3 tr X + 3 <= 20 − 2·1 + 3, and the least eigenvalue is 3 but for rounding
    found = traced([3, 0, 3, 2], [1, 0, 0])
    limit = (20 - 2 + 3 + R * (20 + 2 + 3)) / (3 - R * 2 * 3)
    close(found, [limit, INF, limit, INF, INF])
    # S = 2 X + B: 3 tr X is 3/2 tr S − 3/2
    found = traced([3, 0, 3, 2], [1, 0, 0], np.diag([-2.0, -2.0, -2.0, -1.0]))
    limit = (20 - 2 + 1.5 + R * (20 + 2 + 1.5)) / (1.5 - R * 2 * 1.5)
    close(found, [limit, INF, limit, INF, INF])
    # the eigenvalues of [[2, 1], [1, 2]] are 1 and 3
    found = traced([2, np.sqrt(2), 2, 2], [0, 0, 0])
    limit = (20 - 2 + R * (20 + 2)) / (1 - R * 2 * 3)
    close(found, [limit, INF, limit, INF, INF])


def test_a_level_below_the_least_value_leaves_no_trace() -> None:
    # 3 tr X + 100 x <= 20 with x >= 1 has no solution
    found = traced([3, 0, 3, 100], [0, 0, 0])
    assert found[0] == found[2] == 0.0


def test_a_trace_is_not_bounded_by_other_objectives() -> None:
    nothing = [INF] * 5
    assert traced([1, np.sqrt(8), 1, 2], [0, 0, 0]).tolist() == nothing  # eigenvalues 3 and −1
    assert traced([0, 0, 0, 2], [0, 0, 0]).tolist() == nothing  # weighs no entry
    assert traced([3, 0, 3, -2], [0, 0, 0]).tolist() == nothing  # −2 x has no least value
    twice = np.array([[-1.0, 0, 0, 0], [0, 0, -1, 0], [-1, 0, 0, 0], [0, 0, 0, -1]])
    assert traced([3, 0, 0, 2], [0, 0, 0], twice).tolist() == nothing  # X_00 is in two entries


def test_only_the_entries_that_the_objective_weighs_are_bounded() -> None:
    # 4 X_11 <= 20 − 2: nothing of X_00; the one eigenvalue of the part is 4
    found = traced([0, 0, 4, 2], [0, 0, 0])
    close(found, [INF, INF, (18 + R * 22) / (4 - R * 4), INF, INF])


def test_the_traces_of_two_matrices_are_bounded_each_by_its_own_weights() -> None:
    # 2 X + 5 Y <= 20 with X and Y of order 1, each of which is at least 0
    own = sweep(program([2, 5], [[-1, 0], [0, -1]], [0, 0], [ConeBlock(PSD, 1)] * 2), 20.0)
    own.x.lower[:] = 0.0
    upper = own.s.upper.copy()
    own._by_traces(upper)
    close(upper, [(20 + R * 20) / (2 - 2 * R), (20 + R * 20) / (5 - 5 * R), INF])


# ---- a dual inside the cone


def test_a_dual_inside_the_cone_bounds_what_it_weighs() -> None:
    """x + y = 2, x >= −1 and 2 y >= 0, without an objective, and a level of 3.

    The vector (0, 1, 1, 1) less its part in the span of the columns (1, −1, 0, 0) and (1, 0, −2, 0):
    their products are (2, 1; 1, 5) and with the vector −1, −2, so that the multiples are −1/3 and −1/3,
    the part is (−2/3, 1/3, 2/3, 0) and d = (2/3, 2/3, 1/3, 1).
    """
    own = sweep(
        program(
            [0, 0],
            [[1, 1], [-1, 0], [0, -2]],
            [2, 1, 0],
            [ConeBlock(ZERO, 1), ConeBlock(POSITIVE, 2)],
        ),
        3.0,
    )
    limit_by_inner_dual(own)
    d = np.array([2, 2, 1, 3]) / 3
    weights = d[1:3] * (1 - R)
    # |Aᵀd| is 0 but for the rounding of its terms: 2/3 + 2/3 and 2/3 + 2·1/3
    rest = R * 4 / 3
    # bᵀd + the level, and |x| <= 1 + <d, s>/w_1, |2 y| <= <d, s>/w_2
    total = (2 * 2 / 3 + 1 * 2 / 3 + 3) * (1 + R)
    share = rest / weights[0] + rest / (2 * weights[1])
    total = (total + rest * 1) / (1 - share)
    close(own.s.upper[1:3], (total * (1 + R) / weights).tolist())
    assert own.s.upper[0] == 0.0
    assert own.s.upper[3] == INF  # the level is no entry of a cone
    close(own.s.lower, [0.0] * 4)


def test_what_rounding_leaves_of_a_dual_counts_with_known_ranges() -> None:
    """x + w + y = 2, x + w >= −1, 2 y >= −5: the columns of x and w are that of x above, d as well."""
    own = sweep(
        program(
            [0, 0, 0],
            [[1, 1, 1], [-1, -1, 0], [0, 0, -2]],
            [2, 1, 5],
            [ConeBlock(ZERO, 1), ConeBlock(POSITIVE, 2)],
        ),
        3.0,
    )
    # x and w have no row of their own, but these ranges
    own.x.lower[:2], own.x.upper[:2] = [-4.0, -2.0], [1.0, 3.0]
    limit_by_inner_dual(own)
    rest, least = R * 4 / 3, (1 - R) / 3
    total = (2 * 2 / 3 + 1 * 2 / 3 + 5 / 3 + 3) * (1 + R)
    total = (total + rest * (4 + 3) + rest * 5 / 2) / (1 - rest / (2 * least))
    close(own.s.upper[1:3], [total * (1 + R) / (2 * least), total * (1 + R) / least])


def test_a_dual_whose_rounding_outweighs_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # the share 4/3·r·(3/2 + 3/2)/(1 − r) of the program above is above one half for r = 1/8
    monkeypatch.setattr(cone_ranges, "DATA_ROUNDING", 0.125)
    rows = [[1, 1], [-1, 0], [0, -2]]
    own = sweep(program([0, 0], rows, [2, 1, 0], [ConeBlock(ZERO, 1), ConeBlock(POSITIVE, 2)]), 3.0)
    limit_by_inner_dual(own)
    assert own.s.upper[1:].tolist() == [INF, INF, INF]


def least_weights(cones: Sequence[ConeBlock], d: Sequence[float]) -> list[float]:
    rows = len(d) - 1
    own = program([0], [[0]] * rows, [0] * rows, cones)
    found: list[float] = cone_ranges._least_weights(
        ConePlaces.of(own), np.array(d, dtype=float)
    ).tolist()
    return found


def test_a_dual_weighs_an_entry_by_its_distance_from_the_edge_of_the_cone() -> None:
    less = 1 - R
    assert least_weights([ConeBlock(POSITIVE, 2)], [2, 0, 1]) == [2 * less, 0, 0]
    # 7 − |(3, 4)|
    assert least_weights([ConeBlock(BALL, 3)], [7, 3, 4, 1]) == [2 * less, 0, 0, 0]
    # eigenvalues of [[2, 1], [1, 2]] are 1 and 3, exact to r times their number times the largest
    found = least_weights([ConeBlock(PSD, 3)], [2, np.sqrt(2), 2, 1])
    least = (1 - R * 2 * 3) * less
    close(np.array(found), [least, 0, least, 0])
    found = least_weights([ConeBlock(POSITIVE, 1), ConeBlock(PSD, 3)], [5, 2, np.sqrt(2), 2, 1])
    close(np.array(found), [5 * less, least, 0, least, 0])


def test_vectors_outside_the_dual_cone_weigh_nothing() -> None:
    assert least_weights([ConeBlock(POSITIVE, 2)], [2, -1, 1]) == []
    assert least_weights([ConeBlock(BALL, 3)], [4, 3, 4, 1]) == []
    assert least_weights([ConeBlock(PSD, 3)], [1, np.sqrt(8), 1, 1]) == []
    # curved cones have no entry that a positive weight bounds alone
    assert least_weights([ConeBlock(EXP, 3), ConeBlock(POSITIVE, 1)], [0, 1, 0, 1, 1]) == []
    assert least_weights([ConeBlock(EXP, 3), ConeBlock(POSITIVE, 1)], [0, 0, 0, 1, 1]) != []


# ---- squares and equations


def test_a_sum_of_squares_bounds_its_unknowns() -> None:
    """x² + 4 y² + 4 x + 3 w + 2 <= 20 with w >= 1: (x + 2)² + 4 y² <= 20 − 2 − 3 + 4."""
    own = program([4, 0, 3], [], [], [], [2, 8, 0], 2.0)
    before = Range(np.array([-INF, -INF, 1.0]), np.full(3, INF))
    found = by_squares(own, 20.0, before)
    total = 20 - 2 - 3 + 4 + R * (20 + 2 + 3 + 4)
    first, second = np.sqrt(total) * (1 + R), np.sqrt(total / 4) * (1 + R)
    close(found.lower, [-2 - first - 2 * R, -second, 1.0])
    close(found.upper, [-2 + first + 2 * R, second, INF])


def test_a_level_below_every_square_leaves_the_middle() -> None:
    found = by_squares(program([4], [], [], [], [2], 0.0), -20.0, Range.unknown(1))
    close(found.lower, [-2 - 2 * R])
    close(found.upper, [-2 + 2 * R])


def test_squares_say_nothing_next_to_terms_without_a_bound() -> None:
    unknown = Range.unknown(2)
    assert by_squares(program([0, 1], [], [], [], [2, 0]), 20.0, unknown) is unknown
    assert by_squares(program([1, 1], [], [], [], [0, 0]), 20.0, unknown) is unknown
    assert by_squares(program([0, 0], [], [], [], [2, 2], None), 20.0, unknown) is unknown
    full = cone_program(
        np.zeros(2), np.zeros((0, 2)), np.zeros(0), [], np.array([[2.0, 1.0], [1.0, 2.0]]), 0.0
    )
    assert by_squares(full, 20.0, unknown) is unknown
    # −y is at least −7 where y is at most 7
    known = Range(np.full(2, -INF), np.array([INF, 7.0]))
    found = by_squares(program([0, -1], [], [], [], [2, 0]), 20.0, known)
    close(found.upper, [np.sqrt(27 + R * 27) * (1 + R), 7.0])


def test_equations_bound_the_unknowns_that_they_determine() -> None:
    """3 y + x = 5 and 4 z − 2 x + s = 0 with x in [−2, 1] and s in [0, 6]: σ = 3."""
    own = program(
        [0, 0, 0],
        [[1, 3, 0], [-2, 0, 4], [1, 0, 0]],
        [5, 0, 9],
        [ConeBlock(ZERO, 1), ConeBlock(POSITIVE, 2)],
    )
    s = Range(np.array([0.0, 0, 0, 0]), np.array([0.0, 6, INF, INF]))
    x = Range(np.array([-2.0, -INF, -3.0]), np.array([1.0, INF, INF]))
    found = by_equations(own, s, x)
    least = 9 - R * 2 * 16
    radius = np.hypot(5 + 2, 6 + 2 * 2) / np.sqrt(least) * (1 + R * 2)
    close(found.lower, [-2.0, -radius, max(-radius, -3.0)])
    close(found.upper, [1.0, radius, radius])


def test_more_equations_than_unknowns_bound_them_too() -> None:
    # (3, 4)ᵀ y = (1, 2): σ = 5
    own = program([0], [[3], [4]], [1, 2], [ConeBlock(ZERO, 2)])
    found = by_equations(own, Range(np.zeros(3), np.zeros(3)), Range.unknown(1))
    close(found.upper, [np.sqrt(5) / np.sqrt(25 - 25 * R) * (1 + 2 * R)])


def test_equations_that_leave_a_direction_open_bound_nothing() -> None:
    unknown = Range.unknown(2)
    zero = Range(np.zeros(3), np.zeros(3))
    dependent = program([0, 0], [[1, 1], [2, 2]], [1, 2], [ConeBlock(ZERO, 2)])
    assert by_equations(dependent, zero, unknown) is unknown
    few = program([0, 0], [[1, 1], [0, 0]], [1, 2], [ConeBlock(ZERO, 2)])
    assert by_equations(few, zero, unknown) is unknown


def matrix(rows: Sequence[Sequence[float]], offset: Sequence[float]) -> ConeProgram:
    """S with the entries b − A y, those beside the diagonal times √2, in a semidefinite cone."""
    return program([0] * len(rows[0]), rows, offset, [ConeBlock(PSD, len(offset))])


def test_a_matrix_bounds_what_its_diagonal_grows_with_more_slowly_than_its_entries() -> None:
    """(1 + 3 y)² <= 2 (3 + 2 y) S₂₂ with S₂₂ <= 4: (3 t − 1)² <= 24 + 16 t for t = |y|."""
    own = matrix([[-2], [-3], [0]], [3, 1, 4])
    s = Range(np.full(3, -INF), np.array([INF, INF, 4.0]))
    found = by_matrices(own, ConePlaces.of(own), s, Range.unknown(1))
    squared = 9 - R * 9
    half = np.sqrt(squared) + 16 / 2
    radius = (half + np.sqrt(half**2 + squared * 24)) / squared * (1 + 2 * R)
    close(found.lower, [-radius])
    close(found.upper, [radius])


def test_matrices_without_such_entries_bound_nothing() -> None:
    unknown, ends = Range.unknown(1), np.array([INF, INF, 4.0])
    for rows, upper in (
        ([[-2], [-3], [0]], np.full(3, INF)),  # nothing is known of the diagonal
        ([[-2], [-3], [0]], np.array([5.0, INF, 4.0])),  # both entries of it have ranges
        ([[-2], [0], [0]], ends),  # the entry beside it is a constant
    ):
        own = matrix(rows, [3, 1, 4])
        s = Range(np.full(3, -INF), upper)
        assert by_matrices(own, ConePlaces.of(own), s, unknown) is unknown


def arrow(pattern: FloatArray, slope: FloatArray, most: FloatArray, y: FloatArray) -> FloatArray:
    """A 3 × 3 matrix whose first row alone depends on y."""
    whole = np.diag([3.0 + slope @ y, *most])
    whole[0, 1:] = whole[1:, 0] = pattern[:, :2] @ y + pattern[:, 2]
    return whole


def test_ranges_by_matrices_hold_all_feasible_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random matrices: points on rays that are as far as these stay semidefinite."""
    monkeypatch.setattr(square_ranges, "DATA_ROUNDING", 1e-12)
    generator = np.random.default_rng(3)
    farthest = 0.0
    for _ in range(20):
        numbers = (
            generator.normal(size=(2, 3)),
            generator.normal(size=2),
            generator.uniform(0.5, 2.0, size=2),
        )
        offset = to_vector(arrow(*numbers, np.zeros(2)))
        rows = np.stack([offset - to_vector(arrow(*numbers, y)) for y in np.eye(2)], axis=1)
        own = matrix(rows.tolist(), offset.tolist())
        upper = np.array([INF, INF, numbers[2][0], INF, INF, numbers[2][1]])
        s = Range(np.full(6, -INF), upper)
        found = by_matrices(own, ConePlaces.of(own), s, Range.unknown(2))
        assert np.isfinite(found.upper).all()
        for angle in np.linspace(0, 2 * np.pi, 40):
            y = np.array([np.cos(angle), np.sin(angle)])
            for t in np.geomspace(1e-3, 1e6, 100):
                if np.linalg.eigvalsh(arrow(*numbers, t * y))[0] >= 0:
                    farthest = max(farthest, t / found.upper[0])
                    assert t * np.abs(y).max() <= found.upper[0]
    assert farthest > 0.05  # the ranges are not endless


# ---- all of it


def test_ranges_that_are_known_already_are_kept_and_used() -> None:
    # x − y = 0 with x in [2, 3]
    own = program([0, 0], [[1, -1]], [0], [ConeBlock(ZERO, 1)])
    first = Range(np.array([2.0]), np.array([3.0]))
    found = ranges(own, ConePlaces.of(own), 0.0, first)
    close(found.lower, [2.0, 2 - 3 * R - 2 * R])
    close(found.upper, [3.0, 3 + 2 * R + 3 * R])


def test_finite_ranges_become_shorter_where_they_are_to_be_narrow() -> None:
    # x in [0, 100], y in [0, 1], x = y
    rows = [[1, -1], [1, 0], [-1, 0], [0, 1], [0, -1]]
    own = program([0, 0], rows, [0, 100, 0, 1, 0], [ConeBlock(ZERO, 1), ConeBlock(POSITIVE, 4)])
    wide = ranges(own, ConePlaces.of(own), 0.0, narrow=False)
    close(wide.lower, [0.0, 0.0])
    close(wide.upper, [100 * (1 + R), 1 + R])  # known after the first pass
    assert ranges(own, ConePlaces.of(own), 0.0).upper[0] < 10


def test_unknowns_that_only_a_sum_of_rows_bounds_have_ranges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """x + z − y/2 = 1 and y − x/2 − z/2 = 1 add up to x + y + z = 4, all of them at least 0."""
    monkeypatch.setattr(cone_ranges, "DATA_ROUNDING", 1e-12)
    monkeypatch.setattr(square_ranges, "DATA_ROUNDING", 1e-12)
    rows = [[1, -0.5, 1], [-0.5, 1, -0.5], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    own = program([0, 0, 0], rows, [1, 1, 0, 0, 0], [ConeBlock(ZERO, 2), ConeBlock(POSITIVE, 3)])
    found = ranges(own, ConePlaces.of(own), 0.0)
    assert np.isfinite(found.upper).all()
    assert (found.upper >= [2.0, 2.0, 2.0]).all()  # x + z = 2 and y = 2
    assert (found.upper <= 20.0).all()
