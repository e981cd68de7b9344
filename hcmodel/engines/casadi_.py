"""The engine of compiled functions: the same graph as functions of casadi (extra `fast`).

The graph is built array by array (MX) and, where it is small and has no linear algebra, expanded to
scalars (SX) by casadi itself. Values, Jacobian, pullback and Hessian of a part are one function each,
made when it is first asked for. Parameters are an argument, so that new values need no new function.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.engines.batches import batched
from hcmodel.engines.casadi_arrays import Array, Namespace, as_array, casadi, dense
from hcmodel.engines.casadi_atoms import RULES
from hcmodel.engines.engine import EngineUnavailable, ProgramStack
from hcmodel.engines.forward import SPARSE_DENSITY, SPARSE_ROWS
from hcmodel.engines.graph_program import Program
from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Parameter, Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import equal, is_sparse
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.memory import check_dense

FloatArray: TypeAlias = NDArray[np.float64]

# Graphs of at most this many entries are expanded to scalars. On chains of products that is as fast up to
# 800 entries and slower beyond, and compiling it takes twice as long from 800 on.
MOST_SCALARS = 1_000
# Graphs of at least this many steps are joined into steps on arrays. The number was not tuned.
FEWEST_JOINED = 200


@dataclass(frozen=True)
class CasadiEngine:
    """The entry of the table."""

    name: str = "casadi"

    @property
    def missing(self) -> str | None:
        if not _installed():
            return "casadi, which is not installed: pip install 'hcmodel[fast]'"
        return _Import.failure

    def expresses(self, atom: Atom, shapes: Sequence[Shape], params: dict[str, Any]) -> bool:
        rule = RULES.get(atom)
        return rule is not None and rule.able(shapes, params)

    def compile(self, program: Program) -> CasadiStack:
        _Import.check()
        joined, split, stop = batched(program.graph, program.split, program.stop, FEWEST_JOINED)
        return CasadiStack(Program(joined, program.layout, split, stop))


@functools.cache
def _installed() -> bool:
    return importlib.util.find_spec("casadi") is not None


class _Import:
    """How importing casadi failed; it is tried when the first stack is compiled, as it takes long."""

    failure: str | None = None

    @classmethod
    def check(cls) -> None:
        try:
            casadi()
        except Exception as error:  # a damaged package raises anything
            cls.failure = (
                f"casadi, which is installed and cannot be imported ({type(error).__name__}: "
                f"{error}): pip install --force-reinstall casadi"
            )
            raise EngineUnavailable(f"engine 'casadi' needs {cls.failure}") from error


_WRITING = threading.Lock()


@contextlib.contextmanager
def _as_written() -> Iterator[None]:
    """Keep casadi from simplifying: √x·√x is not x where x < 0, nor is log(x) − log(x) 0."""
    options = casadi().GlobalOptions
    with _WRITING:
        before = options.getSimplificationOnTheFly()
        options.setSimplificationOnTheFly(False)
        try:
            yield
        finally:
            options.setSimplificationOnTheFly(before)


class CasadiStack(ProgramStack):
    """The compiled stack φ: the objective's roots, those of the constraints, then the map's."""

    engine = "casadi"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._parametric = _parametric(program)
        self._embedded: dict[
            int, Any
        ] = {}  # sparse values of parameters: the functions contain them
        self._constants: list[Any] = []
        self._numbers: FloatArray | None = None  # the values of the parameters, one after the other
        self._functions: dict[Any, _Function] = {}
        self._parts: dict[str, _Part] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Functions are made again after unpickling."""
        kept = {**self.__dict__, "_functions": {}, "_parts": {}}
        kept.pop("_traced", None)
        return kept

    def refresh(self) -> None:
        """Read the parameters and compute again what depends on them alone."""
        values = self.program.constants()
        self._constants = values
        dense, embedded = [], {}
        for number in self._parametric:
            if is_sparse(values[number]):
                embedded[number] = values[number]
            else:
                dense.append(np.ravel(np.asarray(values[number], dtype=float)))
        self._numbers = np.concatenate(dense) if dense else np.zeros(0)
        same = embedded.keys() == self._embedded.keys() and all(
            equal(value, self._embedded[number]) for number, value in embedded.items()
        )
        if not same:
            self._functions.clear()
            self._parts.clear()
            self.__dict__.pop("_traced", None)
        for function in self._functions.values():
            function.give(self._numbers)
        self._embedded = embedded

    # ---- evaluation

    def evaluate(self, x: FloatArray, part: str) -> CasadiPass:
        """One pass over the "objective", the "constraints", "all" of both, or the "map"."""
        own = self._parts.get(part)
        if own is None:
            own = self._parts[part] = _Part(self, part)
        if own.differentiated:
            own.differentiated = False
            values, entries = own.with_jacobian.at(x)
            return CasadiPass(own, None, values, entries)
        x = np.array(x, dtype=float)
        (values,) = self.function("values", part)(x)
        return CasadiPass(own, x, values)

    def pullback(self, x: FloatArray, part: str, weights: FloatArray) -> FloatArray:
        return self.function("pullback", part)(x, weights)[0]

    def hessian(self, x: FloatArray, weights: FloatArray) -> Any:
        """The Hessian of weights·φ; weights of the map's entries may follow those of φ."""
        whole, x = self.all_weights(weights), np.array(x, dtype=float)
        function = self.function("hessian", "whole")
        (entries,) = function(x, whole)
        if not np.isfinite(entries).all():
            # 0 · NaN of roots that have no weight, and are outside their domain
            weighted = tuple(
                i for i, share in enumerate(self.root_weights(weights)) if np.any(share)
            )
            if len(weighted) < len(self.program.root_sizes):
                entries = self._without_weightless(x, whole, weighted)
        return _matrix(function.pattern(0), entries)

    def _without_weightless(
        self, x: FloatArray, weights: FloatArray, roots: tuple[int, ...]
    ) -> FloatArray:
        """The entries of the Hessian of some of the roots, at the places of the whole one."""
        (found,) = self.function("hessian", roots)(x, weights)
        return found

    @property
    def sparse_hessian(self) -> bool:
        if self.dimension < SPARSE_ROWS:
            return False
        return self._hessian_is_sparse(self._weighted("whole")[2])

    def _hessian_is_sparse(self, gradient: Any) -> bool:
        """Whether few unknowns meet; all that is computed is which."""
        pattern = casadi().jacobian_sparsity(gradient, self._traced.x)
        return bool(pattern.nnz() <= SPARSE_DENSITY * self.dimension**2)

    @property
    def _given(self) -> FloatArray:
        if self._numbers is None:
            self.refresh()
        assert self._numbers is not None
        return self._numbers

    # ---- compilation

    def function(self, kind: str, part: Any) -> _Function:
        """The function of that kind of a part, compiled when it is first asked for."""
        found = self._functions.get((kind, part))
        if found is None:
            given = self._given  # reads the parameters, whose structure the functions contain
            found = self._functions[kind, part] = self._made(kind, part)
            found.give(given)
        return found

    def _weighted(self, part: Any) -> tuple[Any, Any, Any]:
        """Weights, the weighted sum of the roots, all or those with these numbers, and its gradient."""
        traced, ca = self._traced, casadi()
        weights = traced.symbol("w", self.size + self.map_size)
        numbers = range(len(traced.roots)) if part == "whole" else part
        starts = np.cumsum([0, *self.program.root_sizes])
        share = [
            ca.dot(weights[int(starts[i]) : int(starts[i + 1])], traced.roots[i])
            for i in numbers
            if self.program.root_sizes[i]
        ]
        total = sum(share, traced.nothing)
        return weights, total, ca.gradient(total, traced.x)

    def _made(self, kind: str, part: Any) -> _Function:
        """Compile one function; derivatives are casadi's, with the sparsity that it finds."""
        traced, ca = self._traced, casadi()
        x, given = traced.x, traced.given
        if kind == "hessian":
            weights, total, gradient = self._weighted(part)
            # casadi's colouring of a symmetric matrix takes cubic time where most unknowns meet
            if self._hessian_is_sparse(gradient):
                found = ca.hessian(total, x)[0]
            else:
                # both triangles are the same, to the last digit
                found = ca.triu2symm(ca.triu(ca.jacobian(gradient, x)))
            if found.nnz() == self.dimension**2:
                check_dense("the Hessian", self.dimension, self.dimension)
            if part != "whole":
                found = ca.project(
                    found, self.function("hessian", "whole").function.sparsity_out(0)
                )
            return traced.function("hessian", [x, weights, given], [found])
        values = traced.part(self.program, part)
        if kind == "values":
            return traced.function("values", [x, given], [values])
        if kind == "pullback":
            weights = traced.symbol("w", values.shape[0])
            pulled = ca.jtimes(values, x, weights, True)
            return traced.function("pullback", [x, weights, given], [ca.densify(pulled)])
        # by columns of the transpose: compressed rows of the Jacobian
        slopes = ca.jacobian(values, x).T
        return traced.function("jacobian", [x, given], [values, slopes])

    @cached_property
    def _traced(self) -> _Traced:
        """The roots as expressions of casadi."""
        with _as_written():
            return self._trace()

    def _trace(self) -> _Traced:
        ca, steps = casadi(), self.program.graph.steps
        x, given = ca.MX.sym("x", self.dimension), ca.MX.sym("p", self._given.size)
        values = self._leaves(given)
        blocks = self.layout.unpack(Namespace, Array(x, (self.dimension,)))
        solves = False
        scalars = 0
        for number in self.program.needed(self.program.graph.roots):
            step = steps[number]
            # a product with constants has an operation for each of these
            scalars += max(math.prod(step.shape), *(_length(values[i]) for i in step.arguments), 0)
            if isinstance(step.leaf, Variable):
                values[number] = blocks[self.layout.position(step.leaf)]
                continue
            assert step.atom is not None
            rule = RULES[step.atom]
            solves |= rule.solves
            values[number] = rule.build(step.atom, [values[i] for i in step.arguments], step.params)
            assert values[number].shape == step.shape, f"{step.atom.name}: {values[number].shape}"
        roots = [dense(as_array(values[root]).flat) for root in self.program.graph.roots]
        if solves or scalars > MOST_SCALARS:
            return _Traced(x, given, roots, solves)
        function = ca.Function("all", [x, given], roots).expand()
        scalar_x, scalar_given = ca.SX.sym("x", self.dimension), ca.SX.sym("p", self._given.size)
        return _Traced(scalar_x, scalar_given, list(function.call([scalar_x, scalar_given])))

    def _leaves(self, given: Any) -> list[Any]:
        """The values of the steps without variables; those of parameters are symbols."""
        values, start = list(self._constants), 0
        for number in self._parametric:
            if number in self._embedded:
                continue
            shape = self.program.graph.steps[number].shape
            size = math.prod(shape)
            values[number] = Array(given[start : start + size], shape)
            start += size
        return values


