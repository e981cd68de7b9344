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
        "hcmodel/certify/minorants/search.py",
        "Search._walk",
        "enough(self.value) or idle == SEARCH.patience"
        " -> enough(self.value) and idle == SEARCH.patience",
    ): "when a search stops; the best bound found is kept",
    (
        "hcmodel/certify/minorants/newton_steps.py",
        "_minimiser",
        "(make_backend(), 1.0) -> (make_backend(), 2.0)",
    ): "the unit in which the program is solved, not the step itself",
    (
        "hcmodel/certify/duals/exact_duals.py",
        "_second_order",
        "not own.size or not moved[[*own, *places.members]].any()"
        " -> not own.size and (not moved[[*own, *places.members]].any())",
    ): "a shortcut: where nothing moves, the test that follows passes",
    (
        "hcmodel/certify/duals/exact_duals.py",
        "_exponential",
        "u + b * du -> u - b * du",
    ): "b takes both signs",
    (
        "hcmodel/certify/duals/exact_duals.py",
        "_exponential",
        "v + a * dv -> v - a * dv",
    ): "a takes both signs",
    (
        "hcmodel/certify/minorants/balls.py",
        "_closing_weights",
        "np.maximum(offsets, 0.0) / max(float(np.max(np.abs(offsets))), TINY) -> np.maximum(of"
        "fsets, 0.0) * max(float(np.max(np.abs(offsets))), TINY)",
    ): "prices in a search for weights; what a ball rests on is checked with the weights found",
    (
        "hcmodel/certify/minorants/balls.py",
        "_closing_weights",
        "(0.0, 1.0) -> (0.0, 2.0)",
    ): "prices in a search for weights; what a ball rests on is checked with the weights found",
    (
        "hcmodel/certify/minorants/balls.py",
        "_closing_weights",
        "price - 1.0 -> price - 2.0",
    ): "prices in a search for weights; what a ball rests on is checked with the weights found",
    (
        "hcmodel/certify/duals/cone_ranges.py",
        "_Sweep._by_cones",
        "places.diagonal.size and (not np.isfinite(upper[places.diagonal]).all()) -> places.di"
        "agonal.size or not np.isfinite(upper[places.diagonal]).all()",
    ): "traces that are bounded already are bounded once more",
    (
        "hcmodel/certify/duals/cone_ranges.py",
        "limit_by_inner_dual",
        "middle[own] = 1.0 -> middle[own] = 2.0",
    ): "the scale of d, by which all that follows is divided",
    (
        "hcmodel/certify/duals/cone_ranges.py",
        "ranges",
        "not sweep.finite and program.quadratic.nnz -> not sweep.finite or program.quadratic.nnz",
    ): "ranges that are finite already are cut once more, and without squares nothing is",
    (
        "hcmodel/certify/duals/cone_ranges.py",
        "ranges",
        "not sweep.finite and np.prod(program.matrix.shape) <= CONE_DUALITY.largest_inner -> n"
        "ot sweep.finite or np.prod(program.matrix.shape) <= CONE_DUALITY.largest_inner",
    ): "ranges that are finite already are cut once more, at some cost",
    (
        "hcmodel/certify/duals/square_ranges.py",
        "by_equations",
        "free.size > used.size or used.size * free.size > CONE_DUALITY.largest_equations -> fr"
        "ee.size > used.size and used.size * free.size > CONE_DUALITY.largest_equations",
    ): "fewer equations than unknowns have the least singular value 0, and return the same later",
    (
        "hcmodel/certify/duals/square_ranges.py",
        "by_equations",
        "used.size * free.size -> used.size / free.size",
    ): "the size up to which an eigenvalue is computed: cost only",
    (
        "hcmodel/certify/minorants/charts.py",
        "_tilted",
        "np.max(np.abs(slope)) -> np.min(np.abs(slope))",
    ): "the unit in which a linear program is solved",
    (
        "hcmodel/certify/paths/candidate_paths.py",
        "_ray",
        "LARGEST_NUMBER * unit -> LARGEST_NUMBER / unit",
    ): "both are far beyond every bound in the same direction",
    (
        "hcmodel/certify/paths/descent.py",
        "_is_rounding",
        "-1.0 -> -2.0",
    ): "which points next to a point are looked at",
    (
        "hcmodel/certify/paths/descent.py",
        "_is_rounding",
        "-1.0 -> +1.0",
    ): "which points next to a point are looked at",
    (
        "hcmodel/certify/paths/candidate_paths.py",
        "DescentRules:",
        "slowest: float = 1e-09 -> slowest: float = 2e-09",
    ): "which entries a message names",
    (
        "hcmodel/certify/duals/cone_duality.py",
        "_exponential",
        "-1.0 -> -2.0",
    ): "a divisor of entries that are not used",
    (
        "hcmodel/certify/duals/cone_duality.py",
        "_best",
        "enough(best) or np.prod(dual.program.matrix.shape) > CONE_DUALITY.largest_correction "
        "-> enough(best) and np.prod(dual.program.matrix.shape) > CONE_DUALITY.largest_correct"
        "ion",
    ): "more corrections than needed: the best value is kept",
    (
        "hcmodel/certify/minorants/newton_steps.py",
        "_minimiser",
        "length >= NEWTON.fine -> length < NEWTON.fine",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/minorants/newton_steps.py",
        "_minimiser",
        "length >= NEWTON.fine or unit <= NEWTON.smallest_unit -> length >= NEWTON.fine and un"
        "it <= NEWTON.smallest_unit",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/minorants/newton_steps.py",
        "_minimiser",
        "unit <= NEWTON.smallest_unit -> unit > NEWTON.smallest_unit",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/minorants/newton_steps.py",
        "_minimiser",
        "max(NEWTON.unit_per_length * length, NEWTON.unit_decrease) -> min(NEWTON.unit_per_len"
        "gth * length, NEWTON.unit_decrease)",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/minorants/newton_steps.py",
        "_minimiser",
        "NEWTON.unit_per_length * length -> NEWTON.unit_per_length / length",
    ): "the unit in which a step is computed again, not the step itself",
    (
        "hcmodel/certify/minorants/level_sets.py",
        "_from_zero",
        "-1.0 -> -2.0",
    ): "at which points minorants are taken; each of them holds",
    (
        "hcmodel/certify/minorants/level_sets.py",
        "_moves",
        "level_above(evaluation) - evaluation.objective if evaluation.has_objective else 1.0 -"
        "> level_above(evaluation) - evaluation.objective if evaluation.has_objective else 2.0",
    ): "at which points minorants are taken; each of them holds",
    (
        "hcmodel/certify/minorants/level_sets.py",
        "level_ball",
        "max(float(np.max(np.abs(center), initial=0.0)), ENCLOSURE.smallest_image) -> min(floa"
        "t(np.max(np.abs(center), initial=0.0)), ENCLOSURE.smallest_image)",
    ): "which half-spaces are tried first",
    (
        "hcmodel/certify/minorants/level_sets.py",
        "level_ball",
        "np.max(np.abs(center), initial=0.0) -> np.min(np.abs(center), initial=0.0)",
    ): "which half-spaces are tried first",
    (
        "hcmodel/certify/minorants/level_sets.py",
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
        "hcmodel/certify/duals/cone_duality.py",
        "cone_bound",
        "np.isfinite(best) and (not enough(best)) -> np.isfinite(best) or not enough(best)",
    ): "ranges become narrower at some cost, and the best value is kept",
    (
        "hcmodel/certify/duals/cone_duality.py",
        "cone_bound",
        "not enough(best) and (np.isfinite(best) or dual.may_be_exact) -> not enough(best) or "
        "(np.isfinite(best) or dual.may_be_exact)",
    ): "more corrections than needed: the best value is kept",
    (
        "hcmodel/certify/declared/curvature_boxes.py",
        "_Halving.run",
        "high - low -> high + low",
    ): "which side of a box is halved first",
    (
        "hcmodel/certify/declared/curvature_boxes.py",
        "_Halving.run",
        "np.maximum(high - low, 0.0) -> np.minimum(high - low, 0.0)",
    ): "which side of a box is halved first",
    (
        "hcmodel/certify/declared/curvature_boxes.py",
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
        "hcmodel/certify/minorants/search.py",
        "Search._improve",
        "self.form.domain.dimension <= SEARCH.refined -> self.form.domain.dimension > SEARCH.r"
        "efined",
    ): "how far a bound that is good enough is refined",
    (
        "hcmodel/certify/minorants/newton_steps.py",
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
        "hcmodel/certify/minorants/term_balls.py",
        "_radius",
        "np.einsum('ij,ij->j', matrix, matrix).min(initial=np.inf) -> np.einsum('ij,ij->j', matrix,"
        " matrix).max(initial=np.inf)",
    ): "a shortcut: the least singular value decides the same",
    (
        "hcmodel/certify/minorants/search.py",
        "Search.descend",
        "enough(self.value) or self.value == before -> enough(self.value) and self.value == before",
    ): "how far a bound that is good enough is refined",
    # ---- reductions
    (
        "hcmodel/reductions/steepness.py",
        "_is_free",
        "variable.set.is_box and bool(_below_0(variable).any()) -> variable.set.is_box or bool(_be"
        "low_0(variable).any())",
    ): "a shortcut: marks are used for entries of boxes that may be negative only",
    (
        "hcmodel/reductions/cone/cone.py",
        "Cone.point",
        "np.where(self.logs, x, 1.0) -> np.where(self.logs, x, 2.0)",
    ): "keeps the logarithm defined where it is not used",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._exponential",
        "side is Side.ABOVE and sign.is_nonnegative -> side is Side.ABOVE or sign.is_nonnegative",
    ): "the side that is asked for fits the sign: a size that is log-convex is convex",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._exponential",
        "side is Side.BELOW and sign.is_nonpositive -> side is Side.BELOW or sign.is_nonpositive",
    ): "the side that is asked for fits the sign: a size that is log-convex is convex",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._linear",
        "matrix.data.max() -> matrix.data.min()",
    ): "weights of both signs over something that bends have no curvature in a proof",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._linear",
        "matrix.data.min() -> matrix.data.max()",
    ): "weights of both signs over something that bends have no curvature in a proof",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._log_monomial",
        "float(np.sign(exponent).flat[0]) if exponent.size else 1.0 -> float(np.sign(exponent)."
        "flat[0]) if exponent.size else 2.0",
    ): "only the sign counts",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._mixed",
        "self.constant(argument) is not None -> self.constant(argument) is None",
    ): "exponents of both signs have no curvature in a proof where their base is not log-affine",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation.terms",
        "not isinstance(expression, Apply) or self.constant(expression) is not None -> not isin"
        "stance(expression, Apply) and self.constant(expression) is not None",
    ): "constants are log-affine, which is looked at next",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._split",
        "kind is not Sign.ZERO -> kind is Sign.ZERO",
    ): "a sum of terms of both signs is not log-convex in a proof",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._weighted_terms",
        "matrix.data.max() -> matrix.data.min()",
    ): "the same for weights of one sign; those of both are refused next",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._weighted_terms",
        "matrix.data.min() -> matrix.data.max()",
    ): "a sum with weights of both signs is not log-convex in a proof",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._has_log",
        "self.constant(expression) is not None -> self.constant(expression) is None",
    ): "what has no such logarithm is refused when its bound is asked for",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._times_monomial",
        "exponent is None or not is_one(exponents[sum_place]) -> exponent is None and (not is_o"
        "ne(exponents[sum_place]))",
    ): "a sum below a fraction bar is not log-convex in a proof",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_of_parts",
        "min(atom.signs(len(parts))) -> max(atom.signs(len(parts)))",
    ): "a difference has no convex root in a proof",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_of_parts",
        "matrix.data.min() -> matrix.data.max()",
    ): "weights below 0 leave no convex root in a proof",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_magnitude",
        "translation.channels(node.expression)[0] & CONVEX and node.sign.is_nonnegative -> tran"
        "slation.channels(node.expression)[0] & CONVEX or node.sign.is_nonnegative",
    ): "what is affine is bounded by itself, and other bases of squares that are not negative are convex",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_of_square",
        "exponents is None or exponents[0] is None -> exponents is None and exponents[0] is None",
    ): "a power that is a square in a proof has an exponent",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "pattern_bound",
        "side is not Side.ABOVE or any((translation.channels(each)[0] != AFFINE for each in par"
        "ts)) -> side is not Side.ABOVE and any((translation.channels(each)[0] != AFFINE for ea"
        "ch in parts))",
    ): "a fraction is convex in a proof only where its parts are affine, and never concave",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "pattern_log_bound",
        "not above.is_constant or translation.channels(matrix.expression)[0] != AFFINE -> not a"
        "bove.is_constant and translation.channels(matrix.expression)[0] != AFFINE",
    ): "a fraction is log-convex in a proof only for constant x and affine P",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_over",
        "1.0 if side is Side.ABOVE else -1.0 -> 2.0 if side is Side.ABOVE else -1.0",
    ): "its size cancels: the divisor is multiplied by it and the quotient too",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_over",
        "-1.0 -> -2.0",
    ): "its size cancels: the divisor is multiplied by it and the quotient too",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "_factor",
        "value is None or exponent is None -> value is None and exponent is None",
    ): "a quotient is recognised in a proof only with a constant k",
    (
        "hcmodel/reductions/cone/cone_squares.py",
        "quadratic_objective",
        "weight * sign -> weight / sign",
    ): "the sign is 1 or −1",
    (
        "hcmodel/reductions/discovery.py",
        "discover",
        "trials.spent or trials.refuses(steps) -> trials.spent and trials.refuses(steps)",
    ): "how far a search goes; what it finds is proven",
    (
        "hcmodel/reductions/discovery.py",
        "discover",
        "len(chain) < LIMITS.depth and proposed.after is not current -> len(chain) < LIMITS.dep"
        "th or proposed.after is not current",
    ): "how far a search goes; what it finds is proven",
    (
        "hcmodel/reductions/discovery.py",
        "_Trials.take",
        "key in self._seen or self.refuses(chain) -> key in self._seen and self.refuses(chain)",
    ): "how far a search goes; what it finds is proven",
    (
        "hcmodel/reductions/forms.py",
        "Forms._discovered",
        "discovery.substitution is None or discovery.proof is None -> discovery.substitution is"
        " None and discovery.proof is None",
    ): "both are there or none is",
    (
        "hcmodel/reductions/forms.py",
        "Forms._kept",
        "lift is not None and kept -> lift is not None or kept",
    ): "the same proof is found again, at some cost",
    (
        "hcmodel/reductions/forms.py",
        "_check_rank",
        "MOVING * max(sizes) -> MOVING / max(sizes)",
    ): "the direction has the length 1, so that its largest entry is near 1; which names a message shows",
    (
        "hcmodel/reductions/lift.py",
        "_directions",
        "pieces is not None -> pieces is None",
    ): "where the sign of its argument is known, a kink inside of a kink may be lifted as well",
    (
        "hcmodel/reductions/cone/linear_maps.py",
        "_contraction",
        "len(shape) == 1 -> len(shape) != 1",
    ): "a shortcut: the general way makes the same matrix",
    (
        "hcmodel/reductions/cone/linear_maps.py",
        "_contraction",
        "len(result) == 1 -> len(result) != 1",
    ): "a shortcut: the general way makes the same matrix",
    (
        "hcmodel/reductions/smooth_convex.py",
        "_Builder._affine",
        "plain[0] * self.sign -> plain[0] / self.sign",
    ): "the sign is 1 or −1",
    (
        "hcmodel/reductions/substitution.py",
        "Substitution.explains",
        "np.append(self.point(x), 1.0) -> np.append(self.point(x), 2.0)",
    ): "the scale of a column of a fit",
    (
        "hcmodel/reductions/substitution.py",
        "Substitution.explains",
        "np.abs(matrix).max(axis=0) -> np.abs(matrix).min(axis=0)",
    ): "the scale of a column of a fit",
    (
        "hcmodel/reductions/substitution.py",
        "Substitution.explains",
        "np.abs(matrix / sizes @ fit - wanted).max(axis=0) -> np.abs(matrix / sizes @ fit - wan"
        "ted).min(axis=0)",
    ): "a fit that fails is off at all points",
    (
        "hcmodel/reductions/substitution.py",
        "Substitution.explains",
        "np.abs(wanted).max(axis=0) -> np.abs(wanted).min(axis=0)",
    ): "a tolerance between rounding and what a fit that fails leaves",
    (
        "hcmodel/reductions/substitution.py",
        "Substitution._with_factors",
        "needed <= set(point) -> needed > set(point)",
    ): "a shortcut: the way back and forth gives the same factors",
    (
        "hcmodel/reductions/substitution.py",
        "_renewed",
        "isinstance(node, Apply) and any((id(each) in new for each in node.args)) -> isinstance"
        "(node, Apply) or any((id(each) in new for each in node.args))",
    ): "a copy of what does not change",
    (
        "hcmodel/reductions/bounds.py",
        "Bounds._dual",
        "slopes[start + row.places[own]] * np.where(row.lower[own], 1.0, -1.0) -> slopes[start "
        "+ row.places[own]] / np.where(row.lower[own], 1.0, -1.0)",
    ): "the sign is 1 or −1",
    (
        "hcmodel/reductions/bounds.py",
        "Bounds.set_duals_back",
        "slopes[places] * np.where(row.lower[own], 1.0, -1.0) -> slopes[places] / np.where(row."
        "lower[own], 1.0, -1.0)",
    ): "the sign is 1 or −1",
    (
        "hcmodel/reductions/bounds.py",
        "_rewritten",
        "isinstance(node, Apply) and any((id(argument) in new for argument in node.args)) -> is"
        "instance(node, Apply) or any((id(argument) in new for argument in node.args))",
    ): "a copy of what does not change",
    (
        "hcmodel/reductions/entry_paths.py",
        "Liveness.__call__",
        "id(node) not in seen and id(node) not in self._constant -> id(node) not in seen or id("
        "node) not in self._constant",
    ): "nodes are looked at several times",
    (
        "hcmodel/reductions/cone/compressed_rows.py",
        "Rows.of_entries",
        "rows.size > 1 and (rows[1:] < rows[:-1]).any() -> rows.size > 1 or (rows[1:] < rows[:-"
        "1]).any()",
    ): "what is in order is sorted once more",
    (
        "hcmodel/reductions/cone/compressed_rows.py",
        "Rows.__matmul__",
        "other.nnz == other.shape[0] -> other.nnz != other.shape[0]",
    ): "a shortcut: the general way makes the same product",
    (
        "hcmodel/reductions/cone/compressed_rows.py",
        "Rows.__matmul__",
        "other.lengths[self.indices].sum() > LARGEST_PRODUCT -> other.lengths[self.indices].sum"
        "() < LARGEST_PRODUCT",
    ): "the memory that a product takes",
    (
        "hcmodel/reductions/cone/cone_bounds.py",
        "Translation._factor",
        "domain in POSITIVE_DOMAINS -> domain not in POSITIVE_DOMAINS",
    ): "powers have cone forms of their own, and the factors of products may be any numbers",
    (
        "hcmodel/reductions/forms.py",
        "",
        "MOVING = 0.001 -> MOVING = 0.002",
    ): "which names a message shows: any share between rounding and a move",
    (
        "hcmodel/certify/paths/candidate_paths.py",
        "DescentRules:",
        "closest: float = 0.0001 -> closest: float = 0.0002",
    ): "where a path begins: any share that does not step over a minimum",
    (
        "hcmodel/solving/stationary_points.py",
        "StationarityRules:",
        "kink_slope: float = 0.01 -> kink_slope: float = 0.02",
    ): "any slope between rounding and the features of a model",
}
