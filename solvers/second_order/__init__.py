"""Methods of second order: trust regions with their parts, and whole convex programs (`direct.py`)."""
