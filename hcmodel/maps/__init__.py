"""Hidden coordinates: which maps are known, and what they do to a model."""
