"""The cone program of a proven model, handed out for other solvers, with the way back."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError, NotHiddenConvexError
from hcmodel.records import dataclass
from hcmodel.reductions.cone.cone import Cone
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.qp.cone_program import ConeProgram
from hcmodel.solvers.qp.table import CONE_BACKENDS
from hcmodel.solving.conclude import user_point
from hcmodel.solving.naming import Naming

FloatArray = NDArray[np.float64]


def check_solver(solver: object) -> None:
    """Raise a ModelError where a solver is named that hcmodel has no backend for.

    Known are the names of the table of cone backends; CVXPY writes them in capitals.
    """
    if solver is None or (isinstance(solver, str) and solver.lower() in CONE_BACKENDS):
        return
    known = ", ".join(repr(name.upper()) for name in sorted(CONE_BACKENDS))
    raise ModelError(
        f"unknown solver {solver!r}; known are {known}, and None: the data are the same for all"
    )


@dataclass(frozen=True)
class ProblemData:
    """minimise ½ xᵀP x + qᵀx s.t. A x + s = b, s in K, with the hidden coordinates first in x.

    `coordinates` says what they are. `point` and `duals` walk a solution of the program back to the
    model.
    """

    program: ConeProgram
    coordinates: tuple[str, ...]
    _forms: Forms = field(repr=False)
    _form: Form = field(repr=False)
    _cone: Cone = field(repr=False)

    @staticmethod
    def of(forms: Forms) -> ProblemData:
        """The data of a model that is proven convex and whose functions all have cone forms."""
        forms.refresh()
        form = forms.hidden(forms.sign.before.source)
        if form is None or form.proof is None:
            raise NotHiddenConvexError(
                "there is no cone program: the model is not proven convex in any coordinates "
                "(problem.analyze() says why)"
            )
        cone = form.cone
        if not isinstance(cone, Cone):
            raise ModelError(f"there is no cone program: {cone.reason}")
        return ProblemData(cone.after, tuple(form.coordinate_names()), forms, form, cone)

    def described(self) -> list[str]:
        """In words: which unknowns of the program are which coordinates, and what its value is."""
        layout, texts = self._form.canonical.layout, self._form.coordinate_texts()
        lines = []
        for variable in layout.variables:
            place = layout.slice(variable)
            name = texts.get(variable.name, f"{variable.name} (added)")
            last = f" … x{place.stop - 1}" if place.stop - place.start > 1 else ""
            lines.append(f"x{place.start}{last}: {name}")
        if layout.size < self.program.linear.size:
            lines.append(f"x{layout.size} … x{self.program.linear.size - 1}: bounds of terms")
        back = "exp(value)" if self._form.canonical.outer.objective_form == "log" else "value"
        sign = "-" if self._forms.sign.before.sign < 0 else ""
        return [*lines, f"the value of the model is {sign}{back} of this program"]

    def value(self, value: float) -> float:
        """The value of the model as written, from that of the program."""
        return self._forms.sign.value_back(self._form.chain.value_back(value))

    def point(self, primal: FloatArray) -> dict[str, FloatArray]:
        """The variables by name, from x of the program."""
        u = np.asarray(primal, dtype=float)[: self._form.canonical.layout.size]
        return user_point(self._forms, self._form.chain.point_back(u))

    def duals(self, primal: FloatArray, dual: FloatArray) -> dict[str, FloatArray]:
        """The multipliers of the constraints as written, by name, from x and z of the program."""
        u = np.asarray(primal, dtype=float)[: self._form.canonical.layout.size]
        rows = self._form.canonical.multipliers(self._cone.by_constraint(np.asarray(dual)))
        walked = self._form.duals(self._form.oracle().at(u), rows)
        found = self._forms.front.duals_back(self._form.chain.point_back(u), walked).rows
        naming = Naming.of(self._forms.user)
        pairs = zip(naming.constraints, found, strict=True)
        return {
            name: naming.dual(position, each)
            for position, (name, each) in enumerate(pairs)
            if each is not None
        }
