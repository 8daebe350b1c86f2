"""How fast models answered this process lately: what a caller needs to cut work so that it keeps a time."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from headrace.ports.call_observer import CallReport

#: Calls that a pace is told of: the latest.
MOST_CALLS = 200
#: Shorter answers tell nothing of their rate.
TELLING_TOKENS = 20
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ModelPace:
    """How fast a model answered: of the last streamed calls of this process, 200 at most, that were paid for.

    Half of the calls were at least as fast as the first two figures say, nine of ten as the two that
    end on `p90`, one of ten as those on `p10`.
    """

    #: From sending a call to the first part of its answer.
    first_token_seconds: float
    #: From the first part on.
    tokens_per_second: float
    first_token_seconds_p90: float
    tokens_per_second_p90: float
    #: How many calls say so.
    calls: int
    #: One call of ten was at least as fast: about the model's own time, without what stood in its way.
    first_token_seconds_p10: float
    tokens_per_second_p10: float


class Paces:
    """Takes in the calls of all models, as an observer of calls."""

    def __init__(self) -> None:
        #: By provider and model: seconds to the first token, and seconds per token after it.
        self._calls: dict[tuple[str, str], deque[tuple[float, float]]] = {}

    def ended(self, report: CallReport) -> None:
        """Take in a call that ended; one that was not streamed, or not paid for, or is too short, tells nothing."""
        if report.answer is None or report.reused or not 0 < report.sent_at <= report.first_part_at:
            return
        tokens, writing = report.answer.usage.output_tokens, report.ended_at - report.first_part_at
        if tokens < TELLING_TOKENS or writing <= 0:
            return
        key = report.call.provider, report.call.model
        known = self._calls.setdefault(key, deque(maxlen=MOST_CALLS))
        first = (report.first_part_at - report.sent_at) / _NANOSECONDS
        known.append((first, writing / _NANOSECONDS / tokens))

    def of(self, provider: str, model: str) -> ModelPace | None:
        """Return the pace of a model; None: no call has told it yet."""
        known = self._calls.get((provider, model))
        if not known:
            return None
        firsts, per_token = (sorted(values) for values in zip(*known, strict=True))
        return ModelPace(
            first_token_seconds=_part(firsts, 0.5),
            tokens_per_second=1 / _part(per_token, 0.5),
            first_token_seconds_p90=_part(firsts, 0.9),
            tokens_per_second_p90=1 / _part(per_token, 0.9),
            calls=len(known),
            first_token_seconds_p10=_part(firsts, 0.1),
            tokens_per_second_p10=1 / _part(per_token, 0.1),
        )


def _part(ordered: list[float], part: float) -> float:
    """The value that this part of the others is not above."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
