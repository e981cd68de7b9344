"""Affine functions that a map has left as sums need no graph: neither to be compiled nor recognised."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.engines.known_program import KnownProgram
from hcmodel.engines.registry import compile_stack
from hcmodel.engines.structured import StructuredStack
from hcmodel.expressions.model import Model
from hcmodel.problem import Problem
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.semidefinite import Semidefinite
from hcmodel.reductions.sign import Sign
from hcmodel.reductions.smooth import Compiler
from hcmodel.reductions.smooth_convex import SmoothConvex
from hcmodel.reductions.substitution import Substitution
from tests.problems.examples import ALL, loaded


def process() -> Problem:
    rng, states, actions = np.random.default_rng(4), 4, 3
    moves = rng.dirichlet(np.ones(states), size=(states, actions))
    reward, cost = rng.uniform(size=(2, states, actions))
    pi = hc.Variable((states, actions), name="policy", simplex=True)
    step = hc.einsum("sa,sat->st", pi, moves)
    visits = hc.solve(np.eye(states) - 0.9 * step.T, np.ones(states) / states)
    occupancy = hc.reshape(visits, (states, 1)) * pi
    rows = [hc.sum(occupancy * cost) <= 6.0]
    return hc.Problem(hc.Maximize(hc.sum(occupancy * reward)), rows)


def regulator(target: float | None = None) -> Problem:
    A, B = np.array([[0.2, 1.0], [0.5, -0.3]]), np.array([[1.0], [0.4]])
    P = hc.Variable((2, 2), name="P", PSD=(1e-3, 1e3))
    K = hc.Variable((1, 2), name="K", bounds=(-50, 50))
    closed = A + B @ K
    cost = hc.trace((np.eye(2) + K.T @ K) @ P)
    rows = [closed @ P + P @ closed.T + np.eye(2) == 0]
    return hc.Problem(hc.Minimize(cost), rows if target is None else [*rows, P[0, 0] <= target])


def substituted(model: Model) -> Substitution | None:
    """The model in the coordinates that discovery finds for it."""
    normal = Sign.of(Semidefinite.of(model).after).after
    return discover(Bounds.of(normal).after).substitution


def differences(substitution: Substitution) -> tuple[int, float]:
    """How many functions are known, and how far their stack is from that of the expressions."""
    model, known = substitution.after, substitution.known
    if known is None:
        return 0, 0.0
    roots, layout = model.roots, model.layout
    terms = known.terms(roots, layout)
    stacks = [compile_stack(roots, layout, 1, known=each) for each in (terms, ())]
    point = np.random.default_rng(5).uniform(0.1, 1.0, size=layout.size)
    affine = [root for root, each in zip(roots, terms, strict=True) if each is not None]
    count = sum(not isinstance(root, hc.Constant) for root in affine)
    for stack in stacks:
        assert isinstance(stack, StructuredStack)
        assert len(stack.structured) == len(roots)  # the structure is looked for
    one, two = (stack.evaluate(point, "all") for stack in stacks)
    values = np.abs(one.values - two.values) / (1.0 + np.abs(two.values))
    slopes = [np.asarray(_dense(each.jacobian())) for each in (one, two)]
    apart = np.abs(slopes[0] - slopes[1]) / (1.0 + np.abs(slopes[1]))
    return count, float(max(np.nanmax(values, initial=0.0), np.nanmax(apart, initial=0.0)))


def _dense(matrix: object) -> object:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


@pytest.mark.parametrize("name", ALL)
def test_known_functions_are_those_of_the_expressions(name: str) -> None:
    substitution = substituted(loaded(name).model)
    if substitution is None:
        pytest.skip("no map of the catalogue is needed")
    assert differences(substitution)[1] <= 1e-12


@pytest.mark.parametrize(("problem", "known"), [(process(), 3), (regulator(), 1)])
def test_affine_functions_are_known(problem: Problem, known: int) -> None:
    substitution = substituted(problem.model)
    assert substitution is not None
    count, apart = differences(substitution)
    assert count == known
    assert apart <= 1e-14


def test_a_linear_program_is_solved_without_a_graph() -> None:
    problem = process()
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution.method.startswith("auto: cone ")
    form = problem.forms().hidden()
    assert form is not None
    assert isinstance(form.compiled, StructuredStack)
    assert isinstance(form.compiled.program, KnownProgram)
    assert "graph" not in vars(form.compiled.program)


def test_methods_that_compile_get_the_graph() -> None:
    problem, other = process(), process()
    problem.solve()
    other.solve(method="hidden-newton")
    assert other.value == pytest.approx(problem.value, rel=1e-5)
    form = problem.forms().hidden()
    assert form is not None
    assert isinstance(form.compiled, StructuredStack)
    program = form.compiled.program
    assert [program.graph.steps[root].shape for root in program.graph.roots] == [
        root.shape for root in form.canonical.roots
    ]


def test_other_variables_in_the_vector_leave_a_function_unknown() -> None:
    substitution = substituted(process().model)
    assert substitution is not None
    assert substitution.known is not None
    roots, stranger = substitution.after.roots, hc.Variable(3, name="z")
    layout = hc.Problem(hc.Minimize(hc.sum(stranger))).model.layout
    terms = substitution.known.terms(roots, layout)
    assert [each is None for each in terms] == [not isinstance(root, hc.Constant) for root in roots]
    assert Compiler().stack(roots[2:3], layout, (), substitution.known).size == roots[2].size


@pytest.mark.parametrize("name", ["bellman", "cmdp", "cnls", "linear_fractional", "stages", "tank"])
def test_what_a_method_is_chosen_by_is_read_off_the_arrays(name: str) -> None:
    form = loaded(name).forms().hidden()
    assert form is not None
    assert form.arrays is not None
    found = form.is_structured, form.linear_density, form.all_bounded
    if name in ("bellman", "cmdp", "stages"):
        assert "convex" not in vars(form)  # the program of another method
    assert isinstance(form.convex, SmoothConvex)
    program = form.convex.program
    assert found[0] == (not program.smooth)
    assert found[1] == (program.density if program.is_linear else None)
    assert found[2] == program.all_bounded
