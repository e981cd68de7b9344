"""Models whose functions are affine or sums of exponentials, as arrays."""
