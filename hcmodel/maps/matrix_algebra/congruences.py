"""Linear functions of a symmetric matrix that keep it semidefinite, as sums of congruences.

    Q(X) = Σ over r of G_r X G_rᵀ,      vᵀ Q(X) v = Σ over r of (G_rᵀ v)ᵀ X (G_rᵀ v)  for every v

Noise that is proportional to the state or to the input moves a covariance by such a Q. What is known of
it are the weights of the entries X[a,b] in the entries Q[i,j]; as X is symmetric they do not tell
G_r[i,a] G_r[j,b] from G_r[i,b] G_r[j,a], so that the G_r cannot be read off. They are found by the method
of Levenberg and Marquardt on the equations for their entries, for one, two and more G_r, and count where
the equations hold to rounding. A Q that sends a semidefinite matrix to one that is not has no such G_r.

The equation of a covariance, in continuous or in discrete time, has C X Eᵀ + E X Cᵀ beside the G_r, with
E X Eᵀ the covariance itself and a C that is looked for as well (`flow`). In discrete time C is −E/2 times
the weight of P alone.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hcmodel.records import dataclass
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING, PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]

# The most congruences that are looked for, the starts for each number, and the steps of each start. The
# models of the suite have up to four sources of noise, and need a single start of 20 steps.
MOST = 6
STARTS = 3
STEPS = 60
# A run whose residual has fallen by less than a half after this many steps is given up.
PATIENCE = 8
# Entries of the G_r, above which a step takes half a second.
MOST_ENTRIES = 1_500
# Starts and rounds of a search for vectors that show that Q keeps no order, which comes first: the Q of
# the suite that are no sums of congruences are found out by the first start in a few rounds.
TRIALS = 4
ROUNDS = 15


def congruence(weights: dict[int, FloatArray], size: int) -> FloatArray | None:
    """G with G X Gᵀ = the matrix of ⟨weights, X⟩, entry by entry, for symmetric X; None: there is none.

    With an entry G[i,a] that is not 0 all others follow: from the products of G[i,a] with its row and its
    column, and then from the sums of products with the rest.
    """
    return _single(tensor_of(weights, size))


def tensor_of(weights: dict[int, FloatArray], size: int) -> FloatArray:
    """The weights with the indices (i, j, a, b); they are given by the numbers of the entries."""
    columns = next(iter(weights.values())).shape[0]
    tensor = np.zeros((size, size, columns, columns))
    for place, matrix in weights.items():
        tensor[place // size, place % size] = matrix
    return tensor


def _single(tensor: FloatArray) -> FloatArray | None:
    size, columns = tensor.shape[0], tensor.shape[2]
    squares = np.einsum("iiaa->ia", tensor)
    i, a = np.unravel_index(int(squares.argmax()), squares.shape)
    if squares[i, a] <= 0:
        return None
    pivot = np.sqrt(squares[i, a])
    factor = np.zeros((size, columns))
    line, column = tensor[i, i, a] / pivot, tensor[i, :, a, a] / pivot
    factor = (2 * tensor[i, :, a, :] - np.outer(column, line)) / pivot
    factor[i], factor[:, a] = line, column
    fits = np.abs(_weights(factor[None]) - tensor).max() <= PRODUCT_ROUNDING * np.abs(tensor).max()
    return factor if fits else None


def _weights(factors: FloatArray, flow: FloatArray | None = None) -> FloatArray:
    """The weights of Σ G_r X G_rᵀ for a symmetric X; with a flow E, the last of the factors is C."""
    own = factors if flow is None else factors[:-1]
    found = np.einsum("ria,rjb->ijab", own, own)
    if flow is not None:
        across = np.einsum("ia,jb->ijab", factors[-1], flow)
        found = found + across + across.transpose(1, 0, 3, 2)
    return np.asarray(found + found.transpose(0, 1, 3, 2)) / 2


def congruences(tensor: FloatArray, flow: FloatArray | None = None) -> FloatArray | None:
    """The G_r, with the indices (r, i, a); None where none are found. With a flow, C is the last one."""
    alone = _single(tensor) if flow is None else None
    if alone is not None:
        return alone[None]
    if not tensor.any() or not _keeps_order(tensor, flow):
        return None
    scale = float(np.abs(tensor).max())
    generator = np.random.default_rng(0)
    for count in range(2, MOST + 1):
        shape = count, tensor.shape[0], tensor.shape[2]
        if np.prod(shape) > MOST_ENTRIES:
            return None
        starts = (generator.normal(size=shape) for _ in range(STARTS - 1))
        for start in itertools.chain([_start(tensor / scale, count, flow)], starts):
            check_time()
            found = _fitted(tensor / scale, start, flow)
            if found is not None:
                units = np.full(count, np.sqrt(scale))
                units[-1] = units[-1] if flow is None else scale
                return np.asarray(found * units[:, None, None])
    return None


def _keeps_order(tensor: FloatArray, flow: FloatArray | None) -> bool:
    """Whether no x and v are found with vᵀ Q(x xᵀ) v < 0, each in turn the best one for the other.

    With a flow E only those count for which vᵀ E x = 0, so that C adds nothing.
    """
    generator = np.random.default_rng(1)
    room = BACKEND_ROUNDING * float(np.abs(tensor).max())
    for _ in range(TRIALS):
        x = np.asarray(generator.normal(size=tensor.shape[2]))
        for _ in range(ROUNDS):
            outer = np.einsum("ijab,a,b->ij", tensor, x, x)
            value, v = _least(outer, None if flow is None else flow @ x)
            if value < -room * (x @ x):
                return False
            inner = np.einsum("ijab,i,j->ab", tensor, v, v)
            x = _least(inner, None if flow is None else v @ flow)[1]
    return True


def _least(matrix: FloatArray, normal: FloatArray | None) -> tuple[float, FloatArray]:
    """The least eigenvalue and its vector, among the vectors that are normal to another one."""
    basis = np.eye(len(matrix))
    if normal is not None and normal.any():
        basis = scipy.linalg.null_space(normal[None])
    if not basis.size:
        return 0.0, np.zeros(len(matrix))
    values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
    return float(values[0]), np.asarray(basis @ vectors[:, 0])


def _start(tensor: FloatArray, count: int, flow: FloatArray | None) -> FloatArray:
    """The largest eigenvectors of the weights as a matrix over pairs (i, a); C is 0."""
    size, columns = tensor.shape[0], tensor.shape[2]
    matrix = tensor.transpose(0, 2, 1, 3).reshape(size * columns, size * columns)
    values, vectors = np.linalg.eigh(matrix)
    kept = np.argsort(-values)[:count]
    found = (vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))).T
    found = found.reshape(-1, size, columns)
    if flow is not None:
        found[-1] = 0.0
    return np.asarray(found)


def _fitted(tensor: FloatArray, factors: FloatArray, flow: FloatArray | None) -> FloatArray | None:
    """Steps that are shortened where the residual grows; None where it does not end at 0."""
    places = _Places.of(tensor)
    error = _weights(factors, flow) - tensor
    sizes = [float(np.linalg.norm(error))]
    while len(sizes) <= STEPS:
        if np.abs(error).max() <= DATA_ROUNDING:
            return factors
        if len(sizes) > PATIENCE and sizes[-1] > sizes[-1 - PATIENCE] / 2:
            return None
        step = places.step(factors, flow, error)
        length = 1.0
        while length > DATA_ROUNDING:
            moved = factors + length * step
            error = _weights(moved, flow) - tensor
            if np.linalg.norm(error) < sizes[-1]:
                break
            length /= 2
        else:
            return None
        factors = moved
        sizes.append(float(np.linalg.norm(error)))
    return None


@dataclass(frozen=True, eq=False)
class _Places:
    """The indices of the weights that are told apart: i <= j and a <= b."""

    i: Places
    j: Places
    a: Places
    b: Places

    @staticmethod
    def of(tensor: FloatArray) -> _Places:
        rows, columns = np.triu_indices(tensor.shape[0]), np.triu_indices(tensor.shape[2])
        left = (each.repeat(columns[0].size) for each in rows)
        right = (np.tile(each, rows[0].size) for each in columns)
        return _Places(*left, *right)

    def step(self, factors: FloatArray, flow: FloatArray | None, error: FloatArray) -> FloatArray:
        """The step of Levenberg and Marquardt, with the size of the residual as its damping.

        It converges quadratically to a residual of 0, though rotations of the G_r leave the weights as
        they are (Yamashita and Fukushima 2001).
        """
        left = -error[self.i, self.j, self.a, self.b]
        partners = factors if flow is None else np.concatenate([factors[:-1], flow[None]])
        matrix = self._slopes(partners)
        normal = (matrix.T @ matrix).toarray()
        normal[np.diag_indices(factors.size)] += np.linalg.norm(left)
        step = scipy.linalg.solve(normal, matrix.T @ left, assume_a="pos")
        return np.asarray(step.reshape(factors.shape))

    def _slopes(self, partners: FloatArray) -> csr_array:
        """The derivatives of (G[i,a] G[j,b] + G[i,b] G[j,a])/2, summed over r, by all entries.

        What each G_r is multiplied with is its partner: itself, and E for C.
        """
        numbers = np.arange(partners.size).reshape(partners.shape)
        number = np.arange(self.i.size)
        rows, columns, values = [], [], []
        i, j, a, b = self.i, self.j, self.a, self.b
        for own, other in (
            ((i, a), (j, b)),
            ((j, b), (i, a)),
            ((i, b), (j, a)),
            ((j, a), (i, b)),
        ):
            for r in range(len(partners)):
                rows.append(number)
                columns.append(numbers[r][own])
                values.append(partners[r][other] / 2)
        cells = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return csr_array(cells, shape=(self.i.size, partners.size))
