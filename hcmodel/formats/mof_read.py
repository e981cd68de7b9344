"""Reading MathOptFormat (`.mof.json`, versions 0.6 to 1.x) as a model.

Variables `x[1]`, `x[2]`, … that fill a grid become one array, and so do rows; others stay single.
Constraints on one variable are its bounds. Functions and sets that hcmodel cannot express are named in
the error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hcmodel import atoms
from hcmodel.errors import ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.model import Maximize, Minimize, Model
from hcmodel.expressions.node import as_expression
from hcmodel.records import dataclass

ENTRY = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")
SENSES = {"LessThan": "<=", "GreaterThan": ">=", "EqualTo": "=="}
INTEGERS = ("Integer", "ZeroOne", "Semicontinuous", "Semiinteger", "SOS1", "SOS2", "Indicator")
# Operators with one argument, by the atom that they are.
FUNCTIONS: dict[str, Callable[[Any], Expression]] = {
    "abs": atoms.abs,
    "sqrt": atoms.sqrt,
    "abs2": atoms.square,
    "inv": lambda a: 1 / a,
    "log": atoms.log,
    "log1p": atoms.log1p,
    "log10": lambda a: atoms.log(a) / np.log(10.0),
    "log2": lambda a: atoms.log(a) / np.log(2.0),
    "exp": atoms.exp,
    "exp2": lambda a: atoms.exp(np.log(2.0) * a),
    "expm1": lambda a: atoms.exp(a) - 1,
    "sin": atoms.sin,
    "cos": atoms.cos,
    "tanh": atoms.tanh,
}


def read_mof(path: Path, text: str) -> Model:
    """The model of a file."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ModelError(f"{path}: this is not a JSON file: {error}") from None
    if not isinstance(data, dict) or "variables" not in data or "objective" not in data:
        raise ModelError(
            f"{path}: this is not MathOptFormat: 'variables' or 'objective' is missing"
        )
    version = data.get("version", {})
    if isinstance(version, dict) and version.get("major", 1) > 1:
        raise ModelError(f"{path}: MathOptFormat of version {version['major']} is not known")
    try:
        return _Reader(str(path), data).model()
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelError(
            f"{path}: a part of the file is not as MathOptFormat has it ({type(error).__name__}: {error})"
        ) from None


@dataclass(frozen=True)
class _Grid:
    """Rows of the file that are the entries of one constraint, in C order."""

    name: str
    shape: tuple[int, ...]
    rows: tuple[dict[str, Any], ...]

    @staticmethod
    def of(name: str, members: list[tuple[tuple[int, ...], dict[str, Any]]]) -> _Grid | None:
        """The grid of rows that fill one and have one kind of set; None for others."""
        kinds = {constraint["set"]["type"] for _, constraint in members}
        if len(kinds) != 1 or not kinds <= SENSES.keys():
            return None
        if len({len(index) for index, _ in members}) != 1:
            return None
        by_index = dict(members)
        shape = tuple(int(size) for size in np.max(list(by_index), axis=0))
        wanted = [tuple(i + 1 for i in entry) for entry in np.ndindex(*shape)]
        if len(members) != len(wanted) or set(by_index) != set(wanted):
            return None
        return _Grid(name, shape, tuple(by_index[index] for index in wanted))


