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
    #: The simulated world that finds it.
    world: str = "jobs"

    def __str__(self) -> str:
        return self.name


def mutant(name: str, *edits: tuple[str, str, str], by: str | tuple[str, ...], world: str = "jobs") -> Mutant:
    """Return a mutant; an edit is (file, exact old text, new text)."""
    invariants = (by,) if isinstance(by, str) else by
    return Mutant(name, tuple(Edit(*edit) for edit in edits), frozenset(invariants), world)


STALE = "a stale fence changes nothing"
OWNED = "(job.attempt, job.session) == (attempt, session)"
COUNTED = """            usage = count_usage(state)
            await state.turn()
"""
LOCKED = """    async with state.limit_locks.locked([f"gate:{claim.queue}"], state.turn):
"""
LIMITS_LOCKED = """        async with state.limit_locks.locked(_limits(state, claim.queue), state.turn):
"""
CAP = "nothing over a cap"
ORDER = "jobs of a key start in order"
REST = "everything comes to rest"

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
        (f"{MEMORY}/claims.py", "if not state.alive(claim.session) or paused(", "if paused("),
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
            "        self._on_sent(part, accepted)\n        await self._after_commit(part)\n",
            "        self._on_sent(part, accepted)\n",
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
        "lock before count: admissions count first",
        (f"{MEMORY}/admitting.py", LOCKED, f"    usage = count_usage(state)\n{LOCKED}"),
        (f"{MEMORY}/admitting.py", COUNTED, "            await state.turn()\n"),
        by=(CAP, "so many of a key at a time", ORDER),
    ),
    mutant(
        "locked limits: queues that share a cap count at the same time",
        (f"{MEMORY}/admitting.py", LIMITS_LOCKED, "        async with state.limit_locks.locked([], state.turn):\n"),
        by=CAP,
    ),
    mutant(
        "ordered locks: each takes them in the order it was given",
        (f"{MEMORY}/row_locks.py", "for name in sorted(set(names)):", "for name in dict.fromkeys(names):"),
        by=REST,
    ),
    mutant(
        "in-order keys: a job that waits for its retry does not keep the key",
        (f"{MEMORY}/caps.py", "for job in state.keeping.values():", "for job in ():"),
        by=ORDER,
    ),
    mutant(
        "in-order keys: a job comes back to the end of the line",
        (f"{MEMORY}/state.py", "kept = job.sort_at if job.keeps_place else None", "kept = None"),
        by=ORDER,
    ),
    mutant(
        "concurrency keys: they limit nothing",
        (f"{MEMORY}/gate.py", "if gate.key is not None and cap is not None and used >= cap:", "if False:"),
        by=("so many of a key at a time", ORDER),
    ),
    mutant(
        "caps: a lowered one does not hold",
        (
            f"{MEMORY}/limits.py",
            "self.cap_overrides.get(key, self.declared_caps.get(key))",
            "self.declared_caps.get(key) or self.cap_overrides.get(key)",
        ),
        by=CAP,
    ),
    mutant(
        "shares: starting a job does not move the tag",
        (f"{MEMORY}/shares.py", "self.finish[fair_key] = finish_tag(", "finish_tag("),
        by="shares are even",
    ),
    mutant(
        "rates: starting a job takes no units",
        (f"{MEMORY}/gate.py", "self._buckets[name].change(-units, self._now)", "pass"),
        by="never over burst and rate",
    ),
    mutant(
        "rates: time fills no bucket",
        (f"{MEMORY}/buckets.py", "self.rate.after(self.level, now - self.at)", "self.level"),
        by=REST,
    ),
    mutant(
        "rates: time before a change counts by the new rate",
        (
            f"{MEMORY}/buckets.py",
            "        bucket.settle(now)\n        bucket.override = rate",
            "        bucket.override = rate",
        ),
        by="never over burst and rate",
    ),
    mutant(
        "breakers: an open one is tried at once",
        (f"{MEMORY}/breakers.py", "return record.retry_at is None or record.retry_at <= now", "return True"),
        by="nothing passes an open breaker",
    ),
    mutant(
        "breakers: everything passes one that is tried",
        (f"{MEMORY}/breakers.py", "or record.probe is None or not runs(*record.probe)", "or True"),
        by="one probe at a time",
    ),
    mutant(
        "breakers: a dead probe keeps its place",
        (f"{MEMORY}/breakers.py", "or record.probe is None or not runs(*record.probe)", "or record.probe is None"),
        by=REST,
    ),
    mutant(
        "gated queues: plain jobs are claimed past the gate",
        (f"{MEMORY}/claims.py", " or claim.queue in state.limits.gated:", ":"),
        by="nothing slips past the gate",
    ),
    mutant(
        "gated queues: plain jobs are not admitted",
        (
            f"{MEMORY}/admitting.py",
            "state.ready.of(claim.queue).items() if name in names}",
            'state.ready.of(claim.queue).items() if name in names - {"{}"}}',
        ),
        by=REST,
    ),
    mutant(
        "session expiry: a dead session is admitted for",
        (f"{MEMORY}/admitting.py", "if not state.alive(claim.session) or claims", "if claims"),
        by="session expiry",
    ),
    mutant(
        "pauses: a paused queue is admitted from",
        (f"{MEMORY}/admitting.py", " or claims.paused(state, claim.queue):", ":"),
        by="paused queues start nothing",
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
