"""The compiled stack that keeps structure: sums of terms in closed form, the rest by an engine.

A root whose entries are all sums of terms (`recognition`) is evaluated from matrices (`sums`); the other
roots are compiled by the engine as a program of their own. What is found depends on the values of
parameters, so `refresh` finds it again when one of these has changed.

A small stack that is evaluated often is compiled as a whole by an engine of compiled functions, where
there is one: numpy's calls take longer than the arithmetic of a small sum. One whose structure
was not asked for is first evaluated without it: a model that is solved in other coordinates is
evaluated at one point as it was written.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.engine import (
    CompiledStack,
    Engine,
    Forward,
    ProgramStack,
    WrappedEngine,
    compiled_if_possible,
)
from hcmodel.engines.graph_program import PARTS, Program
from hcmodel.engines.recognition import recognised
from hcmodel.engines.sums import SparseSums, SumData, Sums, logarithms, sums_of
from hcmodel.engines.user_gradients import UserGradients
from hcmodel.errors import ModelError
from hcmodel.expressions.graph import Graph
from hcmodel.expressions.sparse_data import Numbers, equal
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.algebra.marks import same, some
from hcmodel.solvers.algebra.storage import as_array, is_sparse
from hcmodel.solvers.limits import is_late

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.intp]


# Evaluations after a refresh before a small stack is compiled as a whole. Value and gradient of Ex-CGP
# take 20 µs from matrices and 2.7 by casadi, whose functions are made in 2 ms.
EVALUATIONS_BEFORE = 100
# Entries in the matrices of sums up to which a stack is small. With one row of 20 terms, values and
# gradient take 8 µs by casadi and 20 from matrices for 2,000 entries.
MOST_ENTRIES = 3_000
# Evaluations before structure is looked for, and the steps, numbers in the data and entries of the
# Jacobian up to which a stack is small enough: a regulator with 3 states is proven and solved in 5 %
# fewer Python calls, a process in 6 %, and one with 300 states and 5 actions, of 450,000 numbers, in 17 %
# less time.
GLANCES = 2
FEW_STEPS = 100
FEW_NUMBERS = 1_000_000
FEW_SLOPES = 20_000


@dataclass(frozen=True)
class StructuredEngine(WrappedEngine):
    """An engine that compiles only what has no structure.

    `whole`, if there is one, compiles small stacks as a whole when they are evaluated often.
    """

    whole: Engine | None = None

    def compile(self, program: Program) -> StructuredStack:
        return StructuredStack(program, self.inner, self.whole)


class StructuredStack(ProgramStack):
    """Sums of terms, and a stack of the engine for the rest."""

    def __init__(self, program: Program, engine: Engine, whole: Engine | None = None) -> None:
        super().__init__(program)
        self._engine = engine
        self._whole_engine = whole
        self._compiled: CompiledStack | None = None  # the whole stack, once it was evaluated often
        self._in_use: CompiledStack | None = None  # the same, since it was evaluated often again
        self._left = EVALUATIONS_BEFORE
        self._parameters = program.parameters
        self._read: list[Numbers] | None = None  # values of the parameters that it rests on
        self._fresh = False
        self._rest: CompiledStack | None = None
        self._rest_roots: tuple[int, ...] | None = None
        self._parts: dict[str, _Part] = {}
        self._last: _Pass | None = None  # over all of φ, for the next question about the same point
        self.sums: SumData | None = None
        self._unseen: CompiledStack | None = None  # all roots, without their structure
        # Functions of the user beside constants have no structure.
        calls = program.has_black_boxes and UserGradients.of(program, program.roots("all"))
        self._only_calls = bool(calls)
        self._glances = GLANCES if self._is_quick else 0

    @cached_property
    def _is_quick(self) -> bool:
        """Whether a first look at a stack need not find its structure.

        Products of powers, the structure that pays most, have positive variables; data that change
        are read with the structure.
        """
        program, variables = self.program, self.layout.variables
        if program.is_known:  # there is nothing to find
            return False
        if self._parameters or any(variable.set.has_logarithm for variable in variables):
            return False
        slopes = self.dimension * (self.size + self.map_size)
        few = slopes <= FEW_SLOPES and program.numbers <= FEW_NUMBERS
        return few and len(program.graph.steps) <= FEW_STEPS

    @property
    def engine(self) -> str:
        return self._engine.name

    # ---- structure

    def refresh(self) -> None:
        """Read the parameters; the structure is found again where their values have changed."""
        if self._unseen is not None:
            self._glances = GLANCES
            if self._only_calls:
                self._unseen.refresh()
        if self._read is not None or not (self._only_calls or self._is_quick):
            self._refresh_structure()
        if self._compiled is not None:
            self._compiled.refresh()
        # Each solve begins the same way, so that its digits do not depend on those before it.
        self._in_use, self._left = None, EVALUATIONS_BEFORE

    def _refresh_structure(self) -> None:
        values = [parameter.value for parameter in self._parameters]
        if self._read is None or not _equal(values, self._read):
            self._recognise()
        if self._rest is not None:
            self._rest.refresh()
        self._fresh = True

    def _recognise(self) -> None:
        """Split the roots into sums of terms and the rest, which is compiled where it is new."""
        found = recognised(self.program)
        sizes = self.program.root_sizes
        owner = np.arange(len(sizes)).repeat(sizes)
        rest = tuple(np.unique(owner[found.unknown]).tolist()) if some(found.unknown) else ()
        if rest != self._rest_roots:
            self._rest_roots = rest
            self._rest = self._engine.compile(_only(self.program, rest)) if rest else None
        if rest:
            places = (~np.isin(owner, rest)).nonzero()[0]
            found = found.taken(places, (places.size,))
        self.sums = SumData.of(found, self.dimension)
        self._parts.clear()
        self._last = None
        self._read = [parameter.value for parameter in self._parameters]  # they are read-only

    def _part(self, name: str) -> _Part:
        if not self._fresh:
            self._refresh_structure()
        if name == "whole" and not self.map_size:
            name = "all"
        if name not in self._parts:
            self._parts[name] = self._made(name)
        return self._parts[name]

    def _made(self, name: str) -> _Part:
        """The sums of a part, and where they and the rest stand in it; "whole" has φ and the map."""
        assert self.sums is not None
        sizes = self.program.root_sizes
        split, stop = self.program.split, self.program.stop
        first, last = {
            "objective": (0, split),
            "constraints": (split, stop),
            "all": (0, stop),
            "map": (stop, len(sizes)),
            "whole": (0, len(sizes)),
        }[name]
        starts = list(itertools.accumulate(sizes, initial=0))
        begin, end = starts[first], starts[last]
        of_rest = np.zeros(starts[-1], dtype=bool)
        for root in self._rest_roots or ():
            of_rest[starts[root] : starts[root + 1]] = True
        before = begin - int(np.count_nonzero(of_rest[:begin]))
        own = (~of_rest[begin:end]).nonzero()[0]
        data = self.sums.between(before, before + own.size)
        others = of_rest[begin:end].nonzero()[0]
        return _Part(sums_of(data), own, others)

    @property
    def structured(self) -> tuple[bool, ...]:
        """Which roots are sums of terms, and are not compiled by the engine."""
        if self._rest_roots is None:
            self._refresh_structure()
        rest = set(self._rest_roots or ())
        return tuple(i not in rest for i in range(len(self.program.root_sizes)))

    @property
    def terms(self) -> tuple[SumData, IndexArray]:
        """The sums of φ without the map, and where their rows stand in it."""
        part = self._part("all")
        return part.sums.data, part.own

    # ---- evaluation

    def evaluate(self, x: FloatArray, part: str) -> Forward:
        """One pass over the "objective", the "constraints", "all" of both, or the "map"."""
        if self._in_use is not None:
            return self._in_use.evaluate(x, part)
        if part not in PARTS:
            raise ModelError(f"there is no part {part!r}; the parts are {', '.join(PARTS)}")
        if (written := self._as_written()) is not None:
            return written.evaluate(x, part)
        own = self._part(part)
        if self._left == 0 and self._whole_engine is not None and self._is_small:
            if self._compiled is None:
                self._compiled = compiled_if_possible(self._whole_engine, self.program)
                if self._compiled is None:
                    self._whole_engine = None
            self._in_use = self._compiled
        if part == "all" and self._last is not None and same(self._last.x, x):
            return self._last
        rest = None
        if own.rest.size:
            assert self._rest is not None
            rest = self._rest.evaluate(x, part)
            if not own.own.size:
                return rest
        found = _Pass(own, np.array(x, dtype=float), rest)
        if part == "all" and rest is None:
            self._last = found
        return found

    def expect_values(self) -> None:
        if self._only_calls or self._is_glanced_at:
            self._without_structure.expect_values()
        elif self._rest is not None:
            self._rest.expect_values()

    @property
    def _is_glanced_at(self) -> bool:
        """Whether the next evaluation is one without the structure."""
        return self._glances > 0 and (self._read is None or self._unseen is not None)

    @property
    def _without_structure(self) -> CompiledStack:
        """All roots, compiled by the engine."""
        if self._unseen is None:
            self._unseen = self._engine.compile(self.program)
        return self._unseen

    def _as_written(self) -> CompiledStack | None:
        """What evaluates a point without the structure, where it pays no longer or not yet."""
        if self._only_calls:
            return self._without_structure
        self._left -= 1
        if self._is_glanced_at:
            self._glances -= 1
            return self._without_structure
        return self._engine.compile(self.program) if self._read is None and is_late() else None

    @property
    def _is_small(self) -> bool:
        assert self.sums is not None
        parts = (self.sums.exponents, self.sums.linear, self.sums.logarithms)
        return sum(part.values.size for part in parts) <= MOST_ENTRIES

    def hessian(self, x: FloatArray, weights: FloatArray) -> Any:
        """The Hessian of weights·φ; weights of the map's entries may follow those of φ."""
        whole = self.all_weights(weights)
        part = self._part("whole")
        found: Any = None
        if part.rest.size:
            assert self._rest is not None
            found = self._rest.hessian(x, whole[part.rest])
            if not part.own.size:
                return found
        x = np.array(x, dtype=float)
        with np.errstate(all="ignore"):
            last = self._last
            if last is not None and last.part is part and same(last.x, x):
                t = last.terms
            else:
                t = part.sums.values(x, logarithms(part.sums.data, x))[1]
            own = part.sums.hessian(x, t, whole[part.own])
        if found is None:
            return own
        if is_sparse(own) and is_sparse(found):
            return scipy.sparse.csr_array(own + found)
        return as_array(own) + as_array(found)

    @property
    def sparse_hessian(self) -> bool:
        part = self._part("whole")
        own = isinstance(part.sums, SparseSums) and part.sums.data.hessian_pattern is not None
        if not part.rest.size:
            return own
        assert self._rest is not None
        return self._rest.sparse_hessian and (own or not part.own.size)


