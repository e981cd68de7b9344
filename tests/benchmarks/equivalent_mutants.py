"""Mutants that change no meaning, each with the reason; `mutations` does not count them.

By module, function and change. `OPTIONS` are modules whose numbers are options: none of them is a part
of a formula, and doubling one changes how long and where is searched.
"""

from __future__ import annotations

OPTIONS = {
    "hcmodel/certify/certificate_options.py": (
        "no bound rests on a number of it; the roundings among them may be larger, not smaller"
    ),
}


def reason(path: str, place: str, change: str) -> str | None:
    """Why a mutant changes no meaning; None where it does."""
    if path in OPTIONS and place.endswith(":"):
        return OPTIONS[path]
    return EQUIVALENT.get((path, place, change))


EQUIVALENT: dict[tuple[str, str, str], str] = {
    # ---- theorems
    (
        "solvers/theory/theorems.py",
        "",
        "SMALLEST_RHO = 1e-06 -> SMALLEST_RHO = 2e-06",
    ): "any small ρ > 0 is a valid bound of a convex problem",
    (
        "solvers/theory/theorems.py",
        "",
        "SMALLEST_MULTIPLIER = 1e-12 -> SMALLEST_MULTIPLIER = 2e-12",
    ): "any small λ > 0 is a valid bound where no row is active",
    (
        "solvers/theory/theorems.py",
        "theorem_3",
        "max(8.0 * delta0 / tolerance, 1.0) -> max(8.0 * delta0 / tolerance, 2.0)",
    ): "ℓ is at least 1, and the logarithm of 2 is below that",
    # ---- KKT residual
    (
        "solvers/kkt.py",
        "least_squares_multipliers",
        "max(RULES.tall, columns.shape[1]) -> min(RULES.tall, columns.shape[1])",
    ): "a QR factorisation leaves the fit as it is and saves time only",
    (
        "solvers/kkt.py",
        "least_squares_multipliers",
        "columns.shape[0] > max(RULES.tall, columns.shape[1])"
        " -> columns.shape[0] < max(RULES.tall, columns.shape[1])",
    ): "a QR factorisation leaves the fit as it is and saves time only",
    (
        "solvers/kkt.py",
        "KktRules:",
        "(1.0, 1000.0) -> (1.0, 2000.0)",
    ): "widths of candidates, of which the best residual decides; chosen on the development set",
    (
        "solvers/kkt.py",
        "KktRules:",
        "(1.0, 1000.0) -> (2.0, 1000.0)",
    ): "widths of candidates, of which the best residual decides; chosen on the development set",
    # ---- level step
    (
        "solvers/first_order/level_step.py",
        "_try_vertex",
        "_weighted(model, rules.vertex_weight, 1.0, backend)"
        " -> _weighted(model, rules.vertex_weight, 2.0, backend)",
    ): "the unit in which the program is solved, not the step itself",
    # ---- judge
    (
        "hcmodel/solving/judge.py",
        "",
        "FINEST = 1e-05 -> FINEST = 2e-05",
    ): "how far a bound is refined beyond what a status asks for",
    # ---- certificate
    (
        "hcmodel/certify/search.py",
        "Search._walk",
        "enough(self.value) or idle == SEARCH.patience"
        " -> enough(self.value) and idle == SEARCH.patience",
    ): "when a search stops; the best bound found is kept",
    (
        "hcmodel/certify/newton_steps.py",
        "_minimiser",
        "(make_backend(), 1.0) -> (make_backend(), 2.0)",
    ): "the unit in which the program is solved, not the step itself",
    (
        "hcmodel/certify/exact_duals.py",
        "_second_order",
        "not own.size or not moved[[*own, *places.members]].any()"
        " -> not own.size and (not moved[[*own, *places.members]].any())",
    ): "a shortcut: where nothing moves, the test that follows passes",
    (
        "hcmodel/certify/exact_duals.py",
        "_exponential",
        "u + b * du -> u - b * du",
    ): "b takes both signs",
    (
        "hcmodel/certify/exact_duals.py",
        "_exponential",
        "v + a * dv -> v - a * dv",
    ): "a takes both signs",
    (
        "hcmodel/certify/balls.py",
        "_closing_weights",
        "np.maximum(offsets, 0.0) / max(float(np.max(np.abs(offsets))), TINY) -> np.maximum(of"
        "fsets, 0.0) * max(float(np.max(np.abs(offsets))), TINY)",
    ): "prices in a search for weights; what a ball rests on is checked with the weights found",
    (
        "hcmodel/certify/balls.py",
        "_closing_weights",
        "(0.0, 1.0) -> (0.0, 2.0)",
    ): "prices in a search for weights; what a ball rests on is checked with the weights found",
    (
        "hcmodel/certify/balls.py",
        "_closing_weights",
        "price - 1.0 -> price - 2.0",
    ): "prices in a search for weights; what a ball rests on is checked with the weights found",
    (
        "hcmodel/certify/cone_ranges.py",
        "_Sweep._by_cones",
        "places.diagonal.size and (not np.isfinite(upper[places.diagonal]).all()) -> places.di"
        "agonal.size or not np.isfinite(upper[places.diagonal]).all()",
    ): "traces that are bounded already are bounded once more",
    (
        "hcmodel/certify/cone_ranges.py",
        "limit_by_inner_dual",
        "middle[own] = 1.0 -> middle[own] = 2.0",
    ): "the scale of d, by which all that follows is divided",
    (
        "hcmodel/certify/cone_ranges.py",
        "ranges",
        "not sweep.finite and program.quadratic.nnz -> not sweep.finite or program.quadratic.nnz",
    ): "ranges that are finite already are cut once more, and without squares nothing is",
    (
        "hcmodel/certify/cone_ranges.py",
        "ranges",
        "not sweep.finite and np.prod(program.matrix.shape) <= CONE_DUALITY.largest_inner -> n"
        "ot sweep.finite or np.prod(program.matrix.shape) <= CONE_DUALITY.largest_inner",
    ): "ranges that are finite already are cut once more, at some cost",
    (
        "hcmodel/certify/square_ranges.py",
        "by_equations",
        "free.size > used.size or used.size * free.size > CONE_DUALITY.largest_equations -> fr"
        "ee.size > used.size and used.size * free.size > CONE_DUALITY.largest_equations",
    ): "fewer equations than unknowns have the least singular value 0, and return the same later",
    (
        "hcmodel/certify/square_ranges.py",
        "by_equations",
        "used.size * free.size -> used.size / free.size",
    ): "the size up to which an eigenvalue is computed: cost only",
    (
        "hcmodel/certify/charts.py",
        "_tilted",
        "np.max(np.abs(slope)) -> np.min(np.abs(slope))",
    ): "the unit in which a linear program is solved",
    (
        "hcmodel/certify/descent.py",
        "_ray",
        "LARGEST_NUMBER * unit -> LARGEST_NUMBER / unit",
    ): "both are far beyond every bound in the same direction",
    (
        "hcmodel/certify/descent.py",
        "_is_rounding",
        "-1.0 -> -2.0",
    ): "which points next to a point are looked at",
    (
        "hcmodel/certify/descent.py",
        "_is_rounding",
        "-1.0 -> +1.0",
    ): "which points next to a point are looked at",
    (
        "hcmodel/certify/descent.py",
        "DescentRules:",
        "slowest: float = 1e-09 -> slowest: float = 2e-09",
    ): "which entries a message names",
    (
        "hcmodel/certify/cone_duality.py",
        "_exponential",
        "-1.0 -> -2.0",
    ): "a divisor of entries that are not used",
    (
        "hcmodel/certify/cone_duality.py",
        "_best",
        "enough(best) or np.prod(dual.program.matrix.shape) > CONE_DUALITY.largest_correction "
        "-> enough(best) and np.prod(dual.program.matrix.shape) > CONE_DUALITY.largest_correct"
        "ion",
    ): "more corrections than needed: the best value is kept",
    (
        "hcmodel/certify/newton_steps.py",
        "_minimiser",
        "length >= NEWTON.fine -> length < NEWTON.fine",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/newton_steps.py",
        "_minimiser",
        "length >= NEWTON.fine or unit <= NEWTON.smallest_unit -> length >= NEWTON.fine and un"
        "it <= NEWTON.smallest_unit",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/newton_steps.py",
        "_minimiser",
        "unit <= NEWTON.smallest_unit -> unit > NEWTON.smallest_unit",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/newton_steps.py",
        "_minimiser",
        "max(NEWTON.unit_per_length * length, NEWTON.unit_decrease) -> min(NEWTON.unit_per_len"
        "gth * length, NEWTON.unit_decrease)",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/newton_steps.py",
        "_minimiser",
        "NEWTON.unit_per_length * length -> NEWTON.unit_per_length / length",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/level_sets.py",
        "_from_zero",
        "-1.0 -> -2.0",
    ): "at which points minorants are taken; each of them holds",
    (
        "hcmodel/certify/level_sets.py",
        "_moves",
        "level_above(evaluation) - evaluation.objective if evaluation.has_objective else 1.0 -"
        "> level_above(evaluation) - evaluation.objective if evaluation.has_objective else 2.0",
    ): "at which points minorants are taken; each of them holds",
    (
        "hcmodel/certify/level_sets.py",
        "level_ball",
        "max(float(np.max(np.abs(center), initial=0.0)), ENCLOSURE.smallest_image) -> min(floa"
        "t(np.max(np.abs(center), initial=0.0)), ENCLOSURE.smallest_image)",
    ): "which half-spaces are tried first",
    (
        "hcmodel/certify/level_sets.py",
        "level_ball",
        "np.max(np.abs(center), initial=0.0) -> np.min(np.abs(center), initial=0.0)",
    ): "which half-spaces are tried first",
    (
        "hcmodel/certify/level_sets.py",
        "level_ball",
        "not probing and form.arrays is not None -> not probing or form.arrays is not None",
    ): "at which points minorants are taken; each of them holds",
    (
        "hcmodel/solving/stationary_points.py",
        "StationarityRules:",
        "kink_distance: float = 1e-05 -> kink_distance: float = 2e-05",
    ): "how far kinks are looked at: any distance between rounding and the features of a model",
    (
        "hcmodel/solving/certifier.py",
        "CertifierRules:",
        "share: float = 0.01 -> share: float = 0.02",
    ): "when a run ends; what is claimed is judged afterwards",
    (
        "hcmodel/solving/certifier.py",
        "CertifierRules:",
        "slack: float = 1e-09 -> slack: float = 2e-09",
    ): "when a run ends; what is claimed is judged afterwards",
    (
        "hcmodel/solving/conclude.py",
        "",
        "SMALL = 1e-06 -> SMALL = 2e-06",
    ): "the words for an entry that is small",
    (
        "hcmodel/certify/cone_duality.py",
        "cone_bound",
        "np.isfinite(best) and (not enough(best)) -> np.isfinite(best) or not enough(best)",
    ): "ranges become narrower at some cost, and the best value is kept",
    (
        "hcmodel/certify/cone_duality.py",
        "cone_bound",
        "not enough(best) and (np.isfinite(best) or dual.may_be_exact) -> not enough(best) or "
        "(np.isfinite(best) or dual.may_be_exact)",
    ): "more corrections than needed: the best value is kept",
    (
        "hcmodel/certify/curvature_boxes.py",
        "_Halving.run",
        "high - low -> high + low",
    ): "which side of a box is halved first",
    (
        "hcmodel/certify/curvature_boxes.py",
        "_Halving.run",
        "np.maximum(high - low, 0.0) -> np.minimum(high - low, 0.0)",
    ): "which side of a box is halved first",
    (
        "hcmodel/certify/curvature_boxes.py",
        "_Halving.run",
        "np.where(np.isfinite(high - low), np.maximum(high - low, 0.0), 1.0) -> np.where(np.is"
        "finite(high - low), np.maximum(high - low, 0.0), 2.0)",
    ): "which side of a box is halved first",
    (
        "hcmodel/certify/cut_bounds.py",
        "_consistent",
        "(there - here) * 2.0 ** (-(number % 16)) -> (there - here) / 2.0 ** (-(number % 16))",
    ): "at which points declared coordinates are looked at",
    (
        "hcmodel/certify/cut_bounds.py",
        "_consistent",
        "here + (there - here) * 2.0 ** (-(number % 16)) -> here - (there - here) * 2.0 ** (-("
        "number % 16))",
    ): "at which points declared coordinates are looked at",
    (
        "hcmodel/certify/cut_bounds.py",
        "_consistent",
        "-(number % 16) -> +(number % 16)",
    ): "at which points declared coordinates are looked at",
    (
        "hcmodel/certify/cut_bounds.py",
        "_consistent",
        "2.0 ** (-(number % 16)) -> 4.0 ** (-(number % 16))",
    ): "at which points declared coordinates are looked at",
    (
        "hcmodel/certify/search.py",
        "Search._improve",
        "self.form.domain.dimension <= SEARCH.refined -> self.form.domain.dimension > SEARCH.r"
        "efined",
    ): "how far a bound that is good enough is refined",
    (
        "hcmodel/certify/newton_steps.py",
        "lagrangian_step",
        "abs(start) + float(np.abs(multipliers) @ evaluation.magnitudes) -> abs(start) - float"
        "(np.abs(multipliers) @ evaluation.magnitudes)",
    ): "the rounding with which a step counts as no worse; a bound holds at every point",
    (
        "hcmodel/solving/stationary_points.py",
        "_falls_at_kink",
        "point + sign * step -> point - sign * step",
    ): "both signs are taken",
    (
        "hcmodel/solving/stationary_points.py",
        "_falls_at_kink",
        "(1.0, -1.0) -> (2.0, -1.0)",
    ): "how far a kink is looked at: any distance between rounding and the features of a model",
    (
        "hcmodel/solving/stationary_points.py",
        "_falls_at_kink",
        "generator.uniform(-1.0, 1.0, point.size) -> generator.uniform(-1.0, 2.0, point.size)",
    ): "in which directions a kink is looked at",
}
