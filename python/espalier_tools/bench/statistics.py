"""Medians, and how far a ratio of two engines may be from what rounds that were paired in time show."""

import random
from typing import Sequence

RESAMPLES = 4000
CONFIDENCE = 0.95


def quantile(samples: Sequence[float], q: float) -> float:
    """Linear between the neighbouring samples, as espalier/measure/statistics.h has it."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    place = q * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median(samples: Sequence[float]) -> float:
    return quantile(samples, 0.5)


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median of the rounds' ratios, and the bootstrap interval of that median.

    A machine's speed moves from minute to minute and takes both engines of a round with it: so a ratio is formed in each
    round, and rounds are what is drawn again.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} samples against {len(theirs)}: rounds must be paired")
    ratios = [a / b for a, b in zip(ours, theirs)]
    draw = random.Random(1)
    medians = [median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)]
    tail = (1 - CONFIDENCE) / 2
    return median(ratios), quantile(medians, tail), quantile(medians, 1 - tail)
