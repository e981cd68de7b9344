"""What models are written with: leaves, nodes, constraints, and the graph they form."""
