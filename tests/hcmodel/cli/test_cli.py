"""The command line: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import hcmodel as hc
from hcmodel.cli.command import main

ROOT = Path(__file__).parents[3]
TANK = """\
var x[2] in [0.4, 3]
minimize x[1]*x[2] + 4/x[1] + 1/x[2]
subject to
    area: x[1]*x[2] <= 1
start x = [0.6, 1.6]
"""


REFUTED = "var x[2] in [-1, 1]\nminimize x[1]*x[2]\nhidden x\n"


@pytest.fixture
def tank(tmp_path: Path) -> str:
    path = tmp_path / "tank.hc"
    path.write_text(TANK)
    return str(path)


def write(folder: Path, text: str) -> str:
    path = folder / "model.hc"
    path.write_text(text)
    return str(path)


def test_solve_prints_the_result_at_a_glance(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", tank]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("status        optimal ")
    assert "x = [2, 0.5]" in printed
    assert "area = 1" in printed


def test_solve_prints_one_json_object(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", tank, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {
        "model", "status", "termination", "method", "engine", "value", "violation", "lower_bound",
        "gap", "certificate", "variables", "duals", "bound_duals", "oracle_calls", "iterations",
        "compile_seconds", "solve_seconds", "conflict",
    }  # fmt: skip
    assert report["model"] == tank
    assert report["value"] == pytest.approx(5, abs=1e-6)
    assert report["lower_bound"] == pytest.approx(5, abs=1e-6)
    assert report["certificate"]["kind"] == "duality"
    assert set(report["oracle_calls"]) == {
        "objective", "constraints", "total", "points", "hessians", "outside",
    }  # fmt: skip
    assert set(report["bound_duals"]["x"]) == {"lower", "upper"}


def test_solve_writes_output_trace_and_plot(
    tank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, trace, plot = (str(tmp_path / name) for name in ("out.json", "trace.csv", "p.png"))
    assert main(["solve", tank, "--output", output, "--trace", trace, "--plot", plot]) == 0
    assert json.loads(Path(output).read_text())["status"] == "optimal"
    with open(trace, newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["objective"]) == pytest.approx(5, abs=1e-6)
    assert Path(plot).read_bytes().startswith(b"\x89PNG")


def test_options_of_the_method_reach_it(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["solve", tank, "--method", "sbl-adals", "--json", "--option"]
    assert main([*arguments, "objective_steps=0"]) == 0
    without = json.loads(capsys.readouterr().out)["oracle_calls"]["objective"]
    assert main([*arguments, "objective_steps=12"]) == 0
    assert json.loads(capsys.readouterr().out)["oracle_calls"]["objective"] != without
    assert main([*arguments, "steps=1"]) == 2
    assert "its options are" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_start_file_and_an_optimal_value_are_used(
    tank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = tmp_path / "start.json"
    start.write_text(json.dumps({"x": [2.0, 0.5]}))
    arguments = ["solve", tank, "--start", str(start), "--optimal-value", "5", "--json"]
    assert main([*arguments, "--method", "sbl-star"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["method"] == "sbl-star"
    assert report["oracle_calls"]["points"] <= 2


def test_limits_give_exit_code_3(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", tank, "--method", "hidden-newton", "--max-calls", "4"]) == 3
    assert "user_limit" in capsys.readouterr().out


def test_an_infeasible_model_gives_exit_code_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path, "var x in [0, 1]\nminimize x\nsubject to\n    far: x >= 3\n")
    assert main(["solve", model, "--json"]) == 4
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "infeasible"
    assert report["value"] is None
    assert report["violation"] == pytest.approx(2, abs=1e-4)


def test_a_mistake_gives_exit_code_1_and_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path, "var x in [0, 1]\nminimize xx\n")
    assert main(["solve", model]) == 1
    printed = capsys.readouterr().err
    assert f"{model}:2:10" in printed
    assert "did you mean" in printed
    assert main(["solve", model, "--json"]) == 1
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["file"], error["line"], error["column"]) == (model, 2, 10)


def test_a_missing_file_gives_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "nowhere.hc"]) == 1
    assert "nowhere.hc" in capsys.readouterr().err


def test_wrong_usage_gives_exit_code_2() -> None:
    with pytest.raises(SystemExit) as stop:
        main(["solve"])
    assert stop.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "nosuch"], "unknown method 'nosuch'"),
        (["--engine", "nosuch"], "unknown engine 'nosuch'"),
        (["--rule", "nosuch"], "unknown rule 'nosuch'"),
        (["--tol", "-1"], "tol must be a positive number, not -1.0"),
        (["--tol", "1e-20"], "tol is 1e-20, which is below rounding"),
        (["--max-calls", "0"], "max_calls must be a positive number"),
        (["--time-limit", "nan"], "time_limit must be a positive number"),
        (["--method", "sbl-star"], "sbl-star needs optimal_value"),
        (["--option", "memory"], "write --option name=value"),
    ],
)
def test_a_wrong_argument_gives_exit_code_2_and_an_error_object(
    arguments: list[str], message: str, tank: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", tank, *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert main(["solve", tank, *arguments, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert message in error["message"]
    assert error["file"] is None


def test_all_commands_that_solve_refuse_a_tolerance_below_rounding(
    tank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = str(tmp_path / "page.html")
    for command in (["report", tank, "-o", page], ["sweep", tank, "--starts", "2"]):
        assert main([*command, "--tol", "1e-15"]) == 2
        assert "take a tol of at least 1e-14" in capsys.readouterr().err


def test_no_arguments_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "example: hcmodel solve tank.hc" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["solve", "check", "fmt", "show", "methods"])
def test_each_commands_help_shows_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"example: hcmodel {command}" in capsys.readouterr().out


def test_fmt_checks_and_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write(tmp_path, "var   x in [0,1]\nminimize    x\n")
    assert main(["fmt", "--check", model]) == 1
    assert main(["fmt", model]) == 0
    assert main(["fmt", "--check", model]) == 0
    assert "minimize x" in Path(model).read_text()


def test_show_prints_sizes_and_latex(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", tank]) == 0
    printed = capsys.readouterr().out
    assert "inequalities   1" in printed
    assert "area: " in printed
    assert main(["show", tank, "--latex"]) == 0
    assert r"x_{1} \, x_{2} \le 1" in capsys.readouterr().out


def test_methods_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["methods"]) == 0
    assert "sbl-adals" in capsys.readouterr().out


def test_the_module_runs_and_stays_silent_in_a_pipe(tank: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "hcmodel", "solve", tank],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 0
    assert run.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and streams of POSIX")
def test_a_closed_pipe_is_not_reported_as_success(tmp_path: Path) -> None:
    model = write(tmp_path, REFUTED)
    for command in ("check", "show"):
        reader, writer = os.pipe()
        os.close(reader)
        run = subprocess.run(
            [sys.executable, "-m", "hcmodel", command, model],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
        )
        os.close(writer)
        assert (run.returncode, run.stderr) == (141, "")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and streams of POSIX")
def test_without_a_standard_output_the_exit_code_is_still_the_result(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "hcmodel", "check", write(tmp_path, REFUTED)],
        preexec_fn=lambda: os.close(1),  # as `>&-` in a shell
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert (run.returncode, run.stderr) == (5, "")


def test_filtered_members_of_a_family_are_null(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(
        tmp_path,
        "var x[3] in [0, 9]\nminimize sum(x)\nsubject to\n    c[i in 1..3 if i != 2]: x[i] >= i\n",
    )
    assert main(["solve", model, "--json"]) == 0
    duals = json.loads(capsys.readouterr().out)["duals"]["c"]
    assert duals[1] is None
    assert [duals[0], duals[2]] == pytest.approx([1, 1], abs=1e-5)


def test_conflicts_are_named_with_the_models_own_indices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(
        tmp_path,
        "var x[3] in [0, 9]\nminimize sum(x)\nsubject to\n"
        "    low[i in 1..3]: x[i] >= i\n    high[i in 2..3 if i > 2]: x[i] <= 1\n",
    )
    assert main(["solve", model]) == 4
    printed = capsys.readouterr().out
    assert "low[3]" in printed
    assert "high[3]" in printed


def test_a_plot_without_matplotlib_is_refused_before_the_solve(
    tank: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hcmodel.report.canvas.find_spec", lambda name: None)
    assert main(["solve", tank, "--plot", "p.png"]) == 1
    printed = capsys.readouterr()
    assert "pip install 'hcmodel[plot]'" in printed.err
    assert printed.out == ""


def test_a_picture_of_an_unknown_kind_leaves_the_result_standing(
    tank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["solve", tank, "--plot", str(tmp_path / "p.xyz")]) == 1
    printed = capsys.readouterr()
    assert "x = [2, 0.5]" in printed.out
    assert "xyz" in printed.err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"hcmodel {hc.__version__}\n"


def test_check_proves_and_shows_how(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", tank]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("verdict       proven")
    assert "coordinates   log(x)" in printed
    assert "log-convex" in printed
    assert "mu_c        0.333333     bound" in printed


def test_check_prints_one_json_object(tank: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", tank, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["verdict", "coordinates", "derivation", "counterexample", "constants"]
    assert report["verdict"] == "proven"
    assert report["coordinates"] == {"x": "log(x)"}
    assert report["counterexample"] is None
    assert report["constants"]["diameter_u"]["kind"] == "bound"


def test_check_of_a_refuted_map_gives_exit_code_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path, REFUTED)
    assert main(["check", model, "--samples", "30"]) == 5
    printed = capsys.readouterr().out
    assert printed.startswith("verdict       refuted")
    assert f"{model}:2:10: objective: " in printed
    assert "F(middle) = " in printed
    assert main(["check", model, "--samples", "30", "--seed", "1", "--json"]) == 5
    report = json.loads(capsys.readouterr().out)
    assert report["counterexample"]["left"] > report["counterexample"]["right"]


OWN_INDICES = """
set gases = {"N2", "O2"}
var x[2] in [1, 2]
var v[0..3] in [1, 2]
var w[gases] > 0
minimize x[1]^2 + (x[1] + v[0]) + w["O2"] + exp(w["N2"])
subject to
    ends: x[1] + v[3] <= 3
    steps[t in 1..3]: v[t] >= v[t-1] / 2
    gas: w["N2"] <= 4
