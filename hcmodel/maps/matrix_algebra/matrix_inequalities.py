"""Inequalities between matrices that are quadratic in a gain, as linear ones by Schur's complement.

    E ⪰ G Y P⁻¹ Yᵀ Gᵀ    where    [[E, G Y], [Yᵀ Gᵀ, P]] ⪰ 0

The block with D P on its side, for any D, is semidefinite if and only if this one is:

    [[E + G Y Dᵀ + D Yᵀ Gᵀ + D P Dᵀ, G Y + D P], [·, P]]

For P ⪰ (A + G K) P (A + G K)ᵀ + W and D = A it is [[P − W, G Y + A P], [·, P]], with far fewer terms: of
14 states in a third of the time.

An inequality is an equality with a semidefinite slack that stands nowhere else. The equality
P == F P Fᵀ + W of a covariance in discrete time has no slack; it may be one where nothing is lost by it.

Noise that is proportional to the state or to the input adds further squares,

    P ⪰ Σ over r of (A_r + B_r K) P (A_r + B_r K)ᵀ + W

With several B_r there is no single G. A variable Z ⪰ K P Kᵀ, that is [[Z, Y], [Yᵀ, P]] ⪰ 0, takes the
place of K P Kᵀ, and nothing is lost: the sum of B_r Z B_rᵀ grows with Z. Where the squares are these is
found from the weights of the entries (`congruences`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import field

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums, added, placed
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.map import Obstacle, Points, fresh_name
from hcmodel.maps.matrix_algebra.congruences import congruence, congruences, tensor_of
from hcmodel.maps.matrix_algebra.product_terms import Products
from hcmodel.maps.matrix_algebra.slacks import slacks_of
from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.definite import is_definite
from hcmodel.solvers.algebra.symmetric import upper_entries
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]

# How much larger than all weights of an equation that of P alone is taken to be where it is not 1: rows
# of the suite that are multiplied by 2 or 1000 need 3.
AMPLE = 10.0
# Terms of E up to which it stays as it is. Of 6 states and 2 inputs it has 1,200, and a program with
# fewer takes as long; a contradiction may have a dual of simple fractions then.
FEW_TERMS = 2000


@dataclass(frozen=True, eq=False)
class Inequality:
    """E − G Y P⁻¹ Yᵀ Gᵀ = S ⪰ 0 as a block matrix that is a variable, with the rows that define it.

    The block is [[S + C P⁻¹ Cᵀ, C], [Cᵀ, P]] with C = G Y + D P, which is semidefinite for every S ⪰ 0;
    its first entries less what E becomes are the row. `slack` is the variable S; without one S is 0.
    """

    block: Variable
    row: Row
    factor: FloatArray
    slack: Variable | None
    least: float
    """The smallest eigenvalue that S may have, which is subtracted from the block."""
    closed: ClosedLoop | NoisyLoop | None = None
    """The closed loop of an equality without a slack, which is replaced by the inequality."""
    drift: FloatArray = field(kw_only=True)
    """D."""

    def forward(self, product: FloatArray, gain: FloatArray, points: Points) -> None:
        """The block at a point, from Y, P and K."""
        size = self.factor.shape[0]
        corner = self.factor @ product + self.drift @ points[self.inner]
        matrix = np.zeros(self.block.shape)
        matrix[:size, size:], matrix[size:, :size] = corner, corner.T
        above = corner @ (self.factor @ gain + self.drift).T
        if self.slack is not None:
            above = above + points[self.slack] - self.least * np.eye(size)
        matrix[:size, :size] = (above + above.T) / 2
        matrix[size:, size:] = points[self.inner]
        points[self.block] = matrix

    def back(self, gain: FloatArray, points: Points) -> None:
        """S from the block, or P of the closed loop where there is no S."""
        if self.slack is not None:
            size = self.factor.shape[0]
            block = points[self.block]
            above = (self.factor @ gain + self.drift) @ block[:size, size:].T
            left = block[:size, :size] - (above + above.T) / 2 + self.least * np.eye(size)
            points[self.slack] = (left + left.T) / 2
        if self.closed is not None:
            points[self.inner] = self.closed.covariance(gain)

    inner: Variable = field(kw_only=True)
    """P."""

    @property
    def gone(self) -> tuple[Variable, ...]:
        return () if self.slack is None else (self.slack,)

    @property
    def new(self) -> tuple[Variable, ...]:
        return (self.block,)

    @property
    def rows(self) -> tuple[Row, ...]:
        return (self.row,)


@dataclass(frozen=True, eq=False)
class Noisy:
    """A row with Z in place of K P Kᵀ, and the block [[Z, Y], [Yᵀ, P]] as a semidefinite variable.

    S of the row stays where there is one. It is 0 at all points of an equality, which has a new one; that
    of an inequality grows by what Z has above K P Kᵀ, times the squares.
    """

    block: Variable
    rows: tuple[Row, ...]
    factors: FloatArray
    """The B_r."""
    slack: Variable
    closed: ClosedLoop | NoisyLoop | None
    inner: Variable
    gone: tuple[Variable, ...] = ()

    @property
    def new(self) -> tuple[Variable, ...]:
        return (self.block,) if self.closed is None else (self.block, self.slack)

    def forward(self, product: FloatArray, gain: FloatArray, points: Points) -> None:
        """The block at a point, from Y, P and K."""
        above = product @ gain.T
        points[self.block] = np.block(
            [[(above + above.T) / 2, product], [product.T, points[self.inner]]]
        )
        if self.closed is not None:
            points[self.slack] = np.zeros(self.slack.shape)

    def back(self, gain: FloatArray, points: Points) -> None:
        """S for K P Kᵀ in place of Z, or P of the closed loop where there is no S."""
        if self.closed is not None:
            points[self.inner] = self.closed.covariance(gain)
            return
        count = gain.shape[0]
        more = points[self.block][:count, :count] - gain @ points[self.inner] @ gain.T
        added_up = np.einsum("ria,ab,rjb->ij", self.factors, more, self.factors)
        points[self.slack] = points[self.slack] + (added_up + added_up.T) / 2


def inequality(
    model: Expanded, row: Row, rewriting: Products
) -> Inequality | Noisy | Obstacle | None:
    """An equality with a semidefinite slack and K P Kᵀ in it, as an inequality; None for other rows."""
    shape = row.sums.shape
    symmetric = row.entries is not None or shape == (1, 1)
    if row.sense != "==" or not symmetric or len(shape) != 2:
        return None
    _, quadratic, _ = rewriting.sorted(row.sums)
    if not quadratic:
        return None
    slacks: list[Variable | None] = [*slacks_of(model, row)] or [None]
    # of several slacks, the one that stands on the smaller side
    sides = [(slack, *_side(model, row, slack, quadratic)) for slack in slacks]
    found = (
        (*each, factor)
        for squares in (_factor, _factors)
        for each in sides
        if (factor := squares(quadratic, each[1], shape[0])) is not None
    )
    slack, scale, rest, factor = next(found, (None, 0.0, row.sums, None))
    if factor is None:
        return Obstacle("product", f"{model.name_of(row)} is not a square in the gain")
    closed = None
    if slack is None:
        closed = relaxed(model, row, rest, factor, rewriting)
        if closed is None:
            return Obstacle(
                "product", f"the equality {model.name_of(row)} is quadratic in the gain"
            )
    if factor.ndim > 2:
        return _noisy(model, row, scale, factor, slack, rewriting, closed)
    return _block(model, row, scale, rest, factor, slack, rewriting, closed)


def _side(
    model: Expanded, row: Row, slack: Variable | None, quadratic: dict[int, FloatArray]
) -> tuple[float, Sums]:
    """The number for which `scale` times the row is E − G K P Kᵀ Gᵀ − S, and that without S."""
    if slack is None:
        largest = max((each for each in quadratic.values()), key=lambda each: np.abs(each).max())
        scale = -1.0 if np.trace(largest) > 0 else 1.0
        return scale, row.sums.scaled(scale)
    own = row.sums.holding(model.symbols.of_variable(slack))
    scale = -1.0 / float(row.sums.weight[own][0])
    return scale, row.sums.chosen(~own).scaled(scale)


def _factor(quadratic: dict[int, FloatArray], scale: float, size: int) -> FloatArray | None:
    """G of −G K P Kᵀ Gᵀ in `scale` times a row."""
    return congruence({place: -scale * each for place, each in quadratic.items()}, size)


def _factors(quadratic: dict[int, FloatArray], scale: float, size: int) -> FloatArray | None:
    """The B_r of −Σ B_r K P Kᵀ B_rᵀ in `scale` times a row, with the indices (r, i, a)."""
    weights = {place: -scale * each for place, each in quadratic.items()}
    return congruences(tensor_of(weights, size))


def _noisy(
    model: Expanded,
    row: Row,
    scale: float,
    factors: FloatArray,
    slack: Variable | None,
    rewriting: Products,
    closed: ClosedLoop | NoisyLoop | None,
) -> Noisy | Obstacle:
    """The row with Z in place of K P Kᵀ; `scale` times the row is E − … − S."""
    symbols, coding = model.symbols, row.sums.coding
    if slack is not None and np.isfinite((slack.eigenvalue_bounds or (0.0, np.inf))[1]):
        return Obstacle("product", f"{slack.name} has an upper bound")
    name, count, order = model.name_of(row), rewriting.rows, rewriting.order
    size = count + order
    block = Variable((size, size), name=fresh_name(model, f"block·{name}"), PSD=True)
    numbers = symbols.of_variable(block)
    linear, quadratic, plain = rewriting.sorted(row.sums)
    assert quadratic is not None
    parts = [plain] if linear is None else [plain, linear]
    corner = Sums.symbols(numbers[:count, :count], coding)
    for place, weights in quadratic.items():
        whole = corner.scaled(weights).grouped(np.zeros(count**2, dtype=np.intp), ())
        parts.append(placed([(whole, np.array([place]))], row.sums.shape, coding))
    if slack is None:
        slack = Variable(row.sums.shape, name=fresh_name(model, f"slack·{name}"), PSD=True)
        own = Sums.symbols(symbols.of_variable(slack), coding)
        parts.append(own.scaled(-1.0 / scale))
    places = np.arange(size**2).reshape(size, size)
    sides = [
        (rewriting.combined(np.eye(count)), places[:count, count:]),
        (Sums.symbols(rewriting.inner, coding), places[count:, count:]),
    ]
    own = Sums.symbols(numbers, coding)
    upper = upper_entries(size)
    kept = upper[upper % size >= count]
    tie = placed(sides, (size, size), coding) - own.chosen(np.isin(own.entry, kept))
    tie = tie.chosen(np.isin(tie.entry, kept))
    rows = replace(row, sums=added(parts)), Row(tie, "==", None, entries=kept)
    variable, _ = symbols.source(int(rewriting.inner[0, 0]))
    assert isinstance(variable, Variable)
    return Noisy(block, rows, factors, slack, closed, variable)


def _block(
    model: Expanded,
    row: Row,
    scale: float,
    rest: Sums,
    factor: FloatArray,
    slack: Variable | None,
    rewriting: Products,
    closed: ClosedLoop | NoisyLoop | None,
) -> Inequality:
    """[[E, G Y], [Yᵀ Gᵀ, P]] as a semidefinite variable; `scale` times the row is E − … − S."""
    linear, _, plain = rewriting.sorted(rest)
    above = plain if linear is None else added([plain, linear])
    least = 0.0
    if slack is not None and slack.eigenvalue_bounds is not None:
        least = slack.eigenvalue_bounds[0]
    above = above - Sums.constant(least * np.eye(rest.shape[0]), rest.coding)
    size, order = rest.shape[0], rewriting.order
    inner = Sums.symbols(rewriting.inner, rest.coding)
    drift, above, corner = _sparser(above, rewriting.combined(factor), factor, rewriting)
    numbers = np.arange((size + order) ** 2).reshape(size + order, size + order)
    parts = [
        (above, numbers[:size, :size]),
        (corner, numbers[:size, size:]),
        (corner.transposed(), numbers[size:, :size]),
        (inner, numbers[size:, size:]),
    ]
    whole = placed(parts, numbers.shape, rest.coding)
    block = Variable(numbers.shape, name=fresh_name(model, f"block·{model.name_of(row)}"), PSD=True)
    own = Sums.symbols(model.symbols.of_variable(block), rest.coding)
    defining = Row(
        whole - own,
        "==",
        row.position,
        factor=Sums.constant(scale, rest.coding),
        entries=upper_entries(size + order),
        leading=size,
    )
    variable, _ = model.symbols.source(int(rewriting.inner[0, 0]))
    assert isinstance(variable, Variable)
    return Inequality(block, defining, factor, slack, least, closed, drift=drift, inner=variable)


def _sparser(
    above: Sums, corner: Sums, factor: FloatArray, rewriting: Products
) -> tuple[FloatArray, Sums, Sums]:
    """D, E and the side of the block for the D that leaves fewer terms; 0 where none does.

    E has the terms −(D Yᵀ Gᵀ + G Y Dᵀ), whose weights c of Y[a,l] give D by least squares:
    (|G|² I + G Gᵀ) D = −Σ c[·,j,a,·] G[j,a].
    """
    size, order, coding = factor.shape[0], rewriting.order, above.coding
    none = np.zeros((size, order))
    if above.key.size <= FEW_TERMS:
        return none, above, corner
    places = np.full(rewriting.symbols.count + 1, -1)
    places[rewriting.product.reshape(-1) + 1] = np.arange(rewriting.product.size)
    single = above.degrees == 1
    place = np.where(single, places[np.where(single, above.digits[:, 0], 0)], -1)
    own = (place >= 0).nonzero()[0]
    if not own.size:
        return none, above, corner
    row, column = np.divmod(above.entry[own], size)
    a, column_of = np.divmod(place[own], order)
    right = none.copy()
    np.add.at(right, (row, column_of), above.weight[own] * factor[column, a])
    system = np.square(factor).sum() * np.eye(size) + factor @ factor.T
    drift = -np.linalg.solve(system, right)
    drift[np.abs(drift) <= DATA_ROUNDING * np.abs(drift).max()] = 0.0
    constant = Sums.constant(drift, coding)
    moved = constant @ Sums.symbols(rewriting.inner, coding)
    turned = constant @ corner.transposed()
    found = added([above, turned, turned.transposed(), moved @ constant.transposed()])
    if found.key.size >= above.key.size:
        return none, above, corner
    return drift, found, corner + moved


# ---- equalities that may be inequalities


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """P == F P Fᵀ + W with F = A + G K, of which P is the solution where F is stable."""

    drift: FloatArray
    factor: FloatArray
    noise: FloatArray

    @property
    def least(self) -> float:
        """The smallest eigenvalue that the solution can have."""
        return float(np.linalg.eigvalsh(self.noise).min())

    def covariance(self, gain: FloatArray) -> FloatArray:
        """P for a gain."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            closed = self.drift + self.factor @ gain
            warnings.simplefilter("ignore")  # an unstable loop: its P is not feasible
            try:
                found = scipy.linalg.solve_discrete_lyapunov(closed, self.noise)
            except (ValueError, np.linalg.LinAlgError):  # a gain beyond all numbers, or no solution
                return np.full(self.noise.shape, np.nan)
        return np.asarray((found + found.T) / 2)


