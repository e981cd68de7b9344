"""Stage after stage: each run judged as it ends, until a point can be shown to be something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hcmodel.reductions.forms import Form, Forms
from hcmodel.solvers.result import Termination
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.solution import Solution, Status
from hcmodel.solving.strategy import Journey, Request, Stage, describe, run_stage
from hcmodel.solving.walk_back import Naming, Outcome, Run, judged_solution

FloatArray = NDArray[np.float64]


def run_stages(
    stages: Sequence[Stage],
    forms: Forms,
    hidden: Form | None,
    first: FloatArray,
    request: Request,
    method: str,
    compile_seconds: float,
    naming: Naming,
    vouched: Constants | None,
) -> Solution:
    """Run one stage after the other until a point can be shown to be something; keep the best."""
    journey = Journey()
    best: Solution | None = None
    point = first
    for number, stage in enumerate(stages):
        last = number == len(stages) - 1
        if best is not None and request.is_spent(journey):
            break
        with np.errstate(all="ignore"):  # what is not finite is refused, not warned about
            result = run_stage(stage, point, request, journey, hidden)
        journey = journey.extended(result)
        names = describe(method, stages[: number + 1])
        run = Run(names, stage.form.compiled.engine, compile_seconds, 0.0)
        outcome = Outcome(stage.form, result)
        with np.errstate(all="ignore"):
            solution = judged_solution(
                forms, hidden, outcome, journey, request.tolerance, run, naming, vouched
            )
        if best is None or _is_better(solution, best, forms.canonical.sign):
            best = solution
        else:
            best = replace(
                best,
                trace=solution.trace,
                oracle_calls=solution.oracle_calls,
                iterations=solution.iterations,
                method=solution.method,
            )
        if result.termination in (Termination.CALLBACK, Termination.INTERRUPTED):
            break
        if last or (solution.is_final() and not stages[number + 1].follows):
            break
        if solution.rank() > 0 and result.evaluation is not None:
            found = stage.form.to_written(result.point)
            if forms.canonical.domain.contains(found, 1e-9):  # else bounds were left out and broken
                point = found
    assert best is not None
    return best


def _is_better(new: Solution, old: Solution, sign: float) -> bool:
    """The status decides, then the violation, then the value."""
    if new.rank() != old.rank() or new.value is None or old.value is None:
        return new.rank() > old.rank()
    if new.status in (Status.SOLVER_ERROR, Status.INFEASIBLE_INACCURATE):
        return (new.certificate.violation or 0.0) <= (old.certificate.violation or 0.0)
    return sign * new.value <= sign * old.value
