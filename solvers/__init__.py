"""Algorithms on oracles and domains, usable without the modelling layer."""

from hcmodel.solvers.methods import METHODS, minimize
from hcmodel.solvers.oracle import Evaluation, Oracle, OracleCalls, function_oracle
from hcmodel.solvers.result import Record, Result, Termination
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.domain import Domain
from hcmodel.solvers.sets.product import Product

__all__ = [
    "METHODS",
    "Box",
    "Domain",
    "Evaluation",
    "Oracle",
    "OracleCalls",
    "Product",
    "Record",
    "Result",
    "Termination",
    "function_oracle",
    "minimize",
]
