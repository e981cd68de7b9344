"""Samples for every atom: arguments, static parameters, and the value by numpy or scipy.

Every check that goes through the table takes its points from here; an atom without a sample fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import autograd.numpy as anp
import numpy as np
import scipy.linalg
import scipy.special

from hcmodel.expressions.leaves import Expression, as_expression
from hcmodel.expressions.table import ATOMS
from hcmodel.records import dataclass

rng = np.random.default_rng(7)


@dataclass(frozen=True)
class Sample:
    """`arguments` lie inside the domain and away from kinks."""

    name: str
    arguments: tuple[np.ndarray, ...]
    reference: Callable[..., Any]
    params: dict[str, Any] = field(default_factory=dict)
    constant: tuple[int, ...] = ()  # arguments that stay numbers

    def build(self, *operands: Any) -> Expression:
        expressions = [as_expression(operand) for operand in operands]
        return ATOMS[self.name].apply(expressions, dict(self.params))

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, a.shape)) or "scalar" for a in self.arguments)
        return f"{self.name}-{shapes}"


def positive(*shape: int) -> np.ndarray:
    return np.asarray(rng.uniform(0.4, 2.5, shape))


def real(*shape: int) -> np.ndarray:
    return np.asarray(rng.normal(size=shape))


def definite(n: int) -> np.ndarray:
    root = real(n, n)
    return np.asarray(root @ root.T + 0.5 * np.eye(n))


# Nothing beside the function itself: no executor and no cache.
PLAIN_FUNCTION = {"executor": None, "cache": None, "check": False}


def user_function(a: Any, b: Any) -> Any:
    return anp.sum(a * a) * anp.sin(b)


def user_value(a: np.ndarray) -> np.ndarray:
    return np.array([np.sum(a**3), np.prod(a)])


def user_gradient(a: np.ndarray) -> np.ndarray:
    return np.array([3 * a**2, np.prod(a) / a])


def unary(
    name: str, reference: Callable[..., Any], make: Callable[..., np.ndarray]
) -> list[Sample]:
    return [Sample(name, (make(*shape),), reference) for shape in ((), (3,), (2, 2))]


def binary(name: str, reference: Callable[..., Any], make: Any = real) -> list[Sample]:
    shapes: list[tuple[tuple[int, ...], ...]] = [((), ()), ((3,), ()), ((2, 1), (3,)), ((3,), (3,))]
    return [Sample(name, (make(*left), make(*right)), reference) for left, right in shapes]


def reduction(
    name: str, reference: Callable[..., Any], make: Any = real, **params: Any
) -> list[Sample]:
    cases: list[tuple[tuple[int, ...], Any]] = [((4,), None), ((2, 3), (0, 1)), ((2, 3), (1,))]
    cases += [((2, 3, 2), (0, 2)), ((2, 1, 2), None), ((), None)]
    return [
        Sample(
            name,
            (make(*shape),),
            lambda a, axis=axis: reference(a, axis=axis),
            {"axis": axis, **params},
        )
        for shape, axis in cases
    ]


def norm_reference(p: float) -> Callable[..., Any]:
    return lambda a, axis: np.sum(np.abs(a) ** p, axis=axis) ** (1 / p)


def largest_reference(k: int) -> Callable[..., Any]:
    def reference(a: np.ndarray, axis: Any) -> Any:
        axes = tuple(range(a.ndim)) if axis is None else axis
        moved = np.moveaxis(a, axes, range(-len(axes), 0)) if axes else a
        kept = moved.shape[: a.ndim - len(axes)]
        return np.sort(moved.reshape(*kept, -1), axis=-1)[..., -k:].sum(axis=-1)

    return reference


def geometric_mean(a: np.ndarray, axis: Any) -> Any:
    return np.exp(np.mean(np.log(a), axis=axis))


stable = np.array([[-1.0, 0.4], [-0.3, -0.8]])

_ALL: list[Sample] = [
    *binary("add", np.add),
    Sample("add", (real(2), real(), real(2)), lambda a, b, c: a + b + c),
    *binary("sub", np.subtract),
    *unary("neg", np.negative, real),
    *binary("mul", np.multiply),
    *binary("div", np.divide, positive),
    *binary("power", np.power, positive),
    Sample("power", (real(3), np.array(3.0)), np.power, constant=(1,)),
    Sample("power", (real(3), np.array(2.0)), np.power, constant=(1,)),
    Sample("power", (-positive(2), np.array(-1.0)), np.power, constant=(1,)),
    *unary("exp", np.exp, real),
    *unary("log", np.log, positive),
    *unary("log1p", np.log1p, positive),
    *unary("sqrt", np.sqrt, positive),
    *unary("square", np.square, real),
    *unary("inv_pos", np.reciprocal, positive),
    *unary("sin", np.sin, real),
    *unary("cos", np.cos, real),
    *unary("tanh", np.tanh, real),
    *unary("sigmoid", scipy.special.expit, real),
    *unary("softplus", lambda a: np.log1p(np.exp(a)), real),
    *unary("abs", np.abs, real),
    *binary("maximum", np.maximum),
    Sample("maximum", (real(2), real(2), real(2)), lambda *a: np.max(a, axis=0)),
    *binary("minimum", np.minimum),
    *reduction("max", np.max),
    *reduction("min", np.min),
    *reduction("norm", norm_reference(1.0), p=1.0),
    *reduction("norm", norm_reference(2.0), p=2.0),
    *reduction("norm", norm_reference(3.0), p=3.0),
    *reduction("norm", lambda a, axis: np.max(np.abs(a), axis=axis), p=np.inf)[:1],
    Sample("norm", (real(2, 2),), np.linalg.norm, {"p": "fro", "axis": None}),
    *reduction("sum", np.sum),
    *reduction("mean", np.mean),
    *reduction("prod", np.prod),
    Sample("prod", (np.array([0.0, 2.0, 0.0, 3.0]),), np.prod, {"axis": None}),
    Sample("cumsum", (real(4),), np.cumsum, {"axis": 0}),
    Sample("cumsum", (real(2, 3),), lambda a: np.cumsum(a, axis=1), {"axis": 1}),
    Sample("cumsum", (real(2, 3),), np.cumsum, {"axis": None}),
    *reduction("logsumexp", scipy.special.logsumexp),
    Sample("softmax", (real(4),), scipy.special.softmax, {"axis": None}),
    Sample("softmax", (real(2, 3),), lambda a: scipy.special.softmax(a, axis=1), {"axis": 1}),
    *unary("entr", scipy.special.entr, positive),
    *binary("kl_div", scipy.special.kl_div, positive),
    Sample("index", (real(4),), lambda a: a[2], {"key": 2}),
    Sample(
        "index", (real(4, 3),), lambda a: a[1:, [0, 0, 2]], {"key": (slice(1, None), [0, 0, 2])}
    ),
    Sample("index", (real(2, 2),), lambda a: a[..., None], {"key": (..., None)}),
    Sample("reshape", (real(2, 3),), lambda a: a.reshape(3, 2), {"shape": (3, -1)}),
    Sample("transpose", (real(2, 3),), np.transpose, {"axes": None}),
    Sample("transpose", (real(2, 3, 1),), lambda a: a.transpose(2, 0, 1), {"axes": (2, 0, 1)}),
    Sample("broadcast_to", (real(3),), lambda a: np.broadcast_to(a, (2, 3)), {"shape": (2, 3)}),
    Sample("hstack", (real(), real(2)), lambda *a: np.hstack(a)),
    Sample("hstack", (real(2, 1), real(2, 2)), lambda *a: np.hstack(a)),
    Sample("vstack", (real(2), real(2, 2)), lambda *a: np.vstack(a)),
    Sample(
        "concatenate", (real(2, 1), real(2, 2)), lambda *a: np.concatenate(a, axis=1), {"axis": -1}
    ),
    Sample("diag", (real(3),), np.diag),
    Sample("diag", (real(2, 3),), np.diag),
    Sample("matmul", (real(2, 3), real(3, 2)), np.matmul),
    Sample("matmul", (real(3), real(3)), np.matmul),
    Sample("matmul", (real(2, 3), real(3)), np.matmul),
    Sample("matmul", (real(3), real(3, 2)), np.matmul),
    Sample("matmul", (real(2, 2, 3), real(3, 2)), np.matmul),
    Sample("dot", (real(3), real(3)), np.dot),
    Sample("dot", (real(), real(3)), np.dot),
    Sample("dot", (real(2, 3), real(3)), np.dot),
    Sample("outer", (real(2), real(3)), np.outer),
    Sample("kron", (real(2, 1), real(2, 2)), np.kron),
    Sample(
        "einsum",
        (real(2, 3), real(3, 2)),
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        {"subscripts": "ij,jk->ik"},
    ),
    Sample(
        "einsum",
        (real(3), real(2, 3), real(2)),
        lambda *a: np.einsum("j,ij,i->", *a),
        {"subscripts": "j, ij, i"},
    ),
    Sample("trace", (real(3, 3),), np.trace),
    Sample("quad_form", (real(3), real(3, 3)), lambda x, P: x @ P @ x),
    Sample("inv", (definite(3),), np.linalg.inv),
    Sample("solve", (definite(2), real(2)), np.linalg.solve),
    Sample("solve", (definite(2), real(2, 3)), np.linalg.solve),
    Sample("det", (real(3, 3),), np.linalg.det),
    Sample("logdet", (definite(3),), lambda A: np.linalg.slogdet(A)[1]),
    Sample(
        "lyap", (stable, definite(2)), lambda A, Q: scipy.linalg.solve_continuous_lyapunov(A, -Q)
    ),
    Sample("dlyap", (0.5 * stable, definite(2)), scipy.linalg.solve_discrete_lyapunov),
    Sample(
        "function",
        (real(2), real()),
        user_function,
        {"callable": user_function, "shape": (), "grad": None, **PLAIN_FUNCTION},
    ),
    Sample(
        "function",
        (positive(3),),
        user_value,
        {"callable": user_value, "shape": (2,), "grad": user_gradient, **PLAIN_FUNCTION},
    ),
    # square results, of which definiteness and transposes are known
    Sample("add", (real(2, 2), real(2, 2)), np.add),
    Sample("sub", (real(2, 2), real(2, 2)), np.subtract),
    Sample("mul", (real(2, 2), real()), np.multiply),
    Sample("div", (real(2, 2), positive()), np.divide),
    Sample("transpose", (real(2, 2),), np.transpose, {"axes": (1, 0)}),
    Sample("outer", (real(2), real(2)), np.outer),
    Sample("kron", (real(2, 2), real(2, 2)), np.kron),
    Sample("matmul", (real(2, 2), real(2, 2)), np.matmul),
    Sample("solve", (definite(2), real(2, 2)), np.linalg.solve),
    Sample(
        "einsum",
        (real(2, 3), real(2, 3)),
        lambda a, b: np.einsum("ij,kj->ki", a, b),
        {"subscripts": "ij,kj->ki"},
    ),
    # exponents of several kinds at once
    Sample("power", (positive(3), np.array([-0.5, 0.5, 2.5])), np.power, constant=(1,)),
    Sample("power", (np.array([2.0, 3.0]), real(2)), np.power, constant=(0,)),
    *reduction("norm", lambda a, axis: np.max(np.abs(a), axis=axis), p=np.inf)[2:4],
    # drawn after the others, so that those stay what they are
    Sample("diff_pos", (positive(3) + 3, positive(3)), np.subtract),
    Sample("diff_pos", (positive(2, 1) + 3, positive(3)), np.subtract),
    Sample("huber", (real(2, 2),), lambda a: 2 * scipy.special.huber(1.0, a), {"M": 1.0}),
    Sample("huber", (real(3),), lambda a: 2 * scipy.special.huber(0.4, a), {"M": 0.4}),
    *reduction("sum_largest", largest_reference(1), k=1),
    *reduction("sum_largest", largest_reference(2), k=2)[:4],
    *reduction("geo_mean", geometric_mean, positive, p=None),
    Sample(
        "geo_mean",
        (positive(3),),
        lambda a: a[0] ** 0.25 * a[2] ** 0.75,
        {"p": (1.0, 0.0, 3.0), "axis": None},
    ),
    Sample(
        "geo_mean",
        (positive(2, 2),),
        lambda a: np.prod(a ** np.array([0.4, 0.6]), axis=1),
        {"p": (2.0, 3.0), "axis": 1},
    ),
    *binary("rel_entr", scipy.special.rel_entr, positive),
    Sample("quad_over_lin", (real(3), positive()), lambda X, y: np.sum(X**2) / y),
    Sample("quad_over_lin", (real(2, 2), positive()), lambda X, y: np.sum(X**2) / y),
    Sample("lambda_max", (definite(3),), lambda A: np.linalg.eigvalsh(A)[-1]),
    Sample("lambda_max", (real(2, 2),), lambda A: np.linalg.eigvalsh((A + A.T) / 2)[-1]),
    Sample("pf_eigenvalue", (positive(3, 3),), lambda A: np.abs(np.linalg.eigvals(A)).max()),
    Sample("pf_eigenvalue", (np.array([[1.0, 2.0], [3.0, 2.0]]),), lambda A: np.array(4.0)),
    Sample("eye_minus_inv", (0.2 * positive(2, 2),), lambda A: np.linalg.inv(np.eye(len(A)) - A)),
    Sample("matrix_frac", (real(2), definite(2)), lambda x, P: x @ np.linalg.solve(P, x)),
    Sample(
        "matrix_frac", (real(2, 3), definite(2)), lambda X, P: np.trace(X.T @ np.linalg.solve(P, X))
    ),
    Sample("det", (definite(2),), np.linalg.det),
]

SAMPLES: dict[str, list[Sample]] = {}
for _sample in _ALL:
    SAMPLES.setdefault(_sample.name, []).append(_sample)
ALL_SAMPLES = tuple(_ALL)
