"""Outages: what a lost answer, a lost connection, a lost server or a lost task leaves behind, and how it heals."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from headrace.hinting import Ride
from headrace.model.batch import BatchState, NewBatch, Slice
from headrace.model.errors import FenceLostError, HeadraceError, StoreUnavailableError
from headrace.model.ids import uuid7
from headrace.model.job import JobState, NewJob
from headrace.model.llm import Answer, StoredAnswer
from headrace.ports.stores import Stores
from headrace.stores.postgres.database import Database, DatabaseOptions, Transaction
from headrace.stores.postgres.intake import insert_job
from headrace.stores.postgres.migrate import known_migrations
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import PostgresServer
from tests.integration.cutting_proxy import CuttingProxy, cutting_proxy
from tests.integration.postgres_setup import (
    ARGS,
    SPEC,
    claim,
    connection,
    database,
    done,
    enqueue,
    register,
    schema_stores,
    shared_server,
)
from tests.waiting import wait_until

WAITS_FOR_STANDBY = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder whose path is short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="hrpx", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@dataclass
class Link:
    """Stores that go through a proxy, and the same ones directly."""

    proxy: CuttingProxy
    stores: Stores
    direct: Stores
    schema: str


@asynccontextmanager
async def linked(folder: Path) -> AsyncIterator[Link]:
    """Open a schema twice: through a proxy that can cut, and directly."""
    async with empty_schema() as schema, cutting_proxy(shared_server().root, folder) as (proxy, host):
        through = {"dsn": f"postgresql://headrace@/postgres?host={host}", "pooled": False, "listen": False}
        async with stores_on(schema, None) as direct, stores_on(schema, None, **through) as stores:
            yield Link(proxy, stores, direct, schema)


async def lose(link: Link, statement: bytes, call: Any) -> None:
    """Make `call` lose the answer to its statement, which the server has committed."""
    link.proxy.cut_after = statement
    cuts = link.proxy.cuts
    with pytest.raises(StoreUnavailableError) as caught:
        await call()
    assert caught.value.__cause__ is not None
    assert link.proxy.cuts == cuts + 1


async def test_an_insert_whose_answer_was_lost_is_recognised_even_when_its_jobs_have_finished(folder: Path) -> None:
    """The jobs ran to their end before the submit is tried again: it returns their ids and nothing runs twice."""
    async with linked(folder) as link:
        session = await register(link.direct)
        jobs = [NewJob(SPEC, ARGS) for _ in range(5)]
        await lose(link, b"jobs", lambda: link.stores.jobs.insert_jobs(jobs))

        ran = await claim(link.direct, session)
        await link.direct.jobs.complete_jobs(session, done([job for job in ran if job.id != jobs[4].id]))
        assert await link.stores.jobs.insert_jobs(jobs, retrying=True) == [job.id for job in jobs]
        assert await claim(link.direct, session) == []
        states = [view.state for view in await link.direct.inspect.list_jobs()]
        assert sorted(states) == [JobState.RUNNING] + [JobState.SUCCEEDED] * 4


async def test_a_keyed_insert_whose_answer_was_lost_returns_the_same_ids(folder: Path) -> None:
    """Keys and jobs were committed together; trying again is no conflict and gives the first answer."""
    async with linked(folder) as link:
        jobs = [NewJob(SPEC, ARGS, key=f"k{n}", body_hash="1") for n in range(3)]
        await lose(link, b"COMMIT", lambda: link.stores.jobs.insert_jobs(jobs))
        assert await link.stores.jobs.insert_jobs(jobs, retrying=True) == [job.id for job in jobs]
        again = [NewJob(SPEC, ARGS, key=f"k{n}", body_hash="1") for n in range(3)]
        assert await link.direct.jobs.insert_jobs(again) == [job.id for job in jobs]


async def test_batch_calls_whose_answer_was_lost_can_be_repeated(folder: Path) -> None:
    """Creating, appending, sealing and reopening again do nothing twice."""
    async with linked(folder) as link:
        batches, direct = link.stores.batches, link.direct
        new = NewBatch(SPEC, key="k", body_hash="1")
        await lose(link, b"batches", lambda: batches.create_batch(new, None))
        assert await batches.create_batch(new, None) == new.id
        part = Slice(new.id, 0, (ARGS,) * 10, "hash")
        await lose(link, b"batch_slices", lambda: batches.append_slice(part))
        assert not await batches.append_slice(part)
        await lose(link, b"COMMIT", lambda: batches.seal_batch(new.id, total=10))
        await batches.seal_batch(new.id, total=10)
        await lose(link, b"COMMIT", lambda: batches.reopen_batch(new.id, key="more"))
        assert await batches.reopen_batch(new.id, key="more") == 10
        view = await direct.inspect.get_batch(new.id)
        assert view is not None
        assert (view.state, view.round) == (BatchState.OPEN, 2)
        assert (await direct.inspect.batch_progress(new.id)).waiting == 10

        listed = NewBatch(SPEC)
        await lose(link, b"batches", lambda: batches.create_batch(listed, [ARGS] * 3))
        assert await batches.create_batch(listed, [ARGS] * 3) == listed.id
        assert (await direct.inspect.batch_progress(listed.id)).waiting == 3


async def test_a_completion_whose_answer_was_lost_stands(folder: Path) -> None:
    """The jobs are final; acknowledging again is refused as late and changes nothing."""
    async with linked(folder) as link:
        session = await register(link.direct)
        ids = await enqueue(link.direct, 3)
        jobs = await claim(link.stores, session)
        await lose(link, b"jobs", lambda: link.stores.jobs.complete_jobs(session, done(jobs)))
        before = await link.direct.inspect.final_jobs(ids)
        assert len(before) == 3
        assert await link.stores.jobs.complete_jobs(session, done(jobs, JobState.FAILED)) == []
        assert await link.direct.inspect.final_jobs(ids) == before


async def test_a_step_and_an_answer_whose_confirmation_was_lost_are_stored_once(folder: Path) -> None:
    """What was written first stands, whoever writes again."""
    async with linked(folder) as link:
        session = await register(link.direct)
        await enqueue(link.direct, 1)
        [job] = await claim(link.stores, session)
        fence = {"attempt": job.attempt, "session": session, "name": "draft"}
        await lose(link, b"steps", lambda: link.stores.jobs.save_step(job.id, value="1", **fence))
        assert await link.stores.jobs.save_step(job.id, value="2", **fence) == "1"
        with pytest.raises(FenceLostError):
            await link.stores.jobs.save_step(job.id, value="3", **{**fence, "session": uuid4()})

        first, second = (StoredAnswer("openai", Answer(text=text)) for text in ("paid", "paid again"))
        await lose(link, b"answers", lambda: link.stores.memo.store_answer("a" * 64, first))
        assert await link.stores.memo.store_answer("a" * 64, second) == first


async def test_a_link_that_falls_silent_is_given_up(folder: Path) -> None:
    """No answer and no error from the network: the statement's own time limit ends the wait."""
    async with cutting_proxy(shared_server().root, folder) as (proxy, host), database() as direct:
        short = {"statement_timeout": timedelta(seconds=1), "connect_timeout": timedelta(seconds=1)}
        dsn = f"postgresql://headrace@/postgres?host={host}"
        opened = Database(DatabaseOptions(dsn, schema=direct.schema, **short))
        await opened.fetch("list_migrations")
        proxy.silent = True
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(opened.fetch("list_migrations"), 10)
        proxy.silent = False
        await wait_until(lambda: _works(opened), message="the database to answer again")
        await opened.close()


