"""Studies of a problem beyond one solve, such as sweeps over parameters, starts and scenarios."""
