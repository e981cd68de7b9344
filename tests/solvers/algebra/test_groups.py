from __future__ import annotations

import numpy as np
import pytest
import scipy

from hcmodel.solvers.algebra.groups import joined


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_connected_components(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ones, others = rng.integers(1, 30, size=2)
    links = rng.integers(0, ones, size=seed * 2), rng.integers(0, others, size=seed * 2)
    found = joined(*links, ones, others)
    size = int(ones + others)
    graph = scipy.sparse.coo_array(
        (np.ones(seed * 2), (links[0], ones + links[1])), shape=(size, size)
    )
    labels = scipy.sparse.csgraph.connected_components(graph, directed=False)[1][:ones]
    assert ((labels[:, None] == labels) == (found[:, None] == found)).all()
    assert all(found[group].min() == label for label in set(found) for group in [found == label])
    assert (found <= np.arange(ones)).all()


def test_a_long_chain_is_one_group() -> None:
    count = 1000
    one = np.concatenate([np.arange(count), np.arange(1, count)])
    other = np.concatenate([np.arange(count), np.arange(count - 1)])
    assert not joined(one, other, count, count).any()