@dataclass(frozen=True)
class _Traced:
    """Symbols of the point and of the parameters, and the roots as expressions of them."""

    x: Any
    given: Any
    roots: list[Any]
    solves: bool = False  # equations, which may be singular

    def function(self, name: str, arguments: list[Any], results: list[Any]) -> _Function:
        return _Function(casadi().Function(name, arguments, results), self.solves)

    @property
    def nothing(self) -> Any:
        return type(self.x)(0)

    def symbol(self, name: str, size: int) -> Any:
        return type(self.x).sym(name, size)

    def part(self, program: Program, part: str) -> Any:
        split, stop = program.split, program.stop
        first, last = {
            "objective": (0, split),
            "constraints": (split, stop),
            "all": (0, stop),
            "map": (stop, len(self.roots)),
        }[part]
        chosen = self.roots[first:last]
        return casadi().densify(casadi().vertcat(*chosen)) if chosen else type(self.x)(0, 1)


class _Part:
    """A part of the stack, and whether the last pass over it was asked for its Jacobian.

    Where it was, the next pass computes values and Jacobian by one function.
    """

    def __init__(self, stack: CasadiStack, name: str) -> None:
        self.stack, self.name = stack, name
        self.differentiated = False

    @cached_property
    def with_jacobian(self) -> _Function:
        return self.stack.function("jacobian", self.name)

    @cached_property
    def _shape(self) -> tuple[int, int] | None:
        """The shape of the Jacobian where none of its entries is left out."""
        pattern = self.with_jacobian.pattern(1)
        return pattern.shape if pattern.places.size == math.prod(pattern.shape) else None

    def jacobian(self, x: FloatArray | None, entries: FloatArray | None) -> Any:
        """The Jacobian, from its entries where these are known."""
        self.differentiated = True
        if entries is None:
            entries = self.with_jacobian.at(x)[1]
        if self._shape is not None:
            return entries.reshape(self._shape)
        return _matrix(self.with_jacobian.pattern(1), entries)


