"""Random proven models by three methods that share little: they must not contradict each other.

    python -m tests.benchmarks agreement [COUNT] [SEED]

Models are drawn from the expressions of the proof's fuzzer: an objective, up to three rows, some of
which cannot be satisfied. `cone`, `interior-point` and `hidden-newton` solve each model that is proven.
Prints how often each ended with which status, and every contradiction: two optima that differ, a model
that is called infeasible by one and solved by another, an optimum above the value at a feasible sample.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

import hcmodel as hc
from hcmodel.expressions.variable_sets import make_domain
from tests.hcmodel.proof.random_expressions import Generator

METHODS = ("cone", "interior-point", "hidden-newton")
SAMPLES = 200
# Optima are certified to 1e-6 of their value; a violation within the tolerance is worth its multiplier.
ACCURACY = 1e-5
# Second of a method on a model of a dozen unknowns.
LIMIT = 20.0


@dataclass
class Tally:
    """What was found; `contradictions` has to stay empty."""

    models: int = 0
    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    contradictions: list[str] = field(default_factory=list)


def random_model(rng: np.random.Generator) -> hc.Problem | None:
    """A model that is proven convex in some coordinates; None where the draw is not."""
    generator = Generator(rng)
    objective = generator.expression()
    aim = hc.Minimize(objective) if rng.uniform() < 0.8 else hc.Maximize(objective)
    rows = []
    for _ in range(int(rng.integers(0, 4))):
        left = generator.expression()
        level = value_at(left, rng)
        if not np.isfinite(level):
            return None
        # about a quarter of the rows asks for less than most points offer
        target = level + rng.normal() * (abs(level) + 0.1)
        rows.append(left <= target if rng.uniform() < 0.7 else left >= target)
    try:
        problem = hc.Problem(aim, rows)
        # proven without a map of the catalogue: to look for one in every draw takes most of the time
        return problem if problem.forms().prove().proven else None
    except hc.HCError:
        return None


def value_at(expression: hc.Expression, rng: np.random.Generator) -> float:
    """The value at a random point of the variables' sets."""
    variables = expression.variables()
    for variable in variables:
        sample = make_domain([variable]).sample(rng)
        variable.value = np.array(variable.set.expand(np, sample)).reshape(variable.shape)
    with np.errstate(all="ignore"):
        return float(np.sum(expression.value))


def outcomes(problem: hc.Problem) -> dict[str, tuple[str, float | None, float]]:
    """Status, value and what violations are worth, by method."""
    found = {}
    for method in METHODS:
        try:
            problem.solve(method, time_limit=LIMIT)
        except (hc.ModelError, hc.SolverError) as error:
            found[method] = (type(error).__name__, None, 0.0)
            continue
        worth = sum(
            float(np.nansum(np.abs(dual) * row.violation()))
            for row, dual in zip(problem.constraints, problem.solution.duals.values(), strict=False)
        )
        found[method] = (str(problem.status), problem.value, worth)
    return found


def contradictions(problem: hc.Problem, rng: np.random.Generator, tally: Tally) -> list[str]:
    found = outcomes(problem)
    for method, (status, _, _) in found.items():
        tally.statuses.setdefault(method, Counter())[status] += 1
    values = {m: (v, w) for m, (status, v, w) in found.items() if status == "optimal"}
    wrong = []
    if values:
        for status in ("infeasible", "unbounded"):
            wrong += [f"{m} says {status}" for m, each in found.items() if each[0] == status]
        least = min(value for value, _ in values.values())
        most = max(value for value, _ in values.values())
        room = ACCURACY * (1 + abs(most)) + sum(worth for _, worth in values.values())
        if most - least > room:
            wrong.append(f"optima {values}")
        wrong += better_samples(problem, least if problem.objective.sign > 0 else most, rng)
    return wrong


def better_samples(problem: hc.Problem, optimum: float, rng: np.random.Generator) -> list[str]:
    """Feasible points that are better than the optimum."""
    sign, domain = problem.objective.sign, make_domain(problem.variables)
    oracle = problem.forms().written.oracle()
    with np.errstate(all="ignore"):
        for _ in range(SAMPLES):
            there = oracle.at(domain.sample(rng))
            better = sign * optimum - there.objective
            if (
                there.finite
                and not there.violations.any()
                and better > ACCURACY * (1 + abs(optimum))
            ):
                return [f"a sample has {sign * there.objective}, not {optimum}"]
    return []


def agreement(count: int, seed: int) -> Tally:
    """Draw models until `count` of them are proven."""
    rng, tally = np.random.default_rng(seed), Tally()
    while tally.models < count:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = random_model(rng)
            if problem is None:
                continue
            tally.models += 1
            for each in contradictions(problem, rng, tally):
                rows = ", ".join(str(row) for row in problem.constraints)
                tally.contradictions.append(f"{each}: {problem.objective} s.t. {rows}")
    return tally


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="agreement", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000, help="how many proven models")
    parser.add_argument("seed", type=int, nargs="?", default=0)
    chosen = parser.parse_args(arguments)
    count, seed = chosen.count, chosen.seed
    tally = agreement(count, seed)
    for method, statuses in tally.statuses.items():
        listed = ", ".join(f"{number} {status}" for status, number in statuses.most_common())
        print(f"{method:15} {listed}")
    print(f"{tally.models} models, {len(tally.contradictions)} contradictions")
    for each in tally.contradictions:
        print(f"  {each}")
    return 1 if tally.contradictions else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
