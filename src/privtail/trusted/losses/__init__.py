"""What losses say of rows: the loops of ours, and how functions of others are called."""
