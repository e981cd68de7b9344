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
}
