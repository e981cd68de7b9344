"""Never wrong: what is proven of random expressions holds at midpoints, and wrong rules are caught."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hcmodel.atoms import enclosures
from hcmodel.atoms.rules import Always, Curvature, Monotonicity, Sign
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Expression
from hcmodel.expressions.table import ATOMS
from hcmodel.facts import bits, curvature, intervals, local_rules, patterns
from hcmodel.facts import node_facts as facts
from hcmodel.problem import parse
from hcmodel.proof.prove import Proof, prove
from tests.extent import several
from tests.hcmodel.frontend.random_models import TameModels
from tests.hcmodel.proof.random_expressions import (
    Generator,
    bends_at_midpoints,
    check,
    random_coordinates,
)

AFFINE, CONVEX, CONCAVE = Curvature.AFFINE, Curvature.CONVEX, Curvature.CONCAVE


def broken_claims(seed: int, expressions: int, pairs: int) -> tuple[int, list[str]]:
    """How many of the random expressions are proven, and the claims about them that fail."""
    rng = np.random.default_rng(seed)
    generator = Generator(rng)
    proven = 0
    broken: list[str] = []
    for _ in range(expressions):
        checked = check([generator.expression()], rng, pairs)
        proven += checked.proven
        broken += checked.broken
    return proven, broken


def test_what_is_proven_holds_at_midpoints() -> None:
    proven, broken = broken_claims(seed=11, expressions=several(250, 1200), pairs=several(40, 200))
    assert broken == []
    assert proven >= several(90, 500)


def test_what_is_proven_holds_with_one_interval_for_all_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intervals, "MAX_ENTRIES", 1)
    proven, broken = broken_claims(seed=12, expressions=several(120, 300), pairs=50)
    assert broken == []
    assert proven >= several(40, 100)


def test_what_is_proven_of_models_in_the_language_holds_at_midpoints() -> None:
    """Gathered, masked and contracted arrays, as comprehensions make them."""
    rng = np.random.default_rng(6)
    proven = 0
    for seed in range(several(20, 60)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variables that a random model does not use
            problem = parse(TameModels(seed).model())
        sides = [side for each in problem.constraints for side in (each.lhs, each.rhs)]
        checked = check([problem.objective.expression, *sides], rng, pairs=20)
        assert checked.broken == ()
        proven += checked.proven
    assert proven >= several(20, 60)


def test_no_coordinates_give_more_than_all_coordinates_at_once() -> None:
    """What `may_be_convex` refuses has no proof: the rules are monotone in what is known."""
    rng = np.random.default_rng(7)
    generator = Generator(rng)
    refused = 0
    for _ in range(several(100, 400)):
        known = facts.Facts()
        number = known.add(generator.expression())
        best = curvature.Curvatures(known, 0, either=True).channels[number]
        found = curvature.Curvatures(known, random_coordinates(known, rng)).channels[number]
        assert all(one | two == one for one, two in zip(best, found, strict=True))
        refused += not best[0]
    assert refused >= several(20, 80)


def test_every_proof_ends_with_forms_that_hold_or_with_a_reason() -> None:
    rng = np.random.default_rng(5)
    generator = Generator(rng)
    proven = 0
    for _ in range(several(120, 500)):
        left, right, objective = (generator.scalar(int(rng.integers(1, 3))) for _ in range(3))
        row = Constraint(left, str(rng.choice(["<=", ">=", "=="])), right, "row")
        sign = float(rng.choice([-1, 1]))
        proof = prove(objective, sign, [row])
        assert str(proof.derivation)
        if proof.proven:
            proven += 1
            assert_forms_hold(proof, objective, sign, rng)
        else:
            assert proof.failure is not None
            assert proof.failure.function in ("objective", "row")
            assert str(proof.failure.expression)[:60] in proof.failure.reason
    assert proven >= several(6, 40)


def assert_forms_hold(
    proof: Proof, objective: Expression, sign: float, rng: np.random.Generator
) -> None:
    """The objective and the row in their forms, as functions of the hidden coordinates."""
    log = ATOMS["log"]
    form = log(objective) if proof.objective_form == "log" else objective
    claim = bits.CONVEX if sign > 0 else bits.CONCAVE
    assert bends_at_midpoints(form, proof.coordinates, claim, rng, pairs=50) == []
    (row,) = proof.rows
    function = row.left - row.right
    if row.form == "log":
        function = log(row.left) - log(row.right)
    claim = bits.AFFINE if row.equality else bits.CONVEX
    assert bends_at_midpoints(function, proof.coordinates, claim, rng, pairs=50) == []


def mutated(name: str, **facts: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """A mutation of the atom table."""

    def apply(patch: pytest.MonkeyPatch) -> None:
        atom = ATOMS[name]
        wrong = {
            fact: Always(value) if callable(getattr(atom, fact)) else value
            for fact, value in facts.items()
        }
        patch.setitem(ATOMS, name, dataclasses.replace(atom, **wrong))

    return apply


def replaced(module: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """A mutation of the prover itself."""
    return lambda patch: patch.setattr(module, name, value)


WRONG_PASSING = {**bits.PASSING, Monotonicity.DECREASING: bits.PASSING[Monotonicity.INCREASING]}

MUTATIONS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "log is convex": mutated("log", curvature=CONVEX),
    "log keeps its sign": mutated("log", sign=Sign.POSITIVE),
    "products are affine": mutated("mul", curvature=AFFINE),
    "products rise": mutated("mul", monotonicity_rule=Monotonicity.INCREASING),
    "sums are log-affine": mutated("sum", log_curvature=AFFINE),
    "reciprocals rise": mutated("inv_pos", monotonicity_rule=Monotonicity.INCREASING),
    "exp is log-concave in logs": mutated("exp", log_curvature=CONCAVE),
    "squares rise": mutated("square", monotonicity_rule=Monotonicity.INCREASING),
    "square roots are convex": mutated("sqrt", curvature=CONVEX),
    "minima are convex": mutated("minimum", curvature=CONVEX),
    "sigmoid is convex": mutated("sigmoid", curvature=CONVEX),
    "the largest entry is log-affine": mutated("max", log_curvature=AFFINE),
    "differences rise": mutated("sub", monotonicity_rule=Monotonicity.INCREASING),
    "determinants are convex": mutated("logdet", curvature=CONVEX),
    "falling passes as rising": replaced(local_rules, "PASSING", WRONG_PASSING),
    "sizes are convex": replaced(patterns, "magnitude_is_convex", lambda sign, bits: bool(bits)),
    "every box is positive": replaced(
        facts, "_domain_of", lambda variable: ((variable.lower, variable.upper), Sign.POSITIVE)
    ),
    "domains are ignored": replaced(local_rules, "_needed", lambda *known: 0),
    "products of ends": replaced(enclosures, "_corners", lambda a, b: (a[0] * b[0], a[1] * b[1])),
    "square roots are squares": mutated("sqrt", exponents=(2.0,)),
    "differences are sums": mutated("sub", summed=(1,)),
    "log1p is its argument": mutated("log1p", exponents=(1.0,)),
    "convex is log-convex": replaced(
        curvature, "_closed", lambda node, plain, log, root: (plain, log | plain, root)
    ),
    "all forms have roots": replaced(
        patterns, "apply", lambda *parts: (bits.CONVEX, bits.UNKNOWN, True)
    ),
}


# Where the first broken claim is; the others are looked through when this is no longer so.
SEEDS = {
    **dict.fromkeys(("products are affine", "squares rise", "square roots are convex"), 1),
    **dict.fromkeys(("exp is log-concave in logs", "determinants are convex"), 2),
    **dict.fromkeys(("products rise", "minima are convex", "sigmoid is convex"), 3),
    **dict.fromkeys(("differences rise", "products of ends"), 3),
    "square roots are squares": 1,
    "domains are ignored": 2,
    "sums are log-affine": 5,
    "log1p is its argument": 12,
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wrong_rule_is_caught(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[mutation](monkeypatch)
    assert any(is_caught(seed) for seed in (SEEDS.get(mutation, 0), *range(40)))


def is_caught(seed: int) -> bool:
    rng = np.random.default_rng(seed)
    generator = Generator(rng)
    return any(check([generator.expression()], rng, pairs=20).broken for _ in range(40))
