"""A problem as text of the `.hc` language, which loads back to an equal problem.

Small data stand in the text as defaults; large arrays are left out of it and given apart by
`hc_data`, so that `parse(to_hc(p), hc_data(p))` is p again. A loaded problem keeps its own words;
any other is written from its graph, with `let`s for what is used twice or is long.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hcmodel.atoms.indexing import FrozenArray, IndexKey, Slice
from hcmodel.errors import ModelError
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Constraint, Expression, Parameter, Variable
from hcmodel.expressions.model import Maximize, Model
from hcmodel.expressions.output_files import write_text
from hcmodel.expressions.printing import ATOMIC, INFIX, NEGATION, POSTFIX
from hcmodel.expressions.sparse_data import Numbers, dense, equal
from hcmodel.frontend.names import CONSTANTS, function_names
from hcmodel.frontend.source import Source
from hcmodel.grammar.keywords import KEYWORDS

INLINE_ENTRIES = 64  # larger arrays are data, not text
LONG_TEXT = 300  # characters of a sub-expression that becomes a `let`
DEEP_TEXT = 12  # brackets inside brackets
NAME = re.compile(r"[^\W\d][\w\u0300-\u036f]*")
PART = re.compile(r"[^\W\d]\w*(\.\w+|\[\w+(, ?\w+)*\])+")
RESERVED = {*" ".join(KEYWORDS.values()).split(), "for", "in", "if", "and", "or", "not"}

Written = tuple[str, int]  # text and binding strength


def to_hc(model: Model) -> str:
    """The text; a problem with `hc.function` in it has none."""
    return _written(model)[0]


def hc_data(model: Model) -> dict[str, Numbers]:
    """The arrays, dense or sparse, that are too large for the text, by their parameters' names there."""
    return _written(model)[1]


def write_hc(model: Model, path: Path) -> None:
    """Write the text to a file; arrays too large for it go to a JSON file of the same name."""
    text, data = _written(model)
    write_text(path, text)
    if data:
        lists = {name: np.asarray(dense(value)).tolist() for name, value in data.items()}
        write_text(path.with_suffix(".json"), json.dumps(lists) + "\n")


def _written(model: Model) -> tuple[str, dict[str, Numbers]]:
    source = model.source
    if isinstance(source, Source) and source.is_current():
        return _from_source(source)
    writer = _Writer(model)
    return writer.text(), writer.data


def _from_source(source: Source) -> tuple[str, dict[str, Numbers]]:
    data: dict[str, Numbers] = {}
    defaults: dict[str, str | None] = {}
    for name in source.parameters:
        value = source.value(name)
        if value is None:
            raise ModelError(f"parameter '{name}' has no value; a model file needs one")
        if source.is_default(name):
            continue
        if _is_small(value):
            defaults[name] = _numbers(value)
        else:
            defaults[name] = None
            data[name] = value
    return source.with_defaults(defaults), data


