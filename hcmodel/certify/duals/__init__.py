"""Bounds from duals of cone programs."""
