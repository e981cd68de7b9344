"""Data from tables, and results as tables: pandas, CSV files, the trace by columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc

MODEL = "param n\nparam c[n]\nvar x[n] in [1, 2]\nminimize c @ x"


@pytest.fixture(scope="module")
def tank() -> hc.Problem:
    problem = hc.parse(
        "var x[5..6] in [0.4, 3]\nminimize x[5]*x[6] + 4/x[5] + 1/x[6]\n"
        "subject to\n area: x[5]*x[6] <= 1\n cap[i in 5..6]: x[i]*x[i] <= 8"
    )
    problem.solve("sbl-adals")
    return problem


def test_tables_of_pandas_are_data() -> None:
    pandas = pytest.importorskip("pandas")
    prices = pandas.Series([1.0, 2.0], index=["a", "b"])
    assert hc.parse(MODEL, {"c": prices}).solve() == pytest.approx(3)
    assert hc.parse(MODEL, pandas.DataFrame({"c": [1.0, 3.0]})).solve() == pytest.approx(4)
    with pytest.raises(hc.DataError, match="NaN"):
        hc.parse(MODEL, {"c": prices * np.nan})


def test_a_series_before_an_operator_leaves_it_to_the_expression() -> None:
    pandas = pytest.importorskip("pandas")
    prices = pandas.Series([1.0, 2.0])
    x = hc.Variable(2, name="x", bounds=(0, 5))
    assert str(prices * x) == "[1., 2.] * x"
    assert isinstance(prices >= x, hc.Constraint)
    with pytest.raises(hc.ModelError, match="to_numpy"):
        prices @ x


@pytest.mark.parametrize(
    "text", ["1,5;2,5\n", "a;b\n1;2,5\n", '"1,5","2,5"\n', "price\n1,5\n2,5\n", "1\t2,5\n"]
)
def test_decimal_commas_are_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "A.csv"
    path.write_text(text)
    with pytest.raises(hc.DataError, match=r"decimal commas \([12],5\); write decimal points"):
        hc.parse("param n, m\nparam A[n,m]\nvar x[m] in [1,2]\nminimize sum(A @ x)", f"A={path}")


def test_commas_between_numbers_are_no_decimal_commas(tmp_path: Path) -> None:
    for name, text in (("a", "1,5\n2,5\n"), ("b", "u,v\n1,5\n2,5\n"), ("c", "1;5\n2;5\n")):
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        problem = hc.parse("param A[2,2]\nvar x[2] in [1,2]\nminimize sum(A @ x)", f"A={path}")
        assert problem.solve() == pytest.approx(13)


def test_a_solution_is_a_table_with_the_indices_of_its_front_end(tank: hc.Problem) -> None:
    solution = tank.solution
    assert solution is not None
    records = solution.records()
    assert [(row["kind"], row["name"], row["index"]) for row in records] == [
        ("variable", "x", 5),
        ("variable", "x", 6),
        ("dual", "area", ""),
        ("dual", "cap", 5),
        ("dual", "cap", 6),
    ]
    lines = solution.to_csv().splitlines()
    assert lines[0] == "kind,name,index,value,lower_dual,upper_dual"
    assert float(lines[1].split(",")[3]) == solution["x"][0]
    pandas = pytest.importorskip("pandas")
    frame = solution.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["value"][1] == solution["x"][1]


def test_the_table_of_a_solution_is_a_file(tank: hc.Problem, tmp_path: Path) -> None:
    assert tank.solution is not None
    path = tmp_path / "solution.csv"
    tank.solution.to_csv(path)
    assert path.read_text() == tank.solution.to_csv()


def test_the_trace_has_columns(tank: hc.Problem) -> None:
    assert tank.solution is not None
    trace = tank.solution.trace
    assert trace["objective"].shape == (len(trace),)
    assert trace["objective"][-1] == trace[-1].objective
    assert trace.columns["calls"].tolist() == [record.calls for record in trace]
    with pytest.raises(KeyError, match="there are: iteration"):
        trace["cost"]
