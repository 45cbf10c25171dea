"""Summaries of columns, amounts and residuals by noisy histograms, and standardized features.

The default, published algorithms by name and `privtail.private_mean` begin with them.
"""
