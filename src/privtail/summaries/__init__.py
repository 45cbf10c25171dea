"""What noisy histograms tell: of columns, amounts and residuals, and how columns are standardized.

The default, published algorithms by name and `privtail.private_mean` begin with it.
"""
