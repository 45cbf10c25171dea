"""The tuned numbers of the default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The tuned numbers of the default, with their units.

    The numbers of column summaries stand in ``privtail/summaries``. Constants of modules follow
    from what their docstrings say. Most numbers here were chosen on the problems of
    ``benchmarks/comparison``. ``docs/ablation.md`` says what errors do without a number, also
    on tables that it was not chosen on, and which numbers have not been measured so.
    ``benchmarks/ablation`` halves and doubles any of them.

    Parameters
    ----------
    column_summaries, label_counts, screening, others : budget weights. All gradients of the descent
        together weigh 1, and a stage gets its weight over the sum of the weights of all stages of
        the fit (``default/pipeline.py`` has a line for each stage). A histogram of counts or
        amounts weighs as much as the column summaries. ``others`` is the weight of second moments,
        of the residual histogram, and of each mean derivative and mean gain.
    steps : number of gradients of the descent, a fifth of them before the residual histogram.
    momentum : fraction of the last move that is added to a step; at a kink none is.
    clipped : part of the residuals that is clipped, in (0, 1); with rare labels less of them. For
        counts and amounts, also the part of the mean that clipping may take off.
    half_clipped : relative noise of a gradient at which half of the residuals are clipped. At
        relative noise r it is r / (r + half_clipped) of them, if that is more than ``clipped``.
    label_row_length : rows of labels are shrunk to this part of `Preconditioner.row_length`.
    most_walk : how far noise alone may move the prediction of a typical row in one run of steps, in
        scales of the target, or in log-odds.
    spurious_contraction : noise makes gradients show a contraction per step that is too large by
        this times 1 - momentum over the number of steps. It would be 3 for noise alone: T / 2 over
        T^2 / 6, for a random walk of T steps. A descent that begins far from its end shows less.
    most_moments : with more coordinates second moments are not released.
    moves : number of moves of an intercept that is a quantile, of the median of a target before a
        selection, and of a rate beside exposures.
    heavier_tails : a tail is heavy if it is so many times as long as is usual.
    many_features : with fewer features none are left out.
    prior_slopes : weight of the prior that a slope is real, times the number of slopes.
    clear : how many times as large as the largest noise the score of a feature should be.
    crowded : relative noise of a gradient above which features are selected; for K labels it is
        sqrt(K / 2) times as much.
    likely, significant, sure : a released number is likely, significantly or surely above zero if
        it is so many standard deviations of its noise. By chance it is once in 6, 44 and 30,000
        times. Rare indicators are left out by ``significant``. Far margins of labels that gain
        nothing end ``sure`` typical lengths from the base.
    unclear_reach : where extrapolation neither significantly gains nor likely loses, features and
        predictions are clipped so many tails from their location.
    small_gain : a gain that is worth seeing. The first gain of labels is clamped there, in nats.
        Outer clamps of numbers and amounts are as far out as noise lets a mean loss be seen that is
        this part of a typical one.
    far_gain : clamp of other gains of labels, in nats. Half of it is where the cut margins of two
        labels end, in log-odds from those of the intercept-only model; and, times the dispersion,
        the first clamp of counts and amounts.
    lenient_lead : if the most frequent label leads the rarest by less log-odds than this, slopes
        are kept unless they are significantly worse.
    """

    column_summaries: float = 0.6
    label_counts: float = 0.2
    screening: float = 2.5
    others: float = 0.05
    steps: int = 25
    momentum: float = 0.5
    clipped: float = 0.2
    half_clipped: float = 0.15
    label_row_length: float = 0.5
    most_walk: float = 1.0
    spurious_contraction: float = 2.0
    most_moments: int = 512
    moves: int = 3
    heavier_tails: float = 1.5
    many_features: int = 50
    prior_slopes: float = 120.0
    clear: float = 1.5
    crowded: float = 0.3
    likely: float = 1.0
    significant: float = 2.0
    sure: float = 4.0
    unclear_reach: float = 8.0
    small_gain: float = 0.125
    far_gain: float = 4.0
    lenient_lead: float = 0.3