class CasadiPass:
    """One pass: values, and derivatives when they are asked for; x where entries are not known."""

    __slots__ = ("_entries", "_jacobian", "_part", "_x", "values")

    def __init__(
        self,
        part: _Part,
        x: FloatArray | None,
        values: FloatArray,
        entries: FloatArray | None = None,
    ) -> None:
        self.values, self._part, self._x, self._entries = values, part, x, entries
        self._jacobian: Any = None

    def jacobian(self) -> Any:
        if self._jacobian is None:
            self._jacobian = self._part.jacobian(self._x, self._entries)
        return self._jacobian

    def pullback(self, weights: Any) -> FloatArray:
        """The gradient of weights·φ."""
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise ModelError(f"{self.values.size} weights are needed, not shape {weights.shape}")
        if self._jacobian is not None or self._entries is not None or weights.size <= 1:
            return np.asarray(self.jacobian().T @ weights)
        assert self._x is not None
        return self._part.stack.pullback(self._x, self._part.name, weights)


class _Function:
    """A function of casadi through its buffers; results are copies.

    One that `solves` equations can fail; asking whether it has failed takes longer than a small function.
    """

    def __init__(self, function: Any, solves: bool = False) -> None:
        self.function = function
        self._arguments = [np.zeros(function.nnz_in(i)) for i in range(function.n_in())]
        self._results = [np.zeros(function.nnz_out(i)) for i in range(function.n_out())]
        self._buffer, self._run = function.buffer()
        self._solves = solves
        for i, array in enumerate(self._arguments):
            if array.size:
                self._buffer.set_arg(i, memoryview(array.data))
        for i, array in enumerate(self._results):
            if array.size:
                self._buffer.set_res(i, memoryview(array.data))
        self._patterns: dict[int, _Pattern] = {}
        self._lock = threading.Lock()  # the buffers are shared by all callers

    def give(self, parameters: FloatArray) -> None:
        """Set the last argument, which stays until the next call of this."""
        with self._lock:
            self._arguments[-1][:] = parameters

    def __call__(self, *arguments: FloatArray) -> list[FloatArray]:
        """The results for all arguments but the last one."""
        with self._lock:
            for array, value in zip(self._arguments, arguments, strict=False):
                array[:] = value
            if self._fails():
                return [np.full(array.size, np.nan) for array in self._results]
            return [array.copy() for array in self._results]

    def at(self, x: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Both results of a function of x alone; small functions take most of their time here."""
        with self._lock:
            self._arguments[0][:] = x
            first, second = self._results
            if self._solves:
                if self._fails():
                    return np.full(first.size, np.nan), np.full(second.size, np.nan)
            else:
                self._run()
            return first.copy(), second.copy()

    def _fails(self) -> bool:
        """Run it; whether it met a singular matrix."""
        try:
            self._run()
        except RuntimeError:  # so do some of its factorisations end
            return True
        return self._solves and bool(self._buffer.ret())

    def pattern(self, number: int) -> _Pattern:
        """Where the entries of a result stand; its columns are the rows of what it means."""
        if number not in self._patterns:
            found = self.function.sparsity_out(number)
            starts, places = (np.array(each, dtype=np.int32) for each in found.get_ccs())
            self._patterns[number] = _Pattern((found.size2(), found.size1()), starts, places)
        return self._patterns[number]


@dataclass(frozen=True)
class _Pattern:
    """Compressed rows."""

    shape: tuple[int, int]
    starts: Any
    places: Any

    @cached_property
    def rows(self) -> Any:
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))


def _length(value: Any) -> int:
    """The number of entries of a constant, 0 for a symbol."""
    if isinstance(value, Array):
        return 0
    return int(value.nnz) if is_sparse(value) else int(np.size(value))


def _is_sparse(pattern: _Pattern) -> bool:
    rows, columns = pattern.shape
    return rows >= SPARSE_ROWS and pattern.places.size <= SPARSE_DENSITY * rows * columns


def _matrix(pattern: _Pattern, entries: FloatArray) -> Any:
    """The matrix with these entries: dense, or compressed rows where it is large and mostly 0."""
    if entries.size == pattern.shape[0] * pattern.shape[1]:
        return entries.reshape(pattern.shape)
    if _is_sparse(pattern):
        return scipy.sparse.csr_array(
            (entries, pattern.places.copy(), pattern.starts.copy()), shape=pattern.shape
        )
    found = np.zeros(pattern.shape)
    found[pattern.rows, pattern.places] = entries
    return found


def _parametric(program: Program) -> tuple[int, ...]:
    """The steps without variables that depend on a parameter and that live steps or roots use."""
    steps, live = program.graph.steps, program.live
    depends: list[bool] = []
    for step in steps:
        depends.append(isinstance(step.leaf, Parameter) or any(depends[i] for i in step.arguments))
    used = set(program.graph.roots)
    for number, step in enumerate(steps):
        if live[number]:
            used.update(step.arguments)
    return tuple(number for number in sorted(used) if depends[number] and not live[number])
