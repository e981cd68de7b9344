"""Reproduce the figures and numbers of the paper from models written with hcmodel.

    python examples/paper/reproduce.py --figure 5 --out DIR
    python examples/paper/reproduce.py --all --out DIR

Each figure is written as PNG and SVG; a table `quantity | ours | paper | note` goes to standard output.
`--table` draws nothing; `--methods` writes the pictures of the methods' pages. Needs matplotlib, which
comes with the extra `plot`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import figures
from matplotlib.figure import Figure
from table import TABLES, text

from hcmodel.solvers import METHODS

FIGURES = {
    1: figures.figure_1,
    2: figures.figure_2,
    3: figures.figure_3,
    4: figures.figure_4,
    5: figures.figure_5,
    6: figures.figure_6,
}


def save(figure: Figure, folder: Path, name: str, endings: tuple[str, ...], dpi: int) -> None:
    for ending in endings:
        figure.savefig(folder / f"{name}.{ending}", dpi=dpi)


def main() -> None:
    parser = argparse.ArgumentParser(description="Reproduce the paper's figures with hcmodel.")
    parser.add_argument("--figure", type=int, nargs="+", choices=sorted(FIGURES), default=[])
    parser.add_argument("--all", action="store_true", help="every figure")
    parser.add_argument("--table", action="store_true", help="only the numbers, no pictures")
    parser.add_argument("--methods", action="store_true", help="the pictures of the docs pages")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder to write to")
    arguments = parser.parse_args()
    numbers = sorted(FIGURES) if arguments.all else arguments.figure
    if not numbers and not arguments.methods:
        parser.error("give --figure N, --all or --methods")
    if not arguments.table or arguments.methods:
        arguments.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in numbers:
        if not arguments.table:
            save(FIGURES[number](), arguments.out, f"figure-{number}", ("png", "svg"), 130)
        rows += TABLES[number]()
    if arguments.methods:
        for name in (name for name, entry in METHODS.items() if entry.make_theory is not None):
            save(figures.method_picture(name), arguments.out, f"method-{name}", ("png",), 200)
    if rows:
        print(text(rows))


if __name__ == "__main__":
    main()
