"""A model multiplied out, which maps rewrite: objective and rows as sums over one table of symbols.

A map only adds symbols and replaces terms, so that what it does not touch stays as it is. The model of
the last step becomes expressions again in `assembly`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.expansion import expand_model
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.algebra.symmetric import upper_entries

FloatArray = NDArray[np.float64]
Values = Mapping[Variable, FloatArray]

# New symbols that maps may add, as a multiple of those that a model has.
SPARE = 6
# The order of a block matrix in which an inequality between matrices is linear, as a multiple of theirs.
BLOCK = 3


@dataclass(frozen=True, eq=False)
class Image:
    """(exp(c v) − 1)/c of the entries v of a row, and v itself where c is 0: the slope at v = 0 is 1.

    Where the scale B is not 0, B·log(1 + v/B) is taken in the place of v, and c/B in that of c. It is in
    variables of the model in which the row had this image, which later maps may take out.
    """

    rates: FloatArray
    scales: Sums

    def of(self, values: FloatArray, scales: FloatArray) -> FloatArray:
        """The image of the values of a row; `scales` are those of the scales."""
        rates = np.where(self.rates == 0, 1.0, self.rates)
        with np.errstate(all="ignore"):
            plain = np.expm1(rates * values) / rates
            scaled = np.expm1(rates * np.log1p(values / scales)) * scales / rates
        found = np.where(scales == 0, plain, scaled)
        return np.where(self.rates == 0, values, found)


@dataclass(frozen=True, eq=False)
class Row:
    """A constraint, sums <= 0 or == 0 entry by entry.

    `position` is that of the user's constraint, None for rows that a map adds. The row is `factor`
    times the user's, entry by entry, where a map multiplied it by something positive.
    """

    sums: Sums
    sense: str
    position: int | None
    factor: Sums | None = None
    entries: NDArray[np.intp] | None = None
    """The entries that count; None: all of them."""
    congruence: Sums | None = None
    """A symmetric matrix that the user's row is multiplied by from both sides, beside the factor."""
    leading: int | None = None
    """Of a block matrix, the size of its first block, which alone is the user's constraint."""
    image: Image | None = None
    """An increasing function of the user's row that the row is, before it is multiplied."""
    bound: Sums | None = None
    """Of a row that stands for bounds of a variable that is gone: what they say of that variable."""


@dataclass(frozen=True, eq=False)
class Expanded:
    """The objective, to be minimised, and the rows."""

    symbols: Symbols
    objective: Sums
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...]
    is_original: bool = False
    """Whether no map has rewritten it yet."""
    written: Expression | None = None
    """The objective as it is written, where no map has rewritten it."""
    closed: frozenset[Variable] = frozenset()
    """Variables that are 0 at points of the model, though something may be divided by them: by the
    closure of a function, such as u²/s at u = s = 0."""

    @staticmethod
    def of(model: Model, room: int = 1) -> Expanded:
        """A minimisation multiplied out, with `room` times the usual number of spare symbols."""
        sums, symbols = expand_model(model, room * spare_symbols(model))
        made = Expanded.of_sums(model, sums, symbols)
        return replace(made, is_original=True, written=model.objective.expression)

    @staticmethod
    def of_sums(model: Model, sums: Sequence[Sums], symbols: Symbols) -> Expanded:
        """From the objective and both sides of each row, with the names that the model has for them."""
        symbols.first_index = 0 if model.source is None else 1
        symbols.row_names = tuple(
            constraint.name or f"c{position + 1}"
            for position, constraint in enumerate(model.constraints)
        )
        rows = []
        for position, constraint in enumerate(model.constraints):
            left, right = sums[1 + 2 * position], sums[2 + 2 * position]
            if constraint.sense == ">=":
                left, right = right, left
            difference = (left - right).broadcast(constraint.shape)
            sense = "==" if constraint.sense == "==" else "<="
            entries = entries_of(constraint, difference)
            rows.append(Row(difference, sense, position, entries=entries))
        return Expanded(symbols, sums[0].reshaped(()), tuple(rows), model.variables)

    @cached_property
    def partners(self) -> dict[Variable, list[Variable]]:
        """The variables in products with entries of matrices, as far as maps have asked for them."""
        return {}

    def name_of(self, row: Row) -> str:
        """What people call a row."""
        return "a row" if row.position is None else self.symbols.row_names[row.position]

    @property
    def arrays(self) -> list[Sums]:
        """The objective and all rows."""
        return [self.objective, *(row.sums for row in self.rows)]

    def equations_of(self, variable: Variable) -> list[Row]:
        """The equalities in which a variable stands, where these are as many as it has entries."""
        own = self.symbols.of_variable(variable)
        rows = [row for row in self.rows if row.sense == "==" and row.sums.holding(own).any()]
        whole = all(row.entries is None and row.factor is None for row in rows)
        return rows if whole and sum(row.sums.size for row in rows) == variable.size else []

    def everywhere(self) -> Iterator[Sums]:
        """The objective, all rows, and the arguments of functions in them."""
        yield from self.arrays
        for function in self.functions():
            yield from function.arguments

    def functions(self) -> list[Opaque]:
        """The functions that are symbols, each once."""
        return self._functions

    def used(self) -> NDArray[np.int64]:
        """The symbols that occur, those inside of functions among them."""
        return self._used

    @cached_property
    def _functions(self) -> list[Opaque]:
        return self.symbols.functions(self.used())

    @cached_property
    def _used(self) -> NDArray[np.int64]:
        found, seen = [], set[int]()
        pending = self.arrays
        while pending:
            used = pending.pop().symbols_used()
            found.append(used)
            for function in self.symbols.functions(used):
                if function.start not in seen:
                    seen.add(function.start)
                    pending.extend(function.arguments)
        return np.unique(np.concatenate(found))


