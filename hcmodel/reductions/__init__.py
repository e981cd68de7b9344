"""Forms of a model, and the way from each back to the model as written."""
