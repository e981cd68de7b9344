"""Bounds of expressions whose convexity rests on several nodes: squares, quadratic forms, fractions.

A function with a convex square root (`facts.patterns`) is a sum of squares of bounds: f[i] is the sum
of h[k]² over the terms k of entry i. A second-order cone for each entry bounds it, and bounds its
quotient by a concave function too. In the objective it is a quadratic term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.cones import broken_powers, semidefinite_root
from hcmodel.atoms.rules import Contraction, Dependence
from hcmodel.expressions.leaves import Apply, Expression
from hcmodel.expressions.sparse_data import Numbers, dense
from hcmodel.facts.bits import AFFINE, CONVEX, magnitude_is_convex
from hcmodel.facts.node_facts import Node
from hcmodel.facts.patterns import Kind, Pattern
from hcmodel.reductions.cone.affine import Affine, joined
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.reductions.cone.cone_sides import Side
from hcmodel.reductions.cone.cone_terms import Terms, moved_terms, spread_terms, weighted_places
from hcmodel.reductions.cone.linear_maps import raveled

if TYPE_CHECKING:
    from hcmodel.reductions.cone.cone_bounds import Translation


def squares(translation: Translation, expression: Expression) -> Terms | None:
    """Bounds h with f[i] = Σ h[k]² over the k with target i; None where f is not known as such a sum."""
    value = translation.constant(expression)
    if value is not None:
        roots = np.sqrt(dense(value))
        return Affine.constant(roots).flat(), np.arange(roots.size)
    _, log, root = translation.channels(expression)
    if not root:
        return None
    if not isinstance(expression, Apply):  # a variable whose coordinate is its logarithm
        return _of_exponential(translation, expression)
    pattern = translation.node(expression).pattern
    if pattern is not None and _is_square(translation, pattern, Kind.SQUARE):
        return _of_square(translation, expression, pattern)
    if pattern is not None and _is_square(translation, pattern, Kind.QUADRATIC):
        x, matrix = _quadratic(translation, pattern)
        own, _ = semidefinite_root(dense(matrix))
        terms = x.mapped(Rows.of(own.T), (own.shape[1],))
        return terms, np.zeros(terms.size, dtype=np.intp)
    if log & CONVEX:
        return _of_exponential(translation, expression)
    return _of_parts(translation, expression)


def _of_exponential(translation: Translation, expression: Expression) -> Terms:
    """Of what is log-convex: exp(t) = exp(t/2)²."""
    half = translation.log(expression, Side.ABOVE).scaled(0.5)
    return translation.rows.exp(half).flat(), np.arange(expression.size)


def _is_square(translation: Translation, pattern: Pattern, kind: Kind) -> bool:
    """Whether the form is of this kind, and its root is convex because of that."""
    if pattern.kind is not kind:
        return False
    first = translation.numbered(pattern.nodes[0])
    return magnitude_is_convex(first.sign, translation.channels(first.expression)[0])


def _of_parts(translation: Translation, expression: Apply) -> Terms | None:
    """Of sums, of movements of entries, and of products with constants that are not negative."""
    atom = expression.atom
    if atom.summed or atom.moves_entries:
        parts = [squares(translation, argument) for argument in expression.args]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts) or (atom.summed and min(atom.signs(len(parts))) < 0):
            return None
        if atom.moves_entries:
            return moved_terms(expression, found)
        wide = [
            spread_terms(*part, argument.shape, expression.shape)
            for part, argument in zip(found, expression.args, strict=True)
        ]
        return joined([each for each, _ in wide]), np.concatenate([own for _, own in wide])
    matrix, varying = translation.coefficients(expression)
    if matrix is None or varying is None or (matrix.nnz and matrix.data.min() < 0):
        return None
    inner = squares(translation, expression.args[varying])
    if inner is None:
        return None
    places, targets, weights = weighted_places(inner[1], matrix, expression.args[varying].size)
    return inner[0].taken(places, (places.size,)).scaled(np.sqrt(weights)), targets


def _magnitude(translation: Translation, node: Node) -> Affine:
    """A bound h with |h| >= |a|, and h² a bound of a²."""
    if translation.channels(node.expression)[0] & CONVEX and node.sign.is_nonnegative:
        return translation.plain(node.expression, Side.ABOVE)
    side = Side.BELOW if node.sign.is_nonpositive else Side.EXACT
    return translation.plain(node.expression, side)


def _of_square(translation: Translation, expression: Apply, pattern: Pattern) -> Terms | None:
    """Of powers from 2 on, and of products of an argument with itself."""
    base = translation.numbered(pattern.nodes[0])
    size = _magnitude(translation, base)
    everything = np.arange(expression.size)
    if len(expression.args) == 2 and all(translation.node(a) is base for a in expression.args):
        shapes = [argument.shape for argument in expression.args]
        dependence = expression.atom.dependence(shapes, dict(expression.params))
        if dependence is Dependence.ELEMENTWISE:
            return size.flat(), everything
        assert isinstance(dependence, Contraction)
        return _of_contraction(dependence, size, expression.shape)
    exponents = translation.node(expression).exponents
    if exponents is None or exponents[0] is None:
        return None
    if broken_powers(exponents[0]).any() and not base.sign.is_nonnegative:
        # then it is convex, so that there is a bound of it from above
        argument = translation.plain(expression.args[0], Side.ABOVE).broadcast(expression.shape)
        translation.rows.in_domain_of_power(argument, exponents[0])
    half = np.asarray(exponents[0]) / 2.0
    wide = size.broadcast(expression.shape)
    if np.all(half == 1.0):
        return wide.flat(), everything
    return translation.rows.power_of(wide, half).flat(), everything


def _of_contraction(dependence: Contraction, size: Affine, shape: tuple[int, ...]) -> Terms:
    """Of a sum of squares of entries along labels that are the same on both sides."""
    inputs, output = dependence.subscripts.split("->")
    labels = inputs.split(",")[0]
    index = dict(zip(labels, np.indices(size.shape).reshape(len(labels), -1), strict=True))
    return size.flat(), raveled([index[label] for label in output], shape, size.size)


def _quadratic(translation: Translation, pattern: Pattern) -> tuple[Affine, Numbers]:
    """x and P of x'Px."""
    vector, matrix = (translation.numbered(number) for number in pattern.nodes)
    value = translation.constant(matrix.expression)
    assert value is not None
    return _magnitude(translation, vector), value


