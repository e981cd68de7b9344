"""The table of engines, and the choice of one for a stack.

A new engine is a file in this package and an entry here; at run time, `ENGINES["name"] = engine` adds
one. `engine="auto"` takes the first of the table that is installed and expresses every atom.
"""

from __future__ import annotations

from collections.abc import Sequence

from hcmodel.engines.autograd_ import AutogradEngine
from hcmodel.engines.casadi_ import CasadiEngine
from hcmodel.engines.deferred import DeferredEngine
from hcmodel.engines.engine import CompiledStack, Engine
from hcmodel.engines.graph_program import KnownTerms, Program
from hcmodel.engines.known_program import KnownProgram
from hcmodel.engines.structured import StructuredEngine
from hcmodel.errors import ModelError
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Expression
from hcmodel.expressions.model import Model

AUTO = "auto"
# Numbers in the data up to which functions are compiled. casadi copies them into its graph, which takes
# five seconds for 18 million; no time limit holds meanwhile, and numpy's products take no longer.
MOST_NUMBERS = 5_000_000

# In the order in which `auto` tries them.
ENGINES: dict[str, Engine] = {"casadi": CasadiEngine(), "autograd": AutogradEngine()}


def compile_stack(
    roots: Sequence[Expression],
    layout: Layout,
    split: int,
    coordinates: Sequence[Expression] = (),
    *,
    engine: str = AUTO,
    structured: bool = True,
    known: Sequence[KnownTerms] = (),
    model: Model | None = None,
) -> CompiledStack:
    """Compile `roots` over the variables of `layout`; the first `split` are the objective's.

    `coordinates` are the entries of the map of hidden coordinates. Roots that are sums of terms are
    evaluated in closed form and not by the engine, unless `structured` is False. `known` has those that
    need not be looked at, one for each root; where all are known, the graph of the roots is not made.
    `model` is one that the roots are nodes of.
    """
    told = len(known) == len(roots) and None not in known
    if told and structured and not coordinates:
        program: Program = KnownProgram(roots, layout, split, known)
    else:
        program = Program.of(roots, layout, split, coordinates, known, model)
    chosen = choose(engine, program)
    if engine == AUTO and program.numbers > MOST_NUMBERS:
        chosen = AutogradEngine()
    compiling = chosen if isinstance(chosen, CasadiEngine) else None
    if engine == AUTO and compiling is not None:
        chosen = DeferredEngine(chosen, AutogradEngine())  # compiling has to pay
    return (StructuredEngine(chosen, compiling) if structured else chosen).compile(program)


def check_name(engine: str) -> str:
    """The name, if it is in the table or is "auto"; else an error that lists the engines."""
    if not isinstance(engine, str) or (engine != AUTO and engine not in ENGINES):
        names = ", ".join((AUTO, *ENGINES))
        raise ModelError(f"unknown engine {engine!r}; there are: {names}")
    return engine


def choose(name: str, program: Program) -> Engine:
    """The engine of that name, or the first one that can compile the program for "auto"."""
    check_name(name)
    if name != AUTO:
        engine = ENGINES[name]
        objection = _objection(engine, program)
        if objection is not None:
            raise ModelError(f"{objection}; use another engine, or engine='auto'")
        return engine
    objections = []
    for engine in ENGINES.values():
        objection = _objection(engine, program)
        if objection is None:
            return engine
        objections.append(objection)
    raise ModelError("no engine can compile this model: " + "; ".join(objections))


def unable(engine: Engine, program: Program) -> tuple[str, ...]:
    """The names of the program's atoms that the engine cannot express."""
    names = (
        atom.name
        for atom, shapes, params in program.applications()
        if not engine.expresses(atom, shapes, params)
    )
    return tuple(dict.fromkeys(names))


def _objection(engine: Engine, program: Program) -> str | None:
    """Why the engine cannot compile the program; None where it can."""
    if engine.missing is not None:
        return f"engine '{engine.name}' needs {engine.missing}"
    atoms = unable(engine, program)
    if atoms:
        return f"engine '{engine.name}' cannot express {', '.join(atoms)}"
    return None
