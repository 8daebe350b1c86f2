"""Measure how many single jobs per second the service takes over HTTP.

Run ``python -m benchmarks.http_service [--connections 32] [--seconds 10] [--body 200] [--profile FILE]``. It starts a
PostgreSQL of its own (fsync and synchronous_commit on, other settings default) and the service in a process of its
own, and submits jobs by `POST /api/v1/jobs` over kept connections, the next one on each when the one before is
answered. No worker runs. Client, service and server share the machine. ``--profile`` writes what the service's process
did, for `python -m pstats`. Needs what the tests need: `uv sync --all-extras`.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

from headrace import App, wiring
from headrace.service.serving import Address, serve
from tests.backends.server import PostgresServer

WARM_UP = 1.0


@dataclass(slots=True)
class Told:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    others: dict[int, int] = field(default_factory=dict)

    def note(self, status: int, took: float) -> None:
        """Note an answer."""
        self.seconds.append(took)
        if status != 201:
            self.others[status] = self.others.get(status, 0) + 1


def run_service(dsn: str, pipe: Connection, profile: str | None) -> None:
    """Serve an app until the pipe is closed; tell its address, and at the end what it used."""
    app = App(dsn)

    @app.task
    async def note(text: str) -> str:
        return text

    profiler = cProfile.Profile() if profile else None
    if profiler is not None:
        profiler.enable()
    asyncio.run(_serve(app, pipe))
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(str(profile))
    pipe.send({"peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)})


async def _serve(app: App, pipe: Connection) -> None:
    await wiring.migrate(app.settings)
    stopping = asyncio.Event()

    def hear() -> None:
        word = pipe.recv()
        if word == "stop":
            stopping.set()
        else:
            pipe.send(time.process_time())

    asyncio.get_running_loop().add_reader(pipe.fileno(), hear)
    await serve(app, Address("127.0.0.1", 0), worker=False, stopping=stopping, announce=pipe.send)


async def load(url: str, options: argparse.Namespace, cpu: Callable[[], float]) -> dict[str, object]:
    """Submit for a while and return the figures."""
    await _burst(url, options, WARM_UP)
    before, began = cpu(), time.perf_counter()
    told = await _burst(url, options, options.seconds)
    took, used = time.perf_counter() - began, cpu() - before
    ordered = sorted(told.seconds)
    return {
        "submits_per_second": round(len(ordered) / took),
        "p50_ms": round(1000 * ordered[len(ordered) // 2], 1),
        "p99_ms": round(1000 * ordered[int(len(ordered) * 0.99)], 1),
        "answers_other_than_201": told.others,
        "service_cpu_percent": round(100 * used / took),
        "service_cpu_ms_per_submit": round(1000 * used / len(ordered), 2),
    }


async def _burst(url: str, options: argparse.Namespace, seconds: float) -> Told:
    told, end = Told(), time.perf_counter() + seconds
    await asyncio.gather(*(_client(url, options.body, end, told) for _ in range(options.connections)))
    return told


async def _client(url: str, size: int, end: float, told: Told) -> None:
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    body = json.dumps({"task": "note", "args": ["x" * size]}).encode()
    head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    while time.perf_counter() < end:
        began = time.perf_counter()
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        lines = answer.lower().split(b"\r\n")
        length = next(int(line[16:]) for line in lines if line.startswith(b"content-length: "))
        await reader.readexactly(length)
        told.note(int(lines[0].split()[1]), time.perf_counter() - began)
    writer.close()
    await writer.wait_closed()


def main() -> None:
    """Read the options, measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--body", type=int, default=200)
    parser.add_argument("--profile")
    options = parser.parse_args()
    server = PostgresServer(durable=True)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run_service, args=(server.dsn, theirs, options.profile))
    try:
        process.start()
        theirs.close()
        url = ours.recv()

        def cpu() -> float:
            ours.send("cpu")
            return float(ours.recv())

        figures = asyncio.run(load(url, options, cpu))
        ours.send("stop")
        print(
            json.dumps(figures | ours.recv() | {"cores": os.cpu_count(), "connections": options.connections}, indent=2)
        )
    finally:
        process.join(15)
        process.kill()
        server.remove()


if __name__ == "__main__":
    main()
