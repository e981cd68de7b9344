"""Every engine of the table passes its conformance suite, and broken engines do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.autograd_stack import AutogradStack
from hcmodel.engines.graph_program import Program
from hcmodel.engines.registry import ENGINES
from hcmodel.expressions.table import ATOMS
from hcmodel.testing import check_engine
from hcmodel.testing.samples import ALL_SAMPLES
from tests.extent import ALL as LONG
from tests.extent import first, several
from tests.hcmodel.engines.central_differences import DifferencesEngine
from tests.problems.examples import ALL, loaded

# Functions of many unknowns take long to be differenced twice.
MOST_UNKNOWNS = 10
# One sample of each atom: test_atoms.py checks the reference engine at all of them.
SAMPLES = ALL_SAMPLES if LONG else list({each.name: each for each in ALL_SAMPLES}.values())


@pytest.fixture(scope="module")
def examples() -> list[hc.Problem]:
    return [loaded(name) for name in ALL]


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_of_the_table_passes(name: str, examples) -> None:
    if ENGINES[name].missing:
        pytest.skip(f"engine '{name}' needs {ENGINES[name].missing}")
    small = [each for each in examples if each.canonical.layout.size <= MOST_UNKNOWNS]
    reference = name == "autograd"
    report = check_engine(
        ENGINES[name],
        examples if reference or LONG else small,
        samples=SAMPLES,
    )
    assert set(report.expressed) | set(report.refused) == set(ATOMS)
    if name == "autograd":
        assert report.refused == ()
        assert report.models == len(examples)


def test_joined_steps_pass_too() -> None:
    report = check_engine(AutogradEngine(fewest=1), samples=SAMPLES)
    assert set(report.expressed) == set(ATOMS)


def test_the_engine_of_central_differences_passes(examples) -> None:
    small = first(2, [e for e in examples if e.canonical.layout.size <= MOST_UNKNOWNS])
    samples = SAMPLES if LONG else SAMPLES[::4]
    report = check_engine(DifferencesEngine(), small, samples=samples, second=1e-3)
    assert report.models == len(small)
    assert len(small) >= several(2, 10)


def test_atoms_that_an_engine_refuses_are_reported() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 2))
    problems = [hc.Problem(hc.Minimize(f(x))) for f in (lambda x: hc.sum(hc.sin(x)), hc.sum)]
    lacking = ("det", "sin", "inv")
    few = [sample for sample in SAMPLES if sample.name in (*lacking, "cos", "sum")]
    report = check_engine(DifferencesEngine(lacking=lacking), problems, samples=few, second=1e-4)
    assert set(report.refused) == set(lacking)
    assert set(report.expressed) == {"cos", "sum"}
    assert report.models == 1


# broken engines


@dataclass(frozen=True)
class Broken(AutogradEngine):
    """The reference engine with one method of its stack replaced."""

    change: Callable[[AutogradStack], None] = lambda stack: None

    def compile(self, program: Program) -> AutogradStack:
        stack = super().compile(program)
        self.change(stack)
        return stack


def replaced(stack: Any, name: str, make: Callable[[Any], Any]) -> None:
    setattr(stack, name, make(getattr(stack, name)))


def no_refresh(stack: AutogradStack) -> None:
    stack.refresh()
    replaced(stack, "refresh", lambda _: lambda: None)


def shared_buffer(stack: AutogradStack) -> None:
    buffers: dict[str, np.ndarray] = {}

    def make(evaluate: Any) -> Any:
        def evaluated(x: np.ndarray, part: str) -> Any:
            forward = evaluate(x, part)
            buffer = buffers.setdefault(part, np.array(forward.values))
            buffer[...] = forward.values
            forward.values = buffer
            return forward

        return evaluated

    replaced(stack, "evaluate", make)


def changes_the_point(stack: AutogradStack) -> None:
    def make(hessian: Any) -> Any:
        def changed(x: np.ndarray, weights: np.ndarray) -> Any:
            found = hessian(x, weights)
            x += 1e-3
            return found

        return changed

    replaced(stack, "hessian", make)


def half_hessian(stack: AutogradStack) -> None:
    replaced(stack, "hessian", lambda hessian: lambda x, weights: 0.5 * hessian(x, weights))


def raises_outside(stack: AutogradStack) -> None:
    def make(evaluate: Any) -> Any:
        def evaluated(x: np.ndarray, part: str) -> Any:
            forward = evaluate(x, part)
            if not np.isfinite(forward.values).all():
                raise FloatingPointError("outside")
            return forward

        return evaluated

    replaced(stack, "evaluate", make)


def another_name(stack: AutogradStack) -> None:
    stack.engine = "mine"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (no_refresh, "has no value|after a refresh|without a value"),
        (shared_buffer, "a later evaluation changed an earlier result"),
        (changes_the_point, "the same point has other values"),
        (half_hessian, "Hessian .*relative error"),
        (another_name, "engine's name"),
        (raises_outside, "outside the domain nothing is raised: FloatingPointError"),
    ],
)
def test_a_broken_engine_fails_with_the_reason(change, said) -> None:
    with pytest.raises(AssertionError, match=said):
        check_engine(Broken(change=change))
