"""What lies between hcmodel and a user's program: counts, a cache on disk, differences for gradients.

Every call of the program goes through `Program`, which counts it, and looks it up in the cache first
where there is one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import is_traced, taped
from hcmodel.atoms.autodiff import xp as traced_numpy
from hcmodel.atoms.evaluation_store import EvaluationStore, identity_of, key_of
from hcmodel.errors import ModelError

FloatArray = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)
# The step of each scheme, relative to max(1, |x|), at which rounding and truncation are balanced;
# a complex step has no rounding.
STEPS = {"2-point": EPSILON ** (1 / 2), "3-point": EPSILON ** (1 / 3), "complex-step": 1e-30}
DISAGREEMENT = 1e-3  # of the differences on both sides: smooth functions differ by about the step


def name_of(code: Any) -> str:
    """What a message calls a user's function."""
    return getattr(code, "__name__", None) or type(code).__name__


@dataclass
class FunctionCalls:
    """Calls of the functions in a model, each evaluation counted.

    `values` includes the evaluations that differences take; `gradients` are calls of a function given as
    `grad`; `cached` are evaluations that came from the cache and called nothing.
    """

    values: int = 0
    gradients: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.values + self.gradients

    def plus(self, other: FunctionCalls) -> FunctionCalls:
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self))
        return FunctionCalls(*(own + its for own, its in pairs))

    def minus(self, other: FunctionCalls) -> FunctionCalls:
        return self.plus(FunctionCalls(-other.values, -other.gradients, -other.cached))


class _Same:
    """An object compared by identity, whatever its own comparison says, and with a hash."""

    def __init__(self, code: Any) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.code is other.code

    def __hash__(self) -> int:
        return id(self.code)


@dataclass(frozen=True)
class Program:
    """A user's callable. Two of them are the same if callable, purpose and cache are."""

    same: _Same
    kind: str = "values"
    store: EvaluationStore | None = None
    calls: FunctionCalls = field(default_factory=FunctionCalls, compare=False, repr=False)

    @property
    def callable(self) -> Callable[..., Any]:
        found: Callable[..., Any] = self.same.code
        return found

    @property
    def __name__(self) -> str:
        return name_of(self.callable)

    @property
    def identity(self) -> str:
        return identity_of(self.callable)

    def __call__(self, *arrays: Any) -> Any:
        if self.store is None or any(is_traced(array) for array in arrays):
            self._count()
            return self.callable(*arrays)
        return self.all_of([arrays])[0]

    def all_of(self, points: Sequence[Sequence[Any]], executor: Any = None) -> list[Any]:
        """The values at several points; those that are not in the cache may go to an executor."""
        found = [self._looked_up(point) for point in points]
        missing = [place for place, value in enumerate(found) if value is None]
        futures = []
        if executor is not None:
            futures = [executor.submit(self.callable, *points[place]) for place in missing]
        for number, place in enumerate(missing):
            self._count()
            value = self._result(futures[number]) if futures else self.callable(*points[place])
            self._keep(points[place], value)
            found[place] = value
        return found

    def _count(self) -> None:
        setattr(self.calls, self.kind, getattr(self.calls, self.kind) + 1)

    def _looked_up(self, point: Sequence[Any]) -> Any:
        if self.store is None:
            return None
        arrays = self.store.find(key_of(self.identity, self.kind, point))
        if arrays is None:
            return None
        self.calls.cached += 1
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _keep(self, point: Sequence[Any], value: Any) -> None:
        if self.store is not None:
            parts = (
                value if isinstance(value, (tuple, list)) and self.kind != "values" else (value,)
            )
            self.store.keep(key_of(self.identity, self.kind, point), parts)

    def _result(self, future: Any) -> Any:
        try:
            return future.result()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            if "pickle" not in str(error):
                raise
            raise ModelError(
                f"the executor cannot send '{self.__name__}' to another process ({error}); define it at "
                "the top level of a module, or use a ThreadPoolExecutor"
            ) from error