def spare_symbols(model: Model) -> int:
    """How many symbols maps may add to a model."""
    orders = [each.shape[0] for each in model.variables if each.set.is_curved]
    return SPARE * (model.layout.size + 8) + BLOCK**2 * sum(order**2 for order in orders)


def entries_of(constraint: Any, difference: Sums) -> NDArray[np.intp] | None:
    """The entries of a constraint that count: of an equality between symmetric matrices, a triangle."""
    if constraint.entries is not None:
        return np.asarray(constraint.rows)
    shape = difference.shape
    square = len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1
    if constraint.sense == "==" and square and difference.equals(difference.transposed()):
        return upper_entries(shape[0])
    return None


@dataclass(eq=False)
class Evaluation:
    """Numbers for symbols, from values of the variables; functions are evaluated when asked for."""

    symbols: Symbols
    values: Values
    _functions: dict[int, FloatArray] = field(default_factory=dict)

    def of(self, sums: Sums, *, sizes: bool = False) -> FloatArray:
        """The values of an array of sums; with `sizes`, the sums of the sizes of their terms."""
        used = sums.symbols_used()
        numbers = np.ones(
            int(used[-1]) + 2 if used.size else 1
        )  # the first one is the empty factor
        for source, places, symbols in self.symbols.grouped(used):
            own = self.values[source] if isinstance(source, Variable) else self._function(source)
            numbers[symbols + 1] = np.asarray(own).reshape(-1)[places]
        products = sums.weight * numbers[sums.digits].prod(axis=1)
        products = np.abs(products) if sizes else products
        found = np.bincount(sums.entry, weights=products, minlength=sums.size)
        return np.asarray(found.reshape(sums.shape), dtype=float)

    def _function(self, function: Opaque) -> FloatArray:
        found = self._functions.get(function.start)
        if found is None:
            arguments = [self.of(each) for each in function.arguments]
            try:
                with np.errstate(all="ignore"):
                    found = np.asarray(function.atom.function(np, *arguments, **function.params))
            except np.linalg.LinAlgError:
                found = np.full(function.shape, np.nan)
            self._functions[function.start] = found
        return found


def replaced(expanded: Expanded, arrays: Sequence[Sums], **changes: Any) -> Expanded:
    """The same with other arrays for objective and rows, in the order of `arrays`."""
    rows = tuple(
        replace(row, sums=sums) for row, sums in zip(expanded.rows, arrays[1:], strict=True)
    )
    return replace(expanded, objective=arrays[0], rows=rows, **changes)
