"""A second core: noise in proportion to a smooth sensitivity. The first can be read without it.

Trimmed means and sample and aggregate, their questions and what they cost. The first core meets
them in three places: `accountants` asks what their noise costs (two functions of `accounting`), the
samplers draw it, and a plan may announce it. Only `TrimmedDescent` and `AggregatedMinimizer` ask
these questions.
"""
