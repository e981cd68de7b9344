"""Every method of the table passes its conformance suite, and broken methods do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from hcmodel.solvers import METHODS, Evaluation, Oracle, Termination
from hcmodel.solvers.first_order.adaptive_line_search import AdaptiveLineSearch
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.methods import MethodEntry
from hcmodel.testing import check_method
from tests.extent import several

# Sub-gradient methods need ε⁻³ calls: after 5000 of them, ε is about 0.06.
CALLS = several(1000, 5000)
ACCURACY = dict.fromkeys(("ippm-swsg", "ippm-sm"), 0.06 * (5000 / CALLS) ** (1 / 3))
WITHOUT_ROWS = ("box", "simplex", "kinks")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_of_the_table_passes(name: str) -> None:
    entry = METHODS[name]
    if entry.missing():
        pytest.skip(f"{name} needs {entry.missing()}")
    checked = check_method(entry, accuracy=ACCURACY.get(name, 1e-6), max_calls=CALLS)
    assert {"box", "simplex"} <= set(checked)
    assert entry.needs_no_rows == ("plane" not in checked)
    smooth = entry.needs_smooth or entry.second_order
    assert (smooth or entry.program is not None) == ("kinks" not in checked)


def test_an_entry_that_is_not_in_the_table_is_there_for_the_check_only() -> None:
    entry = replace(METHODS["prox-linear"], name="mine")
    check_method(entry)
    assert "mine" not in METHODS


# broken methods


@dataclass
class Wrapped:
    """A method with one of its functions replaced."""

    options: Any
    init: Callable[..., Any] = None  # type: ignore[assignment]
    step: Callable[..., Any] = None  # type: ignore[assignment]
    terminate: Callable[..., Any] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        inner = AdaptiveLineSearch(self.options)
        for name in ("init", "step", "terminate"):
            if getattr(self, name) is None:
                setattr(self, name, getattr(inner, name))


def entry_with(**changes: Callable[..., Any]) -> MethodEntry:
    known = METHODS["sbl-adals"]
    return replace(known, name="broken", make=lambda options: Wrapped(options, **changes))


def early(task: Task, state: State) -> Termination:
    return Termination.CONVERGED


def uncounted(task: Task, start: Evaluation) -> Any:
    Oracle(task.oracle.stack, task.oracle.outer).at(start.point)
    return METHODS["sbl-adals"].make(METHODS["sbl-adals"].options()).init(task, start)


def outside(task: Task, start: Evaluation) -> Any:
    task.oracle.at(start.point + 50.0)
    return METHODS["sbl-adals"].make(METHODS["sbl-adals"].options()).init(task, start)


def by_chance(task: Task, start: Evaluation) -> Any:
    generator = np.random.default_rng()
    elsewhere = task.oracle.at(task.domain.sample(generator))
    return METHODS["sbl-adals"].make(METHODS["sbl-adals"].options()).init(task, elsewhere)


def past_the_budget(task: Task, start: Evaluation) -> Any:
    task.oracle.budget.max_calls = None
    return METHODS["sbl-adals"].make(METHODS["sbl-adals"].options()).init(task, start)


def without_end(task: Task, state: State) -> State:
    return replace(state, current=task.oracle.at(state.current.point * (1 - 1e-9)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"terminate": early}, "error .* after|KKT residual"),
        ({"init": uncounted}, "calls are told of and"),
        ({"init": outside}, "points outside the domain were evaluated"),
        ({"init": by_chance}, "a second run"),
        ({"init": past_the_budget}, "calls of "),
        ({"step": without_end}, "error .* after"),
    ],
)
def test_a_broken_method_fails_with_the_reason(changes, said) -> None:
    with pytest.raises(AssertionError, match=f"broken on '.*': .*({said})"):
        check_method(entry_with(**changes), max_calls=500)


def test_a_method_that_writes_to_the_start_fails() -> None:
    def writing(task: Task, start: Evaluation) -> Any:
        start.point[0] = 0.0

    with pytest.raises(AssertionError, match="ValueError: assignment destination is read-only"):
        check_method(entry_with(init=writing))
