"""The gain and the bias of a policy, by its stationary distribution.

The average reward g of a policy π, with the bias h of its states, satisfies for each state s

    g + h[s] = Σ_a π[s,a] (r[s,a] + Σ_t P[s,a,t] h[t]),     that is    g 1 + N(π) h = r(π),

with N(π) = I − P(π): no positive entries off the diagonal, and rows with the sum 0 whatever the policy.
So there is a d >= 0 with dᵀ N(π) = 0 and Σ d = 1, and dᵀ times the equations is

    g = Σ_s d[s] r[s](π).

With this in the place of g and with d as a variable, the equations and what else is said of h leave the
model: h[0] == 0 or Σ h == 0 choose one of the solutions, which differ by a constant. `occupancy` does the
rest. The way back solves the equations for h. They have a solution for each policy if all policies have a
single recurrent class: here, if one state is reached from all others whatever is done.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import ONE, Sums, stacked
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, rewritten, without
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import SUM_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class GainBias(Map):
    """d with dᵀ N(π) = 0 in place of a gain and a bias; see the module."""

    name = "gain-bias"
    summary = (
        "the stationary d in place of a gain g and a bias h with g + N(π) h = r(π); g = d r(π)"
    )
    literature = "Puterman 1994, section 8.2"
    example = """
    # The largest average reward, by the equations of gain and bias.
    param moves[2,2,2] = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]]
    param reward[2,2]  = [[1, 2], [0, 3]]
    var policy[2,2] in simplex
    var gain, bias[2]

    let value[s in 1..2, a in 1..2] = reward[s,a] + sum(moves[s,a,t]*bias[t] for t in 1..2)

    maximize gain

    subject to
        average[s in 1..2]: gain + bias[s] == sum(policy[s,a]*value[s,a] for a in 1..2)
        level: bias[1] == 0
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not any(each.set.is_distribution for each in model.variables):
            return
        free = [each for each in model.variables if _is_free(each)]
        for bias in free:
            for gain in free:
                if gain.size == 1 and gain is not bias and bias.ndim == 1:
                    found = _Equations.of(model, gain, bias)
                    if isinstance(found, Obstacle):
                        yield found
                    elif found is not None:
                        yield _Stationary(model, found)


def _is_free(variable: Variable) -> bool:
    return variable.set.is_box and not variable.has_bounds and not variable.pos


@dataclass(frozen=True, eq=False)
class _Equations:
    """The rows of a gain and a bias, one entry for each state, and what is said of the bias alone."""

    gain: Variable
    bias: Variable
    sums: Sums
    """g + N(π) h − r(π), with the weight 1 of g."""
    rows: tuple[Row, ...]
    others: tuple[Row, ...]

    @staticmethod
    def of(model: Expanded, gain: Variable, bias: Variable) -> _Equations | Obstacle | None:
        symbols = model.symbols
        mine, own = symbols.of_variable(gain).reshape(-1), symbols.of_variable(bias)
        rows = [row for row in model.rows if row.sums.holding(own).any()]
        both = [row for row in rows if row.sense == "==" and row.sums.holding(mine).any()]
        others = [row for row in rows if row not in both]
        if any(row.factor is not None or row.entries is not None for row in rows) or not both:
            return None
        outside = [model.objective, *(each for f in model.functions() for each in f.arguments)]
        if any(each.holding(own).any() for each in outside) or len(others) > 1:
            return None
        if not all(_says_constant(row, own) for row in others):
            return None
        entries = [entry for row in both for entry in row.sums.entries()]
        weights = [float(each.weight[each.key == mine[0] + 1].sum()) for each in entries]
        if len(entries) != bias.size or not all(weights):
            return None
        scaled = [each.scaled(1.0 / w) for each, w in zip(entries, weights, strict=True)]
        sums = stacked(scaled, symbols.coding)
        found = _Equations(gain, bias, sums, tuple(both), tuple(others))
        chances = found._chances(model)
        if chances is None:
            return None
        if not _meets(chances):
            return Obstacle("gain-bias", "a policy may have several recurrent classes")
        return found

    def _chances(self, model: Expanded) -> FloatArray | None:
        """N for each action of each state, as (state, action, state); None where it is no I − P."""
        symbols, sums, size = model.symbols, self.sums, self.bias.size
        own = symbols.of_variable(self.bias)
        digits = sums.digits
        of_bias = sums.among(own + 1)
        held = of_bias.any(axis=1)
        gains = sums.holding(symbols.of_variable(self.gain).reshape(-1))
        if (sums.degrees[gains] > 1).any() or (sums.degrees[held] > 2).any():
            return None
        place = np.where(of_bias, digits, 0).max(axis=1) - 1 - int(own[0])
        other = np.where(of_bias, 0, digits).max(axis=1) - 1
        lines = self._lines(model, other[held & (other >= 0)], sums.entry[held & (other >= 0)])
        if lines is None:
            return None
        found = np.zeros((size, max(line.size for line in lines), size))
        for entry, z, action, weight in zip(
            sums.entry[held], place[held], other[held], sums.weight[held], strict=True
        ):
            here = slice(None) if action < 0 else np.flatnonzero(lines[entry] == action)
            found[entry, here, z] += weight
        size_of = np.abs(found).max(initial=0.0)
        off = np.where(np.eye(size, dtype=bool)[:, None, :], 0.0, found)
        balanced = np.abs(found.sum(axis=2)) <= SUM_ROUNDING * size_of * size
        return found if balanced.all() and (off <= 0).all() else None

    def _lines(self, model: Expanded, actions: Numbers, entries: Numbers) -> list[Numbers] | None:
        """The distribution that the actions of each state are drawn from."""
        pool = [
            line
            for each in model.variables
            if each.set.is_distribution
            for line in model.symbols.of_variable(each).reshape(-1, each.shape[-1])
        ]
        found = list[Numbers]()
        for state in range(self.bias.size):
            own = np.unique(actions[entries == state])
            line = next((each for each in pool if own.size and np.isin(own, each).all()), None)
            if line is None:
                return None
            found.append(line)
        return found if len({line.size for line in found}) == 1 else None


