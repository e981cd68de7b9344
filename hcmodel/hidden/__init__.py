"""Hidden coordinates: whether a model is convex in them, and in which."""
