"""Looks at a model's data and at its start, for messages that name what is wrong with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Argument, Domain
from hcmodel.errors import HCWarning
from hcmodel.expressions.graph import (
    applied,
    graph_values,
    join_sums,
    merge,
    topological_order,
)
from hcmodel.expressions.leaves import Apply, Constant, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.sparse_data import all_finite, is_sparse

FloatArray = NDArray[np.float64]

# A row whose sum is nearer to one than this is a distribution.
SUM_TOLERANCE = 1e-6
# Shares of the way from lower to upper bounds at which declared coordinates are evaluated.
INSIDE = (0.5, 0.01, 0.99)
# Arrays up to this size are printed in a message.
SHOWN_ENTRIES = 12

STABLE_HINT = (
    "start from a gain that stabilises, or make the covariance a variable, P = Variable((n, n), "
    "PSD=...), with the Lyapunov equation as an equality constraint: in the pair (P, K) no stabilising "
    "start is needed"
)
HINTS = {
    Domain.HURWITZ: STABLE_HINT,
    Domain.SCHUR: STABLE_HINT,
    Domain.CONTRACTING: "give a start with smaller entries",
    Domain.INVERTIBLE: "give a start at which it is invertible",
    Domain.POSITIVE_DEFINITE: "give a start at which it is, or declare the variable with PSD=δ, δ > 0",
}
VERBS = dict.fromkeys((Domain.HURWITZ, Domain.SCHUR, Domain.CONTRACTING), "must have ")
DEFAULT_HINT = "give a start, or bounds on the variables, that keep it so"


def warn_about_data(model: Model) -> None:
    """Warn where a transition matrix has rows that do not sum to one."""
    first = 0 if model.source is None else 1
    for leaf in _transitions(model):
        value = np.asarray(leaf.value)
        sums = value.sum(axis=-1)
        wrong = np.abs(sums - 1.0) > SUM_TOLERANCE
        if not wrong.any():
            continue
        row = tuple(int(place) for place in np.argwhere(wrong)[0])
        shown = ", ".join(str(first + place) for place in row)
        if isinstance(leaf, Parameter):
            what = f"parameter '{leaf.name}'"
        else:
            what = f"the constant array of shape {leaf.shape}"
        others = int(wrong.sum()) - 1
        also = f" ({others} other row(s) likewise)" if others else ""
        warnings.warn(
            f"{what} looks like transition probabilities, but row [{shown}] sums to "
            f"{sums[row]:g}, not 1{also}; check the data",
            HCWarning,
            stacklevel=4,
        )


def warn_about_map(model: Model) -> None:
    """Warn where declared coordinates have no value at points inside of the variables' bounds."""
    if model.hidden is None or not all(variable.set.is_box for variable in model.variables):
        return
    atoms = {each.atom for each in topological_order(model.hidden) if isinstance(each, Apply)}
    if any(atom.black_box for atom in atoms):
        return  # evaluations of the user's code are counted
    if all(atom.is_defined_everywhere for atom in atoms):
        return
    declared = join_sums(merge(model.hidden))
    for place in INSIDE:
        point = np.concatenate([_inside(variable, place) for variable in model.variables])
        try:
            values = graph_values(declared, model.layout, point)
        except (ArithmeticError, ValueError):  # a matrix that cannot be inverted, for example
            continue
        for part, value in zip(model.hidden, values, strict=True):
            if np.isnan(value).any():
                warnings.warn(
                    f"hidden: {part} is not defined everywhere inside of the bounds, as coordinates have "
                    f"to be: {_where(part, place)}; give bounds where it is, or leave `hidden` out",
                    HCWarning,
                    stacklevel=5,
                )
                return


def _inside(variable: Variable, place: float) -> FloatArray:
    """A point that lies between the bounds at this share of the way; bounds at infinity count as ±1."""
    low, high = np.ravel(variable.lower), np.ravel(variable.upper)
    low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2.0, -1.0))
    high = np.where(np.isfinite(high), high, low + 2.0)
    return np.asarray(low + place * (high - low), dtype=float)


