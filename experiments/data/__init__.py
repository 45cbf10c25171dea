"""One file per data set: synthetic laws with known truth, and real tables."""
