"""Cone forms of all atoms: the best bound at fixed arguments is the value of the atom.

An atom that bends in some channel either has a cone form there or is listed with the reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.cones import ConeForm, Use
from hcmodel.atoms.rules import Argument, Curvature, Domain, MatrixKind, Sign, sign_of
from hcmodel.expressions.leaves import as_expression
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.definiteness import of_value
from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.cone_rows import ConeRows
from hcmodel.solvers.qp import ConeStatus, solve_cone
from hcmodel.testing.samples import SAMPLES, Sample
from hcmodel.testing.situations import prepared
from tests.hcmodel.reductions.cone_values import program_value, solved

BENT = (Curvature.CONVEX, Curvature.CONCAVE)
# Between cones and values: Clarabel stops at residuals of 1e-8.
ACCURACY = 2e-6
# Atoms that bend in a channel without a form there: (atom, arguments and result through logarithms).
PLAIN, LOG = (False, False), (True, True)
NO_FORM = {
    ("tanh", PLAIN): "tanh on a half-line is no set of the cones of Clarabel",
    ("sigmoid", PLAIN): "the sigmoid on a half-line is no set of the cones of Clarabel",
    ("tanh", LOG): "log tanh(exp(u)) is no set of the cones of Clarabel",
    ("exp", LOG): "log exp(exp(u)) = exp(u) is found by the plain form of the argument",
    ("log", LOG): "log log exp(u) = log(u) is found as the logarithm of a concave bound",
    ("log1p", LOG): "log log(1 + exp(u)) is no set of the cones of Clarabel",
    ("softplus", LOG): "log log(1 + exp(exp(u))) is no set of the cones of Clarabel",
    ("huber", LOG): "the logarithm of a function in two pieces",
}
# Atoms that bend in neither channel for the arguments that are looked at, that are not proven with these
# held by rows, or that have no form.
NOT_SOLVED = {
    *("sub", "neg", "mul", "abs", "prod", "outer", "kron"),
    *("sin", "cos", "tanh", "sigmoid", "softmax", "function"),
    *("index", "reshape", "transpose", "broadcast_to", "hstack", "vstack", "concatenate", "diag"),
    *("inv", "solve", "det", "lyap", "dlyap"),
}
CHANNELS = {"curvature": PLAIN, "log_curvature": LOG}
FORMS = {
    "curvature": "plain",
    "log_curvature": "log",
    "log_to_plain": "log_to_plain",
    "plain_to_log": "plain_to_log",
}
LOGS = {
    "plain": (False, False),
    "log": (True, True),
    "log_to_plain": (True, False),
    "plain_to_log": (False, True),
}


def cases(sample: Sample, logs: bool) -> Iterator[list[Argument]]:
    """The facts of a sample's arguments for each choice of constant ones, the values known."""
    domains = ATOMS[sample.name].domains(
        [Argument(a.shape) for a in sample.arguments], prepared(ATOMS[sample.name], sample)
    )
    for constant in itertools.product((False, True), repeat=len(sample.arguments)):
        if all(constant) or not all(constant[i] for i in sample.constant):
            continue
        facts = []
        for value, fixed, domain in zip(sample.arguments, constant, domains, strict=True):
            matrix = of_value(value) if value.ndim == 2 and len(set(value.shape)) == 1 else 0
            definite = domain is Domain.POSITIVE_DEFINITE
            if logs and domain is not Domain.CONTRACTING:
                value = np.abs(value) + 0.2
            facts.append(
                Argument(
                    value.shape,
                    sign_of(value) if fixed or logs or not matrix else Sign.UNKNOWN,
                    fixed,
                    value,
                    MatrixKind.DEFINITE if definite else MatrixKind(matrix),
                )
            )
        yield facts


def as_asked(facts: Sequence[Argument]) -> list[Argument]:
    """The facts without the values of what varies."""
    return [f if f.constant else Argument(f.shape, f.sign, matrix=f.matrix) for f in facts]


def best_bound(
    form: ConeForm, facts: Sequence[Argument], params: dict[str, Any], logs: bool, sign: float
) -> np.ndarray | None:
    """The bound of smallest or largest sum at fixed arguments."""
    rows = ConeRows(0)
    bounds = []
    for fact in facts:
        seen = Affine.constant(np.log(fact.value) if logs else fact.value)
        if not fact.constant:
            unknown = rows.unknown(fact.shape)
            rows.zero(unknown - seen)
            seen = unknown
        bounds.append(seen)
    bound = form(Use(rows, tuple(bounds), as_asked(facts), params))
    if bound is None:
        return None
    solution = solve_cone(rows.program(rows.summed(bound, None).scaled(sign)))
    assert solution.usable
    return (bound.offset + bound.rows(rows.size) @ solution.primal).reshape(bound.shape)


