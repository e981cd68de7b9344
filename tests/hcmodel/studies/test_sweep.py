"""Sweeps: grids, scenarios and starts; the same table from every executor; nothing finished is lost."""

from __future__ import annotations

import os
import pickle
import signal
from concurrent.futures import (
    BrokenExecutor,
    Future,
    ThreadPoolExecutor,
)
from dataclasses import replace
from pathlib import Path
from typing import Any

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.studies import executors, workers
from hcmodel.studies.grid import Grid
from hcmodel.studies.sweep_table import SweepTable


def tank(name: str = "cap") -> hc.Problem:
    """Minimise x₁x₂ + 4/x₁ + 1/x₂ subject to x₁x₂ <= cap and x in [0.4, 3]²."""
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cap = hc.Parameter(name=name, value=1.0, pos=True)
    price = hc.Parameter(name="price", value=1.0)
    area = (x[0] * x[1] <= cap).named("area")
    return hc.Problem(hc.Minimize(price * x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area])


def numbers(table: SweepTable) -> list[list[str]]:
    """Every digit of the table, without the seconds."""
    rows = [table.layout.cells(row) for row in table]
    return [[repr(v) for key, v in row.items() if key != "solve_seconds"] for row in rows]


@pytest.fixture(scope="module")
def problem() -> hc.Problem:
    return tank()


@pytest.fixture(scope="module")
def serial(problem: hc.Problem) -> SweepTable:
    return problem.sweep({"cap": CAPS}, progress=False)


CAPS = [0.7, 0.8, 0.9, 1.0, np.nan, 1.1]


def test_values_of_the_rows_follow_the_closed_form(serial: SweepTable) -> None:
    # with x₁x₂ = cap the objective is cap + 4/x₁ + x₁/cap, least at x₁ = 2√cap: cap + 4/√cap
    caps = np.array([0.7, 0.8, 0.9, 1.0, 1.1])
    solved = [row for row in serial if row.is_solved]
    assert [row.value for row in solved] == pytest.approx(caps + 4 / np.sqrt(caps))
    assert [float(row.duals["area"]) for row in solved] == pytest.approx(
        2 * caps**-1.5 - 1, rel=1e-4
    )
    assert serial["x"][3] == pytest.approx([2, 0.5], rel=1e-4)
    assert (serial["gap"][:4] <= 1e-5).all()


def test_a_point_with_nan_data_is_a_row_with_its_error(serial: SweepTable) -> None:
    assert [row.number for row in serial.failed] == [4]
    assert serial[4].status == "error"
    assert "'cap' is NaN" in serial[4].error
    assert np.isnan(serial["value"][4])
    assert "row 4: the value of parameter 'cap' is NaN" in str(serial)


def test_the_problem_stays_as_it_was() -> None:
    problem = tank()
    problem.solve()
    before = problem.solution
    problem["x"].value = [1.0, 0.5]
    compiled = problem.compilations
    problem.sweep({"cap": [0.6, 0.8]}, progress=False)
    assert problem.parameters["cap"].value == 1.0
    assert problem.solution is before
    assert problem["x"].value.tolist() == [1.0, 0.5]
    assert problem["x"]._value_origin == "user"
    assert problem.compilations == compiled  # new values need no new functions


def test_a_grid_has_all_combinations_in_order() -> None:
    problem = tank()
    cap = problem.parameters["cap"]
    table = problem.sweep({cap: [0.5, 1.0], "price": [1, 2, 3]}, progress=False)
    assert [(float(row["cap"]), float(row["price"])) for row in table] == [
        *((0.5, price) for price in (1, 2, 3)),
        *((1.0, price) for price in (1, 2, 3)),
    ]
    assert (np.diff(table["value"].reshape(2, 3), axis=1) > 0).all()
    assert table.best()["price"] == 1


def test_neighbours_are_solved_one_after_another_from_each_other() -> None:
    grid = Grid.of(tank().model, {"cap": [1, 2, 3], "price": [1, 2]})
    assert grid.order == (0, 1, 3, 2, 4, 5)