async def _works(opened: Database) -> bool:
    with suppress(StoreUnavailableError):
        return bool(await opened.fetch("list_migrations"))
    return False


async def test_a_server_that_restarts_is_found_again() -> None:
    """Down: StoreUnavailableError with its cause. Up again, after a crash too: the next call works, hints arrive."""
    server = PostgresServer()
    try:
        async with stores_on("mill", None, dsn=server.dsn, pooled=False) as stores:
            heard: list[str] = []
            await stores.notifier.subscribe(heard.append)
            [first] = await enqueue(stores, 1)
            for how in (signal.SIGINT, signal.SIGQUIT):
                server.stop(how)
                for _ in range(3):
                    with pytest.raises(StoreUnavailableError) as caught:
                        await enqueue(stores, 1)
                    assert caught.value.__cause__ is not None
                stores.notifier.hint("done")
                server.start()
                assert await stores.inspect.known_jobs([first]) == {first}
                await wait_until(lambda: _hears(server.dsn, heard), message="hints after a restart")
    finally:
        server.remove()


async def _hears(dsn: str, heard: list[str]) -> bool:
    heard.clear()
    async with connection(dsn) as other:
        await other.execute("SELECT pg_notify('headrace_mill', 'someone queue:new')")
    await asyncio.sleep(0.02)
    return heard == ["queue:new"]


