"""Summaries of messages: from the cache, or from the model, alone or together with those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from uuid import UUID

from headrace import Context
from headrace.apps.memory.cache import ResultCache, answer_key
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.means import terms
from headrace.apps.memory.opening import app
from headrace.apps.memory.writing import PROMPT_VERSION, Writer


@dataclass(slots=True)
class Summaries:
    """Makes the summaries of one job."""

    context: Context
    #: how often the flush failed before: what was of no use then is bought anew
    round: int = 0
    #: how long the call for several took, once it was made
    called_ms: float | None = None
    cache: ResultCache = field(default_factory=lambda: ResultCache(app))

    def writer(self, language: str = "auto") -> Writer:
        """Return what asks the model; its answers are steps of the job."""
        return Writer(app.llm, replace(terms(), language=language), self.context.step, sample=self.round)

    async def of_one(self, blobs: Sequence[Blob], language: str) -> str:
        """Return the summary of a flush's blobs."""
        key = self._key(blobs, language)
        known = None if self.round else await self.cache.get(key)
        if known is not None:
            return known
        summary = await self.writer(language).summarise(blobs)
        await self.cache.put(key, summary)
        return summary

    async def of_many(
        self, parts: Sequence[tuple[UUID, Sequence[Blob]]], languages: Mapping[UUID, str]
    ) -> dict[UUID, str | None]:
        """Return the summaries of several flushes, asked for in one call; None: it has to be asked for alone."""
        keys = {flush: self._key(blobs, languages[flush]) for flush, blobs in parts}
        # As a step: what is asked must be the same in each try, whatever the cache knows then.
        known = await self.context.step("cached", lambda: self._all_known(keys))
        found: dict[UUID, str | None] = {flush: known[str(flush)] for flush in keys if str(flush) in known}
        rest = [(str(flush), blobs) for flush, blobs in parts if flush not in found]
        if not rest:
            return found
        began = monotonic()
        own = {str(flush): language for flush, language in languages.items()}
        made = await self.writer().summarise_together(rest, own)
        self.called_ms = (monotonic() - began) * 1000
        for flush, summary in made.items():
            found[UUID(flush)] = summary
            if summary is not None:
                await self.cache.put(keys[UUID(flush)], summary)
        return found

    async def _all_known(self, keys: dict[UUID, str]) -> dict[str, str]:
        texts = {flush: await self.cache.get(key) for flush, key in keys.items()}
        return {str(flush): text for flush, text in texts.items() if text is not None}

    def _key(self, blobs: Sequence[Blob], language: str) -> str:
        model = f"{app.llm.provider_name}/{app.llm.model_name}"
        said = self.writer(language).summary_content(blobs)
        return answer_key(said, prompt=PROMPT_VERSION, model=model, language=language)
