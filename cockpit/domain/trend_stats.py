"""Two robust statistics of short series: is there a trend (Mann-Kendall), and how steep is it (Theil-Sen)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

NORMAL_95 = 1.96


def mann_kendall_z(values: Sequence[float]) -> float:
    """The tie-corrected score of a monotone trend; above 1.96 it rises with 97.5 % confidence."""
    count = len(values)
    score = sum(
        (later > value) - (later < value)
        for place, value in enumerate(values)
        for later in values[place + 1 :]
    )
    spread = count * (count - 1) * (2 * count + 5)
    spread -= sum(tied * (tied - 1) * (2 * tied + 5) for tied in Counter(values).values())
    if spread <= 0 or score == 0:
        return 0.0
    return (score - math.copysign(1, score)) / math.sqrt(spread / 18)


def theil_sen(times: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """(slope, lower, upper) of the median line with its 95 % interval; zeros for fewer than two points."""
    slopes = sorted(
        (values[right] - values[left]) / (times[right] - times[left])
        for left in range(len(times))
        for right in range(left + 1, len(times))
        if times[right] > times[left]
    )
    if not slopes:
        return 0.0, 0.0, 0.0
    count, points = len(slopes), len(times)
    middle = count // 2
    slope = slopes[middle] if count % 2 else (slopes[middle - 1] + slopes[middle]) / 2
    reach = NORMAL_95 * math.sqrt(points * (points - 1) * (2 * points + 5) / 18)
    lower = slopes[max(0, int((count - reach) / 2))]
    upper = slopes[min(count - 1, int((count + reach) / 2) + 1)]
    return slope, lower, upper


def line_through(values: Sequence[float]) -> tuple[float, float, float]:
    """(first, last, t) of the least-squares line over equally spaced values; t is its slope's t value."""
    count = len(values)
    middle_x, middle_y = (count - 1) / 2, sum(values) / count
    width = sum((place - middle_x) ** 2 for place in range(count))
    slope = (
        sum((place - middle_x) * (value - middle_y) for place, value in enumerate(values)) / width
    )
    rest = sum(
        (value - middle_y - slope * (place - middle_x)) ** 2 for place, value in enumerate(values)
    )
    error = math.sqrt(rest / (count - 2) / width)
    t = slope / error if error > 1e-12 else math.copysign(math.inf, slope) if slope else 0.0
    return middle_y - slope * middle_x, middle_y + slope * middle_x, t
