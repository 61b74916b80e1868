"""How far a host's clock is from ours."""


def skew(clock: float, before: float, after: float) -> float:
    """Seconds a host's clock is ahead (behind: negative) of ours, at least.

    + clock: the host's time, read at some moment between our times `before` and `after`
    """
    return clock - after if clock > after else min(clock - before, 0.0)
