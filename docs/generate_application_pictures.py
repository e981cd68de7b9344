"""Solve the applications and draw the pictures of their pages.

`python docs/generate_application_pictures.py` writes `docs/pictures/application-*.png`; with names
(`lqr`, `mdp`, `pricing`, `logit`) only theirs. Needs matplotlib, from the extra `plot`. Run by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.linalg import expm, solve_continuous_lyapunov

import hcmodel as hc
from hcmodel.report.canvas import CYCLE, RESOLUTION, new_figure

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
sys.path.insert(0, str(EXAMPLES / "python"))

import grid_world  # noqa: E402

matplotlib.rcParams["axes.prop_cycle"] = cycler(color=CYCLE)


def data_of(name: str) -> dict[str, Any]:
    data = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return {key: np.array(value, dtype=float) for key, value in data.items()}


def solved(
    name: str, start: dict[str, Any] | None = None, method: str = "auto", **data: Any
) -> hc.Solution:
    problem = hc.load(EXAMPLES / f"{name}.hc", data)
    problem.solve(method, start=start)
    assert problem.solution is not None
    return problem.solution


# ---- regulators ---------------------------------------------------------------------------------


def lqr() -> Figure:
    """The helicopter after a unit disturbance: no control, and three regulators."""
    data = data_of("lqr")
    loops = {"no control": np.zeros((2, 4))}
    loops["regulator (lqr.hc)"] = solved("lqr", **data).point["K"]
    for cap in (0.5, 0.2):
        loops[f"energy ≤ {cap} (lqr_energy.hc)"] = solved("lqr_energy", **data, cap=cap).point["K"]
    times = np.linspace(0, 8, 401)
    first = np.array([1.0, 0, 0, 0])
    figure = new_figure(9, 3.4)
    panels = figure.subplots(1, 3)
    styles = ["--", "-", "-", "-"]
    for (label, K), style, colour in zip(
        loops.items(), styles, ["0.4", "C0", "C1", "C3"], strict=True
    ):
        states = np.array([expm((data["A"] + data["B"] @ K) * t) @ first for t in times])
        inputs = states @ K.T
        look = {"linestyle": style, "color": colour}
        panels[0].plot(times, states[:, 0], label=label, **look)
        panels[1].plot(times, states[:, 1], **look)
        panels[2].plot(times, np.linalg.norm(inputs, axis=1), **look)
    titles = ("horizontal velocity", "vertical velocity", "size of the control")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel="time")
        axes.grid(alpha=0.3)
    panels[0].set_ylim(-1.5, 1.5)
    panels[1].set_ylim(-3, 3)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def decentralised_cost(data: dict[str, Any], first: float, second: float) -> float:
    K = np.array([[first, 0, 0], [0, second, 0]])
    closed = data["A"] + data["B"] @ K
    if np.linalg.eigvals(closed).real.max() >= 0:
        return float("nan")
    P = solve_continuous_lyapunov(closed, -np.eye(3))
    return float(np.trace((np.eye(3) + K.T @ K) @ P))


def lqr_decentralised() -> Figure:
    """The cost over the two free entries of K, and the minima of two boxes."""
    data = data_of("lqr_decentralised")
    firsts, seconds = np.linspace(-12, 2, 281), np.linspace(-4, 1.5, 221)
    cost = np.array([[decentralised_cost(data, a, b) for a in firsts] for b in seconds])
    figure = new_figure(7, 3.8)
    axes = figure.subplots()
    filled = axes.contourf(
        firsts, seconds, cost, levels=np.geomspace(6.5, 200, 24), cmap="viridis_r"
    )
    lines = [7, 8, 10, 14, 18, 20.6, 20.9, 21.5, 23, 27, 40, 80]
    axes.contour(firsts, seconds, cost, levels=lines, colors="black", linewidths=0.5, alpha=0.6)
    ticks = [7, 10, 20, 50, 100, 200]
    figure.colorbar(filled, ax=axes, label="cost", ticks=ticks, format="%g")
    for marker, colour, box in zip("os", ("#D55E00", "#CC79A7"), ((-1, 1), (-8, -4)), strict=True):
        corner, width = (box[0], -3.0), box[1] - box[0]  # as the page searches
        axes.add_patch(Rectangle(corner, width, 3.0, fill=False, edgecolor=colour, linewidth=1.5))
        ends = (np.array([box[0], -3.0]), np.array([box[1], 0.0]))
        seen = hc.Variable(2, name="seen", bounds=ends)
        K = hc.diag(seen) @ np.eye(2, 3)
        P = hc.lyap(data["A"] + data["B"] @ K, np.eye(3))
        problem = hc.Problem(hc.Minimize(hc.trace((np.eye(3) + K.T @ K) @ P)))
        problem.solve("sbl-adals")
        axes.plot(
            *seen.value, marker=marker, markersize=8, color=colour, markeredgecolor="black",
            linestyle="none", label=f"minimum inside of its box, cost {problem.value:.2f}",
        )  # fmt: skip
    axes.set(xlabel="$K_{11}$", ylabel="$K_{22}$", facecolor="0.85")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


# ---- decision processes -------------------------------------------------------------------------


def mdp() -> Figure:
    """How to keep the machine, with and without limits."""
    data = data_of("cmdp")
    figure = new_figure(7.5, 3.4)
    cases = {"no limits": np.full(2, 100.0), "with limits": data["limit"]}
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (title, limit) in zip(panels, cases.items(), strict=True):
        found = solved("cmdp", **{**data, "limit": limit})
        policy = found.point["policy"]
        picture = axes.imshow(policy, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        for (state, action), share in np.ndenumerate(policy):
            colour = "white" if share > 0.6 else "black"
            axes.text(action, state, f"{share:.2f}", ha="center", va="center", color=colour)
        axes.set(title=f"{title}: reward {found.value:.3f}", xticks=range(3))
        axes.set_xticklabels(["run", "service", "replace"])
    panels[0].set(ylabel="state", yticks=range(6))
    panels[0].set_yticklabels(["new", "2", "3", "4", "worn", "broken"])
    figure.colorbar(picture, ax=panels, label="probability")
    return figure


def mdp_grid() -> Figure:
    """Where the robot goes, with and without a limit on danger."""
    figure = new_figure(9, 3.6)
    panels = figure.subplots(1, 2)
    shape = len(grid_world.MAP), len(grid_world.MAP[0])
    moves = np.array([[right, -down] for down, right in grid_world.MOVES.values()])
    danger, goal = (grid_world.marked(letter) for letter in "#g")
    for axes, limit in zip(panels, (1.0, 0.05), strict=True):
        problem, policy, visits = grid_world.model(limit)
        problem.solve()
        shares = np.where(goal > 0, np.nan, visits.value).reshape(shape)
        picture = axes.imshow(shares, cmap="Blues", vmin=0, vmax=0.08)
        for (row, column), letter in zip(grid_world.CELLS, "".join(grid_world.MAP), strict=True):
            if letter == "#":
                corner = column - 0.5, row - 0.5
                hatched = Rectangle(
                    corner,
                    1,
                    1,
                    fill=False,
                    edgecolor="#D55E00",
                    hatch="//",
                    linewidth=0,
                    alpha=0.6,
                )
                axes.add_patch(hatched)
            if letter in "sg":
                axes.text(column - 0.42, row - 0.2, {"s": "start", "g": "goal"}[letter], fontsize=8)
        columns, rows = np.meshgrid(range(shape[1]), range(shape[0]))
        direction = (policy.value @ moves) * (goal == 0)[:, None]
        axes.quiver(
            columns,
            rows,
            *direction.reshape(*shape, 2).transpose(2, 0, 1),
            pivot="mid",
            scale=9,
            width=0.008,
        )
        caption = "no limit" if limit >= 1 else f"danger at most {limit}"
        axes.set(xticks=[], yticks=[])
        axes.set_title(
            f"{caption}: goal {problem.value:.3f}, danger {danger @ visits.value:.3f}", fontsize=10
        )
    figure.colorbar(picture, ax=panels, label="share of the time", extend="max", shrink=0.8)
    return figure


# ---- prices -------------------------------------------------------------------------------------


def pricing() -> Figure:
    """One journey's revenue over price and over demand, and what scarce seats do to all prices."""
    data = data_of("pricing")
    size, sensitivity = data["size"], data["sensitivity"]
    figure = new_figure(9.5, 3.2)
    by_price, by_demand, bars = figure.subplots(1, 3, width_ratios=[1, 1, 1.6])
    prices = np.linspace(10, 600, 300)
    demand = size[0] * np.exp(-sensitivity[0] * prices)
    by_price.plot(prices, prices * demand / 1000, color="C0")
    by_price.set(title="revenue over price", xlabel="price", ylabel="revenue, thousands")
    by_demand.plot(demand, prices * demand / 1000, color="C0")
    by_demand.set(title="the same over demand", xlabel="demand")
    bend = 2 / sensitivity[0]
    by_price.axvspan(bend, 600, color="0.9")
    by_price.text(0.95, 0.9, "not concave", transform=by_price.transAxes, ha="right", fontsize=9)
    found = solved("pricing", **data)
    journeys = np.arange(1, len(size) + 1)
    bars.bar(journeys - 0.2, 1 / sensitivity, width=0.4, color="0.7", label="unlimited seats")
    bars.bar(
        journeys + 0.2, found.point["price"], width=0.4, color="C0", label="with the planes' seats"
    )
    bars.set(title="prices", xlabel="journey", xticks=journeys)
    bars.legend(frameon=False, fontsize=9)
    for axes in (by_price, by_demand, bars):
        axes.grid(alpha=0.3, axis="y")
    return figure


