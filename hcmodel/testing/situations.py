"""Situations in which an atom's rules are asked: facts about its arguments, and arguments drawn to fit.

For each combination of argument signs and of constant arguments, points are drawn that respect the
signs and the declared domain. Of three arguments or more, each pair of signs is met, not each triple.
Square matrices are also drawn as definite ones, with the fact that they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Argument, Domain, MatrixKind, Sign
from hcmodel.expressions.leaves import as_expression
from hcmodel.records import dataclass
from hcmodel.testing.samples import Sample

FloatArray = NDArray[np.float64]

MATRIX_DOMAINS = (
    *(Domain.INVERTIBLE, Domain.POSITIVE_DEFINITE, Domain.HURWITZ, Domain.SCHUR),
    Domain.CONTRACTING,
)
SIGNS = (Sign.POSITIVE, Sign.NONNEGATIVE, Sign.NONPOSITIVE, Sign.NEGATIVE, Sign.UNKNOWN)
# Sizes of entries that are drawn, the share of zeros where a sign allows them, and how far a spectrum
# of random matrices is moved to lie in a domain.
SMALLEST, LARGEST, NONZERO, SHIFT = 0.05, 2.5, 0.85, 6.0


@dataclass(frozen=True)
class Situation:
    """An atom with facts about its arguments; `values` has those of the constant ones."""

    atom: Atom
    params: dict[str, Any]
    arguments: tuple[Argument, ...]
    values: tuple[FloatArray | None, ...]
    domains: tuple[Domain, ...]
    generator: np.random.Generator

    def draw(self) -> list[FloatArray]:
        """Arguments to which the facts apply."""
        return [
            drawn(argument, domain, self.generator) if value is None else value
            for argument, value, domain in zip(
                self.arguments, self.values, self.domains, strict=True
            )
        ]

    def value(self, point: list[FloatArray]) -> FloatArray:
        return np.asarray(self.atom.function(np, *point, **self.params), dtype=float)

    @property
    def varying(self) -> list[int]:
        return [i for i, argument in enumerate(self.arguments) if not argument.constant]

    def __str__(self) -> str:
        words = []
        for argument in self.arguments:
            definite = " definite" if argument.definite else ""
            words.append(f"{argument.sign.value}{definite}{' constant' * argument.constant}")
        shown = f"; {self.params}" if self.params else ""
        return f"({', '.join(words)}{shown})"


def prepared(atom: Atom, sample: Sample) -> dict[str, Any]:
    """The static parameters of a sample as the atom keeps them."""
    node: Any = atom.apply([as_expression(a) for a in sample.arguments], dict(sample.params))
    return dict(node.params)


def situations(atom: Atom, sample: Sample, generator: np.random.Generator) -> Iterator[Situation]:
    """All situations for arguments of the sample's shapes."""
    params = prepared(atom, sample)
    shapes = [np.shape(value) for value in sample.arguments]
    matrix_domain = False
    for constant in itertools.product((False, True), repeat=len(shapes)):
        if all(constant) or not all(constant[i] for i in sample.constant):
            continue
        for signs in _signs(len(shapes)):
            facts = [Argument(shape, sign) for shape, sign in zip(shapes, signs, strict=True)]
            found = _situation(atom, params, facts, constant, sample, generator)
            if found is None:
                continue
            if any(domain in MATRIX_DOMAINS for domain in found.domains):
                matrix_domain = True
                break  # signs say nothing of a spectrum
            yield found
        if matrix_domain:
            plain = [Argument(shape) for shape in shapes]
            found = _situation(atom, params, plain, constant, sample, generator)
            if found is not None:
                yield found
        yield from _definite_situations(atom, params, constant, sample, generator)


def _signs(count: int) -> Iterator[tuple[Sign, ...]]:
    """Every combination of up to two arguments; of more, a Latin square of them and equal signs."""
    for places in itertools.product(range(len(SIGNS)), repeat=count):
        if count <= 2 or sum(places) % len(SIGNS) == 0 or len(set(places)) == 1:
            yield tuple(SIGNS[place] for place in places)


