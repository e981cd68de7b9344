"""The nodes of a proof as affine bounds of their values, or of the logarithms of these.

Each node is asked for a bound on the side, and in the channel, in which the proof found it convex or
concave; the rows that make it a bound go into a `ConeRows`. A sum of positive terms between logarithms is
kept as a list of terms for as long as possible, so that it ends as one log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.cones import ConeForm, Use
from hcmodel.atoms.rules import Contraction, Domain, Monotonicity, Sign
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Apply, Constant, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import Numbers, any_nonzero, dense
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX
from hcmodel.facts.curvature import Channels
from hcmodel.facts.node_facts import Node
from hcmodel.proof.prove import Proof
from hcmodel.records import dataclass
from hcmodel.reductions.cone.affine import Affine, joined
from hcmodel.reductions.cone.compressed_rows import Rows, small_units
from hcmodel.reductions.cone.cone_rows import ConeRows, Mark
from hcmodel.reductions.cone.cone_sides import NoConeForm, Side
from hcmodel.reductions.cone.cone_squares import (
    pattern_bound,
    pattern_log_bound,
    quadratic_objective,
    squares_bound,
)
from hcmodel.reductions.cone.cone_terms import moved_entries, spread_terms, weighted_places
from hcmodel.reductions.cone.linear_maps import coefficients, is_one, raveled
from hcmodel.reductions.sign import signed_objective
from hcmodel.reductions.wider_bounds import with_wider_bounds
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind

FloatArray = NDArray[np.float64]
POSITIVE_DOMAINS = (Domain.POSITIVE, Domain.NONNEGATIVE)
# A way to bound an expression on a side; None where it does not apply.
Way = Callable[[Apply, Side], Affine | None]


@dataclass(frozen=True)
class Place:
    """The block of a constraint's rows, and the sign of their multipliers.

    An equality that is relaxed has a second block, for its other side.
    """

    block: int
    other: int | None = None
    sign: float = 1.0


@dataclass(frozen=True)
class Bounds:
    """The block of bounds of some entries of u, and what bounds them; `side` as in `BoundOrigin`."""

    block: int
    side: str
    entries: NDArray[np.intp]
    values: FloatArray


class Translation:
    """The proof's nodes as bounds; each is made once for each side that is wanted.

    `relaxed` adds an unknown after u by which all constraints are relaxed: rows between logarithms by a
    factor, the others relative to the size of their numbers. `affine` has roots of the model that are
    known to be affine, by their identities; these are not taken apart again.
    """

    def __init__(
        self,
        model: Model,
        proof: Proof,
        affine: Mapping[int, Affine],
        *,
        relaxed: bool = False,
    ) -> None:
        self.model, self.proof, self.affine = model, proof, affine
        self.curvatures = proof.curvatures
        self.rows = ConeRows(model.layout.size)
        self.slack = self.rows.unknown((1,)) if relaxed else None
        if self.slack is not None:
            self.rows.nonnegative(self.slack)
        self.logs = np.zeros(model.layout.size, dtype=bool)
        self.coordinates: Mapping[Variable, str] = proof.coordinates
        self._known: dict[tuple[int, str, Side], Affine] = {}
        self.bounds: list[Bounds] = []
        self.norms: dict[int, Apply] = {}
        """The nodes that are Euclidean norms, by their place in `rows.norms`."""
        for variable in model.variables:
            self.logs[model.layout.slice(variable)] = proof.coordinates[variable] == "log"
        self._add_domain()
        self.places = tuple(self.constraint(each) for each in model.constraints)

    def node(self, expression: Expression) -> Node:
        node = self.curvatures.facts[expression]
        self.curvatures.extend()
        return node

    def channels(self, expression: Expression) -> Channels:
        """Curvature of the value, of its logarithm, and whether its square root is convex."""
        return self.curvatures.channels[self.node(expression).number]

    def numbered(self, number: int) -> Node:
        """A node of the proof by its number."""
        return self.curvatures.facts.nodes[number]

    # ---- the model

    def _add_domain(self) -> None:
        domain = make_domain(self.model.variables).in_logarithms(self.logs)
        rows = domain.cone_rows()
        layout, size = self.model.layout, self.model.layout.size
        lower, upper = with_wider_bounds(layout, self.logs, rows.lower, rows.upper)
        self.units = small_units(lower, upper)
        u = Affine((size,), np.zeros(size), Rows.units(np.arange(size), size))
        # of a conflict equal bounds are two parts
        apart = (lower < upper) | (self.slack is not None)
        fixed = np.flatnonzero(~apart)
        low = np.flatnonzero(np.isfinite(lower) & apart)
        high = np.flatnonzero(np.isfinite(upper) & apart)
        for side, entries, values in (
            ("fixed", fixed, lower),
            ("lower", low, lower),
            ("upper", high, upper),
        ):
            if entries.size:
                own = u.taken(entries, (entries.size,)) - Affine.constant(values[entries])
                add = self.rows.zero if side == "fixed" else self.rows.nonnegative
                block = add(-own if side == "upper" else own)
                self.bounds.append(Bounds(block, side, entries, values[entries]))
        for cone in rows.cones:
            affine = Affine((cone.offset.size,), cone.offset, Rows.of(cone.matrix))
            kind = ConeKind.ZERO if cone.kind == "zero" else ConeKind.PSD_TRIANGLE
            block = self.rows.add(ConeBlock(kind, affine.size), affine)
            side = "set" if cone.matrix.data[0] > 0 else "ceiling"
            self.bounds.append(Bounds(block, side, np.unique(cone.matrix.indices), np.zeros(0)))

    def objective(self) -> Affine:
        expression, sign = signed_objective(self.model)
        side = Side.ABOVE.times(sign)
        if self.model.objective_form == "plain":
            rest = quadratic_objective(self, expression, sign)
            return self.plain(expression, side).scaled(sign) if rest is None else rest
        return self.log(expression, side).scaled(sign)

    def constraint(self, constraint: Constraint) -> Place:
        """Where the rows of the constraint are."""
        left, right = constraint.lhs, constraint.rhs
        shape, kept = constraint.shape, constraint.rows
        log = constraint.form == "log"
        bound = self.log if log else self.plain
        if constraint.sense == "==":
            difference = bound(left, Side.EXACT) - bound(right, Side.EXACT)
            return self._equality(difference.broadcast(shape).flat().taken(kept, (kept.size,)))
        assert constraint.sense == "<="
        if log:
            terms, targets = self.terms(left)
            reference = bound(right, Side.BELOW).broadcast(shape)
            if targets.size > left.size:  # a sum in some entry
                terms, targets = spread_terms(terms, targets, left.shape, shape)
                chosen = np.isin(targets, kept)
                renumbered = np.searchsorted(kept, targets[chosen])
                own = terms.taken(np.flatnonzero(chosen), (int(chosen.sum()),))
                shifted = own - reference.flat().taken(targets[chosen], (renumbered.size,))
                if self.slack is not None:
                    shifted = shifted - self.slack
                return Place(self.rows.sum_exp_at_most_one(shifted, renumbered, kept.size))
        difference = bound(right, Side.BELOW) - bound(left, Side.ABOVE)
        own = difference.broadcast(shape).flat().taken(kept, (kept.size,))
        if self.slack is not None:
            own = own + self.slack.scaled(own.sizes(self.units))
        return Place(self.rows.nonnegative(own))

    def _equality(self, difference: Affine) -> Place:
        if self.slack is None:
            # b − A x = 0 with the dual z of A x = b: z is the multiplier of right − left
            return Place(self.rows.zero(difference), sign=-1.0)
        slack = self.slack.scaled(difference.sizes(self.units))
        return Place(
            self.rows.nonnegative(slack - difference), self.rows.nonnegative(slack + difference)
        )

    # ---- bounds of values

    def plain(self, expression: Expression, side: Side) -> Affine:
        """A bound of the value."""
        return self._bound(expression, "plain", side)

    def log(self, expression: Expression, side: Side) -> Affine:
        """A bound of the logarithm of the size of a value of one sign."""
        return self._bound(expression, "log", side)

    def _bound(self, expression: Expression, channel: str, side: Side) -> Affine:
        if channel == "plain" and id(expression) in self.affine:
            return self.affine[id(expression)]
        value = self.constant(expression)
        if value is not None:
            if channel == "plain":
                return Affine.constant(value)
            if self.node(expression).sign is Sign.UNKNOWN:
                raise NoConeForm(expression, f"{expression} has entries of both signs")
            with np.errstate(all="ignore"):
                return Affine.constant(np.log(np.abs(dense(value))))
        number = self.node(expression).number
        curvature = self.channels(expression)[0 if channel == "plain" else 1]
        if curvature == AFFINE:
            side = Side.EXACT
        elif (side, curvature) not in ((Side.ABOVE, CONVEX), (Side.BELOW, CONCAVE)):
            raise NoConeForm(
                expression, f"{expression} is not known to be convex where it has to be"
            )
        key = (number, channel, side)
        if key not in self._known:
            make = self._plain if channel == "plain" else self._log
            self._known[key] = make(expression, side)
        return self._known[key]

    def constant(self, expression: Expression) -> Numbers | None:
        if isinstance(expression, (Constant, Parameter)):
            return expression.value
        return expression.value if self.node(expression).constant else None

    def _leaf(self, variable: Variable) -> Affine:
        layout = self.model.layout
        places = layout.places(variable)
        own = Rows.units(places, layout.size)
        if variable.set.is_symmetric:
            weights = np.ravel(variable.set.expand(np, np.ones(variable.set.stored_size)))
            own = own.scaled(weights)
        return Affine(variable.shape, np.zeros(places.size), own)

    def _plain(self, expression: Expression, side: Side) -> Affine:
        if isinstance(expression, Variable):
            own = self._leaf(expression)
            return self.rows.exp(own) if self.coordinates[expression] == "log" else own
        assert isinstance(expression, Apply)
        return self._first(
            expression,
            side,
            (self._squares, self._linear, self._declared, self._pattern, self._exponential),
            "{} has no cone form",
        )

    def _first(self, expression: Apply, side: Side, ways: Sequence[Way], reason: str) -> Affine:
        """The first bound that one of several ways finds; what the others began is taken back.

        `reason` is what an error says, with braces for the expression.
        """
        stopped: NoConeForm | None = None
        for way in ways:
            known, mark = len(self._known), self.rows.mark()
            try:
                found = way(expression, side)
            except NoConeForm as stop:
                found, stopped = None, stopped or stop
            if found is not None:
                return found
            self._take_back(known, mark)
        raise stopped or NoConeForm(expression, reason.format(expression))

    def _take_back(self, known: int, mark: Mark) -> None:
        while len(self._known) > known:
            self._known.popitem()
        self.rows.take_back(mark)
        while self.norms and next(reversed(self.norms)) >= mark.norms:
            self.norms.popitem()

    def _squares(self, expression: Apply, side: Side) -> Affine | None:
        return squares_bound(self, expression) if side is Side.ABOVE else None

    def _pattern(self, expression: Apply, side: Side) -> Affine | None:
        return pattern_bound(self, expression, side)

    def _exponential(self, expression: Apply, side: Side) -> Affine | None:
        """exp of a bound of the logarithm, of what is log-convex; of negative values likewise."""
        sign = self.node(expression).sign
        if not self.channels(expression)[1] & CONVEX:
            return None
        if side is Side.ABOVE and sign.is_nonnegative:
            return self.rows.exp(self.log(expression, Side.ABOVE))
        if side is Side.BELOW and sign.is_nonpositive:
            return -self.rows.exp(self.log(expression, Side.ABOVE))
        return None

    def _declared(self, expression: Apply, side: Side) -> Affine | None:
        """The cone form that the atom declares for a plain result."""
        forms = expression.atom.cone_form
        if forms is None:
            return None
        rule = self.node(expression).rule
        if rule is None:
            return None
        if rule.plain_from_log & side.curvature == side.curvature:
            found = self._by(forms.log_to_plain, expression, "log", side)
            if found is not None:
                return found
        fits = rule.plain & side.curvature == side.curvature
        return self._by(forms.plain, expression, "plain", side) if fits else None

    def _declared_log(self, expression: Apply, side: Side) -> Affine | None:
        """The cone form that the atom declares for the logarithm of its result."""
        forms, rule = expression.atom.cone_form, self.node(expression).rule
        if forms is None or rule is None or rule.log & side.curvature != side.curvature:
            return None
        return self._by(forms.log, expression, "log", side)

    def _by(
        self, form: ConeForm | None, expression: Apply, channel: str, side: Side
    ) -> Affine | None:
        """A bound by a declared form, from arguments in a channel; None where they do not compose."""
        if form is None:
            return None
        sides = self._sides(expression, side)
        if channel == "log" and not self._all_nonnegative(expression):
            if not expression.atom.magnitudes:
                return None
            sides = [side] * len(sides)  # it acts on sizes, and rises with them
        if not self._composes(expression, sides, channel):
            return None
        pairs = zip(expression.args, sides, strict=True)
        bounds = tuple(self._bound(argument, channel, own) for argument, own in pairs)
        facts = [self.node(argument).argument for argument in expression.args]
        known = len(self.rows.norms)
        found: Affine | None = form(Use(self.rows, bounds, facts, dict(expression.params)))
        if len(self.rows.norms) == known + 1 and channel == "plain":
            self.norms[known] = expression
        return None if found is None else found.broadcast(expression.shape)

    def _all_nonnegative(self, expression: Apply) -> bool:
        return all(self.node(argument).sign.is_nonnegative for argument in expression.args)

    def _composes(self, expression: Apply, sides: Sequence[Side], channel: str) -> bool:
        """Whether the arguments have the curvature that a composition needs."""
        place = 0 if channel == "plain" else 1
        for argument, own in zip(expression.args, sides, strict=True):
            node = self.node(argument)
            if node.constant:
                if channel == "log" and node.sign is Sign.UNKNOWN:
                    return False
            elif self.channels(argument)[place] & own.curvature != own.curvature:
                return False
        return True

    def _sides(self, expression: Apply, side: Side) -> list[Side]:
        """The sides on which bounds of the arguments make a bound of the result."""
        arguments = [self.node(a).argument for a in expression.args]
        moves = expression.atom.monotonicity(arguments, dict(expression.params))
        signs = {Monotonicity.INCREASING: 1, Monotonicity.DECREASING: -1}
        return [side.times(signs.get(move, 0)) for move in moves]

    # ---- what is linear

    def _linear(self, expression: Apply, side: Side) -> Affine | None:
        """Sums, movements of entries, and products with constants."""
        atom, args = expression.atom, expression.args
        if atom.summed or atom.moves_entries:
            signs = atom.signs(len(args)) if atom.summed else (1,) * len(args)
            sides = [side.times(sign) for sign in signs]
            if not self._composes(expression, sides, "plain"):
                return None
            parts = [self.plain(*each) for each in zip(args, sides, strict=True)]
            if atom.moves_entries:
                return self._moved(expression, parts)
            scaled = [part.scaled(float(s)) for part, s in zip(parts, signs, strict=True)]
            return _total(scaled, expression.shape)
        matrix, varying = self.coefficients(expression)
        if matrix is None or varying is None:
            return None
        own, curvature = side, self.channels(args[varying])[0]
        if curvature != AFFINE and matrix.nnz:
            own = side.times(-1 if matrix.data.max() <= 0 else 1)
            if matrix.data.min() < 0 and own is side:
                return None
        if curvature & own.curvature != own.curvature:
            return None
        return self.plain(args[varying], own).mapped(matrix, expression.shape)

    def _moved(self, expression: Apply, parts: Sequence[Affine]) -> Affine:
        """Movements of entries; 0 is a zero of the result."""
        places = moved_entries(expression, [part.shape for part in parts])
        zero = Affine.constant(np.zeros(1))
        return joined([zero, *parts]).taken(places, expression.shape)

    def coefficients(self, expression: Apply) -> tuple[Any, int | None]:
        """The matrix of a node that is linear in its one argument that is not constant."""
        constants = [self.constant(argument) for argument in expression.args]
        varying = [place for place, value in enumerate(constants) if value is None]
        if len(varying) != 1:
            return None, None
        facts = [self.node(argument).argument for argument in expression.args]
        return coefficients(expression, varying[0], constants, facts), varying[0]

    # ---- bounds of logarithms

    def _log(self, expression: Expression, side: Side) -> Affine:
        if isinstance(expression, Variable):
            own = self._leaf(expression)
            if self.coordinates[expression] == "log":
                return own
            return self.rows.log(-own if self.node(expression).sign.is_nonpositive else own)
        assert isinstance(expression, Apply)
        return self._first(
            expression,
            side,
            (
                *(self._log_monomial, self._log_moved, self._declared_log, self._log_pattern),
                *(self._log_difference, self._log_of_concave, self._log_sum),
            ),
            "the logarithm of {} has no cone form",
        )

    def _log_moved(self, expression: Apply, side: Side) -> Affine | None:
        if expression.atom.summed and len(expression.args) == 1:  # a minus sign
            return self.log(expression.args[0], side).broadcast(expression.shape)
        if not expression.atom.moves_entries:
            return None
        return self._moved(expression, [self.log(a, side) for a in expression.args])

    def _log_pattern(self, expression: Apply, side: Side) -> Affine | None:
        return pattern_log_bound(self, expression) if side is Side.ABOVE else None

    def _log_of_concave(self, expression: Apply, side: Side) -> Affine | None:
        """The logarithm of a bound of a concave size."""
        if side is not Side.BELOW:
            return None
        plain, sign = self.channels(expression)[0], self.node(expression).sign
        if sign.is_nonnegative and plain & CONCAVE:
            return self.rows.log(self.plain(expression, Side.BELOW))
        if sign.is_nonpositive and plain & CONVEX:
            return self.rows.log(-self.plain(expression, Side.ABOVE))
        return None

    def _log_sum(self, expression: Apply, side: Side) -> Affine | None:
        """Of a sum of positive terms; itself where each sum has one term, else from above."""
        split = None if side is Side.BELOW else self._split(expression)
        if split is None:
            return None
        terms, targets = split
        order = np.argsort(targets, kind="stable")
        if np.array_equal(targets[order], np.arange(expression.size)):
            return terms.taken(order, expression.shape)
        if side is not Side.ABOVE:
            return None
        return self.rows.log_sum_exp(terms, targets, expression.size).reshaped(expression.shape)

    def _log_monomial(self, expression: Apply, side: Side) -> Affine | None:
        """Products, quotients, powers and exponentials: affine in the logarithms of the arguments."""
        atom, params = expression.atom, dict(expression.params)
        arguments = [self.node(a).argument for a in expression.args]
        forms, rule = atom.cone_form, self.node(expression).rule
        if forms and rule and rule.log_from_plain & side.curvature == side.curvature:
            found = self._by(forms.plain_to_log, expression, "plain", side)
            if found is not None:
                return found
        exponents = atom.exponents(arguments, params)
        if exponents is not None and all(each is not None for each in exponents):
            parts = []
            domains = atom.domains(arguments, params)
            for argument, domain, given in zip(expression.args, domains, exponents, strict=False):
                exponent = np.asarray(given, dtype=float)
                if self._mixed(exponent, argument):
                    return None
                own = side.times(float(np.sign(exponent).flat[0]) if exponent.size else 1.0)
                parts.append(self._factor(argument, domain, own).scaled(exponent))
            return _total(parts, expression.shape)
        return None

    def _factor(self, argument: Expression, domain: Domain, side: Side) -> Affine:
        """The logarithm of a factor. A concave one is positive wherever the product has a value > 0."""
        plain, log, _ = self.channels(argument)
        positive = self.node(argument).sign is Sign.NONNEGATIVE or domain in POSITIVE_DOMAINS
        if positive and side is Side.BELOW and not log & CONCAVE and plain & CONCAVE:
            return self.rows.log(self.plain(argument, side))
        return self.log(argument, side)

    def _mixed(self, exponent: FloatArray, argument: Expression) -> bool:
        """Whether exponents of both signs stand over something that is not log-affine."""
        if self.constant(argument) is not None:
            return False
        affine = self.channels(argument)[1] == AFFINE
        return not affine and bool((exponent > 0).any() and (exponent < 0).any())

    def terms(self, expression: Expression) -> tuple[Affine, NDArray[np.intp]]:
        """Logarithms of terms, and for each the entry of the expression that it is a term of."""
        everything = np.arange(expression.size)
        if not isinstance(expression, Apply) or self.constant(expression) is not None:
            return self.log(expression, Side.ABOVE).flat(), everything
        if self.channels(expression)[1] == AFFINE:
            return self.log(expression, Side.EXACT).flat(), everything
        known, mark = len(self._known), self.rows.mark()
        try:
            found = self._split(expression)
        except NoConeForm:  # a sum of what is not log-convex may be so
            found = None
        if found is None:
            self._take_back(known, mark)
            return self.log(expression, Side.ABOVE).flat(), everything
        return found

    def _split(self, expression: Apply) -> tuple[Affine, NDArray[np.intp]] | None:
        """The terms of a sum; None where the expression is not one."""
        atom = expression.atom
        if atom.summed:
            kinds = [kind for kind in self._term_signs(expression) if kind is not Sign.ZERO]
            if not (
                all(kind.is_nonnegative for kind in kinds)
                or all(kind.is_nonpositive for kind in kinds)
            ):
                return None
            found = [
                spread_terms(*self.terms(argument), argument.shape, expression.shape)
                for argument in expression.args
                if not self._is_zero(argument)
            ]
            return joined([each for each, _ in found]), np.concatenate([own for _, own in found])
        matrix, varying = self.coefficients(expression)
        if matrix is not None and varying is not None:
            return self._weighted_terms(expression.args[varying], matrix)
        shifted = self._times_monomial(expression)
        if shifted is not None:
            return shifted
        return self._contracted_terms(expression)

    def _contracted_terms(self, expression: Apply) -> tuple[Affine, NDArray[np.intp]] | None:
        """The terms of a sum of products of entries, such as a matrix product of two expressions."""
        shapes = [argument.shape for argument in expression.args]
        dependence = expression.atom.dependence(shapes, dict(expression.params))
        if not isinstance(dependence, Contraction):
            return None
        labels, output = dependence.subscripts.split("->")
        lengths: dict[str, int] = {}
        for each, shape in zip(labels.split(","), shapes, strict=True):
            lengths |= dict(zip(each, shape, strict=True))
        grid = np.indices(tuple(lengths.values())).reshape(len(lengths), -1)
        index = dict(zip(lengths, grid, strict=True))
        terms: Affine | None = None
        for each, argument in zip(labels.split(","), expression.args, strict=True):
            places = raveled([index[label] for label in each], argument.shape, grid.shape[1])
            own = self.log(argument, Side.ABOVE).flat().taken(places, (places.size,))
            terms = own if terms is None else terms + own
        assert terms is not None
        return terms, raveled([index[label] for label in output], expression.shape, grid.shape[1])

    def _is_zero(self, expression: Expression) -> bool:
        value = self.constant(expression)
        return value is not None and not any_nonzero(value)

    def _weighted_terms(self, argument: Expression, matrix: Any) -> tuple[Affine, NDArray[np.intp]]:
        """Terms of a sum with constant weights of one sign."""
        terms, targets = self.terms(argument)
        if matrix.nnz and matrix.data.max() <= 0:
            matrix = -matrix
        if matrix.nnz and matrix.data.min() < 0:
            raise NoConeForm(argument, "weights of both signs in a sum of positive terms")
        places, new, weights = weighted_places(targets, matrix, argument.size)
        return terms.taken(places, (places.size,)) + Affine.constant(np.log(weights)), new

    def _term_signs(self, expression: Apply) -> list[Sign]:
        """The signs of the terms of a sum, with those that are subtracted negated."""
        signs = expression.atom.signs(len(expression.args))
        return [
            self.node(argument).sign if sign > 0 else self.node(argument).sign.negated
            for argument, sign in zip(expression.args, signs, strict=True)
        ]

    def _log_difference(self, expression: Apply, side: Side) -> Affine | None:
        """t <= log(a − b − …): exp(t − log a) + exp(log b − log a) + … <= 1."""
        if not expression.atom.summed or side is not Side.BELOW:
            return None
        kinds = self._term_signs(expression)
        if self.node(expression).sign is Sign.NEGATIVE:
            kinds = [kind.negated for kind in kinds]
        leading = [i for i, kind in enumerate(kinds) if kind is Sign.POSITIVE]
        others = [i for i, kind in enumerate(kinds) if i not in leading and kind is not Sign.ZERO]
        if len(leading) != 1 or not others or not all(kinds[i].is_nonpositive for i in others):
            return None
        args, shape = expression.args, expression.shape
        if not self._has_log(args[leading[0]], Side.BELOW):
            return None
        if not all(self._has_log(args[i], Side.ABOVE) for i in others):
            return None
        t = self.rows.unknown(shape)
        top = self.log(args[leading[0]], Side.BELOW).broadcast(shape)
        parts = [(t.flat(), np.arange(expression.size))]
        parts += [spread_terms(*self.terms(args[i]), args[i].shape, shape) for i in others]
        targets = np.concatenate([own for _, own in parts])
        terms = joined([each for each, _ in parts]) - top.flat().taken(targets, (targets.size,))
        self.rows.sum_exp_at_most_one(terms, targets, expression.size)
        return t

    def _has_log(self, expression: Expression, side: Side) -> bool:
        if self.constant(expression) is not None:
            return True
        return self.channels(expression)[1] & side.curvature == side.curvature

    def _times_monomial(self, expression: Apply) -> tuple[Affine, NDArray[np.intp]] | None:
        """A sum times or divided by something log-affine: the terms shifted."""
        arguments = [self.node(a).argument for a in expression.args]
        exponents = expression.atom.exponents(arguments, dict(expression.params))
        if exponents is None or len(exponents) != 2:
            return None
        for sum_place in (0, 1):
            factor, exponent = expression.args[1 - sum_place], exponents[1 - sum_place]
            inner = expression.args[sum_place]
            if exponent is None or not is_one(exponents[sum_place]):
                continue
            constant = self.constant(factor) is not None
            if not constant and self.channels(factor)[1] != AFFINE:
                continue
            terms, targets = spread_terms(*self.terms(inner), inner.shape, expression.shape)
            shift = self.log(factor, Side.EXACT).scaled(exponent).broadcast(expression.shape)
            return terms + shift.flat().taken(targets, (targets.size,)), targets
        return None


def _total(parts: Sequence[Affine], shape: tuple[int, ...]) -> Affine:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.broadcast(shape)
