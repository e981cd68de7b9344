"""Random circuits for gate_sizing.hc.

    python examples/large/generate.py 1000 -o circuit.json [--long] [--seed 1]
    hcmodel solve examples/large/gate_sizing.hc --data circuit.json

Gates stand on a strip, and each is fed by two of its neighbours: one or two places before it, or one row
below (`--long`: any gate before it). The limit on the delay is 0.9 of that of smallest gates.
Resistances, capacitances and loads are log-normal. The data are O(n): a circuit is sparse.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

# The share of the delay of smallest gates that is allowed, and the spread of the data's logarithms.
TIGHTNESS, SPREAD = 0.9, 0.2


def wires(gates: int, rng: np.random.Generator, *, long: bool) -> np.ndarray:
    """Pairs (source, sink) of gates counted from 0, sorted, each once."""
    width = max(4, int(np.sqrt(gates) / 2))
    reach = np.array([1, 2, width, width + 1])
    chosen = rng.permuted(np.tile(reach, (gates, 1)), axis=1)[:, :2]
    sinks = np.arange(gates)[:, None]
    if long:
        chosen = rng.integers(1, np.maximum(sinks, 1) + 1, size=(gates, 2))
    sources = sinks - chosen
    pairs = np.stack([sources, np.broadcast_to(sinks, sources.shape)], axis=-1).reshape(-1, 2)
    return np.unique(pairs[(pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1])], axis=0)


def circuit(gates: int, seed: int = 1, *, long: bool = False) -> dict[str, Any]:
    """The data of a circuit, with gates counted from 1 as the language does."""
    rng = np.random.default_rng(seed)
    source, sink = wires(gates, rng, long=long).T
    R, C, L = np.exp(SPREAD * rng.normal(size=(3, gates)))
    fan_out = np.bincount(source, minlength=gates)
    delay = R * (C + L + fan_out)
    arrival = delay.copy()
    for place in np.argsort(sink, kind="stable"):  # sources come before their sinks
        one, other = source[place], sink[place]
        arrival[other] = max(arrival[other], arrival[one] + delay[other])
    last = np.cumsum(fan_out)
    return {
        "n": gates,
        "E": int(source.size),
        "source": (source + 1).tolist(),
        "sink": (sink + 1).tolist(),
        "first": (last - fan_out + 1).tolist(),
        "last": last.tolist(),
        "R": R.tolist(),
        "C": C.tolist(),
        "L": L.tolist(),
        "T": float(TIGHTNESS * arrival.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gates", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("circuit.json"))
    parser.add_argument("--long", action="store_true", help="wires between any two gates")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    data = circuit(chosen.gates, chosen.seed, long=chosen.long)
    chosen.output.write_text(json.dumps(data))


if __name__ == "__main__":
    main()
