"""What comes before all chains of a model: terms in arrays, and matrix inequalities with slacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.records import dataclass
from hcmodel.reductions.reduction import Duals, Origin
from hcmodel.reductions.semidefinite import Semidefinite
from hcmodel.reductions.sums.collected import Collected

if TYPE_CHECKING:
    from hcmodel.reductions.sums.known_sums import KnownFunctions

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Front:
    """Both in one: how points and multipliers walk between the user's model and that of a chain."""

    collected: Collected
    semidefinite: Semidefinite

    @staticmethod
    def of(model: Model, *, as_written: bool = False) -> Front:
        collected = Collected(model, model) if as_written else Collected.of(model)
        return Front(collected, Semidefinite.of(collected.after))

    @property
    def before(self) -> Model:
        return self.collected.before

    @property
    def after(self) -> Model:
        return self.semidefinite.after

    @property
    def slacks(self) -> frozenset[Variable]:
        return self.semidefinite.slacks

    @property
    def known(self) -> KnownFunctions | None:
        """What functions of `after` are as terms, where they were collected."""
        return self.collected.known

    def refresh(self) -> None:
        """Read the parameters; an error where a matrix inequality is not between symmetric matrices."""
        self.semidefinite.refresh()

    def point(self, x: FloatArray) -> FloatArray:
        return self.semidefinite.point(self.collected.point(x))

    def point_back(self, u: FloatArray) -> FloatArray:
        return self.collected.point_back(self.semidefinite.point_back(u))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        there = self.semidefinite.duals_back(u, duals)
        return self.collected.duals_back(self.semidefinite.point_back(u), there)

    def origin(self, origin: Origin) -> Origin | None:
        there = self.semidefinite.origin(origin)
        return None if there is None else self.collected.origin(there)