def _definite_situations(
    atom: Atom,
    params: dict[str, Any],
    constant: tuple[bool, ...],
    sample: Sample,
    generator: np.random.Generator,
) -> Iterator[Situation]:
    for place, value in enumerate(sample.arguments):
        shape = np.shape(value)
        if len(shape) != 2 or shape[0] != shape[1] or constant[place]:
            continue
        facts = [Argument(np.shape(other)) for other in sample.arguments]
        facts[place] = Argument(shape, matrix=MatrixKind.DEFINITE)
        found = _situation(atom, params, facts, constant, sample, generator)
        spectral = (Domain.HURWITZ, Domain.SCHUR, Domain.CONTRACTING)
        if found is not None and found.domains[place] not in spectral:
            yield found


def _situation(
    atom: Atom,
    params: dict[str, Any],
    facts: list[Argument],
    constant: tuple[bool, ...],
    sample: Sample,
    generator: np.random.Generator,
) -> Situation | None:
    """None where a constant lies outside the domain, or a sign excludes all of it."""
    domains = atom.domains(facts, params)
    values: list[FloatArray | None] = [None] * len(facts)
    for i, fact in enumerate(facts):
        if constant[i]:
            in_domain = domains[i] if domains[i] in MATRIX_DOMAINS else Domain.REALS
            value = drawn(fact, in_domain, generator)
            values[i] = sample.arguments[i] if i in sample.constant else value
    arguments = tuple(
        fact if value is None else Argument.from_value(value)
        for fact, value in zip(facts, values, strict=True)
    )
    domains = atom.domains(arguments, params)  # those of a power follow from its exponent
    if any(_excluded(*each) for each in zip(arguments, domains, strict=True)):
        return None
    return Situation(atom, params, arguments, tuple(values), domains, generator)


def _excluded(argument: Argument, domain: Domain) -> bool:
    if domain in (Domain.POSITIVE, Domain.NONNEGATIVE):
        low = argument.value is not None and bool(np.any(argument.value <= 0))
        return low or argument.sign in (Sign.NEGATIVE, Sign.NONPOSITIVE)
    if domain is Domain.NONZERO:
        return argument.value is not None and bool(np.any(argument.value == 0))
    return False


def drawn(argument: Argument, domain: Domain, generator: np.random.Generator) -> FloatArray:
    """An array with these facts, inside the domain."""
    if argument.matrix is not MatrixKind.GENERAL or domain in MATRIX_DOMAINS:
        return _matrix(argument, domain, generator)
    shape = argument.shape
    size = np.asarray(generator.uniform(SMALLEST, LARGEST, shape))
    if domain is Domain.ABOVE_MINUS_ONE and not argument.sign.is_nonnegative:
        size = np.minimum(size, 1.0 - SMALLEST)
    if not argument.sign.is_strict and domain not in (Domain.POSITIVE, Domain.NONZERO):
        size = size * (generator.uniform(size=shape) < NONZERO)  # signs that allow 0 meet it
    if domain in (Domain.POSITIVE, Domain.NONNEGATIVE) or argument.sign.is_nonnegative:
        return size
    if argument.sign.is_nonpositive:
        return -size
    return np.asarray(size * generator.choice([-1.0, 1.0], shape))


def _matrix(argument: Argument, domain: Domain, generator: np.random.Generator) -> FloatArray:
    order = argument.shape[0]
    root = generator.normal(size=argument.shape)
    if argument.matrix is MatrixKind.SYMMETRIC:
        return np.asarray(root + root.T)
    if argument.matrix is MatrixKind.SEMIDEFINITE and domain not in MATRIX_DOMAINS:
        return np.asarray(root[:, 1:] @ root[:, 1:].T)
    if argument.matrix >= MatrixKind.SEMIDEFINITE:
        return np.asarray(root @ root.T + 0.1 * np.eye(order))
    if domain is Domain.CONTRACTING:
        return np.asarray(np.abs(root) / (2 * np.linalg.norm(root)))
    if domain is Domain.SCHUR:
        return np.asarray(root / (2 * np.linalg.norm(root, 2)))
    shift = -SHIFT if domain is Domain.HURWITZ else SHIFT
    return np.asarray(root + shift * np.eye(order))