@pytest.mark.parametrize("name", [name for name in SAMPLES if ATOMS[name].cone_form])
def test_the_best_bound_is_the_value(name: str) -> None:
    atom: Atom = ATOMS[name]
    compared = 0
    for sample in SAMPLES[name]:
        params = prepared(atom, sample)
        for channel, kind in FORMS.items():
            form = getattr(atom.cone_form, kind)
            if form is None:
                continue
            log_in, log_out = LOGS[kind]
            for facts in cases(sample, log_in):
                asked = as_asked(facts)
                curvature = getattr(atom, channel)(asked, params)
                value = np.asarray(atom.function(np, *(f.value for f in facts), **params))
                if curvature is Curvature.UNKNOWN or (log_out and not np.all(value > 0)):
                    continue
                sign = -1.0 if curvature is Curvature.CONCAVE else 1.0
                found = best_bound(form, facts, params, log_in, sign)
                if found is not None:
                    expected = np.log(value) if log_out else value
                    np.testing.assert_allclose(
                        np.broadcast_to(found, expected.shape),
                        expected,
                        rtol=ACCURACY,
                        atol=ACCURACY,
                    )
                    compared += 1
    assert compared


def pinned(sample: Sample, logs: bool, facts: Sequence[Argument]) -> hc.Problem | None:
    """Minimise or maximise the atom with its arguments held at the sample by rows."""
    atom = ATOMS[sample.name]
    operands: list[Any] = []
    rows, hidden = [], []
    for place, fact in enumerate(facts):
        if fact.constant:
            operands.append(fact.value)
            continue
        keywords: dict[str, Any] = {}
        if logs:
            keywords["pos"] = True
        elif fact.matrix is MatrixKind.DEFINITE:
            keywords["PSD"] = 1e-3
        elif fact.sign in (Sign.POSITIVE, Sign.NONNEGATIVE):
            keywords["bounds"] = (1e-3, None)
        variable = hc.Variable(fact.shape, name=f"a{place}", **keywords)
        operands.append(variable)
        rows.append(variable == fact.value)
        hidden.append(hc.log(variable) if logs else variable)
    params = prepared(atom, sample)
    channel = "log_curvature" if logs else "curvature"
    curvature = getattr(atom, channel)(as_asked(facts), params)
    if curvature not in BENT:
        return None
    node = atom.apply([as_expression(each) for each in operands], params)
    total = hc.prod(node) if logs else hc.sum(node)
    objective = hc.Minimize if curvature is Curvature.CONVEX else hc.Maximize
    return hc.Problem(objective(total), rows, hidden=hidden)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_bends_has_a_cone_program_or_a_reason(name: str) -> None:
    atom, programs = ATOMS[name], 0
    for sample in SAMPLES[name][1:2] or SAMPLES[name]:
        for channel, kind in CHANNELS.items():
            for facts in cases(sample, kind[0]):
                value = np.asarray(
                    atom.function(np, *(f.value for f in facts), **prepared(atom, sample))
                )
                problem = pinned(sample, kind[0], facts)
                if problem is None or (kind[1] and not np.all(value > 0)):
                    continue
                try:
                    data = problem.get_problem_data()
                except hc.NotHiddenConvexError:
                    continue
                except hc.ModelError:
                    if (name, kind) in NO_FORM:
                        continue
                    raise
                programs += 1
                solution = solve_cone(data.program)
                assert solution.status is ConeStatus.SOLVED, (sample, channel)
                point = data.point(solution.primal)
                for variable in problem.variables:
                    variable.value = point[variable.name]
                expected = np.prod(value) if kind[1] else np.sum(value)
                assert problem.objective.expression.value == pytest.approx(
                    expected, rel=1e-5, abs=1e-5
                )
                # the point is held by rows: only the program's own value says that the bound is right
                assert program_value(data, solution) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert (programs == 0) == (name in NOT_SOLVED)


# ---- forms that several nodes make

D = np.diag([1.0, 2.0, 4.0])
Q = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
V = np.array([0.5, -1.0, 2.0])


