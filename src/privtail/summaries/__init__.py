"""What noisy histograms tell of columns: location, scale, tails, and how sure that is.

The default, published algorithms by name and `privtail.private_mean` begin with it.
"""
