"""The table of maps. The search tries them in this order."""

from __future__ import annotations

from hcmodel.maps.adjoint import Adjoint
from hcmodel.maps.around import Outer
from hcmodel.maps.bounded import Bounded
from hcmodel.maps.compliance import Compliance
from hcmodel.maps.cost_equation import CostEquation
from hcmodel.maps.covariances import Covariances
from hcmodel.maps.defined import Defined
from hcmodel.maps.denominators import Denominators
from hcmodel.maps.determined import Determined
from hcmodel.maps.differences import Differences
from hcmodel.maps.distributions import Distributions
from hcmodel.maps.entries import Entries
from hcmodel.maps.factors import Factors
from hcmodel.maps.fractional import Fractional
from hcmodel.maps.gain_bias import GainBias
from hcmodel.maps.homogeneous import Homogeneous
from hcmodel.maps.identity import Identity
from hcmodel.maps.implicit import Implicit
from hcmodel.maps.inverse import Inverse
from hcmodel.maps.inverse_pairs import InversePairs
from hcmodel.maps.levels import Levels
from hcmodel.maps.log_rows import LogRows
from hcmodel.maps.map import Map
from hcmodel.maps.matrix_product import Product
from hcmodel.maps.monotone import Monotone
from hcmodel.maps.nests import Nests
from hcmodel.maps.normalised import Normalised
from hcmodel.maps.occupancy import Occupancy
from hcmodel.maps.perspective import Perspective
from hcmodel.maps.positive import Positive
from hcmodel.maps.riccati import Riccati
from hcmodel.maps.roots import Roots
from hcmodel.maps.schur import Schur
from hcmodel.maps.shares import Shares
from hcmodel.maps.stages import Stages
from hcmodel.maps.triangular import Triangular
from hcmodel.maps.whole_matrices import Matrices

MAPS: tuple[Map, ...] = (
    Distributions(),
    Positive(),
    Defined(),
    Matrices(),
    Roots(),
    Schur(),
    Riccati(),
    Covariances(),
    Product(),
    Stages(),
    GainBias(),
    Occupancy(),
    Adjoint(),
    CostEquation(),
    Determined(),
    Compliance(),
    Implicit(),
    Nests(),
    Shares(),
    Normalised(),
    InversePairs(),
    Inverse(),
    Triangular(),
    Outer(),
    Fractional(),
    Homogeneous(),
    Levels(),
    Differences(),
    Denominators(),
    LogRows(),
    Bounded(),
    Perspective(),
    Monotone(),
    Factors(),
    Identity(),
    Entries(),
)