def held(value: np.ndarray, **keywords: Any) -> tuple[hc.Variable, hc.Constraint]:
    variable = hc.Variable(value.shape, name="v", **keywords)
    return variable, variable == value


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda x, A: hc.trace(hc.inv(A)), id="the trace of an inverse"),
        pytest.param(
            lambda x, A: hc.trace(Q @ hc.inv(A)) + hc.sum(x), id="a weighted one in a sum"
        ),
        pytest.param(lambda x, A: x @ hc.inv(A) @ x, id="a fraction"),
        pytest.param(lambda x, A: V @ hc.inv(A) @ V, id="a fraction in logarithms"),
        pytest.param(lambda x, A: hc.matrix_frac(V, A), id="the atom in logarithms"),
        pytest.param(lambda x, A: hc.norm(x) * 2 + (x @ Q @ x) / (x[2] + 1), id="a quotient"),
        pytest.param(lambda x, A: hc.sum(x**2 * (3 / (x[2] + 1))), id="a factor that divides"),
        pytest.param(lambda x, A: hc.sum(x**4) / (5 - x[2]) + hc.max(x * x), id="fourth powers"),
        pytest.param(lambda x, A: hc.exp(hc.sum(x * x)), id="an exponential of squares"),
    ],
)
def test_forms_of_several_nodes_have_their_value(make) -> None:
    x, at = held(np.array([1.0, -0.5, 2.0]), bounds=(-0.9, 4))
    A = hc.Variable((3, 3), name="A", PSD=1e-3)
    value, _ = solved(hc.Minimize(make(x, A)), [at, A == D])
    x.value, A.value = np.array([1.0, -0.5, 2.0]), D
    assert value == pytest.approx(float(make(x, A).value), rel=1e-6)


def test_squares_in_the_objective_are_a_quadratic_term() -> None:
    x = hc.Variable(3, name="x")
    cost = hc.sum_squares(Q @ x - V) + 0.5 * hc.quad_form(x, Q) + hc.sum(x) + 0.5 * (x @ x)
    _, program = solved(hc.Minimize(cost))
    assert program.quadratic.nnz
    assert {cone.kind.name for cone in program.cones} <= {"ZERO", "NONNEGATIVE"}
    hessian = 2 * Q.T @ Q + Q + np.eye(3)
    best = np.linalg.solve(hessian, 2 * Q.T @ V - np.ones(3))
    np.testing.assert_allclose(x.value, best, rtol=1e-6)


def test_a_bound_that_would_bend_the_wrong_way_is_not_taken() -> None:
    # log1p has a form for logarithms of its argument that bounds it from above only
    v = hc.Variable(name="v", bounds=(1e-3, 9.0))
    value, _ = solved(hc.Maximize(hc.log1p(v)), [v <= 1.5])
    assert value == pytest.approx(np.log(2.5), rel=1e-6)


def test_sums_of_euclidean_norms_end_optimal() -> None:
    # the geometric median of a triangle is Fermat's point, with a closed form of its value
    triangle = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
    x = hc.Variable(2, name="x")
    problem = hc.Problem(hc.Minimize(sum(hc.norm(x - corner) for corner in triangle)))
    problem.solve()
    assert problem.status == "optimal"
    sides = np.linalg.norm(triangle - np.roll(triangle, 1, axis=0), axis=1)
    area = 6.0
    fermat = np.sqrt((sides @ sides + 4 * np.sqrt(3) * area) / 2)
    assert problem.value == pytest.approx(fermat, rel=1e-7)


@pytest.mark.parametrize(
    ("make", "best"),
    [
        # w in [-4, -1], n in [-3, -2]
        pytest.param(
            lambda w, n: hc.Minimize(hc.sqrt(w**2 + hc.square(n))), np.sqrt(5), id="a root"
        ),
        pytest.param(lambda w, n: hc.Minimize((w**2 + n**2) ** 0.75), 5**0.75, id="another root"),
        pytest.param(lambda w, n: hc.Maximize(w * n), 12.0, id="a product of negative numbers"),
        pytest.param(lambda w, n: hc.Minimize(1 / (w * n)), 1 / 12, id="its inverse"),
        pytest.param(lambda w, n: hc.Minimize(hc.inv_pos(w + 9)), 1 / 8, id="an inverse"),
        pytest.param(
            lambda w, n: hc.Maximize(hc.log(-w) + hc.log(-n)), np.log(12), id="logarithms"
        ),
        pytest.param(lambda w, n: hc.Minimize(-w - (-2) + hc.exp(-n)), 3 + np.e**2, id="signs"),
    ],
)
def test_negative_values_have_logarithms_of_their_sizes(make, best: float) -> None:
    w = hc.Variable(name="w", bounds=(-4, -1))
    n = hc.Variable(name="n", bounds=(-3, -2))
    assert solved(make(w, n))[0] == pytest.approx(best, rel=1e-6)


def test_a_way_that_fails_leaves_no_rows() -> None:
    # trace(inv(X)) is a sum of terms that have no bounds of their own
    X = hc.Variable((2, 2), name="X", PSD=True, bounds=(-1, 1))
    value, program = solved(hc.Minimize(hc.trace(X)), [hc.trace(hc.inv(X)) <= 4])
    assert value == pytest.approx(1.0, rel=1e-6)
    assert {cone.kind.name for cone in program.cones} <= {
        "NONNEGATIVE",
        "PSD_TRIANGLE",
        "EXPONENTIAL",
    }
