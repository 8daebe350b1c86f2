"""How many buffers one call of the model takes: few while it is slow, many while little gets through."""

from __future__ import annotations

from enum import StrEnum

from headrace import InvalidInputError


class Mode(StrEnum):
    """A size of batches."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


#: Buffers of one call, by mode.
SIZES = {Mode.SMALL: 5, Mode.MEDIUM: 10, Mode.LARGE: 20}
#: The setting that leaves the choice to what was measured.
SMART = "smart"
#: Above this latency of a call, in milliseconds, batches are small.
SLOW_MS = 5_000
#: Below this many buffers per second batches are large.
FEW_PER_SECOND = 100


def choose_mode(latency_ms: float | None, throughput: float | None) -> Mode:
    """Return the mode for a mean latency of calls in milliseconds, and for buffers per second; None: not measured.

    >>> choose_mode(6_000, 20), choose_mode(900, 20), choose_mode(900, 200), choose_mode(None, None)
    (<Mode.SMALL: 'small'>, <Mode.LARGE: 'large'>, <Mode.MEDIUM: 'medium'>, <Mode.MEDIUM: 'medium'>)
    """
    if latency_ms is not None and latency_ms > SLOW_MS:
        return Mode.SMALL
    if throughput is not None and throughput < FEW_PER_SECOND:
        return Mode.LARGE
    return Mode.MEDIUM


def mode_of(setting: str, latency_ms: float | None = None, throughput: float | None = None) -> Mode:
    """Return the mode that `[memory] batch_mode` says; of "smart" the one that what was measured chooses.

    Raises InvalidInputError for another word.

    >>> mode_of("large", 9_000), mode_of("smart", 9_000)
    (<Mode.LARGE: 'large'>, <Mode.SMALL: 'small'>)
    """
    if setting == SMART:
        return choose_mode(latency_ms, throughput)
    try:
        return Mode(setting)
    except ValueError:
        raise InvalidInputError("batch_mode", f"must be one of {', '.join((*Mode, SMART))}", setting) from None
