"""A provider whose answers are written down, for tests of the LLM call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from datetime import timedelta
from uuid import UUID

from headrace.engine.llm_session import CallerSession
from headrace.llm.calling import Means
from headrace.llm.counting import Tally
from headrace.llm.endpoint import Endpoint
from headrace.llm.gateway import LLM
from headrace.llm.ledger import Ledger
from headrace.llm.models import Models
from headrace.llm.quota import Quotas
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, Embeddings, FinishReason, TextPart
from headrace.model.prices import Cost
from headrace.model.quota import Pool, PoolLimits
from headrace.model.usage import Usage
from headrace.ports.call_observer import Observers
from headrace.ports.llm import Provider
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores

#: A call costs 10 nanodollars a token.
TOKEN = 10
COST = Usage(input_tokens=10, output_tokens=5, calls=1, cost_nano=150)


def said(text: str, finish_reason: FinishReason = FinishReason.STOP) -> Answer:
    """An answer of the usual cost."""
    usage = Usage(input_tokens=10, output_tokens=5, calls=1)
    return Answer(text=text, finish_reason=finish_reason, usage=usage, model="written-1", request_id="req-1")


class WrittenProvider:
    """Gives its answers in turn (or what a function says), and keeps the requests. Errors are raised."""

    name = "written"

    def __init__(
        self,
        answers: Iterable[Answer | Exception | str] | Callable[[CompletionRequest], str],
        style: AnswerStyle = AnswerStyle.STRICT_SCHEMA,
        model: str = "written-1",
    ) -> None:
        self._function = answers if callable(answers) else None
        self._answers = iter(()) if callable(answers) else iter(answers)
        self.style, self.model = style, model
        self.requests: list[CompletionRequest] = []
        #: Calls wait for it.
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_closed = False

    async def prepare(self) -> None:
        """Nothing is needed."""

    async def complete(self, request: CompletionRequest) -> Answer:
        """The next answer, once the gate is open."""
        self.requests.append(request)
        await self.gate.wait()
        answer = self._function(request) if self._function else next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return said(answer) if isinstance(answer, str) else answer

    async def stream(self, request: CompletionRequest) -> AsyncGenerator[TextPart | Answer]:
        """The next answer, four characters at a time."""
        answer = await self.complete(request)
        for start in range(0, len(answer.text), 4):
            yield TextPart(answer.text[start : start + 4])
            await asyncio.sleep(0)
        yield answer

    async def embed(self, texts: tuple[str, ...], *, model: str) -> Embeddings:
        """A vector of a text's length."""
        return Embeddings(tuple((float(len(text)),) for text in texts), Usage(len(texts), 0, 1), model)

    async def aclose(self) -> None:
        """Note it."""
        self.is_closed = True


class OnePrice:
    """Every token of every model costs the same."""

    def cost(self, provider: str, model: str, usage: Usage) -> Cost | None:
        """`TOKEN` for each."""
        return Cost(TOKEN * usage.tokens, "written")


async def _hold_nothing(pool: str, wait: timedelta) -> None:
    pass


def means_of(stores: Stores) -> Means:
    """What calls go through, over these stores."""
    session = CallerSession(stores, dict)

    async def session_id() -> UUID:
        return await session.id()

    return Means(
        ledger=Ledger(stores.calls, session_id), quotas=Quotas(stores.limiter), memo=stores.memo,
        budgets=stores.budgets, observer=Observers(), tally=Tally(), hold_jobs=_hold_nothing,
    )  # fmt: skip


def llm_of(
    provider: Provider, stores: Stores | None = None, *, limits: PoolLimits | None = None,
    others: Mapping[str, Provider] | None = None, escalate_to: str | None = None,
) -> LLM:  # fmt: skip
    """An LLM over this provider, with stores of its own unless some are given; `others` by the names of models."""
    limits = limits or PoolLimits(requests_per_minute=6_000_000)
    endpoints = {
        name: Endpoint(
            open=lambda chosen=chosen: chosen, pool=Pool(f"written:{chosen.model}", limits), prices=OnePrice(),
            name=name,
            escalate_to=None if name else escalate_to,
        )
        for name, chosen in {"": provider, **(others or {})}.items()
    }  # fmt: skip
    return LLM(Models(endpoints, means_of(stores or open_memory_stores())))
