"""Checks of what an atom declares beside sign, monotonicity and curvature, one function for each fact.

Each takes a situation and yields in words what does not hold at drawn points.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.algebra import Factor, Pieces
from hcmodel.atoms.rules import Argument, Contraction, Dependence, Domain, MatrixKind, Sign
from hcmodel.expressions.leaves import Constant
from hcmodel.facts.answers import ask
from hcmodel.facts.intervals import enclosure
from hcmodel.testing.situations import Situation, drawn

FloatArray = NDArray[np.float64]
Check = Callable[[Situation], Iterator[str]]

# Relative to the size of what is compared.
ROUNDING = 1e-8
# Points of a box at which an enclosure is tested.
INSIDE = 4
# Arguments near 0 at which slopes are compared, the step between them, and the growth that counts as
# unbounded: -a log a grows slowest, by 9.2 from one to the next.
NEAR_ZERO, STEP, GROWTH = (1e-4, 1e-8, 1e-12), 1e-3, 1.3
KINDS = tuple(MatrixKind)


def _differ(found: Any, expected: Any) -> bool:
    found, expected = np.broadcast_arrays(np.asarray(found), np.asarray(expected))
    keep = np.isfinite(found) & np.isfinite(expected)
    scale = 1.0 + np.max(np.abs(expected[keep]), initial=0.0)
    return bool(np.any(np.abs(found[keep] - expected[keep]) > ROUNDING * scale))


# ---- algebra


def sums(case: Situation) -> Iterator[str]:
    if not case.atom.summed:
        return
    point = case.draw()
    signs = case.atom.signs(len(point))
    total = sum(sign * each for sign, each in zip(signs, point, strict=True))
    if _differ(case.value(point), total):
        yield f"summed {case.atom.summed}"


def linearity(case: Situation) -> Iterator[str]:
    for place in range(len(case.arguments)):
        if place not in case.atom.linear_in:
            continue
        one, other = case.draw(), case.draw()
        other = [each if i == place else one[i] for i, each in enumerate(other)]
        both = [2 * each - 3 * other[i] if i == place else each for i, each in enumerate(one)]
        if _differ(case.value(both), 2 * case.value(one) - 3 * case.value(other)):
            yield f"linear in argument {place}"


def exponents(case: Situation) -> Iterator[str]:
    declared = case.atom.exponents(case.arguments, case.params)
    if declared is None or any(exponent is None for exponent in declared):
        return
    point = case.draw()
    powers = [np.power(a, e) for a, e in zip(point, declared, strict=False)]  # type: ignore[arg-type]
    if _differ(case.value(point), functools.reduce(np.multiply, powers)):
        yield f"exponents {declared}"


def factors(case: Situation) -> Iterator[str]:
    declared = case.atom.factors(case.arguments, case.params)
    if not declared:
        return
    point = case.draw()
    value = case.value(point)
    product = functools.reduce(np.matmul, (_as_matrix(point, factor) for factor in declared))
    if product.size != value.size or _differ(value, product.reshape(value.shape)):
        yield f"factors {declared}"


def _as_matrix(point: list[FloatArray], factor: Factor) -> FloatArray:
    matrix = np.asarray(point[factor.place])
    matrix = matrix.reshape(-1, 1) if matrix.ndim == 1 else matrix
    matrix = np.asarray(np.linalg.inv(matrix), dtype=float) if factor.inverted else matrix
    return matrix.T if factor.transposed else matrix


def degree(case: Situation) -> Iterator[str]:
    """Along a line, differences of an order above the degree vanish."""
    declared = case.atom.degree(case.arguments, case.params)
    if declared is None:
        return
    start, end = case.draw(), case.draw()
    steps = np.linspace(0.0, 1.0, declared + 2)
    values = [case.value([a + s * (b - a) for a, b in zip(start, end, strict=True)]) for s in steps]
    order = declared + 1
    weights = [(-1.0) ** k * math.comb(order, k) for k in range(order + 1)]
    terms = [weight * value for weight, value in zip(weights, values, strict=True)]
    largest = np.max(np.abs(terms), initial=1.0)
    if np.any(np.abs(np.sum(terms, axis=0)) > ROUNDING * largest):
        yield f"degree {declared}"


def homogeneity(case: Situation) -> Iterator[str]:
    if not case.atom.is_homogeneous:
        return
    point = case.draw()
    for scale in (0.0, 0.5, 3.0):
        if _differ(case.value([scale * each for each in point]), scale * case.value(point)):
            yield "homogeneous"


def commutativity(case: Situation) -> Iterator[str]:
    if case.atom.commutative:
        point = case.draw()
        if _differ(case.value(point), case.value(point[::-1])):
            yield "commutative"


def transposition(case: Situation) -> Iterator[str]:
    if not case.atom.transposes:
        return
    point = case.draw()
    if _differ(case.value(point).T, case.value([each.T for each in point])):
        yield "transposes"


def dependence(case: Situation) -> Iterator[str]:
    """Contractions are what einsum computes; movements give the numbers of entries, or 0."""
    point = case.draw()
    declared = case.atom.dependence([argument.shape for argument in case.arguments], case.params)
    if isinstance(declared, Contraction):
        if _differ(case.value(point), np.einsum(declared.subscripts, *point)):
            yield f"contraction {declared.subscripts}"
    elif declared is Dependence.MOVEMENT:
        numbered, count = [], 1
        for each in point:
            numbered.append(np.arange(count, count + each.size, dtype=float).reshape(each.shape))
            count += each.size
        if not np.isin(case.value(numbered), np.arange(count)).all():
            yield "movement of entries"
    elif declared is Dependence.ELEMENTWISE:
        yield from _acts_entrywise(case, point)


def _acts_entrywise(case: Situation, point: list[FloatArray]) -> Iterator[str]:
    whole = np.broadcast_arrays(*point)
    value = case.value(point)
    for entry in itertools.islice(np.ndindex(value.shape), 3):
        if _differ(value[entry], case.value([np.asarray(each[entry]) for each in whole])):
            yield "elementwise dependence"


def definiteness(case: Situation) -> Iterator[str]:
    """For all kinds that the square arguments can be of, beside those of the situation."""
    squares = [
        i for i, each in enumerate(case.arguments) if _is_square(each.shape) and not each.constant
    ]
    spectral = (Domain.HURWITZ, Domain.SCHUR, Domain.CONTRACTING)
    options = [
        KINDS if i in squares and case.domains[i] not in spectral else (each.matrix,)
        for i, each in enumerate(case.arguments)
    ]
    for kinds in itertools.product(*options):
        facts = [
            Argument(
                each.shape,
                each.sign if kind is each.matrix else Sign.UNKNOWN,
                each.constant,
                each.value,
                kind,
            )
            for each, kind in zip(case.arguments, kinds, strict=True)
        ]
        declared = case.atom.definiteness(facts, case.params)
        if declared is MatrixKind.GENERAL:
            continue
        point = [
            drawn(fact, domain, case.generator) if value is None else value
            for fact, domain, value in zip(facts, case.domains, case.values, strict=True)
        ]
        value = case.value(point)
        if _is_square(value.shape) and not _is_of_kind(value, declared):
            yield f"definiteness {declared.name.lower()} for {[kind.name for kind in kinds]}"


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1]


def _is_of_kind(matrix: FloatArray, kind: MatrixKind) -> bool:
    if not np.isfinite(matrix).all():
        return True  # outside the domain
    slack = ROUNDING * (1.0 + float(np.abs(matrix).max()))
    if np.any(np.abs(matrix - matrix.T) > slack):
        return False
    least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2).min())
    if kind is MatrixKind.DEFINITE:
        return least > 0
    return kind is MatrixKind.SYMMETRIC or least >= -slack


# ---- functions of entries


def inverse(case: Situation) -> Iterator[str]:
    found = case.atom.inverse(case.arguments, case.params)
    if found is None or len(case.varying) != 1:
        return
    point = case.draw()
    with np.errstate(all="ignore"):
        if _differ(found(np, case.value(point)), point[case.varying[0]]):
            yield "inverse"


def infinite_slopes(case: Situation) -> Iterator[str]:
    """The slopes at arguments near 0 grow without bound where that is declared, and only there."""
    shapes = [argument.shape for argument in case.arguments]
    if case.atom.dependence(shapes, case.params) is not Dependence.ELEMENTWISE:
        return
    if not all(argument.sign is Sign.POSITIVE for argument in case.arguments):
        return
    declared = case.atom.infinite_slope(case.arguments, case.params)
    for place in case.varying:
        point = case.draw()
        slopes = [_slope(case, point, place, size) for size in NEAR_ZERO]
        pairs = list(itertools.pairwise(slopes))
        grows = all(np.any(after > GROWTH * before + 1.0) for before, after in pairs)
        if place in declared and not grows:
            yield f"infinite slope at 0 of argument {place}"
        if case.varying == [place] and place not in declared and grows:
            yield f"finite slope at 0 of argument {place}"


def _slope(case: Situation, point: list[FloatArray], place: int, size: float) -> FloatArray:
    shape = np.shape(point[place])
    ends = [
        case.value([np.full(shape, each) if i == place else old for i, old in enumerate(point)])
        for each in (size, size * (1 + STEP))
    ]
    return np.asarray(np.abs(ends[1] - ends[0]) / (size * STEP))


# ---- sizes


def magnitudes(case: Situation) -> Iterator[str]:
    if not case.atom.magnitudes or any(a.sign is Sign.UNKNOWN for a in case.arguments):
        return
    point = case.draw()
    if _differ(np.abs(case.value(point)), case.value([np.abs(each) for each in point])):
        yield "magnitudes"


def support(case: Situation) -> Iterator[str]:
    """Results of arguments with the same zeros have the same zeros."""
    if any(argument.sign is Sign.UNKNOWN for argument in case.arguments):
        return
    if not case.atom.keeps_support(case.arguments, case.params):
        return
    one, other = case.draw(), case.draw()
    other = [np.where(a == 0, 0.0, np.where(b == 0, a, b)) for a, b in zip(one, other, strict=True)]
    if not np.array_equal(case.value(one) == 0, case.value(other) == 0):
        yield "keeps_support"


# ---- reformulation


def enclosures(case: Situation) -> Iterator[str]:
    """Values at points of a box lie in the interval for the box."""
    if any(argument.matrix is not MatrixKind.GENERAL for argument in case.arguments):
        return
    one, other = case.draw(), case.draw()
    ends = [(np.minimum(a, b), np.maximum(a, b)) for a, b in zip(one, other, strict=True)]
    known = [argument.constant for argument in case.arguments]
    answers = ask(case.atom, case.params, case.arguments)
    low, high = enclosure(case.atom, case.params, ends, known, answers)
    for _ in range(INSIDE):
        share = [case.generator.uniform(size=np.shape(a)) for a in one]
        inside = [a + s * (b - a) for a, b, s in zip(one, other, share, strict=True)]
        value = case.value(inside)
        finite = np.isfinite(value)
        below = (value < np.broadcast_to(low, value.shape)) & finite
        above = (value > np.broadcast_to(high, value.shape)) & finite
        if below.any() or above.any():
            yield "enclosure"


def pieces(case: Situation) -> Iterator[str]:
    found = case.atom.pieces(case.arguments, case.params)
    if found is None:
        return
    point = case.draw()
    operands = [Constant(each) for each in point]
    value = case.value(point)
    if found.semidefinite is not None:
        yield from _semidefinite(found.semidefinite, operands, value)
        return
    bounded = value if found.bounded is None else _number(found.bounded(operands))
    again = bounded if found.value is None else _number(found.value(Constant(bounded)))
    if again.shape != value.shape or _differ(again, value):
        yield "pieces: the value of the bound is not the atom's"
    if np.any(_slack(found, point, bounded) < -ROUNDING * (1.0 + np.abs(bounded).max(initial=0))):
        yield "pieces: the rows do not hold at the atom's value"
    tighter = bounded + (-0.1 if found.above else 0.1)
    if bounded.size and not np.any(_slack(found, point, tighter) < -ROUNDING):
        yield "pieces: the rows hold for a bound that is too tight"
    if found.monotone:
        moved = [each + 0.1 for each in point]
        change = _slack(found, moved, bounded) - _slack(found, point, bounded)
        if np.any(change > ROUNDING if found.above else change < -ROUNDING):
            yield "pieces: the rows are not monotone in the arguments"


def _semidefinite(matrix: Any, operands: list[Constant], value: FloatArray) -> Iterator[str]:
    def least(bound: FloatArray) -> float:
        return float(np.linalg.eigvalsh(_number(matrix(operands, Constant(bound))))[0])

    if least(value) < -ROUNDING * (1.0 + float(np.abs(value))):
        yield "pieces: the matrix is not semidefinite at the atom's value"
    if least(value - 0.1) >= 0:
        yield "pieces: the matrix is semidefinite for a bound that is too tight"


def _slack(pieces: Pieces, point: list[FloatArray], bound: FloatArray) -> FloatArray:
    """How far each row is satisfied."""
    rows = pieces.rows([Constant(each) for each in point], Constant(bound))
    return np.concatenate([np.ravel(_number(large) - _number(small)) for small, large in rows])


def _number(expression: Any) -> FloatArray:
    return np.asarray(expression.value, dtype=float)


CHECKS: tuple[Check, ...] = (
    sums,
    linearity,
    exponents,
    factors,
    degree,
    homogeneity,
    commutativity,
    transposition,
    dependence,
    definiteness,
    inverse,
    infinite_slopes,
    magnitudes,
    support,
    enclosures,
    pieces,
)
