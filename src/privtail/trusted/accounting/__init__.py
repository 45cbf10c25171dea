"""Privacy theorems as curves: the epsilon for a delta, and the delta for an epsilon."""
