"""Guards of the engine and the memory store, each with the edit that takes it away and the invariant that must notice.

A mutant is found by the simulation within `MOST_SEEDS` seeds, or the simulation is too weak. An equal list for the
statements of PostgreSQL lies beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutants.mutated import Edit

MOST_SEEDS = 500

MEMORY = "stores/memory"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard that is gone. `found_by` are the invariants that may notice it first."""

    name: str
    edits: tuple[Edit, ...]
    found_by: frozenset[str]


def mutant(name: str, *edits: tuple[str, str, str], by: str | tuple[str, ...]) -> Mutant:
    """Return a mutant; an edit is (file, exact old text, new text)."""
    invariants = (by,) if isinstance(by, str) else by
    return Mutant(name, tuple(Edit(*edit) for edit in edits), frozenset(invariants))


STALE = "a stale fence changes nothing"
OWNED = "(job.attempt, job.session) == (attempt, session)"
LOCKED_COUNT = """    async with state.limit_locks.locked(claim.limit_keys, state.turn):
        room = _room(state, claim.limit_keys)
        await state.turn()
"""
COUNTED_BEFORE = """    room = _room(state, claim.limit_keys)
    async with state.limit_locks.locked(claim.limit_keys, state.turn):
        await state.turn()
"""

MUTANTS = (
    mutant(
        "fence: the attempt does not count",
        (f"{MEMORY}/endings.py", OWNED, "job.session == session"),
        by=STALE,
    ),
    mutant(
        "fence: the session does not count",
        (f"{MEMORY}/endings.py", OWNED, "job.attempt == attempt"),
        by=STALE,
    ),
    mutant(
        "session expiry: a lease that has ended is renewed",
        (
            f"{MEMORY}/session_store.py",
            "if not self._state.alive(session):\n            return Renewal",
            "if session not in self._state.sessions:\n            return Renewal",
        ),
        by="session expiry",
    ),
    mutant(
        "session expiry: a dead session claims",
        (f"{MEMORY}/claims.py", "if not state.alive(claim.session) or (", "if ("),
        by="session expiry",
    ),
    mutant(
        "seal: an open batch is closed",
        (
            f"{MEMORY}/closing.py",
            "batch.state in (BatchState.SEALED, BatchState.CANCELLING) and not batch.live",
            "batch.state is not BatchState.CLOSED and not batch.live",
        ),
        by="only sealed batches close",
    ),
    mutant(
        "seal: a closed batch is closed again",
        (
            f"{MEMORY}/closing.py",
            "batch.state in (BatchState.SEALED, BatchState.CANCELLING) and not batch.live",
            "batch.total is not None and not batch.live",
        ),
        by=("a batch closes once per round", "one callback per round", "everything comes to rest"),
    ),
    mutant(
        "unique key: what is stored is not looked at",
        (f"{MEMORY}/intake.py", "stored = new.get(scope) or known_key(state, *scope)", "stored = new.get(scope)"),
        by="same key, same id",
    ),
    mutant(
        "term: a leader that was replaced goes on",
        (f"{MEMORY}/leadership.py", "(row.session, row.term) == (term.session, term.term)", "row.term >= 0"),
        by="writes under older terms are refused",
    ),
    mutant(
        "term: a leader is elected beside another",
        (f"{MEMORY}/leadership.py", "if current and row is not None and row.session != session:", "if False:"),
        by="one valid leader term",
    ),
    mutant(
        "post-commit close: closing is tried before the completion",
        (
            "engine/acks.py",
            "            accepted = await self._complete(part)\n",
            "            await self._after_commit(part)\n            accepted = await self._complete(part)\n",
        ),
        (
            "engine/acks.py",
            "        self._on_sent(part)\n        await self._after_commit(part)\n",
            "        self._on_sent(part)\n",
        ),
        (
            "engine/acks.py",
            "{completion.batch_id for completion in self._pending}",
            "{completion.batch_id for completion in self._pending[len(part) :]}",
        ),
        by="closing is prompt",
    ),
    mutant(
        "post-commit close: nobody closes after a seal",
        (
            "engine/batches.py",
            "seal_batch(batch_id, total=ordinal, key=key))\n        await self._close(batch_id)",
            "seal_batch(batch_id, total=ordinal, key=key))",
        ),
        by="closing is prompt",
    ),
    mutant(
        "lock before count: claimers count first",
        (f"{MEMORY}/claims.py", LOCKED_COUNT, COUNTED_BEFORE),
        by="nothing over a cap",
    ),
    mutant(
        "ordered locks: each takes them in the order it was given",
        (f"{MEMORY}/row_locks.py", "for name in sorted(set(names)):", "for name in dict.fromkeys(names):"),
        by="everything comes to rest",
    ),
    mutant(
        "late duplicates: an insert looks only for live jobs",
        (
            f"{MEMORY}/intake.py",
            "if new.id not in state.jobs and new.id not in state.finished:",
            "if new.id not in state.jobs:",
        ),
        by=("conservation", "final rows never change"),
    ),
    mutant(
        "lost claims: nobody looks for them again",
        ("engine/claimer.py", "LOOK_AFTER_SECONDS = (0.0, 1.0, 6.0, 30.0)", "LOOK_AFTER_SECONDS = (0.0,)"),
        by=("slots used = running rows", "everything comes to rest"),
    ),
    mutant(
        "stop margin: handlers go on until the lease ends",
        (
            "engine/loops/heartbeat.py",
            "allowed = (self.lease.length - self.lease.margin).",
            "allowed = self.lease.length.",
        ),
        by="handlers stop before their lease ends",
    ),
)
