"""Measure what streams of events and idle connections cost the service.

Run ``python -m benchmarks.sse [--streams 200] [--idle 1000] [--seconds 10] [--rate 1]``. It starts a PostgreSQL of its
own and `headrace serve` in a process of its own, opens a stream for each of as many batches and leaves as many
connections idle behind one request. Then this process appends `--rate` entries a second to each feed, and every one
has to arrive once and in order. The resident memory is that of the service's process, as the kernel has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from headrace import App, wiring

app = App()


@app.task
async def note(text: str) -> str:
    """Return a text; nobody works it here."""
    return text


@dataclass(slots=True)
class Seen:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    faults: int = 0


class Service:
    """`headrace serve` in a process."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process, self.url = process, url

    @classmethod
    async def start(cls, dsn: str) -> Service:
        """Start it, and return it once it listens."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "headrace", "serve", "benchmarks.sse:app", "--port", "0", "--json",
            env=os.environ | {"HEADRACE_URL": dsn}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        return cls(process, json.loads(await process.stdout.readline())["url"])

    def memory(self) -> dict[str, float]:
        """Return its resident memory now and at most, in MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return {name: round(int(facts[name].split()[0]) / 1024, 1) for name in ("VmRSS", "VmHWM")}

    def cpu(self) -> float:
        """Return the seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask(url: str, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for a path on a new connection, and read the head of the answer, which has to be 200."""
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.partition(b"\r\n")[0], head
    return reader, writer


async def listen(reader: asyncio.StreamReader, seen: Seen) -> None:
    """Read a stream for good."""
    expected, number = 1, 0
    while True:
        line = await reader.readline()
        if line.startswith(b"id: "):
            number = int(line[4:])
            seen.faults += number != expected
            expected = number + 1
        elif line.startswith(b"data: "):
            seen.seconds.append(time.time() - json.loads(line[6:])["at"])


async def measure(dsn: str, options: argparse.Namespace) -> dict[str, object]:
    """Return the figures."""
    client, seen = App(dsn), Seen()
    task = client.task(note.definition.function)
    await wiring.migrate(client.settings)
    async with client:
        service = await Service.start(dsn)
        try:
            before = service.memory()
            batches = [await client.submit(task, ["x"]) for _ in range(options.streams)]
            streams = [await ask(service.url, f"/api/v1/batches/{batch.id}/events") for batch in batches]
            idle = [await ask(service.url, "/healthz") for _ in range(options.idle)]
            readers = [asyncio.create_task(listen(reader, seen)) for reader, _ in streams]
            cpu = service.cpu()
            await asyncio.sleep(5)
            quiet, quiet_cpu = service.memory(), service.cpu() - cpu
            cpu = service.cpu()
            sent = await feed(client, [f"batch:{batch.id}" for batch in batches], options)
            await asyncio.sleep(2)
            busy_cpu = service.cpu() - cpu
            figures = report(seen, sent) | {"memory_mb": {"alone": before, "quiet": quiet, "busy": service.memory()}}
            for reader in readers:
                reader.cancel()
            for _, writer in (*streams, *idle):
                writer.transport.abort()
            return figures | {
                "cpu_percent": {"quiet": round(quiet_cpu * 20), "busy": round(100 * busy_cpu / (options.seconds + 2))}
            }
        finally:
            service.process.terminate()
            await service.process.wait()


async def feed(client: App, names: list[str], options: argparse.Namespace) -> int:
    """Append entries to each feed for a while; return how many."""
    feeds, sent, began = [client.feed(name) for name in names], 0, time.monotonic()
    spacing = 1 / (options.rate * len(feeds))
    tasks = set[asyncio.Task[int]]()
    while time.monotonic() - began < options.seconds:
        tasks.add(asyncio.create_task(feeds[sent % len(feeds)].append("tick", {"at": time.time()}, key=f"tick/{sent}")))
        sent += 1
        await asyncio.sleep(max(began + sent * spacing - time.monotonic(), 0))
    await asyncio.gather(*tasks)
    return sent


def report(seen: Seen, sent: int) -> dict[str, object]:
    """Return what the clients saw, in figures."""
    ordered = sorted(seen.seconds)
    return {
        "sent": sent,
        "arrived": len(ordered),
        "gaps_or_repeats": seen.faults,
        "p50_ms": round(1000 * ordered[len(ordered) // 2], 1),
        "p95_ms": round(1000 * ordered[int(len(ordered) * 0.95)], 1),
    }


def main() -> None:
    """Read the options, measure, and print."""
    from tests.backends.server import PostgresServer

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--idle", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=1.0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    server = PostgresServer(durable=True)
    try:
        figures = asyncio.run(measure(server.dsn, options))
        print(
            json.dumps(figures | {"streams": options.streams, "idle": options.idle, "cores": os.cpu_count()}, indent=2)
        )
    finally:
        server.remove()


if __name__ == "__main__":
    main()
