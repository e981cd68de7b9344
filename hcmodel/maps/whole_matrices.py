"""Matrices that are written entry by entry, as matrices; the maps of control ask for those.

None of these rewritings changes a value; parts that do not match stay as they are.

- Rows. An equation between symmetric matrices is often a row for each of its entries, from loops over i
  and j, for all pairs or for a triangle, or one long vector, from `kron` and `reshape`. Equalities that
  have a semidefinite X of order n in products, and n² or n (n + 1)/2 entries together, become one
  equation, in the order in which they are written. A full one has to be symmetric, multiplied out.
- Gains. K may come as several vectors, as scalars, or as a vector that is reshaped. In the equation of a
  closed loop an entry K[a,i] occurs in products K[a,i] P[i,l] with weights that are the same for all i.
  So i is the index that all these products have in common, and entries of one row have the same weights.
  In the equation of a cost matrix, or of a filter, it is an index of all the entries that K[a,i] is in.
- Matrices. P = [[p₁, p₂], [p₂, p₃]] of numbers or of blocks is one matrix where a row P ⪰ C with C ⪰ 0
  says that it is semidefinite, and where all its entries are different ones (`assembled_matrices`).
- Shifts. X + c I in place of a semidefinite X, as P = X + c I says that P is definite. Where
  K[a,i] X[i,i] has the weight w and K[a,i] alone the weight w c, it is K[a,i] P[i,i].
- Eigenvalues. A row λ_min(P) >= c becomes a bound on the eigenvalues of P.
- Numbers. A p >= 0 with k² p in an equality, as the variance of a single state, is a 1 × 1 matrix.

Whether this reading of the model helps is decided by the maps after this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import ONE, Sums, stacked
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten
from hcmodel.maps.map import Map, Obstacle, Points, SameVariables, Step, Together, fresh_name
from hcmodel.maps.matrix_algebra.assembled_matrices import Assembled, assembled
from hcmodel.maps.matrix_algebra.product_terms import places_of
from hcmodel.maps.matrix_product import partners
from hcmodel.records import replace
from hcmodel.solvers.algebra.symmetric import upper_entries
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Entries of gains that are looked at one by one: a plant with 6 inputs and 30 states has 180.
MOST_ENTRIES = 400


class Matrices(Map):
    """Rows, gains and numbers as matrices; see the module."""

    name = "matrices"
    summary = "entries of matrix equations and of gains that are written one by one, as matrices"
    literature = "Horn, Johnson 1991, section 4.3"
    example = """
    # A regulator, number by number: x1' = x2, x2' = 0.5*x2 - x1 + input, with the input k1*x1 + k2*x2.
    var P[2,2] symmetric in psd(0)
    var k1, k2

    minimize P[1,1] + P[2,2] + k1^2*P[1,1] + 2*k1*k2*P[1,2] + k2^2*P[2,2]

    subject to
        first: 2*P[1,2] + 1 == 0
        both: P[2,2] + (k1 - 1)*P[1,1] + (k2 + 0.5)*P[1,2] == 0
        second: 2*(k1 - 1)*P[1,2] + 2*(k2 + 0.5)*P[2,2] + 1 == 0
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        steps: list[Step] = []
        matrices = [each for each in model.variables if each.set.is_symmetric]
        for variable in [] if matrices else _numbers(model):
            steps.append(_AsMatrix(model, variable))
            model = steps[-1].after
        if not matrices and not steps:
            return
        for numbers, least in assembled(model):
            steps.append(Assembled(model, numbers, least))
            model = steps[-1].after
        for row, variable, least in _eigenvalue_rows(model) if model.functions() else ():
            steps.append(_Definite(model, row, variable, least))
            model = steps[-1].after
        for matrix in _curved(model):
            gains = [each for each in partners(model, matrix) if each.set.is_box]
            shift = _shift(model, matrix, gains)
            if shift:
                steps.append(_Shifted(model, matrix, shift))
                model = steps[-1].after
        for after, gathered in _arrangements(model):
            found = [*steps, *gathered, *_stacked(after)]
            if found:
                yield _joined(found)


def _curved(model: Expanded) -> list[Variable]:
    return [each for each in model.variables if each.set.is_curved]


def _joined(steps: Sequence[Step]) -> Step:
    """Steps as one, which is searched before anything else."""
    step = steps[0] if len(steps) == 1 else _Several(steps)
    step.merged = {place: each for one in steps for place, each in one.merged.items()}
    step.first, step.choice = True, next((s.choice for s in steps if s.choice is not None), None)
    return step


