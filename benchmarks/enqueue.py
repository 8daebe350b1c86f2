"""Measure enqueueing and latencies beside the raw statements of the same driver, in turns, on a server of its own.

    python benchmarks/enqueue.py [bulk single many latency fan start results ...] [--rounds 3]

The server has full durability. Each line is the median of the rounds with the least and the greatest; behind it the
CPU time of client and server for one job, which a busy machine hardly changes. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from headrace import App
from headrace.model.ids import uuid7
from headrace.settings import load_settings
from headrace.wiring import migrate
from tests.backends.server import PostgresServer

SCHEMA = "bench"
TICK = os.sysconf("SC_CLK_TCK")
RAW_TABLE = """
DROP TABLE IF EXISTS raw_jobs;
CREATE TABLE raw_jobs (id uuid PRIMARY KEY, state text NOT NULL, sort_at timestamptz NOT NULL DEFAULT now(),
  args json NOT NULL);
CREATE INDEX ON raw_jobs (sort_at) WHERE state = 'ready'
"""
RAW_INSERT = "INSERT INTO raw_jobs (id, state, args) SELECT id, 'ready', args FROM unnest($1::uuid[], $2::json[]) AS n (id, args)"
RAW_SINGLE = "INSERT INTO raw_jobs (id, state, args) VALUES ($1, 'ready', $2)"
WORKER = """
import os, time
from headrace import App
app = App()

@app.task
async def noop(number: int) -> None:
    pass

@app.task
async def stamp(sent: int) -> int:
    return time.monotonic_ns() - sent

@app.task
async def closed(batch: str) -> None:
    print("CLOSED", time.monotonic_ns(), flush=True)

@app.task(queue="first")
async def first(number: int) -> None:
    print("FIRST", time.monotonic_ns(), flush=True)