# ---- bounds


def pattern_bound(translation: Translation, expression: Apply, side: Side) -> Affine | None:
    """A bound by what the proof recognised in several nodes; None where there is none."""
    pattern = translation.node(expression).pattern
    if pattern is None:
        return None
    if pattern.kind is Kind.OVER:
        return _over(translation, expression, pattern, side)
    if pattern.kind is Kind.ROOT and side is Side.ABOVE:
        return _root(translation, expression, pattern)
    parts = [translation.numbered(number).expression for number in pattern.nodes]
    if side is not Side.ABOVE or any(translation.channels(each)[0] != AFFINE for each in parts):
        return None
    if pattern.kind not in (Kind.FRACTION, Kind.TRACE_INVERSE):
        return None
    above, matrix = _fraction(translation, pattern)
    below = translation.plain(matrix.expression, Side.EXACT)
    return translation.rows.matrix_fraction(above, below)


def _root(translation: Translation, expression: Apply, pattern: Pattern) -> Affine | None:
    """f^p with 1/2 <= p < 1 for a sum of squares f: the norm of the terms to the power 2p."""
    base = translation.numbered(pattern.nodes[0]).expression
    exponents = translation.node(expression).exponents
    found = squares(translation, base) if translation.channels(base)[2] else None
    if found is None or exponents is None or exponents[0] is None:
        return None
    norms = translation.rows.euclidean_norms(*found, base.size).reshaped(base.shape)
    return translation.rows.power_of(norms, 2.0 * np.asarray(exponents[0]))


def pattern_log_bound(translation: Translation, expression: Apply) -> Affine | None:
    """The logarithm from above, of inv(I - X), trace(C inv(P)) and x' inv(P) x with constant x."""
    pattern = translation.node(expression).pattern
    if pattern is not None and pattern.kind is Kind.SERIES:
        inner = translation.numbered(pattern.nodes[0]).expression
        return translation.rows.eye_minus_inverse(translation.log(inner, Side.ABOVE))
    if pattern is None or pattern.kind not in (Kind.FRACTION, Kind.TRACE_INVERSE):
        return None
    above, matrix = _fraction(translation, pattern)
    if not above.is_constant or translation.channels(matrix.expression)[0] != AFFINE:
        return None
    below = translation.plain(matrix.expression, Side.EXACT)
    return translation.rows.log_matrix_fraction(above.value, below)


def _fraction(translation: Translation, pattern: Pattern) -> tuple[Affine, Node]:
    """X and P of a form that is trace(X' inv(P) X)."""
    first, *others = (translation.numbered(number) for number in pattern.nodes)
    if pattern.kind is Kind.FRACTION:
        vector = translation.plain(first.expression, Side.EXACT)
        return vector.reshaped((-1, 1)), others[0]
    root = np.eye(first.shape[0])
    for weight in others:
        assert weight.value is not None
        root, _ = semidefinite_root(dense(weight.value))
    return Affine.constant(root), first


def squares_bound(translation: Translation, expression: Apply) -> Affine | None:
    """t >= f for a function that is a sum of squares and not a sum of log-convex terms."""
    if not isinstance(expression, Apply) or translation.channels(expression)[1] & CONVEX:
        return None
    found = squares(translation, expression)
    if found is None:
        return None
    terms, targets = found
    return translation.rows.sums_of_squares(terms, targets, expression.size).reshaped(
        expression.shape
    )


