"""Lower bounds at points where Euclidean norms vanish, and have no derivative.

‖a‖ >= y·a wherever ‖y‖ <= 1. A model in which norms are replaced by such linear minorants, and on which
its objective and rows depend increasingly, is nowhere above the model itself: a lower bound of the one
is a lower bound of the other. With the y that the multipliers of the cone program give, the two have the
same minimum, and the one with minorants is smooth there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.aggregates import sum as total
from hcmodel.atoms.rules import Monotonicity
from hcmodel.certify.lower_bound import LowerBound, lower_bound
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression
from hcmodel.expressions.model import Model
from hcmodel.facts.node_facts import Facts
from hcmodel.proof.prove import Proof, prove
from hcmodel.records import replace
from hcmodel.reductions.chain import Chain
from hcmodel.reductions.cone.cone import Cone, NormSlope
from hcmodel.reductions.form import Form
from hcmodel.reductions.sign import signed_objective
from hcmodel.reductions.smooth import Compiler, Smooth
from hcmodel.solvers.numerics import BACKEND_ROUNDING
from hcmodel.solvers.qp import ConeOptions, make_cone_backend

# Norms below this, relative to the largest, vanish: a backend knows a point to the root of its accuracy.
KINK = BACKEND_ROUNDING**0.5


def minorant_bound(form: Form, target: float, time_limit: float) -> LowerBound | None:
    """A bound from the cone program of a proven form with norms in it; None where there is none."""
    cone, model = form.cone, form.chain.end.before
    if form.proof is None or not isinstance(cone, Cone) or model.objective_form != "plain":
        return None
    solution = make_cone_backend().solve(cone.after, ConeOptions(time_limit=time_limit))
    slopes = cone.norm_slopes(solution) if solution.usable else []
    if not any(_at_kink(slope).any() for slope in slopes):
        return None
    assert form.last is not None
    facts = form.last.curvatures.facts
    smooth = _smooth_form(form, _with_minorants(model, slopes, facts))
    if smooth is None:
        return None
    there = smooth.oracle().at(smooth.domain.project(solution.primal[: smooth.domain.dimension]))
    if not (there.finite and there.differentiable):
        return None
    multipliers = smooth.canonical.multipliers(cone.by_constraint(solution.dual))
    back, value = form.chain.value_back, there.objective
    same = back(value) == value and back(value - target) == value - target
    found = lower_bound(smooth, there, multipliers, target=target if same else None)
    if found is None or not np.isfinite(back(found.value)):
        return None
    return replace(found, value=back(found.value))  # the chain of the smooth form has no maps


def _at_kink(slope: NormSlope) -> NDArray[np.bool_]:
    """Which of the norms vanish, up to the accuracy of a point."""
    return np.asarray(slope.value <= KINK * max(1.0, float(np.max(slope.value, initial=0.0))))


def _with_minorants(
    model: Model, slopes: list[NormSlope], facts: Facts
) -> tuple[Model, dict[int, Expression]]:
    """The model with norms at kinks replaced, and the nodes that replace them, by identity.

    Equal norms are one in the cone program, and each of them is replaced.
    """
    new: dict[int, Expression] = {}
    placed: dict[int, Expression] = {}
    equal: dict[int, Expression] = {}
    for slope in slopes:
        node, kinks = slope.node, _at_kink(slope)
        y = np.where(np.ravel(kinks)[slope.targets].reshape(slope.y.shape), slope.y, 0.0)
        linear = total(y * node.args[0], axis=dict(node.params)["axis"])
        placed[id(linear)] = linear
        replacement = linear if kinks.all() else linear + np.where(kinks, 0.0, 1.0) * node
        equal[facts[node].number] = replacement
    for each in model.nodes:
        if not isinstance(each, Apply):
            continue
        found = equal.get(facts[each].number)
        if found is not None:
            new[id(each)] = found
            continue
        if any(id(argument) in new for argument in each.args):
            arguments = tuple(new.get(id(argument), argument) for argument in each.args)
            new[id(each)] = Apply(each.atom, arguments, each.params, each.shape)
    objective = model.objective.expression
    constraints = []
    for constraint in model.constraints:
        sides = (new.get(id(side), side) for side in (constraint.lhs, constraint.rhs))
        copy = constraint.like(*sides)
        copy.form, copy.name = constraint.form, constraint.name
        constraints.append(copy)
    changed = replace(
        model,
        objective=type(model.objective)(new.get(id(objective), objective)),
        constraints=tuple(constraints),
    )
    return changed, placed


def _smooth_form(form: Form, made: tuple[Model, dict[int, Expression]]) -> Form | None:
    """The form of the model with minorants, in the same coordinates; None where it is no minorant."""
    model, placed = made
    assert form.last is not None
    objective, sign = signed_objective(model)
    proof = prove(objective, sign, model.constraints, fixed=form.last.coordinates)
    roots = [(objective, sign)]
    for each in model.constraints:
        if each.sense == "<=":
            roots += [(each.lhs, 1.0), (each.rhs, -1.0)]
        elif _directions(each.lhs, placed, proof) or _directions(each.rhs, placed, proof):
            return None
    wanted = [(_directions(root, placed, proof), {way}) for root, way in roots]
    if not proof.proven or not all(found <= ways for found, ways in wanted):
        return None
    end = Smooth.of(model, Compiler(), coordinates=proof.coordinates)
    end.refresh()
    return Form(Chain((), end), hidden=True, proof=proof, found_last=proof)


def _directions(root: Expression, placed: dict[int, Expression], proof: Proof) -> set[float]:
    """Whether the root increases (1) or decreases (−1) with the minorants in it; 0: neither."""
    ways: dict[int, set[float]] = {}
    signs = {Monotonicity.INCREASING: 1.0, Monotonicity.DECREASING: -1.0}
    facts = proof.curvatures.facts
    for node in topological_order([root]):
        ways[id(node)] = {1.0} if id(node) in placed else set()
        if not isinstance(node, Apply) or id(node) in placed:
            continue
        arguments = [facts[argument].argument for argument in node.args]
        moves = node.atom.monotonicity(arguments, dict(node.params))
        for argument, move in zip(node.args, moves, strict=True):
            ways[id(node)] |= {way * signs.get(move, 0.0) for way in ways[id(argument)]}
    return ways[id(root)]