@dataclass(eq=False)
class _Part:
    """The sums of a part; the places of their rows, and of those of the rest.

    `differentiated` says that the last pass was asked for its Jacobian; the next one computes it at once.
    """

    sums: Sums
    own: IndexArray
    rest: IndexArray
    differentiated: bool = False


class _Pass:
    """One pass: values of sums and rest, and derivatives when they are asked for."""

    def __init__(self, part: _Part, x: FloatArray, rest: Forward | None) -> None:
        self.part, self.x, self._rest = part, x, rest
        self._own_jacobian: Any = None
        with np.errstate(all="ignore"):
            values, self.terms = part.sums.values(x, logarithms(part.sums.data, x))
            if part.differentiated:
                part.differentiated = False
                self._own_jacobian = part.sums.jacobian(x, self.terms)
        if rest is not None:
            values = _placed(part, values, np.asarray(rest.values))
        values.flags.writeable = False  # the pass may be handed out again
        self.values = values
        self._jacobian: Any = None

    def jacobian(self) -> Any:
        if self._jacobian is None:
            self.part.differentiated = True
            own = self._own_jacobian
            if own is None:
                with np.errstate(all="ignore"):
                    own = self.part.sums.jacobian(self.x, self.terms)
            if self._rest is not None:
                own = _interleaved(self.part, own, self._rest.jacobian())
            self._jacobian = own
        return self._jacobian

    def pullback(self, weights: Any) -> FloatArray:
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise ModelError(f"{self.values.size} weights are needed, not shape {weights.shape}")
        part = self.part
        own = weights if self._rest is None else weights[part.own]
        with np.errstate(all="ignore"):
            found = part.sums.pullback(self.x, self.terms, own)
        return found if self._rest is None else found + self._rest.pullback(weights[part.rest])


