"""What lies between hcmodel and a user's program: counts, a cache on disk, differences for gradients.

Every call of the program goes through `Program`, which counts it, and looks it up in the cache first
where there is one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import is_traced, taped
from hcmodel.atoms.autodiff import xp as traced_numpy
from hcmodel.atoms.call_memory import current, key_of_call
from hcmodel.atoms.evaluation_store import EvaluationStore, identity_of, key_of
from hcmodel.errors import ModelError
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)
# The step of each scheme, relative to max(1, |x|), at which rounding and truncation are balanced;
# a complex step has no rounding.
STEPS = {"2-point": EPSILON ** (1 / 2), "3-point": EPSILON ** (1 / 3), "complex-step": 1e-30}


@dataclass(frozen=True)
class KinkRules:
    """How differences notice that they mix the slopes of two pieces (tests/benchmarks/black_boxes.py)."""

    # The part of the change that differences fail to predict, relative to the slopes at the point and,
    # near a minimum, to a share of the largest slope seen. Smooth functions miss by about the step.
    disagreement: float = 1e-2
    # The share: below it, slopes near a minimum are rounding and curvature, not another piece.
    share: float = 1e-2
    # Then the differences are taken beside the point, this many steps away, ...
    steps: float = 10.0
    # ... this often, ...
    tries: int = 3
    # ... unless this failed as often before: then the program is noisy, and nothing helps.
    failures: int = 5
    # The share of such points from which gradients count as noise.
    noisy: float = 0.5
    seed: int = 0


KINKS = KinkRules()


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
        return FunctionCalls(
            self.values + other.values,
            self.gradients + other.gradients,
            self.cached + other.cached,
        )

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
        traced = False
        for array in arrays:
            traced = traced or (type(array) is not np.ndarray and is_traced(array))
        if self.store is not None and not traced:
            return self.all_of([arrays])[0]
        memory = current() if self.kind == "values" else None
        if memory is None:
            self._count()
            return self._called(arrays)
        key = key_of_call(self.same.code, arrays)
        known = None if traced or key is None else memory.find(key)
        if known is not None:
            return known
        memory.draw(1)
        self._count()
        value = self._called(arrays)
        if key is not None:
            memory.keep(key, value)
        return value

    def _called(self, arrays: Sequence[Any]) -> Any:
        """The program's answer; it gets arrays of its own, which it may change."""
        own = [
            np.array(each) if type(each) is np.ndarray or not is_traced(each) else each
            for each in arrays
        ]
        found = self.same.code(*own)
        return self._given(found) if found is None else found

    def _given(self, value: Any) -> Any:
        if value is None:
            raise ModelError(f"'{self.__name__}' returned None; does it have a return statement?")
        return value

    def all_of(self, points: Sequence[Sequence[Any]], executor: Any = None) -> list[Any]:
        """The values at several points; those that are not in the cache may go to an executor."""
        found = [self._looked_up(point) for point in points]
        missing = [place for place, value in enumerate(found) if value is None]
        memory, futures = current() if self.kind == "values" else None, []
        if memory is not None:
            memory.draw(len(missing))
        if executor is not None:
            futures = [executor.submit(self.callable, *points[place]) for place in missing]
        for number, place in enumerate(missing):
            self._count()
            value = self._result(futures[number]) if futures else self._called(points[place])
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
            return self._given(future.result())
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

    "2-point" takes one call for each entry of the arguments and one more that checks them, "3-point" two
    for each entry, and "complex-step" one with complex numbers, exact to rounding for functions that
    can take them. Differences across a kink mix the slopes of two pieces, and such a mixture is not a
    slope of the function: they are noticed, and taken again beside the point. No point lies outside
    of the bounds that `within` was told.
    """

    program: Program
    scheme: str
    executor: _Same = field(default_factory=lambda: _Same(None))
    _last: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def __name__(self) -> str:
        return name_of(self.program)

    @property
    def noise(self) -> str | None:
        """In words, if differences contradict each other so often that they are noise."""
        failures, taken = self._last.get("failures", 0), self._last.get("taken", 0)
        if failures < KINKS.failures or failures < KINKS.noisy * taken:
            return None
        return f"{failures} of {taken} gradients"

    def within(self, limits: Sequence[tuple[FloatArray, FloatArray] | None]) -> None:
        """Keep the evaluations inside of bounds, one pair for each argument that has them."""
        self._last["limits"] = tuple(limits)

    def _inside(self, arrays: Sequence[Any]) -> list[FloatArray]:
        """The arguments; entries that rounding has put outside of a bound, as exp(log 3), lie on it."""
        plain = [np.asarray(array, dtype=float) for array in arrays]
        known = self._last.get("limits") or [None] * len(plain)
        for number, pair in enumerate(known):
            if pair is not None:
                held = np.clip(plain[number], *pair)
                near = np.abs(plain[number] - held) <= DATA_ROUNDING * np.maximum(1.0, np.abs(held))
                plain[number] = np.asarray(np.where(near, held, plain[number]))
        return plain

    def limits(self, plain: list[FloatArray]) -> list[tuple[FloatArray, FloatArray]]:
        """Bounds of all entries, as far as the point keeps them itself."""
        known = self._last.get("limits") or [(-np.inf, np.inf)] * len(plain)
        free = (-np.inf, np.inf)
        return [
            (np.minimum((pair or free)[0], array), np.maximum((pair or free)[1], array))
            for array, pair in zip(plain, known, strict=True)
        ]

    def value(self, *arrays: Any) -> Any:
        """The function itself; the last value is kept for the differences."""
        plain = self._inside(arrays)
        found = self._real(self.program(*plain))
        self._last.update(key=_bytes(plain), value=found)
        return found

    def __call__(self, *arrays: Any) -> tuple[FloatArray, ...]:
        plain = self._inside(arrays)
        if self.scheme == "complex-step":
            return _assembled(plain, self._imaginary(plain))
        known = self._last.get("key") == _bytes(plain)
        here = self._last["value"] if known else self.value(*plain)
        taken = self._both_sides if self.scheme == "3-point" else self._one_side
        columns, mixed = taken(plain, here)
        failures = self._last.setdefault("failures", 0)
        self._last["taken"] = self._last.get("taken", 0) + 1
        generator = np.random.default_rng(KINKS.seed)
        for _ in range(KINKS.tries if mixed and failures < KINKS.failures else 0):
            limits = self.limits(plain)
            beside = [
                np.asarray(np.clip(_beside(array, generator), *pair))
                for array, pair in zip(plain, limits, strict=True)
            ]
            found, mixed = self._one_side(beside, self._real(self.program(*beside)))
            if not mixed:
                return _assembled(plain, found)
        self._last["failures"] += int(mixed)
        return _assembled(plain, columns)

    def _real(self, value: Any) -> FloatArray:
        found = np.asarray(value)
        if np.iscomplexobj(found) and self.scheme == "complex-step":
            found = found.real  # a program may return complex numbers always
        return np.asarray(found, dtype=float)

    def _all_of(self, points: Sequence[Sequence[Any]]) -> list[Any]:
        return [np.asarray(value) for value in self.program.all_of(points, self.executor.code)]

    def _imaginary(self, plain: list[FloatArray]) -> list[FloatArray]:
        moves = _moves(plain, self.scheme)
        points = []
        for number, entry, step in moves:
            moved = plain[number].astype(complex)
            moved[entry] += 1j * step
            points.append([*plain[:number], moved, *plain[number + 1 :]])
        values = self._all_of(points)
        if values and not any(np.iscomplexobj(value) for value in values):
            raise ModelError(
                f"'{self.__name__}' returned real numbers for complex arguments, so that "
                'grad="complex-step" sees no change; use grad="2-point" or "3-point"'
            )
        return [np.imag(value) / move[2] for move, value in zip(moves, values, strict=True)]

    def _one_side(self, plain: list[FloatArray], here: Any) -> tuple[list[FloatArray], bool]:
        """Differences to one side, and whether a step back in all entries contradicts them."""
        limits = self.limits(plain)
        moves = [_inward(plain, move, limits, 1) for move in _moves(plain, "2-point")]
        back, undone = [array.copy() for array in plain], []
        for number, entry, step in moves:
            there = back[number][entry] - step
            undone.append(bool(limits[number][0][entry] <= there <= limits[number][1][entry]))
            back[number][entry] = there if undone[-1] else back[number][entry]
        points = [_moved(plain, *move) for move in moves]
        *values, check = (
            self._all_of([*points, back]) if any(undone) else [*self._all_of(points), here]
        )
        if not np.isfinite(here).all():
            return [
                _ratio(value - here, move[2]) for move, value in zip(moves, values, strict=True)
            ], False
        columns = []
        for (number, entry, step), value, behind in zip(moves, values, undone, strict=True):
            if np.isfinite(value).all() or not behind:
                columns.append(_ratio(value - here, step))
                continue  # else the function ends here, and the other side is taken
            other = np.asarray(self.program(*_moved(plain, number, entry, -step)))
            columns.append(_ratio(here - other, step))
        if not any(undone):
            return columns, False
        steps = [step * behind for (_, _, step), behind in zip(moves, undone, strict=True)]
        parts = [step * column for step, column in zip(steps, columns, strict=True)]
        miss = np.abs(check - here + np.sum(parts, axis=0))
        return columns, self._is_mixed(columns, miss / max(np.abs(steps)))

    def _both_sides(self, plain: list[FloatArray], here: Any) -> tuple[list[FloatArray], bool]:
        """Central differences, and whether those of the two sides contradict each other.

        Where a bound leaves no room on one side, two points on the other one take their place.
        """
        limits, moves, points = self.limits(plain), [], []
        for move in _moves(plain, self.scheme):
            number, entry, step = move
            here_is = plain[number][entry]
            low, high = limits[number][0][entry], limits[number][1][entry]
            central = bool(low <= here_is - step and here_is + step <= high)
            if not central:
                step = _inward(plain, move, limits, 2)[2]
            moves.append((step, central))
            points += [_moved(plain, number, entry, step)]
            points += [_moved(plain, number, entry, -step if central else 2 * step)]
        values = self._all_of(points)
        columns, miss = [], np.zeros(np.shape(here))
        for (step, central), first, second in zip(moves, values[::2], values[1::2], strict=True):
            after = _ratio(first - here, step)
            other = _ratio(here - second, step) if central else _ratio(second - first, step)
            finite = [bool(np.isfinite(side).all()) for side in (after, other)]
            if finite == [True, True]:
                miss = np.maximum(miss, np.abs(after - other))
                columns.append(
                    np.asarray((after + other) / 2 if central else (3 * after - other) / 2)
                )
            else:  # the function ends here
                columns.append(np.asarray(after if finite[0] or not central else other))
        return columns, self._is_mixed(columns, miss)

    def _is_mixed(self, columns: list[FloatArray], miss: Any) -> bool:
        """Whether what differences fail to predict is more than curvature and rounding explain."""
        slope = float(np.max(np.abs(columns), initial=0.0))
        if not (np.isfinite(slope) and np.isfinite(miss).all()):
            return False
        steepest = max(slope, float(self._last.get("slope", 0.0)))
        self._last["slope"] = steepest
        allowed = KINKS.disagreement * max(slope, KINKS.share * steepest)
        return float(np.max(miss, initial=0.0)) > allowed


def _moves(plain: list[FloatArray], scheme: str) -> list[tuple[int, Any, float]]:
    """Argument, entry and length of each step."""
    return [
        (number, entry, STEPS[scheme] * max(1.0, abs(float(array[entry]))))
        for number, array in enumerate(plain)
        for entry in np.ndindex(array.shape)
    ]


def _inward(
    plain: list[FloatArray],
    move: tuple[int, Any, float],
    limits: list[tuple[FloatArray, FloatArray]],
    times: int,
) -> tuple[int, Any, float]:
    """A step that stays inside of the bounds when it is taken so often; 0 where they leave no room."""
    number, entry, step = move
    here = float(plain[number][entry])
    below, above = here - float(limits[number][0][entry]), float(limits[number][1][entry]) - here
    if times * step <= above:
        return move
    if times * step <= below:
        return number, entry, -step
    return number, entry, above / times if above >= below else -below / times


def _ratio(change: Any, step: float) -> FloatArray:
    """A difference quotient; 0 for a variable that its bounds fix."""
    return np.asarray(change / step if step else np.zeros(np.shape(change)))


def _moved(plain: list[FloatArray], number: int, entry: Any, step: float) -> list[FloatArray]:
    point = [array.copy() for array in plain]
    point[number][entry] += step
    return point


def _beside(array: FloatArray, generator: np.random.Generator) -> FloatArray:
    length = KINKS.steps * STEPS["2-point"] * np.maximum(1.0, np.abs(array))
    return np.asarray(array + length * generator.uniform(-1.0, 1.0, array.shape))


def _assembled(plain: list[FloatArray], columns: list[FloatArray]) -> tuple[FloatArray, ...]:
    """Derivatives by each entry as one array for each argument."""
    shape = np.shape(columns[0]) if columns else ()
    found, start = [], 0
    for array in plain:
        own = columns[start : start + array.size]
        stacked = np.moveaxis(np.array(own).reshape((array.size, *shape)), 0, -1)
        found.append(stacked.reshape((*shape, *array.shape)))
        start += array.size
    return tuple(found)


@dataclass(frozen=True)
class Values:
    """The values that belong to a gradient, which shares work with it."""

    of: Differences | TapedProgram

    @property
    def __name__(self) -> str:
        return name_of(self.of.program)

    def __call__(self, *arrays: Any) -> Any:
        return self.of.value(*arrays)


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
