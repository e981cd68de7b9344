"""What people write who come from CVXPY, GPkit, JuMP, AMPL or scipy, and what to write here instead.

One table for each place where such a name may stand. Each answer is a sentence that follows the name.
`docs/coming-from.md` lists the habits, and its table is a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcmodel.errors import ModelError

_CONTINUOUS = "all variables are continuous; there are no integers"
_BACKEND = "names a backend; here it is method=…, see `hcmodel methods`; leave it out for `auto`"
_KIND = "is not needed: coordinates are found, and whether they are proven is in the status; leave it out"
_TOLERANCE = "is tol=…: feasibility, certified gap and KKT residual together"
_LIMIT = "is max_calls=… (oracle calls) or time_limit=… (seconds)"

# Arguments of `Problem.solve`.
SOLVE: dict[str, str] = {
    "solver": _BACKEND,
    "solvers": _BACKEND,
    "solver_path": _BACKEND,
    "gp": _KIND,
    "qcp": _KIND,
    "nlp": _KIND,
    "requires_grad": "is not needed: problem.derivative(parameter) works after any solve",
    "enforce_dpp": "is not needed: new values of parameters never compile again without a message",
    "ignore_dpp": "is not needed: new values of parameters never compile again without a message",
    **dict.fromkeys(("eps", "eps_abs", "eps_rel", "abstol", "reltol", "feastol"), _TOLERANCE),
    **dict.fromkeys(("ftol", "xtol", "gtol", "tolerance", "accuracy"), _TOLERANCE),
    **dict.fromkeys(("max_iters", "max_iter", "maxiter", "iteration_limit", "maxfev"), _LIMIT),
    "verbosity": "is verbose=True or False",
    "disp": "is verbose=True or False",
    "x0": "is start={x: values}",
    "timeout": "is time_limit=… in seconds",
    "bounds": "belong to the variables: hc.Variable(n, bounds=(lower, upper))",
    "jac": "is not needed: derivatives come from the expressions, or from hc.function(…, grad=…)",
}

# Arguments of `Variable`.
VARIABLE: dict[str, str] = {
    "boolean": "is not there: " + _CONTINUOUS,
    "integer": "is not there: " + _CONTINUOUS,
    "neg": "is bounds=(None, 0)",
    "nonpos": "is bounds=(None, 0)",
    "NSD": "is a variable P with PSD=True, used as -P",
    "diag": "is hc.diag(hc.Variable(n))",
    "hermitian": "is not there: all numbers are real",
    "complex": "is not there: all numbers are real",
    "imag": "is not there: all numbers are real",
    "value": "is start=…, or x.value = … after the variable is made",
    "lb": "is bounds=(lower, upper)",
    "ub": "is bounds=(lower, upper)",
    "lower_bound": "is bounds=(lower, upper)",
    "upper_bound": "is bounds=(lower, upper)",
    "sparsity": "is a smaller variable put into place: A @ x, or hc.bmat",
}

# Attributes of `Problem`.
PROBLEM: dict[str, str] = {
    "is_dcp": "asks about CVXPY's rules; problem.is_hidden_convex() says what is proven here, and "
    "problem.analyze() why",
    "is_dgp": "asks about CVXPY's rules; problem.is_hidden_convex() says what is proven here, and "
    "problem.analyze() why",
    "is_qp": "is not asked here: `auto` chooses the method, and problem.solution.method names it",
    "is_dpp": "is not needed: problem.compilations counts what was compiled",
    "is_mixed_integer": "is always False: " + _CONTINUOUS,
    "solver_stats": "is problem.solution: iterations, oracle_calls, solve_seconds, method",
    "size_metrics": "is `hcmodel show`, or problem.canonical",
    "param_dict": "is problem.parameters, which knows names: problem.parameters['cap']",
    "var_dict": "is problem.variables, which knows names: problem.variables['x']",
    "unpack_results": "is problem.get_problem_data(): data.point and data.duals",
    "unpack": "is problem.get_problem_data(): data.point and data.duals",
    "backward": "is problem.adjoint({x: weight})",
    "solution_path": "is problem.sweep({parameter: values})",
    "substitutions": "are parameters: hc.Parameter(name='c', value=3), changed by c.value = 4",
    "localsolve": "is problem.solve(): signomials and other models need no other call",
    "cost": "is problem.objective.expression, and its value problem.value",
    **dict.fromkeys(
        ("plot", "draw"),
        "is problem.solution.plot() after a solve; hc.plot.landscape(problem) draws two variables",
    ),
    "debug": "is problem.relax() for an infeasible model, and problem.solution.conflict",
    "sensitivities": "are problem.derivative(parameter), and constraint.dual_value",
    "optimize": "is problem.solve()",
    "objective_value": "is problem.value",
    "termination_status": "is problem.status, and why it stopped problem.solution.termination",
    "primal_status": "is problem.status",
    "set_optimizer": "is problem.solve(method=…)",
    "minimize": "is hc.Problem(hc.Minimize(…), constraints)",
    "subject_to": "is hc.Problem(objective, constraints): a problem is made with its constraints",
    "add_constraints": "is hc.Problem(objective, constraints): a problem is made with its constraints",
}

# Attributes of `Solution`.
SOLUTION: dict[str, str] = {
    "x": "is solution['x'], by the name of the variable, or solution.point",
    "fun": "is solution.value",
    "success": "is solution.status in ('optimal', 'locally_optimal')",
    "message_": "is solution.message",
    "nit": "is solution.iterations",
    "nfev": "is solution.oracle_calls",
    "table": "is print(solution)",
    "sensitivities": "are solution.duals, and problem.derivative(parameter)",
    "primal_vars": "are solution.point: {name: array}",
    "dual_vars": "are solution.duals: {name: array}",
    "opt_val": "is solution.value",
    "cost": "is solution.value",
    "objective_value": "is solution.value",
    "objective": "is solution.value",
}

# Attributes of expressions: methods of numpy's arrays, and CVXPY's questions.
EXPRESSION: dict[str, str] = {
    **{
        name: f"is written hc.{name}(a)"
        for name in ("sum", "mean", "max", "min", "prod", "cumsum", "trace", "dot")
    },
    "reshape": "is written hc.reshape(a, shape)",
    "flatten": "is written hc.reshape(a, (-1,))",
    "ravel": "is written hc.reshape(a, (-1,))",
    "transpose": "is written a.T, or hc.transpose(a)",
    "diagonal": "is written hc.diag(a)",
    "H": "is a.T: all numbers are real",
    "is_convex": "is asked of a whole problem: problem.analyze() shows the proof",
    "is_concave": "is asked of a whole problem: problem.analyze() shows the proof",
    "is_affine": "is asked of a whole problem: problem.analyze() shows the proof",
    "is_dcp": "is asked of a whole problem: problem.is_hidden_convex()",
    "is_dgp": "is asked of a whole problem: problem.is_hidden_convex()",
    "curvature": "is asked of a whole problem: problem.analyze() shows the proof",
    "log_log_curvature": "is asked of a whole problem: problem.analyze() shows the proof",
    "sub": "is parameter.value = …",
    "dual_value": "belongs to constraints, and to bounds: problem.solution.bound_duals['x']",
}

# Names of the module.
MODULE: dict[str, str] = {
    "VectorVariable": "hc.Variable(n, name=…, pos=True)",
    "Model": "hc.Problem(hc.Minimize(cost), constraints)",
    "minimize": "hc.Problem(hc.Minimize(cost), constraints).solve(); hc.solvers.minimize takes an oracle",
    "value": "x.value, or problem.solution['x']",
    "installed_solvers": "`hcmodel methods`, or hc.solvers.METHODS",
    "ExpCone": "a constraint with hc.exp, hc.log, hc.entr or hc.kl_div",
    "PowCone3D": "a constraint with powers or hc.geo_mean",
    "NonPos": "a constraint a <= 0",
    "matmul": "A @ B",
    "std": "hc.sqrt(hc.mean((a - hc.mean(a))**2))",
    "var": "hc.mean((a - hc.mean(a))**2)",
    "ptp": "hc.max(a) - hc.min(a)",
    "psd_wrap": "the matrix as it is",
    "nuclear_norm": "a variable T with a matrix inequality; the nuclear norm is not an atom",
    "ceil": "nothing: " + _CONTINUOUS,
    "floor": "nothing: " + _CONTINUOUS,
    "sign": "nothing: steps are not there, as " + _CONTINUOUS,
    "SignomialsEnabled": "the signomial as it is: nothing has to be enabled",
    **dict.fromkeys(
        ("CLARABEL", "ECOS", "SCS", "OSQP", "MOSEK", "GUROBI", "CVXOPT", "IPOPT", "HIGHS"),
        "method=… of solve, or nothing: `auto` chooses (see `hcmodel methods`)",
    ),
}


def answer(table: Mapping[str, str], name: str, what: str) -> str | None:
    """What to write instead of a name, None where it is nobody's habit."""
    return f"{what} {table[name]}" if name in table else None


def refuse_arguments(table: Mapping[str, str], given: Mapping[str, Any], function: str) -> None:
    """Raise for arguments that the function does not have; known habits say what to write."""
    for name, value in given.items():
        known = answer(table, name, f"{name}={value!r} of {function}")
        if known is not None:
            raise ModelError(known)
        raise TypeError(f"{function} has no argument {name!r}")


def missing_attribute(table: Mapping[str, str], name: str, owner: str) -> AttributeError:
    """The error for an attribute that is not there."""
    text = f"'{owner}' object has no attribute {name!r}"
    known = answer(table, name, f"`{name}`")
    return AttributeError(text if known is None else f"{text}: {known}")
