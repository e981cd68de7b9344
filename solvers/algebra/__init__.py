"""Matrices of second derivatives, and updates of them."""
