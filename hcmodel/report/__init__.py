"""How solutions are shown: text, JSON, HTML, pictures."""
