"""Many sweeps at once give what single sweeps give, operation by operation and on whole models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hcmodel.atoms.autodiff import stacked, taped, total, xp
from hcmodel.atoms.tape import TapeNode, identities, item, tape_order, untake, where
from hcmodel.engines import batched_sweeps, forward
from hcmodel.engines.batched_sweeps import ELEMENTWISE, RULES, swept_together
from tests.problems.examples import loaded

SQUARE = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.4, 1.8]])
WIDE = np.arange(1.0, 7.0).reshape(2, 3)
CUBE = np.linspace(-1, 1, 24).reshape(2, 3, 4)
SIX = np.array([0.7, 1.1, 0.4, 1.9, 0.8, 1.3])


def two(x: Any) -> Any:
    return xp.reshape(x, (2, 3))


def three(x: Any) -> Any:
    return xp.reshape(x, (3, 2))


def flat(x: Any) -> Any:
    return xp.reshape(x, (1, 2, 3))


def square(x: Any) -> Any:
    return SQUARE + xp.reshape(xp.hstack([x, x[:3]]), (3, 3))


def repeated(x: Any) -> Any:
    return flat(x) * np.ones((2, 1, 1))


PLAIN = sorted(ELEMENTWISE - {xp.power, xp.maximum, xp.minimum}, key=lambda f: f.__name__)
solve, tensordot = xp.linalg.solve, xp.tensordot

# Functions of six positive numbers, and the operations of the tape that have to be swept together.
CASES: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "add": (lambda x: x + xp.reshape(x, (6, 1)) + 1.0, (xp.add,)),
    "subtract": (lambda x: 2.0 - x + (x - xp.reshape(x, (6, 1))), (xp.subtract,)),
    "multiply": (lambda x: x * xp.reshape(x, (6, 1)) * SIX, (xp.multiply,)),
    "divide": (lambda x: x / xp.reshape(x, (6, 1)) / 3.0, (xp.divide, xp.true_divide)),
    "a number with an array": (lambda x: x[0] * WIDE / x[1] + x[2], (xp.multiply, xp.add)),
    "concatenate": (lambda x: xp.concatenate([x[:2] ** 2, SIX, x]), (xp.concatenate_args,)),
    "concatenate, axis": (
        lambda x: xp.concatenate([WIDE[:, :1], two(x), two(x**2)], axis=-1),
        (xp.concatenate_args,),
    ),
    "reshape": (lambda x: two(x), (xp.reshape,)),
    "transpose": (lambda x: xp.transpose(two(x) ** 2), (xp.transpose,)),
    "transpose, axes": (lambda x: xp.transpose(flat(x), (2, 0, -2)), (xp.transpose,)),
    "swapaxes": (lambda x: xp.swapaxes(flat(x), -1, 1), (xp.swapaxes,)),
    "where": (lambda x: xp.where(x > 1.0, x**2, -3.0 * x), (where,)),
    "where, matrix": (lambda x: xp.where(WIDE > 2.5, two(x), two(x[::-1]) ** 2), (where,)),
    "sum": (lambda x: xp.sum(x * x), (xp.sum,)),
    "sum, axis": (lambda x: xp.sum(two(x) ** 2, axis=-1), (xp.sum,)),
    "sum, axes kept": (lambda x: xp.sum(flat(x), axis=(0, 2), keepdims=True), (xp.sum,)),
    "matmul 2, 2": (lambda x: WIDE @ three(x) @ two(x), (xp.matmul,)),
    "matmul 1, 2": (lambda x: x[:2] @ two(x), (xp.matmul,)),
    "matmul 2, 1": (lambda x: two(x) @ x[:3], (xp.matmul,)),
    "matmul 1, 1": (lambda x: x @ (x * x), (xp.matmul,)),
    "tensordot, number": (lambda x: tensordot(two(x), three(x), 1), (tensordot,)),
    "tensordot, axes": (lambda x: tensordot(CUBE, three(x), [[0, 1], [1, 0]]), (tensordot,)),
    "tensordot, axes, left": (lambda x: tensordot(three(x), CUBE, [[1, 0], [0, 1]]), (tensordot,)),
    "kron": (lambda x: xp.kron(two(x), three(x)), (xp.kron,)),
    "einsum": (lambda x: xp.einsum("ij,jk->ki", two(x), three(x)), (xp.einsum,)),
    "einsum of three": (lambda x: xp.einsum("i,ijk,j->k", x[:2], CUBE, x[3:]), (xp.einsum,)),
    "solve": (lambda x: solve(square(x), x[3:]), (solve,)),
    "solve, matrix": (lambda x: solve(SQUARE * x[0], three(x)), (solve,)),
    "inv": (lambda x: xp.linalg.inv(SQUARE * x[0] + x[1]), (xp.linalg.inv,)),
    "entries": (lambda x: two(x)[1, 1:] * x[::-1][0], ()),
    "entries by lists of numbers": (lambda x: x[np.array([1, 1, 4])] ** 2, ()),
    "entries by masks": (lambda x: x[SIX > 1] ** 2, ()),
    "entries apart": (lambda x: repeated(x)[np.array([0, 1, 1]), :, np.array([2, 0, 0])], ()),
    "stacked": (lambda x: stacked(x[0], np.ones(2), two(x)), (stacked.traced,)),
    "total": (lambda x: total(x, x * x, x), (total.traced,)),
    **{f.__name__: (lambda x, f=f: f(x), (f,)) for f in PLAIN},
    "power": (lambda x: x ** (x * x), (xp.power,)),
    "maximum": (lambda x: xp.maximum(x, x * x) + xp.minimum(x, SIX[::-1]), (xp.maximum, xp.minimum)),
}  # fmt: skip
WITHOUT_A_RULE: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda x: xp.cumsum(x * x),
    "det": lambda x: xp.linalg.det(SQUARE * x[0] + x[1]),
    "an ellipsis": lambda x: two(x)[..., 1],
    "stacks of matrices": lambda x: CUBE @ xp.reshape(x[:4], (4, 1)),
    "a number to a power": lambda x: 2.0 ** x[0] * x ** x[1],
}


def compare(function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> set[Any]:
    """Compare both ways; the operations that were swept one by one are returned."""
    value, pull = taped(function, SIX.copy())
    assert pull is not None
    apart: set[Any] = set()
    plain = batched_sweeps._pulled

    def watched(node: TapeNode, cotangents: Any) -> list[Any]:
        calls = []
        kept = node.vjp
        node.vjp = lambda g: calls.append(1) or kept(g)
        found = plain(node, cotangents)
        node.vjp = kept
        if len(calls) > 1:
            apart.add(node.operation)
        return found

    monkeypatch.setattr(batched_sweeps, "_pulled", watched)
    seeds = np.random.default_rng(0).normal(size=(5, *np.shape(value)))
    together = swept_together(pull, seeds)
    np.testing.assert_allclose(together, [pull(seed) for seed in seeds], rtol=1e-12, atol=1e-12)
    operations = {node.operation for node in tape_order(pull.end())}
    return {operation for operation in operations if operation in apart}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_gives_what_single_sweeps_give(name: str, monkeypatch) -> None:
    function, wanted = CASES[name]
    apart = compare(function, monkeypatch)
    assert not apart & {*RULES, *ELEMENTWISE} & {*wanted, *RULES}


@pytest.mark.parametrize("name", WITHOUT_A_RULE)
def test_other_operations_are_swept_one_by_one(name: str, monkeypatch) -> None:
    assert compare(WITHOUT_A_RULE[name], monkeypatch)


def test_every_rule_has_a_case() -> None:
    tried = {operation for _, wanted in CASES.values() for operation in wanted}
    inside = {item, untake, *identities}
    assert {*RULES, *ELEMENTWISE} - inside <= tried


@pytest.mark.parametrize("name", ["lqr", "lqr_direct", "cmdp", "logit", "transformer"])
def test_derivatives_of_models_are_those_of_single_sweeps(name: str, monkeypatch) -> None:
    problem = loaded(name)
    stack = problem.compile()
    x = problem.canonical.domain.sample(np.random.default_rng(0))
    weights = np.random.default_rng(1).normal(size=stack.evaluate(x, "all").values.size)

    def derivatives() -> list[Any]:
        found = [stack.evaluate(x, part).jacobian() for part in ("all", "map")]
        return [sp.csr_array(each).toarray() for each in (*found, stack.hessian(x, weights))]

    together = derivatives()
    monkeypatch.setattr(forward, "FEW_AT_ONCE", 10**9)
    monkeypatch.setattr(forward, "FEW_UNKNOWNS", 0)
    for one, other in zip(together, derivatives(), strict=True):
        np.testing.assert_allclose(
            one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(initial=1.0)
        )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: xp.linalg.eigh(xp.outer(x, x) + np.diag(SIX))[0],
        lambda x: xp.linalg.eigh(xp.outer(x, x) + np.diag(SIX))[1][0] ** 2,
        lambda x: xp.abs(xp.fft.fft(x * SIX)) + x,
        lambda x: xp.real((x + 2j * x[::-1]) * (1j * SIX + x)),
        lambda x: xp.reshape(xp.matmul(three(x), [[1.0, 2.0], [3.0, 4.0]]) / [2.0, 3.0], 6),
    ],
    ids=["eigenvalues", "eigenvectors", "spectrum", "complex numbers", "lists"],
)
@pytest.mark.parametrize("count", [1, 2, 6])
def test_what_a_users_code_may_have_on_a_tape(function: Callable[[Any], Any], count: int) -> None:
    _, pull = taped(function, SIX.copy())
    assert pull is not None
    rows = np.random.default_rng(0).normal(size=(count, 6))
    single = [np.real(pull(row)) for row in rows]
    np.testing.assert_allclose(swept_together(pull, rows), single, rtol=1e-12)


def test_cotangents_are_taken_in_parts_where_arrays_are_large(monkeypatch) -> None:
    _, pull = taped(lambda x: xp.sum(xp.reshape(x, (6, 1)) * np.ones(50), axis=1), SIX.copy())
    assert pull is not None
    whole = swept_together(pull, np.eye(6))
    monkeypatch.setattr(batched_sweeps, "MOST_ENTRIES", 600)
    sizes = []
    plain = batched_sweeps._sweep
    monkeypatch.setattr(
        batched_sweeps, "_sweep", lambda nodes, g: sizes.append(len(g)) or plain(nodes, g)
    )
    np.testing.assert_array_equal(swept_together(pull, np.eye(6)), whole)
    assert sizes == [2, 2, 2]