async def test_hints_of_other_processes_arrive_and_own_ones_once() -> None:
    """A hint reaches the listeners of every process; its sender does not hear its own echo."""
    async with schema_stores() as (schema, stores), stores_on(schema, None) as others:
        own: list[str] = []
        theirs: list[str] = []
        await stores.notifier.subscribe(own.append)
        await others.notifier.subscribe(theirs.append)
        stores.notifier.hint("queue:a")
        await wait_until(lambda: theirs == ["queue:a"])
        others.notifier.hint("done")
        await wait_until(lambda: own == ["queue:a", "done"])
        assert theirs == ["queue:a", "done"]


async def test_a_lone_job_is_hinted_by_the_statement_that_inserts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others hear of it when it can be claimed, without a second statement."""
    sent: list[str] = []
    fetch = Transaction.fetch

    async def note(self: Transaction, name: str, /, **values: Any) -> Any:
        sent.append(name)
        return await fetch(self, name, **values)

    async with schema_stores() as (schema, stores), stores_on(schema, None) as others:
        heard: list[int] = []
        await others.notifier.subscribe(lambda _: heard.append(len(sent)))
        monkeypatch.setattr(Transaction, "fetch", note)
        await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        await wait_until(lambda: heard)
        assert sent == ["insert_job"]
        assert [view.state for view in await others.inspect.list_jobs(limit=9)] == [JobState.READY]


async def test_a_hint_that_rides_is_no_part_of_its_transaction() -> None:
    """The insert commits before it notifies; where it cannot, in the caller's transaction, it is refused as a whole."""
    job, ride = NewJob(SPEC, ARGS), Ride("headrace_mill", "someone queue:default")
    async with database() as opened:
        with pytest.raises(HeadraceError, match="transaction termination"):
            await opened.run(lambda tx: insert_job(tx, job, ride))
        assert await opened.fetch("known_jobs", job_ids=[job.id]) == []
        await insert_job(opened, job, ride)
        assert len(await opened.fetch("known_jobs", job_ids=[job.id])) == 1


@asynccontextmanager
async def notifying_without_end(server: PostgresServer) -> AsyncIterator[asyncio.Task[str]]:
    """Hold the lock of all that notify: by a transaction of another program that waits for a standby, until the end."""
    async with connection(server.dsn) as other, connection(server.dsn) as slow:
        await other.execute("CREATE TABLE held (x int)")
        await other.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        await other.execute("SELECT pg_reload_conf()")
        await slow.execute("SET synchronous_commit = on")
        commits: list[asyncio.Task[str]] = []

        async def holds() -> bool:
            """Commit until it is waited for: the server takes its time to read its settings."""
            if not commits or commits[-1].done():
                notifying = "BEGIN; INSERT INTO held VALUES (1); NOTIFY other; COMMIT"
                commits.append(asyncio.create_task(slow.execute(notifying)))
            return bool(await other.fetchval(WAITS_FOR_STANDBY))

        await wait_until(holds)
        yield commits[-1]
        await other.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await other.execute("SELECT pg_reload_conf()")
        await commits[-1]


async def test_a_lone_job_does_not_wait_for_others_that_notify() -> None:
    """While another program holds the lock of all that notify, the job is stored once; its hint comes later."""
    server = PostgresServer()
    heard: list[object] = []
    try:
        async with (
            stores_on("mill", None, dsn=server.dsn, pooled=False) as stores,
            connection(server.dsn) as listening,
        ):
            await listening.add_listener("headrace_mill", lambda *call: heard.append(call[-1]))
            async with notifying_without_end(server) as holding:
                [job_id] = await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
                assert not holding.done()
                assert [view.id for view in await stores.inspect.list_jobs(limit=9)] == [job_id]
            await wait_until(lambda: heard)
    finally:
        server.remove()


