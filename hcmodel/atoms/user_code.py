"""What stands between hcmodel and a user's program: differences for gradients, and a cache on disk."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError

FloatArray = NDArray[np.float64]

EPSILON = float(np.finfo(float).eps)
# The step of each scheme, relative to max(1, |x|), at which rounding and truncation are balanced;
# a complex step has no rounding.
DISAGREEMENT = 1e-3  # of the differences on both sides: smooth functions differ by about the step
STEPS = {"2-point": EPSILON ** (1 / 2), "3-point": EPSILON ** (1 / 3), "complex-step": 1e-30}


def name_of(code: Any) -> str:
    """What a message calls a user's function."""
    return getattr(code, "__name__", None) or type(code).__name__


@dataclass(frozen=True, eq=False)
class Code:
    """A callable that has no hash, compared by identity."""

    callable: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return name_of(self.callable)

    def __call__(self, *arrays: Any) -> Any:
        return self.callable(*arrays)


@dataclass(frozen=True)
class Cached:
    """A function whose values are kept in a file, so that an interrupted run need not repeat them.

    The key is the name of the function and its arguments to the last bit: another function under
    the same name needs another file.
    """

    callable: Callable[..., Any]
    path: str
    kind: str = "value"

    @property
    def __name__(self) -> str:
        return name_of(self.callable)

    def __call__(self, *arrays: Any) -> Any:
        import sqlite3  # imported late: few programs use it

        plain = [np.asarray(array, dtype=float) for array in arrays]
        key = self._key(plain)
        with sqlite3.connect(self.path) as store:
            store.execute(
                "create table if not exists evaluations (key text primary key, value blob)"
            )
            found = store.execute("select value from evaluations where key = ?", (key,)).fetchone()
        store.close()
        if found is not None:
            loaded = np.load(io.BytesIO(found[0]), allow_pickle=False)
            values = [loaded[f"arr_{i}"] for i in range(len(loaded.files))]
            return values[0] if len(values) == 1 else tuple(values)
        value = self.callable(*plain)
        buffer = io.BytesIO()
        parts = value if isinstance(value, (tuple, list)) else (value,)
        np.savez(buffer, *[np.asarray(part, dtype=float) for part in parts])
        with sqlite3.connect(self.path) as store:
            store.execute(
                "insert or replace into evaluations values (?, ?)", (key, buffer.getvalue())
            )
        store.close()
        return value

    def _key(self, arrays: Sequence[FloatArray]) -> str:
        digest = hashlib.sha256(f"{self.kind} {name_of(self.callable)}".encode())
        for array in arrays:
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Differences:
    """The gradient of a function by differences; `executor` takes the evaluations at moved points.

    "2-point" takes one call for each entry of the arguments, "3-point" two, and "complex-step" one
    with complex numbers, exact to rounding for functions that can take them.
    """

    callable: Callable[..., Any]
    scheme: str
    executor: Any = None
    _last: dict[str, Any] = field(default_factory=dict, repr=False)

    def value(self, *arrays: Any) -> Any:
        """The function itself; the last value is kept for the differences."""
        plain = [np.asarray(array, dtype=float) for array in arrays]
        found = np.asarray(self.callable(*plain), dtype=float)
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
        values = self._evaluated(points)
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

    def _evaluated(self, points: Sequence[Sequence[Any]]) -> list[Any]:
        if self.executor is None:
            return [np.asarray(self.callable(*point)) for point in points]
        futures = [self.executor.submit(self.callable, *point) for point in points]
        return [np.asarray(future.result()) for future in futures]

    def _columns(self, plain: list[FloatArray], moves: Any, values: list[Any]) -> list[FloatArray]:
        steps = np.array([step for _, _, step in moves])
        if self.scheme == "complex-step":
            if not any(np.iscomplexobj(value) for value in values):
                raise ModelError(
                    f"'{name_of(self.callable)}' returned real numbers for complex arguments, so that "
                    'grad="complex-step" sees no change; use grad="2-point" or "3-point"'
                )
            return [np.imag(v) / step for v, step in zip(values, steps, strict=True)]
        known = self._last.get("key") == _bytes(plain)
        here = self._last["value"] if known else self.value(*plain)
        if self.scheme == "2-point":
            return [(v - here) / step for v, step in zip(values, steps, strict=True)]
        pairs = zip(moves, values[::2], values[1::2], strict=True)
        return [self._central(plain, move, here, *sides) for move, *sides in pairs]

    def _central(
        self, plain: list[FloatArray], move: Any, here: Any, above: Any, below: Any
    ) -> FloatArray:
        """The central difference; across a kink, where the two sides disagree, a much shorter one.

        The mean of two pieces is not a slope of either, and no cut may rest on it.
        """
        number, entry, step = move
        after, before = (above - here) / step, (here - below) / step
        size = np.max(np.abs([after, before]), initial=0.0)
        if np.max(np.abs(after - before), initial=0.0) <= DISAGREEMENT * size:
            return np.asarray((above - below) / (2 * step))
        short = STEPS["2-point"] * step / STEPS[self.scheme]
        near = _moved(plain, number, entry, short, 1.0, self.scheme)
        return np.asarray((np.asarray(self.callable(*near)) - here) / short)


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
    """Parameters of `hc.function` with differences and the cache put in place."""
    code, grad, cache = params["callable"], params["grad"], params["cache"]
    executor = params["executor"]
    if isinstance(grad, str) and grad not in STEPS:
        known = ", ".join(f'"{name}"' for name in STEPS)
        raise ModelError(f"grad of hc.function is a callable or one of {known}, not {grad!r}")
    if executor is not None and not (isinstance(grad, str) and hasattr(executor, "submit")):
        raise ModelError(
            "executor of hc.function is an object with a method `submit`, such as those of "
            'concurrent.futures, and evaluates the points of grad="2-point" or "3-point"'
        )
    try:
        hash(code)
    except TypeError:
        code = Code(code)
    if cache is not None:
        folder = Path(cache).expanduser().resolve().parent
        if not folder.is_dir():
            raise ModelError(f"cache={str(cache)!r}: there is no folder {folder}")
        code = Cached(code, str(Path(cache).expanduser().resolve()))
        if grad is not None and not isinstance(grad, str):
            grad = Cached(grad, code.path, "gradient")
    if isinstance(grad, str):
        grad = Differences(code, grad, executor)
        code = grad.value
    return {**params, "callable": code, "grad": grad, "cache": None, "executor": None}
