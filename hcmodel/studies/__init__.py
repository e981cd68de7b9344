"""Studies of a problem beyond one solve: derivatives, relaxation, and sweeps over parameters and starts."""
