"""Engines: each compiles the same graph into values and derivatives of the stack."""
