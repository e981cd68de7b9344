"""How long the language server takes to answer on a model of 300 lines.

    python -m tests.benchmarks language_server

Prints the slowest of several answers of each kind, over standard input and output; the aim is 200 ms.
On a machine with other load, the processor time of the server (to 10 ms) says what a quiet one takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hcmodel.lsp.client import Client

AIM = 0.2
REPEATS = 5


def long_model(lines: int = 300) -> str:
    """Variables, lets that use each other, and rows."""
    count = (lines - 4) // 3
    text = [f"var x{i}[4] in [0.5, 2]" for i in range(count)]
    text += [f"let t{i} = sum(x{i} * x{max(i - 1, 0)}) + exp(x{i}[1])" for i in range(count)]
    text += ["minimize " + " + ".join(f"t{i}" for i in range(0, count, 10)), "subject to"]
    text += [f"    row{i}: t{i} <= {i + 100}" for i in range(count)]
    return "\n".join(text) + "\n"


def slowest(ask: Callable[[], Any], process: int) -> tuple[float, float]:
    """The largest time that passed, and that the server computed, for one answer."""
    times, computed = [], []
    for _ in range(REPEATS):
        start, before = time.perf_counter(), cpu_seconds(process)
        ask()
        times.append(time.perf_counter() - start)
        computed.append(cpu_seconds(process) - before)
    return max(times), max(computed)


def cpu_seconds(process: int) -> float:
    """Processor time of a process so far, from Linux; NaN elsewhere."""
    path = Path(f"/proc/{process}/stat")
    if not path.exists():
        return float("nan")
    fields = path.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    text, uri, version = long_model(), "file:///models/long.hc", iter(range(2, 1000))
    row = next(i for i, line in enumerate(text.split("\n")) if line.startswith("let t9 "))
    with Client() as client:
        assert client.open(uri, text) == []
        asked = {
            "diagnostics": lambda: client.change(
                uri, text + f"    more: x1[1] <= {next(version)}\n", next(version)
            ),
            "a line above": lambda: client.change(uri, "\n" * next(version) + text, next(version)),
            "a mistake": lambda: client.change(uri, text + "    more: x1[1] <=\n", next(version)),
            "hover": lambda: client.at("hover", uri, row, 5),
            "completion": lambda: client.at("completion", uri, row, 5),
            "definition": lambda: client.at("definition", uri, row, 16),
            "formatting": lambda: client.ask(
                "textDocument/formatting",
                textDocument={"uri": uri},
                options={"tabSize": 4, "insertSpaces": True},
            ),
        }
        print(f"{len(text.splitlines())} lines")
        for name, ask in asked.items():
            seconds, computed = slowest(ask, client.process.pid)
            late = "" if seconds <= AIM else "  (too slow)"
            print(
                f"{name:12} {1e3 * seconds:7.1f} ms, {1e3 * computed:5.0f} ms of it computed{late}"
            )


if __name__ == "__main__":
    main()
