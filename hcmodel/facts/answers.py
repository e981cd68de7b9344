"""What the atom table says about one atom with arguments of given facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hcmodel.atoms.algebra import Exponents, Factor
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import (
    Argument,
    Contraction,
    Curvature,
    Dependence,
    Domain,
    MatrixKind,
    Monotonicity,
    Sign,
)
from hcmodel.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Answers:
    """All facts of an atom; `moves` is CONSTANT in arguments whose value is known."""

    facts: tuple[Argument, ...]
    domains: tuple[Domain, ...]
    moves: tuple[Monotonicity, ...]
    sign: Sign
    curvature: Curvature
    log_to_plain: Curvature
    plain_to_log: Curvature
    dependence: Dependence | Contraction
    exponents: Exponents | None
    factors: tuple[Factor, ...]


def ask(atom: Atom, params: dict[str, Any], facts: Sequence[Argument]) -> Answers:
    """The answers for arguments with these facts."""
    domains = atom.domains(facts, params)
    if Domain.POSITIVE_DEFINITE in domains:
        facts = [_on_domain(*each) for each in zip(facts, domains, strict=True)]
    moves = atom.monotonicity(facts, params)
    return Answers(
        facts=tuple(facts),
        domains=domains,
        moves=tuple(
            move if fact.value is None else Monotonicity.CONSTANT
            for fact, move in zip(facts, moves, strict=True)
        ),
        sign=atom.sign(facts, params),
        curvature=atom.curvature(facts, params),
        log_to_plain=atom.log_to_plain(facts, params),
        plain_to_log=atom.plain_to_log(facts, params),
        dependence=atom.dependence([fact.shape for fact in facts], params),
        exponents=atom.exponents(facts, params),
        factors=atom.factors(facts, params),
    )


def _on_domain(fact: Argument, domain: Domain) -> Argument:
    """A symmetric argument that has to be positive definite is so, wherever the atom has a value."""
    if domain is Domain.POSITIVE_DEFINITE and fact.matrix is not MatrixKind.GENERAL:
        return replace(fact, matrix=MatrixKind.DEFINITE)
    return fact
