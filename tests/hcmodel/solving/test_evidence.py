"""What is gathered about a point, and what is said of it, part by part with prepared answers.

The prepared form has the value 5 + slope·x, or what a test gives it; nothing here runs a method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.certify import cut_bounds
from hcmodel.certify.declared import curvature_boxes
from hcmodel.certify.lower_bound import LowerBound
from hcmodel.certify.paths.descent import Descent
from hcmodel.reductions.reduction import BoundOrigin, Claim, Duals, Origin
from hcmodel.solvers import Box, Evaluation, Termination, function_oracle
from hcmodel.solvers.oracle import OracleFailed
from hcmodel.solving import better_points, bounding, gathering, impossibility, stationary_points
from hcmodel.solving import certifier as certifying
from hcmodel.solving import conclude as concluding
from hcmodel.solving import run as running
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.evidence import Evidence, Pair
from hcmodel.solving.judge import Status, gap_allowed

FloatArray = NDArray[np.float64]
TOLERANCE = 1e-6
ALLOWED = gap_allowed(5.0, TOLERANCE)


def at(value: float = 5.0, row: float = -1.0, slope: float = 0.0) -> Evaluation:
    return function_oracle(
        1,
        lambda x: (value, np.full(1, slope)),
        inequalities=lambda x: (np.array([row]), np.zeros((1, 1))),
        sizes=(1, 0),
    ).at(np.zeros(1))


def bound(value: float, kind: str = "minorant") -> LowerBound:
    return LowerBound(value, ("a condition",), 0, np.zeros(1), np.zeros(1), kind=kind)


def known(**changes: Any) -> Evidence:
    return Evidence(
        **{
            "termination": Termination.CONVERGED,
            "tolerance": TOLERANCE,
            "evaluation": at(),
            "residual": 1e-8,
            **changes,
        }
    )


# ---- properties of the record


def test_the_violation_in_units_of_the_rows_decides_where_it_is_known() -> None:
    assert known().feasible
    assert not known(violation=2e-6).feasible
    assert known(violation=2e-6).in_small_units  # the rows alone look satisfied
    assert not known().in_small_units
    assert not known(evaluation=at(row=1.0)).in_small_units  # they do not
    assert not known(evaluation=None).feasible


def test_the_gap_is_the_distance_to_the_bound_or_what_constants_say() -> None:
    assert known(bound=bound(3.0)).gap == 2.0
    assert known(bound=bound(3.0), domination=0.5).gap == 2.0
    assert known(domination=0.5).gap == 0.5
    assert known().gap is None


def test_a_better_point_is_better_by_more_than_an_optimal_one_may_be_off() -> None:
    assert better_points.is_lower(at(5 - 2 * ALLOWED), at(), TOLERANCE)
    assert not better_points.is_lower(at(5 - 0.5 * ALLOWED), at(), TOLERANCE)
    assert not better_points.is_lower(at(6.0), at(), TOLERANCE)


def path(*, endless: bool) -> Descent:
    return Descent(endless, 4.0, at(), np.zeros(1), np.zeros(1, dtype=bool))


def test_unbounded_needs_a_path_whatever_the_method_says() -> None:
    found = gathering._termination
    assert found(Termination.CONVERGED, path(endless=True)) is Termination.UNBOUNDED
    assert found(Termination.CONVERGED, path(endless=False)) is Termination.CONVERGED
    assert found(Termination.UNBOUNDED, path(endless=False)) is Termination.STALLED
    assert found(Termination.UNBOUNDED, None) is Termination.STALLED
    assert found(Termination.CALL_LIMIT, None) is Termination.CALL_LIMIT


# ---- bounds


def outcome(form: object, **result: Any) -> Any:
    own = {
        "point": np.zeros(1),
        "multipliers": np.array([7.0]),
        "termination": Termination.CONVERGED,
        "weighted": (),
        "conflict": None,
        "cone": None,
        **result,
    }
    return SimpleNamespace(
        form=form, result=SimpleNamespace(**own), point=lambda forms: np.zeros(1)
    )


def form(**changes: Any) -> Any:
    """A form that is its own model: points and values stay as they are."""
    chain = SimpleNamespace(
        point=lambda x: x,
        point_back=lambda x: x,
        value_back=lambda v: v,
        keeps=(),
        adds_variables=0,
    )
    return SimpleNamespace(
        **{
            "proof": "a proof",
            "is_convex_in_map": False,
            "released": None,
            "chain": chain,
            "domain": Box.of(1, -10.0, 10.0),
            "oracle": lambda: SimpleNamespace(at=lambda x: at()),
            "stack": SimpleNamespace(kinked=False),
            "compiled": SimpleNamespace(has_black_boxes=False),
            "duals": lambda evaluation, multipliers: ("duals", multipliers),
            "multipliers": lambda evaluation, duals: duals[1],
            "affords_hessian": True,
            "geometry": None,
            **changes,
        }
    )


def pair(own: Any, multiplier: float = 3.0) -> Any:
    return Pair(own, at(), np.array([multiplier]))


@pytest.mark.parametrize(
    ("changes", "value", "expected"),
    [
        ({}, 5 - 0.5 * ALLOWED, True),
        ({}, 5 + 0.5 * ALLOWED, True),
        ({}, 5 - 2 * ALLOWED, False),
        ({}, 5 + 2 * ALLOWED, False),  # a point below its bound shows that something is wrong
        ({"proof": None}, 5.0, False),
    ],
)
def test_a_run_has_certified_its_point_by_a_bound_in_proven_coordinates(
    changes: dict[str, Any], value: float, expected: bool
) -> None:
    hidden, found = form(**changes), bounding.is_certified
    asked = SimpleNamespace(bound_at=lambda point: bound(value))
    assert found(hidden, outcome(hidden), at(), TOLERANCE, asked) == expected
    # another form, another point, no certificate during the run, no hidden coordinates
    assert not found(hidden, outcome(form()), at(), TOLERANCE, asked)
    nothing = SimpleNamespace(bound_at=lambda point: None)
    assert not found(hidden, outcome(hidden), at(), TOLERANCE, nothing)
    assert not found(hidden, outcome(hidden), at(), TOLERANCE, None)
    assert not found(None, outcome(hidden), at(), TOLERANCE, asked)


class Bounds:
    """Answers for `lower_bound`, by the multiplier that it is asked with."""

    def __init__(self, **answers: float) -> None:
        self.answers = {float(name[1:]): value for name, value in answers.items()}
        self.asked: list[tuple[float, float, float | None]] = []

    def __call__(
        self,
        form: object,
        there: object,
        multipliers: FloatArray,
        *,
        target: float,
        finest: float | None,
        **more: object,
    ) -> LowerBound | None:
        self.asked.append((float(multipliers[0]), target, finest))
        value = self.answers.get(float(multipliers[0]))
        return None if value is None else bound(value)


def searched(hidden: Any, bounds: Bounds, monkeypatch: pytest.MonkeyPatch, **result: Any) -> Any:
    monkeypatch.setattr(bounding, "lower_bound", bounds)
    return bounding._searched_bound(
        hidden, outcome(hidden, **result), at(), pair(form()), TOLERANCE, None, thorough=True
    )


def test_the_better_of_two_multipliers_gives_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # 7 are the method's multipliers, 3 those of the point as written
    for answers, best in (
        ({"_7": 2.0, "_3": 3.0}, 3.0),
        ({"_7": 3.0, "_3": 2.0}, 3.0),
        ({"_3": 1.0}, 1.0),
        ({"_7": 1.0}, 1.0),
    ):
        assert searched(form(), Bounds(**answers), monkeypatch).value == best
    assert searched(form(), Bounds(), monkeypatch) is None


def test_a_bound_that_is_good_enough_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Bounds(_7=5 - 0.5 * ALLOWED, _3=5.0)
    assert searched(form(), bounds, monkeypatch).value == 5 - 0.5 * ALLOWED
    # refined to 1e-4 of the gap allowed
    assert bounds.asked == [(7.0, ALLOWED, pytest.approx(1e-4 * ALLOWED))]


def test_without_time_the_first_bound_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = Bounds(_7=1.0, _3=5.0)
    found = searched(form(), bounds, monkeypatch, termination=Termination.TIME_LIMIT)
    assert found.value == 1.0
    assert bounds.asked == [(7.0, np.inf, None)]


def best_bound(
    monkeypatch: pytest.MonkeyPatch,
    searched: float | None,
    *,
    cuts: float | None = None,
    minorant: float | None = None,
    cone: float | None = None,
    enclosed: float | None = None,
    hidden: Any = None,
    **result: Any,
) -> float | None:
    """`best_bound` with prepared answers of all that it asks."""

    def told(value: float | None) -> Callable[..., LowerBound | None]:
        return lambda *a, **k: None if value is None else bound(value)

    hidden = hidden or form()
    monkeypatch.setattr(bounding, "_searched_bound", told(searched))
    monkeypatch.setattr("hcmodel.certify.minorants.norm_minorants.minorant_bound", told(minorant))
    monkeypatch.setattr(bounding, "_cone_bound", told(cone))
    monkeypatch.setattr(bounding, "_enclosed_bound", told(enclosed))
    monkeypatch.setattr(cut_bounds, "cut_bound", told(cuts))
    request = SimpleNamespace(tolerance=TOLERANCE, time_left=np.inf)
    own = outcome(hidden, weighted=("a cut",) if cuts is not None else (), **result)
    found = bounding.best_bound(SimpleNamespace(), hidden, own, at(), pair(form()), request, None)
    return None if found is None else found.value


def test_the_best_of_all_bounds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    kinked = form(stack=SimpleNamespace(kinked=True))
    assert best_bound(monkeypatch, 5.0, cone=5.5) == 5.0  # good enough: nothing else is asked
    assert best_bound(monkeypatch, 3.0, cone=4.0) == 4.0
    assert best_bound(monkeypatch, 4.0, cone=3.0) == 4.0
    assert best_bound(monkeypatch, 3.0, minorant=4.0) == 3.0  # without kinks, no norms
    assert best_bound(monkeypatch, 3.0, minorant=4.0, hidden=kinked) == 4.0
    assert best_bound(monkeypatch, 4.0, minorant=3.0, hidden=kinked) == 4.0
    assert best_bound(monkeypatch, None, minorant=4.0, hidden=kinked) == 4.0
    assert best_bound(monkeypatch, None, cone=4.0) == 4.0
    for end in (Termination.TIME_LIMIT, Termination.CALL_LIMIT):  # not an end by a rule of its own
        assert best_bound(monkeypatch, 3.0, cone=4.0, termination=end) == 3.0


def test_cuts_come_first_and_stay_where_nothing_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    assert best_bound(monkeypatch, 4.0, cuts=5.0) == 5.0
    assert best_bound(monkeypatch, 4.0, cuts=3.0) == 4.0
    assert best_bound(monkeypatch, 2.0, cuts=3.0) == 3.0
    assert best_bound(monkeypatch, None, cuts=3.0) == 3.0
    black = form(compiled=SimpleNamespace(has_black_boxes=True))
    assert best_bound(monkeypatch, 4.0, cuts=3.0, hidden=black) == 3.0  # no second derivatives
    assert best_bound(monkeypatch, 4.0, cuts=3.0, enclosed=5.0, hidden=black) == 5.0


def test_an_enclosure_is_asked_where_the_search_is_not_good_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert best_bound(monkeypatch, 3.0, enclosed=5.0, cone=5.5) == 5.0
    assert best_bound(monkeypatch, 5.0, enclosed=5.5) == 5.0
    declared = form(proof=None)  # what rests on no coordinates comes before what does
    assert best_bound(monkeypatch, 4.9, enclosed=5.0, hidden=declared) == 5.0


# ---- looking closer


def kink(x: FloatArray) -> tuple[float, FloatArray]:
    return -abs(float(x[0])), -np.ones(1)


@pytest.mark.parametrize(
    ("objective", "falls"),
    [
        (kink, True),  # −|x|: the slope of its right piece says nothing of the left
        (lambda x: (abs(float(x[0])), np.ones(1)), False),
        (lambda x: (-float(x[0]), -np.ones(1)), False),  # as the slope says
        (lambda x: (1e6 - abs(float(x[0])), -np.ones(1)), False),  # nothing, beside a value of 1e6
    ],
)
def test_the_top_of_a_kink_is_not_stationary(
    objective: Callable[[FloatArray], tuple[float, FloatArray]], falls: bool
) -> None:
    oracle = function_oracle(1, objective)
    own = form(oracle=lambda: oracle)
    assert stationary_points._falls_at_kink(own, oracle.at(np.zeros(1)), np.zeros(0)) == falls


@pytest.mark.parametrize(
    ("decrease", "expected"), [(20 * ALLOWED, True), (5 * ALLOWED, False), (None, False)]
)
def test_a_step_that_promises_ten_gaps_shows_that_a_point_is_not_a_minimum(
    decrease: float | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stationary_points, "promised_decrease", lambda *a: decrease)
    assert stationary_points.promises_more(None, pair(form()), TOLERANCE) == expected
    assert not stationary_points.promises_more(None, pair(form(affords_hessian=False)), TOLERANCE)


def written(values: dict[float, tuple[float, float]]) -> Any:
    """Forms whose model has these pairs of objective and row at these points."""

    def evaluated(x: FloatArray) -> Evaluation:
        value, row = values[float(x[0])]
        found = at(value, row)
        found.point = x
        return found

    own = form(oracle=lambda: SimpleNamespace(at=evaluated))
    return SimpleNamespace(written=own)


MUCH, LITTLE = 5 - 3 * ALLOWED, 5 - 0.5 * ALLOWED


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ({1.0: (MUCH, -1.0), 2.0: (MUCH - 1, -1.0), 3.0: (MUCH, -1.0)}, 2.0),
        ({1.0: (MUCH, -1.0), 2.0: (MUCH - 1, 1.0)}, 1.0),  # the lower one violates its row
        ({1.0: (LITTLE, -1.0), 2.0: (6.0, -1.0)}, None),  # no better than an optimal point may be
        ({1.0: (MUCH, 1.0)}, None),
        ({}, None),
    ],
)
def test_the_lowest_feasible_middle_of_a_box_is_a_better_point(
    values: dict[float, tuple[float, float]], best: float | None
) -> None:
    settled: Any = SimpleNamespace(lowest=[np.array([x]) for x in values])
    found = better_points.lowest_enclosed(written(values), form(), at(), settled, TOLERANCE)
    assert (None if found is None else float(found[0])) == best
    assert better_points.lowest_enclosed(written(values), None, at(), settled, TOLERANCE) is None


@pytest.mark.parametrize(
    ("there", "better"),
    [
        ((MUCH, -1.0), True),
        ((LITTLE, -1.0), False),
        ((MUCH, 1.0), False),  # lower, but outside of the rows as written
        (None, False),
    ],
)
def test_a_point_beside_another_one_is_better_as_the_model_is_written(
    there: tuple[float, float] | None, better: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = None if there is None else SimpleNamespace(point=np.ones(1))
    monkeypatch.setattr("hcmodel.certify.paths.nearby.better_point", lambda *a: found)
    forms = written({1.0: there or (0.0, 0.0)})
    point = better_points.better_beside(forms, at(), None, pair(form()), TOLERANCE)
    assert (point is not None) == better
    # a model without a bound has no better point to look for
    endless = path(endless=True)
    assert better_points.better_beside(forms, at(), endless, pair(form()), TOLERANCE) is None


# ---- the certificate as a method asks for it


def asked(gaps: list[float | None], monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[Any]:
    """What a run is told at points of value 5 whose bounds leave these gaps, in gaps allowed."""
    answers = iter(gaps)

    def lower(*a: object, **k: object) -> LowerBound | None:
        gap = next(answers)
        return None if gap is None else bound(5 - gap * ALLOWED)

    monkeypatch.setattr(certifying, "lower_bound", lower)
    own = Certifier(form(), TOLERANCE, **more)
    return [own(at(), np.zeros(1)) for _ in gaps]


def test_a_run_ends_at_a_hundredth_of_the_gap_or_where_it_shrinks_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asked([0.009], monkeypatch) == [True]
    assert asked([0.5], monkeypatch) == [False]  # one more step may halve it
    assert asked([0.5, 0.4], monkeypatch) == [False, True]  # it does not, and 0.4 is allowed
    assert asked([0.5, 0.2, 0.009], monkeypatch) == [False, False, True]
    assert asked([8.0, 6.0], monkeypatch) == [False, None]  # too wide, and not much better
    assert asked([8.0, 3.0, 2.0, 0.9], monkeypatch) == [False, False, None, False]
    assert asked([None], monkeypatch) == [None]
    assert asked([0.9], monkeypatch, once=True) == [True]  # a method with one point to show


def test_a_certificate_remembers_its_last_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certifying, "lower_bound", lambda *a, **k: bound(4.0))
    own = Certifier(form(), TOLERANCE)
    assert own.bound_at(np.zeros(1)) is None
    own(at(), np.zeros(1))
    assert own.bound_at(np.zeros(1)).value == 4.0  # type: ignore[union-attr]
    assert own.bound_at(np.ones(1)) is None
    outside = Certifier(form(domain=Box.of(1, 1.0, 2.0)), TOLERANCE)
    assert outside(at(), np.zeros(1)) is None  # bounds that were left out are broken


# ---- what is said


MINIMISED: Any = SimpleNamespace(
    sign=SimpleNamespace(value_back=lambda v: v),
    failure="sin(x)",
    near_miss=None,
    lost_bounds=(),
)
MAXIMISED: Any = SimpleNamespace(sign=SimpleNamespace(value_back=lambda v: -v), failure=None)


def certificate(status: Status, forms: Any = MINIMISED, residual: bool = True, **found: Any) -> Any:
    return concluding._certificate(status, forms, known(**found), residual)


def test_the_strongest_evidence_is_the_certificate() -> None:
    best = certificate(Status.OPTIMAL, bound=bound(3.0), domination=0.5)
    assert (best.kind, best.lower_bound, best.gap) == ("minorant", 3.0, 2.0)
    assert best.conditions == ("a condition",)
    assert certificate(Status.OPTIMAL, MAXIMISED, bound=bound(3.0)).lower_bound == -3.0
    given = certificate(Status.OPTIMAL, domination=0.5)
    assert (given.kind, given.lower_bound, given.gap) == ("gradient-domination", 4.5, 0.5)
    assert given.conditions == ("the constants mu_c and diameter_u are right",)
    local = certificate(Status.LOCALLY_OPTIMAL)
    assert (local.kind, local.lower_bound, local.gap) == ("stationarity", None, None)
    assert local.conditions == ("global if the model is hidden convex",)
    none = certificate(Status.OPTIMAL_INACCURATE)
    assert (none.kind, none.conditions) == ("none", None)
    conflict = certificate(Status.INFEASIBLE, conflict=bound(1.0, "farkas"), bound=bound(3.0))
    assert (conflict.kind, conflict.conditions) == ("farkas", ("a condition",))
    assert conflict.lower_bound is None
    # a conflict that did not decide the status is not the certificate
    assert certificate(Status.OPTIMAL, conflict=bound(1.0, "farkas")).kind == "none"


def test_violation_and_stationarity_are_told_where_they_are_known() -> None:
    found = certificate(Status.OPTIMAL_INACCURATE, evaluation=at(row=0.25))
    assert (found.violation, found.stationarity) == (0.25, 1e-8)
    assert certificate(Status.OPTIMAL, residual=False).stationarity is None
    assert certificate(Status.USER_LIMIT, evaluation=None).violation is None


def test_the_value_is_the_objective_or_an_infinity() -> None:
    value = concluding._value
    assert value(Status.OPTIMAL, MINIMISED, known()) == 5.0
    assert value(Status.OPTIMAL, MAXIMISED, known()) == -5.0
    assert value(Status.INFEASIBLE, MINIMISED, known()) == np.inf
    assert value(Status.INFEASIBLE_INACCURATE, MAXIMISED, known()) == -np.inf
    assert value(Status.UNBOUNDED, MINIMISED, known()) == -np.inf
    assert value(Status.USER_LIMIT, MINIMISED, known(evaluation=None)) is None


def test_the_message_says_what_the_status_rests_on() -> None:
    def message(status: Status, proven: bool = False, **found: Any) -> str:
        return concluding._message(status, known(**found), MINIMISED, proven=proven)

    assert message(Status.OPTIMAL, bound=bound(5.0), proven=True) == concluding.DECLARED
    declared = concluding._message(
        Status.OPTIMAL, known(bound=bound(5.0), proven=True), MINIMISED, proven=True
    )
    assert declared == concluding.CERTIFIED
    assert message(Status.OPTIMAL, domination=0.0) == concluding.CERTIFIED
    assert message(Status.INFEASIBLE) == concluding.IMPOSSIBLE
    reason = Termination.CONVERGED.value
    assert message(Status.LOCALLY_OPTIMAL) == (
        f"{reason}; not proven to be a global minimum: sin(x)"
    )
    assert message(Status.LOCALLY_OPTIMAL, proven=True) == reason
    assert message(Status.OPTIMAL_INACCURATE) == reason
    assert message(Status.INFEASIBLE_INACCURATE).endswith("this is not a proof: try another start")
    assert message(Status.INFEASIBLE_INACCURATE, proven=True) == reason
    assert message(Status.USER_LIMIT, undefined="b/inf") == "b/inf"


@pytest.mark.parametrize(
    "status", [Status.OPTIMAL_INACCURATE, Status.INFEASIBLE_INACCURATE, Status.SOLVER_ERROR]
)
def test_the_message_of_an_inexact_result_says_what_kept_a_map_from_a_proof(status: Status) -> None:
    forms = SimpleNamespace(**{**vars(MINIMISED), "near_miss": "riccati map: X may be singular"})
    found = concluding._message(status, known(), forms, proven=False)
    assert found.endswith("; not proven: riccati map: X may be singular")
    assert "riccati" not in concluding._message(status, known(), forms, proven=True)
    assert "riccati" not in concluding._message(Status.USER_LIMIT, known(), forms, proven=False)


@pytest.mark.parametrize(("at_upper", "expected"), [(5.0, (0.0, 6.0)), (-5.0, (10.0, 0.0))])
def test_a_bound_has_the_slope_that_it_holds_back(
    at_upper: float, expected: tuple[float, float]
) -> None:
    # (x − 5)² at 2 has the slope −6, (x + 5)² at 0 the slope 10
    x = hc.Variable(name="x", bounds=(0, 2))
    problem = hc.Problem(hc.Minimize((x - at_upper) ** 2))
    problem.solve()
    duals = problem.solution.bound_duals["x"]
    assert (float(duals.lower), float(duals.upper)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("away", "held"), [(5e-4, True), (5e-3, False)])
def test_a_bound_holds_within_the_tolerance_of_its_size(away: float, held: bool) -> None:
    # 1e-6 of 1000
    x = hc.Variable(name="x", bounds=(-1000, 1000))
    forms = hc.Problem(hc.Minimize(-3 * x)).forms()
    for side in (1.0, -1.0):
        smooth = forms.lifted.oracle().at(np.array([side * (1000 - away)]))
        smooth._gradient = np.array([-3.0 * side])
        found = concluding._bound_duals(forms, known(smooth=smooth, multipliers=np.zeros(0)))["x"]
        assert float(found.upper if side > 0 else found.lower) == (3.0 if held else 0.0)


# ---- what a bound and a conflict rest on


@pytest.mark.parametrize(
    ("hidden", "kind", "convex", "proven"),
    [
        (None, None, None, False),
        (None, "enclosure", None, True),  # of the model as written: no coordinates are used
        (None, "minorant", True, False),
        ("proven", "minorant", None, True),
        ("declared", "minorant", None, False),
        ("declared", "enclosure", None, True),
        ("declared", "minorant", True, True),  # second derivatives have shown it
        ("declared", "minorant", False, False),
    ],
)
def test_what_rests_on_no_declaration(
    hidden: str | None, kind: str | None, convex: bool | None, proven: bool
) -> None:
    own = None if hidden is None else form(proof="a proof" if hidden == "proven" else None)
    found = None if kind is None else bound(1.0, kind)
    settled: Any = None if convex is None else SimpleNamespace(convex=convex)
    assert gathering._is_proven(own, found, settled) == proven


@pytest.mark.parametrize(
    ("ratio", "relaxed"), [pytest.param(True, True, id="a ratio"), pytest.param(False, False)]
)
def test_coordinates_in_which_falling_for_ever_shows_nothing(
    ratio: bool, relaxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maps of the catalogue may have points without a preimage, so that they keep no `unbounded`."""
    x = hc.Variable(2, name="x", bounds=(0, 5))
    cost = (2 * x[0] + x[1] + 1) / (x[0] + 3 * x[1] + 2) if ratio else hc.sum_squares(x - 1)
    found = gathered(hc.Problem(hc.Minimize(cost), [x[0] + x[1] >= 1]), monkeypatch)
    assert [each.relaxed for each in found] == [relaxed]


