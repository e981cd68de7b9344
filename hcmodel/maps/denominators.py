"""Rows with ratios, multiplied by their denominators; no variable changes.

A row M(x)/D(x) <= r with D > 0 is M(x) <= r·D(x), affine where M and D are: ratios below a level are
convex rows, whatever their denominators. An entry is multiplied where it is not convex as it is, and
where it has one denominator, of which the sign follows from bounds or from affine rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from hcmodel.facts.polynomials import Sums, added, stacked
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.gather import gathered
from hcmodel.maps.algebra.ranges import sign_of
from hcmodel.maps.algebra.rewriting import without
from hcmodel.maps.fractional import denominators, may_vanish
from hcmodel.maps.map import Map, Obstacle, Points, Step
from hcmodel.records import replace


class Denominators(Map):
    """Rows times their denominators, where these have a sign; no variable changes."""

    name = "denominators"
    summary = "rows with ratios multiplied by their positive denominators"
    literature = "Boyd, Vandenberghe 2004, section 4.3"
    example = """
    # Two ratios with different denominators.
    var x[2] in [0, 10]

    minimize x[1] + x[2]

    subject to
        yield: (x[1] + 3*x[2]) / (1 + x[1]) >= 2
        balance: (x[1] + 1) / (x[2] + 1) <= 1.5
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        rows = tuple(_without_ratios(model, row) for row in model.rows)
        if any(new is not old for new, old in zip(rows, model.rows, strict=True)):
            yield _Cleared(replace(model, rows=rows))


def _without_ratios(model: Expanded, row: Row) -> Row:
    """A row with the entries that are not convex with their denominator multiplied by it."""
    symbols, coding = model.symbols, model.symbols.coding
    if not denominators(symbols, row.sums):
        return row
    factors: list[Sums] = []
    parts: list[Sums] = []
    for entry in row.sums.entries():
        below = denominators(symbols, entry)
        bases = [base for base, powers in below if set(powers.values()) == {1}]
        factor = Sums.constant(1.0, coding)
        if len(below) == 1 and bases and int(gathered(entry, symbols).degrees.max()) > 1:
            sign = 0 if may_vanish(model, bases[0]) else sign_of(model, bases[0])
            ((symbol, _),) = below[0][1].items()
            if sign and (entry.digits == symbol + 1).sum(axis=1).max() == 1:
                factor = bases[0].scaled(float(sign))
                hit = (entry.digits == symbol + 1).any(axis=1)
                ratio = without(entry.chosen(hit), symbol + 1).scaled(float(sign))
                entry = added([ratio, entry.chosen(~hit).times(factor)])
        factors.append(factor)
        parts.append(entry)
    if all(factor.is_constant for factor in factors):
        return row
    whole = stacked(factors, coding).reshaped(row.sums.shape)
    return replace(
        row,
        sums=stacked(parts, coding).reshaped(row.sums.shape),
        factor=whole if row.factor is None else row.factor.times(whole),
    )


class _Cleared(Step):
    """The same variables."""

    name = "denominators"
    new = ()
    gone = ()

    def __init__(self, after: Expanded) -> None:
        self.after = after

    def forward(self, point: Points) -> None:
        """Nothing changes."""

    def back(self, point: Points) -> None:
        """Nothing changes."""