class _Writer:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.data: dict[str, Numbers] = {}
        hidden = model.hidden or ()
        sides = [side for each in model.constraints for side in (each.lhs, each.rhs)]
        self.roots = [model.objective.expression, *sides, *hidden]
        self.order = topological_order(self.roots)
        self.uses = Counter(id(argument) for node in self.order for argument in node.args)
        self.uses.update(id(root) for root in self.roots)
        self.leaves = [each for each in self.order if isinstance(each, (Parameter, Variable))]
        self.taken = self._checked_names()
        self.written: dict[int, Written] = {}
        self.declarations: list[str] = []
        self.lets: list[str] = []

    def _checked_names(self) -> set[str]:
        taken: set[str] = set()
        for leaf in self.leaves:
            name = leaf.name
            if not NAME.fullmatch(name) or name in RESERVED or name in function_names():
                raise ModelError(
                    f"the name '{name}' cannot stand in a model file; give the "
                    f"{'variable' if isinstance(leaf, Variable) else 'parameter'} another name"
                )
            if name in taken:
                raise ModelError(f"two leaves are named '{name}'; a model file needs each once")
            taken.add(name)
        return taken

    def _fresh(self, stem: str) -> str:
        number = 1
        while f"{stem}{number}" in self.taken or f"{stem}{number}" in CONSTANTS:
            number += 1
        self.taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    # ---- the whole text

    def text(self) -> str:
        for leaf in self.leaves:
            self._declare(leaf)
        for node in self.order:
            self.written[id(node)] = self._named(node, self._write(node))
        starts = [
            f"start {leaf.name} = {self._uniform(leaf.start, 'start')}"
            for leaf in self.leaves
            if isinstance(leaf, Variable) and leaf.start is not None
        ]
        objective = self.model.objective
        word = "maximize" if isinstance(objective, Maximize) else "minimize"
        lines = [*self.declarations, *self.lets]
        lines += ["", f"{word} {self._text(objective.expression)}"]
        if self.model.constraints:
            lines += ["", "subject to"]
            lines += [f"    {line}" for line in self._constraints()]
        if self.model.hidden:
            lines += ["", "hidden " + ", ".join(self._text(each) for each in self.model.hidden)]
        if starts:
            lines += ["", *starts]
        return "\n".join(lines).strip("\n") + "\n"

    def _constraints(self) -> Iterator[str]:
        constraints = list(self.model.constraints)
        position = 0
        while position < len(constraints):
            first = constraints[position]
            following = constraints[position + 1 : position + 2]
            chain = _chain_name(first, following[0]) if following else None
            if chain is not None:
                middle, last = self._text(first.rhs), self._text(following[0].rhs)
                sense = first.sense
                yield f"{chain}: {self._text(first.lhs)} {sense} {middle} {sense} {last}"
                position += 2
                continue
            text = f"{self._text(first.lhs)} {first.sense} {self._text(first.rhs)}"
            if first.name is not None:
                name = first.name
                if PART.fullmatch(name):  # of a chain or of a family, in a file of another format
                    name = re.sub(r"\W+", "_", name).strip("_")
                if not NAME.fullmatch(name) or name in RESERVED:
                    raise ModelError(
                        f"the name '{first.name}' of a constraint cannot stand in a model file"
                    )
                text = f"{name}: {text}"
            elif text.startswith("-"):  # a line cannot begin with an operator
                text = f"({self._text(first.lhs)}) {first.sense} {self._text(first.rhs)}"
            yield text
            position += 1

    def _text(self, node: Expression) -> str:
        return self.written[id(node)][0]

    # ---- declarations

    def _declare(self, leaf: Parameter | Variable) -> None:
        shape = f"[{','.join(str(length) for length in leaf.shape)}]" if leaf.shape else ""
        if isinstance(leaf, Variable):
            words = leaf.set.declaration(self._uniform)
            self.declarations.append(f"var {leaf.name}{shape}{words}")
            return
        bound = " > 0" if leaf.pos else " >= 0" if leaf.nonneg else ""
        value = leaf.value
        if value is None:
            raise ModelError(f"parameter '{leaf.name}' has no value; a model file needs one")
        text = f"param {leaf.name}{shape}{bound}"
        if _is_small(value):
            text += f" = {_numbers(value)}"
        else:
            self.data[leaf.name] = value
        self.declarations.append(text)

    def _array(self, value: Numbers, stem: str) -> Written:
        """A constant: in the text while it is small, else a parameter whose data stand apart."""
        if _is_small(value):
            text = _numbers(value)
            return text, NEGATION if text.startswith("-") else ATOMIC
        for name, known in self.data.items():
            if name not in {leaf.name for leaf in self.leaves} and equal(known, value):
                return name, ATOMIC
        name = self._fresh(stem)
        self.data[name] = value
        self.declarations.append(f"param {name}[{','.join(str(n) for n in value.shape)}]")
        return name, ATOMIC

    def _uniform(self, array: np.ndarray, stem: str) -> str:
        """An array that the language spreads over a shape: one number where all are equal."""
        if array.size and np.all(array == array.flat[0]):
            return _number(float(array.flat[0]))
        return self._array(array, stem)[0]

    # ---- expressions

    def _named(self, node: Expression, written: Written) -> Written:
        """The text itself, or the name of a `let` that stands for it."""
        text = written[0]
        if not isinstance(node, Apply):
            return written
        shared = self.uses[id(node)] > 1 and len(text) > 12
        if not shared and len(text) <= LONG_TEXT and _depth(text) <= DEEP_TEXT:
            return written
        name = self._fresh("t")
        self.lets.append(f"let {name} = {text}")
        return name, ATOMIC

    def _write(self, node: Expression) -> Written:
        if isinstance(node, (Parameter, Variable)):
            return node.name, ATOMIC
        if isinstance(node, Constant):
            return self._array(node.value, "constant")
        assert isinstance(node, Apply)
        atom = node.atom.name
        arguments = [self.written[id(argument)] for argument in node.args]
        params: dict[str, Any] = dict(node.params)
        if atom == "function":
            raise ModelError(
                "hc.function wraps Python code, which has no form in a model file; write it with "
                "atoms"
            )
        if atom in INFIX and len(arguments) > 1:
            symbol, strength, left, right = INFIX[atom]
            symbol = "^" if atom == "power" else symbol
            sides = [_enclosed(arguments[0], left), *(_enclosed(a, right) for a in arguments[1:])]
            return symbol.join(sides), strength
        if atom == "add":
            return arguments[0]
        if atom == "neg":
            return "-" + _enclosed(arguments[0], NEGATION + 1), NEGATION
        if atom == "index":
            return self._index(node, arguments[0], params["key"])
        if atom == "transpose" and params["axes"] is None:
            return _enclosed(arguments[0], POSTFIX) + ".T", POSTFIX
        words = [text for text, _ in arguments]
        if atom == "hstack" and all(not argument.shape for argument in node.args):
            return f"[{', '.join(words)}]", ATOMIC
        if atom == "einsum":
            words = [f'"{params.pop("subscripts")}"', *words]
        words += [
            f"{key}={_static(key, value)}" for key, value in params.items() if value is not None
        ]
        return f"{atom}({', '.join(words)})", ATOMIC

    def _index(self, node: Apply, base: Written, key: IndexKey) -> Written:
        shape = node.args[0].shape
        entries = _plain_key(key, shape)
        text = _enclosed(base, POSTFIX)
        if entries is not None:
            words = [
                self._entry(entry, length) for entry, length in zip(entries, shape, strict=True)
            ]
            return f"{text}[{','.join(words)}]", POSTFIX
        # Anything else is a gather from the flattened array.
        size = math.prod(shape)
        places = np.arange(size).reshape(shape)[key.numpy]
        if len(shape) != 1:
            text = f"reshape({base[0]}, [{size}])"
        gathered = f"{text}[{self._places(places.reshape(-1))}]"
        if places.ndim == 1:
            return gathered, POSTFIX
        return f"reshape({gathered}, {_list(places.shape)})", ATOMIC

    def _entry(self, entry: Any, length: int) -> str:
        if isinstance(entry, int):
            return str(entry % length + 1)
        if isinstance(entry, np.ndarray):
            return self._places(entry)
        start, stop, _ = entry.indices(length)
        if (start, stop) == (0, length):
            return ":"
        return f"{start + 1}..{max(stop, start)}"

    def _places(self, places: np.ndarray) -> str:
        if places.size == 0:
            return "1..0"
        return self._array(places.astype(float) + 1.0, "places")[0]


