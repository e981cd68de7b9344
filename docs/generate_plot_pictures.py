"""Draw the pictures of `docs/pictures.md` with `hc.plot`, and that of a report.

`python docs/generate_plot_pictures.py` writes `docs/pictures/landscape.png`, `run.png`,
`compare.png` and `tradeoff.png`, and `report.png` where there is a Chromium; with `report` as argument
only that. Needs matplotlib, from the extra `plot`. Run by hand.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import hcmodel as hc  # noqa: E402

PICTURES = DOCS / "pictures"


def main() -> None:
    problem = hc.load(DOCS.parent / "examples" / "tank.hc")
    problem.variables[0].start = [0.5, 0.5]  # a longer way than that of the file
    hc.plot.landscape(problem, PICTURES / "landscape.png")
    runs = []
    for method in ("hidden-newton", "prox-linear", "sbl-adals", "ippm-acgd"):
        problem.solve(method)
        assert problem.solution is not None
        runs.append(problem.solution)
    runs[2].plot(PICTURES / "run.png")
    hc.plot.compare(runs, PICTURES / "compare.png")
    (x,) = problem.variables
    cap = hc.Parameter(name="cap", value=1.0)
    limited = hc.Problem(problem.objective, [x[0] * x[1] <= cap])
    values = [0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 2.5]
    hc.plot.tradeoff(limited.sweep({cap: values}, progress=False), PICTURES / "tradeoff.png")


def report() -> None:
    """The upper part of the report of the tank, as a browser shows it."""
    browser = shutil.which("chromium")
    if browser is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "tank.html"
        hc.load(DOCS.parent / "examples" / "tank.hc").report(page)
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}"]
        look = ["--window-size=960,2040", "--force-device-scale-factor=1.25"]
        target = f"--screenshot={PICTURES / 'report.png'}"
        subprocess.run([browser, *options, *look, target, page.as_uri()], check=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["report"]:
        main()
    report()
