"""Which questions are asked about a point, in which order, and what follows from the answers.

All answers are prepared: the model is 5 at its point, with one row of −1; nothing here runs a method.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hcmodel.certify import cut_bounds
from hcmodel.certify.lower_bound import LowerBound
from hcmodel.certify.paths.descent import Descent
from hcmodel.reductions.reduction import Claim, Origin
from hcmodel.solvers import Box, Evaluation, Termination, function_oracle
from hcmodel.solvers.oracle import OracleCalls, OracleFailed
from hcmodel.solvers.result import Record
from hcmodel.solving import bounding, gathering, impossibility, stationary_points
from hcmodel.solving import certifier as certifying
from hcmodel.solving import conclude as concluding
from hcmodel.solving.certifier import Certifier
from hcmodel.solving.evidence import Evidence, Pair
from hcmodel.solving.judge import FINEST, Status, gap_allowed

TOLERANCE = 1e-6
ALLOWED = gap_allowed(5.0, TOLERANCE)


def at(value: float = 5.0, row: float = -1.0, slope: float = 0.0, point: float = 0.0) -> Evaluation:
    return function_oracle(
        1,
        lambda x: (value, np.full(1, slope)),
        inequalities=lambda x: (np.array([row]), np.zeros((1, 1))),
        sizes=(1, 0),
    ).at(np.array([point]))


def bound(value: float) -> LowerBound:
    return LowerBound(value, ("first", "second", "third"), 0, np.zeros(1), np.zeros(1))


def path(*, endless: bool, value: float = 4.0) -> Descent:
    return Descent(endless, value, at(value), np.zeros(1), np.zeros(1, dtype=bool))


def form(**changes: Any) -> Any:
    chain = SimpleNamespace(
        point=lambda x: x,
        point_back=lambda x: x,
        value_back=lambda v: v,
        keeps=frozenset([Claim.UNBOUNDED]),
        adds_variables=0,
        excludes=lambda parts: True,
        taken=lambda: ["a row of a map"],
        fixings=lambda parts: [],
    )
    return SimpleNamespace(
        **{
            "proof": "a proof",
            "is_convex_in_map": False,
            "released": None,
            "chain": chain,
            "domain": Box.of(1, -10.0, 10.0),
            "oracle": lambda: SimpleNamespace(at=lambda x: at(point=float(x[0]))),
            "stack": SimpleNamespace(kinked=False),
            "compiled": SimpleNamespace(has_black_boxes=False, expect_values=lambda: None),
            "canonical": SimpleNamespace(outer=SimpleNamespace(size=1, objective_form="plain")),
            "duals": lambda evaluation, multipliers: multipliers,
            "multipliers": lambda evaluation, duals: duals,
            "map_geometry": None,
            "geometry": None,
            "affords_hessian": True,
            **changes,
        }
    )


FORMS: Any = SimpleNamespace()
BLACK = SimpleNamespace(has_black_boxes=True, expect_values=lambda: None)


@dataclass
class Answers:
    """What is answered, and what was asked."""

    certified: bool = False
    stationary: bool = True
    bound: LowerBound | None = None
    settled: Any = None
    domination: float | None = None
    descent: Descent | None = None
    far: bool = False
    noisy: bool = False
    lowest: Any = None
    better: Any = None
    promised: bool = False
    conflict: Any = (None, None, False)
    residual: float = 1e-9
    asked: list[str] = field(default_factory=list)
    enough: float | None = None


def gathered(
    answers: Answers,
    monkeypatch: pytest.MonkeyPatch,
    *,
    hidden: Any = "proven",
    written: Any = None,
    lifted: Any = None,
    surrounded: bool = False,
    row: float = -1.0,
    **result: Any,
) -> Evidence:
    def answer(name: str, value: Any) -> Any:
        def given(*a: Any, **k: Any) -> Any:
            answers.asked.append(name)
            return value

        return given

    def multipliers(smooth: Any, domain: Any, own: Any, tolerance: float, enough: Any) -> Any:
        answers.enough = enough
        return own[0], answers.residual

    for name, value in (
        ("is_certified", answers.certified),
        ("_is_stationary", answers.stationary),
        ("best_bound", answers.bound),
        ("domination_gap", answers.domination),
        ("falling_path", answers.descent),
        ("runs_away", answers.far),
        ("is_noisy", answers.noisy),
        ("lowest_enclosed", answers.lowest),
        ("better_beside", answers.better),
        ("_promises_more", answers.promised),
        ("_contradiction", answers.conflict),
    ):
        monkeypatch.setattr(gathering, name, answer(name, value))
    monkeypatch.setattr(gathering, "settled_bound", lambda h, b, *_: (answers.settled, b))
    monkeypatch.setattr(gathering.kkt, "best_multipliers", multipliers)
    own = written or form(oracle=lambda: SimpleNamespace(at=lambda x: at(row=row)))
    hidden = form() if hidden == "proven" else hidden
    forms: Any = SimpleNamespace(
        written=own, lifted=lifted or own, sign=SimpleNamespace(before=None), model=None
    )
    run: Any = SimpleNamespace(
        **{
            "point": np.zeros(1),
            "evaluation": at(),
            "multipliers": np.array([7.0]),
            "termination": Termination.CONVERGED,
            "cause": None,
            "direction": None,
            "surrounded": surrounded,
            "passed": False,
            "recedes": False,
            **result,
        }
    )
    outcome: Any = SimpleNamespace(
        form=own, result=run, start=np.zeros(1), point=lambda forms: np.zeros(1)
    )
    request: Any = SimpleNamespace(tolerance=TOLERANCE)
    return gathering.gather(forms, hidden, outcome, request, None)


def test_a_bound_that_closes_the_gap_ends_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(bound=bound(5 - 0.5 * ALLOWED), domination=0.0, better=np.ones(1))
    found = gathered(answers, monkeypatch)
    assert found.gap == pytest.approx(0.5 * ALLOWED)
    assert (found.stationary, found.better, found.proven) == (True, None, True)
    assert found.termination is Termination.CONVERGED  # as the run says
    assert "domination_gap" not in answers.asked  # there is a bound
    assert "better_beside" not in answers.asked
    assert "falling_path" not in answers.asked  # the point is not far out


def test_a_gap_that_is_too_wide_leads_to_further_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = form(proof=None)
    for value in (5 - 2 * ALLOWED, -5.0):
        answers = Answers(bound=bound(value))
        found = gathered(answers, monkeypatch, hidden=declared)
        assert {"falling_path", "lowest_enclosed", "better_beside"} <= set(answers.asked)
        assert found.stationary
        assert not found.proven
    # in proven coordinates no better point is beside one that is stationary
    answers = Answers(bound=bound(5 - 2 * ALLOWED))
    gathered(answers, monkeypatch)
    assert "falling_path" in answers.asked
    assert "better_beside" not in answers.asked


def test_what_shows_that_a_point_is_not_stationary(monkeypatch: pytest.MonkeyPatch) -> None:
    def stationary(**given: Any) -> bool:
        return gathered(Answers(**given), monkeypatch, hidden=None).stationary

    assert stationary()
    assert not stationary(stationary=False)
    assert not stationary(better=np.ones(1))
    assert not stationary(lowest=np.ones(1))
    assert not stationary(promised=True)
    assert not stationary(descent=path(endless=False))  # it leads to 4
    assert stationary(descent=path(endless=False, value=5.0))
    assert stationary(stationary=False, certified=True)


def test_constants_of_the_user_count_at_stationary_points_without_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers(domination=0.5 * ALLOWED)
    found = gathered(answers, monkeypatch, hidden=None)
    assert found.domination == found.gap == 0.5 * ALLOWED
    assert "better_beside" not in answers.asked  # they show it to be optimal
    answers = Answers(domination=2 * ALLOWED)
    gathered(answers, monkeypatch, hidden=None)
    assert "better_beside" in answers.asked
    assert gathered(Answers(domination=0.1, stationary=False), monkeypatch, hidden=None).gap is None


def test_a_run_that_ended_by_its_limit_is_not_looked_at_closer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers()
    found = gathered(answers, monkeypatch, hidden=None, termination=Termination.TIME_LIMIT)
    assert not found.stationary
    assert not {"falling_path", "better_beside"} & set(answers.asked)
    shown = Answers(bound=bound(5.0))
    late = gathered(shown, monkeypatch, termination=Termination.TIME_LIMIT)
    assert late.stationary
    assert "falling_path" not in shown.asked
    # under a declared map even the bound would take too long
    mapped, asked = form(map_geometry="a map", proof=None), Answers(bound=bound(5.0))
    late = gathered(asked, monkeypatch, hidden=mapped, termination=Termination.TIME_LIMIT)
    assert late.bound is None
    assert gathered(asked, monkeypatch, hidden=mapped).bound is not None


def test_a_point_outside_of_the_rows_may_show_a_contradiction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proof = bound(1.0)
    answers = Answers(conflict=(proof, ("a part",), False), bound=bound(5.0))
    found = gathered(answers, monkeypatch, row=1.0)
    assert (found.conflict, found.parts, found.bound) == (proof, ("a part",), None)
    assert not {"best_bound", "falling_path", "better_beside"} & set(answers.asked)
    open_question = Answers(bound=bound(5.0))
    found = gathered(open_question, monkeypatch, row=1.0)
    assert found.bound is not None
    assert not {"falling_path", "better_beside"} & set(open_question.asked)
    inside = Answers(conflict=(proof, (), False))
    assert gathered(inside, monkeypatch).conflict is None
    assert "_contradiction" not in inside.asked
    near = gathered(Answers(conflict=(None, None, True)), monkeypatch, row=1.0)
    assert near.termination is Termination.INFEASIBLE_STATIONARY


def test_an_optimal_point_far_out_may_have_better_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: dict[str, Any] = {"bound": bound(5.0), "far": True}
    limit = path(endless=False)
    assert gathered(Answers(**shown, descent=limit), monkeypatch).descent is limit
    endless = Answers(**shown, descent=path(endless=True))
    assert gathered(endless, monkeypatch).descent is None
    assert gathered(Answers(**shown), monkeypatch).descent is None
    near = Answers(bound=bound(5.0), descent=limit)
    assert gathered(near, monkeypatch).descent is None


def test_functions_of_the_user_are_called_as_little_as_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    black = form(compiled=BLACK, oracle=lambda: SimpleNamespace(at=lambda x: at()))

    def asks(**run: Any) -> bool:
        answers = Answers(noisy=run.pop("noisy", False))
        gathered(answers, monkeypatch, hidden=None, **run)
        return "better_beside" in answers.asked

    assert asks(written=black)
    assert not asks(written=black, termination=Termination.CALL_LIMIT)
    assert asks(termination=Termination.CALL_LIMIT)  # formulas cost nothing
    assert not asks(noisy=True)
    assert not asks(written=black, surrounded=True)
    assert asks(surrounded=True)
    noisy = Answers(noisy=True, lowest=np.ones(1))
    assert gathered(noisy, monkeypatch, hidden=None).better is None


def test_the_point_of_the_run_is_not_evaluated_again_where_calls_cost() -> None:
    def evaluated(own: Any, point: float, *, same: bool = True) -> bool:
        known = at(point=point)
        outcome: Any = SimpleNamespace(
            form=own if same else form(),
            result=SimpleNamespace(evaluation=known),
            point=lambda forms: np.zeros(1),
        )
        forms: Any = SimpleNamespace(written=own)
        return gathering._evaluated(forms, outcome) is known

    black = form(compiled=BLACK)
    assert evaluated(black, 0.0)
    assert not evaluated(black, 1.0)
    assert not evaluated(black, 0.0, same=False)
    assert not evaluated(form(), 0.0)


def test_multipliers_of_a_certified_point_are_taken_with_a_hundred_tolerances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers(certified=True)
    assert gathered(answers, monkeypatch).residual == 1e-9
    assert answers.enough == pytest.approx(100 * TOLERANCE)
    plain = Answers()
    gathered(plain, monkeypatch)
    assert plain.enough is None
    # without derivatives there are none
    for steep in (np.nan, np.inf):
        lifted = form(oracle=lambda s=steep: SimpleNamespace(at=lambda x: at(slope=s)))
        found = gathered(Answers(), monkeypatch, lifted=lifted)
        assert found.residual == np.inf
        assert found.multipliers.tolist() == [0.0]


def test_multipliers_at_a_kink_are_exact_where_the_program_of_the_run_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    duals = SimpleNamespace(sets=np.array([2.0]))
    for answer, slope in ((None, None), (duals, duals.sets)):
        own = form(
            stack=SimpleNamespace(kinked=True),
            program_duals=lambda result, a=answer: a,
            oracle=lambda: SimpleNamespace(at=lambda x: at()),
        )
        found = gathered(Answers(residual=1.0), monkeypatch, written=own)
        assert found.at_kink
        assert found.exact == (answer is not None)
        assert found.slope is slope
        assert found.has_multipliers == found.exact


def test_a_run_without_a_point_or_with_a_fault_is_seen_at_first_sight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault = ValueError("a fault")
    found = gathered(Answers(), monkeypatch, cause=fault)
    assert (found.cause, found.residual, found.evaluation is not None) == (fault, np.inf, True)
    nothing = gathered(Answers(), monkeypatch, evaluation=None)
    assert nothing.evaluation is None
    assert nothing.residual == np.inf


def test_a_model_that_fails_again_keeps_the_point_of_its_own_run() -> None:
    def failing(x: Any) -> Any:
        raise OracleFailed("again")

    written = form(oracle=lambda: SimpleNamespace(at=failing))
    forms: Any = SimpleNamespace(written=written)
    run = SimpleNamespace(evaluation=at(), termination=Termination.FAILED, cause=None)
    for own, kept in ((written, True), (form(), False)):
        outcome: Any = SimpleNamespace(form=own, result=run, point=lambda forms: np.zeros(1))
        found = gathering.at_first_sight(forms, outcome, TOLERANCE)
        assert (found.evaluation is run.evaluation) == kept
        assert (found.evaluation is None) != kept


def test_what_enclosures_show_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = form(proof=None)
    convex = SimpleNamespace(convex=True, bends_at=None, lowest=())
    bent = SimpleNamespace(convex=False, bends_at=np.array([20.0]), lowest=())
    shown = gathered(Answers(bound=bound(5.0), settled=convex), monkeypatch, hidden=declared)
    assert (shown.proven, shown.bends_at) == (True, None)
    refuted = gathered(Answers(settled=bent), monkeypatch, hidden=declared)
    assert not refuted.proven
    assert refuted.bends_at is not None
    assert refuted.bends_at.tolist() == [10.0]  # a point of the domain
    assert not gathered(Answers(), monkeypatch, hidden=None).proven
    assert not gathered(Answers(), monkeypatch).relaxed
    loose = form()
    loose.chain.keeps = frozenset()
    assert gathered(Answers(), monkeypatch, hidden=loose).relaxed


# ---- the far end of a path


def test_an_infimum_of_zero_is_said_where_a_logarithm_falls_for_ever() -> None:
    hidden = form()
    hidden.canonical.outer.objective_form = "log"
    run = SimpleNamespace(direction=np.ones(1))
    outcome: Any = SimpleNamespace(form=hidden, result=run)

    def end(**changes: Any) -> Evidence | None:
        known: dict[str, Any] = {"descent": path(endless=False, value=1e-12), **changes}
        evidence = Evidence(Termination.STALLED, TOLERANCE, **known)
        return gathering.at_the_far_end(hidden, outcome, evidence)

    found = end()
    assert found is not None
    assert (found.infimum, found.stationary) == (0.0, True)
    high = end(descent=path(endless=False, value=2 * gap_allowed(0.0, TOLERANCE)))
    assert high is not None
    assert (high.infimum, high.stationary) == (None, False)
    assert end(descent=path(endless=True)) is None
    assert end(descent=None) is None
    run.direction = None
    assert end() is None
    run.direction = np.ones(1)
    outcome.form = form()
    assert end() is None
    outcome.form = hidden
    hidden.canonical.outer.objective_form = "plain"
    assert end() is None


# ---- declared coordinates


def test_enclosures_replace_the_conditions_that_they_settle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hcmodel.certify.declared import curvature_boxes

    answer = SimpleNamespace(convex=True, bends_at=None)
    monkeypatch.setattr(curvature_boxes, "settle", lambda search: answer)
    found = LowerBound(1.0, ("a", "b", "c"), 0, np.zeros(1), np.zeros(1), search="a search")  # type: ignore[arg-type]

    def settled(own: Any, given: Any = found, late: bool = False) -> Any:
        pair: Any = SimpleNamespace(form=own)
        return bounding.settled_bound(own, given, at(), pair, late)

    declared, mapped = form(proof=None), form(proof=None, map_geometry="a map")
    assert settled(declared)[1].conditions == (curvature_boxes.SHOWN, "b", "c")
    assert settled(mapped)[1].conditions == (curvature_boxes.SHOWN, "c")
    assert settled(form()) == (None, found)  # proven
    assert settled(declared, bound(1.0))[0] is None  # not found by a search
    assert settled(declared, late=True) == (None, found)
    assert settled(form(proof=None, compiled=BLACK)) == (None, found)
    answer.convex = False
    assert settled(declared) == (answer, found)
    answer.bends_at = np.zeros(1)
    assert settled(declared) == (answer, None)


def test_constants_count_for_the_model_as_written_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "gradient_domination", lambda *a: 0.25)
    request: Any = SimpleNamespace(given_constants="constants")

    def gap(own: Any) -> float | None:
        return bounding.domination_gap(Pair(own, at(), np.zeros(1)), request)

    assert gap(form()) == 0.25
    assert gap(form(stack=SimpleNamespace(kinked=True))) is None
    lifted = form()
    lifted.chain.adds_variables = 2
    assert gap(lifted) is None
    request.given_constants = None
    assert gap(form()) is None


def test_the_bound_of_the_run_is_used_where_nothing_better_is_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = bound(4.0)
    certifier: Any = SimpleNamespace(bound_at=lambda point: known)
    monkeypatch.setattr(bounding, "tested", lambda each: each)
    monkeypatch.setattr(bounding, "lower_bound", lambda *a, **k: bound(4.5))

    def value(own: Any, thorough: bool, form_of_run: Any = None) -> float:
        outcome: Any = SimpleNamespace(
            form=form_of_run or own,
            result=SimpleNamespace(
                point=np.zeros(1), multipliers=np.zeros(1), termination=Termination.CONVERGED
            ),
        )
        pair = Pair(form(), at(), np.zeros(1))
        found = bounding._searched_bound(
            own, outcome, at(), pair, TOLERANCE, certifier, thorough=thorough
        )
        assert found is not None
        return found.value

    proven, declared = form(), form(proof=None)
    assert value(proven, thorough=True) == 4.5
    assert value(proven, thorough=False) == 4.0
    assert value(declared, thorough=True) == 4.0
    assert value(proven, thorough=False, form_of_run=form()) == 4.5  # of another form
    released = form()
    proven.released = released
    assert value(proven, thorough=False, form_of_run=released) == 4.0
    known = bound(5 - 0.5 * ALLOWED)
    assert value(proven, thorough=True) == 5 - 0.5 * ALLOWED  # it is good enough
    for steep in (np.nan, np.inf):
        bent = form(oracle=lambda s=steep: SimpleNamespace(at=lambda x: at(slope=s)))
        outcome: Any = SimpleNamespace(
            form=bent, result=SimpleNamespace(point=np.zeros(1), multipliers=np.zeros(1))
        )
        pair = Pair(form(), at(), np.zeros(1))
        nothing = bounding._searched_bound(
            bent, outcome, at(), pair, TOLERANCE, None, thorough=True
        )
        assert nothing is None


def test_what_is_asked_thoroughly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared coordinates at once; proven ones only after the cone program, where it is not enough."""
    asked: list[Any] = []

    def searched(*a: Any, thorough: bool) -> LowerBound:
        asked.append(thorough)
        return bound(3.0)

    def cone(
        hidden: Any, target: float, left: float, known: Any = None, *, within_reach: bool = False
    ) -> LowerBound | None:
        asked.append("reach" if within_reach else (target, left))
        return None if within_reach else bound(answer)

    monkeypatch.setattr(bounding, "_enclosed_bound", lambda *a: None)
    monkeypatch.setattr(bounding, "_searched_bound", searched)
    monkeypatch.setattr(bounding, "_cone_bound", cone)
    request: Any = SimpleNamespace(tolerance=TOLERANCE, time_left=2.5)
    pair = Pair(form(), at(), np.zeros(1))

    def best(own: Any, **run: Any) -> LowerBound | None:
        asked.clear()
        result = SimpleNamespace(
            **{"termination": Termination.CONVERGED, "weighted": (), "cone": None, **run}
        )
        outcome: Any = SimpleNamespace(form=own, result=result)
        return bounding.best_bound(FORMS, own, outcome, at(), pair, request, None)

    answer = 4.0
    best(form())
    assert asked == [False, (ALLOWED, 2.5), "reach", True]
    best(form(proof=None))
    assert asked == [True, (ALLOWED, 2.5), "reach"]
    best(form(), cone="a solution")  # the certificate of the run has asked its dual
    assert asked == [False, "reach", True]
    answer = 5.0
    best(form())
    assert asked == [False, (ALLOWED, 2.5)]  # good enough
    # cuts count in the form of the run alone
    monkeypatch.setattr(cut_bounds, "cut_bound", lambda *a: bound(5.0))
    own = form()
    found = best(own, weighted=("a cut",))
    assert found is not None
    assert (found.value, asked) == (5.0, [])
    outcome: Any = SimpleNamespace(
        form=form(),
        result=SimpleNamespace(termination=Termination.TIME_LIMIT, weighted=("a cut",)),
    )
    found = bounding.best_bound(FORMS, own, outcome, at(), pair, request, None)
    assert found is not None
    assert found.value == 3.0


