"""Pictures are drawn without a display, into the axes that are given, and say what they show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc

pytest.importorskip("matplotlib")
EXAMPLES = Path(__file__).parents[3] / "examples"
POINTS = 12


def tank() -> hc.Problem:
    return hc.load(EXAMPLES / "tank.hc")


@pytest.fixture(scope="module")
def solved() -> hc.Problem:
    problem = tank()
    problem.solve("sbl-adals")
    return problem


def test_a_run_shows_objective_distance_and_violation_on_one_axis_of_calls(solved, tmp_path):
    figure = solved.solution.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000
    top, middle, bottom = figure.axes
    assert [each.get_ylabel() for each in figure.axes] == ["objective", "distance", "violation"]
    assert middle.get_yscale() == bottom.get_yscale() == "log"
    assert top.get_xlim() == bottom.get_xlim()
    assert bottom.get_xlabel() == "oracle calls"
    assert {"objective", "descent"} <= {text.get_text() for text in top.texts}  # the phases
    # the last distance is the certified gap
    gap = solved.solution.certificate.gap
    assert middle.lines[0].get_ydata()[-1] == pytest.approx(gap, abs=1e-12)
    dashed = [line for line in top.lines if line.get_label() == "optimal value"]
    assert dashed[0].get_ydata()[0] == pytest.approx(5, abs=1e-6)


def test_axes_that_are_given_are_drawn_into(solved):
    from matplotlib.figure import Figure

    own = Figure()
    axes = own.subplots()
    assert solved.solution.plot(ax=axes) is own
    assert axes.get_ylabel() == "distance"
    with pytest.raises(hc.ModelError, match="one axes or 3"):
        solved.solution.plot(ax=Figure().subplots(1, 2))


def test_a_solution_without_iterates_shows_its_accuracy():
    problem = tank()
    problem.solve("cone")
    (axes,) = problem.solution.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "certified gap",
        "violation",
        "KKT residual",
    ]


def test_an_infeasible_model_has_a_picture_too():
    x = hc.Variable(2, name="x", bounds=(1, 2))
    problem = hc.Problem(hc.Minimize(x[0] * x[1]), [x[0] * x[1] <= 0.5])
    problem.solve()
    assert problem.status == "infeasible"
    assert "infeasible" in problem.solution.plot().get_suptitle()
    assert len(hc.plot.landscape(problem, points=POINTS).axes) == 3


def test_solutions_are_compared_by_their_methods(solved):
    other = tank()
    other.solve("hidden-newton")
    figure = hc.plot.compare([other.solution, solved.solution, solved.solution])
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert [label.partition(" (")[0] for label in labels] == [
        "hidden-newton",
        "sbl-adals #1",
        "sbl-adals #2",
    ]
    assert not any("_" in label for label in labels)
    with pytest.raises(hc.ModelError, match="1 solutions and 2 labels"):
        hc.plot.compare([other.solution], labels=["a", "b"])
    with pytest.raises(hc.ModelError, match="at least one"):
        hc.plot.compare([])


def test_a_landscape_stands_in_x_and_in_u(solved):
    land = solved.landscape(points=POINTS)
    assert land.names == ("x[1]", "x[2]")
    assert land.hidden_names == ("log(x[1])", "log(x[2])")
    assert land.proven
    assert land.certified
    first, second = np.meshgrid(land.first, land.second)
    assert land.objective == pytest.approx(first * second + 4 / first + 1 / second)
    assert land.margin == pytest.approx(first * second - 1)
    assert land.images == pytest.approx(np.log(np.stack([first, second], axis=2)))
    assert land.path[0] == pytest.approx([0.6, 1.6])  # the start of the file
    assert land.path[-1] == pytest.approx([2, 0.5], rel=1e-4)
    titles = [axes.get_title() for axes in hc.plot.landscape(solved, points=POINTS).axes[:2]]
    assert titles == ["as written", "in hidden coordinates: convex"]


def test_kinks_and_maps_of_the_catalogue_have_a_landscape():
    problem = hc.load(EXAMPLES / "cnls.hc")
    land = problem.landscape(points=POINTS)
    assert land.proven
    assert land.optimum == pytest.approx([0.85, 0.85], abs=1e-5)
    # in u the model is max |u1 - 1|, |u2 + 1|, so that both entries have to agree with x
    x, y = land.optimum
    assert land.optimum_image == pytest.approx([x, y - 2 * abs(x)], abs=1e-6)


def test_a_maximisation_of_a_model_without_coordinates():
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Maximize(hc.sin(3 * x[0]) * hc.cos(2 * x[1])))
    problem.solve()
    land = problem.landscape(points=POINTS)
    assert land.images is None
    assert land.objective.max() <= 1
    assert len(hc.plot.landscape(problem, points=POINTS).axes) == 2


def test_other_models_are_refused_in_words(solved):
    x = hc.Variable(3, name="x", bounds=(1, 2))
    with pytest.raises(hc.ModelError, match="2 unknowns; this one has 3"):
        hc.plot.landscape(hc.Problem(hc.Minimize(hc.sum(x))))
    with pytest.raises(hc.ModelError, match="cone has no iterates in x"):
        solved.landscape(points=POINTS, method="cone")


def test_importing_hcmodel_and_its_plots_does_not_import_matplotlib():
    code = "import sys, hcmodel; hcmodel.plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_message_says_what_to_install(solved, monkeypatch):
    monkeypatch.setattr("hcmodel.report.canvas.find_spec", lambda name: None)
    with pytest.raises(hc.SolverError, match=r"pip install 'hcmodel\[plot\]'"):
        solved.solution.plot()
    with pytest.raises(hc.SolverError, match=r"pip install 'hcmodel\[plot\]'"):
        hc.plot.landscape(solved)


def test_a_trade_off_has_its_slope_below_and_marks_what_has_no_solution():
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    cap = hc.Parameter(name="cap", value=1.0)
    problem = hc.Problem(hc.Minimize(4 / x[0] + 1 / x[1]), [x[0] * x[1] <= cap])
    sweep = problem.sweep({cap: [0.1, 0.5, 1.0, 2.0]}, progress=False)
    upper, lower = hc.plot.tradeoff(sweep).axes
    values = [row.value for row in sweep.rows[1:]]
    assert upper.lines[0].get_xydata() == pytest.approx(np.stack([[0.5, 1.0, 2.0], values], axis=1))
    assert list(upper.lines[1].get_xdata()) == [0.1]  # 0.4 · 0.4 is more
    (steps,) = lower.patches
    assert steps.get_data().values == pytest.approx(np.diff(values) / [0.5, 1.0])
    assert lower.get_xlabel() == "cap"
    with pytest.raises(hc.ModelError, match="is an array"):
        hc.plot.tradeoff(sweep, column="x")
