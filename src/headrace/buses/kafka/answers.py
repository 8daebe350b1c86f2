"""What is answered for the messages of one call, so that the order of a key holds whatever became of each."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.event import Message
from headrace.ports.bus import BEHIND, LATER


def later(why: str) -> str:
    """Return the answer for a message that cannot be taken now.

    >>> later("no leader")
    'not now, try again: no leader'
    """
    return f"{LATER}: {why}"


def is_later(answer: str) -> bool:
    """Say whether an answer means that trying again helps."""
    return answer.startswith(LATER)


def _behind(answer: str) -> str:
    """Return what is answered for those that come after a message under its key."""
    return LATER if is_later(answer) else BEHIND


class Answers:
    """What became of messages, by their index; those of which nothing is noted are kept by the brokers."""

    def __init__(self, messages: Sequence[Message]) -> None:
        """Nothing is noted yet."""
        self._messages = messages
        self._told: dict[int, str] = {}

    def note(self, told: dict[int, str]) -> None:
        """Note, or anew, what is answered."""
        self._told.update(told)

    def forget(self, index: int) -> None:
        """Forget what was noted of one, because it is tried once more."""
        del self._told[index]

    def hold_back(self) -> list[int]:
        """Return which may be sent; those behind one that may not are noted."""
        stopped: dict[tuple[str, str], str] = {}
        for index, message in enumerate(self._messages):
            lane, answer = (message.topic, message.key), self._told.get(index)
            if lane in stopped:
                self._told[index] = stopped[lane]
            elif answer is not None:
                stopped[lane] = _behind(answer)
        return [index for index in range(len(self._messages)) if index not in self._told]

    def stops(self, index: int) -> bool:
        """Say whether one before it under its key is refused, or was not taken."""
        wanted = self._messages[index]
        return any(
            (self._messages[told].topic, self._messages[told].key) == (wanted.topic, wanted.key)
            for told in self._told
            if told < index
        )

    def settle(self) -> list[str | None]:
        """Return the answers in order. What came through behind one that did not is to come again behind it."""
        stopped: dict[tuple[str, str], str] = {}
        return [self._settled(index, stopped) for index in range(len(self._messages))]

    def _settled(self, index: int, stopped: dict[tuple[str, str], str]) -> str | None:
        lane, answer = (self._messages[index].topic, self._messages[index].key), self._told.get(index)
        if stopped.get(lane) == LATER or (lane in stopped and answer is not None):
            return stopped[lane]
        if answer is not None:
            stopped[lane] = _behind(answer)
        return answer
