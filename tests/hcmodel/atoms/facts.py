"""Checks the declared facts of an atom by sampling: sign, monotonicity, four curvatures.

For each combination of argument signs and of constant arguments, points are drawn that respect the
signs and the declared domain. What an atom then declares must hold between them: curvatures at
midpoints (geometric ones where arguments are seen through logarithms), monotonicity along rising
pairs, signs everywhere. `broken_facts` returns what does not hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import (
    Argument,
    Curvature,
    Domain,
    MatrixKind,
    Monotonicity,
    Sign,
    sign_of,
)
from hcmodel.expressions.leaves import as_expression
from tests.hcmodel.atoms.samples import Sample

POINTS = 6
ROUNDING = 1e-9
MATRIX_DOMAINS = (Domain.INVERTIBLE, Domain.POSITIVE_DEFINITE, Domain.HURWITZ, Domain.SCHUR)
KNOWN = {False: MatrixKind.GENERAL, True: MatrixKind.DEFINITE}
CHANNELS = {
    "curvature": (False, False),
    "log_curvature": (True, True),
    "log_to_plain": (True, False),
    "plain_to_log": (False, True),
}
WANTED_SIGNS = (Sign.POSITIVE, Sign.NONNEGATIVE, Sign.NONPOSITIVE, Sign.NEGATIVE, Sign.UNKNOWN)


def broken_facts(atom: Atom, sample: Sample, rng: np.random.Generator) -> list[str]:
    """The facts that `atom` declares and that fail at some sampled point."""
    params = dict(as_prepared(atom, sample))
    broken: list[str] = []
    for arguments, draw in situations(atom, sample, params, rng):
        declared_signs = [a.sign.value + ("!" if a.constant else "") for a in arguments]
        label = f"{atom.name}({', '.join(declared_signs)}; {params})"
        for fact in _broken_here(atom, arguments, params, draw, rng):
            broken.append(f"{label}: {fact}")
    return broken


def as_prepared(atom: Atom, sample: Sample) -> Any:
    node: Any = atom.apply([as_expression(a) for a in sample.arguments], dict(sample.params))
    return node.params


def situations(
    atom: Atom, sample: Sample, params: dict[str, Any], rng: np.random.Generator
) -> Iterator[tuple[list[Argument], Any]]:
    """Facts about the arguments, and a function that draws arguments to which they apply."""
    count = len(sample.arguments)
    fixed = set(sample.constant)
    for constant in itertools.product((False, True), repeat=count):
        if all(constant) or not all(constant[i] for i in fixed):
            continue
        for signs in itertools.product(WANTED_SIGNS, repeat=count):
            arguments = [
                Argument(value.shape, sign)
                for value, sign in zip(sample.arguments, signs, strict=True)
            ]
            values: list[np.ndarray | None] = []
            for i, argument in enumerate(arguments):
                value = _draw(argument, Domain.REALS, rng) if constant[i] else None
                if i in fixed:
                    value = sample.arguments[i]
                values.append(value)
                if value is not None:
                    arguments[i] = Argument.from_value(value)
            domains = atom.domains(arguments, params)
            if any(_excluded(a, d) for a, d in zip(arguments, domains, strict=True)):
                continue
            if any(d in MATRIX_DOMAINS for d in domains) or atom.name == "det":
                yield from _matrix_situations(atom, sample, constant, rng)
                break

            def draw(arguments=arguments, values=values, domains=domains) -> list[np.ndarray]:
                return [
                    _draw(argument, domain, rng) if value is None else value
                    for argument, value, domain in zip(arguments, values, domains, strict=True)
                ]

            yield arguments, draw


def _excluded(argument: Argument, domain: Domain) -> bool:
    if domain is Domain.POSITIVE or domain is Domain.NONNEGATIVE:
        low = argument.value is not None and np.any(argument.value <= 0)
        return low or argument.sign in (Sign.NEGATIVE, Sign.NONPOSITIVE)
    return domain is Domain.NONZERO and argument.value is not None and np.any(argument.value == 0)


def _draw(argument: Argument, domain: Domain, rng: np.random.Generator) -> np.ndarray:
    size = np.asarray(rng.uniform(0.05, 2.5, argument.shape))
    if domain is Domain.ABOVE_MINUS_ONE and not argument.sign.is_nonnegative:
        size = np.minimum(size, 0.95)
    if not argument.sign.is_strict and domain not in (Domain.POSITIVE, Domain.NONZERO):
        size = size * (rng.uniform(size=argument.shape) < 0.85)  # signs that allow 0 meet it
    if domain in (Domain.POSITIVE, Domain.NONNEGATIVE) or argument.sign.is_nonnegative:
        return size
    if argument.sign.is_nonpositive:
        return -size
    return size * rng.choice([-1.0, 1.0], argument.shape)


def _matrix_situations(
    atom: Atom, sample: Sample, constant: tuple[bool, ...], rng: np.random.Generator
) -> Iterator[tuple[list[Argument], Any]]:
    """The first argument is a matrix with a spectrum; once as it is, once known to be definite."""
    n = sample.arguments[0].shape[0]
    shift = {"lyap": -6.0 * np.eye(n), "dlyap": np.zeros((n, n))}.get(atom.name, 6.0 * np.eye(n))
    scale = 0.1 if atom.name == "dlyap" else 1.0

    def matrix(definite: bool) -> np.ndarray:
        root = rng.normal(size=(n, n))
        return root @ root.T + 0.1 * np.eye(n) if definite else scale * root + shift

    for definite in (False, True):
        if definite and atom.name in ("lyap", "dlyap"):
            continue
        first = matrix(definite)
        rest = [rng.normal(size=a.shape) for a in sample.arguments[1:]]
        arguments = [
            Argument.from_value(value) if fixed else Argument(value.shape, matrix=KNOWN[definite])
            for value, fixed in zip([first, *rest], constant, strict=True)
        ]

        def draw(definite=definite, first=first, rest=rest) -> list[np.ndarray]:
            drawn = [matrix(definite), *(rng.normal(size=a.shape) for a in rest)]
            kept = zip([first, *rest], drawn, constant, strict=True)
            return [old if fixed else new for old, new, fixed in kept]

        yield arguments, draw


def _broken_here(
    atom: Atom, arguments: list[Argument], params: dict[str, Any], draw: Any, rng: Any
) -> Iterator[str]:
    def value(point: list[np.ndarray]) -> np.ndarray:
        return np.asarray(atom.function(np, *point, **params), dtype=float)

    with np.errstate(all="ignore"):
        for _ in range(POINTS):
            left, right = draw(), draw()
            ends = value(left), value(right)
            if not all(np.all(np.isfinite(end)) for end in ends):
                continue
            declared_sign = atom.sign(arguments, params)
            if not all(_has_sign(end, declared_sign) for end in ends):
                yield f"sign {declared_sign.value}"
            for channel, (log_in, log_out) in CHANNELS.items():
                declared = getattr(atom, channel)(arguments, params)
                if _bends(value, left, right, ends, arguments, log_in, log_out, declared):
                    yield f"{channel} {declared.value}"
            for number, declared in enumerate(atom.monotonicity(arguments, params)):
                if not arguments[number].constant and _turns(value, left, right, number, declared):
                    yield f"monotonicity {declared.value} in argument {number}"


def _has_sign(values: np.ndarray, sign: Sign) -> bool:
    if sign is Sign.UNKNOWN or values.size == 0:
        return True
    found = sign_of(values)
    weaker = {
        Sign.NONNEGATIVE: (Sign.POSITIVE, Sign.NONNEGATIVE, Sign.ZERO),
        Sign.NONPOSITIVE: (Sign.NEGATIVE, Sign.NONPOSITIVE, Sign.ZERO),
    }
    return found in weaker.get(sign, (sign,))


def _bends(
    value: Any,
    left: list[np.ndarray],
    right: list[np.ndarray],
    ends: tuple[np.ndarray, np.ndarray],
    arguments: list[Argument],
    log_in: bool,
    log_out: bool,
    declared: Curvature,
) -> bool:
    """Whether the declared curvature fails between two points."""
    if declared is Curvature.UNKNOWN:
        return False
    middle = []
    for a, b, argument in zip(left, right, arguments, strict=True):
        if argument.constant:
            middle.append(a)
        elif log_in:
            if np.any(a <= 0) or np.any(b <= 0):
                return False
            middle.append(np.sqrt(a * b))
        else:
            middle.append((a + b) / 2)
    first, second, between = *ends, value(middle)
    keep = np.isfinite(between)
    if log_out:
        keep &= (first > 0) & (second > 0) & (between > 0)
        first, second, between = np.log(first), np.log(second), np.log(between)
    first, second, between = first[keep], second[keep], between[keep]
    excess = between - (first + second) / 2
    slack = ROUNDING * (1 + np.abs(first) + np.abs(second) + np.abs(between))
    below, above = bool(np.any(excess < -slack)), bool(np.any(excess > slack))
    if declared is Curvature.AFFINE:
        return below or above
    return above if declared is Curvature.CONVEX else below


def _turns(
    value: Any,
    left: list[np.ndarray],
    right: list[np.ndarray],
    number: int,
    declared: Monotonicity,
) -> bool:
    """Whether the declared monotonicity fails between two points that differ in one argument."""
    if declared is Monotonicity.UNKNOWN:
        return False
    low, high = list(left), list(left)
    low[number] = np.minimum(left[number], right[number])
    high[number] = np.maximum(left[number], right[number])
    change = value(high) - value(low)
    change = change[np.isfinite(change)]
    slack = ROUNDING * (1 + np.abs(change))
    rises, falls = bool(np.any(change > slack)), bool(np.any(change < -slack))
    if declared is Monotonicity.CONSTANT:
        return rises or falls
    return falls if declared is Monotonicity.INCREASING else rises
