"""The memo with dates, so that the pruner can forget old answers."""

from __future__ import annotations

from headrace.model.llm import StoredAnswer
from headrace.stores.memory.memo_store import MemoryMemoStore
from headrace.stores.memory.state import State, atomic


class DatedMemoStore(MemoryMemoStore):
    """A memo whose answers exist as long as their date does: pruning removes the date."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self._state = state

    @atomic
    async def load_answer(self, key: str) -> StoredAnswer | None:
        """The answer under this key, or None."""
        return self.peek(key)

    @atomic
    async def store_answer(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        """Keep the answer unless the key is taken; returns the one that stands."""
        self.keep(key, answer)
        return await super().store_answer(key, answer)

    def peek(self, key: str) -> StoredAnswer | None:
        """Return the answer under a key, for a verb that holds the lock of the state."""
        if key not in self._state.answers:
            self._answers.pop(key, None)
        text = self._answers.get(key)
        return None if text is None else StoredAnswer.decode(text)

    def keep(self, key: str, answer: StoredAnswer, *, replace: bool = False) -> None:
        """Keep an answer where the key has none, or in the place of that, for a verb that holds the lock."""
        if replace or key not in self._state.answers:
            self._answers[key] = answer.encode()
            self._state.answers[key] = self._state.now()