def logit() -> Figure:
    """Profit with two of the products, over prices and over shares."""
    data = data_of("logit")
    appeal, cost, sensitivity = (data[key][:2] for key in ("appeal", "cost", "sensitivity"))
    two = {
        "appeal": appeal,
        "cost": cost,
        "parts": np.array([[1.0, 1.0]]),
        "stock": np.array([400.0]),
        "sensitivity": sensitivity,
        "buyers": data["buyers"],
    }
    found = solved("logit", **two)
    figure = new_figure(8.6, 3.9)
    over_prices, over_shares = figure.subplots(1, 2)
    first, second = np.meshgrid(np.linspace(0, 500, 301), np.linspace(0, 500, 301))
    _contours(over_prices, first, second, np.stack([first, second]), two)
    best = found.point["price"]
    over_prices.plot(*best, "r*", markersize=12, markeredgecolor="black", label="optimum")
    over_prices.set(title="over prices", xlabel="price 1", ylabel="price 2")
    one, other = np.meshgrid(np.linspace(0.002, 0.7, 301), np.linspace(0.002, 0.7, 301))
    rest = np.where(one + other < 0.99, 1 - one - other, np.nan)
    price = np.stack([appeal[0] - np.log(one / rest), appeal[1] - np.log(other / rest)])
    _contours(over_shares, one, other, price / sensitivity.reshape(2, 1, 1), two)
    weight = np.exp(appeal - sensitivity * best)
    over_shares.plot(*(weight / (1 + weight.sum())), "r*", markersize=12, markeredgecolor="black")
    over_shares.set(title="over shares", xlabel="share 1", ylabel="share 2")
    figure.legend(loc="outside lower center", frameon=False)
    return figure