@dataclass(frozen=True, eq=False)
class NoisyLoop:
    """L(P) + W == 0 for an L whose flow keeps matrices semidefinite.

    L(P) has the entries ⟨T, H P Hᵀ⟩ with H = [I; K] and the tensor T of weights.
    """

    tensor: FloatArray
    noise: FloatArray
    least: float
    """The smallest eigenvalue that the solution can have."""

    def covariance(self, gain: FloatArray) -> FloatArray:
        """P for a gain."""
        order = gain.shape[1]
        closed = np.vstack([np.eye(order), gain])
        with np.errstate(all="ignore"):
            grown = np.einsum("ijab,ak,bl->ijkl", self.tensor, closed, closed)
        system = -grown.reshape(order**2, order**2)
        if not np.isfinite(system).all():
            return np.full((order, order), np.nan)
        with np.errstate(all="ignore"):
            found = np.linalg.lstsq(system, self.noise.reshape(-1), rcond=None)[0]
        found = found.reshape(order, order)
        return np.asarray((found + found.T) / 2)


def lost_bounds(inequalities: Sequence[Inequality | Noisy]) -> tuple[str, ...]:
    """The matrices of closed loops with bounds that the solution of their equation may violate."""
    found = []
    for each in inequalities:
        lowest = (each.inner.eigenvalue_bounds or (0.0, np.inf))[0]
        if each.closed is not None and (each.inner.has_bounds or each.closed.least < lowest):
            found.append(each.inner.name)
    return tuple(found)


