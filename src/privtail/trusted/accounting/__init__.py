"""Privacy theorems as curves: what epsilon a delta buys, and the other way round."""