class _Several(Together):
    """Steps as one, of which some move points onto rows."""

    def settle(self, point: Points) -> None:
        for place, step in enumerate(self._steps):
            step.settle(point)
            for earlier in reversed(self._steps[:place]):
                earlier.back(point)
            step.forward(point)


# ---- rows


def _arrangements(model: Expanded) -> Iterator[tuple[Expanded, list[Step]]]:
    """The model with rows of entries as matrix equations, in each arrangement that may be meant."""
    groups, is_arranged = _loose(model), False
    for turned in (False, True) if groups else ():
        made = [_whole(rows, order, turned) for rows, order in groups]
        found = [each for each in made if each is not None]
        if found:
            step, is_arranged = _Gathered(model, found, turned), True
            yield step.after, [step]
        if all(order < 3 or _is_full(rows, order) for rows, order in groups):
            break  # both triangles are the same then
    if not is_arranged:
        yield model, []


def _loose(model: Expanded) -> list[tuple[list[Row], int]]:
    """Equalities that make up matrices, with the orders of these.

    They have the entries of a semidefinite variable in products, or alone beside other products, as those
    of the next stage are.
    """
    rows = [
        row
        for row in model.rows
        if row.sense == "==" and row.position is not None and _is_plain(row)
        if row.sums.degrees.max(initial=0) > 1
    ]
    found = list[tuple[list[Row], int]]()
    for inside in (True, False) if rows else ():
        for matrix in _curved(model):
            own, order = model.symbols.of_variable(matrix), matrix.shape[0]
            chosen = [row for row in rows if _holds(row, own, inside)]
            size = sum(_places(row).size for row in chosen)
            if chosen and size in (order**2, order * (order + 1) // 2):
                found.append((chosen, order))
                rows = [row for row in rows if row not in chosen]
    return found


def _holds(row: Row, symbols: Numbers, inside: bool) -> bool:
    """Whether a row has some of these symbols, in products or alone."""
    here = row.sums.holding(symbols)
    return bool((here & ((row.sums.degrees > 1) == inside)).any())


def _is_plain(row: Row) -> bool:
    """Whether a row is the user's as it is, and not the equation of a whole matrix already."""
    if row.factor is not None or row.congruence is not None or row.image is not None:
        return False
    shape = row.sums.shape
    if len(shape) != 2 or shape[0] != shape[1] or row.entries is None:
        return shape != (1, 1)
    counts = row.sums.counts.reshape(shape)
    return bool((counts != counts.T).any())  # entries of a triangle


def _places(row: Row) -> Numbers:
    """The entries of a row that count, in order."""
    found = np.arange(row.sums.size) if row.entries is None else np.sort(row.entries)
    return np.asarray(found, dtype=np.int64)


def _is_full(rows: Sequence[Row], order: int) -> bool:
    return sum(_places(row).size for row in rows) == order**2


def _whole(
    rows: Sequence[Row], order: int, lower: bool
) -> tuple[Row, Sequence[Row], Numbers] | None:
    """One row for all, with the place in it of each entry; triangles are upper or lower ones."""
    coding = rows[0].sums.coding
    entries = [row.sums.taken(np.array([place]), ()) for row in rows for place in _places(row)]
    numbers = np.arange(order**2).reshape(order, order)
    if _is_full(rows, order):
        places = numbers.reshape(-1)
        sums = stacked(entries, coding).reshaped((order, order))
        if not sums.equals(sums.transposed()):
            return None
    else:
        places = numbers[np.tril_indices(order) if lower else np.triu_indices(order)]
        inside = np.zeros(order**2, dtype=np.intp)
        inside[places] = inside[numbers.T.reshape(-1)[places]] = np.arange(places.size)
        sums = stacked(entries, coding).taken(inside, (order, order))
    whole = Row(sums, "==", rows[0].position, entries=upper_entries(order))
    return whole, rows, places


class _Gathered(SameVariables):
    """Rows of entries as equations between matrices."""

    name = "matrices"

    def __init__(
        self,
        model: Expanded,
        groups: Sequence[tuple[Row, Sequence[Row], Numbers]],
        lower: bool,
    ) -> None:
        gone = {row for _, rows, _ in groups for row in rows}
        first = {rows[0]: whole for whole, rows, _ in groups}
        kept = [first.get(row, row) for row in model.rows if row in first or row not in gone]
        self.after = replace(model, rows=tuple(kept), is_original=False)
        self.merged = {rows[0].position or 0: _origins(rows, places) for _, rows, places in groups}
        self.choice = "lower" if lower else "upper"


def _origins(rows: Sequence[Row], places: Numbers) -> tuple[tuple[int, Numbers, Numbers], ...]:
    """The position of each row, its entries that count, and their places in the matrix."""
    found, start = [], 0
    for row in rows:
        own = _places(row)
        assert row.position is not None
        found.append((row.position, own, places[start : start + own.size]))
        start += own.size
    return tuple(found)


# ---- gains


def _shift(model: Expanded, matrix: Variable, gains: Sequence[Variable]) -> float:
    """The c > 0 for which entries of gains stand with X + c I in equalities; 0 where there is none."""
    symbols = model.symbols
    ends = [(int(own.min()), int(own.max())) for own in map(symbols.of_variable, gains)]
    for row in model.rows if gains else ():
        sums = row.sums
        if row.sense != "==":
            continue
        for low, high in ends:  # a key of a single symbol is its digit
            for place in np.flatnonzero((sums.key > low) & (sums.key <= high + 1)).tolist():
                shift = _ratio(sums, place, np.diag(symbols.of_variable(matrix)) + 1)
                if shift is not None:
                    return max(shift, 0.0)
    return 0.0


def _ratio(sums: Sums, place: int, diagonal: Numbers) -> float | None:
    """The weight of a term relative to that of its product with an entry of a diagonal."""
    pairs = sums.coding.times(np.repeat(sums.key[place], diagonal.size), diagonal)
    both = (sums.entry == sums.entry[place]) & np.isin(sums.key, pairs)
    return float(sums.weight[place] / sums.weight[both][0]) if both.any() else None


def _stacked(model: Expanded) -> Iterator[Step]:
    """Gains in parts as one matrix each."""
    for matrix in _curved(model):
        gains = [each for each in partners(model, matrix) if each.set.is_box]
        arranged = _arranged(model, matrix, gains)
        if arranged is not None:
            step = _Stacked(model, arranged)
            model = step.after
            yield step


def _arranged(
    model: Expanded, matrix: Variable, gains: Sequence[Variable]
) -> tuple[Numbers, tuple[Variable, ...]] | None:
    """The symbols of all entries of gains as one matrix, and the variables that these are of.

    None where there is one gain in its own shape, and where the entries are no matrix.
    """
    order = matrix.shape[0]
    shaped = {each for each in gains if each.ndim <= 2 and order in (each.shape or (1,))}
    if not gains or (len(gains) == 1 and shaped) or sum(g.size for g in gains) > MOST_ENTRIES:
        return None
    rated = _rated(model, matrix, gains) or _rated_by_entries(model, matrix, gains)
    chosen = tuple(
        gain
        for gain in gains
        if all(each in rated for each in model.symbols.of_variable(gain).reshape(-1).tolist())
    )
    if len(chosen) < 2 and not (chosen and chosen[0] not in shaped):
        return None
    own = [each for gain in chosen for each in model.symbols.of_variable(gain).reshape(-1).tolist()]
    size = max(abs(rated[each][1]) for each in own)
    rows = list[list[int]]()
    for group in _alike(sorted(own, key=lambda each: rated[each][1]), rated, size):
        lines = [sorted(each for each in group if rated[each][0] == i) for i in range(order)]
        if len({len(line) for line in lines}) > 1:
            return None
        rows += [list(row) for row in zip(*lines, strict=True)]
    return np.array(sorted(rows), dtype=np.int64), chosen


def _alike(
    symbols: Sequence[int], rated: Mapping[int, tuple[int, float]], size: float
) -> Iterator[list[int]]:
    """Symbols, sorted by their rating, in groups that have the same up to rounding."""
    group = list[int]()
    for each in symbols:
        if group and rated[each][1] - rated[group[-1]][1] > DATA_ROUNDING * size:
            yield group
            group = []
        group.append(each)
    yield group


def _rated(
    model: Expanded, matrix: Variable, gains: Sequence[Variable]
) -> dict[int, tuple[int, float]]:
    """The column of entries of gains, and one number for the weights that they stand with.

    The number is the sum of the weights of K[a,i] P[i,l] times random ones for each entry and l, so that
    two entries have the same one if all their weights are the same.
    """
    count = model.symbols.count
    first, second = places_of(model.symbols.of_variable(matrix), count)
    marks = np.zeros(count + 2, dtype=bool)
    for gain in gains:
        marks[model.symbols.of_variable(gain).reshape(-1) + 1] = True
    products = list[tuple[Numbers, Numbers, FloatArray, FloatArray]]()
    generator = np.random.default_rng(0)
    for sums in model.arrays:
        random = generator.normal(size=(sums.size, matrix.shape[0]))
        pairs = sums.degrees == 2
        digits = sums.digits[pairs][:, :2]
        if not digits.size:
            continue
        turned = np.where(marks[digits[:, :1]], digits, digits[:, ::-1])
        inside = marks[turned[:, 0]] & (first[turned[:, 1]] >= 0)
        products.append(
            (*turned[inside].T, sums.weight[pairs][inside], random[sums.entry[pairs][inside]])
        )
    if not products:
        return {}
    factors, inner = (np.concatenate([each[k] for each in products]) for k in (0, 1))
    weight, random = np.concatenate([e[2] for e in products]), np.vstack([e[3] for e in products])
    found: dict[int, tuple[int, float]] = {}
    for digit in np.unique(factors).tolist():
        own = factors == digit
        ends = {frozenset(pair) for pair in zip(first[inner[own]], second[inner[own]], strict=True)}
        common = frozenset.intersection(*ends)
        if len(common) != 1:
            continue
        column = int(next(iter(common)))
        other = first[inner[own]] + second[inner[own]] - column
        rating = float(weight[own] @ random[own][np.arange(other.size), other])
        found[digit - 1] = column, rating
    return found


def _rated_by_entries(
    model: Expanded, matrix: Variable, gains: Sequence[Variable]
) -> dict[int, tuple[int, float]]:
    """The same for the equation of a cost matrix X, which has Kᵀ Bᵀ X + X B K.

    K[a,j] stands in the entries (i,j) and (j,i) for all i, with weights of X that do not depend on j;
    twice of each in the entry (j,j).
    """
    own = model.symbols.of_variable(matrix)
    if len(own) < 2:
        return {}
    symbols = np.concatenate([np.ravel(model.symbols.of_variable(gain)) for gain in gains])
    found: dict[int, tuple[int, float]] = {}
    for corner in _corners(model, own):
        rated = _rated_in(corner, own, sorted(symbols.tolist()))
        if len(rated) == symbols.size:
            return rated
        found = found or rated
    return found


def _corners(model: Expanded, own: Numbers) -> Iterator[Sums]:
    """Equations with products of the entries of X, and parts of larger ones.

    Those beside the diagonal may be Fᵀ X alone, which is made symmetric.
    """
    order = len(own)
    for row in model.rows:
        sums = row.sums
        size = sums.shape[0] if sums.shape else 0
        if row.sense != "==" or sums.shape != (size, size) or row.entries is None:
            continue
        if size < order or not (sums.holding(own) & (sums.degrees > 1)).any():
            continue
        numbers = np.arange(size**2).reshape(size, size)
        for start in range(size - order + 1):
            part = numbers[start : start + order, start : start + order]
            yield sums if size == order else sums.taken(part.reshape(-1), part.shape)
        for start in range(size - 2 * order + 1):
            for other in range(start + order, size - order + 1):
                part = numbers[start : start + order, other : other + order]
                beside = sums.taken(part.reshape(-1), part.shape)
                yield beside + beside.transposed()


def _rated_in(sums: Sums, own: Numbers, wanted: Sequence[int]) -> dict[int, tuple[int, float]]:
    """The columns and ratings of symbols in one equation."""
    order = len(own)
    random = np.random.default_rng(0).normal(size=(order, int(own.max()) + 2))
    pairs = (sums.degrees == 2) & sums.holding(own)
    digits = sums.digits[pairs][:, :2]
    turned = np.where(np.isin(digits[:, :1], own + 1), digits[:, ::-1], digits)
    i, j = np.divmod(sums.entry[pairs], order)
    weight = sums.weight[pairs] * np.where(i == j, 0.5, 1.0)
    found: dict[int, tuple[int, float]] = {}
    for symbol in wanted:
        mine = turned[:, 0] == symbol + 1
        ends = {frozenset(pair) for pair in zip(i[mine].tolist(), j[mine].tolist(), strict=True)}
        common = frozenset.intersection(*ends) if ends else frozenset()
        if len(common) != 1:
            continue
        column = next(iter(common))
        here = mine & (j == column)
        rating = float(weight[here] @ random[i[here], turned[here, 1]])
        found[symbol] = column, rating
    return found


class _Stacked(Step):
    """One gain in place of several variables; their bounds are left out, as those of a gain are."""

    name = "matrices"

    def __init__(self, model: Expanded, arranged: tuple[Numbers, tuple[Variable, ...]]) -> None:
        numbers, self.gone = arranged
        gain = Variable(numbers.shape, name=fresh_name(model, "K"))
        self.new = (gain,)
        self.texts = {gain: ", ".join(each.name for each in self.gone)}
        self.released = tuple(each.name for each in self.gone if each.has_bounds)
        own = [model.symbols.of_variable(each) for each in self.gone]
        place = {symbol: where for where, symbol in enumerate(numbers.reshape(-1).tolist())}
        self._places = [np.vectorize(place.__getitem__)(each) for each in own]
        exchange = Exchange.of(model.symbols, numbers, model.symbols.of_variable(gain))
        self.after = rewritten(model, exchange, gone=self.gone, new=self.new)

    def forward(self, point: Points) -> None:
        value = np.zeros(self.new[0].size)
        for each, places in zip(self.gone, self._places, strict=True):
            value[np.ravel(places)] = np.ravel(point[each])
        point[self.new[0]] = value.reshape(self.new[0].shape)

    def back(self, point: Points) -> None:
        value = np.ravel(point[self.new[0]])
        for each, places in zip(self.gone, self._places, strict=True):
            point[each] = value[places].reshape(each.shape)

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)


