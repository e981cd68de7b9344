"""Convex sets: everything that methods, certificates and the analysis ask of the set of the variables."""
