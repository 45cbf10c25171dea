"""The tuned numbers of the default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The tuned numbers of the default, with their units.

    To change one for least squares, import both classes from `privtail.default` and give as the
    ``algorithm`` ``ScaledDescent(squares=True, tuning=Tuning(clipped_fraction=0.1))``. Most were
    chosen on ``benchmarks/comparison``. ``docs/ablation.md`` says how errors change with another
    value, also on other tables. The numbers of column summaries are in ``privtail/summaries``.

    Parameters
    ----------
    column_summaries, label_counts, screening, other : budget weights (`model_stages.Weighted`). All
        gradients of the descent together have the weight 1. A histogram of counts or amounts weighs
        as much as the column summaries, and their mean half of that; counts of declared indicators
        weigh as much as those of labels. ``other`` is for second moments, the residual histogram,
        the intercept-only model of numbers, each later move of an intercept and each mean gain. A
        median of the target before a selection has twice that weight.
    steps : number of gradients of the descent; a fifth of them come before the residual histogram.
    momentum : fraction of the last move that is added to a step; none for a loss with a kink.
    clipped_fraction : least value of the fraction f. Residuals are clipped at the quantile 1 - f of
        their nonzero absolute values, rounded up to a power of sqrt 2. For rare labels f is less.
        For counts and amounts it is also the largest part of the mean that clipping may take off.
    half_clipped_noise : relative noise of a gradient at which f is 1/2. At relative noise r
        (`Descend.relative_noise`) f is r / (r + half_clipped_noise), or ``clipped_fraction`` if
        that is more. To clip less under much noise, raise ``half_clipped_noise``.
    label_row_fraction : rows of labels are shrunk to this fraction of a typical length.
    max_noise_walk : how far noise alone may move the prediction of a typical row in one descent, in
        scales of the target or in log-odds. Step sizes follow from it.
    spurious_contraction : bias of the contraction of a step, as estimated from gradients, times
        (number of steps) / (1 - momentum). For a random walk of T steps it is 3, from T / 2 over
        T^2 / 6. For a descent that begins far from the optimum it is less.
    max_moments : second moments are released for at most this number of coordinates.
    intercept_moves : number of mean derivatives that move an intercept to a quantile, a target to
        its median before a selection, or a rate if there are exposures.
    heavy_tail_ratio : a tail is heavy if it is this many times as long as that of a usual feature.
    many_features : features are selected only if there are at least this many.
    prior_nonzero_slopes : prior count of nonzero slopes (`ShrinkSlopes`), times that of all slopes.
    score_to_noise : a selection takes as many features as can have scores this many times as large
        as the largest noise.
    max_relative_noise : features are selected if the relative noise of a gradient is larger; for K
        labels, larger than sqrt(K / 2) times this.
    likely, significant, sure : numbers of standard deviations of the noise above zero, from which a
        released number is called so. Noise alone exceeds them once in 6, 44 and 30,000 times.
    small_gain : a gain that should be detected. The first gain of labels is clamped there, in nats.
        For numbers and amounts, the far clamp is where a loss of this fraction of a typical one is
        significant. Twice this is the move of a typical margin of counts in their near gain.
    far_gain : clamp of the other gains of labels, in nats. Half of it is where margins are cut, in
        log-odds from the intercept-only model; times the dispersion, the near clamp of amounts.
    even_log_odds : labels count as about equally frequent if their log-odds differ by less than
        this. Their slopes are kept unless they are significantly worse.
    """

    column_summaries: float = 0.6
    label_counts: float = 0.2
    screening: float = 2.5
    other: float = 0.05
    steps: int = 25
    momentum: float = 0.5
    clipped_fraction: float = 0.2
    half_clipped_noise: float = 0.15
    label_row_fraction: float = 0.5
    max_noise_walk: float = 1.0
    spurious_contraction: float = 2.0
    max_moments: int = 512
    intercept_moves: int = 3
    heavy_tail_ratio: float = 1.5
    many_features: int = 50
    prior_nonzero_slopes: float = 120.0
    score_to_noise: float = 1.5
    max_relative_noise: float = 0.3
    likely: float = 1.0
    significant: float = 2.0
    sure: float = 4.0
    small_gain: float = 0.125
    far_gain: float = 4.0
    even_log_odds: float = 0.3
