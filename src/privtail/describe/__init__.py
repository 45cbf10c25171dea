"""Looking at private data: counts, quantiles, histograms, and a summary of every column."""