def relaxed(
    model: Expanded, row: Row, rest: Sums, factor: FloatArray, rewriting: Products
) -> ClosedLoop | NoisyLoop | None:
    """The closed loop of an equality that may be an inequality; None where that could lower the optimum.

    Of P ⪰ Q(P) + W with W ≻ 0 the solution of the equality is the least P, for a Q that sends
    semidefinite matrices to such: P − Q(P) ≻ 0 says that powers of Q vanish, and P is the sum of all
    Qᵏ(W + S) with the slack S ⪰ 0. In continuous time L(P) + W ⪯ 0 with L(P) = C P + P Cᵀ + Q(P) says
    the same of the flow exp(t L), of which P is the integral over W + S (Damm 2004). So nothing is lost
    where objective and rows do not decrease as P grows at a fixed gain. The least P may violate bounds of
    P, against which the point is tested afterwards; in discrete time it is at least W.
    """
    closed = (_closed_loop(rest, factor, rewriting) if factor.ndim == 2 else None) or _noisy_loop(
        rest, rewriting
    )
    if closed is None:
        return None
    variable = model.symbols.source(int(rewriting.inner[0, 0]))[0]
    assert isinstance(variable, Variable)
    if not is_definite(closed.noise):
        return None
    others = (each for each in model.rows if each is not row)
    if not rewriting.grows(model, model.objective):
        return None
    return closed if all(rewriting.row_grows(model, each) for each in others) else None


