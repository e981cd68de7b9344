"""Declared maps, which are not proven: tests that a bound rests on."""
