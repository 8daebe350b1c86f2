"""A provider whose answers are written down, for tests of the LLM call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from headrace.llm.gateway import LLM
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, FinishReason
from headrace.model.usage import Usage
from headrace.ports.memo_store import MemoStore
from headrace.stores.memory.memo_store import MemoryMemoStore

COST = Usage(input_tokens=10, output_tokens=5, calls=1)


def said(text: str, finish_reason: FinishReason = FinishReason.STOP) -> Answer:
    """An answer of the usual cost."""
    return Answer(text=text, finish_reason=finish_reason, usage=COST, model="written-1", request_id="req-1")


class WrittenProvider:
    """Gives its answers in turn (or what a function says), and keeps the requests. Errors are raised."""

    name = "written"
    model = "written-1"

    def __init__(
        self,
        answers: Iterable[Answer | Exception | str] | Callable[[CompletionRequest], str],
        style: AnswerStyle = AnswerStyle.STRICT_SCHEMA,
    ) -> None:
        self._function = answers if callable(answers) else None
        self._answers = iter(()) if callable(answers) else iter(answers)
        self.style = style
        self.requests: list[CompletionRequest] = []
        #: Calls wait for it.
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_closed = False

    async def complete(self, request: CompletionRequest) -> Answer:
        """The next answer, once the gate is open."""
        self.requests.append(request)
        await self.gate.wait()
        answer = self._function(request) if self._function else next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return said(answer) if isinstance(answer, str) else answer

    async def aclose(self) -> None:
        """Note it."""
        self.is_closed = True


def llm_of(provider: WrittenProvider, memo: MemoStore | None = None) -> LLM:
    """An LLM over this provider, with a memo of its own unless one is given."""
    return LLM(lambda: provider, memo or MemoryMemoStore())
