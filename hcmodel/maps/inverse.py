"""The inverse of a positive definite matrix in its place: U = Σ⁻¹.

The likelihood of a covariance Σ has logdet(Σ) and trace(S Σ⁻¹), of which the first one is concave and
the second one convex in Σ, so that the sum is neither. In U = Σ⁻¹ it is:

    inv(Σ)  →  U,      logdet(Σ)  →  −logdet(U),      xᵀ Σ⁻¹ x  →  xᵀ U x,      solve(Σ, b)  →  U b

and what is linear in Σ is a matrix fraction, trace(C Σ) → trace(C U⁻¹), convex for C ⪰ 0. Eigenvalues
between δ and M become eigenvalues between 1/M and 1/δ, and Σ ⪯ M becomes U ⪰ M⁻¹ for a positive
definite M, Σ ⪰ M becomes U ⪯ M⁻¹. With a mean beside Σ the product map makes U μ of the rest: the
natural parameters of a normal distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import Sums, added
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.matrix_algebra.slacks import slack_of
from hcmodel.records import dataclass, replace
from hcmodel.solvers.algebra.definite import is_definite
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Inverse(Map):
    """U = Σ⁻¹; see the module."""

    name = "inverse"
    summary = "U = Σ⁻¹ for a positive definite Σ; back: Σ = U⁻¹"
    literature = "Dempster 1972; Vandenberghe, Boyd, Wu 1998"
    example = """
    # The most likely covariance of samples with the second moments S.
    param S[2,2] = [[2, 1], [1, 3]]
    var C[2,2] symmetric in psd(0.01, 100)

    minimize logdet(C) + trace(S @ inv(C))
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for variable in model.variables:
            if variable.set.is_curved and variable.set.is_symmetric:
                uses = _uses(model, variable)
                if uses:
                    yield _substituted(model, variable, uses)


def inverted(model: Expanded, variable: Variable) -> Step | Obstacle:
    """The model with U = Σ⁻¹ in the place of Σ, which has to be definite at all points of the model."""
    return _substituted(model, variable, _uses(model, variable))


# What a function of c·Σ is, from its other arguments, the array U/c and log det(c·Σ).
Rule = Callable[[Sequence[Sums], Sums, Sums], Sums]


def _fraction(others: Sequence[Sums], inverse: Sums, logdet: Sums) -> Sums:
    """trace(Xᵀ U X)."""
    left = others[0] if len(others[0].shape) == 2 else others[0].reshaped((others[0].size, 1))
    product = (inverse @ left).times(left)
    return product.grouped(np.zeros(product.size, dtype=np.intp), ())


# The functions that are simpler in U, by name, with the place of Σ among their arguments.
RULES: dict[str, tuple[int, Rule]] = {
    "inv": (0, lambda others, inverse, logdet: inverse),
    "logdet": (0, lambda others, inverse, logdet: logdet),
    "matrix_frac": (1, _fraction),
    "solve": (0, lambda others, inverse, logdet: inverse @ others[0]),
}


@dataclass(frozen=True, eq=False)
class _Use:
    """A function of c·Σ, with c and with what takes its place."""

    function: Opaque
    scale: float
    rule: Rule
    others: tuple[Sums, ...]


def _uses(model: Expanded, variable: Variable) -> list[_Use]:
    """The functions whose inverses or determinants are simpler ones of U."""
    inner = symbol_sums(model.symbols, model.symbols.of_variable(variable))
    rules = {ATOMS[name]: rule for name, rule in RULES.items()}
    found = []
    for function in model.functions():
        if function.atom not in rules or function.start in model.symbols.undoing:
            continue
        place, rule = rules[function.atom]
        scale = function.arguments[place].multiple_of(inner)
        if scale is not None and scale > 0:
            others = tuple(each for i, each in enumerate(function.arguments) if i != place)
            found.append(_Use(function, scale, rule, others))
    return found


