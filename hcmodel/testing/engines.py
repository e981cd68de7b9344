"""`check_engine`: every atom of the table, and models as people write them, on one engine.

Values are compared with numpy. First derivatives are compared with central differences of the values,
second derivatives with those of the reference engine, whose own are compared with central differences of
its gradients.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms import det, exp, inv, log, norm, sqrt, square, trace
from hcmodel.atoms import sum as total
from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.engine import CompiledStack, Engine, Forward
from hcmodel.engines.forward import SPARSE_ROWS
from hcmodel.engines.graph_program import Program
from hcmodel.engines.registry import unable
from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression, Parameter, Variable
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.storage import as_array
from hcmodel.testing.naming import named
from hcmodel.testing.samples import ALL_SAMPLES, Sample

if TYPE_CHECKING:
    from hcmodel.problem import Problem

FloatArray = NDArray[np.float64]

# Values of two engines differ by rounding alone.
VALUE_TOLERANCE = 1e-9
# Points at which a model is compared, and attempts at finding them.
POINTS, DRAWS = 2, 50
PARTS = ("objective", "constraints", "all", "map")
# Up to so many unknowns differences are taken along each of them, beyond that along a few directions.
FEW_UNKNOWNS, DIRECTIONS, SMALLEST_UNIT = 12, 5, 1e-2


@dataclass(frozen=True)
class EngineReport:
    """What was checked: the atoms that the engine expresses, those that it refuses, and the models."""

    expressed: tuple[str, ...]
    refused: tuple[str, ...]
    models: int


def check_engine(
    engine: Engine,
    problems: Iterable[Problem] = (),
    *,
    samples: Iterable[Sample] = ALL_SAMPLES,
    first: float = 1e-5,
    second: float = 1e-5,
) -> EngineReport:
    """Check an engine on small models, on every atom that it expresses, and on `problems`.

    `first` and `second` are the relative errors allowed to first and second derivatives. Raises
    `AssertionError` with the name of the atom or of the property that failed.
    """
    checker = _Checker(engine, first, second)
    for check in (
        _parts_are_slices_of_the_whole,
        _results_belong_to_the_caller,
        _parameters_are_read_at_refresh,
        _a_parameter_without_a_value_is_an_error,
        _outside_the_domain_nothing_is_raised,
        _roots_may_be_constant_or_absent,
        _weights_may_include_the_map,
        _symmetric_variables_are_stored_as_triangles,
    ):
        with named(f"{engine.name}: {check.__name__.strip('_').replace('_', ' ')}"):
            check(checker)
    with named(f"{engine.name}: large models"):
        checker.program(*_chain(SPARSE_ROWS))
    expressed: dict[str, None] = {}
    refused: dict[str, None] = {}
    for sample in samples:
        (expressed if checker.sample(sample) else refused).setdefault(sample.name)
    models = 0
    for problem in problems:
        models += checker.problem(problem)
    return EngineReport(tuple(expressed), tuple(refused), models)


@dataclass(frozen=True)
class _Checker:
    engine: Engine
    first: float
    second: float

    @property
    def is_reference(self) -> bool:
        return isinstance(self.engine, AutogradEngine)

    def compiled(
        self,
        roots: Sequence[Expression],
        variables: Sequence[Variable],
        split: int = 1,
        coordinates: Sequence[Expression] = (),
    ) -> CompiledStack:
        program = Program.of(roots, Layout(variables), split, coordinates)
        stack = self.engine.compile(program)
        assert stack.engine == self.engine.name, "the stack does not carry the engine's name"
        return stack

    def sample(self, sample: Sample) -> bool:
        """False where the engine says that it cannot express the atom."""
        moving = [i for i in range(len(sample.arguments)) if i not in sample.constant]
        # an engine may treat unknowns that are declared positive in another way
        declarable = not self.is_reference and all((sample.arguments[i] > 0).all() for i in moving)
        return self._sampled(sample, moving) and (
            not declarable or self._sampled(sample, moving, pos=True)
        )

    def _sampled(self, sample: Sample, moving: Sequence[int], pos: bool = False) -> bool:
        operands: list[Any] = list(sample.arguments)
        for i in moving:
            operands[i] = Variable(sample.arguments[i].shape, pos=pos)
        layout = Layout([operands[i] for i in moving])
        program = Program.of([sample.build(*operands)], layout, 0)
        if unable(self.engine, program):
            return False
        point = layout.pack([sample.arguments[i] for i in moving])
        with named(f"{self.engine.name}: {sample}"):
            stack = self.program(program, point, ("all",))  # the other parts are the same or empty
            expected = np.ravel(sample.reference(*sample.arguments))
            _close(stack.evaluate(point, "all").values, expected, VALUE_TOLERANCE, "values")
        return True

    def problem(self, problem: Problem) -> bool:
        """All roots of a problem and its declared map, at a few points of its domain."""
        canonical, model = problem.canonical, problem.model
        program = Program.of(canonical.roots, canonical.layout, 1, model.hidden or ())
        if unable(self.engine, program):
            return False
        reference = AutogradEngine().compile(program)
        generator = np.random.default_rng(0)
        candidates: Iterator[FloatArray]
        candidates = (canonical.domain.sample(generator) for _ in range(DRAWS))
        if not reference.kinked:  # the middle may be a kink, as 0 is for |x|
            candidates = itertools.chain([canonical.domain.middle()], candidates)
        usable = (x for x in candidates if _differentiable(reference, x))
        points = list(itertools.islice(usable, POINTS))
        with named(f"{self.engine.name}: {problem!r}"):
            assert points, "no point was found at which the model is differentiable"
            for point in points:
                self.program(program, point)
        return True

    def program(
        self, program: Program, point: FloatArray, parts: Sequence[str] = PARTS
    ) -> CompiledStack:
        """Values and derivatives of one program at one point."""
        stack, reference = self.engine.compile(program), AutogradEngine().compile(program)
        _same_sizes(stack, reference)
        given = point.copy()
        for part in parts:
            forward = stack.evaluate(given, part)
            self._first_order(forward, stack, part, reference.evaluate(point, part), point)
        weights = np.linspace(0.5, 2.0, stack.size + stack.map_size)
        found = stack.hessian(given, weights)
        assert stack.sparse_hessian == scipy.sparse.issparse(found), "sparse_hessian is not true"
        dense = as_array(found)
        _close(dense, dense.T, self.second, "symmetry of the Hessian")
        if self.is_reference:
            self._second_order(stack, point, weights, dense)
        else:
            expected = as_array(reference.hessian(point, weights))
            _close(dense, expected, self.second, "Hessian")
        assert np.array_equal(given, point), "the point was changed"
        return stack

    def _first_order(
        self, found: Forward, stack: CompiledStack, part: str, known: Forward, point: FloatArray
    ) -> None:
        values = np.asarray(found.values)
        assert values.dtype == float, f"values have type {values.dtype}"
        _close(values, known.values, VALUE_TOLERANCE, f"values of {part}")
        jacobian = found.jacobian()
        assert jacobian.shape == (values.size, stack.dimension), f"shape {jacobian.shape}"
        dense, expected = as_array(jacobian), as_array(known.jacobian())
        if self.is_reference:
            along = _directions(point)
            expected = _differences(lambda x: stack.evaluate(x, part).values, point, along, 1e-6)
            dense = dense @ along
        _close(dense, expected, self.first, f"Jacobian of {part}")
        weights = np.linspace(-1.0, 2.0, values.size)
        gradient = found.pullback(weights)
        _close(gradient, weights @ as_array(jacobian), self.first, f"pullback of {part}")

    def _second_order(
        self, stack: CompiledStack, point: FloatArray, weights: FloatArray, hessian: FloatArray
    ) -> None:
        """Compare a Hessian with differences of the gradients of the same stack."""

        def gradient(x: FloatArray) -> FloatArray:
            inner, outer = stack.evaluate(x, "all"), stack.evaluate(x, "map")
            return inner.pullback(weights[: stack.size]) + outer.pullback(weights[stack.size :])

        along = _directions(point)
        expected = _differences(gradient, point, along, 1e-5)
        _close(hessian @ along, expected, self.second, "Hessian")


def _parts_are_slices_of_the_whole(checker: _Checker) -> None:
    x = Variable(3)
    stack = checker.compiled([total(square(x)), x * x, exp(x[0])], [x], 1, [log(x)])
    point = np.array([0.5, 1.0, 2.0])
    whole = stack.evaluate(point, "all").values
    assert (stack.size, stack.objective_size, stack.map_size) == (5, 1, 3)
    _close(stack.evaluate(point, "objective").values, whole[:1], 0.0, "objective")
    _close(stack.evaluate(point, "constraints").values, whole[1:], 0.0, "constraints")
    _close(stack.evaluate(point, "map").values, np.log(point), VALUE_TOLERANCE, "map")


def _results_belong_to_the_caller(checker: _Checker) -> None:
    x = Variable(3)
    stack = checker.compiled([total(exp(x)), x * x[0]], [x])
    one, other = np.array([0.5, 1.0, 2.0]), np.array([3.0, -1.0, 0.25])
    forward = stack.evaluate(one, "all")
    kept = [forward.values, forward.jacobian(), stack.hessian(one, np.ones(4))]
    before = [as_array(each).copy() for each in kept]
    later = stack.evaluate(other, "all")
    later.jacobian()
    stack.hessian(other, np.ones(4))
    for each, copy in zip(kept, before, strict=True):
        assert np.array_equal(as_array(each), copy), "a later evaluation changed an earlier result"
    again = stack.evaluate(one, "all")
    assert np.array_equal(again.values, before[0]), "the same point has other values"
    expected = np.ones(4) @ as_array(later.jacobian())
    _close(later.pullback(np.ones(4)), expected, checker.first, "pullback of a later pass")
    _close(as_array(forward.jacobian()), before[1], 0.0, "Jacobian after a later pass")


def _parameters_are_read_at_refresh(checker: _Checker) -> None:
    x = Variable(2)
    weight = Parameter(2, name="weight", value=np.array([1.0, 2.0]))
    stack = checker.compiled([total(weight * square(x))], [x])
    point = np.array([1.0, 3.0])
    for value in ([1.0, 2.0], [0.0, 5.0], [4.0, 0.0]):
        weight.value = np.array(value)
        stack.refresh()
        forward = stack.evaluate(point, "all")
        _close(forward.values, [value @ point**2], VALUE_TOLERANCE, "value after a refresh")
        expected = 2 * np.array([value]) * point
        _close(as_array(forward.jacobian()), expected, checker.first, "Jacobian after a refresh")
        found = as_array(stack.hessian(point, np.ones(1)))
        _close(found, 2 * np.diag(value), checker.second, "Hessian after a refresh")


def _a_parameter_without_a_value_is_an_error(checker: _Checker) -> None:
    x, missing = Variable(2), Parameter(name="missing")
    stack = checker.compiled([total(missing * x)], [x])
    message = ""
    try:
        stack.refresh()
    except DataError as error:
        message = str(error)
    assert "missing" in message, "no DataError named the parameter without a value"


def _outside_the_domain_nothing_is_raised(checker: _Checker) -> None:
    matrix, x = Variable((2, 2)), Variable(2)
    candidates = [total(log(x)), total(sqrt(x)), trace(inv(matrix)), det(matrix), total(1 / x)]
    layout = Layout([matrix, x])
    roots = [
        root for root in candidates if not unable(checker.engine, Program.of([root], layout, 0))
    ]
    stack = checker.compiled(roots, [matrix, x], 0)
    singular = layout.pack([np.ones((2, 2)), np.array([-1.0, 0.0])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forward = stack.evaluate(singular, "all")
        forward.jacobian()
        forward.pullback(np.ones(len(roots)))
        stack.hessian(singular, np.ones(len(roots)))
    for root, value in zip(roots, forward.values, strict=True):
        assert root is candidates[3] or not np.isfinite(value), f"{root} is {value}"


def _roots_may_be_constant_or_absent(checker: _Checker) -> None:
    x, level = Variable(2), Parameter(name="level", value=3.0)
    stack = checker.compiled([x[0] * x[1], 2 * level], [x])
    point = np.array([2.0, 5.0])
    forward = stack.evaluate(point, "all")
    _close(forward.values, [10.0, 6.0], VALUE_TOLERANCE, "values")
    _close(as_array(forward.jacobian()), [[5, 2], [0, 0]], checker.first, "Jacobian")
    constant = stack.evaluate(point, "constraints")
    _close(as_array(constant.jacobian()), np.zeros((1, 2)), 0.0, "Jacobian of a constant")
    _close(constant.pullback(np.ones(1)), np.zeros(2), 0.0, "pullback of a constant")
    empty = stack.evaluate(point, "map")
    assert empty.values.shape == (0,), "a part without roots has values"
    assert empty.jacobian().shape == (0, 2), "a part without roots has a Jacobian with rows"
    _close(empty.pullback(np.zeros(0)), np.zeros(2), 0.0, "pullback of nothing")
    _close(as_array(stack.hessian(point, np.zeros(2))), np.zeros((2, 2)), 0.0, "Hessian of 0·φ")


def _weights_may_include_the_map(checker: _Checker) -> None:
    x = Variable(2)
    stack = checker.compiled([total(square(x))], [x], 1, [exp(x)])
    point = np.array([0.5, -1.0])
    plain = as_array(stack.hessian(point, np.ones(1)))
    _close(plain, 2 * np.eye(2), checker.second, "Hessian without weights of the map")
    found = as_array(stack.hessian(point, np.array([1.0, 3.0, 4.0])))
    expected = np.diag(2 + np.array([3.0, 4.0]) * np.exp(point))
    _close(found, expected, checker.second, "Hessian with weights of the map")
    for function in (
        functools.partial(stack.hessian, point),
        stack.evaluate(point, "all").pullback,
    ):
        accepted = True
        try:
            function(np.ones(2))
        except (ModelError, ValueError):
            accepted = False
        assert not accepted, "weights of the wrong length were accepted"


def _symmetric_variables_are_stored_as_triangles(checker: _Checker) -> None:
    matrix = Variable((3, 3), symmetric=True)
    root = total(square(matrix @ np.array([1.0, 2.0, 3.0])))
    program = Program.of([root, matrix], Layout([matrix]), 1)
    value = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]])
    point = program.layout.pack([value])
    stack = checker.program(program, point)
    assert stack.dimension == 6, f"a symmetric 3×3 matrix has {stack.dimension} unknowns"
    _close(stack.evaluate(point, "constraints").values, np.ravel(value), 1e-12, "values")


def _chain(size: int) -> tuple[Program, FloatArray]:
    """Rows that touch two neighbours each: Jacobian and Hessian are sparse."""
    x = Variable(size)
    objective = total(square(x[1:] - square(x[:-1]))) + norm(x[:2])
    program = Program.of([objective, x[1:] * exp(x[:-1])], Layout([x]), 1, [log(x)])
    return program, np.linspace(0.5, 1.5, size)


def _same_sizes(stack: CompiledStack, reference: CompiledStack) -> None:
    for name in ("dimension", "size", "objective_size", "map_size", "kinked", "has_black_boxes"):
        found, expected = getattr(stack, name), getattr(reference, name)
        assert found == expected, f"{name} is {found}, not {expected}"


def _differentiable(stack: CompiledStack, point: FloatArray) -> bool:
    def arrays() -> Iterator[FloatArray]:
        for part in ("all", "map"):
            forward = stack.evaluate(point, part)
            yield forward.values
            yield as_array(forward.jacobian())
        yield as_array(stack.hessian(point, np.ones(stack.size + stack.map_size)))

    return all(np.isfinite(array).all() for array in arrays())


def _directions(point: FloatArray) -> FloatArray:
    """One column for each direction of differences: all units, or a few random ones of many.

    Entries near 0 move by little, since 1/x and log(x) change fast there.
    """
    units = np.clip(np.abs(point), SMALLEST_UNIT, 1.0)
    if point.size <= FEW_UNKNOWNS:
        return np.diag(units)
    drawn = np.random.default_rng(1).standard_normal((point.size, DIRECTIONS))
    return np.asarray(units[:, None] * np.linalg.qr(drawn)[0])


def _differences(
    function: Callable[[FloatArray], FloatArray],
    point: FloatArray,
    along: FloatArray,
    step: float,
) -> FloatArray:
    columns = [
        (function(point + step * way) - function(point - step * way)) / (2 * step)
        for way in along.T
    ]
    return np.stack(columns, axis=-1)


def _close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Compare relative to the largest entry, since differences cannot know small ones beside it."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    if not expected.size:
        return
    scale = max(1.0, float(np.max(np.abs(expected))))
    error = float(np.max(np.abs(found - expected))) / scale
    assert error <= tolerance, f"{what}: relative error {error:.1e}, allowed {tolerance:.0e}"
