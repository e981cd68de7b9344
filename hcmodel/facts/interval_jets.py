"""Enclosures of values, gradients and Hessians over boxes: second-order interval arithmetic.

A `Jet` stands for an array of functions of a few unknowns, over many boxes at once. Its namespace `JETS`
has numpy's names, so that the formula of an atom is run on it as on numbers; what the namespace does not
have cannot be enclosed (`NotEnclosed`). Ends are rounded outward, so that a sign read off them is proven.
Moore, Kearfott and Cloud, Introduction to Interval Analysis (2009), chapters 2 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.graph import Graph, Step
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.sparse_data import dense
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY

FloatArray = NDArray[np.float64]


class NotEnclosed(Exception):  # noqa: N818  (an answer, not an error)
    """The formula uses something that interval arithmetic does not have."""


# ---- intervals: pairs of arrays of ends


@dataclass(frozen=True, eq=False)
class Interval:
    """Ends of equal shapes; infinite where nothing is known."""

    low: FloatArray
    high: FloatArray

    @staticmethod
    def of(low: Any, high: Any) -> Interval:
        """Rounded outward; ends that are not numbers become infinite. What is exactly 0 stays 0."""
        low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        low, high = low - PRODUCT_ROUNDING * np.abs(low), high + PRODUCT_ROUNDING * np.abs(high)
        return Interval(np.fmax(low, -np.inf), np.fmin(high, np.inf))

    @staticmethod
    def exactly(value: Any) -> Interval:
        array = np.asarray(value, dtype=float)
        return Interval(array, array)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __add__(self, other: Interval) -> Interval:
        return Interval.of(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Interval) -> Interval:
        low, high = _ends([a * b for a in (self.low, self.high) for b in (other.low, other.high)])
        if some(np.isnan(low)):  # 0 times an infinite end is not a number
            pairs = [(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
            low, high = _ends([_product(a, b) for a, b in pairs])
        # a product of numbers other than 0 that underflows is not 0
        small = (np.abs(low) < TINY) | (np.abs(high) < TINY)
        if some(small) and some(small & ~(self.is_zero | other.is_zero)):
            lost = ~(self.is_zero | other.is_zero)
            alike, unlike = _alike(self, other), _alike(self, -other)
            low = np.where(lost & (np.abs(low) < TINY), np.where(alike, 0.0, -TINY), low)
            high = np.where(lost & (np.abs(high) < TINY), np.where(unlike, 0.0, TINY), high)
        return Interval.of(low, high)

    @property
    def is_zero(self) -> NDArray[np.bool_]:
        return np.asarray((self.low == 0) & (self.high == 0))

    @property
    def squared(self) -> Interval:
        ends = self.low * self.low, self.high * self.high
        inside = (self.low <= 0) & (self.high >= 0)
        high = np.maximum(*ends)
        high = np.where((high < TINY) & ~self.is_zero, TINY, high)
        return Interval.of(np.where(inside, 0.0, np.minimum(*ends)), high)

    @property
    def reciprocal(self) -> Interval:
        ends = (
            1.0 / np.where(self.high == 0, -0.0, self.high),
            1.0 / np.where(self.low == 0, 0.0, self.low),
        )
        lost = (self.low < 0) & (self.high > 0) | self.is_zero
        return Interval.of(np.where(lost, np.nan, ends[0]), np.where(lost, np.nan, ends[1]))

    def expanded(self, extra: int) -> Interval:
        """With axes of length 1 behind the others."""
        key = (..., *([None] * extra))
        return Interval(self.low[key], self.high[key])

    def monotone(self, function: Callable[[FloatArray], FloatArray]) -> Interval:
        """The values of an increasing function."""
        return Interval.of(function(self.low), function(self.high))

    def without(self, lost: NDArray[np.bool_]) -> Interval:
        """Nothing is known where marked."""
        return Interval(np.where(lost, -np.inf, self.low), np.where(lost, np.inf, self.high))

    def within(self, low: float, high: float) -> Interval:
        """What is left of it between two numbers."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high))


