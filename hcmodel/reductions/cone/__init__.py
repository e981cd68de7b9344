"""A proven model as one cone program."""
