"""The scripts of the Redis store and what only they can get wrong: keys that leak, sizes, flushes, derived orders."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from typing import Any
from uuid import uuid4

import pytest

from headrace.model.calls import Verdict
from headrace.model.job import Claim, ClaimedJob, Completion, JobState, NewJob
from headrace.model.limits import Declared, Gate, Rate
from headrace.model.spend import SPEND_RETENTION
from headrace.model.stats import Retention
from headrace.stores.redis import RedisSite
from headrace.stores.redis.connection import Server
from headrace.stores.redis.scripts import load_script
from headrace.testing.clock import FakeClock
from tests.backends.redis import stores_on
from tests.conformance.books import Books, ask, parts
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, SPEC, Scenario

SCRIPTS = sorted(path.name.removesuffix(".lua") for path in (
    files("headrace.stores.redis") / "scripts").iterdir() if path.name.endswith(".lua"))  # fmt: skip
#: What stays when all jobs are gone, behind the root.
LASTING = {
    "about", "epoch", "queues", "settings", "queue", "gated", "commits", "caps", "bucket", "buckets", "breaker",
    "breakers", "virtual", "tags", "weights", "weighted", "limited", "leader", "sessions", "session", "key",
}  # fmt: skip


async def keys_of(server: Server, site: RedisSite) -> set[str]:
    """Return the names of all keys of the namespace, the part behind its root."""
    found: set[str] = set()
    cursor = "0"
    while True:
        cursor, names = await server.call("SCAN", cursor, "MATCH", f"{site.root}*", "COUNT", 10_000)
        found |= {name.removeprefix(site.root + ":") for name in names}
        if cursor == "0":
            return found


@pytest.mark.parametrize("verb", SCRIPTS)
async def test_every_script_compiles(server: Server, verb: str) -> None:
    """The server takes each script, as it is put together, without an error."""
    script = load_script(verb)

    assert await server.call("SCRIPT", "LOAD", script.text) == script.sha


async def test_a_script_the_server_forgot_is_sent_again(on: Scenario, server: Server) -> None:
    """After SCRIPT FLUSH each verb goes on as before, and none of them does its work twice."""
    session = await on.worker()
    for _ in range(3):
        await server.call("SCRIPT", "FLUSH")
        [job_id] = await on.enqueue()
        await server.call("SCRIPT", "FLUSH")
        [job] = await on.claim(session)
        await server.call("SCRIPT", "FLUSH")
        assert await on.end(session, job) == [job.id] == [job_id]
        assert job.attempt == 1


async def test_one_call_may_be_larger_than_the_stack_of_lua(on: Scenario) -> None:
    """Twenty thousand jobs are inserted, claimed and ended by one call each: no list is unpacked at once."""
    session = await on.worker()
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS) for _ in range(20_000)])

    jobs = await on.stores.jobs.claim_jobs(Claim(session, "default", 20_000))
    assert len({job.id for job in jobs}) == 20_000
    assert len(await on.end(session, *jobs)) == 20_000


async def test_a_large_batch_that_is_cancelled_holds_up_no_admission(on: Scenario) -> None:
    """Its items are put aside a thousand at a time, however many stand before a job; none is lost on the way."""
    session, gate = await on.worker(), Gate(fair_key="a")
    batch_id = await on.batch(3_500, spec=replace(SPEC, gate=gate))
    await on.stores.batches.cancel_batch(batch_id)
    wanted = await on.enqueue(2, gate=gate)

    look = await on.look(session)
    assert ([job.id for job in look.jobs], look.look_in) == (wanted, None)
    assert await on.stores.batches.settle_cancelled(batch_id, limit=10_000) == 3_500


async def test_sweeps_write_only_jobs_that_run(on: Scenario, server: Server, site: RedisSite) -> None:
    """Whatever the sets of running jobs name: a job that waits, ended or is gone is left alone, others are swept."""
    dead, term = await on.worker(lease=SECOND), await on.term()
    _, running = await on.start(dead, timeout=SECOND)
    _, overdue = await on.start(await on.worker(lease=DAY), timeout=SECOND)
    [waiting] = await on.enqueue()
    session, ended = await on.start(queue="other")
    await on.end(session, ended)
    for key in (f"running:default:{dead.hex}", "deadlines"):
        for job_id in (waiting, ended.id, uuid4()):
            words = (1, job_id.hex) if key == "deadlines" else (job_id.hex,)
            await server.call("ZADD" if key == "deadlines" else "SADD", f"{site.root}:{key}", *words)
    on.clock.advance(MINUTE)

    rescued = await on.stores.jobs.rescue_jobs(limit=100)
    failed = await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=100, term=term)
    assert (rescued.released, failed.released) == ((running.id,), (overdue.id,))
    assert await on.states([waiting, ended.id]) == [JobState.READY, JobState.SUCCEEDED]
    names = await keys_of(server, site)
    assert not {name for name in names if name.startswith((f"running:default:{dead.hex}", "deadlines"))}


async def test_sweeps_leave_alone_what_has_ended(on: Scenario, server: Server, site: RedisSite) -> None:
    """A job that ended stays final, though the set of its session still names it when that dies."""
    session, job = await on.start()
    await on.end(session, job)
    await server.call("SADD", f"{site.root}:running:default:{session.hex}", job.id.hex)
    await on.stores.sessions.close_session(session)

    assert (await on.stores.jobs.rescue_jobs(limit=10)).released == ()
    assert await on.states([job.id]) == [JobState.SUCCEEDED]


async def use_everything(on: Scenario) -> None:
    """Let jobs of all kinds come and end in all ways."""
    session = await on.worker(lease=DAY)
    await on.gate.declare_limits(Declared(caps={"task:x": 2}, rates={"api": Rate(100.0, 100.0)}))
    gates = [Gate(fair_key=fair, key=key, key_limit=1, caps=("task:x",), limits=(("api", None),))
             for fair in ("a", "b", None) for key in ("k", None)]  # fmt: skip
    for number, gate in enumerate(gates):
        await on.enqueue(3, queue="gated", gate=gate, timeout=MINUTE, priority=number)
    await on.enqueue(6, timeout=MINUTE, max_attempts=2)
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + SECOND, key="k", body_hash="h")])
    batch_id = await on.batch(6, spec=replace(SPEC, max_attempts=1))
    [cancelled] = await on.enqueue(queue="other")
    await on.stores.control.cancel_job(cancelled)
    first, second, *others = await on.claim(session, 5)
    await on.stores.jobs.save_step(first.id, attempt=1, session=session, name="s", value="1")
    await on.end(session, first, state=JobState.READY, charged=True)
    await on.end(session, second, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    await on.stores.control.cancel_job(others[0].id)
    await on.end(session, *others, state=JobState.FAILED, charged=True)
    await on.stores.control.retry_queue("default", limit=2)
    await on.stores.batches.cancel_batch(batch_id)
    dead = await on.worker(lease=SECOND)
    await on.claim(dead, 3)
    await on.admit(dead, 1, queue="gated")
    on.clock.advance(SECOND)
    await on.stores.jobs.rescue_jobs(limit=100)
    await on.stores.jobs.stage_jobs(limit=100)
    await work_off(on)
    await on.stores.batches.settle_cancelled(batch_id, limit=100)
    await on.stores.batches.close_batches([batch_id])


async def work_off(on: Scenario) -> None:
    """End everything that is left."""
    session = await on.worker()
    while jobs := [*await on.claim(session), *await on.admit(session, queue="gated")]:
        await on.end(session, *jobs)
    await on.stores.sessions.close_session(session)


async def test_nothing_is_left_of_jobs_that_are_gone(on: Scenario, server: Server, site: RedisSite) -> None:
    """Whatever became of them: once their retention is over, no key holds a trace of a job, a batch or a worker."""
    await use_everything(on)
    on.clock.advance(90 * DAY)
    await on.stores.jobs.rescue_jobs(limit=100)
    nothing = timedelta()
    for _ in range(5):
        await on.stores.jobs.prune_jobs(Retention(nothing, nothing, nothing, nothing), limit=1_000)

    left = await keys_of(server, site)
    assert {name for name in left if name.partition(":")[0] not in LASTING} == set()
    assert not {name for name in left if name.startswith(("session:", "queues"))}


async def test_nothing_is_left_of_calls_that_are_gone(site: RedisSite, server: Server) -> None:
    """However calls ended: once their retention and that of their sums is over, no key holds a trace of them."""
    clock = FakeClock()
    async with stores_on(site, clock) as stores:
        books = Books(stores, clock)
        dead, session = await books.worker(lease=SECOND), await books.worker(lease=DAY)
        for send in (True, False):
            await books.open(dead, f"lost {send}", send=send, tenant="acme")
        streamed, late, failed = [await books.open(session, word, run_id=uuid4()) for word in ("a", "b", "c")]
        for call in (streamed, failed):
            await books.calls.spool_items(parts(call.id, 0, "part", "another"))
        await books.orphan(late, error="timeout")
        for call in (streamed, late, ask("unknown")):
            await books.settle(call)
        await books.settle(failed, answer=None, error="overloaded")
        await books.settle(await books.open(session, "unsent", send=False), answer=None)
        clock.advance(MINUTE)
        assert await books.verdict(session, ask("lost True")) is Verdict.OPENED
        clock.advance(SPEND_RETENTION + DAY)
        while await books.calls.reap_calls(limit=10):
            pass
        # What was opened first and lost last counts for its first day.
        clock.advance(DAY)
        nothing = timedelta()
        await stores.jobs.prune_jobs(Retention(nothing, nothing, nothing, nothing), limit=1_000)

    left = await keys_of(server, site)
    assert {name for name in left if name.partition(":")[0] not in LASTING} == set()


@pytest.mark.parametrize("seed", range(8))
async def test_the_order_at_the_gate_is_that_of_its_lanes(
    on: Scenario, server: Server, site: RedisSite, seed: int
) -> None:
    """After any moves the derived order names each lane by its first job, and each share once, in one of two places."""
    chosen = random.Random(seed)
    session, held = await on.worker(lease=DAY), list[ClaimedJob]()
    gates = [Gate(fair_key=fair, key=key, key_limit=1 if key else None, caps=caps)
             for fair in ("a", "b", None) for key in ("k", "l", None) for caps in ((), ("task:x",))]  # fmt: skip
    await on.gate.set_cap("task:x", 2)
    for _ in range(40):
        await move(on, chosen, session, held, gates)
        await check_order(server, site, await on.admit(session, 0))


async def move(on: Scenario, chosen: random.Random, session: Any, held: list[ClaimedJob], gates: list[Gate]) -> None:
    """Do one of the things that move jobs at the gate."""
    on.clock.advance(chosen.choice([timedelta(), SECOND]))
    match chosen.choice(["enqueue", "enqueue", "admit", "admit", "end", "back", "cancel"]):
        case "enqueue":
            gate = chosen.choice([None, *gates, *gates])
            await on.enqueue(
                chosen.randint(1, 3), gate=gate, cost=chosen.choice([1.0, 3.0]), priority=chosen.randint(0, 9)
            )
        case "admit":
            held += await on.admit(session, chosen.randint(1, 4))
        case "cancel":
            waiting = await on.stores.inspect.list_jobs(state=JobState.READY)
            if waiting:
                await on.stores.control.cancel_job(chosen.choice(waiting).id)
        case ending:
            if held:
                job = held.pop(chosen.randrange(len(held)))
                state = JobState.SUCCEEDED if ending == "end" else chosen.choice([JobState.READY, JobState.SCHEDULED])
                delay = SECOND if state is JobState.SCHEDULED else timedelta()
                done = Completion(job.id, job.attempt, state, delay=delay, charged=chosen.random() < 0.3)
                await on.stores.jobs.complete_jobs(session, [done])
            await on.stores.jobs.stage_jobs(limit=100)


async def check_order(server: Server, site: RedisSite, admitted: list[ClaimedJob]) -> None:
    """Compare what the gate derived with the lanes themselves."""
    assert admitted == []
    names = await keys_of(server, site)
    lanes = [name for name in names if name.startswith(("lane:default:", "ready:default"))]
    heads: set[str] = set()
    for name in lanes:
        [first] = await server.call("ZRANGE", f"{site.root}:{name}", 0, 0)
        gate = name.removeprefix("lane:default:") if name.startswith("lane:") else "{}"
        heads.add(f"{first} {gate}")
    indexed, waiting, placed = set[str](), set[str](), list[str]()
    for name in names:
        if name.startswith("lanes:default:"):
            indexed |= set(await server.call("ZRANGE", f"{site.root}:{name}", 0, -1))
            waiting.add(name.removeprefix("lanes:default:"))
        if name.startswith("fresh:default:"):
            shares = await server.call("ZRANGE", f"{site.root}:{name}", 0, -1)
            placed += [f"{name.removeprefix('fresh:default:')}:{share[33:]}" for share in shares]
        if name.startswith("tagged:default:"):
            shares = await server.call("ZRANGE", f"{site.root}:{name}", 0, -1)
            placed += [f"{name.removeprefix('tagged:default:')}:{share}" for share in shares]
    assert indexed == heads
    assert sorted(placed) == sorted(waiting)
