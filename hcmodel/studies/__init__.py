"""Studies of a problem beyond one solve: derivatives, relaxation, sweeps over parameters and starts."""
