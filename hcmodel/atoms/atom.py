"""The mechanism of atoms: a numeric meaning, written once, with the facts that hold for it.

The decorated function takes the array namespace `xp` (numpy, or autograd.numpy) first. What users
call is the resulting `Atom`, which builds a node of the graph; engines call `Atom.function`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from hcmodel.atoms import enclosures
from hcmodel.atoms.algebra import (
    EVERY_ARGUMENT,
    Adjoint,
    Exponent,
    Exponents,
    Factor,
    Inverse,
    Pieces,
    Places,
)
from hcmodel.atoms.cones import ConeForms
from hcmodel.atoms.rules import (
    Always,
    Argument,
    Arguments,
    Contraction,
    Curvature,
    Dependence,
    Domain,
    Kind,
    MatrixKind,
    Monotonicity,
    Params,
    Rule,
    Sign,
    as_rule,
    second_as_exponent,
)
from hcmodel.atoms.shape_rules import elementwise
from hcmodel.errors import ModelError
from hcmodel.expressions.node import Apply, Expression, as_expression, as_scalars
from hcmodel.expressions.posynomials import Role
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import Numbers, dense, is_sparse
from hcmodel.expressions.table import ATOMS
from hcmodel.records import cached_property, dataclass

ShapeRule = Callable[[str, Sequence[Shape], dict[str, Any]], Shape]
Prepare = Callable[[str, Sequence[Shape], dict[str, Any]], dict[str, Any]]
TakesSparse = Callable[[Sequence[Any]], bool]
Definition = Callable[[Sequence[Expression], dict[str, Any]], Expression]
# Of expressions, or of anything else with their operators.
Equation = Callable[[Sequence[Any], Any], Any]
MakesDerivatives = Callable[[dict[str, Any]], "Derivatives | None"]
UNKNOWN = Curvature.UNKNOWN
NO_INVERSE: Always[Inverse | None] = Always(None)
NO_PIECES: Always[Pieces | None] = Always(None)


class Derivatives(Protocol):
    """Derivatives of an atom by some of its arguments, and its value, without a tape."""

    def __call__(self, arrays: Sequence[Any], places: Sequence[int]) -> list[Any]: ...
    def value(self, arrays: Sequence[Any]) -> Any: ...


def no_derivatives(params: dict[str, Any]) -> Derivatives | None:
    return None


def never_sparse(values: Sequence[Any]) -> bool:
    return False


def always_sparse(values: Sequence[Any]) -> bool:
    return True


def sparse_with_numbers(values: Sequence[Any]) -> bool:
    """Whether one argument is a sparse matrix and the others are single numbers."""
    others = [value for value in values if not is_sparse(value)]
    return len(others) == len(values) - 1 and all(
        value is not None and np.ndim(value) == 0 for value in others
    )


@dataclass(frozen=True, eq=False, repr=False)
class Atom:
    """One entry of the table.

    The four curvatures differ in how arguments and result are seen. `curvature`: both plain;
    `log_curvature`: both through their logarithm (as in geometric programming); `log_to_plain`:
    arguments through their logarithm, result plain; `plain_to_log` the other way. Where a logarithm
    is taken, they hold for positive arguments (constants are judged as they are) or where the
    result is positive. All of them hold on the domain, for the arguments that are not constant,
    jointly. `log_to_plain` and `plain_to_log` are given only where they say more than follows from
    the other two (log-convex functions are convex, positive concave ones log-concave).

    Algebra:
    - `summed`: the atom is the sum of its arguments, entry by entry, with these signs; the last sign
      stands for all arguments that follow;
    - `linear_in`: the arguments in each of which the atom is linear while the others stay;
    - `exponents`: the atom is the monomial of its first arguments, entry by entry, with these
      exponents; arguments that follow are exponents themselves;
    - `factors`: the atom is a product of matrices;
    - `degree_rule`: its degree as a polynomial of the arguments that are not constant, where this
      does not follow from the above (see `degree`);
    - `homogeneous`: f(c·a, c·b, …) = c·f(a, b, …) for c >= 0, where this does not follow;
    - `commutative`: exchanging arguments changes nothing;
    - `transposes`: f(A, B, …).T = f(A.T, B.T, …), which also holds for every elementwise atom;
    - `stacks`: the atom puts its arguments one after the other along this axis of the result;
    - `definiteness`: what is known of a square matrix that is the result;
    - `definition`: the atom by simpler ones, as a function of the arguments as expressions and of the
      parameters; equal inside of the domain;
    - `equation`: the result X solves a linear equation; a function of the arguments and of X that is 0;
    - `adjoint`: ⟨w, f(A, b)⟩ = ⟨g(A.T, w), b⟩ for an atom g.

    Functions of one entry: `inverse` solves for the one argument that is not constant, where the atom is
    strictly monotone in it. `infinite_slope` names the arguments in which the slope grows without
    bound at 0.

    Sizes: with `magnitudes`, |f(a, b, …)| = f(|a|, |b|, …) for arguments of one sign each.
    `keeps_support` says whether the zeros of the result follow from the zeros of the arguments
    alone, given that these have one sign each. Both are given where they do not follow from the algebra.

    Reformulation: `enclosure` gives an interval for the result from intervals of the arguments,
    `pieces` linear rows that express a polyhedral atom, `cone_form` rows in cones: functions of a
    builder that the reduction to a cone program hands in (see `cones`), so that atoms import no solver.

    Evaluation: `superlinear` atoms take more work than a multiple of the sizes of arguments and result;
    a `black_box` has no structure that could be looked at. `takes_sparse` says whether the function takes
    constants as scipy's sparse matrices, given the values of all arguments, None for those that depend on
    variables; for other atoms they are made dense. `derivatives` makes, of the parameters of a node, a
    function of the arguments and of the places of some of them, which returns the derivatives by these as
    arrays of the result's shape followed by the argument's; None where autograd has them.
    """

    name: str
    function: Callable[..., Any]
    shape: ShapeRule
    prepare: Prepare | None
    static: tuple[str, ...]
    variadic: bool
    signature: inspect.Signature
    domain: Rule[Domain | tuple[Domain, ...]]
    sign: Rule[Sign]
    monotonicity_rule: Rule[Monotonicity | tuple[Monotonicity, ...]]
    curvature: Rule[Curvature]
    log_curvature: Rule[Curvature]
    log_to_plain: Rule[Curvature]
    plain_to_log: Rule[Curvature]
    kind: Rule[Kind]
    dependence: Callable[[Sequence[Shape], dict[str, Any]], Dependence | Contraction]
    summed: tuple[int, ...]
    linear_in: Places
    exponents: Rule[Exponents | None]
    factors: Rule[tuple[Factor, ...]]
    degree_rule: Rule[int | None]
    homogeneous: bool
    commutative: bool
    transposes: bool
    stacks: Rule[int | None]
    definiteness: Rule[MatrixKind]
    inverse: Rule[Inverse | None]
    infinite_slope: Rule[tuple[int, ...]]
    magnitudes: bool
    keeps_support: Rule[bool]
    enclosure: enclosures.Enclosure
    pieces: Rule[Pieces | None]
    cone_form: ConeForms | None
    superlinear: bool
    black_box: bool
    takes_sparse: TakesSparse
    derivatives: MakesDerivatives = no_derivatives
    definition: Definition | None = None
    equation: Equation | None = None
    adjoint: Adjoint | None = None
    documentation: str = field(default="")

    def __post_init__(self) -> None:
        # help() and doctest read these from the object itself
        object.__setattr__(self, "__doc__", self.documentation)
        object.__setattr__(self, "__name__", self.name)
        object.__setattr__(self, "__signature__", self.signature)

    def monotonicity(self, arguments: Any, params: Any) -> tuple[Monotonicity, ...]:
        """How the result moves with each argument."""
        found = self.monotonicity_rule(arguments, params)
        return found if isinstance(found, tuple) else (found,) * len(arguments)

    def domains(self, arguments: Any, params: Any) -> tuple[Domain, ...]:
        """Where each argument may lie."""
        found = self.domain(arguments, params)
        return found if isinstance(found, tuple) else (found,) * len(arguments)

    def signs(self, count: int) -> tuple[int, ...]:
        """The sign of each of `count` arguments, of which the atom is the sum."""
        return self.summed + self.summed[-1:] * (count - len(self.summed))

    def degree(self, arguments: Arguments, params: Params) -> int | None:
        """The degree as a polynomial of the arguments that are not constant; None: not known."""
        varying = [not argument.constant for argument in arguments]
        if not any(varying):
            return 0
        declared = self.degree_rule(arguments, params)
        if declared is not None:
            return declared
        if self.summed or self.moves_entries:
            return 1
        if self.is_multilinear:
            return sum(varying)
        exponents = self.exponents(arguments, params)
        if exponents is None or any(varying[len(exponents) :]):
            return None
        total = 0
        for exponent, base in zip(exponents, arguments[: len(exponents)], strict=True):
            power = _natural(exponent)
            if base.constant and (power is not None or base.sign.is_strict):
                continue  # a finite number
            if power is None:
                return None
            total += power
        return total

    @cached_property
    def is_multilinear(self) -> bool:
        """Whether the atom is linear in each argument while the others stay."""
        if self.variadic:
            return self.linear_in is EVERY_ARGUMENT
        count = len(self.signature.parameters) - len(self.static)
        return all(place in self.linear_in for place in range(count))

    def adds_products(self, shapes: Sequence[Shape], params: Params) -> bool:
        """Whether each entry is a sum of products, one entry of each argument in every product.

        That is, the atom is multilinear and has no negative coefficients.
        """
        if not self.is_multilinear:
            return False
        sizes = [Argument(shape, Sign.NONNEGATIVE) for shape in shapes]
        return self.sign(sizes, params).is_nonnegative

    @cached_property
    def is_homogeneous(self) -> bool:
        """Whether f(c·a, c·b, …) = c·f(a, b, …) for c >= 0."""
        alone = len(self.signature.parameters) - len(self.static) == 1 and not self.variadic
        linear = bool(self.summed) or self.moves_entries or (alone and self.is_multilinear)
        return self.homogeneous or linear

    @property
    def is_invertible(self) -> bool:
        """Whether an inverse is declared for some arguments."""
        return self.inverse is not NO_INVERSE

    @cached_property
    def is_defined_everywhere(self) -> bool:
        """Whether it has a value for all real numbers, whatever its parameters are."""
        rule = self.domain
        return isinstance(rule, Always) and rule.value is Domain.REALS

    @cached_property
    def moves_entries(self) -> bool:
        """Whether each entry of the result is an entry of an argument, or 0."""
        rule = self.dependence
        return isinstance(rule, Always) and rule.value is Dependence.MOVEMENT

    @cached_property
    def role_in_terms(self) -> Role | tuple[Exponent, ...]:
        """What the atom does to terms c·x^a·y^b… of numbers."""
        if self.summed == (1,) and self.variadic:
            return Role.ADDS
        if self.moves_entries and self.static == ("key",):
            return Role.CHOOSES
        if self.exponents is second_as_exponent:
            return Role.RAISES
        if self.dependence == Always(Dependence.ELEMENTWISE) and isinstance(self.exponents, Always):
            return self.exponents.value or Role.OTHER
        return Role.OTHER

    def operands(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values of the arguments as the function takes them: sparse ones dense where it has to be."""
        for value in values:
            if type(value) is not np.ndarray and is_sparse(value):
                break
        else:
            return values
        if self.takes_sparse(values):
            return values
        return [dense(value, f"an argument of '{self.name}'") for value in values]

    def numbers(self, values: Sequence[Any], params: Params) -> Numbers:
        """The value for arguments that are numbers, by numpy; sparse where the function keeps it so."""
        found = self.function(np, *self.operands(values), **params)
        plain = type(found) is np.ndarray or not is_sparse(found)
        return np.asarray(found, dtype=float) if plain else found

    @cached_property
    def _is_of_one(self) -> bool:
        """Whether it has one argument and no keywords."""
        return not self.static and not self.variadic and len(self.signature.parameters) == 1

    @cached_property
    def _leading(self) -> tuple[int, list[str], dict[str, Any]] | None:
        """What a call without keywords binds: how many arguments it needs, their names, and defaults."""
        parameters = self.signature.parameters.values()
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            return None
        defaults = {
            each.name: each.default for each in parameters if each.default is not each.empty
        }
        leading = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
        needed = [each.name for each in parameters if each.name not in defaults]
        return (len(needed), leading, defaults) if set(needed) <= set(leading) else None

    def __call__(self, *args: Any, **keywords: Any) -> Expression:
        if not keywords and len(args) == 1 and isinstance(args[0], Expression) and self._is_of_one:
            return self.apply(args)
        for value in (*args, *keywords.values()):
            if callable(getattr(value, "solve", None)):  # as in hc.solve(problem)
                raise ModelError(
                    f"hc.{self.name} is a function of expressions, and a problem is not one; "
                    "to solve a problem, write problem.solve()"
                )
        if not keywords and self._leading is not None:
            required, names, defaults = self._leading
            if required <= len(args) <= len(names):
                given = {**defaults, **dict(zip(names, args, strict=False))}
                own = {name: given[name] for name in self.static}
                return self.apply([given[name] for name in names if name not in own], own)
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as error:
            valid = ", ".join(self.static) or "none"
            raise ModelError(
                f"'{self.name}{self.signature}' cannot be called like this: {error}; its keywords "
                f"are: {valid}. {self.documentation.splitlines()[0]}"
            ) from None
        bound.apply_defaults()
        operands: list[Any] = []
        params: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in self.static:
                params[name] = value
            elif self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                operands.extend(_unlisted(value))
            else:
                operands.append(value)
        return self.apply(operands, params)

    def apply(self, operands: Sequence[Any], params: dict[str, Any] | None = None) -> Expression:
        """The node for `operands`, with all static parameters given."""
        if (
            not params and self.shape is elementwise
        ):  # the plain case fast, for models built in loops
            scalars = as_scalars(operands)
            if scalars:
                return Apply(self, scalars, (), ())
        if any(map(is_sparse, operands)):
            constants = [None if isinstance(each, Expression) else each for each in operands]
            stored = self.operands(constants)
            pairs = zip(operands, stored, strict=True)
            operands = [each if new is None else new for each, new in pairs]
        arguments = tuple([as_expression(operand) for operand in operands])
        if not arguments:
            raise ModelError(f"'{self.name}' needs an argument")
        shapes = [argument.shape for argument in arguments]
        frozen: tuple[tuple[str, Hashable], ...] = ()
        if params:
            if self.prepare is not None:
                params = self.prepare(self.name, shapes, params)
            frozen = tuple(sorted(params.items()))
        shape = self.shape(self.name, shapes, params or {})
        return Apply(self, arguments, frozen, shape)

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    def __repr__(self) -> str:
        return f"<atom {self.name}{self.signature}>"


