"""Ratios that are maximised over a convex denominator, such as Sharpe's: t = 1/D(x) and y = t·x.

To maximise N(x)/D(x) with a concave N and a convex D > 0, take t = 1/D(x) and y = t·x as for other ratios
(`fractional`), and let t be smaller than that:

    maximise t·N(y/t)   subject to   t·D(y/t) <= 1,

both perspectives of the right curvature. For the Sharpe ratio μ·x / |L x| with weights that sum to 1 this
is to maximise μ·y subject to |L y| <= 1 and Σ y = t; bounds l <= x <= h become l·t <= y <= h·t.

Where N(x) > 0 a smaller t does not improve the objective, so that the maximum is the same once a feasible
x has N(x) > 0.
The map does not fit where N is nowhere positive. Where N(x) <= 0 the ratio is at most 0, which t·N comes
near to for small t: so the maximum in (y, t) is an upper bound of all ratios in each case.
"""

from __future__ import annotations

from collections.abc import Iterator

from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.ranges import is_affine, sign_of
from hcmodel.maps.fractional import Ratio, common_denominator, numerator
from hcmodel.maps.map import Map, Obstacle, Step


class Homogeneous(Map):
    """t = 1/D for a convex D, y = t·x; see the module."""

    name = "homogeneous"
    summary = "t = 1/D(x) and y = t x for a convex D, as in Sharpe's ratio; back: x = y/t"
    literature = "Schaible 1974; Cornuejols, Tütüncü 2007, section 8.2"
    example = "sharpe.hc"

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        below = common_denominator(model, self.name)
        if below is None or isinstance(below, Obstacle) or is_affine(model, below.sums):
            return
        above = numerator(model, below, self.name)
        if isinstance(above, Obstacle):
            return
        # the objective is minimised: the numerator is −N
        if sign_of(model, above) > 0:
            reason = "it is minimised and nowhere negative, or maximised and nowhere positive"
            yield Obstacle(self.name, f"the ratio has the wrong sign: {reason}")
            return
        step = Ratio.of(model, below, "<=", self.name)
        if isinstance(step, Step) and sign_of(model, above) == 0:
            step.ceiling = float(model.objective.value)
        yield step
