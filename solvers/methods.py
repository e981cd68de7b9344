"""The table of methods, and `minimize`, which runs one of them on an oracle."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.limits import until
from hcmodel.solvers.loop import Certified, Method, Task, WholeProgram, run
from hcmodel.solvers.oracle import Budget, Evaluation, Oracle
from hcmodel.solvers.result import Record, Result
from hcmodel.solvers.second_order.direct import Direct, run_direct
from hcmodel.solvers.sets.domain import Domain

if TYPE_CHECKING:
    from hcmodel.solvers.theory.theorems import Constants

FloatArray = NDArray[np.float64]


class Later:
    """A class of a method, imported when it is first used: a solve needs few of them."""

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    @cached_property
    def loaded(self) -> Any:
        """The class itself."""
        module, name = self._place
        return getattr(importlib.import_module(f"hcmodel.solvers.{module}"), name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.loaded(*arguments, **keywords)


AcceleratedGradient = Later("first_order.accelerated_gradient", "AcceleratedGradient")
Ippm = Later("first_order.ippm", "Ippm")
SubgradientMethod = Later("first_order.switching_subgradient", "SubgradientMethod")
SubgradientOptions = Later("first_order.switching_subgradient", "SubgradientOptions")
SwitchingSubgradient = Later("first_order.switching_subgradient", "SwitchingSubgradient")
TheoryAdaptiveLineSearch = Later("first_order.theory_bundle", "TheoryAdaptiveLineSearch")
TheoryStarBundleLevel = Later("first_order.theory_bundle", "TheoryStarBundleLevel")
TheoryIppm = Later("first_order.theory_ippm", "TheoryIppm")

RULES = ("adaptive", "theory")
# Relative feasibility and KKT residual: what double precision reaches on badly scaled models too.
DEFAULT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class MethodEntry:
    """A row of the table. `complexity` counts oracle calls to accuracy ε, logarithms left out.

    `options` is the class of the method's options. `program` names the kind of convex program that a
    direct method solves at once; such a method takes proven models only. A method that `takes_cuts` works
    in u itself and leaves a bound behind.
    """

    name: str
    make: Callable[[Any], Method[Any] | Direct]
    options: Any
    summary: str
    assumptions: str
    complexity: str
    reference: str
    make_theory: Callable[[Any, Constants], Method[Any]] | None
    needs_optimal_value: bool = False
    needs_smooth: bool = False
    needs_no_rows: bool = False
    needs_coordinates: bool = False
    second_order: bool = False
    takes_cuts: bool = False
    program: str | None = None
    linear_sets: bool = False
    """Whether it takes sets of bounds and linear equations only; the equations hold in the limit."""
    missing: Callable[[], str | None] = lambda: None
    """What has to be installed before it can run; None where nothing is missing."""

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        return found.loaded if name == "options" and isinstance(found, Later) else found

    @property
    def uses_coordinates(self) -> bool:
        """Whether it takes steps in the coordinates of a form."""
        return self.second_order or self.program is not None


METHODS: dict[str, MethodEntry] = {
    entry.name: entry
    for entry in (
        MethodEntry(
            name="cone",
            make=Later("second_order.cone_method", "ConeMethod"),
            options=Later("second_order.cone_method", "ConeMethodOptions"),
            summary="the whole model as one cone program in hidden coordinates",
            assumptions="a proof, and functions that have cone forms",
            complexity="1 point",
            reference="ours; Goulart and Chen 2024 for the backend",
            make_theory=None,
            program="cone",
        ),
        MethodEntry(
            name="interior-point",
            make=Later("second_order.interior_point_method", "InteriorPointMethod"),
            options=Later("second_order.interior_point", "InteriorPointOptions"),
            summary="the whole model as one smooth convex program in hidden coordinates",
            assumptions="a proof, smooth functions, variables in boxes or simplices",
            complexity="1 point",
            reference="ours; Kortanek, Xu and Ye 1996 and Mehrotra 1992 for the method",
            make_theory=None,
            program="smooth convex",
        ),
        MethodEntry(
            name="hidden-newton",
            make=Later("second_order.hidden_newton", "HiddenNewton"),
            options=Later("second_order.options", "Options"),
            summary="Newton's method in hidden coordinates",
            assumptions="hidden coordinates, proven or declared; second derivatives",
            complexity="log log ε⁻¹ near a solution",
            reference="ours",
            make_theory=None,
            needs_coordinates=True,
            second_order=True,
        ),
        MethodEntry(
            name="prox-linear",
            make=Later("second_order.prox_linear", "ProxLinear"),
            options=Later("second_order.prox_linear", "ProxLinearOptions"),
            summary="polyhedral structure kept, smooth parts modelled",
            assumptions="smooth parts inside max, abs and norms",
            complexity="log log ε⁻¹ near a sharp or regular solution",
            reference="ours; Drusvyatskiy and Paquette 2019 for the model",
            make_theory=None,
            second_order=True,
        ),
        MethodEntry(
            name="hidden-bundle",
            make=Later("first_order.hidden_bundle", "HiddenBundle"),
            options=Later("first_order.hidden_bundle", "HiddenBundleOptions"),
            summary="level method with cuts in hidden coordinates, which certify themselves",
            assumptions="hidden coordinates, proven or declared; kinks are allowed",
            complexity="ε⁻² log ε⁻¹, few points in practice",
            reference="ours; Lemaréchal, Nemirovskii and Nesterov 1995 for the level method",
            make_theory=None,
            needs_coordinates=True,
            takes_cuts=True,
        ),
        MethodEntry(
            name="gradient-sampling",
            make=Later("first_order.gradient_sampling", "GradientSampling"),
            options=Later("first_order.gradient_sampling", "SamplingOptions"),
            summary="BFGS; at kinks a level method or models of the pieces, and gradient sampling",
            assumptions="none; kinks are allowed, a local minimum is found",
            complexity="not known; linear in practice",
            reference="Lewis and Overton 2013; Lemaréchal, Nemirovskii and Nesterov 1995; "
            "Burke, Curtis, Lewis, Overton and Simões 2020",
            make_theory=None,
        ),
        MethodEntry(
            name="ipopt",
            make=Later("second_order.ipopt_", "Ipopt"),
            options=Later("second_order.ipopt_", "IpoptOptions"),
            summary="IPOPT through casadi (extra `fast`), in the model's own or hidden coordinates",
            assumptions="smooth functions, variables in boxes or simplices; a local minimum is found",
            complexity="log log ε⁻¹ near a regular solution",
            reference="Wächter and Biegler 2006",
            make_theory=None,
            needs_smooth=True,
            linear_sets=True,
            missing=Later("second_order.ipopt_", "missing"),
        ),
        MethodEntry(
            name="sbl-star",
            make=Later("first_order.bundle_level", "StarBundleLevel"),
            options=Later("first_order.bundle_level", "Options"),
            summary="shifted bundle level, optimal value given",
            assumptions="smooth rows, optimal_value known",
            complexity="ε⁻¹",
            reference="Fatkhullin et al. 2025, (S-StarBL), Theorem 2",
            make_theory=lambda options, constants: TheoryStarBundleLevel(
                constants, options.backend
            ),
            needs_optimal_value=True,
            needs_smooth=True,
        ),
        MethodEntry(
            name="sbl-adals",
            make=Later("first_order.adaptive_line_search", "AdaptiveLineSearch"),
            options=Later("first_order.adaptive_line_search", "AdaLSOptions"),
            summary="shifted bundle level with adaptive line search",
            assumptions="smooth rows, strong duality",
            complexity="λ ε⁻¹",
            reference="Fatkhullin et al. 2025, Algorithms 4 and 5, Theorem 3",
            make_theory=lambda options, constants: TheoryAdaptiveLineSearch(
                constants, options.backend
            ),
            needs_smooth=True,
        ),
        MethodEntry(
            name="ippm-acgd",
            make=lambda options: Ippm(AcceleratedGradient(options.backend, options.inner), options),
            options=Later("first_order.accelerated_gradient", "AcceleratedOptions"),
            summary="inexact proximal point, accelerated constrained gradient",
            assumptions="smooth rows; a Slater gap θ helps",
            complexity="ε⁻², or θ⁻¹ ε⁻¹",
            reference="Fatkhullin et al. 2025, Algorithms 1 and 3, Theorem 1, Corollaries 2 and 3",
            make_theory=lambda options, constants: TheoryIppm(
                AcceleratedGradient(options.backend), constants
            ),
            needs_smooth=True,
        ),
        MethodEntry(
            name="ippm-swsg",
            make=lambda options: Ippm(SwitchingSubgradient(options.inner), options),
            options=SubgradientOptions,
            summary="inexact proximal point, switching sub-gradient",
            assumptions="none; kinks are allowed",
            complexity="ε⁻³",
            reference="Fatkhullin et al. 2025, Algorithms 1 and 2, Theorem 1, Corollary 1",
            make_theory=lambda options, constants: TheoryIppm(SwitchingSubgradient(), constants),
        ),
        MethodEntry(
            name="ippm-sm",
            make=lambda options: Ippm(SubgradientMethod(options.inner), options),
            options=SubgradientOptions,
            summary="inexact proximal point, sub-gradient",
            assumptions="no functional constraint",
            complexity="ε⁻³",
            reference="Fatkhullin et al. 2025, Algorithm 1, appendix, unconstrained corollary",
            make_theory=lambda options, constants: TheoryIppm(SubgradientMethod(), constants),
            needs_no_rows=True,
        ),
    )
}


def make_options(entry: MethodEntry, given: Any) -> Any:
    """The method's frozen options from a dict of its fields, the dataclass itself, or None.

    A group of options, which is a frozen dataclass itself, may be given as a dict too.
    """
    return _made(entry.options, given, entry.name)


def _made(kind: type[Any], given: Any, owner: str) -> Any:
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"options of {owner} are a dict or {kind.__name__}")
    default = kind()
    valid = [field.name for field in fields(kind)]
    unknown = sorted(set(given) - set(valid))
    if unknown:
        names = ", ".join(repr(name) for name in unknown)
        raise ValueError(f"{owner} has no option {names}; its options are: {', '.join(valid)}")
    chosen = {
        name: _made(type(getattr(default, name)), value, f"{owner}'s {name}")
        if is_dataclass(getattr(default, name))
        else value
        for name, value in given.items()
    }
    return kind(**chosen)


@dataclass(frozen=True)
class NoOptions:
    """The options of a method that has none."""


def register_method(
    name: str,
    make: Callable[[Any], Method[Any]],
    options: Any = NoOptions,
    *,
    summary: str = "",
    assumptions: str = "",
    complexity: str = "",
    reference: str = "",
    make_theory: Callable[[Any, Constants], Method[Any]] | None = None,
    needs_optimal_value: bool = False,
    needs_smooth: bool = False,
    needs_no_rows: bool = False,
    needs_coordinates: bool = False,
    replace: bool = False,
) -> MethodEntry:
    """Make a method of your own available to `solve(method=name)` and to `minimize`.

    `make(options)` returns an object with `init(task, start)`, `step(task, state)` and
    `terminate(task, state)`; `options` is a frozen dataclass with a default for each field. The returned
    entry can be handed to `hcmodel.testing.check_method`.
    """
    if not isinstance(name, str) or not name or name == "auto":
        raise ValueError(f"a method is registered by a name other than 'auto', not {name!r}")
    flags = {"needs_optimal_value": needs_optimal_value, "needs_smooth": needs_smooth}
    flags |= {"needs_no_rows": needs_no_rows, "needs_coordinates": needs_coordinates}
    for flag, given in {**flags, "replace": replace}.items():
        if not isinstance(given, bool):
            raise ValueError(f"{flag} is True or False, not {given!r}")
    if name in METHODS and not replace:
        raise ValueError(
            f"there is a method {name!r} already; replace=True puts this one in its place"
        )
    if not callable(make):
        raise ValueError(f"make is a function of the options that returns the method, not {make!r}")
    if not (isinstance(options, type) and is_dataclass(options)):
        raise ValueError(f"options is the dataclass of the method's options, not {options!r}")
    METHODS[name] = MethodEntry(
        name=name,
        make=make,
        options=options,
        summary=summary,
        assumptions=assumptions,
        complexity=complexity,
        reference=reference,
        make_theory=make_theory,
        needs_optimal_value=needs_optimal_value,
        needs_smooth=needs_smooth,
        needs_no_rows=needs_no_rows,
        needs_coordinates=needs_coordinates,
    )
    return METHODS[name]


def find_method(name: str) -> MethodEntry:
    if not isinstance(name, str) or name not in METHODS:
        known = ", ".join(["auto", *METHODS])
        raise ValueError(f"unknown method {name!r}; there are: {known}")
    missing = METHODS[name].missing()
    if missing is not None:
        raise ValueError(f"{name} needs {missing}")
    return METHODS[name]


def minimize(
    oracle: Oracle,
    domain: Domain,
    start: FloatArray | Callable[[], FloatArray] | None = None,
    *,
    method: str = "sbl-adals",
    tolerance: float = DEFAULT_TOLERANCE,
    optimal_value: float | None = None,
    rule: str = "adaptive",
    constants: Constants | None = None,
    max_calls: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Record], bool | None] | None = None,
    options: Any = None,
    geometry: Coordinates | None = None,
    certified: Certified | None = None,
    settle: Callable[[FloatArray], FloatArray] | None = None,
    whole: WholeProgram | None = None,
    affords_hessian: bool = False,
    images: Callable[[Evaluation], Any] | None = None,
    ends_at_kinks: bool = False,
    keep_points: bool = False,
) -> Result:
    """Minimise over a domain with a method of the table; usable without the modelling layer.

    `start` is a point, or a function that makes it: direct methods seldom need one.
    With `rule="theory"` every parameter is the theorem's, from `constants`, and the tolerance is its ε.
    `geometry`, `certified`, `settle`, `whole`, `images` and `ends_at_kinks` are for methods that use more
    than an oracle (`Task`). `keep_points` puts the point of each record into the trace.
    """
    entry = find_method(method)
    chosen = make_options(entry, options)
    if entry.needs_optimal_value and optimal_value is None:
        raise ValueError(f"{entry.name} needs optimal_value; without it use method='sbl-adals'")
    if entry.program is not None and whole is None:
        raise ValueError(f"{entry.name} needs the convex program of a proven model; none was given")
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; there are: {', '.join(RULES)}")
    if entry.needs_no_rows and oracle.size:
        raise ValueError(
            f"{entry.name} takes no constraints; use ippm-swsg for a model that has them"
        )
    if oracle.dimension != domain.dimension:
        raise ValueError(f"oracle of dimension {oracle.dimension}, domain of {domain.dimension}")
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance must be a positive number, not {tolerance!r}")
    counted = Oracle(oracle.stack, oracle.outer, budget=Budget(max_calls))
    task = Task(
        counted,
        domain,
        tolerance,
        optimal_value,
        geometry,
        certified,
        settle,
        whole,
        affords_hessian,
        images,
        ends_at_kinks,
        keep_points,
    )
    point = None if callable(start) else _start(start, domain)

    def first() -> FloatArray:
        return _start(start, domain) if point is None else point

    if rule == "theory" and entry.make_theory is None:
        raise ValueError(f"{entry.name} has no theorem; rule='theory' is for the paper's methods")
    with until(None if time_limit is None else time.monotonic() + time_limit):
        if rule == "theory" and entry.make_theory is not None:
            from hcmodel.solvers.theory.theorems import Constants

            theory = entry.make_theory(chosen, constants or Constants())
            return run(theory, task, first(), callback)
        made: Any = entry.make(chosen)
        if entry.program is not None:
            return run_direct(made, task, first, callback)
        return run(made, task, first(), callback)


def _start(start: FloatArray | Callable[[], FloatArray] | None, domain: Domain) -> FloatArray:
    if start is None:
        return domain.middle()
    found = np.asarray(start() if callable(start) else start, dtype=float)
    if found.shape != (domain.dimension,):
        raise ValueError(f"the start has shape {found.shape}, not ({domain.dimension},)")
    return found