def _by_name(name: str) -> Atom:
    return ATOMS[name]


def _unlisted(values: tuple[Any, ...]) -> Sequence[Any]:
    """The operands of a variadic atom, given one by one or as one list, numpy's way."""
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        return values[0]
    return values


def _natural(exponent: Exponent) -> int | None:
    """The largest of exponents that are natural numbers; None where one is not, or is not known."""
    if exponent is None:
        return None
    whole = np.asarray(exponent)
    if not np.all((whole >= 0) & (whole == np.rint(whole))):
        return None
    return int(np.max(whole, initial=0))


def _user_signature(parameters: list[inspect.Parameter], leading: str | None) -> inspect.Signature:
    """The numeric function's signature as users see it: no namespace, no types, `leading` first."""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    first = [p.replace(kind=p.POSITIONAL_ONLY) for p in bare if p.name == leading]
    return inspect.Signature(first + [p for p in bare if p.name != leading])


def atom(
    *,
    shape: ShapeRule,
    prepare: Prepare | None = None,
    static: tuple[str, ...] = (),
    leading: str | None = None,
    domain: Any = Domain.REALS,
    sign: Any = Sign.UNKNOWN,
    monotonicity: Any = Monotonicity.UNKNOWN,
    curvature: Any = UNKNOWN,
    log_curvature: Any = UNKNOWN,
    log_to_plain: Any = UNKNOWN,
    plain_to_log: Any = UNKNOWN,
    kind: Any = Kind.SMOOTH,
    dependence: Any = Dependence.DENSE,
    summed: tuple[int, ...] = (),
    linear_in: Places = (),
    exponents: Any = None,
    factors: Any = (),
    degree: Any = None,
    homogeneous: bool = False,
    commutative: bool = False,
    transposes: bool = False,
    stacks: Any = None,
    definiteness: Any = MatrixKind.GENERAL,
    inverse: Rule[Inverse | None] = NO_INVERSE,
    infinite_slope: Any = (),
    magnitudes: bool = False,
    keeps_support: Any = False,
    enclosure: enclosures.Enclosure = enclosures.derived,
    pieces: Rule[Pieces | None] = NO_PIECES,
    cone_form: ConeForms | None = None,
    superlinear: bool = False,
    black_box: bool = False,
    takes_sparse: TakesSparse = never_sparse,
    derivatives: MakesDerivatives = no_derivatives,
    definition: Definition | None = None,
    equation: Equation | None = None,
    adjoint: Adjoint | None = None,
) -> Callable[[Callable[..., Any]], Atom]:
    """Make an atom of a numeric function and enter it into the table under its name.

    Facts are constants or rules. Keyword-only parameters of the function are static, that is known
    when the node is built; `static` names further ones that may also be given by position, and
    `leading` the one that users give before all arguments.
    """

    def define(function: Callable[..., Any]) -> Atom:
        name = function.__name__
        parameters = list(inspect.signature(function).parameters.values())[1:]
        static_names = tuple(
            p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.name in static
        )
        defined = Atom(
            name=name,
            function=function,
            shape=shape,
            prepare=prepare,
            static=static_names,
            variadic=any(p.kind is p.VAR_POSITIONAL for p in parameters),
            signature=_user_signature(parameters, leading),
            domain=as_rule(domain),
            sign=as_rule(sign),
            monotonicity_rule=as_rule(monotonicity),
            curvature=as_rule(curvature),
            log_curvature=as_rule(log_curvature),
            log_to_plain=as_rule(log_to_plain),
            plain_to_log=as_rule(plain_to_log),
            kind=as_rule(kind),
            dependence=dependence if callable(dependence) else Always(dependence),
            summed=summed,
            linear_in=linear_in,
            exponents=as_rule(exponents),
            factors=as_rule(factors),
            degree_rule=as_rule(degree),
            homogeneous=homogeneous,
            commutative=commutative,
            transposes=transposes,
            stacks=as_rule(stacks),
            definiteness=as_rule(definiteness),
            inverse=inverse,
            infinite_slope=as_rule(infinite_slope),
            magnitudes=magnitudes,
            keeps_support=as_rule(keeps_support),
            enclosure=enclosure,
            pieces=pieces,
            cone_form=cone_form,
            superlinear=superlinear,
            black_box=black_box,
            takes_sparse=takes_sparse,
            derivatives=derivatives,
            definition=definition,
            equation=equation,
            adjoint=adjoint,
            documentation=inspect.cleandoc(function.__doc__ or ""),
        )
        ATOMS[name] = defined
        return defined

    return define
