"""Summaries of messages: from the cache, or from the model, alone or together with those of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from uuid import UUID

from headrace import Context
from headrace.apps.memory.cache import content_key, summaries_cache
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.means import settings, terms
from headrace.apps.memory.meters import METER
from headrace.apps.memory.opening import app
from headrace.apps.memory.writing import PROMPT_VERSION, Writer


@dataclass(slots=True)
class Summaries:
    """Makes the summaries of one job."""

    context: Context

    @property
    def writer(self) -> Writer:
        """What asks the model; its answers are steps of the job."""
        return Writer(app.llm, terms(), self.context.step)

    async def of_one(self, blobs: Sequence[Blob]) -> str:
        """Return the summary of a flush's blobs."""
        key = self._key(blobs)
        known = await self._known(key)
        if known is not None:
            return known
        summary = await self.writer.summarise(blobs)
        await self._keep(key, summary)
        return summary

    async def of_many(self, parts: Sequence[tuple[UUID, Sequence[Blob]]]) -> dict[UUID, str | None]:
        """Return the summaries of several flushes, asked for in one call; None: it has to be asked for alone."""
        keys = {flush: self._key(blobs) for flush, blobs in parts}
        # As a step: what is asked must be the same in each try, whatever the cache knows then.
        known = await self.context.step("cached", lambda: self._all_known(keys))
        found: dict[UUID, str | None] = {flush: known[str(flush)] for flush in keys if str(flush) in known}
        rest = [(str(flush), blobs) for flush, blobs in parts if flush not in found]
        if not rest:
            return found
        began = monotonic()
        made = await self.writer.summarise_together(rest)
        METER.note((monotonic() - began) * 1000, len(rest))
        for flush, summary in made.items():
            found[UUID(flush)] = summary
            if summary is not None:
                await self._keep(keys[UUID(flush)], summary)
        return found

    async def _all_known(self, keys: dict[UUID, str]) -> dict[str, str]:
        texts = {flush: await self._known(key) for flush, key in keys.items()}
        return {str(flush): text for flush, text in texts.items() if text is not None}

    def _key(self, blobs: Sequence[Blob]) -> str:
        llm = app.llm
        said = [[blob.type, dict(blob.data)] for blob in blobs]
        return content_key(PROMPT_VERSION, llm.provider_name, llm.model_name, terms().mark, said)

    async def _known(self, key: str) -> str | None:
        return await summaries_cache(app).get(key) if settings().enable_caching else None

    async def _keep(self, key: str, summary: str) -> None:
        if settings().enable_caching:
            await summaries_cache(app).put(key, summary)
