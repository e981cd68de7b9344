"""What maps of regulators share: matrices put together, squares, inequalities, what grows."""
