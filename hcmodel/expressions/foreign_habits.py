"""What people write who come from CVXPY, GPkit, JuMP, AMPL or scipy, and what to write here instead.

One table for each place where such a name may stand. Each answer is a sentence that follows the name.
`docs/coming-from.md` lists the habits, and its table is a test.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
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
    "solver_opts": "is options={…} of a method that method=… names",
    "solver_options": "is options={…} of a method that method=… names",
    "jac": "is not needed: derivatives come from the expressions, or from hc.function(…, grad=…)",
}

_KNOWN = "is not needed: it is seen in the value"

# Arguments of `Parameter`.
PARAMETER: dict[str, str] = {
    "symmetric": _KNOWN,
    "PSD": _KNOWN,
    "NSD": _KNOWN,
    "diag": _KNOWN,
    "sparsity": _KNOWN + ", which may be a sparse matrix of scipy",
    "bounds": "is not supported: a promise of the sign is pos=True or nonneg=True",
    "neg": "is a parameter p with pos=True, used as -p",
    "nonpos": "is a parameter p with nonneg=True, used as -p",
    "integer": "is not needed: all numbers are real",
    "boolean": "is not needed: all numbers are real",
    "complex": "is not supported: all numbers are real",
    "imag": "is not supported: all numbers are real",
    "hermitian": "is not supported: all numbers are real",
}

# Arguments of `Variable`.
VARIABLE: dict[str, str] = {
    "boolean": "is not supported: " + _CONTINUOUS,
    "integer": "is not supported: " + _CONTINUOUS,
    "neg": "is bounds=(None, 0)",
    "nonpos": "is bounds=(None, 0)",
    "NSD": "is not supported: declare P with PSD=True and use -P",
    "diag": "is hc.diag(hc.Variable(n))",
    "hermitian": "is not supported: all numbers are real",
    "complex": "is not supported: all numbers are real",
    "imag": "is not supported: all numbers are real",
    "value": "is start=…, or x.value = … after the variable is made",
    **dict.fromkeys(("initial_value", "initial", "init", "x0", "guess"), "is start=…"),
    **dict.fromkeys(("lb", "lower", "lower_bound", "low"), "is bounds=(lower, upper)"),
    **dict.fromkeys(("ub", "upper", "upper_bound", "high"), "is bounds=(lower, upper)"),
    **dict.fromkeys(("negative", "nonpositive"), "is bounds=(None, 0)"),
    **dict.fromkeys(("nonnegative", "non_negative"), "is nonneg=True"),
    **dict.fromkeys(("positive", "strictly_positive"), "is pos=True"),
    **dict.fromkeys(("psd", "semidefinite", "positive_semidefinite"), "is PSD=True"),
    **dict.fromkeys(
        ("size", "dim", "n"), "is the first argument: hc.Variable(3), hc.Variable((2, 3))"
    ),
    **dict.fromkeys(("dtype", "domain", "within", "cat"), "is not supported: " + _CONTINUOUS),
    "sparsity": "is a smaller variable put into place: A @ x, or hc.bmat",
}

_WHOLE = "is hc.Problem(objective, constraints): a problem is made with its constraints"

# Arguments of `Problem.sweep`.
SWEEP: dict[str, str] = {
    **dict.fromkeys(
        ("n_jobs", "workers", "processes", "jobs", "parallel"),
        "is executor=…: a number of processes, or anything with `submit`",
    ),
    **dict.fromkeys(("n", "num", "points"), "is a list of values: {cap: np.linspace(1, 2, 20)}"),
}

# Arguments of `Problem`.
MODEL: dict[str, str] = {
    **dict.fromkeys(
        ("st", "s_t", "subject_to", "rows", "cons", "constraint"),
        "is the second argument, a list: hc.Problem(objective, constraints)",
    ),
    **dict.fromkeys(("map", "coordinates", "transformation"), "is hidden=[…], or left out"),
    **dict.fromkeys(
        ("variables", "vars", "parameters"), "is not needed: they are in the expressions"
    ),
    "sense": "is hc.Minimize(…) or hc.Maximize(…) around the objective",
    "data": "is the value of parameters: hc.Parameter(n, value=…)",
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
    **dict.fromkeys(("subject_to", "add_constraints", "add_constraint", "add"), _WHOLE),
    "set_objective": "is hc.Problem(hc.Minimize(…), problem.constraints): make a new problem",
    "set_value": "is problem.parameters['cap'].value = 3",
    "set_parameter": "is problem.parameters['cap'].value = 3",
    "dual_value": "belongs to constraints: constraint.dual_value, or problem.solution.duals['name']",
    "duals": "are problem.solution.duals, by the names of the constraints",
    "constants": "are numbers in expressions; data that change are hc.Parameter, problem.parameters",
    "atoms": "are listed for all models in the docs (docs/atoms.md)",
    "compilation_time": "is problem.solution.compile_seconds",
    "solve_time": "is problem.solution.solve_seconds",
    "copy": "is copy.deepcopy(problem), or hc.Problem(problem.objective, problem.constraints)",
    "display": "is print(problem.solution), and `hcmodel show` for the model",
    "infeasibilities": "are problem.relax() and problem.solution.conflict",
}

# Attributes of `Solution`.
SOLUTION: dict[str, str] = {
    "x": "is solution['x'], by the name of the variable, or solution.point",
    "fun": "is solution.value",
    "success": "is solution.status in ('optimal', 'locally_optimal')",
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
    "dual": "is solution.duals['name'], by the name of the constraint",
    "info": "is print(solution), or solution.to_json()",
    "summary": "is print(solution)",
    "to_dataframe": "is solution.to_pandas()",
    "to_df": "is solution.to_pandas()",
    "to_dict": "is solution.to_json()",
    "save": "is json.dump(solution.to_json(), file), or solution.to_csv(path)",
    "get": "is solution['x']",
}

# Attributes of constraints.
CONSTRAINT: dict[str, str] = {
    "dual_variables": "are constraint.dual_value after a solve",
    "dual": "is constraint.dual_value after a solve",
    "value": "is constraint.violation(), 0 where the constraint holds",
    "residual": "is constraint.violation()",
    "expr": "is constraint.lhs - constraint.rhs",
    "args": "are constraint.lhs and constraint.rhs",
    "is_dcp": "belongs to the problem: problem.is_hidden_convex()",
    "is_dgp": "belongs to the problem: problem.is_hidden_convex()",
    "id": "is constraint.name, which .named('area') sets",
}

# Attributes of objectives.
OBJECTIVE: dict[str, str] = {
    "args": "are objective.expression",
    "expr": "is objective.expression",
    "is_dcp": "belongs to the problem: problem.is_hidden_convex()",
    "is_dgp": "belongs to the problem: problem.is_hidden_convex()",
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
    "is_convex": "belongs to the problem: problem.analyze() shows the proof",
    "is_concave": "belongs to the problem: problem.analyze() shows the proof",
    "is_affine": "belongs to the problem: problem.analyze() shows the proof",
    "is_dcp": "belongs to the problem: problem.is_hidden_convex()",
    "is_dgp": "belongs to the problem: problem.is_hidden_convex()",
    "curvature": "belongs to the problem: problem.analyze() shows the proof",
    "log_log_curvature": "belongs to the problem: problem.analyze() shows the proof",
    "sub": "is parameter.value = …",
    "id": "is x.name",
    "attributes": "are x.lower, x.upper and x.set",
    **dict.fromkeys(("lb", "ub"), "are x.lower and x.upper"),
    **dict.fromkeys(
        ("is_nonneg", "is_nonpos", "is_pos", "is_neg", "sign"),
        "belongs to the problem: problem.analyze() shows signs in its derivation",
    ),
    "is_constant": "is not expression.variables()",
    "save_value": "is x.value = …",
    "set_value": "is x.value = …",
    "project": "is not needed: a start outside the set of a variable is projected",
    "fix": "is bounds=(value, value), or a constraint x == value",
    "dual_value": "belongs to constraints, and to bounds: problem.solution.bound_duals['x']",
}

# Names of the module, and of functions of numpy.
MODULE: dict[str, str] = {
    "Zero": "a constraint a == 0",
    "NonNeg": "a constraint a >= 0",
    "SOC": "a constraint hc.norm(a) <= t",
    "PSD": "a constraint A >> 0, or hc.Variable((n, n), PSD=True)",
    "cumprod": "hc.exp(hc.cumsum(hc.log(a)))",
    "diff": "a[1:] - a[:-1]",
    "harmonic_mean": "n / hc.sum(hc.inv_pos(a))",
    "neg": "hc.maximum(-a, 0)",
    "pos": "hc.maximum(a, 0)",
    "scalar_product": "hc.dot(a, b)",
    "sigma_max": "hc.sqrt(hc.lambda_max(A.T @ A))",
    "tv": "hc.norm(a[1:] - a[:-1], 1)",
    "vdot": "hc.dot(a, b)",
    "vec": "hc.reshape(a, (-1,)), row by row; hc.reshape(a.T, (-1,)) is column by column",
    "VectorVariable": "hc.Variable(n, name=…, pos=True)",
    "Model": "hc.Problem(hc.Minimize(cost), constraints)",
    "minimize": "hc.Problem(hc.Minimize(cost), constraints).solve(); hc.solvers.minimize takes an oracle",
    "value": "x.value, or problem.solution['x']",
    "installed_solvers": "`hcmodel methods`, or hc.solvers.METHODS",
    "ExpCone": "a constraint with hc.exp, hc.log, hc.entr or hc.kl_div",
    "PowCone3D": "a constraint with powers or hc.geo_mean",
    "NonPos": "a constraint a <= 0",
    "matmul": "A @ B",
    "inner": "hc.dot(a, b)",
    "std": "hc.sqrt(hc.mean((a - hc.mean(a))**2))",
    "var": "hc.mean((a - hc.mean(a))**2)",
    "ptp": "hc.max(a) - hc.min(a)",
    "psd_wrap": "the matrix as it is",
    **dict.fromkeys(
        ("norm_nuc", "normNuc", "nuclear_norm", "nuc_norm"),
        "(hc.trace(U) + hc.trace(V)) / 2 with variables U and V and a row "
        "hc.bmat([[U, A], [A.T, V]]) >> 0; the nuclear norm is not an atom",
    ),
    **dict.fromkeys(("Minimise", "minimise"), "hc.Minimize(cost)"),
    **dict.fromkeys(("Maximise", "maximise"), "hc.Maximize(gain)"),
    "cosh": "(hc.exp(a) + hc.exp(-a)) / 2",
    "sinh": "(hc.exp(a) - hc.exp(-a)) / 2",
    "tan": "hc.sin(a) / hc.cos(a)",
    "log2": "hc.log(a) / numpy.log(2)",
    "log10": "hc.log(a) / numpy.log(10)",
    "expm1": "hc.exp(a) - 1",
    "exp2": "2**a",
    "cbrt": "a**(1/3), for a >= 0",
    "hypot": "hc.sqrt(a**2 + b**2)",
    "logaddexp": "hc.logsumexp(hc.hstack([a, b])), of two numbers",
    "inv_prod": "1 / hc.prod(a)",
    "upper_tri": "A[numpy.triu_indices(n, 1)]",
    "tril": "A * numpy.tril(numpy.ones((n, n)))",
    "triu": "A * numpy.triu(numpy.ones((n, n)))",
    "mixed_norm": "hc.norm(hc.norm(A, p, axis=1), q)",
    "loggamma": "hc.function(f, a, grad=…) with a function of scipy.special; it is not an atom",
    "median": "hc.mean(a), or hc.sum_largest(a, k): the median is not an atom",
    "ceil": "nothing: " + _CONTINUOUS,
    "floor": "nothing: " + _CONTINUOUS,
    "sign": "no steps: " + _CONTINUOUS,
    "SignomialsEnabled": "the signomial as it is: nothing has to be enabled",
    **dict.fromkeys(("Signomial", "Posynomial", "Monomial"), "the expression as it is"),
    "units": "numbers in units of your choice: units are not supported",
    **dict.fromkeys(
        ("OPTIMAL", "INFEASIBLE", "UNBOUNDED", "OPTIMAL_INACCURATE", "USER_LIMIT", "SOLVER_ERROR"),
        "the status as a word: problem.status == 'optimal' (docs/statuses.md)",
    ),
    "settings": "problem.status == 'optimal', and the arguments of solve",
    **dict.fromkeys(("error", "DCPError", "DGPError"), "hc.HCError, and those below it"),
    "transforms": "the constraints and expressions as they are",
    "indicator": "the constraints in the list of the problem",
    "loads": "hc.parse(text)",
    "norm2": "hc.norm(a)",
    "sum_entries": "hc.sum(a)",
    "max_entries": "hc.max(a)",
    "mul_elemwise": "a * b, which is entry by entry",
    "mul": "a * b, which is entry by entry, or a @ b",
    "lambda_sum_largest": "a variable with a matrix inequality; hc.lambda_max(A) is the largest one",
    "xexp": "a * hc.exp(a)",
    "partial_trace": "hc.trace of blocks of the matrix",
    **dict.fromkeys(("conv", "convolve"), "T @ a with T = scipy.linalg.convolution_matrix(c, n)"),
    "perspective": "t * f(x / t) as it is: perspectives are recognised",
    "FiniteSet": "nothing: " + _CONTINUOUS,
    "fmin": "hc.Problem(hc.Minimize(cost), constraints).solve()",
    "Opti": "hc.Problem(hc.Minimize(cost), constraints)",
    "Optimizer": "problem.solve(method=…); see `hcmodel methods`",
    "stack": "hc.vstack([a, b]), whose rows are the vectors, or hc.concatenate([a, b])",
    "column_stack": "hc.vstack([a, b]).T",
    **dict.fromkeys(("concat", "cat", "r_", "append"), "hc.concatenate([a, b])"),
    "block": "hc.bmat([[A, B], [C, D]])",
    "clip": "hc.minimum(hc.maximum(a, lower), upper)",
    "where": "hc.maximum or hc.minimum of the two pieces, or a sum with constant masks",
    **{
        name: f"numpy.{name}(…): constants are arrays"
        for name in ("array", "eye", "zeros", "ones", "arange", "linspace")
    },
    **dict.fromkeys(
        ("CLARABEL", "ECOS", "SCS", "OSQP", "MOSEK", "GUROBI", "CVXOPT", "IPOPT", "HIGHS"),
        "method=… of solve, or nothing: `auto` chooses (see `hcmodel methods`)",
    ),
}


def answer(table: Mapping[str, str], name: str, what: str) -> str | None:
    """What to write instead of a name, None where it is no other tool's name."""
    return f"{what} {table[name]}" if name in table else None


class UnknownArgumentError(ModelError, TypeError):
    """An argument that a function does not have; a `TypeError` too, as Python raises."""


def refuse_arguments(
    table: Mapping[str, str], given: Mapping[str, Any], function: str, called: Callable[..., Any]
) -> None:
    """Raise for arguments that `called` does not have; known habits say what to write."""
    for name, value in given.items():
        known = answer(table, name, f"{name}={value!r} of {function}")
        if known is not None:
            raise UnknownArgumentError(known)
        parameters = inspect.signature(called).parameters.values()
        names = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
        names = [each for each in names if each != "self"]
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean `{close[0]}`?" if close else f"its arguments are {', '.join(names)}"
        raise UnknownArgumentError(f"{function} has no argument {name!r}; {hint}")


def missing_attribute(table: Mapping[str, str], name: str, owner: str) -> AttributeError:
    """The error for an attribute that is not there."""
    text = f"'{owner}' object has no attribute {name!r}"
    known = answer(table, name, f"`{name}`")
    return AttributeError(text if known is None else f"{text}: {known}")
