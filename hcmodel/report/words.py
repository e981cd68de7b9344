"""What a status means, in words for people who read a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution

MEANINGS = {
    "optimal": "The point is feasible, and a certified bound shows that no feasible point is better by "
    "more than the gap.",
    "locally_optimal": "The point is feasible and satisfies the optimality conditions. No lower bound "
    "was found: it is a global optimum if the model is hidden convex.",
    "optimal_inaccurate": "The point is close to an optimum, but not within the tolerance.",
    "infeasible": "No point satisfies all constraints. This is certified: the conflict below is enough "
    "to show it.",
    "infeasible_inaccurate": "No feasible point was found, and the rows below contradict each other "
    "near the best one. This is not a proof.",
    "unbounded": "The objective improves without limit along a path that was found.",
    "user_limit": "A limit ended the solve; this is the best point until then.",
    "solver_error": "The solve failed; the message says why.",
}


def certificate_words(solution: Solution) -> str:
    """What was shown of the point, in one or two sentences."""
    return MEANINGS[solution.status.value]