def gathered(
    problem: hc.Problem, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> list[Evidence]:
    """The evidence of a solve."""
    found: list[Evidence] = []
    own = gathering.gather

    def kept(*given: Any) -> Evidence:
        found.append(own(*given))
        return found[-1]

    monkeypatch.setattr(running, "gather", kept)
    problem.solve(**options)
    return found


@pytest.mark.parametrize(("limit", "asked"), [(2, False), (None, True)])
def test_functions_of_the_user_are_not_called_beyond_their_limit(
    limit: int | None, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points beside the one found are looked at where the run has ended by itself."""
    calls: list[object] = []

    def beside(*given: Any) -> None:
        calls.append(given)

    monkeypatch.setattr(gathering, "better_beside", beside)
    monkeypatch.setattr(gathering, "_is_surrounded", lambda outcome: False)
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    own = hc.function(lambda x: (x[0] - 0.3) ** 2 + x[1] ** 4, x)
    hc.Problem(hc.Minimize(own)).solve(max_calls=limit)
    assert bool(calls) == asked


def test_no_cone_program_bounds_what_is_not_proven_or_not_known() -> None:
    def never(kind: str) -> None:
        raise AssertionError("the program is made for proven models only")

    for proof, boxes in ((None, False), ("a proof", True), (None, True)):
        own = form(proof=proof, compiled=SimpleNamespace(has_black_boxes=boxes), whole=never)
        assert bounding._cone_bound(own, 1.0, 1.0) is None


@pytest.mark.parametrize(
    ("value", "thorough", "proof", "kept"),
    [
        (5.0, True, "a proof", True),  # good enough
        (1.0, True, "a proof", False),  # looked for again, more thoroughly
        (1.0, False, "a proof", True),
        (1.0, True, None, True),  # of declared coordinates no better one is known
    ],
)
def test_the_bound_that_ended_a_run_is_the_bound_of_its_point(
    value: float, thorough: bool, proof: str | None, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounding, "lower_bound", Bounds(_7=2.0))
    monkeypatch.setattr(bounding, "tested", lambda found: found)
    released = form()
    hidden = form(proof=proof, released=released)
    asked: Any = SimpleNamespace(bound_at=lambda point: bound(value))

    def found(own: Any) -> float | None:
        given = (hidden, outcome(own), at(), pair(form()), TOLERANCE, asked)
        answer = bounding._searched_bound(*given, thorough=thorough)
        return None if answer is None else answer.value

    assert found(hidden) == (value if kept else 2.0)
    assert found(released) == (value if kept else None)
    assert found(form()) is None  # of another form nothing is known


def test_a_conflict_is_looked_for_at_the_point_of_the_run_or_at_its_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The weights of the run belong to its own form."""
    asked: list[tuple[float, Any]] = []

    def looked(hidden: object, there: Any, weights: Any) -> None:
        asked.append((float(there[0]), weights))

    class There(np.ndarray[Any, Any]):
        finite = differentiable = True

    monkeypatch.setattr(impossibility, "infeasibility", looked)
    monkeypatch.setattr(impossibility, "dual_infeasibility", lambda *a, **more: None)
    chain = SimpleNamespace(point=lambda x: x + 8.0)
    hidden = form(
        chain=chain, oracle=lambda: SimpleNamespace(at=lambda x: np.asarray(x).view(There))
    )
    request: Any = SimpleNamespace(time_left=1.0)
    for own, expected in ((hidden, (2.0, "weights")), (form(), (8.0, None))):
        run = outcome(own, point=np.array([2.0]), conflict="weights")
        assert impossibility._conflict(SimpleNamespace(), hidden, run, request) is None  # type: ignore[arg-type]
        assert asked.pop() == expected
    # cuts of a method of its own are of its own form as well
    monkeypatch.setattr(cut_bounds, "cut_conflict", lambda hidden, cuts: ("cut", cuts))
    for own, cut in ((hidden, True), (form(), False)):
        run = outcome(own, conflict="weights", weighted=("cuts",))
        found = impossibility._conflict(SimpleNamespace(), hidden, run, request)  # type: ignore[arg-type]
        assert found == (("cut", ("cuts",)) if cut else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_rows_that_keep_a_violation_up_are_named(weighted: bool) -> None:
    """By the weights of the run, or else by their violations; a thousandth of the largest is nothing."""
    x = hc.Variable(2, name="x", bounds=(0, 1))
    rows = [(hc.sum(x) >= number).named(name) for number, name in ((4, "a"), (5, "b"), (6, "c"))]
    forms = hc.Problem(hc.Minimize(hc.sum(x)), rows).forms()
    own = form(chain=SimpleNamespace(origin=lambda row: Origin(row)))
    violations, weights = np.array([1.0, 1e-4, 0.5]), np.array([1e-3, 2.0, 1.0])
    run = outcome(
        own,
        evaluation=SimpleNamespace(violations=violations),
        conflict=weights if weighted else None,
    )
    found = concluding._conflict(Status.INFEASIBLE_INACCURATE, forms, None, run, known())
    assert found == (("b", "c") if weighted else ("a", "c"))
    assert concluding._conflict(Status.OPTIMAL, forms, None, run, known()) == ()


def test_a_proof_by_the_dual_needs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions without slopes are not asked for a contradiction of their slopes."""
    asked: list[object] = []
    answers: list[object] = []
    monkeypatch.setattr(impossibility, "infeasibility", lambda *given: asked.append(given))
    monkeypatch.setattr(impossibility, "dual_infeasibility", lambda *a, **more: answers.pop(0))
    request: Any = SimpleNamespace(time_left=1.0)
    for first, finite, differentiable, count in (
        ("by the dual", True, True, 0),
        (None, True, True, 1),
        (None, False, True, 0),
        (None, True, False, 0),
    ):
        there = SimpleNamespace(finite=finite, differentiable=differentiable)
        hidden = form(oracle=lambda there=there: SimpleNamespace(at=lambda x: there))
        answers[:] = [first, "within reach"]
        asked.clear()
        found = impossibility._conflict(SimpleNamespace(), hidden, outcome(hidden), request)  # type: ignore[arg-type]
        assert found == (first or "within reach")
        assert len(asked) == count


@pytest.mark.parametrize(
    ("objective", "row", "place", "falls"),
    [
        # f + λ g with λ = 1, and g = 1 at the point
        (lambda x: 2 * abs(x), lambda x: 1 - 3 * abs(x), 0.0, True),
        (lambda x: 0.0, lambda x: 1 + abs(x), 0.0, False),
        (lambda x: -x, lambda x: 2 * x, 0.0, False),  # x, as the slope −1 + 2 says
        # the kink of −|x − 1| is at 1
        (lambda x: -abs(x - 1), lambda x: 0.0, 1.0, True),
    ],
)
def test_kinks_of_the_lagrangian(
    objective: Callable[[float], float], row: Callable[[float], float], place: float, falls: bool
) -> None:
    def slope(f: Callable[[float], float]) -> float:
        return (f(place + 1e-3) - f(place)) / 1e-3  # of the right piece

    oracle = function_oracle(
        1,
        lambda x: (objective(float(x[0])), np.array([slope(objective)])),
        inequalities=lambda x: (np.array([row(float(x[0]))]), np.array([[slope(row)]])),
        sizes=(1, 0),
    )
    own = form(oracle=lambda: oracle)
    found = stationary_points._falls_at_kink(own, oracle.at(np.array([place])), np.ones(1))
    assert found == falls


def test_a_kink_is_small_beside_the_terms_of_the_lagrangian() -> None:
    """−1000 x − |x| beside a row of 1000 x: the slopes cancel, and their sizes do not."""
    oracle = function_oracle(
        1,
        lambda x: (-1000 * float(x[0]) - abs(float(x[0])), np.array([-1000.0])),
        inequalities=lambda x: (1000 * x, np.array([[1000.0]])),
        sizes=(1, 0),
    )
    own = form(oracle=lambda: oracle)
    assert not stationary_points._falls_at_kink(own, oracle.at(np.zeros(1)), np.ones(1))


def test_a_hull_of_slopes_is_small_relative_to_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def shown(form: object, there: object, weighted: object, allowed: float) -> bool:
        asked.append(allowed)
        return True

    monkeypatch.setattr(stationary_points, "is_hull_stationary", shown)
    monkeypatch.setattr(stationary_points, "is_noisy", lambda model: False)
    own = form()
    forms: Any = SimpleNamespace(written=own, sign=SimpleNamespace(before=None))
    run = outcome(own, termination=Termination.HULL_STATIONARY)
    for value, allowed in ((5.0, 5 * TOLERANCE), (0.1, TOLERANCE)):
        there = at(value)
        assert stationary_points.is_stationary(forms, run, there, pair(own), np.inf, TOLERANCE)
        assert asked.pop() == pytest.approx(allowed)


@pytest.mark.parametrize(
    ("keeps", "bends", "moved"),
    [((Claim.UNBOUNDED,), False, True), ((Claim.UNBOUNDED,), True, False), ((), False, False)],
)
def test_a_step_is_taken_in_hidden_coordinates_where_all_bounds_are_straight_there(
    keeps: tuple[Claim, ...], bends: bool, moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stationary_points, "promised_decrease", lambda *a: None)
    hidden = form(geometry=SimpleNamespace(bends=lambda there: bends))
    hidden.chain.keeps = keeps
    asked: list[object] = []
    own: Any = SimpleNamespace(form=form(), evaluation=at(), multipliers=np.zeros(1))
    own.moved = lambda hidden: asked.append(hidden) or own
    assert not stationary_points.promises_more(hidden, own, TOLERANCE)
    assert bool(asked) == moved


def test_declared_coordinates_are_settled_by_second_derivatives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where these show that a coordinate bends, no bound is left; where they do not, less is open."""
    answer = SimpleNamespace(bends_at=None, convex=True)
    asked: list[object] = []
    monkeypatch.setattr(curvature_boxes, "settle", lambda search: asked.append(search) or answer)
    with_search = replace(
        bound(1.0), conditions=("one", "two", "three"), search=cast("Any", object())
    )
    declared = {"proof": None, "map_geometry": None}

    def settled(hidden: Any, given: Any, late: bool) -> Any:
        pair: Any = SimpleNamespace(form=hidden)
        return bounding.settled_bound(hidden, given, at(), pair, late)

    for hidden, given, late in (
        (None, with_search, False),
        (form(**declared), bound(1.0), False),  # no search
        (form(map_geometry=None), with_search, False),  # proven
        (form(**declared), with_search, True),
        (
            form(**declared, compiled=SimpleNamespace(has_black_boxes=True)),
            with_search,
            False,
        ),
    ):
        assert settled(hidden, given, late) == (None, given)
    assert not asked

    def conditions(**changes: Any) -> tuple[str, ...]:
        found, left = settled(form(**declared | changes), with_search, False)
        assert found is answer
        assert left is not None
        return left.conditions

    shown = curvature_boxes.SHOWN
    assert conditions() == (shown, "two", "three")
    assert conditions(map_geometry="a map") == (shown, "three")
    answer.convex = False
    assert conditions() == ("one", "two", "three")
    answer.bends_at = np.zeros(1)
    assert settled(form(**declared), with_search, False) == (answer, None)


def test_where_a_coordinate_bends_is_told_in_the_variables() -> None:
    hidden, forms = form(), SimpleNamespace(written=form())
    hidden.chain.point_back = lambda u: u + 7.0
    bent: Any = SimpleNamespace(bends_at=np.array([4.0]))
    found = gathering._bends_at(forms, hidden, bent)  # type: ignore[arg-type]
    assert found is not None
    assert found.tolist() == [10.0]  # 11, moved into the box
    straight: Any = SimpleNamespace(bends_at=None)
    for own, settled in ((None, bent), (hidden, None), (hidden, straight)):
        assert gathering._bends_at(forms, own, settled) is None  # type: ignore[arg-type]


def test_a_least_value_counts_where_the_point_is_as_low(monkeypatch: pytest.MonkeyPatch) -> None:
    forms: Any = SimpleNamespace(bounds=SimpleNamespace(after=None))
    for least, kept in (
        (bound(5 - 0.5 * ALLOWED), True),
        (bound(5 - 2 * ALLOWED), False),
        (None, False),
    ):
        monkeypatch.setattr(bounding, "least_value", lambda model, there, least=least: least)
        assert bounding._enclosed_bound(forms, at(), ALLOWED) is (least if kept else None)


def test_a_run_that_stalls_in_a_valley() -> None:
    valley: Any = SimpleNamespace(valley=True)
    stalled = {"termination": Termination.STALLED, "descent": valley}
    assert known(**stalled).in_valley
    assert not known(**stalled, stationary=True).in_valley
    assert not known(descent=valley).in_valley  # it has not stalled
    assert not known(termination=Termination.STALLED).in_valley
    assert not known(**stalled | {"descent": SimpleNamespace(valley=False)}).in_valley


def test_nothing_is_certified_of_a_point_that_is_not_there() -> None:
    assert certificate(Status.USER_LIMIT, evaluation=None, bound=bound(3.0)).kind == "none"
    assert certificate(Status.UNBOUNDED, bound=bound(3.0)).kind == "none"


def test_parts_of_a_conflict_are_named_rows_first() -> None:
    x = hc.Variable(2, name="x", bounds=(0, 1))
    rows = [(hc.sum(x) >= 4).named("a"), (hc.sum(x) <= -1).named("b")]
    forms = hc.Problem(hc.Minimize(hc.sum(x)), rows).forms()
    parts = [BoundOrigin(x, "upper", (1,)), Origin(1), Origin(0), Origin(1)]
    found = concluding.named_parts(forms, parts)
    assert found[:2] == ("a", "b")
    assert len(found) == 3
    assert "x" in found[2]


# ---- which questions are asked of a point


class Asked:
    """`gather` with prepared answers, and the names of the questions that it asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        self.answers: dict[str, Any] = {
            "_evaluated": at(),
            "is_certified": False,
            "_multipliers": (np.zeros(1), 1e-8),
            "_is_stationary": True,
            "_contradiction": (None, None, False),
            "best_bound": None,
            "_unless_beyond": None,
            "settled_bound": (None, None),
            "domination_gap": None,
            "_descent": None,
            "is_noisy": False,
            "lowest_enclosed": None,
            "better_beside": None,
            "_promises_more": False,
            "_unattained": None,
            "_is_surrounded": False,
            "_termination": Termination.CONVERGED,
            "_bends_at": None,
        }
        for name in self.answers:
            monkeypatch.setattr(gathering, name, self._answering(name))

    def _answering(self, name: str) -> Callable[..., Any]:
        def answer(*given: object) -> Any:
            self.names.append(name)
            return self.answers[name]

        return answer

    def evidence(self, hidden: Any = None, *, kinked: bool = False, **answers: Any) -> Evidence:
        self.answers.update(answers)
        self.names.clear()
        own = form(
            stack=SimpleNamespace(kinked=kinked),
            program_duals=lambda result: self.names.append("program_duals"),
        )
        forms: Any = SimpleNamespace(
            lifted=own, written=own, sign=SimpleNamespace(before=None), bounds=None
        )
        run = outcome(own, evaluation=at(), cause=None)
        request: Any = SimpleNamespace(tolerance=TOLERANCE)
        return gathering.gather(forms, hidden, run, request, None)


def test_constants_are_asked_for_a_gap_where_nothing_else_bounds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    for found, stationary, expected in (
        (None, True, True),
        (None, False, False),
        (bound(4.0), True, False),
    ):
        asked.evidence(settled_bound=(None, found), _is_stationary=stationary)
        assert ("domination_gap" in asked.names) == expected


def test_points_beside_are_looked_at_where_convexity_is_not_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    for hidden, enclosed, expected in (
        (None, None, True),
        (form(proof=None, map_geometry=None), None, True),
        (form(map_geometry=None), None, False),
        (None, at(4.0), False),  # a better one is known
    ):
        asked.evidence(hidden, lowest_enclosed=enclosed)
        assert ("better_beside" in asked.names) == expected


@pytest.mark.parametrize(
    ("kinked", "residual", "value", "expected"),
    [
        (True, 1e3 * TOLERANCE, 5.0, True),
        (False, 1e3 * TOLERANCE, 5.0, False),  # no kink
        (True, 10 * TOLERANCE, 5.0, False),  # the residual is small
        (True, 1e3 * TOLERANCE, np.inf, False),  # no value
    ],
)
def test_exact_multipliers_are_asked_at_kinks_with_a_large_residual(
    kinked: bool, residual: float, value: float, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    asked.evidence(kinked=kinked, _multipliers=(np.zeros(1), residual), _evaluated=at(value))
    assert ("program_duals" in asked.names) == expected


def test_a_bound_that_is_good_enough_ends_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    found = asked.evidence(settled_bound=(None, bound(5 - 0.5 * ALLOWED)))
    assert "_descent" not in asked.names
    assert "_unattained" in asked.names
    assert found.stationary
    found = asked.evidence(settled_bound=(None, bound(5 - 2 * ALLOWED)), _promises_more=True)
    assert "_descent" in asked.names
    assert "_unattained" not in asked.names
    assert not found.stationary  # a step promises a decrease that would show


def test_a_violated_row_asks_for_a_contradiction_and_for_no_better_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(monkeypatch)
    asked.evidence(_evaluated=at(row=1.0))
    assert "_contradiction" in asked.names
    assert "_descent" not in asked.names
    asked.evidence(_evaluated=at(row=-1.0))
    assert "_contradiction" not in asked.names
    assert "_descent" in asked.names
    conflict = bound(np.inf)
    found = asked.evidence(_evaluated=at(row=1.0), _contradiction=(conflict, (), False))
    assert found.conflict is conflict
    assert "best_bound" not in asked.names  # what is infeasible has no least value
    assert "_multipliers" not in asked.names  # nor multipliers
    assert found.residual == np.inf


def test_rows_that_nothing_satisfies_are_looked_for_where_bounds_do_not_contradict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows are enclosed by intervals, for which all parameters need a value."""
    asked: list[object] = []
    monkeypatch.setattr(impossibility, "impossible_row", lambda m: asked.append(m) or Origin(2))
    monkeypatch.setattr(impossibility, "convex_contradiction", lambda *a: None)
    given, missing = SimpleNamespace(value=1.0), SimpleNamespace(value=None)
    for parts, parameters, expected in (
        ((Origin(0), Origin(1)), [given], (Origin(0), Origin(1))),
        ((Origin(0), Origin(1)), [missing], (Origin(0), Origin(1))),
        ((), [given], (Origin(2),)),
        ((), [given, missing], None),
    ):
        asked.clear()
        bounds = SimpleNamespace(contradiction=lambda parts=parts: parts, before=None)
        forms: Any = SimpleNamespace(bounds=bounds, model=SimpleNamespace(parameters=parameters))
        conflict, found, near = impossibility.contradiction(
            forms,
            None,
            outcome(form()),
            at(),
            SimpleNamespace(),  # type: ignore[arg-type]
        )
        assert found == expected
        assert (conflict is None) == (expected is None)
        assert not near
        assert bool(asked) == (expected == (Origin(2),))


def test_multipliers_are_fitted_where_there_are_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering.kkt, "best_multipliers", lambda *a: ("fitted", 0.5))
    own = form(canonical=SimpleNamespace(outer=SimpleNamespace(size=1)))
    for known_there, finite, differentiable, fitted in (
        (True, True, True, True),
        (True, True, False, False),
        (True, False, True, False),
        (False, True, True, False),
    ):
        smooth: Any = SimpleNamespace(finite=finite, differentiable=differentiable)
        run = outcome(own, evaluation=at() if known_there else None)
        found, residual = gathering._multipliers(own, run, smooth, TOLERANCE, False)
        assert (residual == 0.5) == fitted
        if not fitted:
            assert (found.tolist(), residual) == ([0.0], np.inf)


def test_functions_of_the_user_are_not_called_again_at_the_point_of_their_run() -> None:
    fresh, seen = at(1.0), at(2.0)
    boxes = SimpleNamespace(has_black_boxes=True)
    for changes, elsewhere, evaluation, expected in (
        ({"compiled": boxes}, False, seen, seen),
        ({}, False, seen, fresh),  # cheap functions are asked once more
        ({"compiled": boxes}, True, seen, fresh),  # of another form
        ({"compiled": boxes}, False, None, fresh),
    ):
        own = form(oracle=lambda: SimpleNamespace(at=lambda x: fresh), **changes)
        forms: Any = SimpleNamespace(written=own)
        run = outcome(form() if elsewhere else own, evaluation=evaluation)
        assert gathering._evaluated(forms, run) is expected


def test_the_evaluation_of_the_run_is_left_where_looking_closer_fails() -> None:
    def failing(x: FloatArray) -> None:
        raise OracleFailed("a function of the user")

    own = form(oracle=lambda: SimpleNamespace(at=failing))
    forms: Any = SimpleNamespace(written=own)
    seen = at()
    for run_form, expected in ((own, seen), (form(), None)):
        run = outcome(run_form, evaluation=seen, cause=None)
        assert gathering.at_first_sight(forms, run, TOLERANCE).evaluation is expected


def test_bounds_of_declared_coordinates_are_searched_thoroughly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thorough: list[object] = []

    def lower(*a: object, **k: object) -> LowerBound:
        thorough.append(k["thorough"])
        return bound(4.0)

    monkeypatch.setattr(certifying, "lower_bound", lower)
    for proof in ("a proof", None):
        Certifier(form(proof=proof), TOLERANCE)(at(), np.zeros(1))
    assert thorough == [False, True]  # of a proven model the cone program is asked in the end


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"smooth": None}, False),
        ({}, True),
        ({"residual": np.inf}, False),
        ({"at_kink": True}, False),  # a fit to the slope of one piece
        ({"at_kink": True, "exact": True, "residual": np.inf}, True),
        ({"smooth": None, "at_kink": True, "exact": True}, False),
    ],
)
def test_multipliers_are_known_where_a_fit_or_a_program_has_shown_them(
    changes: dict[str, Any], expected: bool
) -> None:
    assert known(**{"smooth": at(), **changes}).has_multipliers == expected


