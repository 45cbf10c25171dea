"""A second core: noise in proportion to a smooth sensitivity. The first can be read without it.

Trimmed means and sample and aggregate, their questions and what they cost. The first core meets
them where a plan announces their noise, and only then loads what is here: to price it (two
functions of `accounting`), and to compile it. Samplers draw it. Only `TrimmedDescent` and
`AggregatedMinimizer` ask these questions.
"""
