"""`python -m tests.benchmarks [--quick] [--plot FILE]`: hcmodel and other tools in one run.

`python -m tests.benchmarks NAME …` runs one benchmark, and `--list` lists them. Needs the extra `bench`.
Only ratios of one run mean something; run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
# The jobs of `speed` that take less than a second each.
QUICK = ("tank", "dense100", "chain1000", "regulator3", "regulator6", "process5", "process20")

MARKERS = "osv^Dx"


def names() -> dict[str, str]:
    """Each benchmark and the first line of what it says of itself."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        text = path.read_text("utf-8")
        if not path.name.startswith("_") and '__name__ == "__main__"' in text:
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    return found


def together(arguments: list[str]) -> int:
    """Evaluations, then whole jobs of all kinds."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="jobs of less than a second")
    parser.add_argument("--plot", type=Path, help="write time against size, log-log")
    chosen = parser.parse_args(arguments)
    try:
        from tests.benchmarks import general, speed
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed: pip install 'hcmodel[bench]'", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")  # cvxpy tells of inaccurate solutions
    works = {
        **{n: speed.WORKS[n] for n in (QUICK if chosen.quick else speed.WORKS)},
        **{n: general.WORKS[n] for n in (general.QUICK if chosen.quick else general.WORKS)},
    }
    general.show_evaluations()
    general.show_resolves()
    found = general.show(works, repeat=3)
    if chosen.plot is not None:
        _plot(found, chosen.plot)
    return 0


def _plot(found: list[tuple[str, str, float]], path: Path) -> None:
    """Families whose names have a size: one colour each, one marker for each tool, dashed for others."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for work, tool, seconds in found:
        digits = "".join(c for c in work if c.isdigit() or c == " ").split()
        letters = "".join(c for c in work if not c.isdigit()).replace(",", "")
        family = " ".join(word for word in letters.split() if len(word) > 1)
        if digits:
            size = float("".join(digits[:1])) if "gates" not in work else float("".join(digits))
            lines.setdefault((family, tool), []).append((size, seconds))
    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    shown = {each: points for each, points in lines.items() if len(points) > 1}
    families, tools = (list(dict.fromkeys(names)) for names in zip(*shown, strict=True))
    for (family, tool), points in shown.items():
        axes.plot(
            *zip(*sorted(points), strict=True),
            "-" if tool == "hcmodel" else "--",
            color=f"C{families.index(family)}",
            marker=MARKERS[tools.index(tool) % len(MARKERS)],
            label=f"{family}: {tool}",
        )
    axes.set(xscale="log", yscale="log", xlabel="size", ylabel="seconds, whole job")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=100)


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("--quick", "--plot", "-h", "--help"):
        return together(arguments)
    known = names()
    if arguments[0] not in known:
        if arguments[0] != "--list":
            print(f"there is no benchmark {arguments[0]!r}; there are:", file=sys.stderr)
        for name, about in known.items():
            print(f"{name:16} {about}")
        return 0 if arguments[0] == "--list" else 2
    sys.argv = arguments
    runpy.run_module(f"tests.benchmarks.{arguments[0]}", run_name="__main__", alter_sys=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
