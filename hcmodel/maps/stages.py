"""Stages of a decision process whose visits are multiplied out.

A process with the policies π₁, π₂, … of its stages is often written by what happens after each other:
d₂[z] = Σ μ[s] π₁[s,a] P[s,a,z], d₃ the same with d₂ and π₂, and a reward Σ d_t[s] π_t[s,a] r[s,a]; or
backwards, by values. Multiplied out it is one polynomial in all policies, whichever way it was written,
and an entry π_t[s,a] of the last stage has cofactors that are numbers times d_t[s] for all actions a,

    Σ … r[s,a] · d_t[s] · π_t[s,a],     d_t[s] a polynomial in the policies before.

So d_t[s] is found as what the cofactors of the entries of one distribution have in common. It is not
negative, as its weights are not. With λ[s,a] = d_t[s] π_t[s,a] in place of the policy everything is
linear in λ, as for `occupancy`; what remains is Σ_a λ[s,a] = d_t[s], a row in the policies before, of
which the last ones are taken in the same way. The policy of the first stage is its own λ. The way back
is π = λ / Σ_a λ; in a state that is never visited any policy will do.

One policy for all stages does not have such cofactors: d_t[s] depends on it.

With more than three policies nothing is multiplied out: visits that are written one after the other get
names (`named_visits`), and values that are computed backwards become visits first (`named_values`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.polynomials import Sums, added, stacked
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.named_values import visits_of_values
from hcmodel.maps.algebra.named_visits import named_visits
from hcmodel.maps.algebra.rewriting import Rewriting, applied
from hcmodel.maps.map import Map, Obstacle, Points, Step, described, fresh_name, symbol_sums
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]


class Stages(Map):
    """λ = d·π with visits d that are polynomials in other policies; see the module."""

    name = "stages"
    summary = "λ = d π for policies π of stages, d multiplied out; back: π = λ / Σ λ"
    literature = "Manne 1960; Puterman 1994, chapter 4; Altman 1999"
    example = "stages.hc"
    large = True

    def propose_written(self, model: Model) -> Iterator[Step | Obstacle]:
        for find in (visits_of_values, named_visits):  # values that are no visits are soon seen
            found = find(model)
            if found is not None:
                yield found

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        policies = [each for each in model.variables if each.set.is_distribution and each.size]
        if policies:
            draws = Draws.of(model, policies)
            if not _has_products(model, draws):
                return
            found = _found(model, draws)
            if isinstance(found, Obstacle):
                yield found
            elif found:
                yield _Stages.of(model, draws, found)


@dataclass(frozen=True, eq=False)
class Draws:
    """The distributions of all policies: for each digit the number of its distribution, −1 for others."""

    policies: tuple[Variable, ...]
    number: Numbers
    lines: tuple[Numbers, ...]
    """The digits of each distribution."""

    @staticmethod
    def of(model: Expanded, policies: Sequence[Variable]) -> Draws:
        symbols = model.symbols
        number = np.full(symbols.count + 1, -1, dtype=np.int64)
        lines: list[Numbers] = []
        for policy in policies:
            for line in symbols.of_variable(policy).reshape(-1, policy.shape[-1]) + 1:
                number[line] = len(lines)
                lines.append(line)
        return Draws(tuple(policies), number, tuple(lines))

    def of_digits(self, digits: Numbers) -> Numbers:
        """The distribution of each digit."""
        known = digits < self.number.size
        return np.where(known, self.number[np.where(known, digits, 0)], -1)


def _has_products(model: Expanded, draws: Draws) -> bool:
    """Whether entries of distributions are multiplied with each other anywhere."""
    drawn = (draws.of_digits(sums.digits) >= 0 for sums in model.everywhere())
    return any(bool((each.sum(axis=1) > 1).any()) for each in drawn)


@dataclass(frozen=True, eq=False)
class _Cofactors:
    """What stands beside the entries of one distribution in a sum: by entry and action, sorted."""

    terms: Numbers
    """The terms that have an entry of it."""
    entry: NDArray[np.intp]
    digit: Numbers
    keys: list[Numbers]
    weights: list[FloatArray]


class _Factors:
    """Where the entries of each distribution stand in a sum; terms are sorted once for all of them."""

    def __init__(self, sums: Sums, draws: Draws) -> None:
        self.sums = sums
        self._digits = sums.digits
        numbers = draws.of_digits(self._digits)
        self._term, self._slot = np.nonzero(numbers >= 0)
        found = numbers[self._term, self._slot]
        self._order = np.argsort(found, kind="stable")
        self.drawn, starts = np.unique(found[self._order], return_index=True)
        self._ends = np.append(starts, found.size)
        several = np.bincount(self._term, minlength=sums.key.size)[self._term] > 1
        self.multiplied: list[int] = np.unique(found[several]).tolist()
        """The distributions that stand in products with others."""

    def of(self, which: int, taken: Marks | None = None) -> _Cofactors:
        """The cofactors of a distribution, in the terms that are not taken."""
        place = int(np.searchsorted(self.drawn, which))
        own = slice(0)
        if place < self.drawn.size and self.drawn[place] == which:
            own = slice(int(self._ends[place]), int(self._ends[place + 1]))
        chosen = self._order[own]
        if taken is not None:
            chosen = chosen[~taken[self._term[chosen]]]
        terms, slot = self._term[chosen], self._slot[chosen]
        inner = self._digits[terms]
        here = np.arange(terms.size)
        digit = inner[here, slot]
        inner[here, slot] = 0
        rest = self.sums.coding.keys(inner)
        entry, weight = self.sums.entry[terms], self.sums.weight[terms]
        order = np.lexsort((rest, digit, entry))
        entry, digit, rest, weight = entry[order], digit[order], rest[order], weight[order]
        new = np.flatnonzero((np.diff(entry) != 0) | (np.diff(digit) != 0)) + 1
        starts = np.concatenate([np.zeros(min(1, entry.size), dtype=np.intp), new])
        keys = np.split(rest, new) if rest.size else []
        weights = np.split(weight, new) if weight.size else []
        return _Cofactors(terms, entry[starts], digit[starts], keys, weights)


def _ratio(keys: Numbers, weights: FloatArray, visits: Sums) -> float | None:
    """The number that a cofactor is times the visits; None where it is not."""
    if keys.size != visits.key.size:
        return None
    return Sums((), visits.entry, keys, weights, visits.coding).multiple_of(visits)


def _visits(arrays: Sequence[_Factors], draws: Draws, which: int) -> Sums | None:
    """The polynomial that all cofactors of a distribution are numbers times; None where there is none."""
    visits: Sums | None = None
    for factors in arrays:
        found = factors.of(which)
        for keys, weights in zip(found.keys, found.weights, strict=True):
            if visits is None:
                sign = 1.0 if weights[0] > 0 else -1.0
                if (sign * weights <= 0).any():
                    return None
                scaled = np.abs(weights) / np.abs(weights).sum()
                entry = np.zeros(keys.size, dtype=np.intp)
                visits = Sums((), entry, keys, scaled, factors.sums.coding)
                if not _of_policies(visits, draws, which):
                    return None
            elif _ratio(keys, weights, visits) is None:
                return None
    return visits


def _of_policies(visits: Sums, draws: Draws, which: int) -> bool:
    """Whether a polynomial has nothing but entries of other distributions."""
    used = draws.of_digits(visits.symbols_used() + 1)
    return bool((used >= 0).all() and (used != which).all())


def _found(model: Expanded, draws: Draws) -> list[tuple[int, Sums]] | Obstacle:
    """The distributions with their visits, those of the last stage first.

    Where few actions have a reward, the cofactors of earlier stages may have something in common too:
    first the policies that were declared last are taken to be the last ones, then the others.
    """
    found = _in_order(model, draws, backwards=True)
    return found if not isinstance(found, Obstacle) else _in_order(model, draws, backwards=False)


def _in_order(
    model: Expanded, draws: Draws, *, backwards: bool
) -> list[tuple[int, Sums]] | Obstacle:
    found: list[tuple[int, Sums]] = []
    arrays = [_Factors(sums, draws) for sums in model.everywhere()]
    while pending := sorted({which for each in arrays for which in each.multiplied}):
        stage: dict[int, Sums] = {}
        before = set[int]()  # the distributions that the visits of this stage depend on
        for which in reversed(pending) if backwards else pending:
            visits = None if which in before else _visits(arrays, draws, which)
            own = set() if visits is None else set(_drawn(visits, draws))
            if visits is not None and not own & set(stage):
                stage[which] = visits
                before |= own
        if not stage:
            word = described(model.symbols, int(draws.lines[pending[-1]][0]) - 1)
            reason = f"{word} is not drawn after the same visits in all terms"
            return Obstacle("stages", reason)
        arrays = [_without(each, draws, stage) for each in arrays]
        arrays += [_Factors(visits, draws) for visits in stage.values()]
        found += stage.items()
    return found


def _drawn(sums: Sums, draws: Draws) -> list[int]:
    """The distributions in a sum."""
    numbers = draws.of_digits(sums.symbols_used() + 1)
    return list(np.unique(numbers[numbers >= 0]).tolist())


def _without(factors: _Factors, draws: Draws, taken: dict[int, Sums]) -> _Factors:
    """The terms that have none of some distributions."""
    sums = factors.sums
    if not np.isin(factors.drawn, list(taken)).any():
        return factors
    kept = ~np.asarray(np.isin(draws.of_digits(sums.digits), list(taken)).any(axis=1))
    return _Factors(sums.chosen(kept), draws)


class _Rewriting(Rewriting):
    """d·π → λ, stage by stage; distributions without visits are λ themselves."""

    def __init__(
        self,
        model: Expanded,
        draws: Draws,
        found: Sequence[tuple[int, Sums]],
        new: dict[int, int],
    ) -> None:
        super().__init__(model.symbols, np.array(sorted(new), dtype=np.int64) - 1)
        self._draws, self._found, self._new = draws, found, new

    def terms(self, sums: Sums) -> Sums:
        factors = _Factors(sums, self._draws)
        taken = np.zeros(sums.key.size, dtype=bool)
        parts: list[Sums] = []
        for which, visits in self._found:
            cofactors = factors.of(which, taken)
            if not cofactors.terms.size:
                continue
            pairs = zip(cofactors.keys, cofactors.weights, strict=True)
            ratios = [_ratio(keys, weights, visits) for keys, weights in pairs]
            if None in ratios:
                return sums
            key = np.array([self._new[digit] for digit in cofactors.digit.tolist()])
            weights = np.array(ratios, dtype=float)
            parts.append(Sums.merged(sums.shape, cofactors.entry, key, weights, sums.coding))
            taken[cofactors.terms] = True
        sums = added([sums.chosen(~taken), *parts])
        digits = sums.digits
        rest = np.isin(digits, list(self._new))
        renamed = np.vectorize(lambda digit: self._new.get(digit, digit), otypes=[np.int64])
        if not rest.any():
            return sums
        key = sums.coding.keys(np.where(rest, renamed(digits), digits))
        return Sums.merged(sums.shape, sums.entry, key, sums.weight, sums.coding)


class _Stages(Step):
    """Policies in place of λ."""

    name = "stages"

    def __init__(
        self,
        draws: Draws,
        visits: dict[int, Sums],
        pairs: Sequence[tuple[Variable, Variable]],
        after: Expanded,
    ) -> None:
        self._draws, self._visits, self._pairs = draws, visits, tuple(pairs)
        self.gone = tuple(old for old, _ in pairs)
        self.new = tuple(new for _, new in pairs)
        self.after = after
        self.texts = {new: f"visits * {old.name}" for old, new in pairs}

    @staticmethod
    def of(model: Expanded, draws: Draws, found: Sequence[tuple[int, Sums]]) -> Step | Obstacle:
        symbols, coding = model.symbols, model.symbols.coding
        visits = dict(found)
        pairs: list[tuple[Variable, Variable]] = []
        new: dict[int, int] = {}
        for policy in draws.policies:
            old = symbols.of_variable(policy).reshape(-1) + 1
            if not np.isin(draws.of_digits(old), list(visits)).any():
                continue
            name = fresh_name(model, f"{policy.name}_occupancy")
            occupancy = Variable(policy.shape, name=name, nonneg=True)
            own = symbols.of_variable(occupancy).reshape(-1) + 1
            new |= dict(zip(old.tolist(), own.tolist(), strict=True))
            pairs.append((policy, occupancy))
        rewriting = _Rewriting(model, draws, found, new)
        totals: list[Sums] = []
        limits: list[Sums] = []
        for policy, occupancy in pairs:
            lines = symbols.of_variable(occupancy).reshape(-1, policy.shape[-1])
            olds = symbols.of_variable(policy).reshape(-1, policy.shape[-1])
            ends = [
                np.broadcast_to(end, policy.shape).reshape(lines.shape)
                for end in (policy.lower, policy.upper)
            ]
            for place, (line, old) in enumerate(zip(lines, olds, strict=True)):
                total = symbol_sums(symbols, line).grouped(np.zeros(line.size, dtype=np.intp), ())
                drawn = visits.get(int(draws.of_digits(old[:1] + 1)[0]))
                often = Sums.constant(1.0, coding) if drawn is None else rewriting(drawn)
                totals.append(total - often)
                limits += _bounds(symbol_sums(symbols, line), total, *(end[place] for end in ends))
        rows = [Row(stacked(totals, coding), "==", None)]
        if limits:
            rows.append(Row(stacked(limits, coding), "<=", None))
        after = applied(
            model, rewriting, gone=[old for old, _ in pairs], new=[n for _, n in pairs], rows=rows
        )
        if isinstance(after, np.ndarray):
            word = described(symbols, int(after[0]))
            return Obstacle("stages", f"{word} appears without the visits of its state")
        return _Stages(draws, visits, pairs, after)

    def forward(self, point: Points) -> None:
        evaluation = Evaluation(self.after.symbols, point)
        for old, new in self._pairs:
            digits = self.after.symbols.of_variable(old).reshape(-1, old.shape[-1]) + 1
            numbers = self._draws.of_digits(digits[:, 0]).tolist()
            often = [
                1.0 if each not in self._visits else float(evaluation.of(self._visits[each]))
                for each in numbers
            ]
            point[new] = point[old] * np.reshape(often, (*old.shape[:-1], 1))

    def back(self, point: Points) -> None:
        for old, new in self._pairs:
            occupancy = np.maximum(point[new], 0.0)
            often = occupancy.sum(axis=-1, keepdims=True)
            seen = often > np.finfo(float).tiny
            share = occupancy / np.where(seen, often, 1.0)
            point[old] = np.where(seen, share, 1.0 / occupancy.shape[-1])


def _bounds(line: Sums, total: Sums, low: FloatArray, high: FloatArray) -> Iterator[Sums]:
    """l Σλ <= λ <= h Σλ for the bounds of a distribution, as sums that are not positive."""
    for entry, least, most in zip(line.entries(), low.tolist(), high.tolist(), strict=True):
        if least > 0:
            yield total.scaled(least) - entry
        if most < 1:
            yield entry - total.scaled(most)