async def test_a_burst_of_hints_costs_few_notifications() -> None:
    """A thousand hints within a moment become a few notifications, and the last of them is not lost."""
    async with schema_stores() as (schema, stores):
        heard: list[object] = []
        async with connection() as other:
            await other.add_listener(f"headrace_{schema}", lambda *call: heard.append(call[-1]))
            for turn in range(10):
                for _ in range(100):
                    stores.notifier.hint("queue:a")
                await asyncio.sleep(0.002 * turn)
            await wait_until(lambda: heard)
            stores.notifier.hint("queue:last")
            await wait_until(lambda: any(str(payload).endswith("queue:last") for payload in heard))
        assert 1 <= len(heard) <= 15


async def test_listening_goes_on_after_its_connection_was_killed() -> None:
    """The server ends the listening connection: it is made again, and hints arrive as before."""
    async with schema_stores() as (schema, stores), stores_on(schema, None) as others:
        heard: list[str] = []
        await stores.notifier.subscribe(heard.append)
        async with connection() as other:
            killed = await other.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND query LIKE $1",
                f"%{schema}%",
            )
        assert len(killed) == 1

        async def arrives() -> bool:
            others.notifier.hint("queue:again")
            await asyncio.sleep(0.02)
            return "queue:again" in heard

        await wait_until(arrives, message="a hint after the connection was killed")


async def test_without_listening_hints_are_local_and_everything_else_works() -> None:
    """`listen=False` is poll-only: own hints are heard, others' are not, and `store_info` says so."""
    async with schema_stores(listen=False) as (schema, stores), stores_on(schema, None) as others:
        heard: list[str] = []
        await stores.notifier.subscribe(heard.append)
        theirs: list[str] = []
        await others.notifier.subscribe(theirs.append)
        others.notifier.hint("queue:theirs")
        stores.notifier.hint("queue:own")
        await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        await wait_until(lambda: set(heard) == {"queue:own", "queue:default"})
        await wait_until(lambda: theirs == ["queue:theirs"])
        assert any("poll-only" in note for note in (await stores.inspect.store_info()).notes)
        assert any("LISTEN" in note for note in (await others.inspect.store_info()).notes)


