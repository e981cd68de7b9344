"""What is said of a point in the user's names: paths, bounds, multipliers and reasons.

The models are small and real; what is known of their points is prepared. Nothing here runs a method.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.paths.descent import Descent
from hcmodel.reductions.forms import Forms
from hcmodel.solvers import Termination
from hcmodel.solving import conclude as concluding
from hcmodel.solving.evidence import Evidence
from hcmodel.solving.judge import Status

TOLERANCE = 1e-6


def model(size: int = 3, maximised: bool = False) -> Forms:
    """The sum of x and y, in [0, 9] each; x has several entries."""
    x, y = hc.Variable(size, name="x", bounds=(0, 9)), hc.Variable(name="y", bounds=(0, 9))
    total = hc.sum(x) + y
    return hc.Problem(hc.Maximize(total) if maximised else hc.Minimize(total)).forms()


def words(forms: Forms, moves: Any, vanishing: Any, point: Any, **changes: Any) -> str:
    lowest = forms.written.oracle().at(np.array(point, dtype=float))
    marks = np.array(vanishing, dtype=bool)
    given: dict[str, Any] = {"endless": False, "limit": 2.5, **changes}
    path = Descent(lowest=lowest, moves=np.array(moves, dtype=float), vanishing=marks, **given)
    return concluding._path_in_words(path, forms)


# ---- paths


def test_a_path_names_where_each_of_its_entries_goes() -> None:
    """The first entry grows, the second falls, the third is at 1e-9 and y at 4: both go to an edge."""
    marks: list[Any] = [[1, -1, 0, 0], [0, 0, 1, 1], [5, 5, 1e-9, 4]]
    entries = "x[0] -> inf, x[1] -> -inf, x[2] -> 0, y -> its bound"
    assert words(model(), *marks, endless=True) == f", along {entries}"
    tail = f"along {entries}; give these variables bounds"
    found = words(model(), *marks)
    assert found.startswith("; no point attains the best value")
    assert found.endswith(f"the objective still improves, to 2.5, {tail}")
    assert f"to -2.5, {tail}" in words(model(maximised=True), *marks)


@pytest.mark.parametrize(("size", "more"), [(3, False), (4, True)])
def test_four_entries_of_a_path_are_named(size: int, more: bool) -> None:
    forms = model(size)
    found = words(forms, np.ones(size + 1), np.zeros(size + 1), np.ones(size + 1), endless=True)
    assert found.count("-> inf") == 4
    assert found.endswith(", …") == more


def test_a_pole_is_named_by_its_place() -> None:
    found = words(model(1), [0, 0], [0, 0], [1, 1], pole=np.array([3.0, 0.5]), endless=True)
    assert found.startswith(": it has a pole at x = [3.], y = 0.5, next to which")


# ---- bounds and multipliers


def evidence(forms: Forms, point: Any, **changes: Any) -> Evidence:
    """What is known of a point: a residual of 1e-8, and no multipliers, since there are no rows."""
    there = forms.written.oracle().at(np.array(point, dtype=float))
    known: dict[str, Any] = {
        "evaluation": there,
        "smooth": there,
        "multipliers": np.zeros(0),
        "residual": 1e-8,
        **changes,
    }
    return Evidence(known.pop("termination", Termination.CONVERGED), TOLERANCE, **known)


def test_bounds_at_a_kink_have_the_slopes_of_the_program_or_none() -> None:
    """The derivatives at the point are those of one piece; the slopes 7 and −5 are those that count."""
    forms = model(1)
    point, slopes = [0.0, 9.0], np.array([7.0, -5.0])
    smooth = concluding._bound_duals(forms, evidence(forms, point))
    assert (float(smooth["x"].lower[0]), float(smooth["y"].upper)) == (1.0, 0.0)
    unknown = evidence(forms, point, at_kink=True)
    assert concluding._bound_duals(forms, unknown) == {}
    known = concluding._bound_duals(forms, evidence(forms, point, at_kink=True, slope=slopes))
    assert (float(known["x"].lower[0]), float(known["x"].upper[0])) == (7.0, 0.0)
    assert (float(known["y"].lower), float(known["y"].upper)) == (0.0, 5.0)


@pytest.mark.parametrize(("away", "held"), [(0.9e-6, True), (1.1e-6, False)])
def test_a_bound_below_one_holds_within_the_tolerance(away: float, held: bool) -> None:
    forms = model(1)
    slopes = np.array([7.0, 0.0])  # as they are, whether the domain counts the point as at its edge
    known = evidence(forms, [away, 1.0], at_kink=True, slope=slopes)
    domain: Any = SimpleNamespace(bound_multipliers=lambda point, downhill, tolerance: downhill)
    canonical: Any = SimpleNamespace(domain=domain, layout=forms.lifted.canonical.layout)
    prepared: Any = SimpleNamespace(
        lifted=SimpleNamespace(canonical=canonical), model=forms.model, user=forms.user
    )
    found = concluding._bound_duals(prepared, known)
    assert float(found["x"].lower[0]) == (7.0 if held else 0.0)


def solution(forms: Forms, known: Evidence, hidden: Any = None) -> Any:
    outcome: Any = SimpleNamespace(
        form=forms.written,
        result=SimpleNamespace(evaluation=known.evaluation, conflict=None, cone=None),
    )
    history = concluding.History()
    return concluding.conclude(forms, hidden, outcome, known, history, "a method")


def test_multipliers_are_told_where_they_are_known_and_the_point_may_be_a_minimum() -> None:
    forms = model(1)
    found = solution(forms, evidence(forms, [0.0, 0.0], stationary=True))
    assert found.status is Status.LOCALLY_OPTIMAL
    assert float(found.bound_duals["y"].lower) == 1.0
    assert found.certificate.stationarity == 1e-8
    unknown = solution(forms, evidence(forms, [0.0, 0.0], residual=np.inf))
    assert unknown.bound_duals == {}
    assert unknown.certificate.stationarity is None
    lowest = forms.written.oracle().at(np.zeros(2))
    endless = Descent(True, -np.inf, lowest, np.ones(2), np.zeros(2, dtype=bool))
    nowhere = solution(forms, evidence(forms, [0.0, 0.0], descent=endless))
    assert nowhere.status is Status.UNBOUNDED
    assert nowhere.bound_duals == {}
    assert nowhere.certificate.stationarity is None


def test_what_a_proof_fails_at_is_told_where_there_is_no_hidden_form() -> None:
    x = hc.Variable(name="x", bounds=(0, 9))
    forms = hc.Problem(hc.Minimize(hc.sin(x))).forms()
    assert forms.hidden(None) is None
    assert forms.failure is not None
    known = evidence(forms, [0.0], stationary=True)
    assert solution(forms, known).message.endswith(f"global minimum: {forms.failure}")
    assert solution(forms, known, hidden=forms.written).message == Termination.CONVERGED.value


def test_where_declared_coordinates_bend_is_told_of_local_minima_only() -> None:
    forms = model(1)
    known = evidence(forms, [0.0, 0.0], bends_at=np.array([2.0, 0.25]))
    reason = Termination.CONVERGED.value
    said = concluding._message(Status.LOCALLY_OPTIMAL, known, forms, proven=True)
    assert said.startswith(f"{reason}; not convex in the declared coordinates, as at x = [2.]")
    assert "y = 0.25" in said
    assert concluding._message(Status.OPTIMAL_INACCURATE, known, forms, proven=True) == reason


@pytest.mark.parametrize(("most", "active"), [(0.5, True), (5.0, False)])
def test_an_active_bound_that_the_proof_does_not_cover_is_named(most: float, active: bool) -> None:
    """The best gain of this plant is 1.10; a bound of K is not convex in P and K P."""
    P, K = hc.Variable((1, 1), name="P", PSD=True), hc.Variable((1, 1), name="K")
    F, cost = 1.2 - K, hc.trace(P) + 0.1 * hc.trace(K @ P @ K.T)
    problem = hc.Problem(hc.Minimize(cost), [P == F @ P @ F.T + 1, K[0, 0] <= most])
    problem.solve()
    assert problem.status == ("locally_optimal" if active else "optimal")
    words = "; bounds are active that are not convex in the coordinates of the proof: K[0, 0]"
    assert problem.solution.message.endswith(words) is active


@pytest.mark.parametrize(("size", "singular"), [(1e6, True), (10.0, False)])
def test_a_matrix_that_is_nearly_singular_at_an_inexact_result_is_named(
    size: float, singular: bool
) -> None:
    """Riccati's inequality of H∞ control, whose infimum no X attains: rounding of X² violates it."""
    X, K = hc.Variable((2, 2), name="X", PSD=True), hc.Variable((1, 2), name="K")
    g, unit = hc.Variable(name="g", pos=True), np.eye(2)
    F = np.array([[0.0, 1.0], [2.0, -1.0]]) + np.array([[0.0], [1.0]]) @ K
    problem = hc.Problem(hc.Minimize(g), [F.T @ X + X @ F + X @ X / g + unit + K.T @ K << 0])
    forms = problem.forms()
    hidden, values = forms.hidden(), {"X": np.diag([1.0, size]), "K": np.ones((1, 2)), "g": 6.0}
    layout = forms.model.layout
    parts = [np.broadcast_to(values.get(v.name, 1.0), v.shape) for v in layout.variables]
    there: Any = SimpleNamespace(point=layout.pack(parts))
    evidence = Evidence(Termination.STALLED, 1e-6, evaluation=there)
    for status in (Status.SOLVER_ERROR, Status.OPTIMAL_INACCURATE):
        found = concluding._singular_in_words(status, evidence, hidden)
        assert ("inv(X) is nearly singular there" in found) is singular
    assert not concluding._singular_in_words(Status.OPTIMAL, evidence, hidden)
    assert not concluding._singular_in_words(Status.SOLVER_ERROR, evidence, None)
