"""Expressions multiplied out: from the graph of a model to arrays of polynomials (`polynomials`).

What an atom is algebraically stands in the table of atoms: sums, products, contractions, powers, matrix
products, definitions by simpler atoms. A function that is none of these gives new symbols, one for each
entry (`symbols`). Equal functions of equal arguments are the same symbol, however the arguments were
written. All numbers are those of the parameters' current values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.atoms.algebra import Factor
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Always, Argument, Contraction, Dependence, MatrixKind
from hcmodel.engines.recognition import reduced_places
from hcmodel.expressions.graph import Graph, Step, join_sums, merge, topological_order
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import dense
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.affine_matrices import affine_definiteness
from hcmodel.facts.polynomials import (
    MOST_TERMS,
    ONE,
    Coding,
    Sums,
    TooLargeError,
    added,
    contracted,
    stacked,
)
from hcmodel.facts.symbols import Symbols, is_exponential, is_logarithm
from hcmodel.solvers.algebra.marks import all_finite
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import LARGEST_LOG

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Functions of single entries are told apart one by one; arrays of more entries are taken whole.
MOST_SINGLE = 20_000
# Entries of the matrix of a linear function that is found by probing: 160 MB.
MOST_PROBED = 20_000_000

_OF_MATRICES = (ATOMS["inv"], ATOMS["det"], ATOMS["logdet"])


def expand(roots: Sequence[Expression], spare: int = 0) -> tuple[list[Sums], Symbols]:
    """The roots multiplied out, and their symbols; `spare` symbols more can be added later."""
    return expanded(join_sums(merge(with_definitions(roots, topological_order(roots)))), spare)


def expand_model(model: Model, spare: int) -> tuple[list[Sums], Symbols]:
    """The same of the roots of a model."""
    roots = with_definitions(model.roots, model.nodes)
    return expanded(model.graph if roots is model.roots else join_sums(merge(roots)), spare)


def expanded(graph: Graph, spare: int) -> tuple[list[Sums], Symbols]:
    """The same of the roots of a graph."""
    sizes = [math.prod(step.shape) for step in graph.steps if _may_be_symbols(step)]
    symbols = Symbols(Coding.of(2 * sum(sizes) + spare))
    return Expansion(graph, symbols).run(), symbols


def _may_be_symbols(step: Step) -> bool:
    if step.leaf is not None:
        return isinstance(step.leaf, Variable)
    assert step.atom is not None
    return not (step.atom.summed or step.atom.is_multilinear or step.atom.moves_entries)


def with_definitions(
    roots: Sequence[Expression], order: Sequence[Expression]
) -> Sequence[Expression]:
    """The roots with atoms that simpler ones define replaced by those; `order` has all nodes."""
    new: dict[int, Expression] = {}
    kept: list[Expression] = []
    nodes = [node for node in order if isinstance(node, Apply)]
    if not any([node.atom.definition for node in nodes]):  # noqa: C419  (quicker)
        return roots
    for node in nodes:
        arguments = tuple(new.get(id(argument), argument) for argument in node.args)
        if node.atom.definition is not None:
            found = node.atom.definition(arguments, dict(node.params))
            new[id(node)] = found
            kept.append(found)
        elif any(id(argument) in new for argument in node.args):
            new[id(node)] = Apply(node.atom, arguments, node.params, node.shape)
    return [new.get(id(root), root) for root in roots]


class Expansion:
    """One pass over the steps of a graph. A trace of a product needs no whole product."""

    def __init__(
        self, graph: Graph, symbols: Symbols, meaning: Mapping[Variable, Sums] | None = None
    ) -> None:
        self.graph = graph
        self.meaning = meaning or {}  # sums that stand for variables
        self.symbols = symbols
        self.coding = symbols.coding
        self.values: list[Any] = []  # arrays of numbers where constant, else Sums
        traces = [step.arguments[0] for step in graph.steps if self._is_trace(step)]
        self.absorbed = set[int]()  # products of which nothing but the trace is used
        if traces:
            uses = Counter([argument for step in graph.steps for argument in step.arguments])
            uses.update(graph.roots)
            self.absorbed = {number for number in traces if uses[number] == 1}

    def run(self) -> list[Sums]:
        for number, step in enumerate(self.graph.steps):
            self.values.append(self._value(number, step))
        return [self._sums(self.values[root]) for root in self.graph.roots]

    def _is_trace(self, step: Step) -> bool:
        """Whether it is the trace of a product of two matrices."""
        if step.atom is None or len(step.arguments) != 1:
            return False
        shape = self.graph.steps[step.arguments[0]].shape
        if step.atom.dependence([shape], step.params) != Contraction("ii->"):
            return False
        inner = self.graph.steps[step.arguments[0]]
        if inner.atom is None or len(inner.arguments) != 2:
            return False
        return _contraction(inner, [self.graph.steps[i].shape for i in inner.arguments]) is not None

    def _value(self, number: int, step: Step) -> Any:
        if step.leaf is not None:
            if isinstance(step.leaf, Variable):
                if step.leaf in self.meaning:
                    return self.meaning[step.leaf]
                return Sums.symbols(self.symbols.of_variable(step.leaf), self.coding)
            return np.asarray(dense(step.leaf.value), dtype=float)
        if number in self.absorbed:
            return None
        if self.absorbed and step.arguments[0] in self.absorbed and self._is_trace(step):
            inner = self.graph.steps[step.arguments[0]]
            arguments = [self.values[i] for i in inner.arguments]
            if all(isinstance(each, np.ndarray) for each in arguments):
                return step.fold(
                    [
                        inner.fold(self.values) if i in step.arguments else None
                        for i in range(number)
                    ]
                )
            labels = _contraction(inner, [each.shape for each in arguments])
            assert labels is not None
            first, last = list(labels.split("->")[1])
            subscripts = labels.split("->")[0].replace(last, first) + "->"
            return contracted([self._sums(each) for each in arguments], subscripts, ())
        arguments = [self.values[i] for i in step.arguments]
        if all(isinstance(each, np.ndarray) for each in arguments):
            return step.fold(self.values)
        return self.of(step, arguments)

    def of(self, step: Step, arguments: Sequence[Any]) -> Sums:
        """An atom of arguments, sums or arrays of numbers, of which one is no number."""
        check_time()
        try:
            found = self._applied(step, arguments)
        except TooLargeError:
            found = None
        if found is None or not all_finite(found.weight):  # 1 / (x - x)
            return self._function(step, arguments)
        return found.reshaped(step.shape)

    def _sums(self, value: Any) -> Sums:
        return value if isinstance(value, Sums) else Sums.constant(value, self.coding)

    def _applied(self, step: Step, arguments: Sequence[Any]) -> Sums | None:
        """The result where it is a polynomial of the arguments."""
        atom = step.atom
        assert atom is not None
        if atom.summed:
            signs = atom.signs(len(arguments))
            parts = [self._sums(each) for each in arguments]
            return added([p if s == 1 else -p for p, s in zip(parts, signs, strict=True)])
        if atom.moves_entries:
            return self._moved(step, arguments)
        shapes = [each.shape for each in arguments]
        dependence = atom.dependence(shapes, step.params)
        live = [i for i, each in enumerate(arguments) if isinstance(each, Sums)]
        if dependence is Dependence.ELEMENTWISE:
            return self._elementwise(step, arguments, live)
        if isinstance(dependence, Contraction):
            terms = [self._sums(each) for each in arguments]
            return contracted(terms, dependence.subscripts, step.shape)
        if len(arguments) == 1 and 0 in atom.linear_in:
            return self._linear(step, arguments[0], dependence)
        if atom.cone_form is cones.PRODUCT:
            return self._multiplied(step, arguments[0])
        if atom in _OF_MATRICES and isinstance(arguments[0], Sums):
            return self._of_diagonal(atom, arguments[0])
        factors = atom.factors([Argument(shape) for shape in shapes], step.params)
        if factors and not any(factor.inverted for factor in factors):
            return self._product([self._factor(arguments, factor) for factor in factors])
        if len(live) == 1 and live[0] in atom.linear_in:
            return self._probed(step, arguments, live[0])
        return None

    def _of_diagonal(self, atom: Atom, matrix: Sums) -> Sums | None:
        """The inverse of a diagonal matrix, its determinant, or the logarithm of that, by its entries."""
        order = matrix.shape[0]
        if (matrix.entry % (order + 1) != 0).any() or not matrix.counts[:: order + 1].all():
            return None
        diagonal = matrix.taken(np.arange(order) * (order + 1), (order,))
        if atom is ATOMS["inv"]:
            reciprocals = self._power(diagonal, -1.0)
            places = np.full((order, order), -1)
            np.fill_diagonal(places, np.arange(order))
            return (
                None if reciprocals is None else reciprocals.taken(places.reshape(-1), places.shape)
            )
        if (self.symbols.interval(diagonal)[0] < 0).any():
            return None  # the logarithm of a determinant is that of a definite matrix
        if atom is ATOMS["logdet"]:
            logs = [
                function_of(self.symbols, ATOMS["log"], {}, [each], ())
                for each in diagonal.entries()
            ]
            return added(logs)
        product = Sums.constant(1.0, self.coding)
        for each in diagonal.entries():
            product = product.times(each)
        return product

    def _multiplied(self, step: Step, argument: Sums) -> Sums | None:
        """The product of the entries along axes, where each of them is one term."""
        if argument.counts.max(initial=0) > 1 or not argument.size:
            return None
        lines = reduced_places(step, argument.shape)
        if lines is None:
            return None
        order = np.argsort(lines, kind="stable")
        return argument.multiplied(order.reshape(math.prod(step.shape), -1), step.shape)

    def _moved(self, step: Step, arguments: Sequence[Any]) -> Sums:
        """Movements of entries, found by moving their numbers; 0 is a zero of the result."""
        assert step.atom is not None
        parts = [self._sums(each) for each in arguments]
        starts = np.cumsum([1, *(part.size for part in parts)])
        numbers = [
            start + np.arange(part.size).reshape(part.shape)
            for start, part in zip(starts, parts, strict=False)
        ]
        moved = step.atom.function(np, *numbers, **step.params)
        places = np.asarray(moved, dtype=np.intp).reshape(-1) - 1
        whole = parts[0] if len(parts) == 1 else stacked(parts, self.coding)
        return whole.taken(places, step.shape)

    def _elementwise(self, step: Step, arguments: Sequence[Any], live: list[int]) -> Sums | None:
        atom = step.atom
        assert atom is not None
        if len(live) == 1 and live[0] in atom.linear_in:
            own = arguments[live[0]]
            ones = [np.ones(own.shape) if i in live else each for i, each in enumerate(arguments)]
            with np.errstate(all="ignore"):
                factors = np.asarray(atom.function(np, *ones, **step.params), dtype=float)
            if not np.isfinite(factors).all():
                return None
            wide: Sums = own.broadcast(step.shape)
            return wide.scaled(factors)
        asked = () if isinstance(atom.exponents, Always) else arguments
        facts = [self.symbols.argument(self._sums(each)) for each in asked]
        exponents = atom.exponents(facts, step.params)
        if exponents is None or any(each is None for each in exponents):
            return self._logarithmic(step, arguments)
        if any(i >= len(exponents) for i in live):
            return None
        product: Sums | None = None
        for argument, exponent in zip(arguments, exponents, strict=False):
            factor = self._power(self._sums(argument).broadcast(step.shape), exponent)
            if factor is None:
                return None
            product = factor if product is None else product.times(factor)
        return product

    def _power(self, base: Sums, exponent: Any) -> Sums | None:
        """A power, entry by entry.

        Natural powers are multiplied out where the base is at most linear: what is squared is worth
        more whole. Others are symbols of single factors where these are positive, else of the base.
        """
        powers, group = np.unique(np.asarray(exponent, dtype=float), return_inverse=True)
        if powers.size != 1:
            return self._powers(
                base, powers, np.broadcast_to(group.reshape(np.shape(exponent)), base.shape)
            )
        power = float(powers[0])
        if power == 0:  # for what is 0 too, as in numpy
            return Sums.constant(np.ones(base.shape), self.coding)
        if base.is_constant:
            with np.errstate(all="ignore"):
                return Sums.constant(np.power(base.value, power), self.coding)
        if power == 1:
            return base
        single = base.counts.max(initial=0) <= 1
        if power == 2 and (single or base.degrees.max(initial=0) <= 1):
            return base.times(base)
        whole = power == round(power)
        splits = whole or self._splits(base, power)
        if not (single and splits and base.counts.all()):
            scale, core = self._normalised(base)
            if scale is None:
                return None
            numbers = self._single(ATOMS["power"], {}, [core], [np.asarray(power)])
            with np.errstate(all="ignore"):
                return Sums.symbols(numbers, self.coding).scaled(scale**power)
        return self._monomial_power(base, power)

    def _powers(self, base: Sums, powers: FloatArray, group: NDArray[np.intp]) -> Sums | None:
        """Powers with different exponents: `group` has the number of that of each entry."""
        flat = group.reshape(-1)
        places = [np.flatnonzero(flat == each) for each in range(powers.size)]
        parts: list[Sums] = []
        for own, power in zip(places, powers.tolist(), strict=True):
            found = self._power(base.taken(own, (own.size,)), power)
            if found is None:
                return None
            parts.append(found)
        order = np.argsort(np.concatenate(places))
        return stacked(parts, self.coding).taken(order, base.shape)

    def _splits(self, base: Sums, power: float) -> bool:
        """Whether a power of products is the product of the powers: none of the factors is negative."""
        if (self.symbols.interval(base)[0] > 0).all():
            return True
        least = min((self.symbols.lower_of(int(each)) for each in base.symbols_used()), default=0.0)
        return power > 0 and least >= 0 and bool((base.weight > 0).all())

    def _monomial_power(self, base: Sums, power: float) -> Sums:
        """(w · a · b)^p as w^p · a^p · b^p, symbol by symbol."""
        digits, negative = base.digits, base.weight < 0
        signs = np.where(negative, (-1.0) ** power if power == round(power) else np.nan, 1.0)
        with np.errstate(all="ignore"):
            result = Sums.constant(np.abs(base.weight) ** power * signs, self.coding)
        for digit in digits.T:
            if not digit.any():
                continue
            used = digit > 0
            own = Sums.symbols(np.where(used, digit - 1, 0), self.coding)
            if power == round(power) and 0 < power <= self.coding.most:
                raised = own
                for _ in range(int(power) - 1):
                    raised = raised.times(own)
            else:
                parts = [self._symbol_power(int(each) - 1, power) for each in own.key]
                raised = stacked(parts, self.coding).reshaped(own.shape)
            one = Sums.constant(np.where(used, 0.0, 1.0), self.coding)
            result = result.times(raised.scaled(used) + one)
        return result.reshaped(base.shape)

    def _symbol_power(self, symbol: int, power: float) -> Sums:
        """A power of one symbol; exp(s)^p is exp(p · s)."""
        function = self.symbols.function(symbol)
        if function is not None and is_exponential(function.atom):
            exponent = function.arguments[0].scaled(power)
            number = self._single(function.atom, function.params, [exponent], [])
            return Sums.symbols(number, self.coding)
        base, inner = self.symbols.power(symbol)
        roots = not (inner.is_integer() or (inner * power).is_integer())  # of what is not negative
        if inner != 1 and not roots and not float(self.symbols.interval(base)[0]) >= 0:
            base, inner = Sums.symbols(np.array(symbol), self.coding), 1.0
        if inner * power == 1:
            return base
        return Sums.symbols(np.array(self.symbols.of_power(base, inner * power)), self.coding)

    def _normalised(self, base: Sums) -> tuple[FloatArray | None, Sums]:
        """Each entry as a positive number times a sum of which the first weight is 1 or −1."""
        counts = base.counts
        if not counts.all():
            return None, base
        first = np.abs(base.weight[np.cumsum(counts) - counts]).reshape(base.shape)
        return first, base.scaled(1.0 / first)

    def _logarithmic(self, step: Step, arguments: Sequence[Any]) -> Sums | None:
        """Exponentials and logarithms, which turn sums into products and products into sums."""
        atom = step.atom
        assert atom is not None
        if len(arguments) != 1:
            return None
        base = self._sums(arguments[0])
        if is_exponential(atom):
            return self._exponential(step, base)
        if is_logarithm(atom):
            return self._logarithm(base)
        return None

    def _exponential(self, step: Step, exponent: Sums) -> Sums | None:
        """exp(c + p · log a + s) = exp(c) · a^p · exp(s), where a is not negative."""
        assert step.atom is not None
        if exponent.size > MOST_SINGLE or (np.abs(exponent.value) > LARGEST_LOG).any():
            return None  # exp(c) · exp(s) is not exp(c + s) where exp(c) is 0 or infinite
        rest = exponent.chosen(exponent.key != ONE)
        if not rest.counts.all() or self._logarithms(exponent).any():
            parts = [self._one_exponential(step, each) for each in exponent.entries()]
            return stacked(parts, self.coding).reshaped(exponent.shape)
        numbers = self._single(step.atom, step.params, [rest], [])
        with np.errstate(all="ignore"):
            return Sums.symbols(numbers, self.coding).scaled(np.exp(exponent.value))

    def _one_exponential(self, step: Step, exponent: Sums) -> Sums:
        """The same for a scalar."""
        assert step.atom is not None
        logs = self._logarithms(exponent)
        with np.errstate(all="ignore"):
            product = Sums.constant(np.exp(exponent.value), self.coding)
        rest = exponent.chosen((exponent.key != ONE) & ~logs)
        for place in np.flatnonzero(logs).tolist():
            base = self.symbols.logarithm(int(exponent.key[place]) - 1)
            power = None if base is None else self._power(base, float(exponent.weight[place]))
            if power is None:
                rest = rest + exponent.chosen(np.arange(exponent.key.size) == place)
            else:
                product = product.times(power)
        if rest.key.size:
            number = self._single(step.atom, step.params, [rest], [])
            product = product.times(Sums.symbols(number, self.coding))
        return product

    def _logarithms(self, sums: Sums) -> NDArray[np.bool_]:
        """Which terms are a number times the logarithm of something that is not negative."""
        found = np.zeros(sums.key.size, dtype=bool)
        for place in np.flatnonzero(sums.degrees == 1).tolist():
            base = self.symbols.logarithm(int(sums.key[place]) - 1)
            found[place] = base is not None and bool(self.symbols.interval(base)[0] >= 0)
        return found

    def _logarithm(self, base: Sums) -> Sums | None:
        """log(w · a · b^p · exp(s)) = log w + log a + p · log b + s, for positive factors."""
        if base.counts.max(initial=0) > 1 and base.size <= MOST_SINGLE:
            over = [self._over_denominator(each) for each in base.entries()]
            made = [each for each in over if each is not None]
            if len(made) < base.size:
                return None
            base, self.symbols.logs_rewritten = (
                stacked(made, self.coding).reshaped(base.shape),
                True,
            )
        if base.counts.max(initial=0) > 1 or not base.counts.all() or (base.weight <= 0).any():
            return None
        parts = [Sums.constant(np.log(base.weight).reshape(base.shape), self.coding)]
        for digit in base.digits.T:
            used = digit > 0
            if not used.any():
                continue
            logs = [self._log_symbol(int(each) - 1) if each else None for each in digit]
            if any(each is None for each, here in zip(logs, used, strict=True) if here):
                return None
            none = Sums.constant(0.0, self.coding)
            whole = stacked([none if each is None else each for each in logs], self.coding)
            parts.append(whole.reshaped(base.shape))
        return added(parts)

    def _over_denominator(self, base: Sums) -> Sums | None:
        """A scalar as one term, where its common denominator makes it one: 1 − 1/(1 + v) = v/(1 + v)."""
        if base.key.size < 2:
            return base
        digits = base.digits
        for symbol in base.symbols_used().tolist():
            denominator, power = self.symbols.power(symbol)
            over = digits == symbol + 1
            if power != -1 or (over.sum(axis=1) > 1).any():
                continue
            here = over.any(axis=1)
            keys = self.coding.keys(np.where(over, 0, digits)[here])
            alone = Sums.merged((), base.entry[here], keys, base.weight[here], self.coding)
            numerator = base.chosen(~here).times(denominator) + alone
            if numerator.key.size == 1:
                return numerator.times(Sums.symbols(np.array(symbol), self.coding))
        return None

    def _log_symbol(self, symbol: int) -> Sums | None:
        """The logarithm of a symbol that is not negative."""
        check_time()
        function = self.symbols.function(symbol)
        base, power = self.symbols.power(symbol)
        inside = self._determinant(base)
        if inside is not None:
            found = self._log_determinant(inside)
            return None if found is None else found.scaled(power)
        if self.symbols.lower_of(symbol) < 0:
            return None
        if function is not None and is_exponential(function.atom):
            return function.arguments[0]
        if power != 1 and not (self.symbols.interval(base)[0] >= 0):
            base, power = Sums.symbols(np.array(symbol), self.coding), 1.0
        number = self._single(ATOMS["log"], {}, [base], [])
        return Sums.symbols(number, self.coding).scaled(power)

    def _determinant(self, base: Sums) -> Sums | None:
        """The matrix of which a scalar is the determinant; None where it is none."""
        if base.key.size != 1 or base.weight[0] != 1:
            return None
        function = self.symbols.function(int(base.key[0]) - 1)
        if function is None or function.atom.cone_form is not cones.DETERMINANT:
            return None
        return function.arguments[0]

    def _log_determinant(self, matrix: Sums) -> Sums | None:
        """log det of a matrix that is semidefinite: definite where det is positive."""
        if not self._is_multiple_of_variable(matrix) and (
            affine_definiteness(matrix, self.symbols) < MatrixKind.SEMIDEFINITE
        ):
            return None
        self.symbols.logs_rewritten = True
        return Sums.symbols(
            np.array(self.symbols.of_function(ATOMS["logdet"], {}, (matrix,), ())), self.coding
        )

    def _is_multiple_of_variable(self, matrix: Sums) -> bool:
        """Whether a matrix is a positive multiple of a variable that is semidefinite."""
        source = self.symbols.source(int(matrix.key[0]) - 1)[0] if matrix.key.size else None
        if not isinstance(source, Variable) or not source.set.is_curved:
            return False
        own = Sums.symbols(self.symbols.of_variable(source), self.coding)
        return bool(matrix.weight[0] > 0 and matrix.equals(own.scaled(matrix.weight[0])))

    def _linear(
        self, step: Step, argument: Sums, dependence: Dependence | Contraction
    ) -> Sums | None:
        """Sums along axes, and other linear functions of one array, found by probing."""
        atom = step.atom
        assert atom is not None
        if dependence is Dependence.REDUCTION:
            groups = reduced_places(step, argument.shape)
            if groups is not None:
                weight = atom.function(np, np.ones(argument.shape), **step.params)
                each = float(np.sum(weight)) / max(argument.size, 1)
                found = argument.grouped(groups, step.shape)
                return found if each == 1 else found.scaled(each)
        return self._probed(step, [argument], 0)

    def _probed(self, step: Step, arguments: Sequence[Any], place: int) -> Sums:
        """A linear function of one argument, by its values at unit arrays; the others are numbers."""
        argument = arguments[place]
        assert step.atom is not None
        if argument.size * math.prod(step.shape) > MOST_PROBED:
            raise TooLargeError
        columns = []
        for unit in np.eye(argument.size).reshape(argument.size, *argument.shape):
            given = [unit if i == place else each for i, each in enumerate(arguments)]
            columns.append(np.ravel(step.atom.function(np, *given, **step.params)))
        return mapped(np.stack(columns, axis=1), argument, step.shape)

    def _factor(self, arguments: Sequence[Any], factor: Factor) -> Sums:
        own = self._sums(arguments[factor.place])
        if len(own.shape) == 1:
            own = own.reshaped((own.size, 1))
        return own.transposed() if factor.transposed else own

    def _product(self, factors: Sequence[Sums]) -> Sums:
        product = factors[0]
        for factor in factors[1:]:
            product = product @ factor
        return product

    def _function(self, step: Step, arguments: Sequence[Any]) -> Sums:
        """The entries of a function as symbols of their own."""
        atom = step.atom
        assert atom is not None
        sums = [self._sums(each) for each in arguments]
        shapes = [each.shape for each in sums]
        single = atom.dependence(shapes, step.params) is Dependence.ELEMENTWISE
        if single and math.prod(step.shape) <= MOST_SINGLE:
            wide = [each.broadcast(step.shape) for each in sums]
            return Sums.symbols(self._single(atom, step.params, wide, []), self.coding)
        numbers = self.symbols.of_function(atom, step.params, sums, step.shape)
        return Sums.symbols(numbers, self.coding)

    def _single(
        self, atom: Atom, params: dict[str, Any], wide: Sequence[Sums], numbers: Sequence[Any]
    ) -> Numbers:
        """The symbols of a function of single entries; `numbers` are further arguments."""
        more = tuple(Sums.constant(each, self.coding) for each in numbers)
        found = [
            int(self.symbols.of_function(atom, params, (*entries, *more), ()))
            for entries in zip(*(each.entries() for each in wide), strict=True)
        ]
        return np.array(found, dtype=np.int64).reshape(wide[0].shape)


def function_of(
    symbols: Symbols, atom: Atom, params: dict[str, Any], arguments: Sequence[Sums], shape: Shape
) -> Sums:
    """An atom of arrays of sums: multiplied out where it can be, else new symbols."""
    step = Step(None, atom, params, tuple(range(len(arguments))), shape)
    if all(each.is_constant for each in arguments):
        with np.errstate(all="ignore"):
            number = step.fold([each.value for each in arguments])
        if not all_finite(number):
            raise TooLargeError  # 1/0 has no place in a sum
        return Sums.constant(number, symbols.coding)
    values = [each.value if each.is_constant else each for each in arguments]
    return Expansion(Graph((), ()), symbols).of(step, values)


def expanded_with(
    symbols: Symbols, expression: Expression, meaning: Mapping[Variable, Sums]
) -> Sums:
    """An expression over symbols at hand: `meaning` has the sums that its variables stand for."""
    roots = with_definitions([expression], topological_order([expression]))
    graph = join_sums(merge(roots))
    return Expansion(graph, symbols, meaning).run()[0]


def _contraction(step: Step, shapes: Sequence[Shape]) -> str | None:
    """The labels of a contraction of two arguments that gives a matrix."""
    assert step.atom is not None
    found = step.atom.dependence(shapes, step.params)
    if not isinstance(found, Contraction) or len(step.shape) != 2:
        return None
    return found.subscripts


def mapped(matrix: Any, sums: Sums, shape: Shape) -> Sums:
    """A constant matrix applied to the entries."""
    rows, columns = np.nonzero(matrix)
    if int(sums.counts[columns].sum()) > MOST_TERMS:
        raise TooLargeError  # before they are listed, which takes seconds for 20 million
    wide = sums.taken(columns, (columns.size,)).scaled(np.asarray(matrix)[rows, columns])
    return wide.grouped(rows, shape)