async def test_killed_backends_leak_nothing() -> None:
    """Backends are killed at random under load: calls fail clearly or work, and connections stay bounded."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with schema_stores(max_pool_size=6) as (_, stores), connection() as other:
        session = await register(stores, timedelta(hours=1))
        stop = asyncio.Event()
        errors: list[HeadraceError] = []
        finished = 0

        async def work() -> None:
            nonlocal finished
            while not stop.is_set():
                try:
                    await enqueue(stores, 3)
                    ended = await stores.jobs.complete_jobs(session, done(await claim(stores, session, 5)))
                    finished += len(ended)
                except StoreUnavailableError as error:
                    errors.append(error)

        workers = [asyncio.create_task(work()) for _ in range(6)]
        for _ in range(25):
            pids = await other.fetch("SELECT pid FROM pg_stat_activity WHERE application_name = 'headrace'")
            if pids:
                await other.execute("SELECT pg_terminate_backend($1)", chance.choice(pids)["pid"])
            await asyncio.sleep(0.02)
        stop.set()
        await asyncio.gather(*workers)
        open_now = await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'headrace'")
        in_transaction = await other.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'headrace' AND state LIKE 'idle in%'"
        )
    assert (finished > 0, open_now <= 8, in_transaction) == (True, True, 0), f"seed {seed}"
    assert all(error.__cause__ is not None for error in errors)


async def test_cancelled_callers_leave_no_open_transaction_and_no_lost_connection() -> None:
    """Tasks are cancelled at random awaits: afterwards the pool has all its room and nothing is half done."""
    chance = random.Random(7)
    async with schema_stores(max_pool_size=4) as (schema, stores):
        session = await register(stores, timedelta(hours=1))

        async def act() -> None:
            await stores.jobs.insert_jobs([NewJob(SPEC, ARGS, key=str(uuid7()), body_hash="1") for _ in range(3)])
            await stores.jobs.complete_jobs(session, done(await claim(stores, session, 5)))

        for _ in range(80):
            task = asyncio.create_task(act())
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        async with connection() as other:
            await wait_until(lambda: _no_transaction(other, schema), message="open transactions to end")
        await asyncio.wait_for(asyncio.gather(*(enqueue(stores, 1) for _ in range(20))), 20)


async def _no_transaction(other: Any, schema: str) -> bool:
    count = await other.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%' AND position($1 in query) > 0", schema
    )
    return bool(count == 0)


async def test_a_server_without_free_connections_refuses_and_recovers() -> None:
    """All connections are taken by others: a clear, transient error; once they are free, the next call works."""
    server = PostgresServer(max_connections=10)
    try:
        async with stores_on("mill", None, dsn=server.dsn, pooled=False, listen=False) as stores:
            await stores.sessions.sessions_on("x")
            taken = []
            with suppress(asyncpg.TooManyConnectionsError):
                while True:
                    taken.append(await asyncpg.connect(server.dsn))
            calls = [stores.sessions.sessions_on("x") for _ in range(4)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            refused = [answer for answer in answers if isinstance(answer, StoreUnavailableError)]
            assert refused
            assert "TooManyConnections" in str(refused[0])
            for opened in taken:
                await opened.close()
            await wait_until(lambda: _all_work(stores), message="the store to recover")
    finally:
        server.remove()


async def _all_work(stores: Stores) -> bool:
    calls = [stores.sessions.sessions_on("x") for _ in range(4)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    return not any(isinstance(answer, BaseException) for answer in answers)


async def test_a_full_pool_is_waited_for_a_bounded_time() -> None:
    """All connections of the pool are busy: a caller waits, and is told to raise the pool when it waited too long."""
    async with database(max_pool_size=1, connect_timeout=timedelta(milliseconds=200)) as opened:
        release = asyncio.Event()

        async def hold(_: Any) -> None:
            await release.wait()

        holder = asyncio.create_task(opened.run(hold))
        with pytest.raises(StoreUnavailableError, match="max_pool_size"):
            await wait_until(lambda: opened.fetch("list_migrations"), message="never")
            await opened.fetch("list_migrations")
        release.set()
        await holder
        assert await opened.fetch("list_migrations")


async def test_the_heartbeat_has_a_connection_of_its_own() -> None:
    """While every connection of the pool is busy a lease is renewed from another thread and event loop."""
    async with schema_stores(max_pool_size=2) as (_, stores):
        session = await register(stores)
        assert stores.private_sessions is not None
        private = stores.private_sessions
        alive: list[bool] = []

        async def beat() -> None:
            async with private() as sessions:
                for _ in range(3):
                    renewal = await sessions.renew_session(session, lease=timedelta(seconds=60), stats={"n": 1})
                    alive.append(renewal.alive)

        pool: Any = stores.sessions
        release = asyncio.Event()

        async def hold(_: Any) -> None:
            await release.wait()

        holder = asyncio.create_task(pool._database.run(hold))
        thread = threading.Thread(target=lambda: asyncio.run(beat()))
        thread.start()
        await asyncio.to_thread(thread.join, 20)
        release.set()
        await holder
        assert alive == [True, True, True]


async def test_a_closed_store_says_so() -> None:
    """Calls after `close` fail with a clear error instead of connecting again; closing twice is allowed."""
    async with schema_stores() as (_, stores):
        await stores.close()
        with pytest.raises(StoreUnavailableError, match="closed"):
            await enqueue(stores, 1)
        await stores.close()


async def test_the_store_says_what_the_server_guarantees() -> None:
    """`store_info` names version, schema and durability; a server without fsync is not called durable."""
    async with schema_stores() as (_, stores):
        info = await stores.inspect.store_info()
    newest = known_migrations()[-1].version
    assert (info.kind, info.durable, info.schema_version) == ("postgresql", False, newest)
    assert int(info.version.split(".")[0]) >= 15
    assert any("fsync off" in note for note in info.notes)