def _placed(part: _Part, own: FloatArray, rest: FloatArray) -> FloatArray:
    values = np.empty(own.size + rest.size)
    values[part.own], values[part.rest] = own, rest
    return values


def _interleaved(part: _Part, own: Any, rest: Any) -> Any:
    """The rows of both matrices at their places; compressed rows where one of them is."""
    if is_sparse(own) or is_sparse(rest):
        both = scipy.sparse.vstack(
            [scipy.sparse.csr_array(own), scipy.sparse.csr_array(rest)], format="csr"
        )
        return scipy.sparse.csr_array(both[np.concatenate([part.own, part.rest]).argsort()])
    found = np.empty((own.shape[0] + rest.shape[0], own.shape[1]))
    found[part.own], found[part.rest] = own, rest
    return found


def _equal(values: Sequence[Numbers | None], others: Sequence[Numbers]) -> bool:
    pairs = zip(values, others, strict=True)
    return all(one is two or (one is not None and equal(one, two)) for one, two in pairs)


def _only(program: Program, roots: Sequence[int]) -> Program:
    """The program of some of the roots, without the steps that only others need."""
    steps = program.graph.steps
    wanted = {program.graph.roots[i] for i in roots}
    for number in range(len(steps) - 1, -1, -1):
        if number in wanted:
            wanted.update(steps[number].arguments)
    place = {number: i for i, number in enumerate(sorted(wanted))}
    kept = tuple(
        steps[number]._replace(arguments=tuple(place[a] for a in steps[number].arguments))
        for number in place
    )
    graph = Graph(kept, tuple(place[program.graph.roots[i]] for i in roots))
    split = sum(i < program.split for i in roots)
    return Program(graph, program.layout, split, sum(i < program.stop for i in roots))