def _closed_loop(rest: Sums, factor: FloatArray, rewriting: Products) -> ClosedLoop | None:
    """A, G and W with rest = P − (A + G K) P (A + G K)ᵀ − W, where there are such."""
    order, coding = rewriting.order, rest.coding
    if rest.shape != (order, order):
        return None
    digits = rest.digits
    local = np.where(digits < rewriting.first.size, digits, 0)
    alone = (rewriting.first[local] >= 0).any(axis=1) & ((digits > 0).sum(axis=1) == 1)
    digit, entry, halves = digits[alone, 0], rest.entry[alone], rest.weight[alone] / 2
    i, j = rewriting.first[digit], rewriting.second[digit]
    weights = np.zeros((order**2, order, order))
    np.add.at(weights, (entry, i, j), -halves)
    np.add.at(weights, (entry, j, i), -halves)
    places = np.arange(order**2)
    i, j = np.divmod(places, order)
    weights[places, i, j] += 0.5  # minus P itself
    weights[places, j, i] += 0.5
    drift = congruence(dict(enumerate(weights)), order)
    if drift is None:
        drift = np.zeros((order, order))
    noise = -rest.value
    inner = Sums.symbols(rewriting.inner, coding)
    for sign in (1.0, -1.0):
        closed = rewriting.closed(drift, sign * factor)
        if (inner - closed - Sums.constant(noise, coding)).equals(rest):
            return ClosedLoop(drift, sign * factor, noise)
    return None


