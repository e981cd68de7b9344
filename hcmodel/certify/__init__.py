"""Certified lower bounds and certified infeasibility."""