def _contours(axes: Any, first: Any, second: Any, price: Any, data: dict[str, Any]) -> None:
    """Profit in colour, and what the stock forbids in grey."""
    appeal, cost, sensitivity = (
        data[key].reshape(2, 1, 1) for key in ("appeal", "cost", "sensitivity")
    )
    weight = np.exp(appeal - sensitivity * price)
    share = weight / (1 + weight.sum(axis=0))
    profit = data["buyers"] * ((price - cost) * share).sum(axis=0) / 1000
    levels = np.linspace(0, np.ceil(np.nanmax(profit)), 16)
    filled = axes.contourf(first, second, profit, levels=levels, cmap="viridis")
    axes.contour(first, second, profit, levels=levels, colors="white", linewidths=0.5)
    used = data["buyers"] * share.sum(axis=0) - data["stock"][0]
    axes.contourf(first, second, used, levels=[0, 1e6], colors=["0.5"], alpha=0.6)
    axes.contour(first, second, used, levels=[0], colors="black", linewidths=1.2)
    axes.figure.colorbar(filled, ax=axes, label="profit, thousands", format="%.0f")


PICTURES: dict[str, tuple[Callable[[], Figure], ...]] = {
    "lqr": (lqr, lqr_decentralised),
    "mdp": (mdp, mdp_grid),
    "pricing": (pricing,),
    "logit": (logit,),
}


def main() -> None:
    for name in sys.argv[1:] or PICTURES:
        for draw in PICTURES[name]:
            ending = draw.__name__.replace("_", "-")
            draw().savefig(DOCS / "pictures" / f"application-{ending}.png", dpi=RESOLUTION)


if __name__ == "__main__":
    main()
