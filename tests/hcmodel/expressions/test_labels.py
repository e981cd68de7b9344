"""Starts, values and weights by label, in the order of the sets of the language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.cli import main

pandas = pytest.importorskip("pandas")

TEXT = """\
set gas = {"N2", "O2", "CO2"}
param w[gas] > 0 = [1, 2, 3]
param total = 2
var n[gas] > 0
var m[gas, 2] in [0, 1]
minimize sum(w[g]*n[g] + 1/n[g] for g in gas) + sum(m)
subject to
    cap: sum(n) <= total
"""
GIVEN = {"CO2": 0.3, "N2": 0.1, "O2": 0.2}
IN_ORDER = [0.1, 0.2, 0.3]


@pytest.fixture
def problem() -> hc.Problem:
    return hc.parse(TEXT)


@pytest.mark.parametrize("kind", [dict, pandas.Series], ids=["dict", "series"])
def test_values_by_label_come_in_the_order_of_the_set(problem: hc.Problem, kind: Any) -> None:
    for name in ("n", "w"):
        problem[name].value = kind(GIVEN)  # type: ignore[union-attr]
        assert problem[name].value == pytest.approx(IN_ORDER)  # type: ignore[union-attr]
    problem.solve("hidden-newton", start={"n": kind(GIVEN)}, trace_points=True)
    assert problem.solution is not None
    assert problem.solution.trace.points["n"][0] == pytest.approx(IN_ORDER)
    assert problem.adjoint({"n": kind(GIVEN)})["total"] == pytest.approx(
        float(problem.derivative("total")["n"] @ IN_ORDER)
    )


def test_matrices_by_labels_and_numbers(problem: hc.Problem) -> None:
    table = pandas.DataFrame(
        [[5, 6], [1, 2], [3, 4]], index=["CO2", "N2", "O2"], columns=[1, 2], dtype=float
    )
    m = problem.variables["m"]
    wanted = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    for given in (
        table / 10,
        (table / 10).stack(),
        {label: {2: row[2] / 10, 1: row[1] / 10} for label, row in table.iterrows()},
    ):
        m.value = given
        assert m.value == pytest.approx(np.array(wanted))


def test_an_index_that_only_counts_rows_is_not_a_label(problem: hc.Problem) -> None:
    for index in (None, [7, 3, 5]):
        problem.variables["n"].value = pandas.Series(IN_ORDER, index=index)
        assert problem.variables["n"].value == pytest.approx(IN_ORDER)
    x = hc.Variable(3, name="x")
    x.value = pandas.Series(GIVEN)  # which has no labels of its own
    assert x.value == pytest.approx([0.3, 0.1, 0.2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"N2": 1.0}, 'variable \'n\' lacks "O2", "CO2"; its labels are "N2", "O2", "CO2"'),
        ({**GIVEN, "H2": 1.0}, 'has "H2" as well'),
        (pandas.Series({"N2": 1.0, "O2": 2.0, "Ar": 3.0}), 'lacks "CO2"'),
        ({("N2", 1): 1.0}, "labels for 2 axes, but 1 are needed"),
        ({"N2": {"a": 1}, "O2": {"b": 2}}, "ragged"),
    ],
)
def test_labels_that_do_not_fit_are_named(problem: hc.Problem, given: Any, message: str) -> None:
    with pytest.raises(hc.DataError, match=message):
        problem.solve(start={"n": given})
    with pytest.raises(hc.DataError, match=message):
        problem.variables["n"].value = given


def test_a_dict_for_a_variable_without_labels_says_what_to_write() -> None:
    x = hc.Variable(2, name="x")
    with pytest.raises(hc.DataError, match=r"given by labels, \"a\", \"b\", but it has none"):
        x.value = {"a": 1, "b": 2}


def test_results_have_labels(problem: hc.Problem) -> None:
    problem.solve()
    assert "d n / d total = {N2:" in str(problem.derivative("total"))
    assert problem.elasticities()["w[O2]"].at == 2
    table = problem.sweep({"w": [pandas.Series({"CO2": 1, "N2": 2, "O2": 3})]}, progress=False)
    assert table["w"][0] == pytest.approx([2, 3, 1])
    assert "w[CO2]" in table.to_csv()  # type: ignore[operator]


def test_the_command_takes_a_start_by_label_and_writes_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, start, trace = (str(tmp_path / each) for each in ("m.hc", "start.json", "trace.csv"))
    Path(model).write_text(TEXT)
    Path(start).write_text(json.dumps({"n": GIVEN}))
    asked = ["--start", start, "--trace", trace, "--trace-points", "--method", "hidden-newton"]
    assert main(["solve", model, *asked]) == 0
    capsys.readouterr()
    first = pandas.read_csv(trace).iloc[0]
    assert first[["n[N2]", "n[O2]", "n[CO2]"]].to_list() == pytest.approx(IN_ORDER)


def test_points_are_kept_only_if_asked_for(problem: hc.Problem) -> None:
    seen: list[Any] = []
    problem.solve("hidden-newton", callback=lambda record: seen.append(record.point))
    assert problem.solution is not None
    assert set(seen) == {None}
    with pytest.raises(ValueError, match="trace_points=True"):
        problem.solution.trace.points  # noqa: B018
    problem.solve("hidden-newton", trace_points=True)
    assert problem.solution.trace.points["n"].shape == (len(problem.solution.trace), 3)
    assert "point" not in problem.solution.trace.columns