def test_scenarios_are_rows_of_their_own_and_pandas_is_one_way_to_give_them() -> None:
    pandas = pytest.importorskip("pandas")
    problem = tank()
    table = problem.sweep([{"cap": 0.5}, {"cap": 1.0, "price": 2.0}], progress=False)
    assert table["cap"].tolist() == [0.5, 1.0]
    assert table[0].parameters.keys() == {"cap"}
    frame = pandas.DataFrame({"cap": [0.5, 1.0], "price": [1.0, 2.0]})
    assert numbers(problem.sweep(frame, progress=False))[1][3:] == numbers(table)[1][3:]


def test_starts_come_from_the_user_or_from_the_sets_of_the_variables() -> None:
    x = hc.Variable(name="x", bounds=(-2, 2))
    problem = hc.Problem(hc.Minimize((x**2 - 1) ** 2 + 0.1 * x))  # two minima, near ±1
    first = problem.sweep({x: [-1.5, 1.5]}, progress=False, method="prox-linear", max_calls=2)
    assert np.sign(first["x"]).tolist() == [-1, 1]  # two calls do not lead far
    sampled = problem.sweep({}, starts=4, seed=1, progress=False)
    assert len(sampled) == 4
    assert sampled.best().value == pytest.approx(-0.1006, abs=1e-4)
    starts = [float(row.start["x"]) for row in sampled]
    assert len(set(starts)) == 4
    again = problem.sweep(starts=4, seed=1, progress=False, max_calls=2)  # a grid is not needed
    assert [float(row.start["x"]) for row in again] == starts
    with pytest.raises(hc.ModelError, match="starts=20"):
        problem.sweep()


# ---- executors


def test_threads_give_the_same_table(problem: hc.Problem, serial: SweepTable) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert numbers(problem.sweep({"cap": CAPS}, executor)) == numbers(serial)


def test_two_workers_of_a_dask_cluster_give_the_same_table(
    problem: hc.Problem, serial: SweepTable
) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = problem.sweep({"cap": CAPS}, client, chunk=1, warm_start=False)
        again = problem.sweep({"cap": CAPS}, client.get_executor())
    assert numbers(again) == numbers(serial)
    assert found["value"][:4] == pytest.approx(serial["value"][:4], rel=1e-6)


class Recording:
    """Runs tasks at once, as a worker in another process would, and notes what was sent."""

    _max_workers = 1

    def __init__(self, caller: int | None = None) -> None:
        self.sizes: list[int] = []
        self.caller = caller

    def submit(self, function: Any, task: Any) -> Future[Any]:
        if self.caller is not None:
            task = replace(task, caller=self.caller)
        sent = pickle.dumps(task)
        self.sizes.append(len(sent))
        future: Future[Any] = Future()
        future.set_result(function(pickle.loads(sent)))
        return future


