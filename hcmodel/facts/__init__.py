"""What is known of an expression: signs, intervals, curvature, patterns."""
