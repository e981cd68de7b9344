"""`check_atom` finds every wrong declaration, and says which it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from hcmodel.atoms.algebra import Factor
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.enclosures import within
from hcmodel.atoms.rules import (
    Always,
    Contraction,
    Curvature,
    Dependence,
    MatrixKind,
    Monotonicity,
    Sign,
)
from hcmodel.expressions.table import ATOMS
from hcmodel.testing import Sample, check_atom
from hcmodel.testing.samples import SAMPLES

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE
UNKNOWN = Curvature.UNKNOWN

RULES: list[tuple[str, dict[str, Any], str]] = [
    ("exp", {"curvature": CONCAVE}, "curvature concave"),
    ("exp", {"plain_to_log": UNKNOWN, "log_curvature": CONCAVE}, "log_curvature concave"),
    ("log", {"log_to_plain": CONVEX, "curvature": AFFINE}, "curvature affine"),
    ("log", {"sign": Sign.POSITIVE}, "sign positive"),
    ("mul", {"curvature": AFFINE}, "curvature affine"),
    ("div", {"monotonicity_rule": Monotonicity.INCREASING}, "monotonicity increasing"),
    ("sum", {"log_curvature": CONCAVE}, "log_curvature concave"),
    ("max", {"curvature": CONCAVE}, "curvature concave"),
    ("sub", {"monotonicity_rule": Monotonicity.INCREASING}, "monotonicity increasing"),
    ("norm", {"monotonicity_rule": Monotonicity.INCREASING}, "monotonicity increasing"),
    ("sigmoid", {"curvature": CONVEX}, "curvature convex"),
    ("softplus", {"plain_to_log": CONVEX}, "plain_to_log convex"),
    ("logdet", {"curvature": CONVEX}, "curvature convex"),
    ("det", {"plain_to_log": AFFINE}, "plain_to_log affine"),
    ("kl_div", {"sign": Sign.NONPOSITIVE}, "sign nonpositive"),
    ("square", {"sign": Sign.NEGATIVE}, "sign negative"),
    ("quad_form", {"curvature": CONVEX}, "curvature convex"),
    ("exp", {"exponents": (2.0,)}, "exponents"),
    ("div", {"exponents": (1.0, 1.0)}, "exponents"),
    ("matmul", {"factors": (Factor(1), Factor(0))}, "factors"),
    ("inv", {"factors": (Factor(0),)}, "factors"),
    ("square", {"degree_rule": 1}, "degree 1"),
    ("det", {"degree_rule": 2}, "degree 2"),
    ("sub", {"definiteness": MatrixKind.DEFINITE}, "definiteness definite"),
    ("transpose", {"definiteness": MatrixKind.SYMMETRIC}, "definiteness symmetric"),
    ("lyap", {"definiteness": MatrixKind.SEMIDEFINITE}, "definiteness semidefinite"),
    ("exp", {"inverse": lambda xp, result: result}, "inverse"),
    ("square", {"inverse": lambda xp, result: xp.sqrt(result)}, "inverse"),
    ("square", {"infinite_slope": (0,)}, "infinite slope at 0 of argument 0"),
    ("sqrt", {"infinite_slope": ()}, "finite slope at 0 of argument 0"),
    ("entr", {"infinite_slope": ()}, "finite slope at 0 of argument 0"),
    ("trace", {"dependence": Contraction("ij->")}, "contraction ij->"),
    ("sum", {"dependence": Dependence.MOVEMENT}, "movement"),
    ("cumsum", {"dependence": Dependence.ELEMENTWISE}, "dependence"),
]
FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("sub", {"summed": (1,)}, "summed"),
    ("add", {"summed": (1, -1)}, "summed"),
    ("div", {"linear_in": (1,)}, "linear in argument 1"),
    ("log1p", {"linear_in": (0,)}, "linear in argument 0"),
    ("square", {"homogeneous": True}, "homogeneous"),
    ("sub", {"commutative": True}, "commutative"),
    ("matmul", {"transposes": True}, "transpos"),
    ("exp", {"magnitudes": True}, "magnitudes"),
    ("max", {"magnitudes": True}, "magnitudes"),
    ("sin", {"enclosure": within(-0.5, 0.5)}, "enclosure"),
    ("mul", {"enclosure": ATOMS["div"].enclosure}, "enclosure"),
    ("max", {"pieces": ATOMS["min"].pieces}, "pieces"),
    ("abs", {"pieces": ATOMS["max"].pieces}, "pieces"),
    ("norm", {"pieces": ATOMS["abs"].pieces}, "pieces"),
]
WRONG = [
    (name, {fact: Always(value) for fact, value in wrong.items()}, message)
    for name, wrong, message in RULES
]


def only_pieces_of_sums(name: str, sample: Sample) -> bool:
    return name != "norm" or sample.params["p"] == 1.0


def listed(value: Any) -> str:
    """The same name in every process: functions print with their address."""
    return "+".join(value) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("name", "wrong", "message"), [*WRONG, *FIELDS], ids=listed)
def test_a_wrong_declaration_is_caught(name: str, wrong: dict[str, Any], message: str) -> None:
    mutated = dataclasses.replace(ATOMS[name], **wrong)
    samples = [sample for sample in SAMPLES[name] if only_pieces_of_sums(name, sample)]
    with pytest.raises(AssertionError, match="fails for arguments") as caught:
        check_atom(mutated, reversed(samples))
    assert message in str(caught.value)


def with_function(function: Any) -> Atom:
    return dataclasses.replace(ATOMS["square"], function=function)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda xp, a: a * a * a, "the value is"),
        (lambda xp, a: xp.sum(a * a), "the function returns"),
        (lambda xp, a: np.square(np.asarray(getattr(a, "_value", a))), "first derivatives"),
    ],
)
def test_a_wrong_function_is_caught(function: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_atom(with_function(function), [SAMPLES["square"][1]])


def test_an_atom_without_samples_is_not_checked() -> None:
    with pytest.raises(AssertionError, match="no sample"):
        check_atom(ATOMS["exp"], [])
