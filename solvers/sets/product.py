"""Products of sets, each over its own slice of the flat vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Product(Domain):
    """Sets side by side: each factor holds the entries that follow those of the one before."""

    factors: tuple[Domain, ...]

    def __init__(self, factors: Sequence[Domain]) -> None:
        object.__setattr__(self, "factors", tuple(factors))

    @property
    def dimension(self) -> int:
        return sum(factor.dimension for factor in self.factors)

    def _parts(self, x: FloatArray) -> list[FloatArray]:
        return [x[own] for own in self._slices]

    @cached_property
    def _slices(self) -> tuple[slice, ...]:
        ends = np.cumsum([0, *(factor.dimension for factor in self.factors)]).tolist()
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    @cached_property
    def moving_together(self) -> tuple[NDArray[np.intp], ...]:
        pairs = zip(self.factors, self._slices, strict=True)
        found = [own.start + group for factor, own in pairs for group in factor.moving_together]
        return tuple(found)

    def project(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return _join([factor.project(part) for factor, part in pairs])

    def contains(self, x: FloatArray, tolerance: float = 0.0) -> bool:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return all(factor.contains(part, tolerance) for factor, part in pairs)

    def normal_cone_distance(self, x: FloatArray, direction: FloatArray) -> FloatArray:
        triples = zip(self.factors, self._parts(x), self._parts(direction), strict=True)
        return _join([factor.normal_cone_distance(part, d) for factor, part, d in triples])

    def bound_multipliers(
        self, x: FloatArray, direction: FloatArray, tolerance: float
    ) -> FloatArray:
        triples = zip(self.factors, self._parts(x), self._parts(direction), strict=True)
        return _join([factor.bound_multipliers(part, d, tolerance) for factor, part, d in triples])

    def metric(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return _join([factor.metric(part) for factor, part in pairs])

    def norm(self, x: FloatArray) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        norms = [factor.norm(part) for factor, part in pairs]
        if all(norm.ndim == 1 for norm in norms):
            return _join(norms)
        blocks = [norm if norm.ndim == 2 else np.diag(norm) for norm in norms]
        return np.asarray(scipy.linalg.block_diag(*blocks))

    def width(self) -> FloatArray:
        return _join([factor.width() for factor in self.factors])

    def cone_rows(self) -> StepRows:
        return self._side_by_side([factor.cone_rows() for factor in self.factors])

    def step_rows(self, x: FloatArray, metric: FloatArray) -> StepRows:
        triples = zip(self.factors, self._parts(x), self._parts(metric), strict=True)
        return self._side_by_side([factor.step_rows(part, unit) for factor, part, unit in triples])

    def _side_by_side(self, rows: list[StepRows]) -> StepRows:
        cones: list[Cone] = []
        for own, row in zip(self._slices, rows, strict=True):
            for cone in row.cones:
                narrow = cone.matrix
                wide = scipy.sparse.csr_array(
                    (narrow.data, narrow.indices + own.start, narrow.indptr),
                    shape=(narrow.shape[0], self.dimension),
                )
                cones.append(Cone(cone.kind, wide, cone.offset))
        lower, upper = _join([row.lower for row in rows]), _join([row.upper for row in rows])
        return StepRows(lower, upper, tuple(cones))

    def tangent_basis(self) -> scipy.sparse.csr_array:
        return _block_diagonal([factor.tangent_basis() for factor in self.factors])

    def face_basis(self, x: FloatArray, share: float) -> scipy.sparse.csr_array:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return _block_diagonal([factor.face_basis(part, share) for factor, part in pairs])

    def along_face(self, x: FloatArray, share: float, vectors: FloatArray) -> FloatArray:
        found, start = [], 0
        for factor, part in zip(self.factors, self._parts(x), strict=True):
            own = vectors[start : start + part.size]
            found.append(factor.along_face(part, share, own))
            start += part.size
        return np.concatenate([np.zeros((0, *vectors.shape[1:])), *found])

    def flat_face(self, x: FloatArray, share: float) -> FloatArray | None:
        bases = []
        for factor, part in zip(self.factors, self._parts(x), strict=True):
            basis = factor.flat_face(part, share)
            if basis is None:
                return None
            bases.append(basis)
        return np.asarray(scipy.linalg.block_diag(np.zeros((0, 0)), *bases))

    def snapped(self, x: FloatArray, share: float) -> FloatArray:
        pairs = zip(self.factors, self._parts(x), strict=True)
        return _join([factor.snapped(part, share) for factor, part in pairs])

    def weakest_bound(self, x: FloatArray, gradient: FloatArray) -> float:
        triples = zip(self.factors, self._parts(x), self._parts(gradient), strict=True)
        return min((factor.weakest_bound(part, g) for factor, part, g in triples), default=np.inf)

    @property
    def is_box(self) -> bool:
        return all(factor.is_box for factor in self.factors)

    def entry_bounds(self) -> tuple[FloatArray, FloatArray]:
        pairs = [factor.entry_bounds() for factor in self.factors]
        return _join([lower for lower, _ in pairs]), _join([upper for _, upper in pairs])

    def cuts(self, center: FloatArray) -> HalfSpaces:
        parts = zip(self.factors, self._slices, strict=True)
        found = [factor.cuts(center[own]).widened(own, self.dimension) for factor, own in parts]
        return HalfSpaces.joined([HalfSpaces.none(self.dimension), *found])

    def least(self, slope: FloatArray, center: FloatArray, reach: float = np.inf) -> float:
        triples = zip(self.factors, self._parts(slope), self._parts(center), strict=True)
        return sum(factor.least(part, c, reach) for factor, part, c in triples)

    def support(self, direction: FloatArray) -> float:
        pairs = zip(self.factors, self._parts(direction), strict=True)
        return sum(factor.support(part) for factor, part in pairs)

    def diameter(self) -> float:
        return float(np.sqrt(sum(factor.diameter() ** 2 for factor in self.factors)))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        return _join([factor.sample(generator) for factor in self.factors])

    def middle(self) -> FloatArray:
        return _join([factor.middle() for factor in self.factors])

    def in_logarithms(self, logs: NDArray[np.bool_]) -> Domain:
        pairs = zip(self.factors, self._slices, strict=True)
        return Product([factor.in_logarithms(logs[own]) for factor, own in pairs])

    def without_bounds(self, entries: NDArray[np.bool_]) -> Domain:
        pairs = zip(self.factors, self._slices, strict=True)
        return Product([factor.without_bounds(entries[own]) for factor, own in pairs])


def side_by_side(domains: Iterable[Domain]) -> Domain:
    """The product of the sets: neighbouring boxes are one box, and a single set stays what it is."""
    factors: list[Domain] = []
    for domain in domains:
        last = factors[-1] if factors else None
        if type(domain) is Box and type(last) is Box:
            factors[-1] = Box(
                np.concatenate([last.lower, domain.lower]),
                np.concatenate([last.upper, domain.upper]),
                np.concatenate([last.positive, domain.positive]),
            )
        else:
            factors.append(domain)
    return factors[0] if len(factors) == 1 else Product(factors)


def _join(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.zeros(0)


def _block_diagonal(blocks: list[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
    if not blocks:
        return scipy.sparse.csr_array((0, 0))
    return scipy.sparse.csr_array(scipy.sparse.block_diag(blocks))
