"""Convex sets: what methods may ask of the set of the variables."""
