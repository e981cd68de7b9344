"""The HTML report: what it says of each kind of model, and how it behaves in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hcmodel as hc
from hcmodel.cli import main
from tests.hcmodel.report.browser import CHROMIUM, Browser

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def no_matplotlib(monkeypatch):
    """No pictures: they take the time."""
    monkeypatch.setattr("hcmodel.report.canvas.find_spec", lambda name: None)


VOID = {"meta", "link", "input", "br"}


class Parts(HTMLParser):
    """The text of a page by sections, and whether its elements are closed as they should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.text: dict[str, str] = {}
        self._section = "head"
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        if tag == "section":
            self._section = given["id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text[self._section] = self.text.get(self._section, "") + data


def test_a_report_is_one_file_with_everything(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hcmodel.studies.report_page.POINTS", 8)
    path = tmp_path / "tank.html"
    assert main(["report", str(EXAMPLES / "tank.hc"), "-o", str(path)]) == 0
    assert "optimal: " in capsys.readouterr().out
    page = path.read_text("utf-8")
    assert not re.search(r'(src|href)="(https?:|//|[^"#d])', page)  # nothing is fetched
    parts = Parts(page)
    assert len(parts.ids) == len(set(parts.ids))
    assert "no feasible point is better" in parts.text["result"]
    assert "subject to" in parts.text["model"]
    assert "log(x)" in parts.text["analysis"]
    assert "x[2]" in parts.text["variables"]
    # the dual is 1, the right-hand side 1, the value 5
    assert "area: relaxing by 1 % lowers the value by 0.2 %" in parts.text["constraints"]
    assert page.count("<svg") == 2
    assert "numpy" in parts.text["environment"]


def test_an_infeasible_model_explains_itself(no_matplotlib):
    x = hc.Variable(2, name="x", bounds=(1, 2))
    rows = [(x[0] * x[1] <= 0.5).named("area"), (x[0] <= 1.5).named("width")]
    parts = Parts(hc.Problem(hc.Minimize(x[0] + x[1]), rows).report())
    assert "No point satisfies all constraints" in parts.text["result"]
    assert "area" in parts.text["conflict"]
    assert "width" not in parts.text["conflict"]  # it has no part in it


def test_a_model_that_is_not_proven_says_what_is_in_the_way(no_matplotlib):
    x = hc.Variable(name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(hc.sin(3 * x)))
    problem.solve()
    problem.analyze(samples=5)
    parts = Parts(problem.report())
    assert "What keeps it from a proof" in parts.text["analysis"]


def test_regulators_and_decision_processes_have_a_report(no_matplotlib):
    for name, variable in (("lqr", "Y"), ("cmdp", "occupancy")):
        problem = hc.load(EXAMPLES / f"{name}.hc", EXAMPLES / f"{name}.json")
        page = problem.report()
        parts = Parts(page)
        assert page.count("<math") >= 2  # as written, and in hidden coordinates
        assert f"<mi>{variable}</mi>" in page
        assert "proven" in parts.text["analysis"]
        assert "hidden coordinates" in parts.text["analysis"]
        assert "[1, 1]" in parts.text["parameters"]


def test_names_are_text_whatever_they_are(no_matplotlib):
    x = hc.Variable(2, name="<script>alert(1)</script>", bounds=(1, 2))
    row = (x[0] * x[1] <= 3).named('a & b "c"')
    page = hc.Problem(hc.Minimize(x[0] / x[1]), [row]).report(title="<b>title</b>")
    parts = Parts(page)
    assert page.count("<script>") == 1  # our own
    assert "<script>alert(1)</script>[0]" in parts.text["variables"]
    assert 'a & b "c"' in parts.text["constraints"]
    assert "<b>title</b>" in parts.text["head"]


def test_without_matplotlib_the_report_has_no_pictures(no_matplotlib):
    page = hc.load(EXAMPLES / "tank.hc").report()
    assert "<svg" not in page
    assert "pip install 'hcmodel[plot]'" in page


def test_a_report_is_not_written_over_its_model(tmp_path):
    model = tmp_path / "tank.hc"
    model.write_text((EXAMPLES / "tank.hc").read_text())
    assert main(["report", str(model), "-o", str(model)]) == 1
    assert main(["report", str(model), "--method", "nothing"]) == 2


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_report_in_a_browser(tmp_path, no_matplotlib):
    rows = hc.Variable(12, name="<script>&", bounds=(1, 20))
    page = tmp_path / "report.html"
    hc.Problem(hc.Minimize(hc.sum(rows * [float(12 - i) for i in range(12)] + 9 / rows))).report(
        page
    )
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(page)
        assert browser.messages == []
        first = "document.querySelector('#variables tbody tr:not([hidden]) td').textContent"
        values = (
            "Array.from(document.querySelectorAll('#variables tbody tr:not([hidden])'))"
            ".map(row => Number(row.cells[1].dataset.value))"
        )
        assert browser.evaluate(first) == "<script>&[0]"
        click = "document.querySelectorAll('#variables th')[1].click()"
        browser.evaluate(click)
        up = browser.evaluate(values)
        assert len(up) == 12
        assert up == sorted(up)
        browser.evaluate(click)
        assert browser.evaluate(values) == sorted(up, reverse=True)
        browser.evaluate(
            "{const f = document.querySelector('#variables input'); f.value = '[11]';"
            "f.dispatchEvent(new Event('input'))}"
        )
        assert browser.evaluate(first) == "<script>&[11]"
        assert browser.evaluate("document.querySelector('#variables .count').textContent") == (
            "1 of 12 rows"
        )
        ground = "getComputedStyle(document.body).backgroundColor"
        browser.prefer("dark")
        dark = browser.evaluate(ground)
        browser.prefer("light")
        light = browser.evaluate(ground)
        assert light == "rgb(255, 255, 255)"
        assert dark != light
        browser.evaluate("document.getElementById('theme').click()")
        assert browser.evaluate(ground) == dark
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        for width in (1400, 360):
            browser.resize(width, 800)
            assert browser.evaluate(overflow) == 0  # wide tables scroll inside of the page
        assert browser.messages == []
    finally:
        browser.close()