def _says_constant(row: Row, own: Numbers) -> bool:
    """Whether a row is an equality of the bias alone that a constant added to it can satisfy."""
    sums = row.sums
    if row.sense != "==" or sums.size != 1 or int(sums.degrees.max()) != 1:
        return False
    moving = sums.key != ONE
    total = float(sums.weight[moving].sum())
    alone = bool(sums.holding(own)[moving].all())
    return alone and abs(total) > SUM_ROUNDING * float(np.abs(sums.weight[moving]).sum())


def _meets(chances: FloatArray) -> bool:
    """Whether some state is reached from all others under every policy."""
    size = chances.shape[0]
    for target in range(size):
        reached = np.zeros(size, dtype=bool)
        reached[target] = True
        for _ in range(size):
            into = np.all(np.any(chances[:, :, reached] < 0, axis=2), axis=1)
            if not (into & ~reached).any():
                break
            reached |= into
        if reached.all():
            return True
    return False


class _Stationary(Step):
    """d in place of the gain and the bias."""

    name = "gain-bias"

    def __init__(self, model: Expanded, found: _Equations) -> None:
        symbols, coding = model.symbols, model.symbols.coding
        self.gone, self._found = (found.gain, found.bias), found
        d = Variable(found.bias.shape, name=fresh_name(model, "d"), nonneg=True)
        self.new = (d,)
        self.texts = {d: "the stationary distribution"}
        own = symbols.of_variable(found.bias)
        visits = symbol_sums(symbols, symbols.of_variable(d))
        of_bias = found.sums.holding(own)
        gains = found.sums.holding(symbols.of_variable(found.gain).reshape(-1))
        rewards = -found.sums.chosen(~of_bias & ~gains)
        one = np.zeros(d.size, dtype=np.intp)
        self._gain = rewards.times(visits).grouped(one, ())
        self._balance = stacked(
            [
                without(part, int(each) + 1).times(visits).grouped(one, ())
                for each in own.tolist()
                for part in [found.sums.chosen(found.sums.holding(np.array([each])))]
            ],
            coding,
        )
        changes = {int(symbols.of_variable(found.gain).reshape(-1)[0]): self._gain}
        kept = tuple(row for row in model.rows if row not in (*found.rows, *found.others))
        plain = replace(model, rows=kept, is_original=False, written=None)
        total = Sums.total(symbols.of_variable(d), coding) - Sums.constant(1.0, coding)
        rows = [Row(self._balance, "==", None), Row(total, "==", None)]
        exchange = Exchange(symbols, changes)
        self.after = rewritten(plain, exchange, gone=self.gone, new=self.new, rows=rows)

    def forward(self, point: Points) -> None:
        """dᵀ N = 0 and Σ d = 1, which have one solution."""
        size = self.new[0].size
        system = np.ones((size + 1, size))
        for state in range(size):
            unit = {**point, self.new[0]: np.eye(size)[state]}
            system[:size, state] = Evaluation(self.after.symbols, unit).of(self._balance)
        right = np.append(np.zeros(size), 1.0)
        found = np.linalg.lstsq(system, right, rcond=None)[0]
        point[self.new[0]] = np.maximum(found, 0.0)

    def settle(self, point: Points) -> None:
        self.forward(point)
        self.back(point)

    def back(self, point: Points) -> None:
        """g from d, and h from the equations."""
        gain, bias = self.gone
        symbols, found = self.after.symbols, self._found
        value = Evaluation(symbols, point).of(self._gain)
        point[gain] = np.reshape(value, gain.shape)
        arrays = [found.sums, *(row.sums for row in found.others)]

        def residual(values: FloatArray) -> FloatArray:
            numbers = Evaluation(symbols, {**point, bias: values})
            return np.concatenate([np.ravel(numbers.of(each)) for each in arrays])

        start = residual(np.zeros(bias.size))
        system = np.stack([residual(each) - start for each in np.eye(bias.size)], axis=1)
        point[bias] = np.asarray(np.linalg.lstsq(system, -start, rcond=None)[0], dtype=float)