"""


class Bench:
    """One server, one app on it, and the figures."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.folder, self.server = folder, server
        (folder / "bench_tasks.py").write_text(WORKER)
        sys.path.insert(0, str(folder))
        os.environ.update(HEADRACE_URL=server.dsn, HEADRACE_QUEUE_SCHEMA=SCHEMA)
        self.settings = load_settings()

    def app(self) -> App:
        """Return the app of the worker, for a client."""
        import bench_tasks  # type: ignore[import-not-found]

        app: App = bench_tasks.app
        return app

    async def clear(self) -> asyncpg.Connection[Any]:
        """Empty all tables and return a connection."""
        connection = await asyncpg.connect(self.server.dsn)
        await connection.execute(RAW_TABLE)
        await connection.execute(
            f"TRUNCATE {SCHEMA}.jobs, {SCHEMA}.finished_jobs, {SCHEMA}.batches, {SCHEMA}.batch_slices"
        )
        await connection.execute("CHECKPOINT")
        return connection

    def server_cpu(self) -> float:
        """Return the CPU seconds of the server and all it started."""
        assert self.server._process is not None
        root = self.server._process.pid
        total = 0.0
        for entry in Path("/proc").iterdir():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
            except OSError:
                continue
            if fields and (int(entry.name) == root):
                total += sum(map(int, fields[11:15])) / TICK
            elif fields and int(fields[1]) == root:
                total += sum(map(int, fields[11:13])) / TICK
        return total

    async def timed(self, work: Awaitable[Any], count: int) -> tuple[float, float, float]:
        """Return jobs per second and the microseconds of CPU a job of client and server."""
        server, client, began = self.server_cpu(), time.process_time(), time.perf_counter()
        await work
        seconds = time.perf_counter() - began
        return (
            count / seconds,
            (time.process_time() - client) * 1e6 / count,
            (self.server_cpu() - server) * 1e6 / count,
        )

    @contextmanager
    def worker(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run a worker process; its output lines can be read."""
        worker = subprocess.Popen(
            [sys.executable, "-m", "headrace", "worker", "bench_tasks:app", "--json", *arguments],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            yield worker
        finally:
            worker.terminate()
            worker.wait()


async def lines(worker: subprocess.Popen[str], word: str) -> str:
    """Return the next line of a worker with `word`."""
    assert worker.stdout is not None
    while word not in (line := await asyncio.to_thread(worker.stdout.readline)):
        assert line, "the worker ended"
    return line


def report(name: str, samples: list[tuple[float, ...]], against: list[tuple[float, ...]] | None = None) -> None:
    """Print a line: jobs/s, CPU, ratios to `against` within a round."""
    speeds = [sample[0] for sample in samples]
    text = f"{name:34} {statistics.median(speeds):9,.0f}/s ({min(speeds):,.0f}–{max(speeds):,.0f})"
    client, server = (statistics.median(sample[at] for sample in samples) for at in (1, 2))
    text += f"  CPU µs client {client:6.1f} server {server:6.1f}"
    if against:
        ratios = [ours[0] / raw[0] for ours, raw in zip(samples, against, strict=True)]
        cpu = [(raw[1] + raw[2]) / (ours[1] + ours[2]) for ours, raw in zip(samples, against, strict=True)]
        text += f"  ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) CPU ratio {statistics.median(cpu):.2f}"
    print(text, flush=True)


async def bulk(bench: Bench, rounds: int) -> None:
    """Bulk enqueue."""
    count = 20_000
    texts = ['{"args":[123],"kwargs":{}}'] * 1_000

    async def raw(connection: Any) -> None:
        for _ in range(count // 1_000):
            await connection.execute(RAW_INSERT, [uuid7() for _ in range(1_000)], texts)

    async def submit(size: int) -> None:
        for _ in range(count // size):
            await bench.app().submit(bench.app().find_task("noop"), list(range(size)))

    async def stream() -> None:
        await bench.app().submit(bench.app().find_task("noop"), (number for number in range(count)))

    async def many(size: int) -> None:
        for _ in range(count // size):
            await bench.app().find_task("noop").enqueue_many(list(range(size)))

    names = {
        "raw unnest of 1,000": raw,
        "submit, lists of 1,000": lambda _: submit(1_000),
        "submit, lists of 10,000": lambda _: submit(10_000),
        "submit, a generator of 20,000": lambda _: stream(),
        "enqueue_many of 1,000": lambda _: many(1_000),
        "enqueue_many of 10,000": lambda _: many(10_000),
    }
    if not hasattr(bench.app().find_task("noop"), "enqueue_many"):
        names = {name: work for name, work in names.items() if "many" not in name}
    await compare(bench, names, count, rounds)


async def single(bench: Bench, rounds: int) -> None:
    """One by one, and 64 callers."""
    count = 2_000

    async def raw(connection: Any) -> None:
        for _ in range(count):
            await connection.execute(RAW_SINGLE, uuid7(), '{"args":[123],"kwargs":{}}')

    task = bench.app().find_task("noop")

    async def each() -> None:
        for number in range(count):
            await task.enqueue(number)

    async def callers() -> None:
        async def caller() -> None:
            for number in range(count // 64 * 4):
                await task.enqueue(number)

        await asyncio.gather(*(caller() for _ in range(64)))

    await compare(bench, {"raw single insert": raw, "enqueue, awaited": lambda _: each()}, count, rounds)
    names = {"64 callers": lambda _: callers()}
    await compare(bench, names, count // 64 * 4 * 64, rounds)


async def compare(bench: Bench, names: dict[str, Any], count: int, rounds: int) -> None:
    """Run variants in turns and print them against the first."""
    samples: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    async with bench.app() as app:
        await app.find_task("noop").enqueue(0)
        for _ in range(rounds):
            for name, work in names.items():
                connection = await bench.clear()
                if name.startswith("raw"):
                    await connection.execute(RAW_INSERT, [uuid7()], ["{}"])
                    await connection.execute(RAW_SINGLE, uuid7(), "{}")
                samples[name].append(await bench.timed(work(connection), count))
                await connection.close()
    first = next(iter(names))
    for name, got in samples.items():
        report(name, got, None if name == first else samples[first])


async def latency(bench: Bench, rounds: int) -> None:
    """From the call of enqueue to the start of the handler in another process, 20 jobs/s."""
    connection = await bench.clear()
    stamp = bench.app().find_task("stamp")
    with bench.worker() as worker:
        await lines(worker, "started")
        async with bench.app():
            for _ in range(rounds):
                handles, sends, raws = [], [], []
                server, client = bench.server_cpu(), cpu_of(worker.pid)
                for _ in range(200):
                    sent = time.monotonic_ns()
                    handles.append(await stamp.enqueue(sent))
                    sends.append((time.monotonic_ns() - sent) / 1e6)
                    await asyncio.sleep(0.025)
                    sent = time.monotonic_ns()
                    await connection.execute(RAW_SINGLE, uuid7(), "{}")
                    raws.append((time.monotonic_ns() - sent) / 1e6)
                    await asyncio.sleep(0.025)
                server, client = bench.server_cpu() - server, cpu_of(worker.pid) - client
                took = sorted([await handle.result() / 1e6 for handle in handles][10:])
                print(
                    f"enqueue → start, 20/s: p50 {took[len(took) // 2]:.2f} p90 {took[int(len(took) * 0.9)]:.2f} "
                    f"p99 {took[int(len(took) * 0.99)]:.2f} max {took[-1]:.2f} ms; enqueue itself p50 "
                    f"{statistics.median(sends):.2f} ms, a raw insert between {statistics.median(raws):.2f} ms; CPU ms a job: server {server * 5:.2f} worker {client * 5:.2f}",
                    flush=True,
                )
    await connection.close()


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICK


async def fan(bench: Bench, rounds: int) -> None:
    """1 → 1,000 → 1."""
    connection = await bench.clear()
    app = bench.app()
    with bench.worker() as worker:
        await lines(worker, "started")
        async with app:
            took = []
            for _ in range(rounds * 3):
                server, client, own = bench.server_cpu(), cpu_of(worker.pid), time.process_time()
                began = time.monotonic_ns()
                await app.submit(app.find_task("noop"), list(range(1_000)), on_close=app.find_task("closed"))
                submitted = (time.monotonic_ns() - began) / 1e6
                ended = int((await lines(worker, "CLOSED")).split()[1])
                took.append((ended - began) / 1e6)
                print(
                    f"  submit {submitted:.0f} ms, callback started after {took[-1]:.0f} ms; CPU ms: client "
                    f"{(time.process_time() - own) * 1e3:.0f} worker {(cpu_of(worker.pid) - client) * 1e3:.0f} "
                    f"server {(bench.server_cpu() - server) * 1e3:.0f}", flush=True,
                )  # fmt: skip
            print(
                f"1 → 1,000 → 1: median {statistics.median(took):.0f} ms ({min(took):.0f}–{max(took):.0f})", flush=True
            )
    await connection.close()


async def start(bench: Bench, rounds: int) -> None:
    """From the start of a worker process to the start of the handler of a waiting job, and its memory."""
    connection = await bench.clear()
    app = bench.app()
    took = []
    async with app:
        for _ in range(rounds * 2):
            await app.find_task("first").enqueue(1)
            began = time.monotonic_ns()
            with bench.worker() as worker:
                took.append((int((await lines(worker, "FIRST")).split()[1]) - began) / 1e6)
                cpu = cpu_of(worker.pid)
                await asyncio.sleep(1.5)
                idle = rss(worker.pid)
        print(f"first job after start: median {statistics.median(took):.0f} ms ({min(took):.0f}–{max(took):.0f}); "
              f"CPU of the worker until then {cpu * 1e3:.0f} ms; idle RSS {idle:.1f} MiB", flush=True)  # fmt: skip
        later = {"run_at": "1h"}
        await app.submit(app.find_task("noop"), list(range(10_000)), **later)
        with bench.worker("--queue", "first:100") as worker:
            await lines(worker, "started")
            await app.find_task("first").enqueue(1)
            await lines(worker, "FIRST")
            await asyncio.sleep(1.5)
            before = rss(worker.pid)
            await app.submit(app.find_task("noop"), list(range(10_000)))
            await asyncio.sleep(1.5)
            print(f"RSS with 10,000 waiting: {before:.1f} → {rss(worker.pid):.1f} MiB")
    await connection.close()


def rss(pid: int) -> float:
    """Return the resident set in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


async def results(bench: Bench, rounds: int) -> None:
    """Enqueue and await the result, one after another; and the same through app.sync."""
    connection = await bench.clear()
    noop = bench.app().find_task("noop")
    with bench.worker() as worker:
        await lines(worker, "started")
        async with bench.app():
            for _ in range(rounds):
                took = []
                for number in range(100):
                    began = time.perf_counter()
                    handle = await noop.enqueue(number)
                    await handle.result()
                    took.append((time.perf_counter() - began) * 1e3)
                took.sort()
                print(f"enqueue and result: p50 {took[50]:.2f} p90 {took[90]:.2f} max {took[-1]:.2f} ms", flush=True)

        def script() -> None:
            app = bench.app()
            app.sync(noop.enqueue(0))
            for label, work in (("enqueue", lambda: noop.enqueue(1)), ("nothing", lambda: asyncio.sleep(0))):
                took = []
                for _ in range(500):
                    began = time.perf_counter()
                    app.sync(work())
                    took.append((time.perf_counter() - began) * 1e3)
                print(f"app.sync({label}): p50 {statistics.median(took):.3f} ms", flush=True)
            app.sync.close()

        await asyncio.to_thread(script)
    await connection.close()


PARTS = {part.__name__: part for part in (bulk, single, latency, fan, start, results)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    server = PostgresServer(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), server)
            asyncio.run(migrate(bench.settings))
            for name in options.parts:
                print(f"== {name}")
                asyncio.run(PARTS[name](bench, options.rounds))
    finally:
        server.remove()


if __name__ == "__main__":
    main()
