"""Models as sums of products, and how maps rewrite these."""
