"""What programs use: messages in, memory out.

>>> from headrace.apps.memory.memory import Memory
>>> async def main() -> None:  # doctest: +SKIP
...     memory = Memory()
...     async with memory.app.worker():
...         submitted = await memory.submit("ada", [{"role": "user", "content": "I moved to Lyon in May"}])
...         await submitted.run.result()
...         print(await memory.context("ada", budget=200))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from headrace import InvalidInputError, NotFoundError, Run
from headrace.apps.memory.beginning import begun
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.events import Tag, UserEvent
from headrace.apps.memory.data.flushes import Flush, FlushState, Reason
from headrace.apps.memory.data.profiles import ProfileChange, Slot
from headrace.apps.memory.graph import memory as pipeline
from headrace.apps.memory.intake import (
    as_objects,
    new_chat,
    parse_blob,
    parse_blob_id,
    parse_messages,
    parse_moment,
    parse_user_id,
)
from headrace.apps.memory.keys import keyed_id
from headrace.apps.memory.means import TABLES, language_for, level_of, settings
from headrace.apps.memory.means import terms as writing_terms
from headrace.apps.memory.opening import app
from headrace.apps.memory.rules import priority_of, score
from headrace.apps.memory.stages.checking import check_buffer
from headrace.apps.memory.stages.turns import start_next
from headrace.apps.memory.tables.checks import check_whole
from headrace.apps.memory.tables.values import Buffer, FoundGist, User
from headrace.apps.memory.writing import pack_context
from headrace.model.ids import uuid7

# A worker of whoever imports this alone does all the work, too.
app.lifespan = begun

#: Tokens of a context, and gists that are looked at for it.
MOST_CONTEXT, MOST_GISTS = 100_000, 200
#: Flushes of a user that are taken up again at once.
MOST_RETRIED = 1_000


@dataclass(frozen=True, slots=True)
class Submitted:
    """Messages that become memory at once: wait for `run`, or look at its nodes."""

    run: Run
    blob_id: UUID


class Memory:
    """The memory of users. All methods need the app to be open: `async with memory.app:`, or its worker.

    A worker of it, `async with memory.app.worker():`, does all the work of `headrace memory run`, and makes the tables.
    All raise StoreUnavailableError when the database cannot answer, ConfigError where the store is no PostgreSQL, and
    InvalidInputError naming field, rule and value.
    """

    def __init__(self) -> None:
        self.app = app

    async def set_up(self) -> None:
        """Make what is missing of the tables; workers do so when they start."""
        await TABLES.set_up()

    # What users say

    async def insert(
        self, user_id: str, messages: Any, *, blob_id: UUID | None = None, created_at: datetime | None = None
    ) -> UUID:
        """Put messages of a chat into a user's buffer, and return the blob's id once they are stored.

        `messages`: `[{"role": "user", "content": …, "alias"?, "created_at"?}]`. `blob_id`: made by the caller, so that
        an insert that is repeated is one; other messages under it raise ConflictError. They become memory when the
        buffer is full or idle.
        """
        [stored] = await TABLES.insert_blobs([new_chat(user_id, messages, blob_id=blob_id, created_at=created_at)])
        return stored

    async def insert_blobs(self, blobs: Sequence[Mapping[str, Any]]) -> list[UUID]:
        """Put blobs of many users into their buffers: `{"user_id", "type", "data", "blob_id"?, "created_at"?}` each.

        All are checked before the first is stored; `[memory] storage_batch_size` of them at once, all or none. With ids
        that the caller made it may be repeated.
        """
        made = [parse_blob(place, one) for place, one in enumerate(blobs)]
        size, stored = settings().storage_batch_size, list[UUID]()
        for start in range(0, len(made), size):
            stored += await TABLES.insert_blobs(made[start : start + size])
        return stored

    async def submit(
        self, user_id: str, messages: Any, *, key: str | None = None, blob_id: UUID | None = None
    ) -> Submitted:
        """Put messages into the buffer and flush it, as one run: consume, buffer, and a wait for each of its flushes.

        `key`: idempotency key, of all users: best begun with the user's id. The same messages of the same user under it
        are the same run, others raise ConflictError. `blob_id`: else made of user and key.
        """
        said = as_objects(parse_messages(messages))
        blob = parse_blob_id(blob_id) or (uuid7() if key is None else keyed_id(user_id, key))
        user = await TABLES.get_user(parse_user_id(user_id))
        run = await app.start(
            pipeline, user=user_id, messages=said, blob_id=str(blob), key=key, user_id=user_id,
            priority=priority_of(score(level_of(user), timedelta(), "consume", 0)),
        )  # fmt: skip
        return Submitted(run, blob)

    async def flush(self, user_id: str) -> list[Flush]:
        """Flush what waits in a user's buffer, and return what is to be worked on, which may be under way already."""
        terms = settings()
        await TABLES.make_flushes(
            parse_user_id(user_id), Reason.EXPLICIT, most_tokens=terms.most_tokens, full=terms.buffer_tokens
        )
        return list((await start_next(user_id)).unfinished)

    async def retry(self, user_id: str) -> list[Flush]:
        """Take up again what failed of a user, however often it did, and return what is to be worked on."""
        await TABLES.retry_failed(timedelta(), None, MOST_RETRIED, user_id=parse_user_id(user_id))
        return list((await start_next(user_id)).unfinished)

    async def check(self, user_id: str) -> None:
        """Have a user's buffer looked at soon: it is flushed if it is full."""
        await check_buffer.enqueue(parse_user_id(user_id))

    async def buffer(self, user_id: str) -> Buffer:
        """Return what waits in a user's buffer."""
        return await TABLES.buffer(parse_user_id(user_id))

    async def flushes(
        self, user_id: str | None = None, *, state: FlushState | str | None = None, limit: int = 50
    ) -> list[Flush]:
        """Return flushes, the newest first."""
        user = None if user_id is None else parse_user_id(user_id)
        check_whole("limit", limit, 1)
        return await TABLES.list_flushes(user, None if state is None else _state(state), limit)

    # What is known of them

    async def profile(self, user_id: str) -> list[Slot]:
        """Return a user's profile, by topic and sub-topic; empty of one who is not known."""
        return await TABLES.profile(parse_user_id(user_id))

    async def change_profile(self, user_id: str, changes: Sequence[ProfileChange]) -> list[Slot]:
        """Change a profile by hand, all or nothing; raises ConflictError where a slot has another version by now."""
        return await TABLES.change_profile(parse_user_id(user_id), changes)

    async def events(
        self, user_id: str, *, limit: int = 20, before: datetime | None = None, tag: Tag | None = None
    ) -> list[UserEvent]:
        """Return events of a user, the newest first."""
        check_whole("limit", limit, 1)
        moment = parse_moment("before", before)
        return await TABLES.events(parse_user_id(user_id), limit=limit, before=moment, tag=tag)

    async def search(self, user_id: str, query: str, *, limit: int = 10) -> list[FoundGist]:
        """Return lines of a user's events that fit a text, the best first; English and Chinese."""
        if not isinstance(query, str) or not query.strip():
            raise InvalidInputError("query", "must be a text", query)
        check_whole("limit", limit, 1)
        return await TABLES.search(parse_user_id(user_id), query, limit=limit)

    async def context(self, user_id: str, *, budget: int = 1_000, query: str | None = None) -> str:
        """Return what a prompt may be told of a user, of at most `budget` tokens: the profile, then lines of events.

        With a `query` the lines that fit it come first, else the newest.
        """
        if isinstance(budget, bool) or not isinstance(budget, int) or not 1 <= budget <= MOST_CONTEXT:
            raise InvalidInputError("budget", f"must be a number of tokens from 1 to {MOST_CONTEXT:,}", budget)
        user = await TABLES.get_user(parse_user_id(user_id))
        language = language_for(user)
        profile, gists = await self.profile(user_id), await TABLES.latest_gists(user_id, MOST_GISTS)
        if query:
            found = [one.gist for one in await self.search(user_id, query, limit=MOST_GISTS)]
            gists = [*found, *(gist for gist in gists if gist not in found)]
        return pack_context(profile, gists, budget=budget, language=language, terms=writing_terms())

    # Users

    async def put_user(self, user_id: str, *, level: int = 0, language: str | None = None) -> None:
        """Note of a user how urgent their memory is, `level` 0 to 10, and perhaps their language."""
        await TABLES.put_user(parse_user_id(user_id), level=level, language=language)

    async def user(self, user_id: str) -> User:
        """Return what is noted of a user. Raises NotFoundError."""
        found = await TABLES.get_user(parse_user_id(user_id))
        if found is None:
            raise NotFoundError(f"no user {user_id!r} has said anything here")
        return found

    async def delete_user(self, user_id: str) -> None:
        """Forget a user and all that belongs to them. Raises NotFoundError."""
        if not await TABLES.delete_user(parse_user_id(user_id)):
            raise NotFoundError(f"no user {user_id!r} has said anything here")

    async def blob(self, blob_id: UUID) -> Blob:
        """Return a blob. Raises NotFoundError for one that is not kept."""
        found = await TABLES.find_blob(blob_id)
        if found is None:
            raise NotFoundError(f"no blob {blob_id}; it may have been deleted once it was memory ([memory] keep_blobs)")
        return found


def _state(value: FlushState | str) -> FlushState:
    try:
        return FlushState(value)
    except ValueError:
        raise InvalidInputError("state", f"must be one of {', '.join(FlushState)}", value) from None