class _Shifted(Step):
    """P = X + c I in place of X."""

    name = "matrices"

    def __init__(self, model: Expanded, matrix: Variable, shift: float) -> None:
        low, high = matrix.eigenvalue_bounds or (0.0, np.inf)
        new = Variable(matrix.shape, name=fresh_name(model, "P"), PSD=(low + shift, high + shift))
        self.gone, self.new = (matrix,), (new,)
        self.texts = {new: f"{matrix.name} + {shift:g} I"}
        self.released = (matrix.name,) if matrix.has_bounds else ()
        self._move = shift * np.eye(matrix.shape[0])
        old, fresh = (model.symbols.of_variable(each) for each in (matrix, new))
        coding = model.symbols.coding
        moved = Sums.symbols(fresh, coding) - Sums.constant(self._move, coding)
        changes = dict(zip(np.ravel(old).tolist(), moved.entries(), strict=True))
        exchange = Exchange(model.symbols, changes)
        self.after = rewritten(model, exchange, gone=self.gone, new=self.new)

    def forward(self, point: Points) -> None:
        point[self.new[0]] = point[self.gone[0]] + self._move

    def back(self, point: Points) -> None:
        point[self.gone[0]] = point[self.new[0]] - self._move

    def tangent_back(self, point: Points, moves: Points) -> None:
        moves[self.gone[0]] = moves[self.new[0]]


