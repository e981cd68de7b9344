"""The smooth parts of a program, added up over the rows of its standard form."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, Matrix
from hcmodel.solvers.second_order.interior_point.standard_form import StandardForm


class SmoothParts:
    def __init__(self, form: StandardForm) -> None:
        self.form = form
        head = form.rows + 1
        number = np.full(int(np.max(form.row_index)) + 1, -1)
        number[form.row_index] = np.arange(head)
        self._places = [
            sparse.csr_array(
                (form.scale[number[part.rows]], (number[part.rows], np.arange(len(part.rows)))),
                shape=(head, len(part.rows)),
            )
            for part in form.smooth
        ]
        # The last point with its values and its Jacobian: a step is accepted after it was tried.
        self._point: FloatArray | None = None
        self._known: tuple[FloatArray, Matrix | None] | None = None

    def values(self, u: FloatArray) -> FloatArray:
        if self._known is None or self._point is None or not np.array_equal(u, self._point):
            self._point, self._known = u.copy(), (self._values(u), None)
        return self._known[0]

    def jacobian(self, u: FloatArray) -> Matrix:
        values = self.values(u)
        jacobian = None if self._known is None else self._known[1]
        if jacobian is None:
            jacobian = self._jacobian(u)
            self._known = (values, jacobian)
        return jacobian

    def _values(self, u: FloatArray) -> FloatArray:
        point = self.form.whole(u)
        total = np.zeros(self.form.rows + 1)
        for place, part in zip(self._places, self.form.smooth, strict=True):
            total += place @ np.asarray(part.values(point), dtype=float)
        return total

    def _jacobian(self, u: FloatArray) -> Matrix:
        point = self.form.whole(u)
        total = sparse.csr_array((self.form.rows + 1, self.form.size))
        for place, part in zip(self._places, self.form.smooth, strict=True):
            rows = sparse.csc_array(part.jacobian(point))[:, self.form.free]
            total = total + place @ rows
        return sparse.csr_array(total)

    def hessian(self, u: FloatArray, weights: FloatArray) -> Matrix:
        point = self.form.whole(u)
        free = self.form.free
        total = sparse.csr_array((self.form.size, self.form.size))
        for place, part in zip(self._places, self.form.smooth, strict=True):
            whole = part.hessian(point, place.T @ weights)
            total = total + sparse.csr_array(sparse.csc_array(whole)[:, free])[free]
        return total
