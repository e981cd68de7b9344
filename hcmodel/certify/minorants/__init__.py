"""Bounds from linear minorants of the Lagrangian, and the sets that hold points of low value."""
