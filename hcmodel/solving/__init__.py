"""From a request to a judged solution."""
