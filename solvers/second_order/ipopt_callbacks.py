"""The functions of a `Bridge` as callbacks of casadi, and the call of IPOPT with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import casadi
import numpy as np
import scipy
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hcmodel.solvers.second_order.ipopt_ import Bridge

FloatArray = NDArray[np.float64]


class _Callback(casadi.Callback):
    """A Python function with named arguments and results of known patterns.

    casadi would print what it raises: it is kept in the bridge, and IPOPT is told of no number, then and
    whenever it asks again, with which it ends.
    """

    def __init__(
        self,
        bridge: Bridge,
        name: str,
        arguments: dict[str, Any],
        results: dict[str, Any],
        function: Callable[..., Sequence[Any]],
    ) -> None:
        casadi.Callback.__init__(self)
        self._bridge, self._function = bridge, function
        self._arguments, self._results = arguments, results
        # IPOPT asks thousands of times before it takes no numbers for an answer.
        self._nothing = [casadi.DM(p, np.full(p.nnz(), np.nan)) for p in results.values()]
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._arguments)

    def get_n_out(self) -> int:
        return len(self._results)

    def get_name_in(self, number: int) -> str:
        return list(self._arguments)[number]

    def get_name_out(self, number: int) -> str:
        return list(self._results)[number]

    def get_sparsity_in(self, number: int) -> Any:
        return list(self._arguments.values())[number]

    def get_sparsity_out(self, number: int) -> Any:
        return list(self._results.values())[number]

    def eval(self, arguments: Sequence[Any]) -> list[Any]:
        if self._bridge.error is None:
            try:
                patterns = self._results.values()
                vectors = [np.array(argument.nonzeros()) for argument in arguments]
                found = self._function(*vectors)
                return [casadi.DM(p, np.asarray(v)) for p, v in zip(patterns, found, strict=True)]
            except BaseException as error:
                self._bridge.error = error
        return self._nothing


def _pattern(matrix: scipy.sparse.csr_array) -> tuple[Any, FloatArray]:
    """casadi's pattern, and the order in which it takes the entries of compressed rows."""
    numbered = matrix.copy()
    numbered.data = np.arange(matrix.nnz, dtype=float)
    columns = numbered.tocsc()
    columns.sort_indices()
    rows, count = matrix.shape
    pattern = casadi.Sparsity(rows, count, columns.indptr.tolist(), columns.indices.tolist())
    return pattern, columns.data.astype(int)


def run_ipopt(
    bridge: Bridge, start: FloatArray, lowest: FloatArray, settings: dict[str, Any], *, exact: bool
) -> tuple[FloatArray, FloatArray, str]:
    """The point, the multipliers of the rows, and the words with which IPOPT ends."""
    column, number = casadi.Sparsity.dense, casadi.Sparsity.scalar()
    x, p, rows = column(start.size, 1), column(0, 1), column(lowest.size, 1)
    assert bridge.patterns.jacobian is not None
    slopes, order = _pattern(bridge.patterns.jacobian)

    def with_slopes(point: FloatArray, _: Any) -> tuple[Any, ...]:
        return bridge.values(point)[1], bridge.jacobian(point).data[order]

    kept: list[Any] = [
        _Callback(
            bridge,
            "nlp",
            {"x": x, "p": p},
            {"f": number, "g": rows},
            lambda point, _: bridge.values(point),
        ),
        _Callback(
            bridge,
            "nlp_grad_f",
            {"x": x, "p": p},
            {"f": number, "grad_f_x": x},
            lambda point, _: (bridge.values(point)[0], bridge.gradient(point)),
        ),
        _Callback(
            bridge, "nlp_jac_g", {"x": x, "p": p}, {"g": rows, "jac_g_x": slopes}, with_slopes
        ),
    ]
    options: dict[str, Any] = {
        "grad_f": kept[1],
        "jac_g": kept[2],
        **dict.fromkeys(("calc_f", "calc_g", "calc_lam_x", "calc_lam_p", "print_time"), False),
        "error_on_fail": False,
        "no_nlp_grad": True,
        "show_eval_warnings": False,
        "ipopt": {**settings, "print_level": 0, "sb": "yes"},
    }
    if exact:
        assert bridge.patterns.hessian is not None
        curved, places = _pattern(bridge.patterns.hessian)

        def second(point: FloatArray, _: Any, factor: FloatArray, weights: FloatArray) -> Any:
            return (bridge.hessian(point, float(factor[0]), weights).data[places],)

        arguments = {"x": x, "p": p, "lam_f": number, "lam_g": rows}
        kept.append(
            _Callback(bridge, "nlp_hess_l", arguments, {"triu_hess_gamma_x_x": curved}, second)
        )
        options["hess_lag"] = kept[3]
    else:
        options["ipopt"]["hessian_approximation"] = "limited-memory"
    solver = casadi.nlpsol("solver", "ipopt", kept[0], options)
    found = solver(
        x0=start, lbx=bridge.lower, ubx=bridge.upper, lbg=lowest, ubg=np.zeros(lowest.size)
    )
    point = np.array(found["x"].full()).ravel()
    multipliers = np.array(found["lam_g"].full()).ravel()
    return point, multipliers, str(solver.stats()["return_status"])
