"""Values and derivatives of losses at rows: our loops, and calls of functions of others."""
