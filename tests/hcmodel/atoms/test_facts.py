"""What atoms declare for given facts about their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hcmodel.atoms.rules import Argument, Curvature, Kind, MatrixKind, Sign
from hcmodel.expressions.table import ATOMS

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE
UNKNOWN = Curvature.UNKNOWN


P, N, Z, U = Sign.POSITIVE, Sign.NONPOSITIVE, Sign.NONNEGATIVE, Sign.UNKNOWN


def argument(sign: Sign = U, shape: tuple[int, ...] = (), **facts: Any) -> Argument:
    return Argument(shape, sign, **facts)


def number(value: Any) -> Argument:
    return Argument.from_value(value)


# The rows of the table in MATH section 4, as far as one atom alone decides them.
TABLE: list[tuple[str, list[Argument], dict[str, Any], str, Curvature]] = [
    ("add", [argument(), argument()], {}, "curvature", AFFINE),
    ("add", [argument(P), argument(P)], {}, "log_curvature", CONVEX),
    ("sub", [argument(P), argument(P)], {}, "log_curvature", CONCAVE),
    ("mul", [number(-2), argument()], {}, "curvature", AFFINE),
    ("mul", [number(-2), argument(P)], {}, "log_curvature", UNKNOWN),
    ("mul", [argument(P), argument(P)], {}, "log_curvature", AFFINE),
    ("mul", [argument(P), argument(P)], {}, "curvature", UNKNOWN),
    ("matmul", [argument(P, (2, 2)), argument(P, (2,))], {}, "log_curvature", CONVEX),
    ("div", [argument(P), argument(P)], {}, "log_curvature", AFFINE),
    ("div", [number(1), argument(P)], {}, "curvature", CONVEX),
    ("div", [number(1), argument(N)], {}, "curvature", CONCAVE),
    ("power", [argument(Z), number(1.5)], {}, "curvature", CONVEX),
    ("power", [argument(Z), number(0.5)], {}, "curvature", CONCAVE),
    ("power", [argument(P), number(-1)], {}, "curvature", CONVEX),
    ("power", [argument(), number(-1)], {}, "curvature", UNKNOWN),
    ("power", [argument(), number(4)], {}, "curvature", CONVEX),
    ("power", [argument(), number(3)], {}, "curvature", UNKNOWN),
    ("power", [argument(N), number(3)], {}, "curvature", CONCAVE),
    ("power", [argument(N), number(-2)], {}, "curvature", CONVEX),
    ("power", [argument(P), number(-1.5)], {}, "log_curvature", AFFINE),
    ("power", [number(3), argument()], {}, "plain_to_log", AFFINE),
    ("power", [argument(P), argument()], {}, "curvature", UNKNOWN),
    ("exp", [argument()], {}, "plain_to_log", AFFINE),
    ("log", [argument(P)], {}, "log_to_plain", AFFINE),
    ("abs", [argument()], {}, "curvature", CONVEX),
    ("abs", [argument(N)], {}, "curvature", AFFINE),
    ("max", [argument(U, (3,))], {"axis": None}, "log_curvature", CONVEX),
    ("min", [argument(U, (3,))], {"axis": None}, "log_curvature", CONCAVE),
    ("norm", [argument(U, (3,))], {"axis": None, "p": 2.0}, "curvature", CONVEX),
    ("softplus", [argument()], {}, "plain_to_log", CONCAVE),
    ("sigmoid", [argument(N)], {}, "curvature", CONVEX),
    ("sigmoid", [argument()], {}, "plain_to_log", CONCAVE),
    ("entr", [argument()], {}, "curvature", CONCAVE),
    ("kl_div", [argument(), argument()], {}, "curvature", CONVEX),
    ("quad_form", [argument(U, (2,)), number(np.eye(2))], {}, "curvature", CONVEX),
    ("quad_form", [argument(U, (2,)), number(-np.eye(2))], {}, "curvature", CONCAVE),
    ("quad_form", [argument(P, (2,)), number(np.ones((2, 2)))], {}, "log_curvature", CONVEX),
    ("logdet", [argument(U, (2, 2), matrix=MatrixKind.DEFINITE)], {}, "curvature", CONCAVE),
    ("logdet", [argument(U, (2, 2))], {}, "curvature", UNKNOWN),
    ("det", [argument(U, (2, 2), matrix=MatrixKind.DEFINITE)], {}, "plain_to_log", CONCAVE),
    ("prod", [argument(P, (3,))], {"axis": None}, "log_curvature", AFFINE),
    ("rel_entr", [argument(P), argument(P)], {}, "curvature", CONVEX),
    ("huber", [argument()], {"M": 1.0}, "curvature", CONVEX),
    ("geo_mean", [argument(Z, (3,))], {"axis": None, "p": None}, "curvature", CONCAVE),
    ("geo_mean", [argument(P, (3,))], {"axis": None, "p": None}, "log_curvature", AFFINE),
    ("sum_largest", [argument(U, (3,))], {"axis": None, "k": 2}, "curvature", CONVEX),
    ("quad_over_lin", [argument(U, (3,)), argument(P)], {}, "curvature", CONVEX),
    ("lambda_max", [argument(U, (2, 2))], {}, "curvature", CONVEX),
    (
        "matrix_frac",
        [argument(U, (2,)), argument(U, (2, 2), matrix=MatrixKind.DEFINITE)],
        {},
        "curvature",
        CONVEX,
    ),
    ("matrix_frac", [argument(U, (2,)), argument(U, (2, 2))], {}, "curvature", UNKNOWN),
]


@pytest.mark.parametrize(("name", "arguments", "params", "channel", "expected"), TABLE)
def test_the_table_of_the_mathematics_is_declared(
    name: str, arguments: list[Argument], params: dict[str, Any], channel: str, expected: Curvature
) -> None:
    assert getattr(ATOMS[name], channel)(arguments, params) is expected


def test_kinks_are_declared() -> None:
    vector = [argument(U, (2,))]
    kinked = {name for name, a in ATOMS.items() if a.kind(vector, {"p": 1.0}) is not Kind.SMOOTH}
    polyhedral = {"abs", "max", "min", "maximum", "minimum", "norm", "sum_largest"}
    assert kinked == polyhedral | {"lambda_max"}
    assert ATOMS["norm"].kind(vector, {"p": 2.0}) is Kind.KINKED
    assert ATOMS["norm"].kind(vector, {"p": np.inf}) is Kind.POLYHEDRAL
