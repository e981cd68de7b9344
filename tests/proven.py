"""Whether a model is proven, without the samples that `is_hidden_convex` looks at otherwise."""

from __future__ import annotations

import hcmodel as hc
from hcmodel.reductions.forms import Forms


def is_proven(problem: hc.Problem) -> bool:
    form = Forms(problem.model).hidden()
    return form is not None and form.proof is not None