# ---- eigenvalues


def _eigenvalue_rows(model: Expanded) -> Iterator[tuple[Row, Variable, float]]:
    """The first row λ_min(P) >= c that says more of P than its set does.

    A row of a semidefinite P stays, and has its multiplier, where no equality asks what bounds P.
    """
    symbols = model.symbols
    cubic = any(row.sense == "==" and row.sums.degrees.max(initial=0) > 2 for row in model.rows)
    for row in model.rows:
        sums = row.sums
        moving = sums.key != ONE
        plain = row.sense == "<=" and row.factor is None and row.image is None
        if not plain or sums.size != 1 or moving.sum() != 1 or sums.degrees.max() != 1:
            continue
        function = symbols.function(int(sums.key[moving][0]) - 1)
        weight = float(sums.weight[moving][0])
        if function is None or function.atom.cone_form is not cones.LARGEST_EIGENVALUE:
            continue
        inside = function.arguments[0]
        part, shift = inside.chosen(inside.key != ONE), float(inside.value[0, 0])
        variable = symbols.source(int(part.key[0]) - 1)[0]
        if weight <= 0 or part.weight[0] >= 0 or not isinstance(variable, Variable):
            continue
        own = Sums.symbols(symbols.of_variable(variable), symbols.coding)
        whole = own.scaled(part.weight[0]) + Sums.constant(
            shift * np.eye(variable.shape[0]), own.coding
        )
        least = (shift + float(sums.value.sum()) / weight) / -float(part.weight[0])
        before = -np.inf if variable.eigenvalue_bounds is None else variable.eigenvalue_bounds[0]
        wanted = cubic or not variable.set.is_curved
        if (
            wanted
            and least >= max(before, 0.0)
            and not variable.has_bounds
            and inside.equals(whole)
        ):
            yield row, variable, least
            return