@dataclass(frozen=True)
class TapedProgram:
    """A program written with autograd.numpy whose evaluations are cached: value and gradient together."""

    program: Program

    def value(self, *arrays: Any) -> Any:
        return self._evaluated(arrays)[0]

    def __call__(self, *arrays: Any) -> tuple[FloatArray, ...]:
        return tuple(self._evaluated(arrays)[1:])

    def _evaluated(self, arrays: Sequence[Any]) -> list[Any]:
        plain = [np.asarray(array, dtype=float) for array in arrays]
        store = self.program.store
        assert store is not None
        key = key_of(self.program.identity, "value and gradient", plain)
        found: list[Any] | None = store.find(key)
        if found is not None:
            self.program.calls.cached += 1
            return found
        found = self._taped(plain)
        store.keep(key, found)
        return found

    def _taped(self, plain: list[FloatArray]) -> list[Any]:
        ends = np.cumsum([array.size for array in plain])
        pairs = [
            (end - array.size, end, array.shape) for array, end in zip(plain, ends, strict=True)
        ]

        def flat(point: Any) -> Any:
            parts = [traced_numpy.reshape(point[low:high], shape) for low, high, shape in pairs]
            return self.program(*parts)

        value, pull = taped(flat, np.concatenate([np.ravel(array) for array in plain]))
        value = np.asarray(value, dtype=float)
        rows = np.zeros((value.size, int(ends[-1])))
        if pull is not None:
            seeds = np.eye(value.size).reshape((value.size, *value.shape))
            rows = np.array([pull(seed) for seed in seeds]).reshape(rows.shape)
        parts = [rows[:, low:high].reshape(value.shape + shape) for low, high, shape in pairs]
        return [value, *parts]


@dataclass(frozen=True)
class Differences:
    """The gradient of a function by differences; `executor` takes the evaluations at moved points.

    "2-point" takes one call for each entry of the arguments, "3-point" two, and "complex-step" one
    with complex numbers, exact to rounding for functions that can take them.
    """

    program: Program
    scheme: str
    executor: _Same = field(default_factory=lambda: _Same(None))
    _last: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def __name__(self) -> str:
        return name_of(self.program)

    def value(self, *arrays: Any) -> Any:
        """The function itself; the last value is kept for the differences."""
        plain = [np.asarray(array, dtype=float) for array in arrays]
        found = self._real(self.program(*plain))
        self._last.update(key=_bytes(plain), value=found)
        return found

    def __call__(self, *arrays: Any) -> tuple[FloatArray, ...]:
        plain = [np.asarray(array, dtype=float) for array in arrays]
        moves = [
            (number, entry, self._step(float(array[entry])))
            for number, array in enumerate(plain)
            for entry in np.ndindex(array.shape)
        ]
        signs = (1.0, -1.0) if self.scheme == "3-point" else (1.0,)
        points = [_moved(plain, *move, sign, self.scheme) for move in moves for sign in signs]
        values = [np.asarray(value) for value in self.program.all_of(points, self.executor.code)]
        columns = self._columns(plain, moves, values)
        shape = np.shape(columns[0]) if columns else ()
        found, start = [], 0
        for array in plain:
            own = columns[start : start + array.size]
            stacked = np.moveaxis(np.array(own).reshape((array.size, *shape)), 0, -1)
            found.append(stacked.reshape((*shape, *array.shape)))
            start += array.size
        return tuple(found)

    def _step(self, value: float) -> float:
        return float(STEPS[self.scheme] * max(1.0, abs(value)))

    def _real(self, value: Any) -> FloatArray:
        found = np.asarray(value)
        if np.iscomplexobj(found) and self.scheme == "complex-step":
            found = found.real  # a program may return complex numbers always
        return np.asarray(found, dtype=float)

    def _columns(self, plain: list[FloatArray], moves: Any, values: list[Any]) -> list[FloatArray]:
        if self.scheme == "complex-step":
            return self._imaginary(moves, values)
        known = self._last.get("key") == _bytes(plain)
        here = self._last["value"] if known else self.value(*plain)
        if self.scheme == "2-point":
            pairs = zip(moves, values, strict=True)
            return [self._forward(plain, move, here, value) for move, value in pairs]
        sides = zip(moves, values[::2], values[1::2], strict=True)
        return [self._central(plain, move, here, *both) for move, *both in sides]

    def _imaginary(self, moves: Any, values: list[Any]) -> list[FloatArray]:
        if values and not any(np.iscomplexobj(value) for value in values):
            raise ModelError(
                f"'{self.__name__}' returned real numbers for complex arguments, so that "
                'grad="complex-step" sees no change; use grad="2-point" or "3-point"'
            )
        return [np.imag(value) / move[2] for move, value in zip(moves, values, strict=True)]

    def _forward(self, plain: list[FloatArray], move: Any, here: Any, value: Any) -> FloatArray:
        """The difference to one side, or to the other one where the first is not defined."""
        number, entry, step = move
        if np.isfinite(here).all() and not np.isfinite(value).all():
            value, step = self._at(_moved(plain, number, entry, step, -1.0, self.scheme)), -step
        return np.asarray((value - here) / step)

    def _central(
        self, plain: list[FloatArray], move: Any, here: Any, above: Any, below: Any
    ) -> FloatArray:
        """The central difference; across a kink, where the two sides disagree, a much shorter one.

        The mean of two pieces is not a slope of either, and no cut may rest on it.
        """
        number, entry, step = move
        after, before = (above - here) / step, (here - below) / step
        finite = [bool(np.isfinite(side).all()) for side in (after, before)]
        if finite == [True, False]:
            return np.asarray(after)
        if finite == [False, True]:
            return np.asarray(before)
        size = np.max(np.abs([after, before]), initial=0.0)
        if not np.max(np.abs(after - before), initial=0.0) > DISAGREEMENT * size:
            return np.asarray((above - below) / (2 * step))
        short = STEPS["2-point"] * step / STEPS[self.scheme]
        near = _moved(plain, number, entry, short, 1.0, self.scheme)
        return np.asarray((self._at(near) - here) / short)

    def _at(self, point: list[Any]) -> Any:
        return np.asarray(self.program(*point))