def _noisy_loop(rest: Sums, rewriting: Products) -> NoisyLoop | None:
    """L and W of rest = −L(P) − W, where the flow of L keeps matrices semidefinite.

    In discrete time L(P) = Σ (A_r + B_r K) P (A_r + B_r K)ᵀ − c P, with c = 1 where the row is not
    multiplied by a number. A c that is too large does no harm: it adds one more square.
    """
    order = rewriting.order
    if rest.shape != (order, order):
        return None
    matrices = [None if each is None else -each for each in rewriting.forms(rest)]
    if any(each is None for each in matrices):
        return None
    total, noise = order + rewriting.rows, -rest.value
    tensor = np.array(matrices, dtype=float).reshape(order, order, total, total)
    unit = np.zeros(tensor.shape)
    for i, j in np.ndindex(order, order):  # P itself, a half in each of two entries
        unit[i, j, i, j] += 0.5
        unit[i, j, j, i] += 0.5
    for scale in (1.0, AMPLE * float(np.abs(tensor).max())):
        if congruences(scale * unit + tensor) is not None:
            return NoisyLoop(tensor, noise, float(np.linalg.eigvalsh(noise).min()) / scale)
    flows = congruences(tensor, np.eye(order, total)) is not None
    return NoisyLoop(tensor, noise, 0.0) if flows else None
