"""Progress and verbose output: silent for short solves, a line that says how far a long one is."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.report.printers import PATIENCE, PIPE_PERIOD, ProgressLine, fallen, progress_text

RECORD = hc.Record(7, "descent", 120, 60, 5.25, 1e-7, 0.1, np.nan, np.nan, 1e-2, 5.2)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def line(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, always: bool = False):
    monkeypatch.setattr(sys, "stderr", stream)
    now = [0.0]
    return ProgressLine(always, lambda: now[0]), now


def test_a_short_solve_shows_nothing_and_a_long_one_a_line_that_is_removed(monkeypatch):
    stream = Terminal()
    progress, now = line(monkeypatch, stream)
    progress.row(RECORD)
    progress.beat()
    assert stream.getvalue() == ""
    now[0] = PATIENCE + 1
    progress.beat()
    assert "descent, 120 calls, value 5.25, violation 1.0e-07, gap 5.0e-02" in stream.getvalue()
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_pipe_gets_lines_only_if_it_is_asked_for(monkeypatch):
    silent = io.StringIO()
    progress, now = line(monkeypatch, silent)
    progress.header("auto", 1e-6, None, "autograd")  # no thread is started
    progress.close()
    assert silent.getvalue() == ""
    asked = io.StringIO()
    progress, now = line(monkeypatch, asked, always=True)
    for now[0] in (PATIENCE, PATIENCE + 1, PATIENCE + PIPE_PERIOD):
        progress.beat()
    assert asked.getvalue().count("\n") == 2
    assert "\r" not in asked.getvalue()


def test_the_gap_falls_on_a_logarithmic_scale():
    assert fallen(1.0, 1e-6) == "[----------]"
    assert fallen(1e-3, 1e-6) == "[#####-----]"
    assert fallen(1e-9, 1e-6) == "[##########]"
    assert progress_text(None, 3, 1e-6).strip() == "3 s  solving"
    unknown = progress_text(hc.Record(0, "start", 2, 1, *[np.nan] * 5, np.inf), 3, 1e-6)
    assert unknown.strip() == "3 s  start, 2 calls"


def test_verbose_says_what_is_solved_how_and_what_was_shown(capsys):
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= 1])
    problem.solve(verbose=True)
    out = capsys.readouterr().out
    assert "method = auto: cone (proven convex in log(x))" in out
    assert "engine = " in out
    assert "unknowns = 2  inequalities = 1" in out
    assert "no feasible point is better by more than the gap" in out
