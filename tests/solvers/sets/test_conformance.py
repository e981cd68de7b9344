"""The suite that every domain has to pass, on every concrete one, on the defaults, and on broken ones."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.algebra.symmetric import ROOT_TWO, triangle
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.half_spaces import HalfSpaces
from hcmodel.solvers.sets.matrices import SymmetricMatrices
from hcmodel.solvers.sets.product import Product
from hcmodel.solvers.sets.simplices import Simplices
from hcmodel.testing import check_domain
from tests.extent import ALL

FloatArray = NDArray[np.float64]
INF = np.inf

MIXED = Box(np.array([-1.0, 0.5, -INF, 2.0, -INF]), np.array([1.0, 8.0, 4.0, INF, INF]))
ENTRIES = Box(np.full(3, -0.5), np.full(3, 3.0))


def correlations() -> BoundedMatrices:
    """Matrices with ones on the diagonal."""
    rows, columns = triangle(3)
    high = np.where(rows == columns, 1.0, ROOT_TWO)
    return BoundedMatrices(
        SymmetricMatrices(3, 1e-3, 4.0), Box(np.where(rows == columns, 1.0, -high), high)
    )


DOMAINS: dict[str, Domain] = {
    "box of all kinds": MIXED,
    "unit cube": Box.of(3, 0.0, 1.0),
    "whole space": Box.of(3),
    "box with a fixed entry": Box(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 3.0])),
    "positive numbers": Box(np.zeros(3), np.array([INF, 2.0, INF]), np.full(3, True)),
    "wide positive box": Box.of(3, 1e-6, 1e6),
    "box in logarithms": Box.of(3, 0.1, 10.0).in_logarithms(np.array([True, False, True])),
    "box without some bounds": MIXED.without_bounds(np.array([1, 0, 1, 0, 0], dtype=bool)),
    "simplex": Simplices(1, 4),
    "simplices": Simplices(3, 2),
    "simplices with one outcome": Simplices(2, 1),
    "bounded simplex": BoundedSimplices(1, 3, np.full(3, 0.1), np.full(3, 0.7)),
    "bounded simplices, one entry fixed": BoundedSimplices(
        2, 4, np.tile([0.1, 0.0, 0.2, 0.0], 2), np.tile([0.6, 0.3, 0.2, 1.0], 2)
    ),
    "symmetric": SymmetricMatrices(2),
    "psd": SymmetricMatrices(3, 0.0),
    "psd between": SymmetricMatrices(3, 0.1, 2.0),
    "eigenvalues at most 1": SymmetricMatrices(2, -INF, 1.0),
    "a matrix of one entry": SymmetricMatrices(1, 0.5),
    "psd between with entry bounds": BoundedMatrices(SymmetricMatrices(2, 0.5, 4.0), ENTRIES),
    "psd with entry bounds": BoundedMatrices(SymmetricMatrices(2, 0.0), ENTRIES),
    "correlations": correlations(),
    "product": Product([Box.of(2, -1.0, 1.0), Simplices(2, 3), SymmetricMatrices(2, 0.5)]),
    "product with entry bounds": Product(
        [MIXED, BoundedMatrices(SymmetricMatrices(2, 0.0), ENTRIES)]
    ),
    "product of nothing": Product([]),
}


class RequiredOnly(Domain):
    """Another domain with the five required members alone: everything else is a default."""

    def __init__(self, inner: Domain) -> None:
        self.inner = inner
        self.dimension = inner.dimension  # type: ignore[misc]

    def project(self, x: FloatArray) -> FloatArray:
        return self.inner.project(x)

    def cone_rows(self) -> StepRows:
        return self.inner.cone_rows()

    def tangent_basis(self) -> sp.csr_array:
        return self.inner.tangent_basis()

    def middle(self) -> FloatArray:
        return self.inner.middle()


def test_every_concrete_domain_is_in_the_table() -> None:
    folder = Path(inspect.getfile(Domain)).parent
    classes = set()
    for path in folder.glob("*.py"):
        module = importlib.import_module(f"hcmodel.solvers.sets.{path.stem}")
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Domain) and not inspect.isabstract(kind):
                classes.add(kind)
    assert classes == {type(domain) for domain in DOMAINS.values()}


# It has all kinds of defaults: bounds only, one face, cones.
KINDS = ["product"]
# A method of each order; the first one takes longer, and needs no more of a domain than the suite checks.
METHODS = ("sbl-adals", "prox-linear")
WITH_BOTH = ["product"]  # it has a simplex in it
# One domain of each class, on which a method runs.
SOLVED = {type(domain): name for name, domain in DOMAINS.items() if domain.dimension}.values()


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_conforms(name: str) -> None:
    both = ALL or name in WITH_BOTH
    check_domain(DOMAINS[name], methods=METHODS if both else METHODS[1:] if name in SOLVED else ())


@pytest.mark.parametrize("name", DOMAINS if ALL else KINDS)
def test_the_defaults_conform(name: str) -> None:
    check_domain(RequiredOnly(DOMAINS[name]), methods=())


@pytest.mark.parametrize("name", ["box of all kinds", "simplex"])
def test_methods_run_on_the_defaults(name: str) -> None:
    check_domain(RequiredOnly(DOMAINS[name]), seed=1, methods=("sbl-adals", "hidden-newton"))


@dataclass(frozen=True)
class Disc(Domain):
    """{x : ‖x‖ <= radius} in the plane, a curved set: [[r + x₁, x₂], [x₂, r − x₁]] ⪰ 0."""

    radius: float

    @property
    def dimension(self) -> int:
        return 2

    def project(self, x: FloatArray) -> FloatArray:
        return x * min(1.0, self.radius / max(float(np.linalg.norm(x)), 1e-300))

    def cone_rows(self) -> StepRows:
        endless = np.full(2, INF)
        matrix = sp.csr_array(np.array([[1.0, 0.0], [0.0, ROOT_TWO], [-1.0, 0.0]]))
        cone = Cone("psd", matrix, np.array([self.radius, 0.0, self.radius]))
        return StepRows(-endless, endless, (cone,))

    def tangent_basis(self) -> sp.csr_array:
        return sp.csr_array(np.eye(2))

    def middle(self) -> FloatArray:
        return np.zeros(2)


def test_a_curved_set_needs_the_required_members_only() -> None:
    disc = Disc(3.0)
    check_domain(disc)
    direction = np.array([3.0, 4.0])
    # closed forms of a disc: σ(d) = r‖d‖; its bounds of entries are ±r
    assert disc.support(direction) == pytest.approx(15.0, rel=1e-9)
    assert disc.support(direction) >= 15.0
    lower, upper = disc.entry_bounds()
    assert upper == pytest.approx([3.0, 3.0], rel=1e-6)
    assert (upper >= 3.0).all()
    assert (lower <= -3.0).all()
    x = np.array([0.0, 3.0])
    assert disc.normal_cone_distance(x, direction) == pytest.approx([3.0, 0.0], abs=1e-7)
    assert (
        pytest.approx(np.array([[1.0, 0.0]]) * disc.metric(x)[0], abs=1e-9)
        == disc.face_basis(x, 1e-9).toarray().T
    )


# One wrong member of a simplex, a box or a set of matrices each, and a word of the message.
SIMPLEX, BOX, PSD = Simplices(1, 4), Box.of(3, -1.0, 1.0), SymmetricMatrices(3, 0.1, 2.0)
BROKEN: dict[str, tuple[Domain, str, Callable[..., Any]]] = {
    "satisfy the cone rows": (SIMPLEX, "project", lambda self, x: x),
    "nearest point of the cone rows": (BOX, "project", lambda self, x: np.clip(x, -0.9, 0.9)),
    "the nearest point": (BOX, "cone_rows", lambda self: StepRows(2 * self.lower, 2 * self.upper)),
    "argument": (BOX, "project", lambda self, x: np.clip(x, -1.0, 1.0, out=x)),
    "leaves the span": (SIMPLEX, "tangent_basis", lambda self: sp.csr_array((4, 0))),
    "orthonormal": (BOX, "tangent_basis", lambda self: sp.csr_array(2 * np.eye(3))),
    "does not extend": (BOX, "middle", lambda self: np.ones(3)),
    "membership": (PSD, "contains", lambda self, x, tolerance=0.0: True),
    "normal cone": (PSD, "normal_cone_distance", lambda self, x, direction: direction.copy()),
    "multipliers of bounds": (
        BOX,
        "bound_multipliers",
        lambda self, x, direction, tolerance: 0 * x,
    ),
    "faces": (PSD, "face_basis", lambda self, x, share: self.tangent_basis()),
    "along the face": (PSD, "along_face", lambda self, x, share, vectors: 2 * vectors),
    "left along a face": (
        PSD,
        "flat_face",
        lambda self, x, share: self.face_basis(x, share).toarray(),
    ),
    "rows of steps": (
        BOX,
        "step_rows",
        lambda self, x, metric: StepRows(np.full(3, -INF), np.full(3, INF)),
    ),
    "inside is missed": (
        BOX,
        "step_rows",
        lambda self, x, metric: StepRows(np.zeros(3), np.zeros(3)),
    ),
    "not positive": (BOX, "metric", lambda self, x: 0 * x),
    "positive definite": (BOX, "norm", lambda self, x: 0 * x),
    "without width": (BOX, "width", lambda self: np.zeros(3)),
    "bounds of entries": (
        PSD,
        "entry_bounds",
        lambda self: (np.full(6, -0.5), np.full(6, 1.9)),
    ),
    "not all of the box": (SIMPLEX, "is_box", property(lambda self: True)),
    "half-space": (
        BOX,
        "half_spaces",
        lambda self, center: HalfSpaces.between(0.5 * self.lower, 0.5 * self.upper, center),
    ),
    "goes farther": (SIMPLEX, "support", lambda self, direction: float(direction.min())),
    "the default is": (SIMPLEX, "support", lambda self, direction: 2 * abs(direction).max()),
    "the diameter": (SIMPLEX, "diameter", lambda self: 0.1),
    "repeat with the seed": (BOX, "sample", lambda self, generator: np.random.rand(3)),  # noqa: NPY002
    "do not differ": (BOX, "sample", lambda self, generator: np.zeros(3)),
    "lies outside": (SIMPLEX, "sample", lambda self, generator: generator.random(4)),
    "least value": (PSD, "least", lambda self, slope, center, reach=INF: 0.0),
    "moved out": (SIMPLEX, "snapped", lambda self, x, share: x + 1e-7),
    "moved far": (BOX, "snapped", lambda self, x, share: np.round(x)),
    "pushes no bound": (SIMPLEX, "weakest_bound", lambda self, x, gradient: -1.0),
    "has changed": (BOX, "without_bounds", lambda self, entries: Box.of(3)),
    "became smaller": (
        BOX,
        "without_bounds",
        lambda self, entries: Box.of(3, 0.0, 0.1) if entries.any() else self,
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_domain_is_refused(message: str) -> None:
    domain, member, wrong = BROKEN[message]
    broken = type("Broken", (type(domain),), {member: wrong})(**vars(domain))
    with pytest.raises(AssertionError, match=message):
        check_domain(broken, methods=())


def test_a_domain_without_a_required_member_is_refused() -> None:
    class Nothing(Domain):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # type: ignore[abstract]
    with pytest.raises(AssertionError, match="subclass of Domain"):
        check_domain(object())  # type: ignore[arg-type]