class _Reader:
    def __init__(self, path: str, data: dict[str, Any]) -> None:
        self.path, self.data = path, data
        self.lower: dict[str, float] = {}
        self.upper: dict[str, float] = {}
        self.rest: list[dict[str, Any]] = []
        self.eigenvalues: dict[str, list[float]] = {}
        names = [str(each["name"]) for each in data["variables"]]
        self.starts = {str(v["name"]): v.get("primal_start") for v in data["variables"]}
        for constraint in data.get("constraints", []):
            if not self._is_bound(constraint) and not self._is_matrix_set(constraint):
                self.rest.append(constraint)
        self.scalars = self._variables(names)

    def _fail(self, what: str) -> ModelError:
        return ModelError(f"{self.path}: hcmodel cannot read {what}")

    def _is_bound(self, constraint: dict[str, Any]) -> bool:
        """Take up a bound on one variable; False for other constraints."""
        function, own = constraint["function"], constraint["set"]
        if own["type"] in INTEGERS:
            raise self._fail(f"the set {own['type']}: it has continuous variables only")
        if function["type"] not in ("Variable", "SingleVariable"):
            return False
        name = str(function.get("name", function.get("variable")))
        low, high = _limits(own)
        if low is None and high is None:
            raise self._fail(f"the set {own['type']} of variable {name}")
        if low is not None:
            self.lower[name] = max(low, self.lower.get(name, -np.inf))
        if high is not None:
            self.upper[name] = min(high, self.upper.get(name, np.inf))
        return True

    def _is_matrix_set(self, constraint: dict[str, Any]) -> bool:
        """Take up ±X − limit·I semidefinite for a whole triangle of variables X[i, j]."""
        function, own = constraint["function"], constraint["set"]
        if own["type"] != "PositiveSemidefiniteConeTriangle":
            return False
        order = int(own["side_dimension"])
        upper = [(i, j) for j in range(order) for i in range(j + 1)]
        rows = _single_terms(function, len(upper))
        if rows is None:
            return False
        found = ENTRY.fullmatch(rows[0][0])
        base, sign = found.group(1) if found else "", rows[0][1]
        shifts = {constant for (i, j), (_, _, constant) in zip(upper, rows, strict=True) if i == j}
        fits = len(shifts) == 1 and abs(sign) == 1.0
        for (i, j), (name, number, constant) in zip(upper, rows, strict=True):
            listed = (f"{base}[{i + 1}, {j + 1}]", f"{base}[{i + 1},{j + 1}]")
            fits &= name in listed and number == sign and (i == j or constant == 0.0)
        # the lower end comes first; what is no set of a variable stays a matrix inequality
        limit = -sign * next(iter(shifts))
        fits &= limit >= 0 if sign > 0 else base in self.eigenvalues
        fits &= base not in self.starts
        fits &= sum(each.startswith(f"{base}[") for each in self.starts) == len(upper)
        if not fits:
            return False
        limits = self.eigenvalues.setdefault(base, [-np.inf, np.inf])
        limits[0 if sign > 0 else 1] = limit
        return True

    def _variables(self, names: Sequence[str]) -> dict[str, Expression]:
        """The entries of variables by the names in the file."""
        groups: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        for name in names:
            found = ENTRY.fullmatch(name)
            if found:
                index = tuple(int(word) for word in found.group(2).split(","))
                groups.setdefault(found.group(1), []).append((name, index))
        entries: dict[str, Expression] = {}
        for base, members in groups.items():
            if base not in names:
                entries.update(self._array(base, members))
        for name in names:
            if name not in entries:
                entries[name] = self._variable(name, (), [name])
        return entries

    def _array(
        self, base: str, members: list[tuple[str, tuple[int, ...]]]
    ) -> dict[str, Expression]:
        """An array variable where the entries fill a grid, or the upper triangle of a square."""
        indices = [index for _, index in members]
        if len({len(index) for index in indices}) != 1:
            return {}
        shape = tuple(int(size) for size in np.max(indices, axis=0))
        wanted = {tuple(i + 1 for i in entry) for entry in np.ndindex(*shape)}
        names = {index: name for name, index in members}
        if set(indices) == wanted:
            ordered = [names[tuple(i + 1 for i in entry)] for entry in np.ndindex(*shape)]
            variable = self._variable(base, shape, ordered)
            return {name: variable[tuple(i - 1 for i in index)] for name, index in members}
        square = len(shape) == 2 and shape[0] == shape[1]
        if square and set(indices) == {index for index in wanted if index[0] <= index[1]}:
            ordered = [names[tuple(sorted((i + 1, j + 1)))] for i, j in np.ndindex(*shape)]
            low, high = self.eigenvalues.get(base, (-np.inf, np.inf))
            kind: dict[str, Any] = {"symmetric": True}
            if low >= 0:
                kind = {"PSD": (low, high) if np.isfinite(high) else (low or True)}
            elif base in self.eigenvalues:
                raise self._fail(
                    f"eigenvalues of {base} between {low:g} and {high:g}: {low:g} is below 0"
                )
            variable = self._variable(base, shape, ordered, **kind)
            return {name: variable[tuple(i - 1 for i in index)] for name, index in members}
        return {}

    def _variable(
        self, name: str, shape: tuple[int, ...], entries: Sequence[str], **kind: Any
    ) -> Variable:
        lower = np.reshape([self.lower.get(each, -np.inf) for each in entries], shape)
        upper = np.reshape([self.upper.get(each, np.inf) for each in entries], shape)
        bounded = np.isfinite(lower).any() or np.isfinite(upper).any()
        starts = [self.starts.get(each) for each in entries]
        known = [float(each) for each in starts if each is not None]
        start = np.reshape(known, shape) if len(known) == len(starts) else None
        bounds = (lower, upper) if bounded else None
        return Variable(shape, name=name, bounds=bounds, start=start, **kind)

    def model(self) -> Model:
        objective = self.data["objective"]
        sense = objective.get("sense", "feasibility")
        if sense not in ("min", "max", "feasibility"):
            raise self._fail(f"the sense '{sense}' of the objective")
        if sense == "feasibility":
            total: Expression = 0.0 * next(iter(self.scalars.values()))
        else:
            total = self._scalar(objective["function"])
        rows = [each for constraint in self._grouped() for each in self._constraint(constraint)]
        kind = Maximize if sense == "max" else Minimize
        return Model.checked(kind(total), rows)

    def _grouped(self) -> list[Any]:
        """The constraints; rows `c[1]`, `c[2]`, … with one kind of set that fill a grid are one."""
        groups: dict[str, list[tuple[tuple[int, ...], dict[str, Any]]]] = {}
        for constraint in self.rest:
            found = ENTRY.fullmatch(str(constraint.get("name")))
            if found and not constraint["function"]["type"].startswith("Vector"):
                index = tuple(int(word) for word in found.group(2).split(","))
                groups.setdefault(found.group(1), []).append((index, constraint))
        names = {str(each.get("name")) for each in self.rest}
        whole: dict[int, _Grid | None] = {}
        for base, members in groups.items():
            grid = None if base in names else _Grid.of(base, members)
            if grid is not None:
                whole |= dict.fromkeys((id(constraint) for _, constraint in members), None)
                whole[id(members[0][1])] = grid
        listed = [whole.get(id(each), each) for each in self.rest]
        return [each for each in listed if each is not None]

    def _constraint(self, constraint: Any) -> Iterator[Constraint]:
        if isinstance(constraint, _Grid):
            sides = [self._scalar(row["function"]) for row in constraint.rows]
            limits = np.reshape([_limit(row["set"]) for row in constraint.rows], constraint.shape)
            stacked = atoms.reshape(atoms.hstack(sides), constraint.shape)
            sense = SENSES[constraint.rows[0]["set"]["type"]]
            yield Constraint(stacked, sense, as_expression(limits)).named(constraint.name)
            return
        function, own = constraint["function"], constraint["set"]
        name = constraint.get("name")
        if function["type"].startswith("Vector"):
            found = list(self._vector_rows(self._vector(function), own))
        else:
            side = self._scalar(function)
            low, high = _limits(own)
            if low is None and high is None:
                raise self._fail(f"the set {own['type']}")
            found = []
            if low is not None and low == high:
                found.append(Constraint(side, "==", as_expression(low)))
            else:
                if low is not None:
                    found.append(Constraint(side, ">=", as_expression(low)))
                if high is not None:
                    found.append(Constraint(side, "<=", as_expression(high)))
        for number, each in enumerate(found):
            suffix = "" if len(found) == 1 else f".{number + 1}"
            yield each.named(f"{name}{suffix}") if name else each

    # ---- functions

    def _name(self, name: Any) -> Expression:
        if str(name) not in self.scalars:
            raise ModelError(
                f"{self.path}: a function names the variable '{name}', which is not listed"
            )
        return self.scalars[str(name)]

    def _scalar(self, function: dict[str, Any]) -> Expression:
        kind = function["type"]
        if kind in ("Variable", "SingleVariable"):
            return self._name(function.get("name", function.get("variable")))
        if kind == "ScalarAffineFunction":
            return self._affine(function["terms"], function["constant"])
        if kind == "ScalarQuadraticFunction":
            total = self._affine(function["affine_terms"], function["constant"])
            return self._with_squares(total, function["quadratic_terms"])
        if kind == "ScalarNonlinearFunction":
            return self._node(function["root"], self._nodes(function["node_list"]))
        raise self._fail(f"functions of type {kind}")

    def _affine(self, terms: Any, constant: Any) -> Expression:
        total: Expression | None = None
        for term in terms:
            part = self._name(term.get("variable", term.get("variable_name")))
            number = float(term["coefficient"])
            part = part if number == 1.0 else number * part
            total = part if total is None else total + part
        if total is None:
            return as_expression(float(constant))
        return total + float(constant) if constant else total

    def _with_squares(self, total: Expression, terms: Any) -> Expression:
        """Q is symmetric and stands with ½: a term off the diagonal counts once, one on it half."""
        for term in terms:
            one, two = self._name(term["variable_1"]), self._name(term["variable_2"])
            number = float(term["coefficient"])
            if term["variable_1"] == term["variable_2"]:
                total = total + (number / 2) * one**2
            else:
                total = total + number * one * two
        return total

    def _vector(self, function: dict[str, Any]) -> list[Expression]:
        kind = function["type"]
        if kind == "VectorOfVariables":
            return [self._name(name) for name in function["variables"]]
        if kind == "VectorAffineFunction":
            rows: list[list[Any]] = [[] for _ in function["constants"]]
            for term in function["terms"]:
                rows[int(term["output_index"]) - 1].append(term["scalar_term"])
            pairs = zip(rows, function["constants"], strict=True)
            return [self._affine(row, constant) for row, constant in pairs]
        if kind == "VectorNonlinearFunction":
            nodes = self._nodes(function["node_list"])
            return [self._node(row, nodes) for row in function["rows"]]
        raise self._fail(f"functions of type {kind}")

    def _nodes(self, listed: Any) -> list[Expression]:
        nodes: list[Expression] = []
        for node in listed:
            nodes.append(self._node(node, nodes))
        return nodes

    def _node(self, node: Any, nodes: Sequence[Expression]) -> Expression:
        if isinstance(node, str):
            return self._name(node)
        if isinstance(node, (int, float)):
            return as_expression(float(node))
        kind = node["type"]
        if kind == "real":
            return as_expression(float(node["value"]))
        if kind == "variable":
            return self._name(node["name"])
        if kind == "node":
            if not 1 <= node["index"] <= len(nodes):
                raise ModelError(f"{self.path}: node {node['index']} is used before it is listed")
            return nodes[int(node["index"]) - 1]
        return self._operation(kind, [self._node(each, nodes) for each in node["args"]])

    def _operation(self, kind: str, parts: list[Any]) -> Expression:
        if kind in FUNCTIONS and len(parts) == 1:
            return FUNCTIONS[kind](parts[0])
        total: Expression = parts[0]
        if kind == "+":
            return total if len(parts) == 1 else _summed(parts)
        if kind == "-":
            return -total if len(parts) == 1 else total - _summed(parts[1:])
        if kind == "*":
            for each in parts[1:]:
                total = total * each
            return total
        if kind in ("/", "^") and len(parts) == 2:
            quotient: Expression = total / parts[1] if kind == "/" else total ** parts[1]
            return quotient
        if kind in ("min", "max"):
            return (
                total
                if len(parts) == 1
                else (atoms.minimum(*parts) if kind == "min" else atoms.maximum(*parts))
            )
        raise self._fail(f"the operator '{kind}'")

    # ---- vector sets

    def _vector_rows(self, rows: list[Expression], own: dict[str, Any]) -> Iterator[Constraint]:
        kind, zero = own["type"], as_expression(0.0)
        if kind in ("Nonnegatives", "Nonpositives", "Zeros"):
            sense = {"Nonnegatives": ">=", "Nonpositives": "<=", "Zeros": "=="}[kind]
            yield Constraint(atoms.hstack(rows), sense, zero)
        elif kind == "SecondOrderCone":
            yield Constraint(atoms.norm(atoms.hstack(rows[1:])), "<=", rows[0])
        elif kind == "RotatedSecondOrderCone":
            rest = [np.sqrt(2.0) * each for each in rows[2:]]
            stacked = atoms.hstack([*rest, rows[0] - rows[1]])
            yield Constraint(atoms.norm(stacked), "<=", rows[0] + rows[1])
        elif kind == "ExponentialCone":
            x, y, z = rows
            yield Constraint(atoms.rel_entr(y, z), "<=", -x)
        elif kind == "PowerCone":
            share = float(own["exponent"])
            product = atoms.geo_mean(atoms.hstack(rows[:2]), [share, 1 - share])
            yield Constraint(atoms.abs(rows[2]), "<=", product)
            yield Constraint(atoms.hstack(rows[:2]), ">=", zero)
        elif kind == "PositiveSemidefiniteConeTriangle":
            order = int(own["side_dimension"])
            numbers = np.zeros((order, order), dtype=int)
            upper = [(i, j) for j in range(order) for i in range(j + 1)]
            for number, (i, j) in enumerate(upper):
                numbers[i, j] = numbers[j, i] = number
            matrix = atoms.reshape(atoms.hstack(rows)[numbers.reshape(-1)], (order, order))
            yield Constraint((matrix + matrix.T) / 2, ">>", zero)
        else:
            raise self._fail(f"the set {kind}")