def _ends(corners: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """The least and the largest of four arrays, entry by entry."""
    a, b, c, d = corners
    low, high = (each(each(a, b), each(c, d)) for each in (np.minimum, np.maximum))
    return low, high


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """0 times an infinite end is 0: the numbers inside are finite."""
    found = a * b
    return np.where(np.isnan(found) & ((a == 0) | (b == 0)), 0.0, found)


def _alike(a: Interval, b: Interval) -> NDArray[np.bool_]:
    """Where both have one sign, and the same."""
    return np.asarray((a.low >= 0) & (b.low >= 0) | (a.high <= 0) & (b.high <= 0))


def _power(v: Interval, exponent: float) -> Interval:
    """vᵖ for a number p; nothing is known where a fractional power leaves its domain."""
    if exponent == 0:
        return Interval.exactly(np.ones_like(v.low))
    if exponent < 0:
        return _power(v, -exponent).reciprocal
    whole = float(exponent).is_integer()
    if whole and exponent % 2 == 0:
        size = Interval(
            np.where((v.low <= 0) & (v.high >= 0), 0.0, np.minimum(np.abs(v.low), np.abs(v.high))),
            np.maximum(np.abs(v.low), np.abs(v.high)),
        )
        return _not_lost(size, size.monotone(lambda a: a**exponent))
    if whole:
        return _not_lost(v, v.monotone(lambda a: a**exponent))
    found = v.monotone(lambda a: np.where(a < 0, np.nan, np.abs(a)) ** exponent)
    return _not_lost(v, found)


def _not_lost(argument: Interval, result: Interval) -> Interval:
    """An upper end that underflowed is not 0."""
    lost = (result.high < TINY) & (result.high >= 0) & (argument.high > 0)
    below = (result.low > -TINY) & (result.low <= 0) & (argument.low < 0)
    return Interval(
        np.where(below, np.minimum(result.low, -TINY), result.low),
        np.where(lost, TINY, result.high),
    )


def _exp(v: Interval) -> Interval:
    found = v.monotone(np.exp)
    return Interval(np.maximum(found.low, 0.0), np.maximum(found.high, TINY))


def _sine(v: Interval, shift: float) -> Interval:
    """sin(v + shift): the ends, and ±1 where a crest lies between them."""
    low, high = v.low + shift, v.high + shift
    slack = PRODUCT_ROUNDING * np.maximum(np.abs(low), np.abs(high)) + PRODUCT_ROUNDING
    low, high = low - slack, high + slack
    ends = np.sin(low), np.sin(high)

    def passes(phase: float) -> NDArray[np.bool_]:
        first = np.ceil((low - phase) / (2 * np.pi) - PRODUCT_ROUNDING)
        return np.asarray(phase + 2 * np.pi * first <= high + slack)

    known = np.isfinite(low) & np.isfinite(high)
    least = np.where(~known | passes(-np.pi / 2), -1.0, np.minimum(*ends) - slack)
    most = np.where(~known | passes(np.pi / 2), 1.0, np.maximum(*ends) + slack)
    return Interval(np.maximum(least, -1.0), np.minimum(most, 1.0))


def _sigmoid(v: Interval) -> Interval:
    found = v.monotone(lambda a: np.exp(-np.logaddexp(0.0, -a)))
    return Interval(np.clip(found.low, 0.0, 1.0), np.clip(np.maximum(found.high, TINY), 0.0, 1.0))


def _whole(value: float) -> Interval:
    return Interval.exactly(np.array(value))


# ---- functions of one number: value, first and second derivative

Derivatives = Callable[[Interval], tuple[Interval, Interval, Interval]]


def _of_log(v: Interval) -> tuple[Interval, Interval, Interval]:
    found = v.monotone(lambda a: np.log(np.where(a < 0, np.nan, a)))
    slope = v.reciprocal
    return found, slope, -slope.squared


def _of_tanh(v: Interval) -> tuple[Interval, Interval, Interval]:
    value = v.monotone(np.tanh).within(-1.0, 1.0)
    # 1 − tanh² = 1/cosh², largest where |v| is least
    least = np.where((v.low <= 0) & (v.high >= 0), 0.0, np.minimum(np.abs(v.low), np.abs(v.high)))
    most = np.maximum(np.abs(v.low), np.abs(v.high))
    slope = Interval.of(1 / np.cosh(most) ** 2, np.maximum(1 / np.cosh(least) ** 2, TINY))
    return value, slope, _whole(-2.0) * value * slope


def _of_softplus(v: Interval) -> tuple[Interval, Interval, Interval]:
    value, share = v.monotone(lambda a: np.logaddexp(0.0, a)), _sigmoid(v)
    return Interval(np.maximum(value.low, 0.0), value.high), share, share * _sigmoid(-v)


def _power_rule(exponent: float) -> Derivatives:
    def derivatives(v: Interval) -> tuple[Interval, Interval, Interval]:
        first = _whole(exponent) * _power(v, exponent - 1)
        second = _whole(exponent * (exponent - 1)) * _power(v, exponent - 2)
        return _power(v, exponent), first, second

    return derivatives


def _of_exp(v: Interval) -> tuple[Interval, Interval, Interval]:
    value = _exp(v)
    return value, value, value


def _of_sine(shift: float) -> Derivatives:
    quarter = np.pi / 2
    return lambda v: (_sine(v, shift), _sine(v, shift + quarter), -_sine(v, shift))


# ---- jets


class Certainty:
    """The answer to a comparison: where it is certainly true, and where certainly false."""

    __array_ufunc__ = None

    def __init__(self, true: Any, false: Any) -> None:
        self.true, self.false = np.asarray(true), np.asarray(false)

    def __and__(self, other: Certainty) -> Certainty:
        return Certainty(self.true & other.true, self.false | other.false)

    def __or__(self, other: Certainty) -> Certainty:
        return Certainty(self.true | other.true, self.false & other.false)

    def __bool__(self) -> bool:
        if self.true.all():
            return True
        if self.false.all():
            return False
        raise NotEnclosed


class Jet:
    """Values, gradients and Hessians of an array of functions, as intervals over a number of boxes.

    The array's own axes come first, then the box, then the unknowns.
    """

    __array_ufunc__ = None  # numbers leave the operators to us

    def __array__(self, *_: Any, **__: Any) -> FloatArray:
        # numpy would compare entries one by one, and an answer that is raised there is a SystemError
        raise NotEnclosed

    def __init__(self, value: Interval, gradient: Interval, hessian: Interval) -> None:
        self.value, self.gradient, self.hessian = value, gradient, hessian

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.low.shape[:-1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def T(self) -> Jet:  # noqa: N802  (numpy's name)
        return cast(Jet, JETS.transpose(self, None))

    def __len__(self) -> int:
        return self.shape[0]

    def mapped(self, function: Callable[[FloatArray, int], FloatArray]) -> Jet:
        """The same movement of entries in all arrays; it is told how many axes are not its own."""

        def both(interval: Interval, extra: int) -> Interval:
            return Interval(function(interval.low, extra), function(interval.high, extra))

        return Jet(both(self.value, 1), both(self.gradient, 2), both(self.hessian, 3))

    def among(self, boxes: Any) -> Jet:
        """The same functions over some of the boxes."""

        def part(interval: Interval, extra: int) -> Interval:
            if interval.low.shape[-1 - extra] == 1:  # the same over all of them
                return interval
            key = (..., boxes, *([slice(None)] * extra))
            return Interval(interval.low[key], interval.high[key])

        return Jet(part(self.value, 0), part(self.gradient, 1), part(self.hessian, 2))

    def __getitem__(self, key: Any) -> Jet:
        keys = key if isinstance(key, tuple) else (key,)
        if any(k is Ellipsis for k in keys):
            raise NotEnclosed
        return self.mapped(lambda array, extra: array[key])

    def composed(self, derivatives: Derivatives) -> Jet:
        """f of it, entry by entry, by the chain rule."""
        value, first, second = derivatives(self.value)
        # a function without a bound over a bounded interval has a pole, or is undefined, in it
        lost = np.isfinite(self.value.low) & np.isfinite(self.value.high)
        lost &= ~(np.isfinite(value.low) & np.isfinite(value.high))
        first, second = first.without(lost), second.without(lost)
        gradient = first.expanded(1) * self.gradient
        bent = second.expanded(2) * _outer(self.gradient, self.gradient, same=True)
        return Jet(value, gradient, first.expanded(2) * self.hessian + bent)

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.gradient, -self.hessian)

    def __pos__(self) -> Jet:
        return self

    def __add__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            other = _constant(other, self)
        return Jet(
            self.value + other.value, self.gradient + other.gradient, self.hessian + other.hessian
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> Jet:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Jet:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Jet:
        if id(other) == id(self):  # a square is not negative
            return self.composed(_power_rule(2.0))
        if not isinstance(other, Jet):
            factor = Interval.exactly(np.asarray(other, dtype=float)[..., None])
            return Jet(
                self.value * factor,
                self.gradient * factor.expanded(1),
                self.hessian * factor.expanded(2),
            )
        a, b = self.value, other.value
        crossed = _outer(self.gradient, other.gradient) + _outer(other.gradient, self.gradient)
        return Jet(
            a * b,
            a.expanded(1) * other.gradient + b.expanded(1) * self.gradient,
            a.expanded(2) * other.hessian + b.expanded(2) * self.hessian + crossed,
        )

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        if isinstance(other, Jet):
            return self * other.composed(_power_rule(-1.0))
        return self * (1.0 / np.asarray(other, dtype=float))

    def __rtruediv__(self, other: Any) -> Jet:
        return self.composed(_power_rule(-1.0)).__mul__(other)

    def __pow__(self, exponent: Any) -> Jet:
        return cast(Jet, JETS.power(self, exponent))

    def __matmul__(self, other: Any) -> Any:
        return JETS.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return JETS.matmul(other, self)

    def _against(self, other: Any) -> tuple[Interval, Interval]:
        bound = other.value if isinstance(other, Jet) else _constant(other, self).value
        return self.value, bound

    def __gt__(self, other: Any) -> Certainty:
        a, b = self._against(other)
        return Certainty(a.low > b.high, a.high <= b.low)

    def __ge__(self, other: Any) -> Certainty:
        a, b = self._against(other)
        return Certainty(a.low >= b.high, a.high < b.low)

    def __lt__(self, other: Any) -> Certainty:
        a, b = self._against(other)
        return Certainty(a.high < b.low, a.low >= b.high)

    def __le__(self, other: Any) -> Certainty:
        a, b = self._against(other)
        return Certainty(a.high <= b.low, a.low > b.high)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        raise NotEnclosed

    def __ne__(self, other: object) -> Any:
        if other is self:  # as formulas ask for NaN
            known = np.ones(self.value.low.shape, dtype=bool)
            return Certainty(~known, known)
        a, b = self._against(other)
        return Certainty((a.low > b.high) | (a.high < b.low), (a.low == b.high) & (a.high == b.low))


def _outer(a: Interval, b: Interval, *, same: bool = False) -> Interval:
    """aᵢ·bⱼ; the squares on the diagonal of `same` are not negative."""
    left = Interval(a.low[..., :, None], a.high[..., :, None])
    right = Interval(b.low[..., None, :], b.high[..., None, :])
    found = left * right
    if same:
        squares, size = a.squared, a.low.shape[-1]
        own = np.eye(size, dtype=bool)
        found = Interval(
            np.where(own, squares.low[..., None], found.low),
            np.where(own, squares.high[..., None], found.high),
        )
    return found


def _constant(value: Any, like: Jet) -> Jet:
    """Numbers as a jet with as many boxes and unknowns."""
    array = np.asarray(value, dtype=float)[..., None]
    unknowns = like.gradient.low.shape[-1]
    zero = Interval.exactly(np.zeros((*array.shape, unknowns)))
    return Jet(
        Interval(
            np.where(np.isnan(array), -np.inf, array), np.where(np.isnan(array), np.inf, array)
        ),
        zero,
        Interval.exactly(np.zeros((*array.shape, unknowns, unknowns))),
    )


class _Namespace:
    """The functions of numpy that formulas of atoms use, on jets."""

    def __getattr__(self, name: str) -> Any:
        raise NotEnclosed

    def exp(self, a: Any) -> Any:
        return a.composed(_of_exp) if isinstance(a, Jet) else np.exp(a)

    def expm1(self, a: Any) -> Any:
        return self.exp(a) - 1.0

    def log(self, a: Any) -> Any:
        return a.composed(_of_log) if isinstance(a, Jet) else np.log(a)

    def log1p(self, a: Any) -> Any:
        return self.log(a + 1.0) if isinstance(a, Jet) else np.log1p(a)

    def sqrt(self, a: Any) -> Any:
        return self.power(a, 0.5)

    def sin(self, a: Any) -> Any:
        return a.composed(_of_sine(0.0)) if isinstance(a, Jet) else np.sin(a)

    def cos(self, a: Any) -> Any:
        return a.composed(_of_sine(np.pi / 2)) if isinstance(a, Jet) else np.cos(a)

    def tanh(self, a: Any) -> Any:
        return a.composed(_of_tanh) if isinstance(a, Jet) else np.tanh(a)

    def logaddexp(self, a: Any, b: Any) -> Any:
        difference = b - a
        if not isinstance(difference, Jet):
            return np.logaddexp(a, b)
        return difference.composed(_of_softplus) + a

    def power(self, a: Any, p: Any) -> Any:
        if isinstance(p, Jet):
            return self.exp(p * self.log(a))
        exponents = np.unique(np.asarray(p, dtype=float))
        if not isinstance(a, Jet):
            return np.power(a, p)
        if exponents.size != 1:
            raise NotEnclosed
        return self._spread(a, np.shape(p)).composed(_power_rule(float(exponents[0])))

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        if not isinstance(condition, Certainty):
            raise NotEnclosed
        like = a if isinstance(a, Jet) else b
        if not isinstance(like, Jet):
            raise NotEnclosed
        first, second = (x if isinstance(x, Jet) else _constant(x, like) for x in (a, b))

        def chosen(one: Interval, other: Interval, extra: int) -> Interval:
            key = (..., *([None] * extra))
            true, false = condition.true[key], condition.false[key]
            return Interval(
                np.where(true, one.low, np.where(false, other.low, -np.inf)),
                np.where(true, one.high, np.where(false, other.high, np.inf)),
            )

        return Jet(
            chosen(first.value, second.value, 0),
            chosen(first.gradient, second.gradient, 1),
            chosen(first.hessian, second.hessian, 2),
        )

    def zeros(self, shape: Any) -> Any:
        return np.zeros(shape)

    def reshape(self, a: Any, shape: Any) -> Any:
        if not isinstance(a, Jet):
            return np.reshape(a, shape)
        target = np.empty(a.shape).reshape(shape).shape
        return a.mapped(lambda array, extra: array.reshape(*target, *array.shape[-extra:]))

    def transpose(self, a: Any, axes: Any = None) -> Any:
        if not isinstance(a, Jet):
            return np.transpose(a, axes)
        order = tuple(reversed(range(a.ndim))) if axes is None else tuple(axes)
        return a.mapped(
            lambda array, extra: array.transpose(*order, *range(a.ndim, a.ndim + extra))
        )

    def sum(self, a: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if not isinstance(a, Jet):
            return np.sum(a, axis=axis, keepdims=keepdims)
        axes = range(a.ndim) if axis is None else np.atleast_1d(axis)
        own = tuple(int(i) % a.ndim for i in axes)

        def total(interval: Interval) -> Interval:
            ends = [
                np.sum(end, axis=own, keepdims=keepdims) for end in (interval.low, interval.high)
            ]
            sizes = np.maximum(np.abs(interval.low), np.abs(interval.high))
            slack = PRODUCT_ROUNDING * np.sum(sizes, axis=own, keepdims=keepdims)
            slack = np.where(np.isfinite(slack), slack, 0.0)
            return Interval.of(ends[0] - slack, ends[1] + slack)

        return Jet(total(a.value), total(a.gradient), total(a.hessian))

    def mean(self, a: Any, axis: Any = None) -> Any:
        if not isinstance(a, Jet):
            return np.mean(a, axis=axis)
        total = self.sum(a, axis=axis)
        return total * (total.size / a.size)

    def concatenate(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        like = next((each for each in arrays if isinstance(each, Jet)), None)
        if like is None:
            return np.concatenate(arrays, axis=axis)
        jets = [each if isinstance(each, Jet) else _constant(each, like) for each in arrays]
        boxes, place = like.value.low.shape[-1], int(axis) % like.ndim

        def joined(parts: Sequence[Interval], extra: int) -> Interval:
            ends = []
            for end in ("low", "high"):
                own = [getattr(part, end) for part in parts]
                spread = [
                    np.broadcast_to(
                        array,
                        (
                            *array.shape[: array.ndim - extra],
                            boxes,
                            *array.shape[1 + array.ndim - extra :],
                        ),
                    )
                    for array in own
                ]
                ends.append(np.concatenate(spread, axis=place))
            return Interval(ends[0], ends[1])

        return Jet(
            joined([jet.value for jet in jets], 1),
            joined([jet.gradient for jet in jets], 2),
            joined([jet.hessian for jet in jets], 3),
        )

    def matmul(self, a: Any, b: Any) -> Any:
        if np.ndim(a) == 1 and np.ndim(b) == 1:
            return self.sum(a * b)
        if np.ndim(a) == 2 and np.ndim(b) == 1:
            return self.sum(a * self.reshape(b, (1, -1)), axis=1)
        if np.ndim(a) == 1 and np.ndim(b) == 2:
            return self.sum(self.reshape(a, (-1, 1)) * b, axis=0)
        if np.ndim(a) != 2 or np.ndim(b) != 2:
            raise NotEnclosed
        left = self.reshape(a, (*np.shape(a), 1))
        return self.sum(left * self.reshape(b, (1, *np.shape(b))), axis=1)

    dot = matmul

    def _spread(self, a: Jet, shape: tuple[int, ...]) -> Jet:
        return a if not shape else a + np.zeros(shape)


JETS = _Namespace()


# ---- from expressions


def seeds(
    low: FloatArray,
    high: FloatArray,
    logs: NDArray[np.bool_],
    moving: NDArray[np.bool_] | None = None,
) -> Jet:
    """The unknowns over boxes (one per row); where marked, u = log x is the unknown and the jet is x.

    Derivatives are taken by those that are `moving`, all of them by default.
    """
    boxes, size = low.shape
    by = np.arange(size) if moving is None else moving.nonzero()[0]
    unit = np.zeros((size, boxes, by.size))
    unit[by, :, np.arange(by.size)] = 1.0
    found = Jet(
        Interval(low.T.copy(), high.T.copy()),
        Interval.exactly(unit),
        Interval.exactly(np.zeros((size, boxes, by.size, by.size))),
    )
    if not logs.any():
        return found
    parts = [
        JETS.exp(found[i : i + 1]) if marked else found[i : i + 1] for i, marked in enumerate(logs)
    ]
    return JETS.concatenate(parts)  # type: ignore[no-any-return]


def enclosed(graph: Graph, layout: Layout, unknowns: Jet) -> list[Any]:
    """The roots of a graph over the boxes: jets, or numbers where no unknown is in them."""
    arrays = layout.unpack(JETS, unknowns)
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for step in graph.steps:
            if step.atom is None:
                leaf = step.leaf
                if isinstance(leaf, Variable):
                    values.append(arrays[layout.position(leaf)])
                    continue
                if leaf is None or leaf.value is None:
                    raise NotEnclosed
                values.append(dense(leaf.value))
            elif any(isinstance(values[i], Jet) for i in step.arguments):
                values.append(_applied(step, values))
            else:
                values.append(dense(step.fold(values)))
    return [values[root] for root in graph.roots]


def _applied(step: Step, values: Sequence[Any]) -> Any:
    if step.atom is not None and step.atom.black_box:
        raise NotEnclosed  # a user's code is run on numbers only
    try:
        found = step.run(JETS, values)
    except NotEnclosed:
        raise
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise NotEnclosed from error  # a formula that asks for numbers
    if isinstance(found, Jet) and found.shape != step.shape:
        found = JETS.reshape(found, step.shape)
    return found
