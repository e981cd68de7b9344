"""The best feasible point among those at which a point was judged.

Tests of a map, samples of the domain and paths evaluate the model at many points. One of them may be
better than the point that they judge, and calls of a user's functions are not made for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.oracle import Evaluation, Oracle

if TYPE_CHECKING:
    from hcmodel.reductions.form import Form

FloatArray = NDArray[np.float64]
Look = Callable[["Form", Evaluation], None]

_WATCHING: ContextVar[Look | None] = ContextVar("watching", default=None)


class Witness:
    """The lowest value of a feasible point, in units of the plain objective, and where it is."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.value = np.inf
        self.form: Form | None = None
        self.point: FloatArray | None = None

    def look(self, form: Form, evaluation: Evaluation) -> None:
        """Keep the point of an evaluation if it is the best one."""
        if not (evaluation.finite and evaluation.has_objective and evaluation.has_rows):
            return
        value = form.chain.value_back(evaluation.objective)
        if not value < self.value or evaluation.relative_violation > self.tolerance:
            return
        if form.domain.contains(evaluation.point, self.tolerance):
            self.value, self.form, self.point = value, form, evaluation.point

    def found(self) -> FloatArray | None:
        """The best point as one of the model."""
        if self.form is None or self.point is None:
            return None
        return self.form.chain.point_back(self.point)


class Witnessed:
    """All that oracles of forms evaluate inside of it is seen by the witness that it gives."""

    def __init__(self, tolerance: float) -> None:
        self._witness = Witness(tolerance)

    def __enter__(self) -> Witness:
        self._before = _WATCHING.set(self._witness.look)
        return self._witness

    def __exit__(self, *error: object) -> None:
        _WATCHING.reset(self._before)


def shown(form: Form, oracle: Oracle) -> Oracle:
    """The oracle of a form, which is watched where somebody watches."""
    look = _WATCHING.get()
    if look is not None:
        oracle.show_to(lambda evaluation: look(form, evaluation))
    return oracle