def _plain_key(key: IndexKey, shape: tuple[int, ...]) -> list[Any] | None:
    """The key with one integer, unit slice or vector per axis, at most one vector; or None."""
    entries: list[Any] = []
    vectors = 0
    for entry in key.entries:
        if isinstance(entry, Slice):
            cut = slice(entry.start, entry.stop, entry.step)
            if entry.step not in (None, 1):
                return None
            entries.append(cut)
        elif type(entry) is int:
            entries.append(entry)
        elif isinstance(entry, FrozenArray) and entry.array.ndim == 1:
            if entry.array.dtype.kind == "b" or len(entry.array) == 0:
                return None
            if (entry.array < 0).any():
                return None
            vectors += 1
            entries.append(entry.array)
        else:
            return None
    integers = any(type(entry) is int for entry in entries)
    if vectors > 1 or (vectors and integers) or len(entries) > len(shape):
        return None
    return entries + [slice(None)] * (len(shape) - len(entries))


def _chain_name(first: Constraint, second: Constraint) -> str | None:
    """The name of the chain that two constraints come from."""
    if first.name is None or second.name is None or first.sense != second.sense:
        return None
    stem, dot, end = first.name.rpartition(".")
    ends = ("lower", "upper") if first.sense in ("<=", "<<") else ("upper", "lower")
    matches = dot and end == ends[0] and second.name == f"{stem}.{ends[1]}"
    if not matches or first.rhs is not second.lhs or first.sense == "==":
        return None
    return stem if NAME.fullmatch(stem) and stem not in RESERVED else None


def _enclosed(written: Written, needed: int) -> str:
    text, strength = written
    return text if strength >= needed else f"({text})"


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        deepest = max(deepest, depth)
    return deepest


def _static(key: str, value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    shift = 1 if key in ("axis", "axes") else 0
    if isinstance(value, tuple):
        if shift and len(value) == 1:
            return str(value[0] + shift)
        return _list(each + shift for each in value)
    return _number(float(value) + shift)


def _list(values: Any) -> str:
    return f"[{', '.join(str(value) for value in values)}]"


def _number(value: float) -> str:
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def _is_small(value: Numbers) -> bool:
    """Whether the entries, zeros of a sparse matrix included, are few enough for the text."""
    return bool(math.prod(value.shape) <= INLINE_ENTRIES)


def _numbers(value: Numbers) -> str:
    array = dense(value)
    if array.size == 0:
        return f"zeros({', '.join(str(n) for n in array.shape)})"
    if array.ndim == 0:
        return _number(float(array))
    return f"[{', '.join(_numbers(part) for part in array)}]"