def _substituted(model: Expanded, variable: Variable, uses: Sequence[_Use]) -> Step | Obstacle:
    symbols, coding = model.symbols, model.symbols.coding
    new = Variable(variable.shape, name=fresh_name(model, "U"), PSD=_eigenvalues(variable))
    inner = symbol_sums(symbols, symbols.of_variable(new))
    size = variable.shape[0]
    logdet = function_of(symbols, ATOMS["logdet"], {}, [inner], ())
    changes: dict[int, Sums] = {}
    rewriting = _Inverted(symbols, changes, symbols.of_variable(variable), inner)
    for use in uses:
        others = [rewriting(each) for each in use.others]
        shift = Sums.constant(size * np.log(use.scale), coding)
        value = use.rule(others, inner.scaled(1.0 / use.scale), shift - logdet)
        for place in range(value.size):
            changes[use.function.start + place] = value.taken(np.array([place]), ())
    back = function_of(symbols, ATOMS["inv"], {}, [inner], inner.shape)
    symbols.undoing.update([*back.symbols_used().tolist(), *logdet.symbols_used().tolist()])
    for old, place in zip(np.ravel(symbols.of_variable(variable)), range(size**2), strict=True):
        changes.setdefault(int(old), back.taken(np.array([place]), ()))
    rows, inequalities = list[Row](), list[_Inequality]()
    for row in model.rows:
        found = _inequality(model, row, variable, inner)
        if isinstance(found, Obstacle):
            return found
        if found is None:
            rows.append(row)
        else:
            inequalities.append(found)
    rows += _bounds(symbols, variable)
    after = rewritten(
        replace(model, rows=tuple(rows)),
        rewriting,
        gone=[variable, *(each.slack for each in inequalities)],
        new=[new, *(each.new for each in inequalities)],
        rows=[each.row for each in inequalities],
    )
    return _Inverse(variable, new, tuple(inequalities), after)


def _eigenvalues(variable: Variable) -> object:
    """Bounds of the eigenvalues of the inverse, as a variable takes them."""
    low, high = variable.eigenvalue_bounds or (0.0, np.inf)
    least = 1.0 / high if high > 0 else 0.0
    if low > 0:
        return least, 1.0 / low
    return least if least > 0 else True


def _bounds(symbols: Symbols, variable: Variable) -> Iterator[Row]:
    """Upper bounds on the diagonal of Σ as rows: they are convex in U."""
    numbers = np.diag(symbols.of_variable(variable))
    upper = np.diag(np.broadcast_to(variable.upper, variable.shape))
    finite = np.isfinite(upper)
    if finite.any():
        bound = Sums.constant(upper[finite], symbols.coding)
        yield Row(symbol_sums(symbols, numbers[finite]) - bound, "<=", None)


class _Inverted(Replacing):
    """Functions of Σ replaced by those of U; what is linear in Σ is a sum of matrix fractions."""

    def __init__(
        self, symbols: Symbols, changes: dict[int, Sums], numbers: Numbers, inner: Sums
    ) -> None:
        super().__init__(symbols, {})
        self.changes = changes
        self._inner = inner
        self._size = numbers.shape[0]
        self._places = {int(symbol): place for place, symbol in enumerate(np.ravel(numbers))}
        self._fractions: dict[bytes, Sums] = {}

    def __call__(self, sums: Sums) -> Sums:
        own = (sums.degrees == 1) & np.isin(sums.key - 1, list(self._places))
        if not own.any():
            return super().__call__(sums)
        parts = [super().__call__(sums.chosen(~own))]
        linear = sums.chosen(own)
        for entry in np.unique(linear.entry).tolist():
            here = linear.entry == entry
            weights = np.zeros(self._size**2)
            for key, weight in zip(linear.key[here], linear.weight[here], strict=True):
                weights[self._places[int(key) - 1]] += weight
            matrix = weights.reshape(self._size, self._size)
            trace = self._trace((matrix + matrix.T) / 2)
            places = np.where(np.arange(sums.size) == entry, 0, -1)
            parts.append(trace.taken(places, sums.shape))
        return added(parts)

    def _trace(self, matrix: FloatArray) -> Sums:
        """trace(C U⁻¹), as fractions for the two signs of C."""
        key = matrix.tobytes()
        if key not in self._fractions:
            values, vectors = np.linalg.eigh(matrix)
            parts = [Sums.constant(0.0, self.coding)]
            for sign in (1.0, -1.0):
                kept = sign * values > DATA_ROUNDING * np.abs(values).max()
                if kept.any():
                    factor = Sums.constant(
                        vectors[:, kept] * np.sqrt(np.abs(values[kept])), self.coding
                    )
                    number = self.symbols.of_function(
                        ATOMS["matrix_frac"], {}, (factor, self._inner), ()
                    )
                    self.symbols.undoing.add(int(number))
                    parts.append(Sums.symbols(number, self.coding).scaled(sign))
            self._fractions[key] = added(parts)
        return self._fractions[key]