def test_the_model_is_unpickled_once_and_only_numbers_are_sent(
    problem: hc.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[int] = []
    received = workers._received
    monkeypatch.setattr(workers, "_received", lambda task: loaded.append(1) or received(task))
    recording = Recording()
    problem.sweep({"cap": [0.5, 0.6, 0.7, 0.8]}, recording, chunk=1)
    assert len(loaded) == 1
    assert len(recording.sizes) == 4
    assert max(recording.sizes) < len(pickle.dumps(problem)) / 2


def test_a_worker_without_our_files_gets_the_model_with_a_task(
    problem: hc.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.Path, "is_file", lambda path: False)
    recording = Recording(caller=-1)
    table = problem.sweep({"cap": [0.5, 0.6, 0.7, 0.8]}, recording, chunk=1)
    assert table.counts() == {"optimal": 4}
    whole = len(pickle.dumps(problem)) / 2
    # one task runs and one waits while the first answer, that the model is missing, comes back
    assert [size > whole for size in recording.sizes] == [False, False, True, True, False, False]


def deadly(x: Any, cap: Any) -> Any:
    """Kills its process where cap is 3."""
    if float(np.asarray(getattr(cap, "_value", cap))) == 3.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return anp.sum((x - cap) ** 2)


def test_a_killed_worker_loses_no_finished_point(tmp_path: Path) -> None:
    """In new interpreters: a fork of a process with threads can wait for a lock for ever."""
    x = hc.Variable(2, name="x", bounds=(0, 9))
    cap = hc.Parameter(name="cap", value=1.0)
    problem = hc.Problem(hc.Minimize(hc.function(deadly, x, cap)))
    file = tmp_path / "runs.csv"
    table = problem.sweep({cap: [1, 2, 3, 4]}, executor=1, chunk=2, file=file)
    assert [row.status for row in table] == ["locally_optimal"] * 2 + ["error", "locally_optimal"]
    assert "died twice" in table[2].error
    assert table["x"][3] == pytest.approx([4, 4], abs=1e-3)
    assert file.read_text().count("locally_optimal") == 3


class Broken:
    """Breaks after some tasks, as a process pool does when a worker is killed."""

    def __init__(self, good: int) -> None:
        self.good = good

    def submit(self, function: Any, task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.good -= 1
        if self.good >= 0:
            future.set_result(function(task))
        else:
            future.set_exception(BrokenExecutor("a worker died"))
        return future


def test_where_an_executor_breaks_the_rest_is_not_run_and_a_resumed_sweep_solves_it(
    problem: hc.Problem, tmp_path: Path
) -> None:
    file, grid = tmp_path / "runs.csv", {"cap": [0.5, 0.6, 0.7, 0.8]}
    first = problem.sweep(grid, Broken(2), chunk=1, file=file)
    assert first.counts() == {"optimal": 2, "not_run": 2}
    assert "resume=True" in first[3].error
    counting = Broken(9)
    second = problem.sweep(grid, counting, chunk=1, file=file, resume=True)
    assert counting.good == 7
    assert second.counts() == {"optimal": 4}
    assert numbers(second) == numbers(problem.sweep(grid, chunk=1, progress=False))


def test_processes_that_cannot_start_are_explained(
    problem: hc.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Broken):
        def shutdown(self, **_: Any) -> None: ...

    # as where a script has no guard: each process ends while it imports the script
    monkeypatch.setattr(executors, "_processes", lambda count: Failing(0))
    with pytest.raises(hc.SolverError, match='if __name__ == "__main__"'):
        problem.sweep({"cap": [0.5, 0.6]}, executor=2)


def test_ctrl_c_keeps_what_is_done(problem: hc.Problem, tmp_path: Path) -> None:
    class Impatient(Broken):
        def submit(self, function: Any, task: Any) -> Future[Any]:
            if self.good == 0:
                raise KeyboardInterrupt
            return super().submit(function, task)

    file = tmp_path / "runs.csv"
    table = problem.sweep({"cap": [0.5, 0.6, 0.7]}, Impatient(2), chunk=1, file=file)
    assert table.interrupted
    assert table.counts() == {"optimal": 2, "not_run": 1}
    assert len(file.read_text().splitlines()) == 3


def test_ctrl_c_in_a_solve_ends_a_serial_sweep() -> None:
    x = hc.Variable(name="x", bounds=(0, 9))
    cap = hc.Parameter(name="cap", value=1.0)

    def interrupted(x: Any, cap: Any) -> Any:
        if float(np.asarray(getattr(cap, "_value", cap))) == 2.0:
            raise KeyboardInterrupt
        return (x - cap) ** 2

    problem = hc.Problem(hc.Minimize(hc.function(interrupted, x, cap)))
    table = problem.sweep({cap: [1, 2, 3]}, progress=False)
    assert table.interrupted
    assert [row.status for row in table] == ["locally_optimal", "not_run", "not_run"]
    assert cap.value == 1.0


def test_functions_that_cannot_be_pickled_stay_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = hc.Variable(name="x", bounds=(0, 9))
    cap = hc.Parameter(name="cap", value=1.0)
    problem = hc.Problem(hc.Minimize(hc.function(lambda x, cap: (x - cap) ** 2, x, cap)))
    monkeypatch.setattr(workers, "_pickled", lambda problem: None)
    with ThreadPoolExecutor(1) as executor:
        assert problem.sweep({cap: [1, 2]}, executor)["x"] == pytest.approx([1, 2], abs=1e-3)


# ---- mistakes


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"capp": [1, 2]}, "did you mean 'cap'"),
        ({"cap": []}, "is empty"),
        ({"cap": "1:2"}, "are a list or an array"),
        ({"cap": ["a"]}, "value 0 of 'cap' is not a number"),
        ({"cap": [[1, 2]]}, r"has shape \(2,\), but shape \(\) is needed"),
        ({hc.Parameter(name="other"): [1]}, "'other' is not in the problem"),
        ([1, 2], "scenario 0 of the sweep is 1"),
        (3, "a sweep takes {parameter: values}"),
        ({3: [1]}, "keys of a sweep are parameters"),
    ],
)
def test_a_wrong_grid_is_an_error_in_words(problem: hc.Problem, grid: Any, words: str) -> None:
    with pytest.raises(hc.HCError, match=words):
        problem.sweep(grid, progress=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"executor": "processes"}, "give an object with `submit`"),
        ({"executor": object()}, "has no method `submit`"),
        ({"executor": 0}, "at least 1"),
        ({"method": "simplex"}, "simplex"),
        ({"tol": -1}, "tol"),
        ({"resume": True}, "resume=True needs the file"),
        ({"chunk": 0}, "chunk is a whole number"),
        ({"file": "/nowhere/runs.csv"}, "there is no folder"),
    ],
)
def test_a_wrong_argument_is_an_error_before_anything_is_solved(
    problem: hc.Problem, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(hc.HCError, match=words):
        problem.sweep({"cap": [1]}, progress=False, **arguments)


def test_parameters_that_make_the_structure_cannot_be_swept() -> None:
    problem = hc.parse("param n = 2\nparam c = 1\nvar x[n] in [1, 2]\nminimize c*sum(x)")
    with pytest.raises(hc.ModelError, match="decides the structure"):
        problem.sweep({"n": [1, 2]})


def test_a_file_of_another_model_is_not_resumed(problem: hc.Problem, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    problem.sweep({"cap": [0.5]}, file=file, progress=False)
    with pytest.raises(hc.DataError, match="another model, or with other data or options"):
        problem.sweep({"cap": [0.5]}, file=file, resume=True, tol=1e-4)
    with pytest.raises(hc.DataError, match="columns are not those"):
        tank("size").sweep({"size": [0.5]}, file=file, resume=True)


# ---- the table


def test_the_table_as_pandas_csv_json_text_and_html(serial: SweepTable, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = serial.to_pandas()
    assert frame.columns[:4].tolist() == ["cap", "status", "value", "lower_bound"]
    assert frame["x[0]"][3] == pytest.approx(2, rel=1e-4)
    assert frame["dual:area"][3] == pytest.approx(1, rel=1e-3)
    path = tmp_path / "table.csv"
    serial.to_csv(path)
    assert pandas.read_csv(path)["value"][0] == serial["value"][0]
    assert serial.to_json()[4]["error"] == "the value of parameter 'cap' is NaN"
    assert serial.to_json()[3]["variables"]["x"] == serial["x"][3].tolist()
    assert "6 points: 5 optimal, 1 error" in str(serial)
    assert serial._repr_html_().count("<tr>") == 7
    with pytest.raises(KeyError, match="did you mean 'value'"):
        serial["valu"]


def test_pictures_of_one_and_two_parameters(serial: SweepTable, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = serial.plot(str(tmp_path / "one.png"), "x")
    assert (tmp_path / "one.png").stat().st_size > 1000
    assert [line.get_label() for line in figure.axes[0].lines] == ["x[0]", "x[1]"]
    grid = tank().sweep({"cap": [0.5, 1.0], "price": [1, 2]}, progress=False)
    assert grid.plot().axes[0].get_xlabel() == "price"
    with pytest.raises(hc.ModelError, match="not a column of numbers"):
        serial.plot(column="status")
