"""Column summaries from noisy histograms: location, scale, tails, and how sure these are.

The default, published algorithms by name and `privtail.private_mean` begin with it.
"""
