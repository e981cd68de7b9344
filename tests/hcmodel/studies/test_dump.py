"""The file for bug reports: it holds what is needed, and loads back."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc
from tests.problems.examples import loaded
from tests.problems.parametric import tank


def test_a_dump_has_model_settings_solution_and_versions(tmp_path: Path) -> None:
    problem, path = tank(), tmp_path / "report.zip"
    problem.solve(tol=1e-5, start={"x": [1.0, 1.0]}, max_calls=500)
    problem.dump(path)
    with zipfile.ZipFile(path) as archive:
        settings = json.loads(archive.read("settings.json"))
        assert settings["tolerance"] == 1e-5
        assert settings["max_calls"] == 500
        assert json.loads(archive.read("start.json")) == {"x": [1.0, 1.0]}
        assert json.loads(archive.read("solution.json"))["status"] == "optimal"
        assert json.loads(archive.read("versions.json"))["hcmodel"] == hc.__version__
    again = hc.load(path)
    assert again.solve() == pytest.approx(5)


def test_large_data_are_in_the_dump(tmp_path: Path) -> None:
    problem, path = loaded("posynomial"), tmp_path / "report.zip"
    problem.dump(path)
    again = hc.load(path)
    assert np.array_equal(again.parameters["a"].value, problem.parameters["a"].value)


def test_functions_of_python_are_described(tmp_path: Path) -> None:
    x = hc.Variable(name="x", bounds=(0, 1))
    problem, path = (
        hc.Problem(hc.Minimize(hc.function(lambda t: t * t, x))),
        tmp_path / "report.zip",
    )
    problem.dump(path)
    with zipfile.ZipFile(path) as archive:
        assert "minimize" in archive.read("model.txt").decode()
    with pytest.raises(hc.ModelError, match=r"has no model\.hc"):
        hc.load(path)
    (tmp_path / "other.zip").write_text("no archive")
    with pytest.raises(hc.ModelError, match=r"not a file of problem\.dump"):
        hc.load(tmp_path / "other.zip")
