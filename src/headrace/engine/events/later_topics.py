"""Topics that cannot take messages for now: each is left alone for a pause, so that it holds up no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.engine.outage import Outage
from headrace.model.errors import BusUnavailableError

#: The first pause, and the longest, seconds.
PAUSES = (0.2, 5.0)


@dataclass(slots=True)
class _Pause:
    """What is known of a topic that could not take messages, kept so that one that comes and goes is not said often."""

    outage: Outage
    seconds: float = 0.0
    until: float = 0.0


class LaterTopics:
    """The pauses of topics: each doubles with every try in vain, and begins anew once the topic answers."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._pauses: dict[str, _Pause] = {}

    def left_out(self) -> list[str]:
        """Return the topics whose pause is not over."""
        now = asyncio.get_running_loop().time()
        return sorted(topic for topic, pause in self._pauses.items() if pause.until > now)

    def note(self, tried: Iterable[str], later: Mapping[str, str]) -> float | None:
        """Note which topics were tried, and why some take nothing for now; return in how many seconds one is due."""
        for topic in set(tried) - later.keys():
            if topic in self._pauses:
                self._pauses[topic].seconds = 0.0
        return min((self._lengthen(topic, why) for topic, why in later.items()), default=None)

    def _lengthen(self, topic: str, why: str) -> float:
        what = f"events wait in the outbox, the bus does not take those of {topic} for now"
        pause = self._pauses.setdefault(topic, _Pause(Outage(self._log, what)))
        pause.outage.note(BusUnavailableError(why))
        pause.seconds = min(max(PAUSES[0], 2 * pause.seconds), PAUSES[1])
        pause.until = asyncio.get_running_loop().time() + pause.seconds
        return pause.seconds
