"""Model files of other people: CBF and MathOptFormat, read and written."""
