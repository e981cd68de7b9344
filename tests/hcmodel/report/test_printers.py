"""Progress and verbose output: silent for short solves, a line that says how far a long one is."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.report.printers import (
    HEADER,
    PATIENCE,
    PIPE_PERIOD,
    Heading,
    ProgressLine,
    Reporter,
    fallen,
    progress_text,
)
from hcmodel.report.text import counted

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
    progress.header(Heading("auto", 1e-6, None, "log(x)", "autograd"))  # no thread is started
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
    assert "sizes        2 unknowns, 1 inequality, 0 equalities, 3 functions\n" in out
    assert "coordinates  log(x) (proven convex)\n" in out
    assert "method       auto: cone (proven convex in log(x))\n" in out
    assert "\nengine       " in out
    assert "no feasible point is better by more than the gap" in out
    rows = out.split(HEADER + "\n")[1].split("-" * 20)[0].splitlines()
    assert rows
    assert {len(row) for row in rows} == {len(HEADER)}  # the longest phase fits its column


def test_verbose_says_where_coordinates_are_declared_or_unknown(capsys):
    x = hc.Variable(name="x", bounds=(0.4, 3))
    for hidden, words in (
        (None, "as written; no hidden coordinates are known"),
        ([hc.log(x)], "log(x) (declared, not proven)"),
    ):
        problem = hc.Problem(hc.Minimize(hc.sin(3 * x) + x), hidden=hidden)
        problem.solve("prox-linear", verbose=True, max_calls=20)
        assert f"coordinates  {words}" in capsys.readouterr().out


def test_a_number_of_one_has_no_plural():
    assert counted(1, "point") == "1 point"
    assert counted(0, "equality", "equalities") == "0 equalities"


def test_records_are_handed_on_only_where_somebody_looks():
    assert Reporter(None).watch is None
    assert Reporter(lambda record: True).watch is not None
    assert Reporter(None, verbose=True).watch is not None
    assert Reporter(None, progress=True).watch is not None
