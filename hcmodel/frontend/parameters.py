"""Parameters meet their data: dimensions are inferred, shapes and bounds checked, gaps explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hcmodel.expressions.leaves import Parameter
from hcmodel.expressions.sparse_data import Numbers, dense, extremes, is_sparse
from hcmodel.frontend import subscripts
from hcmodel.frontend.data import READERS, Arrays, labels_of, needs_labels
from hcmodel.frontend.expressions import COMPARE, Evaluator
from hcmodel.frontend.mistakes import Mistake, PoisonedError, nearest
from hcmodel.frontend.names import Kind, Symbol
from hcmodel.frontend.values import Dimension, Value, shown, spend
from hcmodel.grammar import syntax


class ParameterData:
    """The data of one model, and the lengths that follow from their shapes."""

    def __init__(self, model: syntax.Model, arrays: Arrays, beside: Path | None) -> None:
        self.declarations = [
            each for each in model.statements if isinstance(each, syntax.ParameterDeclaration)
        ]
        self.arrays = arrays
        self.beside = beside
        self.mistakes: list[Mistake] = []
        self._conflicting: set[str] = set()
        self._lengths: dict[str, tuple[int, str]] = {}
        self._suggested: set[str] = set()  # data that were named as probably misspelt
        self._disagreed: set[str] = set()  # lengths that data did not fit, told once
        self._infer()

    def surplus(self) -> Iterable[Mistake]:
        """Data that no parameter asks for."""
        declared = {each.name.identifier: each for each in self.declarations}
        for name in self.arrays:
            if name not in declared and name not in self._suggested:
                close = nearest(name, declared)
                if close is not None:
                    place, hint = declared[close].name.span, f"did you mean `{close}`?"
                else:
                    first = self.declarations[0].name.span if self.declarations else None
                    place = first or syntax.Span(1, 1, 1, 1)
                    listed = ", ".join(f"`{each}`" for each in declared)
                    hint = f"its parameters are {listed}" if listed else "it has no parameters"
                yield Mistake(
                    f"the data give `{name}`, which is not a parameter of the model",
                    place,
                    hint,
                    of_data=True,
                )

    # ---- dimensions

    def _infer(self) -> None:
        bare = {
            each.name.identifier
            for each in self.declarations
            if not each.shape and each.default is None and each.name.identifier not in self.arrays
        }
        for declaration in self.declarations:
            known = self._known_shape(declaration)
            if known is None:
                continue
            for entry, length in zip(declaration.shape, known, strict=False):
                found = _implied(entry, length)
                if found is not None and found[0] in bare:
                    self._note(*found, declaration)

    def _known_shape(self, declaration: syntax.ParameterDeclaration) -> tuple[int, ...] | None:
        name = declaration.name.identifier
        if name in self.arrays:
            shape = tuple(_squeezed(self.arrays[name], len(declaration.shape)).shape)
        elif isinstance(declaration.default, syntax.ListLiteral):
            shape = _literal_shape(declaration.default)
        else:
            return None
        return shape if len(shape) == len(declaration.shape) else None

    def _note(self, name: str, value: int, declaration: syntax.ParameterDeclaration) -> None:
        source = declaration.name.identifier
        known, first = self._lengths.setdefault(name, (value, source))
        if known != value:
            self._conflicting.add(source)
            self.mistakes.append(
                Mistake(
                    f"`{name}` is {known} by the data of `{first}`, but {value} by those of "
                    f"`{source}`",
                    declaration.name.span,
                    "the lengths must agree",
                    of_data=True,
                )
            )

    # ---- one declaration

    def _tell_of_arrays(self, name: str) -> None:
        """Where the shape of an array would give the length `name`, that array is what is missing."""
        sources = [
            each
            for each in self.declarations
            if each.default is None
            and any(found == name for found in map(_implied_name, each.shape))
        ]
        for declaration in sources:
            array = declaration.name.identifier
            if array in self.arrays:
                given, wanted = self.arrays[array].ndim, len(declaration.shape)
                mistake = Mistake(
                    f"the data of `{array}` have {_indices(given)}, but {_indices(wanted)} "
                    f"{'is' if wanted == 1 else 'are'} declared",
                    declaration.name.span,
                    of_data=True,
                )
            else:
                mistake = self._missing(declaration)
            self.mistakes.append(mistake)
        if sources:
            raise PoisonedError(name)

    def _missing(self, declaration: syntax.ParameterDeclaration) -> Mistake:
        name = declaration.name.identifier
        hint = self._missing_hint(declaration)
        return Mistake(f"parameter `{name}` has no data", declaration.name.span, hint, of_data=True)

    def bind(
        self, evaluator: Evaluator, declaration: syntax.ParameterDeclaration, structural: bool
    ) -> Symbol:
        """The parameter with its value; a plain number where the structure depends on it."""
        name = declaration.name.identifier
        if name in self._conflicting:
            raise PoisonedError(name)
        dimensions = tuple(
            subscripts.dimension(evaluator, entry, is_shape=True) for entry in declaration.shape
        )
        shape = tuple(each.length for each in dimensions)
        array = self._value(evaluator, declaration, dimensions)
        positive, nonnegative = self._check_bounds(evaluator, declaration, array, dimensions)
        if structural:
            array = dense(array)
            value = Value(array, dimensions=dimensions)
        else:
            parameter = Parameter(shape, name, array, pos=positive, nonneg=nonnegative)
            parameter.labels = tuple(each.keys for each in dimensions) or None
            value = Value(parameter, dimensions=dimensions)
        return Symbol(name, Kind.PARAMETER, declaration.name.span, value, array)

    def _value(
        self,
        evaluator: Evaluator,
        declaration: syntax.ParameterDeclaration,
        dimensions: Sequence[Dimension],
    ) -> Numbers:
        shape = tuple(each.length for each in dimensions)
        name = declaration.name.identifier
        if name in self.arrays:
            array = _squeezed(self._in_order(declaration, dimensions), len(shape))
            if array.shape != shape:
                raise self._misfit(declaration, array.shape, shape)
            return array
        if declaration.default is not None:
            value = evaluator.constant("a default").evaluate(declaration.default)
            spend(shape)
            try:
                return np.broadcast_to(np.asarray(value.node, dtype=float), shape).copy()
            except ValueError:
                raise Mistake(
                    f"the default of `{name}` has shape {shown(value.shape)}, but {shown(shape)} "
                    "is declared",
                    declaration.default.span,
                ) from None
        if name in self._lengths:
            return np.array(float(self._lengths[name][0]))
        self._tell_of_arrays(name)
        raise self._missing(declaration)

    def _in_order(
        self, declaration: syntax.ParameterDeclaration, dimensions: Sequence[Dimension]
    ) -> Numbers:
        """The data of a parameter; where they have labels, in the order of the sets."""
        name = declaration.name.identifier
        array = self.arrays[name]
        given = labels_of(array)
        if given is None:
            return array
        plain = np.asarray(array)
        if len(given) != len(dimensions):
            return plain
        for axis, (labels, dimension) in enumerate(zip(given, dimensions, strict=True)):
            if labels is None or dimension.names is None:
                if labels is not None and needs_labels(array):
                    raise Mistake(
                        f"the data of `{name}` have labels, {_quoted(labels)}, but indices are numbers",
                        declaration.name.span,
                        f"declare a set: `set s = {{{_quoted(labels)}}}` and `param {name}[s]`",
                        of_data=True,
                    )
                continue
            missing = [each for each in dimension.names if each not in labels]
            surplus = [each for each in labels if each not in dimension.names]
            if missing or surplus:
                what = f"lack {_quoted(missing)}" if missing else f"have {_quoted(surplus)} as well"
                raise Mistake(
                    f"the data of `{name}` {what}",
                    declaration.name.span,
                    f"the set is {dimension}",
                    of_data=True,
                )
            order = [labels.index(each) for each in dimension.names]
            plain = np.take(plain, order, axis=axis)
        return plain

    def _misfit(
        self,
        declaration: syntax.ParameterDeclaration,
        given: tuple[int, ...],
        wanted: tuple[int, ...],
    ) -> Mistake:
        name = declaration.name.identifier
        message = f"the data of `{name}` have shape {shown(given)}, but {shown(wanted)} is declared"
        hint = _transposition_hint(given, wanted)
        if not given:
            message = (
                f"the data of `{name}` are one number, but an array of {shown(wanted)} is declared"
            )
            hint = "give a list of numbers"
        elif not wanted:
            message = (
                f"the data of `{name}` are an array of {shown(given)}, but one number is declared"
            )
            hint = f"declare the array: `param {name}[{','.join(map(str, given))}]`"
        elif len(given) == len(wanted):
            lengths = {
                entry.identifier: length
                for entry, length, other in zip(declaration.shape, wanted, given, strict=True)
                if isinstance(entry, syntax.Name) and length != other
            }
            if lengths and lengths.keys() <= self._disagreed:
                raise PoisonedError(name)  # as with another array, told already
            self._disagreed |= lengths.keys()
            listed = " and ".join(f"`{each}` is {length}" for each, length in lengths.items())
            hint = hint or listed or None
        return Mistake(message, declaration.name.span, hint, of_data=True)

    def _missing_hint(self, declaration: syntax.ParameterDeclaration) -> str:
        name = declaration.name.identifier
        declared = {each.name.identifier for each in self.declarations}
        close = nearest(name, [key for key in self.arrays if key not in declared])
        if close is not None:
            self._suggested.add(close)
            return f"the data have `{close}`; did you mean `{name}`?"
        files = self._files_beside()
        if files:
            return f"it may be in {' or '.join(files)}: give it as data"
        shape = "[…]" if declaration.shape else ""
        return (
            f"give it as data, with `--set {name}={shape or '…'}`, or a default: "
            f"`param {name}{shape} = …`"
        )

    def _files_beside(self) -> list[str]:
        """Data files next to the model, those of the model's own name first."""
        if self.beside is None:
            return []
        try:
            files = sorted(each for each in self.beside.parent.iterdir() if each.suffix in READERS)
        except OSError:
            return []
        own = [each.name for each in files if each.stem == self.beside.stem]
        return own or [each.name for each in files[:3]]

    def _check_bounds(
        self,
        evaluator: Evaluator,
        declaration: syntax.ParameterDeclaration,
        array: Numbers,
        dimensions: Sequence[Dimension],
    ) -> tuple[bool, bool]:
        """Whether the bounds say positive and nonnegative; an entry outside them is a mistake."""
        pairs: list[tuple[str, syntax.Expression]] = []
        for bound in declaration.bounds:
            if isinstance(bound, syntax.Interval):
                pairs += [(">=", bound.lower), ("<=", bound.upper)]
            else:
                pairs.append((bound.operator, bound.value))
        positive = nonnegative = False
        for operator, node in pairs:
            limit = np.asarray(evaluator.constant("a bound").evaluate(node).node, dtype=float)
            try:
                limits = np.broadcast_to(limit, array.shape)
            except ValueError:
                raise Mistake(
                    f"a bound of shape {shown(limit.shape)} does not fit "
                    f"`{declaration.name.identifier}` of {shown(array.shape)}",
                    node.span,
                ) from None
            if not _is_within(array, operator, limit):
                numbers = dense(array)
                wrong = ~COMPARE[operator](numbers, limits)
                self._raise_outside(declaration, numbers, limits, wrong, operator, dimensions)
            lowest = float(limit.min()) if limit.size else 0.0
            positive |= (operator == ">" and lowest >= 0) or (operator == ">=" and lowest > 0)
            nonnegative |= operator in (">", ">=") and lowest >= 0
        return positive, nonnegative

    def _raise_outside(
        self,
        declaration: syntax.ParameterDeclaration,
        array: np.ndarray,
        limits: np.ndarray,
        wrong: np.ndarray,
        operator: str,
        dimensions: Sequence[Dimension],
    ) -> None:
        entry = tuple(int(i) for i in np.argwhere(wrong)[0])
        name = declaration.name.identifier
        labels = ",".join(str(d.keys[i]) for d, i in zip(dimensions, entry, strict=True))
        where = f"{name}[{labels}]" if labels else name
        raise Mistake(
            f"`{where}` is {array[entry]:g}, but must be {operator} {limits[entry]:g}",
            declaration.name.span,
            of_data=True,
        )


