"""The matrices of an inequality in a cost matrix X and a gain K (`riccati`), and what they say.

Whatever the row looks like, its matrices are read off a few of its entries, and the inequality that they
make is multiplied out and compared with the row.

No singular X ⪰ 0 satisfies it if the weights see all states. For M := −(the left side) ⪰ 0 and X x = 0,

    0 ≤ xᵀ M x = −Σ |X^½ (C + D K) x|² − [x; K x]ᵀ W [x; K x] ≤ 0    with W = [[Q, Nᵀ], [N, R]] ⪰ 0,

so that M x = 0, X (C + D K) x = 0 and W [x; K x] = 0, and what is left of M x is X (A + B K) x = 0. So
all closed loops keep the kernel of X. For R ≻ 0, K x = −R⁻¹ N x there, and (Q − Nᵀ R⁻¹ N) x = 0. Whatever
K is, the loops are those of the gain −R⁻¹ N in the kernel, and it is 0 where one of them, A − B R⁻¹ N or
C − D R⁻¹ N, is observable from Q − Nᵀ R⁻¹ N. That is so for Q − Nᵀ R⁻¹ N ≻ 0, with any plant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.matrix_algebra.congruences import MOST_ENTRIES, congruence, congruences
from hcmodel.maps.matrix_algebra.product_terms import places_of
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.definite import is_semidefinite
from hcmodel.solvers.numerics import DATA_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


# What the singular values of scaled weights and of what they observe are above, where these count as
# full: the least eigenvalue of X is about the square, and is to be above DATA_ROUNDING.
MARGIN = 1e-6

# A and B of a closed loop A + B K.
Plant = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class _Least:
    """Q − Nᵀ R⁻¹ N in scaled states and gains, the scales, and −R⁻¹ N, which is None without R ≻ 0."""

    weight: FloatArray
    scales: FloatArray
    gain: FloatArray | None


@dataclass(frozen=True, eq=False)
class Weights:
    """He(X A + X B K) + (C + D K)ᵀ X (C + D K) + X G X + [I; K]ᵀ W [I; K], He(M) = M + Mᵀ.

    Noise that is proportional to the state or to the input adds further squares like that of C and D.
    """

    drift: FloatArray
    input: FloatArray
    step: FloatArray
    step_input: FloatArray
    weight: FloatArray
    disturbance: FloatArray
    noise: tuple[tuple[FloatArray, FloatArray], ...] = ()
    """C and D of the squares where there are several, or one beside X A; C and D above are 0 then."""

    def keeps_definite(self, loops: Sequence[Plant] = ()) -> bool:
        """Whether no singular X satisfies it; see the module. `loops` keep the kernel of X, too."""
        least, order = self._least(), len(self.drift)
        if float(np.linalg.eigvalsh(least.weight).min()) > DATA_ROUNDING:
            return True
        if least.gain is None:
            return False
        states, gains = least.scales[:order], least.scales[order:]
        own = (self.drift, self.input), (self.step, self.step_input)
        for drift, entering in (*own, *self.noise, *loops):
            first = states[:, None] * drift / states
            second = states[:, None] * entering / gains
            size = float(np.linalg.norm(np.abs(first) + np.abs(second) @ np.abs(least.gain)))
            if is_observable(first + second @ least.gain, least.weight, size):
                return True
        return False

    def least_weight(self) -> float:
        """The least of [v; k]ᵀ W [v; k] over k and unit vectors v."""
        least = self._least()
        root = least.scales[: len(self.drift)]
        return float(np.linalg.eigvalsh(least.weight * np.outer(root, root)).min())

    def _least(self) -> _Least:
        """The Schur complement of the states, after rows and columns were scaled.

        An eigenvalue of the weight of K that may be rounding counts as such a small one, not as 0, so
        that the complement is not too large.
        """
        order, diagonal = len(self.drift), self.weight.diagonal()
        root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = self.weight / np.outer(root, root)
        values, vectors = np.linalg.eigh(scaled[order:, order:])
        cross = vectors.T @ scaled[order:, :order]
        solved = cross / np.maximum(values, SUM_ROUNDING * len(scaled))[:, None]
        definite = values.min(initial=np.inf) > MARGIN
        gain = -vectors @ solved if definite else None
        return _Least(scaled[:order, :order] - cross.T @ solved, root, gain)

    def is_convex(self) -> bool:
        """Whether W ⪰ 0."""
        return is_semidefinite(self.weight)

    def decay(self) -> float | None:
        """The number ρ > 0 of −ρ X beside a square in discrete time; None where it is something else."""
        rate = -2.0 * float(self.drift[0, 0])
        left = np.abs(self.drift + rate / 2 * np.eye(len(self.drift))).max()
        size = (
            abs(rate) + float(np.linalg.norm(self.step)) ** 2
        )  # what the square leaves is rounding
        return rate if rate > 0 and left <= DATA_ROUNDING * size else None

    def may_be_stable(self) -> bool:
        """Whether some gain stabilises the plant, by the test of Popov, Belevitch and Hautus."""
        discrete = bool(self.step.any() or self.step_input.any())
        plant = (self.step, self.step_input) if discrete else (self.drift, self.input)
        rate = self.decay()
        if discrete and rate is not None:
            plant = plant[0] / np.sqrt(rate), plant[1] / np.sqrt(rate)  # Fᵀ X F ⪯ rate X
        size = max(np.abs(each).max(initial=0.0) for each in plant)
        for root in np.linalg.eigvals(plant[0]):
            if (abs(root) >= 1) if discrete else (root.real >= 0):
                both = np.hstack([plant[0] - root * np.eye(len(plant[0])), plant[1]])
                if np.linalg.svd(both, compute_uv=False)[-1] <= DATA_ROUNDING * size:
                    return False
        return True

    def reach(self) -> float:
        """What the Frobenius norm of [P; Y] is at most, where W ≻ 0; infinite else.

        With the least eigenvalue λ of W, by traces,
        λ |[P; Y]|² <= −2 trace(A P + B Y) − trace(G) <= 2 |[A, B]| |[P; Y]| − trace(G).
        """
        values = np.linalg.eigvalsh(self.weight)
        least = float(values[0] - DATA_ROUNDING * values[-1])  # what it is at least
        if least <= 0:
            return np.inf
        both = np.hstack([self.drift, self.input])
        size = float(np.linalg.norm(both))
        rest = max(-float(np.trace(self.disturbance)), 0.0)
        return (1 + DATA_ROUNDING) * (size + float(np.sqrt(size**2 + least * rest))) / least


def is_observable(flow: FloatArray, weight: FloatArray, size: float) -> bool:
    """Whether no subspace but 0 that F keeps is in the kernel of a weight C, both exact to rounding.

    It is 0 where the rows of C, C F, C F² … have full rank. A multiple of the unit matrix in F changes no
    subspace. `size` is that of the terms of F.
    """
    power = flow - np.trace(flow) / len(flow) * np.eye(len(flow))
    power = power / max(float(np.linalg.norm(power, 2)), MARGIN * size, np.finfo(float).tiny)
    rows, count = weight, 1
    while np.linalg.svd(rows, compute_uv=False)[-1] <= MARGIN:
        if count >= len(flow):
            return False
        rows = np.asarray(np.linalg.qr(np.vstack([rows, rows @ power]), mode="r"))
        power, count = power @ power, 2 * count
    return True


def weights_of(sums: Sums, matrix: Numbers, gain: Numbers, count: int) -> Weights | None:
    """The weights that make a matrix of sums, X and K given by their symbols of `count`."""
    reader = _Reader(sums, matrix, gain, count)
    if not reader.has_own_lines():
        return None
    found = reader.matrices()
    return reader.noisy() if found is None else found


def _squares_of(tensor: FloatArray) -> FloatArray | None:
    """The G and C of Σ G X Gᵀ + C X Eᵀ + E X Cᵀ; in discrete time, where X is subtracted, C is −E/2."""
    flow = np.eye(tensor.shape[0], tensor.shape[2])
    own = np.einsum("ia,jb->ijab", flow, flow)
    discrete = congruences(tensor + (own + own.transpose(0, 1, 3, 2)) / 2)
    if discrete is not None:
        return np.concatenate([_turned(discrete), -flow[None] / 2])
    found = congruences(tensor, flow)
    return None if found is None else _centred(found)


def _turned(factors: FloatArray) -> FloatArray:
    """The same Σ G X Gᵀ with G that are orthogonal in the rows of the states, the largest one first."""
    states = factors[:, : factors.shape[2]]
    turns = np.linalg.eigh(np.einsum("ria,sia->rs", states, states))[1][:, ::-1]
    found = np.einsum("rs,ria->sia", turns, factors)
    found[np.abs(found) <= DATA_ROUNDING * np.abs(found).max()] = 0.0
    return np.asarray(found)


def _centred(factors: FloatArray) -> FloatArray:
    """The same function Σ G X Gᵀ + C X Eᵀ + E X Cᵀ with G that have a part α E as large as the rest.

    C can have any of it instead. As they are found, this part may be far larger, which costs the solver
    digits: of 18 random plants with noise 8 were certified then, 14 without α E, and 15 with this one.
    """
    flow = np.eye(*factors.shape[1:])
    shares = np.einsum("rii->r", factors[:-1, : flow.shape[1]]) / flow.shape[1]
    rest = factors[:-1] - shares[:, None, None] * flow
    rest[np.abs(rest) <= DATA_ROUNDING * np.abs(factors).max()] = 0.0
    wanted = np.linalg.norm(rest.reshape(len(rest), -1), axis=1)
    # G X Gᵀ for G = R + α E has α (R X Eᵀ + E X Rᵀ) + α² E X Eᵀ beside R X Rᵀ
    moved = np.einsum("r,ria->ia", shares - wanted, rest)
    last = factors[-1] + moved + (shares @ shares - wanted @ wanted) / 2 * flow
    last[np.abs(last) <= DATA_ROUNDING * np.abs(last).max()] = 0.0
    found = rest + wanted[:, None, None] * flow
    return np.concatenate([found[wanted > 0], last[None]])


@dataclass(frozen=True)
class _Term:
    """A term of an entry (i, j): its factors of K and of X by their places, and its weight."""

    row: int
    column: int
    gains: tuple[tuple[int, int], ...]
    matrices: tuple[tuple[int, int], ...]
    weight: float

    @property
    def matrix(self) -> tuple[int, int]:
        """The one factor of X, or no place."""
        return self.matrices[0] if len(self.matrices) == 1 else (-1, -1)


class _Reader:
    """The matrices of an inequality, from the terms of −S by their factors of X and of K."""

    def __init__(self, sums: Sums, inner: Numbers, gains: Numbers, count: int) -> None:
        self._sums, self._inner, self._gains = sums, inner, gains
        self._inputs, self._order = gains.shape
        self._gain_row, self._gain_column = places_of(gains, count + 1)
        self._first, self._second = places_of(inner, count + 1)

    def has_own_lines(self) -> bool:
        """Whether each entry (i, j) has K by its columns i and j only: both of them where it has two."""
        sums = self._sums
        columns = self._gain_column[sums.digits]
        inside = columns >= 0
        count, one = inside.sum(axis=1), columns.max(axis=1)
        two = np.where(inside, columns, 0).sum(axis=1) - one  # the other one of two
        row, column = np.divmod(sums.entry, self._order)
        both = (np.maximum(row, column) == one) & (np.minimum(row, column) == two)
        single = (one == row) | (one == column)
        return not ((count == 2) & ~both | (count == 1) & ~single).any()

    def matrices(self) -> Weights | None:
        """A, B, C, D, W and G with one square, where the terms are what these make."""
        sums, coding = self._sums, self._sums.coding
        gains = (self._gain_row[sums.digits] >= 0).sum(axis=1)
        matrices = (self._first[sums.digits] >= 0).sum(axis=1)
        if (gains + matrices != sums.degrees).any() or gains.max() > 2 or matrices.max() > 2:
            return None
        inner, gain = (Sums.symbols(each, coding) for each in (self._inner, self._gains))
        squares = sums.chosen((gains == 2) & (matrices == 1))
        mixed = sums.chosen((gains == 1) & (matrices == 1))
        step, step_input = np.zeros((self._order,) * 2), np.zeros((self._order, self._inputs))
        entering, rest = np.zeros(step_input.shape), sums
        if squares.key.size:
            found = self._step_input(squares)
            if found is None:
                return None
            step_input, step = found, self._step(mixed, found)
            closed = Sums.constant(step, coding) + Sums.constant(step_input, coding) @ gain
            rest = sums - closed.transposed() @ inner @ closed
        else:
            entering = self._input(mixed)
        drift = self._drift(rest)
        weight = self._weight(sums.chosen(matrices == 0))
        flow = Sums.constant(drift, coding) + Sums.constant(entering, coding) @ gain
        again = inner @ flow
        parts = [again, again.transposed(), self._weighted(weight, gain)]
        disturbance = self._disturbance(sums.chosen((matrices == 2) & (gains == 0)))
        if disturbance.any():
            parts.append(inner @ Sums.constant(disturbance, coding) @ inner)
        if not added(parts).equals(rest):
            return None
        return Weights(drift, entering, step, step_input, weight, disturbance)

    def noisy(self) -> Weights | None:
        """The same with several squares.

        They and A and B are those of a function of X with [I; K] on both sides, whose weights are read
        from terms without K, from those on the diagonal and from those of the first entry.
        """
        sums, coding, order = self._sums, self._sums.coding, self._order
        if 2 * order * (order + self._inputs) > MOST_ENTRIES:
            return None
        gains = (self._gain_row[sums.digits] >= 0).sum(axis=1)
        matrices = (self._first[sums.digits] >= 0).sum(axis=1)
        if (gains + matrices != sums.degrees).any() or gains.max() > 2 or matrices.max() != 1:
            return None
        tensor = self._tensor(sums.chosen(matrices == 1))
        found = _squares_of(tensor)
        if found is None:
            return None
        inner, gain = (Sums.symbols(each, coding) for each in (self._inner, self._gains))

        def closed(factor: FloatArray) -> Sums:
            first = Sums.constant(factor[:order].T, coding)
            return first + Sums.constant(factor[order:].T, coding) @ gain

        again = inner @ closed(found[-1])
        squares = [closed(each).transposed() @ inner @ closed(each) for each in found[:-1]]
        weight = self._weight(sums.chosen(matrices == 0))
        parts = [again, again.transposed(), *squares, self._weighted(weight, gain)]
        if not added(parts).equals(sums):
            return None
        noise = tuple((each[:order].T, each[order:].T) for each in found[:-1])
        return Weights(
            drift=found[-1][:order].T,
            input=found[-1][order:].T,
            step=np.zeros((order, order)),
            step_input=np.zeros((order, self._inputs)),
            weight=weight,
            disturbance=np.zeros((order, order)),
            noise=noise,
        )

    def _tensor(self, sums: Sums) -> FloatArray:
        """The weights of X in M(X), where the terms are [I; K]ᵀ M(X) [I; K]."""
        order, total = self._order, self._order + self._inputs
        found = np.zeros((total, total, order, order))
        gains = (self._gain_row[sums.digits] >= 0).sum(axis=1)
        for number, entries in enumerate(
            (np.arange(order**2), self._diagonal, self._diagonal[:1]),
        ):
            for term in self._terms(sums.chosen(gains == number), entries):
                rows = [order + a for a, i in term.gains if i == term.row]
                if len(rows) < number:
                    continue
                i, j = [(term.row, term.column), (*rows, term.row), tuple(rows)][number]
                places = ((i, j),) if i == j or not number else ((i, j), (j, i))
                for place in places:
                    for own in (term.matrix, term.matrix[::-1]):
                        found[place][own] += term.weight / 2 / len(places)
        return found

    def _terms(self, sums: Sums, entries: NDArray[np.intp]) -> Iterator[_Term]:
        """The terms of some entries."""
        chosen = sums.chosen(np.isin(sums.entry, entries))
        for entry, digits, weight in zip(chosen.entry, chosen.digits, chosen.weight, strict=True):
            row, column = divmod(int(entry), self._order)
            gains, matrices = list[tuple[int, int]](), list[tuple[int, int]]()
            for digit in digits[digits > 0].tolist():
                if self._gain_row[digit] >= 0:
                    gains.append((int(self._gain_row[digit]), int(self._gain_column[digit])))
                else:
                    matrices.append((int(self._first[digit]), int(self._second[digit])))
            yield _Term(row, column, tuple(gains), tuple(matrices), float(weight))

    @property
    def _diagonal(self) -> NDArray[np.intp]:
        return np.asarray(np.arange(self._order) * (self._order + 1))

    def _step_input(self, squares: Sums) -> FloatArray | None:
        """D, from Kᵀ Dᵀ X D K in the first entry; its sign is free."""
        weights: dict[int, FloatArray] = {}
        for term in self._terms(squares, self._diagonal[:1]):
            (a, i), (b, j) = term.gains
            if i or j:
                return None
            share = np.zeros((self._order,) * 2)
            share[term.matrix] += term.weight / 2
            share[term.matrix[::-1]] += term.weight / 2
            for place in (a * self._inputs + b, b * self._inputs + a):
                weights[place] = weights.get(place, np.zeros(share.shape)) + share / 2
        found = congruence(weights, self._inputs) if weights else None
        return None if found is None else found.T

    def _step(self, mixed: Sums, step_input: FloatArray) -> FloatArray:
        """C, from Kᵀ Dᵀ X C and its transpose on the diagonal, by the largest column of D.

        With this column d and a column c of C, the weights of X are d cᵀ + c dᵀ.
        """
        largest = int(np.argmax(np.abs(step_input).sum(axis=0)))
        column = step_input[:, largest]
        size = float(column @ column)
        weights = np.zeros((self._order,) * 3)
        for term in self._terms(mixed, self._diagonal):
            if term.gains[0] == (largest, term.row):
                weights[term.row][term.matrix] += term.weight / 2
                weights[term.row][term.matrix[::-1]] += term.weight / 2
        images = weights @ column
        overlap = images @ column / (2 * size)
        return np.asarray((images - np.outer(overlap, column)) / size).T

    def _input(self, mixed: Sums) -> FloatArray:
        """B, from X B K and its transpose in the first entry."""
        found = np.zeros((self._order, self._inputs))
        for term in self._terms(mixed, self._diagonal[:1]):
            if term.matrix[0] == 0 and term.gains[0][1] == 0:
                found[term.matrix[1], term.gains[0][0]] = term.weight / 2
        return found

    def _drift(self, sums: Sums) -> FloatArray:
        """A, from X A and its transpose on the diagonal."""
        found = np.zeros((self._order, self._order))
        for term in self._terms(sums.chosen(sums.degrees == 1), self._diagonal):
            if term.row in term.matrix:
                other = sum(term.matrix) - term.row
                found[other, term.row] = term.weight / 2
        return found

    def _disturbance(self, sums: Sums) -> FloatArray:
        """G, from X G X in the first entry."""
        found = np.zeros((self._order, self._order))
        for term in self._terms(sums, self._diagonal[:1]):
            (_, p), (_, q) = term.matrices
            found[p, q] += term.weight / 2
            found[q, p] += term.weight / 2
        return found

    def _weight(self, sums: Sums) -> FloatArray:
        """W = [[Q, Nᵀ], [N, R]], from the constant, the diagonal and the first entry."""
        order, total = self._order, self._order + self._inputs
        found = np.zeros((total, total))
        found[:order, :order] = sums.value
        for term in self._terms(sums.chosen(sums.degrees == 1), self._diagonal):
            a, i = term.gains[0]
            if i == term.row:
                found[order + a, i] = found[i, order + a] = term.weight / 2
        for term in self._terms(sums.chosen(sums.degrees == 2), self._diagonal[:1]):
            a, b = (order + each for each, _ in term.gains)
            found[a, b] += term.weight / 2
            found[b, a] += term.weight / 2
        return (found + found.T) / 2

    def _weighted(self, weight: FloatArray, gain: Sums) -> Sums:
        """[I; K]ᵀ W [I; K]."""
        order, coding = self._order, gain.coding
        cross = Sums.constant(weight[:order, order:], coding) @ gain
        square = gain.transposed() @ Sums.constant(weight[order:, order:], coding) @ gain
        return added(
            [
                Sums.constant(weight[:order, :order], coding),
                cross,
                cross.transposed(),
                square,
            ]
        )
