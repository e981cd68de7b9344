"""Paths along which an objective falls, and better points beside one."""
