"""Every public function and method, with arguments that make no sense: only an `HCError` may leave.

The calls are made from `hcmodel.__all__` and the signatures: each argument in turn is replaced by each of
`NASTY`, beside good values for the others. A public name whose arguments have no good value in `GOOD`
fails here.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers.methods import METHODS
from tests.extent import ALL

NASTY: dict[str, Any] = {
    "None": None,
    "text": "a",
    "empty text": "",
    "NUL": "\x00",
    "object": object(),
    "class": int,
    "negative": -1,
    "huge": 10**400,
    "fraction": 0.5,
    "NaN": np.nan,
    "infinite": np.inf,
    "complex": 1j,
    "truth": True,
    "nothing": [],
    "ragged": [[1, 2], [3]],
    "texts": ["a", "b"],
    "dictionary": {"a": object()},
    "numbers as keys": {3: [1]},
    "bytes": b"a",
    "function": lambda: 1 / 0,
    "array of objects": np.array([object(), None]),
    "empty array": np.zeros((0, 2)),
    "4 axes": np.ones((2, 1, 2, 2)),
    "variable": hc.Variable((3, 2), name="other"),
    "constraint": hc.Variable(name="far") <= 1,
}
# What is not called, and why.
SKIPPED = {
    "Status": "an enumeration",
    "Termination": "an enumeration",
    "__version__": "a text",
    "Record": "a record that methods make",
    "Certificate": "a record that solves make",
    "Solution": "a record that solves make",
    "Expression": "the base class",
    "Problem.of": "for front ends, with a checked model",
    "Constraint.like": "for reductions, with checked parts",
    "Map.bounds": "for solves, with a size that is known",
    "Map.check": "for solves, with arrays of the right size",
    "Map.inverted": "for solves, with arrays of the right size",
    "Constants.need": "for theorems, with the names of fields",
    "Constants.reach": "for theorems, where the constants are known",
    "Constants.rho_and_geometry": "for theorems, with their name",
}


def positive() -> hc.Variable:
    return hc.Variable(2, name="x", pos=True)


def matrix() -> hc.Variable:
    return hc.Variable((2, 2), name="P", PSD=0.1)


def row() -> hc.Constraint:
    return hc.Variable(name="x", bounds=(0.5, 2)) >= 0.6


def unsolved() -> hc.Problem:
    x, cap = hc.Variable(2, name="x", bounds=(0.5, 2)), hc.Parameter(name="cap", value=2.0)
    rows = [(x[0] * x[1] <= cap).named("area")]
    return hc.Problem(hc.Minimize(x[0] + 1 / x[0] + x[1] + 2 / x[1]), rows)


def nonnegative() -> hc.Variable:
    return hc.Variable((2, 2), name="N", nonneg=True)


@functools.cache
def solved() -> hc.Problem:
    """One problem for all calls: none of them may change it."""
    problem = unsolved()
    problem.solve()
    return problem


class Silent:
    """A method that is registered and never run."""


# Good values of arguments without a default, by name, or by "function.argument".
GOOD: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("a", "b", "x", "X", "arrays"), positive),
    **dict.fromkeys(("A", "P", "Q", "trace.a"), matrix),
    **dict.fromkeys(("dot.b", "solve.b", "Constant.value"), lambda: np.ones(2)),
    "p": lambda: 2.0,
    "k": lambda: 1,
    "s": lambda: 3.0,
    "key": lambda: 0,
    **dict.fromkeys(("other", "Problem.__add__.other"), lambda: 1.0),
    "__matmul__.other": lambda: np.ones(2),
    **dict.fromkeys(("__rshift__.other", "__lshift__.other"), lambda: np.eye(2)),
    "exponent": lambda: 2.0,
    "quad_over_lin.y": lambda: hc.Variable(name="t", pos=True),
    "quad_form.P": lambda: np.eye(2),
    "eye_minus_inv.A": nonnegative,
    "pf_eigenvalue.A": nonnegative,
    "resolvent.A": nonnegative,
    "reshape.shape": lambda: (2, 1),
    "bmat.blocks": lambda: [[matrix(), matrix()]],
    "einsum.subscripts": lambda: "i->",
    "function.callable": lambda: lambda z: z[0] * z[1],
    "Map.forward": lambda: lambda z: z,
    "kron.a": matrix,
    "kron.b": matrix,
    "lhs": positive,
    "rhs": positive,
    "sense": lambda: "<=",
    "named.name": lambda: "n",
    "expression": lambda: hc.Variable(name="x", pos=True),
    "objective": lambda: hc.Minimize(hc.Variable(name="x", pos=True)),
    "load.path": lambda: "model.hc",
    "read.path": lambda: "model.hc",
    "write.path": lambda: "file.mof.json",
    "dump.path": lambda: "file.zip",
    "text": lambda: "var x in [1, 2]\nminimize x\n",
    "method": lambda: "sbl-adals",
    "tol": lambda: 1e-3,
    "constants": lambda: hc.Constants(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1),
    "parameter": lambda: "cap",
    "weights": lambda: {"x": [1.0, 1.0]},
    "__getitem__.name": lambda: "x",
    "register_method.name": lambda: "mine",
    "make": lambda: Silent,
    "solution": lambda: solved().solution,
    "solutions": lambda: [solved().solution],
    "problem": solved,
    "sweep": lambda: solved().sweep({"cap": [1.5, 2.0]}, progress=False),
}
INSTANCES: dict[str, Callable[[], Any]] = {
    "Constant": lambda: hc.Constant(np.ones(2)),
    "Constants": lambda: hc.Constants(1, 1, 1, 1, 1, 1, 1, 1),
    "Constraint": row,
    "Map": lambda: hc.Map(lambda z: z),
    "Minimize": lambda: hc.Minimize(positive()[0]),
    "Maximize": lambda: hc.Maximize(positive()[0]),
    "Parameter": lambda: hc.Parameter(2, name="p"),
    "Problem": solved,
    "Solution": lambda: solved().solution,
    "Variable": positive,
}
MATRICES = ("rshift", "lshift")  # the instances are vectors
OPERATORS = ("add", "sub", "mul", "truediv", "matmul", "pow", "le", "ge", "eq", *MATRICES)


class Target(NamedTuple):
    """Something that is called: how it is made, and its arguments."""

    name: str
    made: Callable[[], Callable[..., Any]]
    arguments: tuple[inspect.Parameter, ...]

    @property
    def is_slow(self) -> bool:
        return self.name.startswith(SLOW) and not ALL

    def good(self, argument: inspect.Parameter) -> Any:
        """A value that makes sense, for an argument without a default."""
        last = self.name.rsplit(".", 1)[-1]
        for name in (f"{self.name}.{argument.name}", f"{last}.{argument.name}", argument.name):
            if name in GOOD:
                return GOOD[name]()
        raise LookupError(f"GOOD lacks {self.name}.{argument.name}")

    def call(self, replaced: str | None = None, nasty: Any = None) -> Any:
        positional, named = [], {}
        for argument in self.arguments:
            if argument.kind is argument.VAR_KEYWORD:
                continue
            several = argument.kind is argument.VAR_POSITIONAL
            if argument.name != replaced and argument.default is not argument.empty:
                continue
            value = nasty if argument.name == replaced else self.good(argument)
            if several or argument.kind is argument.POSITIONAL_ONLY or not named:
                keyword = argument.kind is argument.KEYWORD_ONLY
                if not keyword and argument.default is argument.empty:
                    positional.append(value)
                    continue
            named[argument.name] = value
        return self.made()(*positional, **named)


def public(owner: Any, prefix: str = "") -> Iterator[Target]:
    """The calls that a class, a function or a module offers."""
    if inspect.ismodule(owner):
        for name in owner.__all__:
            yield from public(getattr(owner, name), f"{prefix}.{name}")
        return
    yield Target(prefix, lambda: owner, tuple(inspect.signature(owner).parameters.values()))
    if not inspect.isclass(owner):
        return
    for name in dir(owner):
        method = getattr(owner, name)
        if f"{prefix}.{name}" in SKIPPED or name.startswith("_") or not callable(method):
            continue
        yield of_instance(prefix, name)
    for name in ("__getitem__", *(f"__{operator}__" for operator in OPERATORS)):
        if getattr(owner, name, None) is not getattr(object, name, None):
            yield of_instance(prefix, name)


def of_instance(owner: str, name: str) -> Target:
    method = getattr(getattr(hc, owner), name)
    arguments = tuple(inspect.signature(method).parameters.values())[1:]
    return Target(f"{owner}.{name}", lambda: getattr(INSTANCES[owner](), name), arguments)


TARGETS = [
    target
    for name in hc.__all__
    if name not in SKIPPED
    and not (inspect.isclass(getattr(hc, name)) and issubclass(getattr(hc, name), Exception))
    for target in public(getattr(hc, name), name)
] + [t for t in public(hc.Solution, "Solution") if t.name != "Solution"]


# What is refused with good arguments as well.
NO_ANSWER = ("Constraint.violation", "Problem.sweep", "Problem.__add__")
NO_ANSWER += tuple(f"{o}.__{n}__" for o in ("Constant", "Parameter", "Variable") for n in MATRICES)
# What takes long because it draws: by default, values that are refused before anything is drawn.
SLOW = ("Problem.report", "Problem.landscape", "Solution.plot", "plot.")
REFUSED = ("object", "huge", "array of objects")
# Operators that Python tries on the other operand too, and then refuses itself.
PYTHONS = {f"{owner}.__{name}__" for owner in ("Minimize", "Maximize") for name in OPERATORS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    """Texts are taken as names of files: they are written here."""
    path = tmp_path_factory.mktemp("nasty")
    (path / "model.hc").write_text("var x in [1, 2]\nminimize x\n")
    return path


@pytest.fixture(autouse=True)
def inside(folder: Any, monkeypatch: Any) -> None:
    """Methods are registered for one test only."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("hcmodel.solvers.methods.METHODS", dict(METHODS))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_whatever_leaves_is_an_error_of_hcmodel(target: Target, capfd: Any) -> None:
    if target.name.startswith(("plot.", "Solution.plot", "Problem.report")):
        pytest.importorskip("matplotlib")
    leaks = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for argument in target.arguments:
            if argument.kind is argument.VAR_KEYWORD or argument.name.startswith("_"):
                continue
            for name in REFUSED if target.is_slow else NASTY:
                try:
                    target.call(argument.name, NASTY[name])
                except hc.HCError as error:
                    if "·" in str(error):  # names that hcmodel gives to its own variables
                        leaks.append(f"{argument.name} = {name}: {error}")
                except Exception as error:
                    if not (target.name in PYTHONS and isinstance(error, TypeError)):
                        leaks.append(f"{argument.name} = {name}: {type(error).__name__}: {error}")
    assert leaks == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_good_arguments_are_taken(target: Target, capfd: Any) -> None:
    """So that the other test replaces one argument among good ones."""
    if not target.is_slow and target.name not in (*PYTHONS, *NO_ANSWER):
        target.call()


def test_every_public_name_is_called_or_has_a_reason() -> None:
    called = {target.name.split(".")[0] for target in TARGETS}
    errors = {name for name in hc.__all__ if name.endswith(("Error", "Warning"))}
    assert called | set(SKIPPED) | errors >= set(hc.__all__)
    assert not called & set(SKIPPED) - {"Solution"}
