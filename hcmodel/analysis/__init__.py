"""Refutation by samples, stationary points, estimated constants."""
