"""Inequalities in a cost matrix X and a gain K whose rows are states and other things, as block matrices.

The bounded real lemma says with one matrix that a closed loop F = A + B K with the outputs G = C + D K
has a gain of at most γ. It has the states in the first rows, inputs or outputs in the others:

    [[Fᵀ X + X F,  X E,   Gᵀ ],
     [Eᵀ X,       −γ I,   Vᵀ ],      [[X,     Fᵀ X],          [[X,  Kᵀ ],
     [G,           V,    −γ I]] ⪯ 0,  [X F,   X   ]] ⪰ 0,      [K,  u I]] ⪰ 0

and in discrete time the states are there twice. With T that has P = X⁻¹ in the place of the states and
the identity in the others, T M T is linear in P and Y = K P, or convex. Whatever is written, M is

    He(S X Φ H) + (Ψ H)ᵀ X (Ψ H) + S X G X Sᵀ + Hᵀ W H + R,      H = [Sᵀ; K Sᵀ; R'ᵀ]

where S chooses the rows of the states, R' the others, He(M) = M + Mᵀ, X and K are repeated for each copy
of the states, W is a constant with W ⪰ 0 in states and gains, and R has other unknowns in the other rows.
As H T = [P Sᵀ; Y Sᵀ; R'ᵀ] =: Z, it becomes

    He(S Φ Z) + (Ψ Z)ᵀ P⁻¹ (Ψ Z) + S G Sᵀ + Zᵀ W Z + R.

W and G may be over a g > 0, and G times a number, as in Gᵀ G/γ and X E Eᵀ X/γ. Φ, Ψ, G and W are read
off a few entries, and the M that they make is multiplied out and compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import ONE, Sums, added, placed
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.matrix_algebra.congruences import congruence
from hcmodel.maps.matrix_algebra.loop_weights import Plant, Weights
from hcmodel.maps.matrix_algebra.matrix_squares import factor
from hcmodel.maps.matrix_algebra.product_terms import places_of
from hcmodel.maps.schur import Block, Square, made_block
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.solvers.algebra.definite import is_semidefinite
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
Places = NDArray[np.intp]
Index = NDArray[np.int64] | int


@dataclass(frozen=True, eq=False)
class Frame:
    """Which rows of a matrix are states: `places[r, a]` is the row of state a in copy r."""

    size: int
    places: Places
    inputs: int

    @cached_property
    def others(self) -> Places:
        """The rows that are not states."""
        return np.setdiff1d(np.arange(self.size), self.places)

    @property
    def copies(self) -> int:
        return len(self.places)

    @property
    def order(self) -> int:
        return int(self.places.shape[1])

    def states(self, copy: int) -> Places:
        """The rows of H that choose the states of a copy."""
        return copy * self.order + np.arange(self.order)

    def gains(self, copy: int) -> Places:
        """The rows of H with the gain of a copy."""
        return self.copies * self.order + copy * self.inputs + np.arange(self.inputs)

    @property
    def inner(self) -> int:
        """The number of rows of H with states and gains."""
        return self.copies * (self.order + self.inputs)

    @property
    def rest(self) -> Places:
        """The rows of H that choose the other rows."""
        return self.inner + np.arange(self.others.size)

    @property
    def length(self) -> int:
        return self.inner + self.others.size

    @property
    def selection(self) -> FloatArray:
        """S."""
        found = np.zeros((self.size, self.places.size))
        found[self.places.reshape(-1), np.arange(self.places.size)] = 1.0
        return found

    def stacked(self, state: Sums, gain: Sums) -> Sums:
        """[I Sᵀ; K Sᵀ; R'ᵀ], or [P Sᵀ; Y Sᵀ; R'ᵀ]."""
        parts = []
        for copy, own in enumerate(self.places):
            parts.append((state, self.states(copy)[:, None] * self.size + own))
            parts.append((gain, self.gains(copy)[:, None] * self.size + own))
        unit = Sums.constant(np.ones(self.others.size), state.coding)
        parts.append((unit, self.rest * self.size + self.others))
        return placed(parts, (self.length, self.size), state.coding)

    def spread(self, matrix: FloatArray) -> FloatArray:
        """T, with a matrix in the place of each copy of the states."""
        found = np.eye(self.size)
        for own in self.places:
            found[np.ix_(own, own)] = matrix
        return found

    def spread_sums(self, matrix: Sums) -> Sums:
        """The same of sums."""
        unit = Sums.constant(np.ones(self.others.size), matrix.coding)
        parts = [(unit, self.others * (self.size + 1))]
        parts += [(matrix, own[:, None] * self.size + own) for own in self.places]
        return placed(parts, (self.size, self.size), matrix.coding)

    def among_others(self, sums: Sums) -> NDArray[np.bool_]:
        """Which terms of a matrix stand in rows and columns that are not states."""
        other = np.zeros(self.size, dtype=bool)
        other[self.others] = True
        row, column = np.divmod(sums.entry, self.size)
        return np.asarray(other[row] & other[column])


@dataclass(frozen=True, eq=False)
class Varying:
    """A number that W and G of the states are multiplied by; `base` is 1 over it where that is affine."""

    number: Sums
    base: Sums | None
    weight: FloatArray
    disturbance: FloatArray

    def is_convex(self) -> bool:
        """Whether W/g and G/g are, and that W is 0 beside other numbers."""
        if self.base is None:
            return not self.weight.any()
        return is_semidefinite(self.weight) and is_semidefinite(self.disturbance)

    def squares(self, frame: Frame, stacked: Sums) -> Iterator[Square]:
        """W and G over a positive g, as squares over it."""
        coding = stacked.coding
        parts = (self.weight, stacked), (self.disturbance, Sums.constant(frame.selection.T, coding))
        for matrix, right in parts:
            if self.base is not None and matrix.any():
                root = factor(matrix).T
                below = Sums.constant(np.eye(len(root)), coding).times(self.base)
                yield Square(Sums.constant(root, coding) @ right, below)


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """Φ, Ψ, W, G and R of a matrix M; see the module. W has nothing in the other rows."""

    frame: Frame
    flow: FloatArray
    step: FloatArray
    weight: FloatArray
    disturbance: FloatArray
    rest: Sums
    varying: tuple[Varying, ...] = ()

    @property
    def quadratic(self) -> FloatArray:
        """W in states and gains."""
        inner = self.frame.inner
        return self.weight[:inner, :inner]

    def is_convex(self) -> bool:
        """Whether W ⪰ 0 in states and gains."""
        return is_semidefinite(self.quadratic) and all(each.is_convex() for each in self.varying)

    def keeps_definite(self) -> bool:
        """Whether no singular X satisfies M ⪯ 0.

        Where X v = 0, [v; K v] has no weight in the rows of the states, so that it has nothing in the
        other rows either: both W and what stands between [v; K v] and these are 0 there. In the rows of
        another copy of the states X (A + B K) v is left for the A and B between the copies, which is 0.
        """
        frame = self.frame
        for copy, part in enumerate(self._parts()):
            both = np.concatenate([frame.states(copy), frame.gains(copy)])
            across = self.weight[np.ix_(both, frame.rest)]
            more = [each.weight[np.ix_(both, both)] for each in self.varying]
            whole = sum(more, part.weight + across @ across.T)
            if replace(part, weight=whole).keeps_definite(self._loops_from(copy)):
                return True
        return False

    def may_be_stable(self) -> bool:
        """Whether some gain stabilises the plant."""
        parts = [*self._parts(), *self._discrete_plants()]
        return all(each.may_be_stable() for each in parts)

    def reach(self) -> float:
        """What the Frobenius norm of [P; Y] is at most; infinite where that is not known."""
        parts = () if self.varying else self._parts()
        return min((each.reach() for each in parts), default=np.inf)

    def _parts(self) -> Iterator[Weights]:
        """The rows and columns of each copy of the states alone, which are ⪯ 0 where M is."""
        frame = self.frame
        for copy in range(frame.copies):
            states, gains = frame.states(copy), frame.gains(copy)
            both = np.concatenate([states, gains])
            yield Weights(
                self.flow[np.ix_(states, states)],
                self.flow[np.ix_(states, gains)],
                self.step[:, states],
                self.step[:, gains],
                self.weight[np.ix_(both, both)],
                self.disturbance[np.ix_(states, states)],
            )

    def _loops_from(self, copy: int) -> list[Plant]:
        """A and B between the states of a copy and those of the others."""
        frame, found = self.frame, list[Plant]()
        for other in range(frame.copies):
            if other != copy:
                own = self.flow[frame.states(other)]
                found.append((own[:, frame.states(copy)], own[:, frame.gains(copy)]))
        return found

    def _discrete_plants(self) -> Iterator[Weights]:
        """−a X + Fᵀ X F/b ⪯ 0 of [[−a X, Fᵀ X], [X F, −b X]] ⪯ 0, for all pairs of copies."""
        frame, flow = self.frame, self.flow
        sizes = list[float]()
        for copy in range(frame.copies):
            states = frame.states(copy)
            own = flow[np.ix_(states, states)]
            alone = not flow[np.ix_(states, frame.gains(copy))].any()
            size = -2.0 * float(own[0, 0])
            multiple = np.array_equal(own, -size / 2 * np.eye(frame.order))
            sizes.append(size if alone and multiple else 0.0)
        for one, two in itertools.permutations(range(frame.copies), 2):
            ours, theirs = frame.states(one), frame.states(two)
            entering = flow[np.ix_(theirs, frame.gains(one))]
            if min(sizes[one], sizes[two]) > 0 and entering.any():
                drift = flow[np.ix_(theirs, ours)] + flow[np.ix_(ours, theirs)].T
                root = np.sqrt(sizes[two])
                yield Weights(
                    flow[np.ix_(ours, ours)],
                    np.zeros(entering.shape),
                    drift / root,
                    entering / root,
                    np.zeros((frame.order + frame.inputs,) * 2),
                    np.zeros(drift.shape),
                )


@dataclass(frozen=True, eq=False)
class BlockInequality:
    """A row that says that these weights make a matrix ⪯ 0, and its slack."""

    row: Row
    slack: Variable
    scale: float
    weights: BlockWeights

    def outer(self, matrix: FloatArray) -> FloatArray:
        """T."""
        return self.weights.frame.spread(matrix)

    def block(self, model: Expanded, inner: Sums, product: Sums, slack: Variable) -> Block:
        """The inequality in P and Y as a block matrix; `slack` is T S T."""
        coding, weights, frame = inner.coding, self.weights, self.weights.frame
        stacked = frame.stacked(inner, product)
        first = Sums.constant(frame.selection @ weights.flow, coding) @ stacked
        across = np.zeros((frame.size, frame.length))
        across[frame.others, : frame.inner] = weights.weight[frame.inner :, : frame.inner]
        if across.any():
            first = first + Sums.constant(across, coding) @ stacked
        constant = frame.selection @ weights.disturbance @ frame.selection.T
        whole = [first, first.transposed(), Sums.constant(constant, coding), weights.rest]
        squares = list[Square]()
        if weights.quadratic.any():
            root = factor(weights.quadratic).T
            wide = np.zeros((len(root), frame.length))
            wide[:, : frame.inner] = root
            squares.append(Square(Sums.constant(wide, coding) @ stacked))
        if weights.step.any():
            squares.append(Square(Sums.constant(weights.step, coding) @ stacked, inner))
        for each in weights.varying:
            squares += each.squares(frame, stacked)
            if each.base is None:
                moving = frame.selection @ each.disturbance @ frame.selection.T
                whole.append(Sums.constant(moving, coding).times(each.number))
        row = replace(self.row, congruence=frame.spread_sums(inner))
        return made_block(model, row, slack, self.scale, -added(whole), squares)


# ---- reading a matrix


def block_weights(
    sums: Sums, matrix: Numbers, gain: Numbers, symbols: Symbols
) -> BlockWeights | None:
    """The weights that make a matrix of sums, X and K given by their symbols."""
    terms = _Kinds(sums, matrix, gain, symbols)
    for frame in terms.frames():
        found = _Reader(terms, frame).weights()
        if found is not None:
            return found
    return None


class _Kinds:
    """The terms of a matrix by the numbers of their factors of X and of K."""

    def __init__(self, sums: Sums, matrix: Numbers, gain: Numbers, symbols: Symbols) -> None:
        self.sums, self.matrix, self.gain = sums, matrix, gain
        self.row, self.column = np.divmod(sums.entry, sums.shape[0])
        self._gain_column = places_of(gain, symbols.count + 1)[1]
        self._first, self._second = places_of(matrix, symbols.count + 1)
        self._digits = sums.digits
        gains, matrices = self._gain_column[self._digits] >= 0, self._first[self._digits] >= 0
        self.gains, self.matrices = gains.sum(axis=1), matrices.sum(axis=1)
        self.varying = self.gains + self.matrices < sums.degrees
        # what a term is beside its other unknowns, and these
        self.own = sums.coding.keys(np.where(gains | matrices, self._digits, 0))
        self.other = sums.coding.keys(np.where(gains | matrices, 0, self._digits))
        found = {key: _reciprocal(symbols, key) for key in np.unique(self.other).tolist() if key}
        self.bases = {key: base for key, base in found.items() if base is not None}

    def frames(self) -> Iterator[Frame]:
        """What may be the rows of the states: rows in a line, else those with one state each."""
        order, inputs = self.matrix.shape[0], self.gain.shape[0]
        allowed = self._allowed()
        if not self.gains.any():
            yield Frame(len(allowed), np.zeros((0, order), dtype=np.intp), inputs)
        lines = self._lines(allowed)
        if len(lines):
            yield Frame(len(allowed), lines, inputs)
        alone = np.flatnonzero(allowed.sum(axis=1) == 1)
        state = allowed[alone].argmax(axis=1)
        counts = np.bincount(state, minlength=order)
        if counts[0] and (counts == counts[0]).all():
            places = np.stack([alone[state == a] for a in range(order)], axis=1)
            if not np.array_equal(places, lines):
                yield Frame(len(allowed), places, inputs)

    def _allowed(self) -> NDArray[np.bool_]:
        """Which state each row may be, by its entry on the diagonal.

        K has the column of the state there, and X its row, unless X stands between two gains. Other
        unknowns and negative numbers are not in states: with P on both sides they are not convex. The
        reciprocal of one is, and what X G X is multiplied by.
        """
        size, order = self.sums.shape[0], self.matrix.shape[0]
        allowed = np.ones((size, order), dtype=bool)
        here = self.row == self.column
        below = np.isin(self.other, list(self.bases)) & ((self.sums.weight > 0) | (self.gains > 0))
        wrong = here & self.varying & ~(below | (self.matrices == 2))
        wrong |= here & (self.sums.key == ONE) & (self.sums.weight < 0)
        allowed[self.row[wrong]] = False
        numbers = np.arange(order)
        for place in np.flatnonzero(here & (self.gains > 0)).tolist():
            columns = self._gain_column[self._digits[place]]
            for each in columns[columns >= 0].tolist():
                allowed[self.row[place]] &= numbers == each
        stepping = np.zeros(size, dtype=bool)
        stepping[self.row[here & (self.gains == 2) & (self.matrices == 1)]] = True
        linear = here & (self.matrices == 1) & (self.gains == 0) & ~stepping[self.row]
        for place in np.flatnonzero(linear).tolist():
            digit = self._digits[place, 0]
            ends = (numbers == self._first[digit]) | (numbers == self._second[digit])
            allowed[self.row[place]] &= ends
        return allowed

    def _lines(self, allowed: NDArray[np.bool_]) -> Places:
        """States in the order of X, one row after the other, as often as there are such rows."""
        size, order = allowed.shape
        met = self.gains + self.matrices > 0
        found, start = list[Places](), 0
        while start + order <= size:
            inside = (self.row >= start) & (self.row < start + order)
            if np.diag(allowed[start : start + order]).all() and (inside & met).any():
                found.append(np.arange(start, start + order))
                start += order
            else:
                start += 1
        return np.array(found, dtype=np.intp).reshape(-1, order)


def _reciprocal(symbols: Symbols, key: int) -> Sums | None:
    """The affine g > 0 of a product that is 1/g; None for others."""
    if symbols.function(key - 1) is None:
        return None
    base, power = symbols.power(key - 1)
    affine = base.degrees.max(initial=0) == 1 and not symbols.functions(base.symbols_used())
    return base if power == -1 and affine and float(symbols.interval(base)[0]) >= 0 else None


class _Lookup:
    """The weights of products in the entries of sums."""

    def __init__(self, sums: Sums) -> None:
        self._sums, self._keys = sums, np.unique(sums.key)
        self._codes = sums.entry * self._keys.size + np.searchsorted(self._keys, sums.key)

    def __call__(self, row: Index, column: Index, *factors: Index) -> FloatArray:
        """Those of products of symbols in the entries (row, column), for arrays that broadcast."""
        rows, columns, *symbols = np.broadcast_arrays(row, column, *factors)
        entry = rows.reshape(-1) * self._sums.shape[0] + columns.reshape(-1)
        found = np.zeros(entry.size)
        if self._codes.size and entry.size:
            digits = np.stack([each.reshape(-1) + 1 for each in symbols], axis=1)
            keys = self._sums.coding.keys(digits)
            place = np.searchsorted(self._keys, keys)
            known = self._keys[np.minimum(place, self._keys.size - 1)] == keys
            code = entry * self._keys.size + place
            there = np.minimum(np.searchsorted(self._codes, code), self._codes.size - 1)
            found = np.where(known & (self._codes[there] == code), self._sums.weight[there], 0.0)
        return np.asarray(found.reshape(rows.shape))


class _Reader:
    """The weights of a matrix whose states are in known rows."""

    def __init__(self, terms: _Kinds, frame: Frame) -> None:
        self._terms, self._frame = terms, frame
        self._matrix, self._gain = terms.matrix, terms.gain
        coding = terms.sums.coding
        unit = Sums.constant(np.eye(frame.order), coding)
        self._stacked = frame.stacked(unit, Sums.symbols(terms.gain, coding))
        self._inner = Sums.symbols(terms.matrix, coding)

    def weights(self) -> BlockWeights | None:
        """The weights, where the terms are what these make."""
        terms, frame = self._terms, self._frame
        step, varying = self._step(), self._varying()
        if step is None or varying is None:
            return None
        apart = terms.varying & ~frame.among_others(terms.sums)
        sums, coding = terms.sums.chosen(~apart), terms.sums.coding
        stepped = Sums.constant(np.zeros(sums.shape), coding)
        if step.any():
            closed = Sums.constant(step, coding) @ self._stacked
            stepped = closed.transposed() @ self._inner @ closed
        left = sums - stepped
        # what rounding has left of X between the other rows
        small = np.abs(left.weight) <= DATA_ROUNDING * np.abs(sums.weight).max(initial=0.0)
        left = left.chosen(~(small & left.holding(terms.matrix)))
        rest = left.chosen(frame.among_others(left))
        if rest.holding(terms.matrix).any() or rest.holding(terms.gain).any():
            return None
        look = _Lookup(left)
        flow, weight = self._flow(look), self._weight(look, left.value)
        disturbance = self._disturbance(look)
        again = self._made(flow, weight, disturbance)
        if not again.equals(left.chosen(~frame.among_others(left))):
            return None
        return BlockWeights(frame, flow, step, weight, disturbance, rest, tuple(varying))

    def _varying(self) -> list[Varying] | None:
        """What other unknowns multiply in the rows of states; None where that is not W or G."""
        terms, frame = self._terms, self._frame
        sums, found = terms.sums, list[Varying]()
        apart = terms.varying & ~frame.among_others(sums)
        for key in np.unique(terms.other[apart]).tolist():
            here = apart & (terms.other == key)
            entry, own, weights = sums.entry[here], terms.own[here], sums.weight[here]
            part = Sums.merged(sums.shape, entry, own, weights, sums.coding)
            look = _Lookup(part)
            weight, disturbance = self._weight(look, part.value), self._disturbance(look)
            weight[frame.inner :] = weight[:, frame.inner :] = 0.0
            flow = np.zeros((frame.places.size, frame.length))
            if not frame.copies or not self._made(flow, weight, disturbance).equals(part):
                return None
            number = Sums((), np.zeros(1, dtype=np.intp), np.array([key]), np.ones(1), sums.coding)
            found.append(Varying(number, terms.bases.get(key), weight, disturbance))
        return found

    def _made(self, flow: FloatArray, weight: FloatArray, disturbance: FloatArray) -> Sums:
        """He(S X Φ H) + S X G X Sᵀ + Hᵀ W H."""
        frame, coding = self._frame, self._inner.coding
        total = frame.places.size
        parts = [
            (self._inner, own[:, None] * total + frame.states(copy))
            for copy, own in enumerate(frame.places)
        ]
        if not parts:
            return Sums.constant(np.zeros((frame.size, frame.size)), coding)
        states = placed(parts, (frame.size, total), coding)
        first = states @ Sums.constant(flow, coding) @ self._stacked
        turned = self._stacked.transposed()
        made = [first, first.transposed()]
        made.append(turned @ Sums.constant(weight, coding) @ self._stacked)
        if disturbance.any():
            made.append(states @ Sums.constant(disturbance, coding) @ states.transposed())
        return added(made)

    # ---- Φ

    def _flow(self, look: _Lookup) -> FloatArray:
        """Φ, from the terms with one X."""
        frame = self._frame
        found = np.zeros((frame.places.size, frame.length))
        for copy, own in enumerate(frame.places):
            states = frame.states(copy)
            c, b = np.ix_(np.arange(frame.order), np.arange(frame.order))
            found[np.ix_(states, states)] = look(own[b], own[b], self._matrix[c, b]) / 2
            first = self._matrix[:, :1]
            found[np.ix_(states, frame.gains(copy))] = (
                look(own[0], own[0], first, self._gain[:, 0]) / 2
            )
            found[np.ix_(states, frame.rest)] = look(own[0], frame.others, first)
        for one in range(frame.copies):
            for two in range(one):
                self._flow_between(look, found, two, one)
        return found

    def _flow_between(self, look: _Lookup, found: FloatArray, one: int, two: int) -> None:
        """X Φ₁₂ + Φ₂₁ᵀ X of two copies, of which t X − X t is free, so that Φ₂₁[0,0] = 0."""
        frame, X, order = self._frame, self._matrix, self._frame.order
        ours, theirs = frame.places[one], frame.places[two]
        a, b = np.ix_(np.arange(order), np.arange(order))
        first = look(ours[a], theirs[b], X[a, a])  # X[a,a] in the entry (a, b) has Φ₁₂[a,b]
        second = look(ours[b], theirs[a], X[a, a])
        diagonal = look(ours[0], theirs, X[0])
        np.fill_diagonal(first, diagonal)
        np.fill_diagonal(second, look(ours, theirs[0], X[0]) - diagonal[0])
        second[0, 0] = 0.0
        found[np.ix_(frame.states(one), frame.states(two))] = first
        found[np.ix_(frame.states(two), frame.states(one))] = second
        other = min(1, order - 1)
        pairs = [(one, two), (two, one)] if order > 1 else [(one, two)]
        for left, right in pairs:
            places = np.ix_(frame.states(left), frame.gains(right))
            row, column = frame.places[left, 0], frame.places[right, other]
            found[places] = look(row, column, X[:, :1], self._gain[:, other])

    # ---- Ψ

    def _step(self) -> FloatArray | None:
        """Ψ, from X between gains, else from X in the other rows; None where there is none."""
        terms, frame = self._terms, self._frame
        found = np.zeros((frame.order, frame.length))
        squares = (terms.gains == 2) & (terms.matrices == 1)
        if not squares.any():
            between = terms.sums.chosen(frame.among_others(terms.sums) & (terms.matrices == 1))
            if between.key.size:
                entering = self._between_others(between)
                if entering is None:
                    return None
                found[:, frame.rest] = entering
            return found
        copies = [
            copy
            for copy, own in enumerate(frame.places)
            if (squares & (terms.row == own[0]) & (terms.column == own[0])).any()
        ]
        look = _Lookup(terms.sums)
        entering = self._entering(look, frame.places[copies[0]]) if copies else None
        if len(copies) != 1 or entering is None:
            return None
        found[:, frame.gains(copies[0])] = entering
        self._others_of_step(look, found, copies[0])
        return found

    def _between_others(self, sums: Sums) -> FloatArray | None:
        """Ψ with Ψᵀ X Ψ in the other rows."""
        others, order = self._frame.others, self._frame.order
        i, j, p, q = np.ix_(*(np.arange(n) for n in (others.size, others.size, order, order)))
        weights = _Lookup(sums)(others[i], others[j], self._matrix[p, q])
        found = _factor_of(np.where(p == q, weights, weights / 2))
        return None if found is None else found.T

    def _entering(self, look: _Lookup, own: Places) -> FloatArray | None:
        """The columns of Ψ of the gain, from Kᵀ Dᵀ X D K in the first entry; its sign is free."""
        inputs, order = self._gain.shape[0], self._frame.order
        k, m, p, q = np.ix_(*(np.arange(n) for n in (inputs, inputs, order, order)))
        column = self._gain[:, 0]
        weights = look(own[0], own[0], column[k], column[m], self._matrix[p, q])
        weights = np.where(p == q, weights, weights / 2)
        found = _factor_of(np.where(k == m, weights, weights / 2))
        return None if found is None else found.T

    def _others_of_step(self, look: _Lookup, step: FloatArray, copy: int) -> None:
        """The other columns of Ψ, by the largest column d of those of the gain.

        With a column c of Ψ, X has the weights of dᵀ X c beside this gain; twice these on the diagonal.
        """
        frame, X = self._frame, self._matrix
        own, gains = frame.places[copy], step[:, frame.gains(copy)]
        largest = int(np.argmax(np.abs(gains).sum(axis=0)))
        column = gains[:, largest]
        order = np.arange(frame.order)
        for rows, columns, symbols, places, share in (
            (own, own, self._gain[largest], frame.states(copy), 0.5),
            (own[0], frame.others, self._gain[largest, 0], frame.rest, 1.0),
        ):
            _, p, q = np.ix_(np.arange(places.size), order, order)
            wide = (
                np.reshape(np.broadcast_to(each, places.size), (-1, 1, 1))
                for each in (rows, columns, symbols)
            )
            row, entry, symbol = wide
            weights = share * look(row, entry, symbol, X[p, q])
            weights = np.where(p == q, 2 * weights, weights)  # d cᵀ + c dᵀ
            size = float(column @ column)
            images = weights @ column
            overlap = images @ column / (2 * size)
            step[:, places] = ((images - np.outer(overlap, column)) / size).T

    # ---- W and G

    def _weight(self, look: _Lookup, value: FloatArray) -> FloatArray:
        """W, from the terms without X; 0 between gains of different copies."""
        frame, gain = self._frame, self._gain
        found = np.zeros((frame.length, frame.length))
        states = np.arange(frame.places.size)
        flat = frame.places.reshape(-1)
        found[np.ix_(states, states)] = value[np.ix_(flat, flat)]
        found[np.ix_(states, frame.rest)] = value[np.ix_(flat, frame.others)]
        for copy, own in enumerate(frame.places):
            gains = frame.gains(copy)
            k, m = np.ix_(np.arange(frame.inputs), np.arange(frame.inputs))
            square = look(own[0], own[0], gain[k, 0], gain[m, 0])
            # of a symmetric W, each half once
            found[np.ix_(gains, gains)] = np.where(k == m, square, square / 2)
            found[np.ix_(gains, frame.states(copy))] = look(own, own, gain) / 2
            found[np.ix_(gains, frame.rest)] = look(own[0], frame.others, gain[:, :1])
        lower = np.arange(frame.length) < frame.inner
        found[np.ix_(~lower, lower)] = found[np.ix_(lower, ~lower)].T
        for copy in range(frame.copies):
            places = np.ix_(frame.gains(copy), frame.states(copy))
            found[np.ix_(frame.states(copy), frame.gains(copy))] = found[places].T
        return found

    def _disturbance(self, look: _Lookup) -> FloatArray:
        """G, from X G X in the first entry; 0 between different copies."""
        frame, line = self._frame, self._matrix[0]
        found = np.zeros((frame.places.size, frame.places.size))
        p, q = np.ix_(np.arange(frame.order), np.arange(frame.order))
        for copy, own in enumerate(frame.places):
            weights = look(own[0], own[0], line[p], line[q])
            places = np.ix_(frame.states(copy), frame.states(copy))
            found[places] = np.where(p == q, weights, weights / 2)
        return found


def _factor_of(weights: FloatArray) -> FloatArray | None:
    """G with G X Gᵀ, from the weights with the indices (i, j, p, q)."""
    flat = weights.reshape(-1, *weights.shape[2:])
    return congruence(dict(enumerate(flat)), len(weights))
