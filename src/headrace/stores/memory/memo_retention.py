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
        self._forget_if_pruned(key)
        return await super().load_answer(key)

    @atomic
    async def store_answer(self, key: str, answer: StoredAnswer) -> StoredAnswer:
        """Keep the answer unless the key is taken; returns the one that stands."""
        self._forget_if_pruned(key)
        self._state.answers.setdefault(key, self._state.now())
        return await super().store_answer(key, answer)

    def _forget_if_pruned(self, key: str) -> None:
        if key not in self._state.answers:
            self._answers.pop(key, None)