@dataclass(frozen=True)
class Values:
    """The values that belong to a gradient, which shares work with it."""

    of: Differences | TapedProgram

    @property
    def __name__(self) -> str:
        return name_of(self.of.program)

    def __call__(self, *arrays: Any) -> Any:
        return self.of.value(*arrays)


def _moved(
    plain: list[FloatArray], number: int, entry: Any, step: float, sign: float, scheme: str
) -> list[Any]:
    point = [array.copy() for array in plain]
    if scheme == "complex-step":
        moved = point[number].astype(complex)
        moved[entry] += 1j * step
        return [*point[:number], moved, *point[number + 1 :]]
    point[number][entry] += sign * step
    return point


def _bytes(arrays: Sequence[FloatArray]) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def prepared(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of `hc.function` with counts, the cache and differences put in place."""
    if isinstance(params["callable"], (Program, Values)):
        return params  # a node that is made again with other arguments
    grad, executor = params["grad"], params["executor"]
    if isinstance(grad, str) and grad not in STEPS:
        known = ", ".join(f'"{name}"' for name in STEPS)
        raise ModelError(f"grad of hc.function is a callable or one of {known}, not {grad!r}")
    if executor is not None and not (isinstance(grad, str) and hasattr(executor, "submit")):
        raise ModelError(
            "executor of hc.function is an object with a method `submit`, such as those of "
            'concurrent.futures, and evaluates the points of grad="2-point", "3-point" or "complex-step"'
        )
    store = None if params["cache"] is None else EvaluationStore.at(params["cache"])
    program = Program(_Same(params["callable"]), store=store)
    code: Any = program
    if isinstance(grad, str):
        grad = Differences(program, grad, _Same(executor))
        code = Values(grad)
    elif grad is not None:
        grad = Program(_Same(grad), "gradients", store, program.calls)
    elif store is not None:
        grad = TapedProgram(program)
        code = Values(grad)
    return {**params, "callable": code, "grad": grad, "cache": None, "executor": None}


def differences_of(code: Callable[..., Any], scheme: str) -> Differences:
    """The gradient of a function by differences."""
    return Differences(Program(_Same(code)), scheme)


def program_of(params: dict[str, Any]) -> Program:
    """The program behind the parameters of a node."""
    code = params["callable"]
    found = code.of.program if isinstance(code, Values) else code
    assert isinstance(found, Program)
    return found
