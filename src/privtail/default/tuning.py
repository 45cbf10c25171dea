"""The numbers of the default that no theorem gives, but those of column summaries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The tuned numbers of the default, with their units.

    Not among them are those of column summaries, which stand in ``privtail/summaries``, and
    constants of modules whose docstring derives them. Most were chosen on the problems of
    ``benchmarks/comparison``; ``docs/ablation.md`` says what was measured of parts and numbers,
    also on tables that they were not chosen on. ``benchmarks/ablation`` halves and doubles any of
    them; most were not measured in this way yet.

    Parameters
    ----------
    column_summaries, label_counts, moments, screening, others : weights of the budget, in
        those of all gradients together: a stage gets its weight over the sum of the weights of all
        stages of the fit. All rounds of a stage share its weight. The weight of column summaries is
        halved under a selection of features, which releases them twice; that of screening counts
        there alone. A histogram of counts weighs as much as column summaries, and their mean half
        as much. ``others`` is the weight of the intercept-only model of a number, of the residual
        histogram, of the intercept, of each gain and of the outlier check; twice it that of the
        median of a target before a selection.
    steps : gradients of the descent.
    first_steps : those of them that come before the residual histogram.
    momentum : part of its last move that a step goes on before the next gradient.
    clipped : part of the records whose residuals are clipped at least, in (0, 1); and of the mean
        of counts and amounts that this takes off at most.
    half_clipped : relative noise of a gradient at which half of the records are clipped; at r it
        is r / (r + half_clipped) of them, if that is more than ``clipped``.
    label_row_length : rows of labels are shrunk to this part of `Preconditioner.row_length`.
    most_walk : how far noise alone may move a prediction of a typical row in one run of steps, in
        scales of the target, or log-odds.
    spurious_contraction : by this over the number of steps the contraction that gradients show is
        too large: noise alone makes it 3 (T / 2 over T^2 / 6 of a random walk of T steps), a far
        begin less.
    most_moments : with more coordinates second moments are too many, and are not released.
    hidden_curvature : rows are shrunk less, to more than the length of a typical one, as long as
        noise hides less than this of a curvature of 1.
    moves : how many moves find an intercept that is no mean, the median of a target before a
        selection, and a rate beside exposures.
    heavier_tails : a feature has heavy tails if they reach so many times farther than is usual.
    known_labels : counts of labels are known if their noise is less than n over this. Else the
        whole budget goes to them.
    few_features : how many features are selected at most where noise over all hides every slope.
    many_features : from so many features on, some may be left out.
    prior_slopes : the prior of the part of slopes that are real has the weight of this over the
        number of slopes.
    clear : how far the score of a feature should stand above the largest noise of all others.
    crowded : relative noise of a gradient from which a selection is better; for K labels
        sqrt(K / 2) times as much.
    likely, significant, sure : standard deviations of its noise by which a released number is
        likely above zero, significantly and surely: by chance once in 6, 44 and 30,000 times.
    near_gain : nats at which small gains of labels are clamped.
    late_gain : nats at which the other gains of labels are clamped; those of counts at half of it,
        or later.
    visible_loss : clamps of the outlier check, and of the second gain of numbers and counts, let a
        mean loss of this part of a typical one be seen, however few records it comes from.
    lenient_lead : lead of the most frequent label over the rarest, in log-odds, below which a model
        of labels is kept unless it is significantly worse.
    margin_end : log-odds beyond those of the intercept-only model, at which margins may end.
    """

    column_summaries: float = 0.6
    label_counts: float = 0.2
    moments: float = 0.1
    screening: float = 2.5
    others: float = 0.05
    steps: int = 25
    first_steps: int = 5
    momentum: float = 0.5
    clipped: float = 0.2
    half_clipped: float = 0.15
    label_row_length: float = 0.5
    most_walk: float = 1.0
    spurious_contraction: float = 2.0
    most_moments: int = 512
    hidden_curvature: float = 0.05
    moves: int = 3
    heavier_tails: float = 1.5
    known_labels: float = 10.0
    few_features: int = 10
    many_features: int = 50
    prior_slopes: float = 120.0
    clear: float = 1.5
    crowded: float = 0.3
    likely: float = 1.0
    significant: float = 2.0
    sure: float = 4.0
    near_gain: float = 0.125
    late_gain: float = 4.0
    visible_loss: float = 0.1
    lenient_lead: float = 0.3
    margin_end: float = 2.0
