"""What holds for every test.

One thread for linear algebra, since the workers share the cores already. Compiled modules are kept,
also where the environment says otherwise: tests start dozens of processes, and each would compile the
package again. No limit on time for the examples of hypothesis, since a busy machine is not an error.
Thousands of collected tests are left out of the collections of garbage, which took a fifth of the time.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")


def pytest_collection_finish() -> None:
    """Nothing that exists by now is garbage; small objects may be a little older before they are."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A worker that is done takes tests from the other one, which else ends ten seconds later."""
    from xdist.scheduler import WorkStealingScheduling  # an extra, present where this is called

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None


@pytest.fixture(scope="session", autouse=True)
def tables() -> Iterator[None]:
    """Tests leave the tables as they were: `auto` takes the first engine that fits, in their order."""
    from hcmodel.engines.registry import ENGINES  # after the number of threads is set
    from hcmodel.solvers.methods import METHODS

    before = list(ENGINES), list(METHODS)
    yield
    assert (list(ENGINES), list(METHODS)) == before


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """`time.monotonic` as the test says, so that limits on time do not depend on the machine."""
    fake = FakeClock()
    monkeypatch.setattr(time, "monotonic", fake.read)
    return fake


@dataclass
class FakeClock:
    """Stands still, unless each look at it advances it by `tick` seconds."""

    now: float = 1000.0
    tick: float = 0.0

    def read(self) -> float:
        self.now += self.tick
        return self.now
