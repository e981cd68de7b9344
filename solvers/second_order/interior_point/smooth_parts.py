"""The smooth parts of a program, added up over the rows of its standard form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse

from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray, Matrix
from hcmodel.solvers.second_order.interior_point.standard_form import StandardForm

# Numbers of a matrix up to which arrays are added: scipy's constructors take longer than that.
SMALL = 10_000


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
        point, free = self.form.whole(u), self.form.free
        shape = (self.form.rows + 1, self.form.size)
        found = [part.jacobian(point) for part in self.form.smooth]
        if _small(shape, found):
            slopes = np.zeros(shape)
            for place, rows in zip(self._places, found, strict=True):
                slopes += place @ rows[:, free]
            return sparse.csr_array(slopes)
        total = sparse.csr_array(shape)
        for place, rows in zip(self._places, found, strict=True):
            total = total + place @ sparse.csc_array(rows)[:, free]
        return sparse.csr_array(total)

    def hessian(self, u: FloatArray, weights: FloatArray) -> Matrix:
        point, free = self.form.whole(u), self.form.free
        shape = (self.form.size, self.form.size)
        found = [
            part.hessian(point, place.T @ weights)
            for place, part in zip(self._places, self.form.smooth, strict=True)
        ]
        if _small(shape, found):
            bends = np.zeros(shape)
            for whole in found:
                bends += whole[free][:, free]
            return sparse.csr_array(bends)
        total = sparse.csr_array(shape)
        for whole in found:
            total = total + sparse.csr_array(sparse.csc_array(whole)[:, free])[free]
        return total


def _small(shape: tuple[int, int], parts: list[Any]) -> bool:
    whole = all(isinstance(part, np.ndarray) for part in parts)
    return whole and shape[0] * shape[1] <= SMALL
