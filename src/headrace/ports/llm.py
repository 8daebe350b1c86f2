"""The model provider, as the LLM call sees it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, Embeddings, TextPart


class Provider(Protocol):
    """One endpoint and account of models. It never retries and never remembers: that is the caller's part."""

    @property
    def name(self) -> str:
        """The provider's name, for example `openai`; part of the memo key."""
        ...

    @property
    def model(self) -> str:
        """The model that is asked unless a request names another; part of the memo key."""
        ...

    @property
    def style(self) -> AnswerStyle:
        """What it can be asked for."""
        ...

    async def prepare(self) -> None:
        """Make ready what a first call needs, such as a client or a server; asks nothing, and does nothing twice.

        Raises what `complete` would raise for it.
        """
        ...

    async def complete(self, request: CompletionRequest) -> Answer:
        """Ask once and return the whole answer, also when it is cut or refused (see `finish_reason`).

        Raises `ProviderError`, already sorted by class. Ends within the provider's own total deadline.
        """
        ...

    def stream(self, request: CompletionRequest) -> AsyncGenerator[TextPart | Answer]:
        """Ask once; the parts of the text as they arrive, and at the end the whole answer with its usage.

        Raises like `complete`, also in the midst of it. Closing the iterator ends the call.
        """
        ...

    async def embed(self, texts: tuple[str, ...], *, model: str) -> Embeddings:
        """Return a vector for each text. Raises `ProviderError`; InvalidRequestError where it has no embeddings."""
        ...

    async def aclose(self) -> None:
        """Release connections and processes. Allowed twice, and before the first call."""
        ...