# ---- inequalities between matrices


@dataclass(frozen=True, eq=False)
class _Inequality:
    """S = ±(M − Σ) ⪰ 0 as ±(U − M⁻¹) = T ⪰ 0: the old and the new slack, and the row of the new one."""

    slack: Variable
    new: Variable
    row: Row
    bound: FloatArray
    sign: float


def _inequality(
    model: Expanded, row: Row, variable: Variable, inner: Sums
) -> _Inequality | Obstacle | None:
    """An equality ±(M − Σ) = S with a slack S that stands nowhere else; None for other rows."""
    found = matrix_bound(model, row, variable)
    if found is None:
        return None
    symbols, (slack, bound, factor) = model.symbols, found
    sign = float(np.sign(factor))
    if not is_definite(bound):
        return Obstacle("inverse", f"{variable.name} has a bound that is not positive definite")
    new = Variable(variable.shape, name=f"slack·{fresh_name(model, slack.name)}", PSD=True)
    inverse = Sums.constant(np.linalg.inv(bound), symbols.coding)
    sums = (inner - inverse).scaled(sign) - symbol_sums(symbols, symbols.of_variable(new))
    made = Row(sums, "==", None, entries=row.entries)
    return _Inequality(slack, new, made, bound, factor)


def matrix_bound(
    model: Expanded, row: Row, variable: Variable
) -> tuple[Variable, FloatArray, float] | None:
    """S, M and f of an equality f (M − Σ) = S with a slack S that stands nowhere else; else None."""
    numbers = model.symbols.of_variable(variable)
    if row.sense != "==" or row.sums.shape != variable.shape or not row.sums.holding(numbers).any():
        return None
    slack = slack_of(model, row)
    if (
        slack is None
        or slack is variable
        or (slack.eigenvalue_bounds or (0.0, np.inf)) != (0.0, np.inf)
    ):
        return None
    own = row.sums.holding(model.symbols.of_variable(slack))
    rest = row.sums.chosen(~own).scaled(-1.0 / row.sums.weight[own][0])  # this is S
    linear = rest.chosen(rest.degrees == 1)
    constant = rest.chosen(rest.degrees == 0)
    weight = linear.multiple_of(symbol_sums(model.symbols, numbers))
    if weight is None or linear.key.size + constant.key.size != rest.key.size:
        return None
    return slack, -constant.value / weight, -weight


class _Inverse(Step):
    """Σ in place of U."""

    name = "inverse"

    def __init__(
        self,
        variable: Variable,
        new: Variable,
        inequalities: tuple[_Inequality, ...],
        after: Expanded,
    ) -> None:
        self.gone = (variable, *(each.slack for each in inequalities))
        self.new = (new, *(each.new for each in inequalities))
        self.texts = {new: f"inv({variable.name})"}
        self.after = after
        self._inequalities = inequalities
        upper = np.array(np.broadcast_to(variable.upper, variable.shape))
        np.fill_diagonal(upper, np.inf)
        lost = np.isfinite(upper).any() or np.isfinite(variable.lower).any()
        self.released = (variable.name,) if lost else ()

    def forward(self, point: Points) -> None:
        inverse = _inverse(point[self.gone[0]])
        point[self.new[0]] = inverse = (inverse + inverse.T) / 2
        for each in self._inequalities:
            point[each.new] = np.sign(each.sign) * (inverse - np.linalg.inv(each.bound))

    def back(self, point: Points) -> None:
        matrix = _inverse(point[self.new[0]])
        point[self.gone[0]] = matrix = (matrix + matrix.T) / 2
        for each in self._inequalities:
            point[each.slack] = each.sign * (each.bound - matrix)


def _inverse(matrix: FloatArray) -> FloatArray:
    """The inverse; NaN where there is none, as at a start of zeros."""
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan)