def _over(
    translation: Translation, expression: Apply, pattern: Pattern, side: Side
) -> Affine | None:
    """f / b for a sum of squares f: t b >= Σ h²; for b < 0 as -f / (-b)."""
    numerator, divisor = (translation.numbered(number) for number in pattern.nodes)
    sign = 1.0 if side is Side.ABOVE else -1.0
    fitting = divisor.sign.is_nonnegative if sign > 0 else divisor.sign.is_nonpositive
    wanted = Side.BELOW.times(sign)
    fitting &= bool(translation.channels(divisor.expression)[0] & wanted.curvature)
    factor = _factor(translation, expression, numerator, divisor)
    found = squares(translation, numerator.expression) if fitting else None
    if found is None or factor is None:
        return None
    shape = expression.shape
    terms, targets = spread_terms(*found, numerator.shape, shape)
    below = translation.plain(divisor.expression, wanted).scaled(sign)
    count = expression.size
    bound = translation.rows.sums_of_squares(terms, targets, count, below.broadcast(shape))
    return bound.reshaped(shape).scaled(sign * factor)


def _factor(
    translation: Translation, expression: Apply, numerator: Node, divisor: Node
) -> NDArray[np.float64] | None:
    """The constant k of a form that is k f / b."""
    others = [translation.node(a) for a in expression.args]
    others = [node for node in others if node is not numerator]
    if len(others) != 1:
        return None
    other = others[0]
    if other is divisor:
        return np.ones(())
    assert other.exponents is not None
    factor = np.ones(())
    for number, exponent in zip(other.arguments, other.exponents, strict=False):
        value = translation.constant(translation.numbered(number).expression)
        if number == divisor.number:
            continue
        if value is None or exponent is None:
            return None
        factor = factor * dense(value) ** exponent
    return factor


# ---- the objective


def quadratic_objective(
    translation: Translation, expression: Expression, weight: float
) -> Affine | None:
    """The affine rest of weight · expression, whose squares have gone into the quadratic part.

    None where no part of the expression is a sum of squares of affine rows.
    """
    # Without recursion: sums of a loop are as deep as it has rounds.
    open_ = [(expression, weight, list[_Summand]())]
    found: list[Affine | None] = []
    while open_:
        node, own, parts = open_.pop()
        if parts:
            answers = found[-len(parts) :]
            found[-len(parts) :] = [_added(translation, parts, answers)]
            continue
        parts = _summands(translation, node, own)
        if parts:
            open_.append((node, own, parts))
            open_ += [(part, factor, []) for part, factor in reversed(parts)]
        else:
            found.append(_quadratic_term(translation, node, own))
    return found[0]


_Summand = tuple[Expression, float]


def _summands(translation: Translation, expression: Expression, weight: float) -> list[_Summand]:
    """What a sum, or a multiple of one expression, consists of, with weights; nothing of others."""
    if not isinstance(expression, Apply) or expression.size != 1:
        return []
    atom, args = expression.atom, expression.args
    if atom.summed and all(argument.size == 1 for argument in args):
        weights = [weight * sign for sign in atom.signs(len(args))]
        return list(zip(args, weights, strict=True))
    varying = [i for i, argument in enumerate(args) if translation.constant(argument) is None]
    if len(varying) == 1 and args[varying[0]].size == 1 and varying[0] in atom.linear_in:
        matrix, _ = translation.coefficients(expression)
        if matrix is not None:
            return [(args[varying[0]], weight * float(matrix.data.sum()))]
    return []


def _added(
    translation: Translation, parts: list[_Summand], rests: list[Affine | None]
) -> Affine | None:
    """The sum of the rests of the parts, with those whole in which nothing was a square."""
    if all(rest is None for rest in rests):
        return None
    total = Affine.constant(np.zeros(()))
    for (part, weight), rest in zip(parts, rests, strict=True):
        if rest is None:
            rest = translation.plain(part, Side.ABOVE.times(weight)).scaled(weight)
        total = total + rest.reshaped(())
    return total


def _quadratic_term(
    translation: Translation, expression: Expression, weight: float
) -> Affine | None:
    if not isinstance(expression, Apply) or expression.size != 1:
        return None
    if weight <= 0 or translation.channels(expression)[1] & CONVEX:
        return None
    pattern = translation.node(expression).pattern
    terms: Any
    if pattern is not None and _is_square(translation, pattern, Kind.QUADRATIC):
        terms, matrix = _quadratic(translation, pattern)
        quadratic: Any = weight * (matrix + matrix.T) / 2
    else:
        found = squares(translation, expression)
        if found is None:
            return None
        terms = found[0]
        quadratic = np.full(terms.size, weight)
    translation.rows.add_quadratic(terms, quadratic)
    return Affine.constant(np.zeros(()))
