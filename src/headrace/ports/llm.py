"""The model provider, as the LLM call sees it."""

from __future__ import annotations

from typing import Protocol

from headrace.model.llm import Answer, AnswerStyle, CompletionRequest


class Provider(Protocol):
    """One model behind one endpoint. It never retries and never remembers: that is the caller's part."""

    @property
    def name(self) -> str:
        """The provider's name, for example `openai`; part of the memo key."""
        ...

    @property
    def model(self) -> str:
        """The model's name, whatever endpoint serves it; part of the memo key."""
        ...

    @property
    def style(self) -> AnswerStyle:
        """What it can be asked for."""
        ...

    async def complete(self, request: CompletionRequest) -> Answer:
        """Ask once and return the whole answer, also when it is cut or refused (see `finish_reason`).

        Raises `ProviderError`, already sorted by class. Ends within the provider's own total deadline.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and processes. Allowed twice, and before the first call."""
        ...