def test_a_bound_up_to_a_size_does_not_stand_against_better_points_beyond_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = replace(bound(5.0), reach=1e6)
    for reach, lowest, endless, kept in (
        (np.inf, 1.0, True, True),  # it holds everywhere
        (1e6, None, False, True),  # no path
        (1e6, 5.0, False, True),
        (1e6, 1.0, False, False),
        (1e6, 5.0, True, False),
    ):
        found = SimpleNamespace(lowest=None if lowest is None else at(lowest), endless=endless)
        answer = None if lowest is None else found
        monkeypatch.setattr(gathering, "_descent", lambda *a, answer=answer, **more: answer)
        own = replace(given, reach=reach)
        left = gathering._unless_beyond(None, None, at(), own, TOLERANCE)  # type: ignore[arg-type]
        assert left is (own if kept else None)
    assert gathering._unless_beyond(None, None, at(), None, TOLERANCE) is None  # type: ignore[arg-type]


def test_the_point_is_that_of_the_model_or_else_that_of_the_method() -> None:
    x = hc.Variable(name="x", bounds=(0, 9))
    forms = hc.Problem(hc.Minimize(x)).forms()
    there = at()
    there.point = np.array([4.0])
    run = outcome(form(), evaluation=at())
    assert float(concluding._point(forms, run, there)["x"]) == 4.0
    assert float(concluding._point(forms, run, None)["x"]) == 0.0
    assert concluding._point(forms, outcome(form(), evaluation=None), None) == {}


def test_multipliers_are_told_where_they_are_known() -> None:
    naming: Any = SimpleNamespace(
        constraints=["a", "b"], dual=lambda position, dual: dual + position
    )
    found = concluding._duals(Duals((None, np.array(3.0))), naming)
    assert {name: float(dual) for name, dual in found.items()} == {"b": 4.0}
