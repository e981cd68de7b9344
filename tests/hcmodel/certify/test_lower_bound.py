"""In which order bounds are asked for, and which of them is returned: all answers are prepared."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy

from hcmodel.certify import infeasibility
from hcmodel.certify import lower_bound as module
from hcmodel.certify.certificate_options import BOUND, CONE_DUALITY
from hcmodel.certify.duals.cone_duality import ConeBound, without_added
from hcmodel.certify.lower_bound import LowerBound, bound_conditions, lower_bound
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers import Box, function_oracle
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeStatus


def bound(value: float) -> LowerBound:
    return LowerBound(value, (), 0, np.zeros(1), np.zeros(1))


@dataclasses.dataclass
class Solution:
    status: ConeStatus
    primal: Any
    dual: Any
    slack: Any = None


@dataclasses.dataclass
class Program:
    quadratic: Any
    linear: Any
    constant: Any
    offset: Any
    is_semidefinite: bool = False


class Prepared:
    """A search that finds these values, first from the pair and then by improving it."""

    def __init__(self, first: float, improved: float, doubles: float | None = None) -> None:
        self.value, self.improved, self.doubles = first, improved, doubles
        self.among_doubles, self.best = False, None
        self.asked: list[Any] = []

    def begin(self, evaluation: Any, multipliers: Any) -> None:
        self.asked.append("begin")

    def improve(self, enough: Any, fair: Any, thorough: bool) -> None:
        self.asked.append("improve")
        # the gaps from which on a bound is enough, and fair, of a value of 5
        gaps = np.array([1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2, 1.0])
        self.enough = max((gap for gap in gaps if enough(5 - gap)), default=0.0)
        self.fair = max((gap for gap in gaps if fair(5 - gap)), default=0.0)
        self.value = self.improved

    def take_doubles(self) -> None:
        self.asked.append("doubles")
        if self.doubles is not None:
            self.value, self.among_doubles = self.doubles, True


def found(
    search: Prepared,
    monkeypatch: pytest.MonkeyPatch,
    *,
    dual: float | None = None,
    posynomials: bool = False,
    dual_among_doubles: float | None = None,
    logarithms: bool = True,
    **asked: Any,
) -> float | None:
    def dual_bound(*a: Any, among_doubles: bool, **more: Any) -> LowerBound | None:
        search.asked.append("dual among doubles" if among_doubles else "dual")
        value = dual_among_doubles if among_doubles else dual
        return None if value is None else bound(value)

    def result(given: Any, plain: Any, assume_convex: bool) -> LowerBound | None:
        return bound(given.value) if np.isfinite(given.value) else None

    monkeypatch.setattr(module.Search, "of", staticmethod(lambda *a: search))
    monkeypatch.setattr(module, "_dual_bound", dual_bound)
    monkeypatch.setattr(module, "bound_of", result)
    form: Any = SimpleNamespace(
        oracle=lambda: None,
        has_posynomials=posynomials,
        chain=SimpleNamespace(value_back=lambda v: v),
        stack=object.__new__(LogStack) if logarithms else None,
    )
    here = function_oracle(1, lambda x: (5.0, np.zeros(1))).at(np.zeros(1))
    own = lower_bound(form, here, np.zeros(0), **asked)
    return None if own is None else own.value


def test_the_search_aims_at_the_target_or_as_fine_as_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def aims(**asked: Any) -> tuple[float, float]:
        search = Prepared(-np.inf, 5.0)
        found(search, monkeypatch, **asked)
        return search.enough, search.fair

    least = 1e-10  # of a value of 5, times 5, lies between these two
    assert least < BOUND.finest * 5 < 1e-9
    assert aims() == (1e-10, 1e-10)
    assert aims(target=2e-4) == (1e-4, 1e-4)
    assert aims(target=2e-4, finest=2e-6) == (1e-6, 1e-4)
    assert aims(target=2e-4, finest=1e-30) == (1e-10, 1e-4)  # finer than that is rounding
    assert aims(target=2e-6, finest=2e-4) == (1e-6, 1e-6)


def test_the_dual_comes_first_unless_terms_enclose_the_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = Prepared(-np.inf, 5.0)
    assert found(search, monkeypatch, target=0.1, dual=4.95) == 4.95
    assert search.asked == ["begin", "dual"]
    search = Prepared(-np.inf, 5.0)
    assert found(search, monkeypatch, target=0.1, dual=4.8) == 5.0  # not good enough
    assert search.asked == ["begin", "dual", "improve"]
    search = Prepared(4.95, 5.0)
    assert found(search, monkeypatch, target=0.1, dual=4.96) == 5.0  # the first pair is fair
    assert search.asked == ["begin", "improve"]
    search = Prepared(-np.inf, 4.95)
    assert found(search, monkeypatch, target=0.1, dual=5.0, posynomials=True) == 4.95
    assert search.asked == ["begin", "improve"]
    search = Prepared(-np.inf, 4.0)
    assert found(search, monkeypatch, target=0.1, dual=5.0, posynomials=True) == 5.0
    assert search.asked == ["begin", "improve", "dual"]
    search = Prepared(-np.inf, 4.0)
    assert found(search, monkeypatch, target=0.1, dual=-5.0, posynomials=True) == 4.0
    search = Prepared(-np.inf, 4.95)
    search.among_doubles = True
    assert found(search, monkeypatch, target=0.1, dual=5.0, posynomials=True) == 5.0


def test_bounds_among_doubles_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Prepared(-np.inf, 4.0, doubles=4.95)
    assert found(search, monkeypatch, target=0.1) == 4.95
    assert search.asked == ["begin", "dual", "improve", "doubles"]
    for searched, dual, best in ((4.0, 4.5, 4.5), (4.5, 4.0, 4.5), (-np.inf, 4.0, 4.0)):
        search = Prepared(-np.inf, searched)
        assert found(search, monkeypatch, target=0.1, dual_among_doubles=dual) == best
        assert search.asked[-1] == "dual among doubles"
        search = Prepared(-np.inf, searched)
        asked: dict[str, Any] = {
            "target": 0.1,
            "dual": dual,
            "dual_among_doubles": 9.0,
            "logarithms": False,
        }
        assert found(search, monkeypatch, **asked) == best  # of coordinates without logarithms
        assert "dual among doubles" not in search.asked
    assert found(Prepared(-np.inf, 4.0), monkeypatch, target=0.1) == 4.0
    assert found(Prepared(-np.inf, -np.inf), monkeypatch, target=0.1) is None


def test_the_level_of_a_dual_is_a_thousandth_above_the_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[float] = []

    def cone_bound(program: Any, solution: Any, level: float, *a: Any, **more: Any) -> Any:
        seen.append(level)
        return ConeBound(answer, among_doubles=True)

    monkeypatch.setattr("hcmodel.certify.duals.cone_duality.cone_bound", cone_bound)
    monkeypatch.setattr(module, "bound_conditions", lambda *a: ("a condition",))
    form: Any = SimpleNamespace(
        proof="a proof",
        whole=lambda kind: SimpleNamespace(program=None),
        stack=None,
        implied_ends=lambda: (np.zeros(1), np.zeros(1)),
        chain=SimpleNamespace(value_back=lambda v: 2 * v),
    )
    search: Any = SimpleNamespace(form=form, chart=None)

    def dual(value: float) -> LowerBound | None:
        here = function_oracle(1, lambda x: (value, np.zeros(1))).at(np.zeros(1))
        return module._dual_bound(
            search,
            "a solution",
            (here, np.zeros(0)),
            lambda v: True,
            among_doubles=False,  # type: ignore[arg-type]
        )

    answer = 3.0
    for value in (10.0, -10.0):
        own = dual(value)
        assert own is not None
        assert own.value == 6.0
        assert len(own.conditions) == 2  # among doubles
    assert seen == pytest.approx([10 + 10 * CONE_DUALITY.margin, -10 + 10 * CONE_DUALITY.margin])
    here = function_oracle(1, lambda x: (10.0, np.zeros(1))).at(np.zeros(1))
    none = module._dual_bound(
        search, None, (here, np.zeros(0)), lambda v: True, among_doubles=False
    )
    assert none is None  # without a solution
    assert len(seen) == 2
    answer = np.inf
    assert dual(10.0) is None
    form.whole = lambda kind: Refusal(None, "no form")
    assert dual(10.0) is None
    form.proof = None
    assert dual(10.0) is None


def test_a_dual_without_the_cones_of_added_unknowns() -> None:
    """Rows of equalities and of inequalities go one by one, other cones as a whole."""
    matrix = scipy.sparse.csc_array(np.array([[1.0, 0, 1, 0, 1, 0, 1], [0.0, 2, 0, 0, 3, 0, 0]]).T)
    kinds = (ConeKind.ZERO, 2), (ConeKind.SECOND_ORDER, 2), (ConeKind.PSD_TRIANGLE, 3)
    program: Any = SimpleNamespace(sparse=matrix, cones=[ConeBlock(*each) for each in kinds])
    found = without_added(program, np.arange(1.0, 8.0), 1)
    assert found.tolist() == [1, 0, 3, 4, 0, 0, 0]


def test_a_program_without_an_objective_proves_that_it_is_infeasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status, value = ConeStatus.INFEASIBLE, 0.5
    seen: list[Any] = []

    def cone_bound(rows: Any, ray: Any, level: float, *a: Any, **more: Any) -> Any:
        seen.append((rows.linear, rows.quadratic, rows.constant, ray.primal, level))
        return None if value is None else ConeBound(value)

    def solve(own: Any, options: Any) -> Any:
        return Solution(status, np.ones(2), np.ones(3))

    monkeypatch.setattr(infeasibility, "cone_bound", cone_bound)
    monkeypatch.setattr(infeasibility, "make_cone_backend", lambda: SimpleNamespace(solve=solve))
    monkeypatch.setattr(infeasibility, "without_added", lambda rows, dual, count: 0.0 * dual)
    monkeypatch.setattr(infeasibility, "without_small", lambda rows, dual, count: dual)
    monkeypatch.setattr(infeasibility, "without_idle", lambda rows, dropped, own: (rows, ~dropped))
    whole = SimpleNamespace(
        program=Program(np.array([[2.0]]), np.array([3.0]), 7.0, np.zeros(3)),
        multipliers=lambda dual, point: dual,
    )
    form: Any = SimpleNamespace(
        proof="a proof",
        whole=lambda kind: whole,
        stack=None,
        implied_ends=lambda: (np.zeros(1), np.zeros(1)),
        coordinate_names=lambda: ["x"],
        canonical=SimpleNamespace(layout=SimpleNamespace(size=1)),
    )
    here = function_oracle(1, lambda x: (5.0, np.zeros(1))).at(np.zeros(1))

    def proof() -> LowerBound | None:
        return infeasibility.dual_infeasibility(form, here, 1.0)

    own = proof()
    assert own is not None
    assert own.value == 0.5
    linear, quadratic, constant, primal, level = seen[0]
    assert (linear.tolist(), quadratic.tolist(), constant) == ([0.0], [[0.0]], 0.0)
    assert (primal.tolist(), level) == ([0.0], 1.0)
    value = 0.5 * BOUND.conflict  # may be rounding
    assert proof() is None
    value = None  # type: ignore[assignment]
    assert proof() is None
    value, status = 0.5, ConeStatus.SOLVED
    assert proof() is None
    status, form.proof = ConeStatus.ALMOST_INFEASIBLE, None
    assert proof() is None


def test_only_declared_coordinates_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = True
    monkeypatch.setattr("hcmodel.certify.declared.map_test.contradicted", lambda search: wrong)
    form: Any = SimpleNamespace(proof=None, is_convex_in_map=False)
    search: Any = SimpleNamespace(form=form)
    own = LowerBound(1.0, (), 0, np.zeros(1), np.zeros(1), search=search)
    assert module.tested(own) is None
    wrong = False
    assert module.tested(own) is own
    wrong, form.proof = True, "a proof"
    assert module.tested(own) is own
    form.proof, form.is_convex_in_map = None, True
    assert module.tested(own) is own
    form.is_convex_in_map = False
    assert module.tested(bound(1.0)) is not None  # not found by a search


def test_a_bound_is_told_in_units_of_the_user_unless_the_map_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = False
    monkeypatch.setattr("hcmodel.certify.declared.map_test.contradicted", lambda search: wrong)
    monkeypatch.setattr(module, "bound_conditions", lambda *a: ("a condition",))
    here = SimpleNamespace(point=np.zeros(1))
    best = SimpleNamespace(evaluation=here, multipliers=np.zeros(0))
    search: Any = SimpleNamespace(
        best=best,
        value=3.0,
        form=SimpleNamespace(proof=None, is_convex_in_map=False),
        chart=None,
        minorants=[best],
        among_doubles=False,
        oracle=SimpleNamespace(calls=SimpleNamespace(points=4)),
    )

    def value(assume: bool = False) -> Any:
        own = module.bound_of(search, lambda v: 2 * v, assume)
        return None if own is None else (own.value, len(own.conditions))

    assert value() == (6.0, 1)
    search.among_doubles = True
    assert value() == (6.0, 2)
    wrong = True
    assert value() is None
    assert value(assume=True) == (6.0, 2)
    search.form.proof = "a proof"
    assert value() == (6.0, 2)
    search.value = -np.inf
    assert value() is None
    search.value, search.best = 3.0, None
    assert value() is None


def test_a_bending_bound_that_is_active_is_named() -> None:
    variable = SimpleNamespace(name="K")
    geometry = SimpleNamespace(bending=np.array([False, True]))
    layout = SimpleNamespace(slice=lambda v: slice(1, 2))
    form: Any = SimpleNamespace(
        proof=None,
        is_convex_in_map=False,
        map_geometry=geometry,
        canonical=SimpleNamespace(layout=layout),
        program=SimpleNamespace(bending=[variable]),
        domain=Box.of(2, 0.0, 9.0),
    )
    chart: Any = SimpleNamespace(notes=("a note",))
    for place, active in ((5.0, False), (9.0, True), (0.0, True)):
        told = bound_conditions(form, chart, np.array([0.0, place]))
        assert any("an active bound of K" in each for each in told) == active
        assert told[-1] == "a note"
    form.program.bending = []
    assert len(bound_conditions(form, chart, np.array([0.0, 9.0]))) == 3
    form.map_geometry = None
    assert len(bound_conditions(form, chart, np.zeros(2))) == 1
    form.proof, form.coordinate_names = "a proof", lambda: ["x", "y"]
    assert bound_conditions(form, chart, np.zeros(2)) == ("proven convex in x, y",)
