"""Models without a point at which every function is defined, by propagation in rational numbers."""