def _quoted(labels: Sequence[str]) -> str:
    return ", ".join(f'"{label}"' for label in labels)


def _squeezed(array: Numbers, dimensions: int) -> Numbers:
    """Without axes of length 1 where fewer axes are declared: rows and columns of CSV files."""
    if dimensions == 0 and all(length == 1 for length in array.shape):
        return dense(array).reshape(())
    if array.ndim > dimensions and array.ndim == 2 and 1 in array.shape:
        return dense(array).reshape(-1)
    return array


def _is_within(array: Numbers, operator: str, limit: np.ndarray) -> bool:
    """Whether all entries fulfil a bound; a sparse matrix is not made dense for a single number."""
    if is_sparse(array) and limit.ndim == 0 and 0 not in array.shape:
        return all(bool(COMPARE[operator](end, limit)) for end in extremes(array))
    return bool(np.all(COMPARE[operator](dense(array), limit)))


def _implied(entry: syntax.IndexSet, length: int) -> tuple[str, int] | None:
    """The bare name whose value a length gives: `n`, or the `n` of `0..n`."""
    if isinstance(entry, syntax.Name):
        return entry.identifier, length
    if isinstance(entry, syntax.Range):
        lower, upper = entry.lower, entry.upper
        if isinstance(upper, syntax.Name) and isinstance(lower, syntax.Number):
            return upper.identifier, length + int(lower.value) - 1
    return None


def _implied_name(entry: syntax.IndexSet) -> str | None:
    found = _implied(entry, 0)
    return None if found is None else found[0]


def _indices(count: int) -> str:
    return f"{count} {'index' if count == 1 else 'indices'}" if count else "no index"


def _literal_shape(node: syntax.ListLiteral) -> tuple[int, ...]:
    shape: list[int] = []
    item: syntax.Expression = node
    while isinstance(item, syntax.ListLiteral):
        shape.append(len(item.items))
        item = item.items[0]
    return tuple(shape)


def _transposition_hint(given: tuple[int, ...], wanted: tuple[int, ...]) -> str | None:
    if len(given) == 2 and given == wanted[::-1]:
        return "the data look transposed"
    return None