def _single_terms(function: dict[str, Any], count: int) -> list[tuple[str, float, float]] | None:
    """Variable, coefficient and constant of each row, where every row has one variable."""
    if function["type"] == "VectorOfVariables":
        found = [(str(name), 1.0, 0.0) for name in function["variables"]]
        return found if len(found) == count else None
    if function["type"] != "VectorAffineFunction":
        return None
    rows: list[list[tuple[str, float, float]]] = [[] for _ in range(count)]
    for term in function["terms"]:
        place, own = int(term["output_index"]) - 1, term["scalar_term"]
        constant = float(function["constants"][place])
        rows[place].append((str(own["variable"]), float(own["coefficient"]), constant))
    return [row[0] for row in rows] if all(len(row) == 1 for row in rows) else None


def _summed(parts: Sequence[Expression]) -> Expression:
    total = parts[0]
    for each in parts[1:]:
        total = total + each
    return total


def _limit(own: dict[str, Any]) -> float:
    """The only end of a set of numbers."""
    low, high = _limits(own)
    return float(high if low is None else low)  # type: ignore[arg-type]


def _limits(own: dict[str, Any]) -> tuple[float | None, float | None]:
    """The lower and the upper end of a set of numbers; None for both of other sets."""
    kind = own["type"]
    if kind == "LessThan":
        return None, float(own["upper"])
    if kind == "GreaterThan":
        return float(own["lower"]), None
    if kind == "EqualTo":
        return float(own["value"]), float(own["value"])
    if kind == "Interval":
        return float(own["lower"]), float(own["upper"])
    return None, None
