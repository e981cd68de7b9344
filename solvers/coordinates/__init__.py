"""Coordinates in which methods of second order take their steps."""
