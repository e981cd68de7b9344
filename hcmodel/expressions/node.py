"""The nodes of the expression graph: the operators they share, constants, and applied atoms.

Nodes are immutable and hash by identity, since `==` builds a constraint. Operators look their atom
up in the one table, so that `x + y`, `np.add(x, y)` and the language's `+` are the same thing.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions import graph, numpy_dispatch, sparse_data
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.foreign_habits import EXPRESSION, missing_attribute
from hcmodel.expressions.printing import attribute, infix, rich
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS
from hcmodel.solvers.algebra.marks import all_finite, some

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom
    from hcmodel.expressions.leaves import Parameter, Variable


class Expression:
    """A real array that depends on variables and parameters."""

    __slots__ = ("__weakref__", "_shape")
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # above that of its tables, so that S * x is left to x
    args: tuple[Expression, ...] = ()
    is_variable = False
    is_parameter = False

    _shape: Shape

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(EXPRESSION, name, type(self).__name__)

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        size = 1
        for length in self._shape:
            size *= length
        return size

    @property
    def value(self) -> np.ndarray | None:
        """The value at the variables' and parameters' values, None where one is missing.

        It is a sparse array of scipy where it is made of sparse data alone.
        """
        return graph.evaluate(self)

    @property
    def T(self) -> Expression:  # noqa: N802 (numpy's name)
        return self if self.ndim < 2 else ATOMS["transpose"](self)

    def variables(self) -> list[Variable]:
        """The variables inside, each once, in order of appearance."""
        return [n for n in graph.topological_order([self]) if getattr(n, "is_variable", False)]  # type: ignore[misc]

    def parameters(self) -> list[Parameter]:
        """The parameters inside, each once, in order of appearance."""
        return [n for n in graph.topological_order([self]) if getattr(n, "is_parameter", False)]  # type: ignore[misc]

    # arithmetic

    def __add__(self, other: Any) -> Expression:
        return _before(ATOMS["add"], self, other)

    def __radd__(self, other: Any) -> Expression:
        # Python's sum() starts from 0, which would only lengthen the graph.
        if isinstance(other, int) and other == 0:
            return self
        return _after(ATOMS["add"], other, self)

    def __sub__(self, other: Any) -> Expression:
        return _before(ATOMS["sub"], self, other)

    def __rsub__(self, other: Any) -> Expression:
        return _after(ATOMS["sub"], other, self)

    def __mul__(self, other: Any) -> Expression:
        if type(other) is Apply and not self._shape and not other._shape:
            return Apply(ATOMS["mul"], (self, other), (), ())  # soon, for products written in loops
        if not isinstance(other, Expression) and type(other) is not float:
            sparse_data.check_product(other, self)
        return _before(ATOMS["mul"], self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _after(ATOMS["mul"], other, self)

    def __truediv__(self, other: Any) -> Expression:
        return _before(ATOMS["div"], self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _after(ATOMS["div"], other, self)

    def __pow__(self, other: Any) -> Expression:
        if type(other) is float and not self._shape:  # soon, for powers written in loops
            return Apply(ATOMS["power"], (self, _exponent(other)), (), ())
        return _before(ATOMS["power"], self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _after(ATOMS["power"], other, self)

    def __matmul__(self, other: Any) -> Expression:
        return ATOMS["matmul"].apply((self, other))

    def __rmatmul__(self, other: Any) -> Expression:
        return ATOMS["matmul"].apply((other, self))

    def __neg__(self) -> Expression:
        return ATOMS["neg"].apply((self,))

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return ATOMS["abs"].apply((self,))

    def __xor__(self, other: Any) -> NoReturn:
        raise ModelError("^ is not a power in Python; write x ** p")

    __rxor__ = __xor__

    def __mod__(self, other: Any) -> NoReturn:
        raise ModelError(
            "expressions have no //, % or rounding: all variables are continuous; division is /"
        )

    __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = __mod__

    def __round__(self, digits: Any = None) -> NoReturn:
        self.__mod__(digits)

    def __and__(self, other: Any) -> NoReturn:
        raise ModelError(
            "expressions have no &, | or ~; conditions are constraints of the problem, in a list"
        )

    __rand__ = __or__ = __ror__ = __and__

    def __invert__(self) -> NoReturn:
        self.__and__(None)

    # comparisons

    def __le__(self, other: Any) -> Constraint:
        return Constraint(self, "<=", as_expression(other))

    def __ge__(self, other: Any) -> Constraint:
        return Constraint(self, ">=", as_expression(other))

    def __eq__(self, other: Any) -> Constraint:  # type: ignore[override]
        return Constraint(self, "==", as_expression(other))

    def __rshift__(self, other: Any) -> Constraint:
        return Constraint(self, ">>", as_expression(other))

    def __rrshift__(self, other: Any) -> Constraint:
        return Constraint(as_expression(other), ">>", self)

    def __lshift__(self, other: Any) -> Constraint:
        return Constraint(self, "<<", as_expression(other))

    def __rlshift__(self, other: Any) -> Constraint:
        return Constraint(as_expression(other), "<<", self)

    def __ne__(self, other: Any) -> NoReturn:
        raise ModelError("!= is not a constraint of an optimisation problem; use <=, >= or ==")

    def __lt__(self, other: Any) -> NoReturn:
        raise ModelError(
            "strict inequalities are not closed, so a minimum need not exist; use <= (and "
            "pos=True for a positive variable)"
        )

    def __gt__(self, other: Any) -> NoReturn:
        raise ModelError(
            "strict inequalities are not closed, so a minimum need not exist; use >= (and "
            "pos=True for a positive variable; for the largest entry hc.max, not Python's max)"
        )

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise ModelError("an expression has no truth value; use its .value, or `is None`")

    def __float__(self) -> NoReturn:
        raise ModelError(
            f"the expression {self} is not a number; use .value for its number, and hc.exp, hc.log … in "
            "place of the functions of math"
        )

    def __int__(self) -> NoReturn:
        self.__float__()

    def __format__(self, spec: str) -> str:
        if spec:
            raise ModelError(
                f"the expression {self} is not a number, which the format {spec!r} is for; take its "
                f"value: {attribute(self, 'value')}"
            )
        return str(self)

    # containers

    def __getitem__(self, key: Any) -> Expression:
        return ATOMS["index"].apply((self,), {"key": key})

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError(f"the scalar {self} has no length")
        return self._shape[0]

    def __iter__(self) -> Iterator[Expression]:
        if not self._shape:
            raise TypeError(f"the scalar {self} cannot be iterated over")
        return (self[i] for i in range(self._shape[0]))

    # numpy

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return numpy_dispatch.ufunc(ufunc, method, [as_expression(i) for i in inputs], kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return numpy_dispatch.function(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise ModelError(
            f"the expression {self} is not an array; use .value for its number, or hc.hstack, "
            "hc.vstack or hc.concatenate to put expressions together; before an operator @, write "
            "S.to_numpy() for an object S of pandas"
        )

    def __str__(self) -> str:
        return infix(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_latex_(self) -> str | None:
        return rich("latex", self)

    def _repr_html_(self) -> str | None:
        return rich("html", self)


# Integers up to which all are floats.
MOST_EXACT = 2**53
# Of a number, as arrays of numpy have them.
BYTES_OF = struct.Struct("d").pack


class Leaf(Expression):
    """A node without arguments: constant, parameter or variable."""

    __slots__ = ()

    def merge_key(self) -> Hashable:
        """Leaves with equal keys are the same leaf in a merged graph."""
        return id(self)


class Constant(Leaf):
    """A number or an array of numbers, which may be a sparse matrix of scipy.

    `number` is the value of one that was made of a number of Python: models built in loops have one in
    each term, and most of them are never looked at as an array.
    """

    __slots__ = ("_value", "number")

    def __init__(self, value: Any) -> None:
        self._value: sparse_data.Numbers = None
        self._shape = ()
        if type(value) is float and isfinite(value):
            self.number: float | None = value
            return
        if type(value) is int and abs(value) <= MOST_EXACT:
            self.number = float(value)
            return
        self.number = None
        self._value = sparse_data.frozen(as_data(value, "a constant", sparse=True))
        self._shape = self._value.shape

    @property
    def value(self) -> sparse_data.Numbers:
        if self._value is None:
            self._value = sparse_data.frozen(np.array(self.number))
        return self._value

    def merge_key(self) -> Hashable:
        if self.number is not None:
            return (), (BYTES_OF(self.number),)
        return self._shape, sparse_data.fingerprint(self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Constant, (self.value if self.number is None else self.number,)


class Apply(Expression):
    """An atom applied to arguments; `params` are its static keyword values, sorted by name."""

    __slots__ = ("args", "atom", "params")

    def __init__(
        self,
        atom: Atom,
        args: tuple[Expression, ...],
        params: tuple[tuple[str, Hashable], ...],
        shape: Shape,
    ) -> None:
        self.atom = atom
        self.args = args
        self.params = params
        self._shape = shape

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled flat: the default would recurse as deep as the expression.
        order = graph.topological_order([self])
        number = {id(node): i for i, node in enumerate(order)}
        flat = [
            (node.atom, tuple(number[id(a)] for a in node.args), node.params, node.shape)
            if isinstance(node, Apply)
            else node
            for node in order
        ]
        return _rebuild, (flat,)


def _rebuild(flat: Sequence[Any]) -> Expression:
    nodes: list[Expression] = []
    for entry in flat:
        if isinstance(entry, Expression):
            nodes.append(entry)
        else:
            atom, numbers, params, shape = entry
            nodes.append(Apply(atom, tuple(nodes[i] for i in numbers), params, shape))
    return nodes[-1]


def as_expression(operand: Any) -> Expression:
    """`operand` itself if it is an expression, else the constant that it stands for."""
    if isinstance(operand, Expression):
        return operand
    if type(operand) is float or type(operand) is int:  # soon, for rows that are written in loops
        return Constant(operand)
    if isinstance(operand, Iterator):  # hc.sum(x[i] for i in …), as with Python's sum
        operand = list(operand)
    if isinstance(operand, (list, tuple)) and operand and _holds_expression(operand):
        return _stacked(operand)
    return Constant(operand)


@lru_cache(maxsize=1000)
def _exponent(number: float) -> Constant:
    """The constant of an exponent: loops that write products use few numbers many times."""
    return Constant(number)


def _before(atom: Atom, one: Expression, other: Any) -> Expression:
    """An atom that works entry by entry; of two scalars at once, for models that are built in loops."""
    if not one._shape:
        second = Constant(other) if type(other) is float else other
        if isinstance(second, Expression) and not second._shape:
            return Apply(atom, (one, second), (), ())
    return atom.apply((one, other))


def _after(atom: Atom, other: Any, one: Expression) -> Expression:
    """The same with the expression behind; the other one is none, or Python had asked it."""
    if type(other) is float and not one._shape:
        return Apply(atom, (Constant(other), one), (), ())
    return atom.apply((other, one))


def as_scalars(operands: Sequence[Any]) -> tuple[Expression, ...] | None:
    """The operands where all of them are finite numbers of Python or scalar expressions, else None."""
    found = []
    for operand in operands:
        kind = type(operand)
        if kind is float or kind is int:
            operand = Constant(operand)
        elif kind is not Apply and not isinstance(operand, Expression):
            return None
        if operand._shape:
            return None
        found.append(operand)
    return tuple(found)


def _stacked(entries: Sequence[Any]) -> Expression:
    """A list of numbers and scalar expressions as a vector."""
    found = [as_expression(entry) for entry in entries]
    if any(entry.shape != () for entry in found):
        raise ModelError(
            "a list with arrays of expressions in it is not an array; put them together with hc.hstack, "
            "hc.vstack or hc.concatenate, or add them with Python's sum(…)"
        )
    return ATOMS["hstack"](found)


def as_data(value: Any, what: str, *, infinite: bool = False, sparse: bool = False) -> Any:
    """A fresh float array of `value`; `what` names it in the error.

    A sparse matrix stays one where `sparse` allows it, in compressed rows.
    """
    if isinstance(value, Constraint):
        raise ModelError("a constraint cannot stand inside an expression")
    if isinstance(value, (list, tuple)) and _holds_expression(value):
        raise ModelError(
            "a list with expressions in it is not an array; put them together with hc.hstack, "
            "hc.vstack or hc.concatenate"
        )
    if sparse_data.is_sparse(value):
        compressed = sparse_data.as_compressed(value, what)
        return compressed if sparse else sparse_data.dense(compressed, what)
    try:
        raw = np.asarray(value)
    except ValueError:
        raise DataError(
            f"{what} has rows of different lengths, and is not an array: {value!r}"
        ) from None
    if raw.dtype.kind not in "fiub":
        raise DataError(f"{what} must be a real number or an array of them, not {value!r}")
    array = np.array(raw, dtype=float)
    if not all_finite(array):
        if some(np.isnan(array)):
            where = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
            raise DataError(f"{what} has a NaN at entry {where}" if where else f"{what} is NaN")
        if not infinite:
            raise DataError(f"{what} is not finite; only bounds may be infinite")
    return array


def _holds_expression(values: Sequence[Any]) -> bool:
    return any(
        isinstance(v, (Expression, Constraint))
        or (isinstance(v, (list, tuple)) and _holds_expression(v))
        for v in values
    )


sparse_data.defer_to(Expression)
