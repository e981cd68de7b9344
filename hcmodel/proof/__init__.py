"""The search for coordinates in which a model is convex, and the proof that it is."""