"""


def test_show_writes_indices_as_the_language_counts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", write(tmp_path, OWN_INDICES)]) == 0
    printed = capsys.readouterr().out
    assert 'minimize x[1]**2 + x[1] + v[0] + w["O2"] + exp(w["N2"])' in printed
    assert "ends: x[1] + v[3] <= 3" in printed
    assert "steps: v[1..3] >= v[0..2] / 2   (3 rows)" in printed


def test_check_derives_with_the_indices_of_the_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", write(tmp_path, OWN_INDICES)]) == 0
    # a node that the text does not have: the parser groups from the left
    assert 'x[1]**2 + x[1] + v[0] + w["O2"]    [' in capsys.readouterr().out


def test_a_matrix_to_the_power_minus_one_is_answered_with_inv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path, "var X[2,2] in [-1, 1]\nminimize trace(X^-1)\n")
    assert main(["check", model, "--samples", "10"]) == 0
    words = "`^` works entry by entry, and the inverse of a matrix is `inv(X)`"
    assert words in capsys.readouterr().out


def test_a_failed_proof_and_declared_coordinates_use_the_indices_of_the_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(
        tmp_path, "var x[2] in [-1, 1]\nminimize x[1]*x[2]\nhidden\n    x[1],\n    x[2]\n"
    )
    assert main(["check", model, "--samples", "30"]) == 5
    printed = capsys.readouterr().out
    assert "x[1] may be 0" in printed
    assert "x[0]" not in printed
    assert main(["show", model]) == 0
    assert "hidden x[1], x[2]" in capsys.readouterr().out


def test_sizes_are_counted_with_their_nouns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "var x[2] in [1, 2]\nvar y in [1, 2]\nminimize sum(x) + y\nsubject to\n"
    assert main(["show", write(tmp_path, text + "    a[i in 1..1]: x[i] >= 1.5\n")]) == 0
    printed = capsys.readouterr().out
    assert "3 in 2 variables" in printed
    assert "(1 row)" in printed
    assert main(["show", write(tmp_path, "var x in [1, 2]\nminimize x\n")]) == 0
    assert "1 in 1 variable\n" in capsys.readouterr().out


def test_check_of_what_stays_open_gives_exit_code_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "var x in [-0.9, 0.9]\nminimize 1 - cos(pi*x)\nhidden sin(pi*x/2)\n"
    assert main(["check", write(tmp_path, text), "--samples", "25"]) == 0
    printed = capsys.readouterr().out
    assert "not refuted" in printed
    assert "samples       25" in printed


def test_check_reports_mistakes_as_the_other_commands_do(
    tank: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write(tmp_path, "var x in [0, 1]\nminimize xx\n")
    assert main(["check", model, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["line"] == 2
    assert main(["check", tank, "--samples", "0"]) == 2
    assert "samples is a whole number" in capsys.readouterr().err


def test_the_command_leaves_the_display_of_warnings_as_it_was(capsys):
    before, filters = warnings.showwarning, list(warnings.filters)
    assert main(["methods"]) == 0
    assert main(["solve", "missing.hc"]) == 1
    assert warnings.showwarning is before
    assert warnings.filters == filters
    assert "missing.hc" in capsys.readouterr().err
