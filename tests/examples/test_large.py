"""Circuits of examples/large: the generator's data, the model, and its optimum beside IPOPT's."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc

FOLDER = Path(__file__).parents[2] / "examples" / "large"
circuit = runpy.run_path(str(FOLDER / "generate.py"))["circuit"]


@pytest.mark.parametrize("long", [False, True])
def test_circuits_have_wires_forward_and_lists_of_them(long: bool) -> None:
    data = circuit(200, long=long)
    source, sink = np.array(data["source"]), np.array(data["sink"])
    assert (source < sink).all()
    assert data["E"] == source.size > 300
    for gate in (1, 50, 200):
        listed = sink[data["first"][gate - 1] - 1 : data["last"][gate - 1]]
        assert set(listed) == set(sink[source == gate])
    again = circuit(200, long=long)
    assert again == data
    assert circuit(200, seed=2, long=long) != data


def test_a_circuit_is_certified_and_every_delay_is_kept() -> None:
    data = circuit(60)
    problem = hc.load(FOLDER / "gate_sizing.hc", data=data)
    problem.solve()
    assert problem.status == "optimal"
    x, t = problem.solution["x"], problem.solution["t"]
    source, sink = (np.array(data[name]) - 1 for name in ("source", "sink"))
    R, C, L = (np.array(data[name]) for name in "RCL")
    load = np.bincount(source, weights=x[sink], minlength=60)
    delay = R * (C * x + L + load) / x
    assert (t[source] + delay[sink] <= t[sink] + 1e-5).all()
    assert (t <= data["T"] + 1e-9).all()
    assert problem.value < 64 * 60


def test_ipopt_finds_the_same_area() -> None:
    pytest.importorskip("casadi")
    problem = hc.load(FOLDER / "gate_sizing.hc", data=circuit(60))
    found = problem.solve("ipopt", options={"coordinates": "own"})
    assert problem.solve() == pytest.approx(found, rel=1e-5)


def test_the_generator_writes_data_that_the_command_reads(tmp_path) -> None:
    path = tmp_path / "circuit.json"
    command = [sys.executable, str(FOLDER / "generate.py"), "20", "-o", str(path)]
    subprocess.run(command, check=True)
    problem = hc.load(FOLDER / "gate_sizing.hc", data=path)
    assert problem["x"].shape == (json.loads(path.read_text())["n"],)
