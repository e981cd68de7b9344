"""The samples of `hcmodel.testing`, under the name that the tests of atoms use."""

from hcmodel.testing.samples import ALL_SAMPLES, SAMPLES, Sample, definite

__all__ = ["ALL_SAMPLES", "SAMPLES", "Sample", "definite"]