class _Definite(Step):
    """A variable with a set that says what a row says of its eigenvalues."""

    name = "matrices"

    def __init__(self, model: Expanded, row: Row, variable: Variable, least: float) -> None:
        most = np.inf if variable.eigenvalue_bounds is None else variable.eigenvalue_bounds[1]
        new = Variable(variable.shape, name=fresh_name(model, "P"), PSD=(least, max(most, least)))
        self.gone, self.new, self._least = (variable,), (new,), least
        self.texts = {new: variable.name}
        rows = tuple(each for each in model.rows if each is not row)
        old, fresh = (model.symbols.of_variable(each) for each in (variable, new))
        exchange = Exchange.of(model.symbols, old, fresh)
        self.after = rewritten(replace(model, rows=rows), exchange, gone=self.gone, new=self.new)

    def settle(self, point: Points) -> None:
        values, vectors = np.linalg.eigh(point[self.gone[0]])
        raised = np.maximum(values, self._least)
        point[self.gone[0]] = (vectors * raised) @ vectors.T

    def forward(self, point: Points) -> None:
        point[self.new[0]] = point[self.gone[0]]

    def back(self, point: Points) -> None:
        point[self.gone[0]] = point[self.new[0]]

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)


# ---- numbers


def _numbers(model: Expanded) -> Iterator[Variable]:
    """The nonnegative scalars p with k² p in an equality that is one number, for another variable k."""
    scalars = [
        v for v in model.variables if v.set.is_box and v.size == 1 and bool((v.lower >= 0).all())
    ]
    if not scalars or any(each.set.is_curved for each in model.variables):
        return
    cubic = [
        row.sums.digits[row.sums.degrees == 3][:, :3]
        for row in model.rows
        if row.sense == "==" and row.sums.size == 1 and row.sums.degrees.max(initial=0) == 3
    ]
    digits = np.vstack([np.zeros((0, 3), dtype=np.int64), *cubic])
    for variable in scalars:
        own = int(model.symbols.of_variable(variable).reshape(-1)[0]) + 1
        others = np.sort(np.where(digits == own, 0, digits), axis=1)
        once = (digits == own).sum(axis=1) == 1
        if (once & (others[:, 1] == others[:, 2])).any():
            yield variable


