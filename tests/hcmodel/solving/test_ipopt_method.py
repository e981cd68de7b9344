"""`ipopt`: coordinates, limits, judgement, and what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers import METHODS, oracle
from hcmodel.solvers.limits import TimeExhausted
from hcmodel.solvers.second_order.ipopt_ import IpoptOptions


def tank() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3), start=[0.6, 1.6])
    area = (x[0] * x[1] <= 1).named("area")
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area])


def test_without_casadi_the_line_to_install_it_is_said(monkeypatch) -> None:
    from hcmodel.solvers.second_order import ipopt_

    monkeypatch.setattr(ipopt_.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(hc.ModelError, match=r"ipopt needs casadi.*pip install 'hcmodel\[fast\]'"):
        tank().solve("ipopt")


@pytest.mark.parametrize(
    "wrong",
    [{"coordinates": "polar"}, {"hessian": "none"}, {"accuracy": 2.0}, {"max_iterations": 0}],
)
def test_wrong_options_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match=r"there are|positive"):
        IpoptOptions(**wrong)


class TestInstalled:
    @pytest.fixture(autouse=True)
    def _needed(self) -> None:
        pytest.importorskip("casadi")

    @pytest.mark.parametrize("coordinates", ["own", "hidden"])
    @pytest.mark.parametrize("engine", ["casadi", "autograd"])
    def test_the_optimum_is_certified_in_both_coordinates(self, coordinates, engine) -> None:
        problem = tank()
        problem.solve("ipopt", options={"coordinates": coordinates}, engine=engine)
        assert problem.status == "optimal"
        assert problem.solution.method == "ipopt"
        assert problem.value == pytest.approx(5.0, rel=1e-6)
        assert problem.solution.duals["area"] == pytest.approx(1.0, abs=1e-4)
        assert problem.solution.oracle_calls.hessians > 3

    def test_gradients_are_enough(self) -> None:
        problem = tank()
        problem.solve("ipopt", options={"hessian": "limited-memory"})
        assert problem.value == pytest.approx(5.0, rel=1e-6)
        assert problem.solution.oracle_calls.hessians == 0

    def test_a_local_minimum_is_not_called_global(self) -> None:
        x = hc.Variable(name="x", bounds=(-3, 3), start=2.0)
        problem = hc.Problem(hc.Minimize(x**4 - 3 * x**2 + 0.5 * x))
        problem.solve("ipopt")
        assert problem.status != "optimal"

    def test_simplices_and_equalities(self) -> None:
        p = hc.Variable(4, name="p", simplex=True)
        cost = np.array([1.0, 2.0, 3.0, 4.0])
        problem = hc.Problem(hc.Maximize(hc.sum(hc.entr(p))), [cost @ p == 2.0])
        problem.solve("ipopt")
        reference = hc.Problem(hc.Maximize(hc.sum(hc.entr(p))), [cost @ p == 2.0])
        assert problem.value == pytest.approx(reference.solve(), rel=1e-6)
        assert problem.solution["p"].sum() == pytest.approx(1.0, abs=1e-9)

    def test_limits_keep_the_best_point(self) -> None:
        problem = tank()
        problem.solve("ipopt", max_calls=6)
        assert problem.status in ("user_limit", "optimal_inaccurate")
        assert problem.solution.oracle_calls.total <= 6
        assert np.isfinite(problem.value)

    @pytest.mark.parametrize("moment", [1, 4, 5, 7, 8, 9, 10, 11, 12, 20, 23, 24, 25, 26, 27])
    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (TimeExhausted, hc.Termination.TIME_LIMIT),
            (KeyboardInterrupt, hc.Termination.INTERRUPTED),
        ],
    )
    def test_a_limit_may_end_at_any_question_of_ipopt(
        self, moment, error, reason, monkeypatch, capfd
    ) -> None:
        """Values, slopes and second derivatives, the first ones too: nothing is printed or lost."""
        asked = 0

        def over() -> None:
            nonlocal asked
            asked += 1
            if asked == moment:
                raise error

        monkeypatch.setattr(oracle, "check_time", over)
        problem = tank()
        problem.solve("ipopt")
        assert problem.solution.termination is reason
        assert problem.status == "user_limit"
        start = 0.6 * 1.6 + 4 / 0.6 + 1 / 1.6
        assert problem.value == pytest.approx(start) if moment < 16 else problem.value < start
        assert capfd.readouterr() == ("", "")

    def test_an_exception_of_a_function_keeps_the_best_point(self, capfd) -> None:
        """(x − 1)² from 3: the eighth value is asked for after some steps."""
        calls = 0

        def value(x):
            nonlocal calls
            calls += 1
            if calls == 8:
                raise RuntimeError("sensor offline")
            return (x - 1) ** 2 + 0.1 * np.sin(x)

        x = hc.Variable(name="x", bounds=(-3, 3), start=3)
        own = hc.function(value, x, grad=lambda x: 2 * (x - 1) + 0.1 * np.cos(x))
        problem = hc.Problem(hc.Minimize(own))
        with pytest.raises(hc.SolverError, match="sensor offline"):
            problem.solve("ipopt")
        assert problem.status == "solver_error"
        assert problem.value < 1.0
        assert isinstance(problem.solution.cause, RuntimeError)
        assert capfd.readouterr() == ("", "")

    def test_rows_that_contradict_each_other(self) -> None:
        x = hc.Variable(2, name="x", bounds=(0.1, 10))
        problem = hc.Problem(hc.Minimize(x[0] + x[1]), [x[0] * x[1] <= 1, x[0] * x[1] >= 2])
        problem.solve("ipopt")
        assert problem.status in ("infeasible", "infeasible_inaccurate")

    def test_semidefinite_variables_are_refused(self) -> None:
        matrix = hc.Variable((2, 2), name="P", PSD=True)
        with pytest.raises(hc.ModelError, match="boxes and simplices"):
            hc.Problem(hc.Minimize(hc.trace(matrix))).solve("ipopt")

    def test_hidden_coordinates_have_to_be_known(self) -> None:
        x = hc.Variable(2, name="x", bounds=(-1, 1))
        problem = hc.Problem(hc.Minimize(hc.sin(x[0] * x[1]) + x[0]))
        with pytest.raises(hc.NotHiddenConvexError, match="coordinates='own'"):
            problem.solve("ipopt", options={"coordinates": "hidden"})
        assert METHODS["ipopt"].missing() is None

    def test_a_casadi_that_cannot_be_imported_is_named(self, monkeypatch, tmp_path) -> None:
        (tmp_path / "casadi.py").write_text("raise ImportError('wrong ELF class')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "casadi", raising=False)
        x = hc.Variable(name="x", bounds=(-1, 1))
        with pytest.raises(hc.HCError, match=r"ipopt needs casadi.*cannot be imported"):
            hc.Problem(hc.Minimize(hc.sin(x))).solve("ipopt")

    def test_functions_of_the_user(self) -> None:
        x = hc.Variable(2, name="x", bounds=(0.4, 3))
        own = hc.function(lambda a: a[0] * a[1] + 4 / a[0] + 1 / a[1], x)
        problem = hc.Problem(hc.Minimize(own), [x[0] * x[1] <= 1])
        problem.solve("ipopt")
        assert problem.value == pytest.approx(5.0, rel=1e-5)