def _where(part: Expression, place: float) -> str:
    """The values of the variables of an expression at such a point."""
    inside = [each for each in topological_order([part]) if isinstance(each, Variable)]
    shown = [f"{each.name} = {_inside(each, place)[0]:.3g}" for each in inside if each.size]
    return "not at " + ", ".join(shown)


def _transitions(model: Model) -> Iterator[Parameter | Constant]:
    """Data that look like transition probabilities of a decision process.

    They stand, together with a policy (a simplex), inside a matrix that is inverted; they are
    nonnegative, their last axis is as long as one of those before, and most of their rows sum to one.
    """
    if not any(variable.set.is_distribution for variable in model.variables):
        return
    seen: set[int] = set()
    for node in model.nodes:
        if not isinstance(node, Apply) or node.atom.is_defined_everywhere:
            continue
        inside = topological_order(_inverted(node))
        if not any(isinstance(n, Variable) and n.set.is_distribution for n in inside):
            continue
        for leaf in inside:
            if isinstance(leaf, (Parameter, Constant)) and id(leaf) not in seen:
                seen.add(id(leaf))
                if leaf.value is None or is_sparse(leaf.value):
                    continue
                if _looks_like_transitions(leaf.value):
                    yield leaf


def _inverted(node: Apply) -> list[Expression]:
    """The arguments of a node that are matrices to be inverted."""
    facts = [Argument(argument.shape) for argument in node.args]
    domains = node.atom.domains(facts, dict(node.params))
    pairs = zip(node.args, domains, strict=True)
    return [argument for argument, domain in pairs if domain is Domain.INVERTIBLE]


def _looks_like_transitions(value: np.ndarray) -> bool:
    if value.ndim < 2 or value.shape[-1] < 2 or value.shape[-1] not in value.shape[:-1]:
        return False
    close = np.abs(value.sum(axis=-1) - 1.0) <= SUM_TOLERANCE
    return bool((value >= 0).all() and close.mean() > 0.5)


def outside_domain_message(model: Model, point: FloatArray) -> str:
    """Why the model has no value at a point: the first function outside its domain, and what to do."""
    layout = model.layout
    values: dict[int, Any] = {
        id(variable): array
        for variable, array in zip(layout.variables, layout.unpack(np, point), strict=True)
    }
    with np.errstate(all="ignore"):
        for node in model.nodes:
            if not isinstance(node, Apply):
                values.setdefault(id(node), node.value)
                continue
            arguments = [values[id(argument)] for argument in node.args]
            values[id(node)] = applied(node, arguments)
            if not all_finite(values[id(node)]):
                return _explained(node, arguments) + _shown_variables(node, values)
    return (
        "every function has a value at the start, but a derivative does not: move the start off the "
        "points where the slope of a root, a logarithm or a power is infinite"
    )


# Where a function has a pole: it is infinite at the edge of what its argument may be.
POLES = (Domain.POSITIVE, Domain.NONZERO, Domain.ABOVE_MINUS_ONE)


def undefined_at(model: Model, point: FloatArray) -> str | None:
    """The function that is not defined at a point at which the model has a value; None without one.

    1/(1/x) is computed as 0 at x = 0, and is not defined there; nor is sqrt(x), all of it, where only
    x[1] is negative and sqrt(x)[0] alone is used. Only functions inside of others that could make them
    finite are looked at, and no functions of the user.
    """
    nodes = [node for node in model.nodes if isinstance(node, Apply)]
    infinite, limited, hidden = set[int](), set[int](), False
    for node in nodes:
        domains = () if node.atom.is_defined_everywhere else _domains(node)
        if not (domains or infinite or limited):
            continue
        inside = [i for i, argument in enumerate(node.args) if id(argument) in infinite]
        linear = node.atom.summed or node.atom.moves_entries
        hidden = hidden or (not linear and any(i not in node.atom.linear_in for i in inside))
        if inside or any(domain in POLES for domain in domains):
            infinite.add(id(node))
        among = any(id(argument) in limited for argument in node.args)
        if among and node.atom.moves_entries:
            hidden = hidden or node.size < sum(argument.size for argument in node.args)
        if among or any(domain is not Domain.REALS for domain in domains):
            limited.add(id(node))
    if not hidden or any(node.atom.black_box for node in nodes):
        return None
    message = outside_domain_message(model, point)
    return message.replace(" at the start", " at the point found") if "must be" in message else None


