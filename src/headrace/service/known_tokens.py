"""Tokens as the store has them, asked for once in a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from headrace.model.api_token import ApiToken, TokenState, digest_of, is_token
from headrace.model.errors import HeadraceError
from headrace.ports.token_store import TokenStore
from headrace.service.problems import RequestError

LOG = logging.getLogger("headrace.service")

#: What the store said holds so long, counted from the question: with the time for an answer that is less than the 5 s
#: within which a token that is revoked opens nothing any more.
FRESH_SECONDS, ANSWER_SECONDS = 3.0, 1.5
#: That a token was used is noted once in so long.
NOTE_SECONDS = 60.0
#: Tokens that are remembered; beyond them the one that was asked for first is forgotten.
MOST_KNOWN = 1_000


@dataclass(slots=True)
class _Known:
    token: ApiToken
    #: When the store was asked.
    asked_at: float
    noted_at: float | None = None


class KnownTokens:
    """Looks tokens up, and notes in the background which were used.

    `store`: asked for at each look-up, because the store may not be open yet. Only tokens that there are are kept.
    """

    def __init__(self, store: Callable[[], TokenStore], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._asking: dict[str, asyncio.Task[ApiToken | None]] = {}
        self._used: set[UUID] = set()
        self._noting: asyncio.Task[None] | None = None

    def was_known(self, token: str) -> bool:
        """Whether a text was found to be a token before, so that it is no guess."""
        return is_token(token) and digest_of(token) in self._known

    def remembered(self, token: str) -> ApiToken | None:
        """Return what the store said of a text when it was asked last, without asking; None: it is no token."""
        known = self._known.get(digest_of(token)) if is_token(token) else None
        return None if known is None else known.token

    async def find(self, token: str) -> ApiToken | None:
        """Return a token that was sent, whatever its state; None: there is none. Raises RequestError 503."""
        if not is_token(token):
            return None
        digest = digest_of(token)
        found = await self._look_up(digest)
        if found is not None and found.state is TokenState.LIVE:
            self._note(digest)
        return found

    async def is_live(self, digest: str) -> bool:
        """Whether a token that was found live still is. Raises RequestError 503."""
        found = await self._look_up(digest)
        return found is not None and found.state is TokenState.LIVE

    async def _look_up(self, digest: str) -> ApiToken | None:
        known = self._known.get(digest)
        if known is not None and self._clock() - known.asked_at < FRESH_SECONDS:
            return known.token
        return await self._ask_once(digest)

    async def _ask_once(self, digest: str) -> ApiToken | None:
        """Ask the store; requests that come meanwhile get the same answer."""
        task = self._asking.get(digest)
        if task is None:
            task = self._asking[digest] = asyncio.create_task(self._ask(digest))
            task.add_done_callback(partial(self._answer_came, digest))
        # A request that goes away takes nobody else's answer with it.
        return await asyncio.shield(task)

    def _answer_came(self, digest: str, task: asyncio.Task[ApiToken | None]) -> None:
        del self._asking[digest]
        # Whoever asked may have gone: what went wrong is in the log.
        if not task.cancelled():
            task.exception()

    async def _ask(self, digest: str) -> ApiToken | None:
        asked_at = self._clock()
        found = await _answered(self._store().find_token(digest))
        if found is None:
            self._known.pop(digest, None)
            return None
        before = self._known.pop(digest, None)
        self._known[digest] = _Known(found, asked_at, None if before is None else before.noted_at)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return found

    def _note(self, digest: str) -> None:
        known, now = self._known.get(digest), self._clock()
        if known is None or (known.noted_at is not None and now - known.noted_at < NOTE_SECONDS):
            return
        known.noted_at = now
        self._used.add(known.token.id)
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note_used())

    async def _note_used(self) -> None:
        """Tell the store what was used; when that was is for people, so that nothing depends on it."""
        while self._used:
            used, self._used = sorted(self._used), set()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._store().note_token_uses(used)
            except (HeadraceError, TimeoutError) as error:
                LOG.warning("that %d tokens were used could not be noted: %s", len(used), error)

    async def close(self) -> None:
        """Wait for what goes on in the background, which is bounded."""
        going = [task for task in (*self._asking.values(), self._noting) if task is not None]
        await asyncio.gather(*going, return_exceptions=True)


async def _answered(asked: Coroutine[Any, Any, ApiToken | None]) -> ApiToken | None:
    """Return what the store says. Raises RequestError 503 where it does not answer."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asked
    except (HeadraceError, TimeoutError) as error:
        LOG.error("tokens cannot be looked up: %s", error or "the store does not answer")
        detail = "tokens cannot be looked up now, so nobody is let in: try again"
        raise RequestError(503, "store_unavailable", detail) from None
