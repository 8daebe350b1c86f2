"""Runs of flushes: keyed by the flush, so that it has one; and with which priority they are worked."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from headrace import Run
from headrace.apps.memory.data.flushes import Flush, Reason
from headrace.apps.memory.means import TABLES, level_of, settings
from headrace.apps.memory.opening import app
from headrace.apps.memory.rules.priority import priority_of, score

WORKFLOW = "memory_flush"
#: The key of the signal that tells of a flush's end begins with this; that of its run follows, since a flush of the
#: same id may come again.
SIGNAL = "memory-flush-"


async def start_run(flush: Flush, priority: int) -> Run:
    """Start the run of a flush, or return the one that was started."""
    # Late, for its parts are made of this module; and here, for a process of a cluster, or one in which a job
    # runs alone since its workers died, imports a task's module alone.
    from headrace.apps.memory.graph import memory_flush

    user, key = flush.user_id, run_key(flush)
    given = (str(flush.id), user, key)
    return await app.start(memory_flush, *given, key=key, user_id=user, priority=priority)


def run_key(flush: Flush) -> str:
    """Return the key of a flush's run: made of user and blobs, and of how often it was taken up again.

    And of when the flush was made: a user who was forgotten may say the same again.
    """
    made = flush.created_at.astimezone(UTC)
    return f"{flush.id}/{made:%Y%m%dT%H%M%S.%f}/{flush.round}"


async def priority_at(flush: Flush, kind: str) -> int:
    """Return the priority of a flush's work of a kind, as of now."""
    user = await TABLES.get_user(flush.user_id)
    age = datetime.now(UTC) - flush.created_at
    return priority_of(score(level_of(user), age, kind, flush.round))


def may_share(flush: Flush) -> bool:
    """Whether a flush may be summarised with those of others: nobody waits for it, and it is small."""
    terms = settings()
    small = flush.tokens <= small_tokens()
    return terms.enable_batching and flush.reason is not Reason.EXPLICIT and small and not flush.round


def small_tokens() -> int:
    """Return how many tokens a small flush has at most."""
    return 2 * settings().buffer_tokens


async def tell_end(told: str, flush_id: UUID, *, error: str | None = None) -> None:
    """Tell whoever waits that a flush is stored, or has failed for now; `told`: the key of its run."""
    await app.signal(f"{SIGNAL}{told}", {"flush_id": str(flush_id), "success": error is None, "error": error})