def _domains(node: Apply) -> Sequence[Domain]:
    facts = [
        Argument.from_value(each.value) if isinstance(each, Constant) else Argument(each.shape)
        for each in node.args
    ]
    return node.atom.domains(facts, dict(node.params))


def _explained(node: Apply, arguments: list[Any]) -> str:
    """The function that is not defined, the argument that is to blame, and a remedy."""
    facts = [
        Argument.from_value(value) if isinstance(argument, Constant) else Argument(argument.shape)
        for argument, value in zip(node.args, arguments, strict=True)
    ]
    domains = node.atom.domains(facts, dict(node.params))
    for argument, value, domain in zip(node.args, arguments, domains, strict=True):
        found = None if is_sparse(value) else _outside(np.asarray(value), domain)
        if found is not None:
            hint = HINTS.get(domain, DEFAULT_HINT)
            verb = VERBS.get(domain, "must be ")
            needs = f"the argument of '{node.atom.name}', {argument}, {verb}{domain.value}"
            if not argument.variables():
                names = ", ".join(sorted(each.name for each in argument.parameters()))
                hint = f"change the value of {names or 'this number'}"
            return f"the model is not defined at the start: {needs}, but {found}; {hint}"
    return (
        f"the model is not defined at the start: {node} is not finite (an overflow, or a function of "
        "your own that gives NaN); give another start or tighter bounds"
    )


def _outside(value: np.ndarray, domain: Domain) -> str | None:
    """In what way a value lies outside an atom's domain; None if it does not."""
    if domain is Domain.HURWITZ:
        part = float(np.linalg.eigvals(value).real.max())
        return None if part < 0 else f"the largest real part is {part:.4g}"
    if domain is Domain.SCHUR:
        radius = float(np.abs(np.linalg.eigvals(value)).max())
        return None if radius < 1 else f"the largest modulus is {radius:.4g}"
    if domain is Domain.CONTRACTING:
        if value.min(initial=0.0) < 0:
            return f"its smallest entry is {float(value.min()):.4g}"
        radius = float(np.abs(np.linalg.eigvals(value)).max())
        return None if radius < 1 else f"its spectral radius is {radius:.4g}"
    if domain is Domain.POSITIVE_DEFINITE:
        least = float(np.linalg.eigvalsh((value + value.T) / 2).min())
        return None if least > 0 else f"its smallest eigenvalue is {least:.4g}"
    if domain is Domain.INVERTIBLE:
        singular = np.linalg.matrix_rank(value) < value.shape[0]
        return "it is singular" if singular else None
    least = float(value.min(initial=np.inf))
    wrong = {
        Domain.POSITIVE: least <= 0,
        Domain.NONNEGATIVE: least < 0,
        Domain.ABOVE_MINUS_ONE: least <= -1,
        Domain.NONZERO: bool((value == 0).any()),
    }
    if not wrong.get(domain, False):
        return None
    return "it is 0" if domain is Domain.NONZERO else f"its smallest entry is {least:.4g}"


def _shown_variables(node: Expression, values: dict[int, Any]) -> str:
    """The values of the variables that the node depends on, if they are few."""
    shown = [
        f"{variable.name} = {np.array2string(np.asarray(values[id(variable)]), precision=4)}"
        for variable in node.variables()
        if variable.size <= SHOWN_ENTRIES
    ]
    return f". There {', '.join(shown)}" if shown else ""