class _AsMatrix(Step):
    """A 1 × 1 matrix in place of a nonnegative number, and rows that are one number as such matrices."""

    name = "matrices"

    def __init__(self, model: Expanded, variable: Variable) -> None:
        low, high = (float(np.ravel(end)[0]) for end in (variable.lower, variable.upper))
        new = Variable((1, 1), name=fresh_name(model, variable.name), PSD=(low, high))
        self.gone, self.new = (variable,), (new,)
        self.texts = {new: variable.name}
        old, fresh = (model.symbols.of_variable(each).reshape(-1) for each in (variable, new))
        exchange = Exchange.of(model.symbols, old, fresh)
        after = rewritten(model, exchange, gone=self.gone, new=self.new)
        rows, self.merged = [], {}
        for row in after.rows:
            own = row.sense == "==" and row.sums.size == 1 and row.position is not None
            if own and _is_plain(row) and row.sums.holding(fresh).any():
                assert row.position is not None
                zero = np.zeros(1, dtype=np.int64)
                self.merged[row.position] = ((row.position, zero, zero),)
                rows.append(replace(row, sums=row.sums.reshaped((1, 1)), entries=zero))
            else:
                rows.append(row)
        self.after = replace(after, rows=tuple(rows))

    def forward(self, point: Points) -> None:
        point[self.new[0]] = np.reshape(point[self.gone[0]], (1, 1))

    def back(self, point: Points) -> None:
        point[self.gone[0]] = np.reshape(point[self.new[0]], self.gone[0].shape)

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)
