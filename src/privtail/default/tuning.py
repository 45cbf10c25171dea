"""The numbers of the default that no theorem gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Tuned numbers of the default, with their units; those of one stage stand in its module.

    They were chosen on the problems of ``benchmarks/comparison``; ``docs/ablation.md`` says what
    each is worth there and on tables that they were not chosen on.

    Parameters
    ----------
    column_summaries, constant, label_counts, counts, moments, gradients, residual_histogram,
    intercept, gain, outliers, screening : weights of the budget: a stage gets its weight over the
        sum of the weights of all stages of the fit. All rounds of a stage share its weight; a gain
        has its own. The weight of column summaries is halved under a selection of features, which
        releases them twice; that of screening counts there alone.
    steps : gradients of the descent.
    first_steps : those of them that come before the residual histogram.
    momentum : part of its last move that a step goes on before the next gradient.
    clipped : part of the records whose residuals are clipped, in (0, 1), where noise is small.
    clipped_by_noise : records clipped in parts of all, for each unit of a gradient's relative
        noise; the larger of the two counts.
    most_clipped : largest part of the records that is clipped.
    label_row_length : rows of labels are shrunk to this part of the length of a typical row.
    most_walk : how far noise alone may move a prediction of a typical row in one run of steps, in
        scales of the target, or log-odds.
    sure_contraction : stated noise assumes only this part of the curvature that gradients show.
    outstanding : a direction counts with its own curvature if the released one is so many times the
        spectral norm of the noise.
    heavier_tails : a feature has heavy tails if they reach so many times farther than is usual.
    known_labels : counts of labels are known if their noise is less than n over this. Else the
        whole budget goes to them.
    unsure : multiple of the noise that finds any target (`ColumnSummaries.enough_for_target`) above
        which the user is told that its place may be wrong.
    few_features : how many features are selected at most where noise over all hides every slope.
    many_features : from so many features on, some may be left out.
    crowded : relative noise of a gradient from which a selection is better; for K labels
        sqrt(K / 2) times as much.
    usual_gain : standard deviations of its noise by which a gain is significant.
    likely_gain : standard deviations by which a gain is likely.
    surely_slopes : standard deviations by which the squares of slopes must exceed those of their
        noise for the slopes to be no noise.
    near_gain : nats at which small gains of labels are clamped.
    late_gain : nats at which the other gains of labels are clamped; those of counts at half of it,
        or later.
    visible_loss : the late clamp is so wide that a mean loss of this part of a typical one is
        significant, however few records it comes from.
    lenient_lead : lead of the most frequent label, in log-odds, below which a model of labels is
        kept unless it is surely worse.
    margin_end : log-odds beyond those of the intercept-only model, at which margins may end.
    """

    column_summaries: float = 0.6
    constant: float = 0.05
    label_counts: float = 0.2
    counts: float = 0.8
    moments: float = 0.1
    gradients: float = 1.0
    residual_histogram: float = 0.05
    intercept: float = 0.05
    gain: float = 0.05
    outliers: float = 0.02
    screening: float = 2.5
    steps: int = 25
    first_steps: int = 5
    momentum: float = 0.5
    clipped: float = 0.2
    clipped_by_noise: float = 4.0
    most_clipped: float = 0.65
    label_row_length: float = 0.5
    most_walk: float = 1.0
    sure_contraction: float = 1 / 3
    outstanding: float = 1.25
    heavier_tails: float = 1.5
    known_labels: float = 10.0
    unsure: float = 2.0
    few_features: int = 10
    many_features: int = 50
    crowded: float = 0.3
    usual_gain: float = 2.0
    likely_gain: float = 1.0
    surely_slopes: float = 4.0
    near_gain: float = 0.125
    late_gain: float = 4.0
    visible_loss: float = 0.1
    lenient_lead: float = 0.3
    margin_end: float = 2.0