def test_the_cone_program_is_asked_of_proven_models_without_functions_of_the_user() -> None:
    def whole(kind: str) -> Any:
        raise AssertionError("asked")

    for own in (form(proof=None, whole=whole), form(compiled=BLACK, whole=whole)):
        assert bounding._cone_bound(own, 1.0, 1.0) is None
    with pytest.raises(AssertionError):
        bounding._cone_bound(form(whole=whole), 1.0, 1.0)


def test_a_bound_from_the_cone_program_is_one_at_its_own_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A solution that is known is not computed again; one that no value belongs to bounds nothing."""
    solved: list[float] = []
    known: Any = SimpleNamespace(usable=True, primal=np.array([20.0, 7.0]), dual=np.array([3.0]))
    fresh: Any = SimpleNamespace(usable=True, primal=np.array([2.0]), dual=np.array([4.0]))

    def solve(program: Any, options: Any) -> Any:
        solved.append(options.time_limit)
        return fresh

    def lower(own: Any, there: Any, multipliers: Any, **asked: Any) -> LowerBound:
        assert asked["target"] == 0.5
        assert not asked["thorough"]
        return bound(float(there.point[0]) + float(multipliers[0]))

    backend = SimpleNamespace(solve=solve)
    monkeypatch.setattr(bounding, "make_cone_backend", lambda: backend)
    monkeypatch.setattr(bounding, "lower_bound", lower)
    monkeypatch.setattr(bounding, "bound_within_reach", lambda *a: bound(0.25))
    whole = SimpleNamespace(program=None, multipliers=lambda dual, point: 100 * dual)

    def value(solution: Any = None, slope: float = 0.0, **asked: Any) -> float | None:
        own = form(
            whole=lambda kind: whole,
            settled=lambda x: x,
            oracle=lambda: SimpleNamespace(at=lambda x: at(slope=slope, point=float(x[0]))),
        )
        found = bounding._cone_bound(own, 0.5, 3.0, solution, **asked)
        return None if found is None else found.value

    assert value() == 402.0
    assert solved == [3.0]  # the time that is left
    assert value(known) == 310.0  # projected to [−10, 10], without the program's own unknowns
    assert value(known, within_reach=True) == 0.25
    assert solved == [3.0]
    for steep in (np.nan, np.inf):  # without derivatives, there is no minorant
        assert value(known, slope=steep) is None
    known.usable = False
    assert value(known) is None


# ---- contradictions


def test_contradictions_by_cuts_by_the_cone_program_and_by_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    dual: LowerBound | None = None
    far: LowerBound | None = None

    def infeasibility(own: Any, there: Any, weights: Any) -> LowerBound:
        asked.append(weights)
        return bound(2.0)

    def dual_infeasibility(
        own: Any, there: Any, left: float, weights: Any = None, *, within_reach: bool = False
    ) -> LowerBound | None:
        return far if within_reach else dual

    monkeypatch.setattr(impossibility, "dual_infeasibility", dual_infeasibility)
    monkeypatch.setattr(impossibility, "infeasibility", infeasibility)
    monkeypatch.setattr(cut_bounds, "cut_conflict", lambda own, weighted: bound(3.0))

    def value(own: Any, same: bool = True, **run: Any) -> float | None:
        asked.clear()
        result = {"point": np.zeros(1), "conflict": None, "weighted": (), **run}
        outcome: Any = SimpleNamespace(
            form=own if same else form(),
            result=SimpleNamespace(**result),
            point=lambda forms: np.zeros(1),
        )
        request: Any = SimpleNamespace(time_left=1.0)
        found = impossibility._conflict(None, own, outcome, request)  # type: ignore[arg-type]
        return None if found is None else found.value

    weights = np.ones(1)
    assert value(form(), conflict=weights, weighted=("a cut",)) == 3.0
    assert value(form(), conflict=weights) == 2.0
    assert asked == [weights]
    assert value(form(), weighted=("a cut",)) == 2.0  # cuts without a conflict
    assert value(form(), same=False, conflict=weights, weighted=("a cut",)) == 2.0
    assert asked == [None]  # weights of another form
    for steep in (np.nan, np.inf):
        bent = form(oracle=lambda s=steep: SimpleNamespace(at=lambda x: at(slope=s)))
        assert value(bent) is None
    far = bound(0.5)  # for coordinates up to some size: the last resort
    assert value(bent) == 0.5
    assert value(form(), conflict=weights) == 2.0
    dual = bound(1.0)
    assert value(form()) == 1.0
    assert asked == []


def test_which_contradiction_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = bound(2.0)
    answers: dict[str, Any] = {"conflict": proof, "row": None, "convex": None}
    monkeypatch.setattr(impossibility, "_conflict", lambda *a: answers["conflict"])
    monkeypatch.setattr(impossibility, "irreducible_conflict", lambda *a: ("hidden",))
    monkeypatch.setattr(impossibility, "with_replaced_bounds", lambda form, parts, *a: parts)
    monkeypatch.setattr(impossibility, "impossible_row", lambda model: answers["row"])
    monkeypatch.setattr(impossibility, "convex_contradiction", lambda *a: answers["convex"])
    parameters = [SimpleNamespace(value=1.0)]
    forms: Any = SimpleNamespace(
        bounds=SimpleNamespace(contradiction=lambda: answers.get("parts", ()), before=None),
        model=SimpleNamespace(parameters=parameters),
        front=SimpleNamespace(semidefinite=SimpleNamespace(origin=None), slacks=frozenset()),
    )
    request: Any = SimpleNamespace(deadline=None)

    def told(own: Any, termination: Termination = Termination.CONVERGED) -> Any:
        outcome: Any = SimpleNamespace(result=SimpleNamespace(termination=termination))
        return impossibility.contradiction(forms, own, outcome, at(), request)

    assert told(form()) == (proof, ("hidden", "a row of a map"), False)
    some = form()
    some.chain.excludes = lambda parts: False  # points without an image may be feasible
    assert told(some) == (None, None, True)
    assert told(form(), Termination.CALL_LIMIT) == (None, None, False)
    assert told(None) == (None, None, False)
    answers["conflict"] = None
    assert told(form()) == (None, None, False)
    answers["row"] = "a row"
    found, parts, near = told(form())
    assert (found.value, parts, near) == (np.inf, ("a row",), False)
    answers["convex"] = (proof, ("convex rows",))
    assert told(None) == (proof, ("convex rows",), False)
    assert told(form(proof=None)) == (proof, ("convex rows",), False)
    assert told(form(proof="some"))[1] == ("convex rows",)  # its objective may be hard on a solver
    parameters[0].value = None  # type: ignore[assignment]
    assert told(form()) == (None, None, False)
    answers["parts"] = ("two bounds",)
    assert told(form())[1] == ("two bounds",)


# ---- stationary points


def test_a_hull_is_asked_where_the_run_ended_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[float] = []

    def hull(own: Any, here: Any, weighted: Any, most: float) -> bool:
        allowed.append(most)
        return shown

    shown, noisy = True, False
    monkeypatch.setattr(stationary_points, "is_hull_stationary", hull)
    monkeypatch.setattr(stationary_points, "is_noisy", lambda before: noisy)
    monkeypatch.setattr(stationary_points.kkt, "is_stationary", lambda *a: by_multipliers)
    by_multipliers = False
    written = form()
    forms: Any = SimpleNamespace(written=written, sign=SimpleNamespace(before=None))

    def stationary(value: float = 5.0, *, same: bool = True, residual: float = 1.0) -> bool:
        result = SimpleNamespace(termination=Termination.HULL_STATIONARY, weighted=())
        outcome: Any = SimpleNamespace(form=written if same else form(), result=result)
        pair = Pair(form(), at(), np.zeros(1))
        return stationary_points.is_stationary(forms, outcome, at(value), pair, residual, TOLERANCE)

    assert stationary()
    assert stationary(-7.0)
    assert stationary(0.5)
    assert allowed == pytest.approx([5 * TOLERANCE, 7 * TOLERANCE, TOLERANCE])
    assert not stationary(same=False)
    by_multipliers = True
    assert stationary(same=False)
    # at kinks the multipliers of one piece are not enough
    for kinked, falls in ((True, False), (False, True), (True, True)):
        monkeypatch.setattr(stationary_points, "_falls_at_kink", lambda *a, f=falls: f)
        own = form(stack=SimpleNamespace(kinked=kinked))
        run = SimpleNamespace(form=own, result=SimpleNamespace(termination=Termination.CONVERGED))
        pair = Pair(own, at(), np.zeros(1))
        found = stationary_points.is_stationary(forms, run, at(), pair, 1.0, TOLERANCE)  # type: ignore[arg-type]
        assert found != (kinked and falls)
    assert not stationary(same=False, residual=np.inf)
    noisy = True
    assert not stationary()
    shown, noisy = False, False
    assert not stationary()


def test_a_kink_falls_in_units_of_the_point_with_its_rows() -> None:
    """−s·|x − 100| + 4 next to a row of slope 2 at the price 3: terms of (1 + 6)·100 on the scale."""

    def falls(fall: float, multiplier: float = 3.0) -> bool:
        def objective(x: Any) -> tuple[float, Any]:
            return 4 + float(x[0]) - fall * abs(float(x[0]) - 100), np.ones(1)

        oracle = function_oracle(
            1,
            objective,
            inequalities=lambda x: (2 * (x - 100) - 5, np.full((1, 1), 2.0)),
            sizes=(1, 0),
        )
        own = form(oracle=lambda: oracle, domain=Box.of(1, -1e6, 1e6))
        return stationary_points._falls_at_kink(
            own, oracle.at(np.array([100.0])), np.array([multiplier])
        )

    # a step of 1e-5·100·w falls by s times that, w of the order of ½ to 1; 1e-2·1e-5·700 is the limit
    assert not falls(0.0)
    assert not falls(0.02)
    assert falls(0.4)
    assert not falls(0.4, multiplier=300.0)  # little beside the terms of the row


def test_a_kink_is_looked_at_both_ways_in_all_directions_close_to_the_point() -> None:
    """A fall to one side only, in one corner of many, is missed where a direction has one sign."""
    seen: list[Any] = []

    def objective(x: Any) -> tuple[float, Any]:
        seen.append(x - 100)
        return 0.0, np.zeros(2)

    oracle = function_oracle(2, objective)
    own = form(oracle=lambda: oracle, domain=Box.of(2, -1e6, 1e6))
    here = oracle.at(np.full(2, 100.0))
    seen.clear()
    assert not stationary_points._falls_at_kink(own, here, np.zeros(0))
    steps = np.array(seen)
    assert len(steps) == 16
    assert steps[::2] == pytest.approx(-steps[1::2], rel=1e-9)
    assert {tuple(each) for each in np.sign(steps)} == {(1, 1), (1, -1), (-1, 1), (-1, -1)}
    most = stationary_points.RULES.kink_distance * 100
    assert 0.5 * most < np.abs(steps).max() <= most
    assert np.linalg.matrix_rank(steps[::2]) == 2


def test_a_promise_is_asked_in_hidden_coordinates_that_keep_all_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def decrease(oracle: Any, domain: Any, geometry: Any, evaluation: Any, m: Any) -> float:
        seen.append(geometry.name)
        return 0.0

    monkeypatch.setattr(stationary_points, "promised_decrease", decrease)
    pair = Pair(form(geometry=SimpleNamespace(name="lifted")), at(), np.zeros(1))

    def asked(*, bends: bool, whole: bool) -> str:
        hidden = form(geometry=SimpleNamespace(name="hidden", bends=lambda x: bends))
        hidden.chain.keeps = frozenset([Claim.UNBOUNDED]) if whole else frozenset()
        assert not stationary_points.promises_more(hidden, pair, TOLERANCE)
        return str(seen[-1])

    assert asked(bends=False, whole=True) == "hidden"
    assert asked(bends=True, whole=True) == "lifted"
    assert asked(bends=False, whole=False) == "lifted"


# ---- what is said


def test_a_trace_goes_on_where_the_run_before_it_ended() -> None:
    record = Record(1, "a phase", 3, 2, *[0.0] * 6)
    calls = OracleCalls(objective=30, constraints=40, points=35)
    run: Any = SimpleNamespace(trace=(record,), calls=calls, iterations=8)
    first = concluding.History().extended(run)
    both = first.extended(run)
    assert (both.iterations, both.calls.total, both.calls.points) == (16, 140, 70)
    assert [(r.iteration, r.calls, r.points) for r in both.trace] == [(1, 3, 2), (2, 73, 37)]


def conflict_of(weights: Any, magnitudes: Any, rows: Any = ()) -> tuple[str, ...]:
    """The rows that a proof with these multipliers names."""
    evaluation = SimpleNamespace(magnitudes=np.array(magnitudes), violations=np.zeros(3))
    hidden = form(oracle=lambda: SimpleNamespace(at=lambda x: evaluation))
    hidden.chain.has_bound_rows = bool(rows)
    hidden.chain.origin = Origin
    hidden.conflicting_bounds = lambda *a: SimpleNamespace(rows=rows)
    proof = LowerBound(1.0, (), 0, np.zeros(1), np.array(weights))
    evidence: Any = SimpleNamespace(parts=None, conflict=proof)
    outcome: Any = SimpleNamespace(
        form=hidden, result=SimpleNamespace(evaluation=evaluation, conflict=None)
    )
    forms: Any = SimpleNamespace(user=None, front=SimpleNamespace(origin=lambda each: each))
    return concluding._conflict(Status.INFEASIBLE, forms, hidden, outcome, evidence)


def test_a_conflict_names_the_rows_that_weigh_a_thousandth_of_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    naming = SimpleNamespace(row=lambda each: f"row {each.position}")
    monkeypatch.setattr(concluding.Naming, "of", staticmethod(lambda model: naming))
    # 5·2 = 10 is the largest; 0.02·0.4 is less than a thousandth of it, −0.02·0.6 is not
    assert conflict_of([5.0, 0.02, -0.02], [2.0, 0.4, 0.6]) == ("row 0", "row 2")
    # bounds that the proof rests on, of which the largest is 8
    rows = [np.array([8.0, 0.0]), None, np.array([0.0, 0.007]), np.array([0.009, 0.0])]
    found = conflict_of([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], rows)
    assert found == ("row 0", "row 3")


def test_weights_of_the_run_name_rows_where_there_is_no_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    naming = SimpleNamespace(row=lambda each: f"row {each.position}")
    monkeypatch.setattr(concluding.Naming, "of", staticmethod(lambda model: naming))
    own = form()
    own.chain.origin = Origin
    evaluation = SimpleNamespace(violations=np.array([0.0, 3.0]))
    forms: Any = SimpleNamespace(user=None, front=SimpleNamespace(origin=lambda each: each))
    evidence: Any = SimpleNamespace(parts=None, conflict=None)
    for weights, named in ((None, "row 1"), (np.array([2.0, 0.0]), "row 0")):
        outcome: Any = SimpleNamespace(
            form=own, result=SimpleNamespace(evaluation=evaluation, conflict=weights)
        )
        for hidden in (None, form()):
            found = concluding._conflict(
                Status.INFEASIBLE_INACCURATE, forms, hidden, outcome, evidence
            )
            assert found == (named,)
    assert concluding._conflict(Status.OPTIMAL, forms, None, outcome, evidence) == ()


def test_a_method_asks_for_a_hundredth_of_the_gap_or_for_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, Any] = {}

    def lower(*a: Any, **asked: Any) -> None:
        seen.update(asked)

    monkeypatch.setattr(certifying, "lower_bound", lower)
    for own, once, target in ((form(), False, 0.01), (form(proof=None), True, 1.0)):
        Certifier(own, TOLERANCE, once=once)(at(), np.zeros(1))
        assert seen["target"] == pytest.approx(target * ALLOWED)
        assert seen["finest"] == pytest.approx(FINEST * ALLOWED)
        assert seen["thorough"] == (own.proof is None)  # else the cone program is asked in the end
        assert seen["assume_convex"]
    seen.clear()
    Certifier(form(), TOLERANCE)(at(point=10.0 + 1e-6), np.zeros(1))
    assert not seen  # outside of the domain


def test_the_point_of_a_run_is_told_where_the_model_cannot_be_evaluated_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concluding, "user_point", lambda forms, x: {"x": x})
    run = SimpleNamespace(evaluation=at(point=3.0))
    outcome: Any = SimpleNamespace(result=run, point=lambda forms: np.array([3.0]))
    forms: Any = None
    assert concluding._point(forms, outcome, at(point=2.0))["x"].tolist() == [2.0]
    assert concluding._point(forms, outcome, None)["x"].tolist() == [3.0]
    run.evaluation = None
    assert concluding._point(forms, outcome, None) == {}


def test_constraints_without_a_multiplier_have_no_dual() -> None:
    naming: Any = SimpleNamespace(
        constraints=("a", "b"), dual=lambda position, dual: dual + position
    )
    duals: Any = SimpleNamespace(rows=(None, np.array(3.0)))
    assert concluding._duals(duals, naming) == {"b": 4.0}


def test_nothing_is_certified_of_points_that_are_nowhere() -> None:
    forms: Any = SimpleNamespace(sign=SimpleNamespace(value_back=lambda v: -v))
    evidence: Any = SimpleNamespace(
        evaluation=at(),
        bound=bound(3.0),
        conflict=None,
        domination=None,
        residual=0.5,
        at_kink=False,
    )
    found = concluding._certificate(Status.OPTIMAL, forms, evidence, True)
    assert (found.lower_bound, found.gap, found.stationarity) == (-3.0, 2.0, 0.5)
    for status in concluding.NOWHERE:
        assert concluding._certificate(status, forms, evidence, False).gap is None
    evidence.evaluation = None
    assert concluding._certificate(Status.OPTIMAL, forms, evidence, False).gap is None
    evidence.evaluation, evidence.bound, evidence.domination = at(), None, 0.25
    found = concluding._certificate(Status.OPTIMAL, forms, evidence, True)
    assert (found.kind, found.gap, found.lower_bound) == ("gradient-domination", 0.25, -4.75)


def test_a_run_that_stalls_in_a_valley_is_told_so() -> None:
    def in_valley(**changes: Any) -> bool:
        valley = Descent(False, 4.0, at(), np.zeros(1), np.zeros(1, dtype=bool), None, True)
        given: dict[str, Any] = {"descent": valley, "stationary": False, **changes}
        termination = given.pop("termination", Termination.STALLED)
        return Evidence(termination, TOLERANCE, **given).in_valley

    assert in_valley()
    assert not in_valley(termination=Termination.CONVERGED)
    assert not in_valley(stationary=True)
    assert not in_valley(descent=None)
    assert not in_valley(descent=path(endless=False))


def test_the_least_value_of_an_objective_counts_where_the_point_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forms: Any = SimpleNamespace(bounds=SimpleNamespace(after=None))
    for value, counts in ((5 - 0.9e-3, True), (5 - 1.1e-3, False), (None, False)):
        least = None if value is None else bound(value)
        monkeypatch.setattr(bounding, "least_value", lambda model, here, b=least: b)
        found = bounding._enclosed_bound(forms, at(), 1e-3)
        assert (found is not None) == counts


def test_better_points_beyond_the_reach_of_a_bound_refute_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within, endless = replace(bound(5.0), reach=1e6), path(endless=True)
    lower, level = path(endless=False), path(endless=False, value=5.0)
    for beyond, keeps in ((endless, False), (lower, False), (level, True), (None, True)):
        found = gathered(Answers(bound=within, descent=beyond), monkeypatch)
        assert (found.bound is within) == keeps
        assert found.descent is (None if keeps else beyond)
    # a bound for all sizes leaves nothing to look for
    assert gathered(Answers(bound=bound(5.0), descent=endless), monkeypatch).descent is None


@pytest.mark.parametrize(
    ("value", "above", "keeps"),
    [
        # a millionth of 1, of the value, and of the bound
        (0.0, 0.9e-6, True),
        (0.0, 1.1e-6, False),
        (100.0, 0.9e-4, True),
        (100.0, 1.1e-4, False),
        (-100.0, 0.9e-4, True),
        (0.0, -3.0, True),
    ],
)
def test_a_feasible_point_refutes_a_bound_above_its_value_by_more_than_rounding(
    value: float, above: float, keeps: bool
) -> None:
    given = bound(value + above)
    kept = gathering._unless_refuted(at(value), given)
    assert (kept is not None) == keeps
    if kept is not None:  # what rounding comes to is on the safe side of the value
        assert kept.value == pytest.approx(value - abs(above), abs=1e-15)
    assert gathering._unless_refuted(at(value, row=1e-12), given) is given  # not exactly feasible
    assert gathering._unless_refuted(at(value), None) is None
