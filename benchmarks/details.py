"""Measure batches of details over HTTP and server-sent events: how soon items come, and what the store says of it.

Run ``python -m benchmarks.details [--seconds 300] [--clients 20] [--workers 2 | --apart] [--fail 0.1]``. It starts a
PostgreSQL of its own (fsync on), a scripted provider in a process of its own (0.4 s to the first token, 100 tokens/s
per stream, no quota), and the service: with its worker in one process; with ``--workers``, and so many workers beside
it, which leave the writing to ``--agents``, if there are any, of ``--parts`` at once each; or, with ``--apart``, as
service, worker, relay, agents and callback service over PostgreSQL, a Redis server for limits and a broker of the Kafka
protocol. So many clients each ask for a
batch of 10 to 50 items, follow its events to the end, and ask for the next. Of the calls that fail, with ``--fail``,
a fourth each is a 429, a 500, a stream that breaks, and one that hangs until the deadline of a call.
Needs what the tests need: `make setup`.

``success`` is the share of batches that were delivered whole, ``retry_success`` the share of failed calls whose part
succeeded in the end, without a dead letter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import socket
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

from headrace.testing.provider import ProviderProcess
from headrace.wiring import migrate
from tests.backends.kafka import KafkaBroker
from tests.backends.server import PostgresServer
from tests.backends.valkey import ValkeyServer
from tests.faults.details_ledger import retry_figures
from tests.faults.details_line import APART, TOGETHER, DetailsLine
from tests.faults.details_load import Load, generate, store_figures

#: How calls fail.
FAILURES = ("429:rate={rate},retry_after=0.2", "500:rate={rate}", "stream_cut:rate={rate}", "hang:rate={rate}")
#: Twice what a part of a batch with a promise of time takes.
CALL_DEADLINE = "8s"
RULES = files("headrace.apps.details.demo") / "rules.json"
#: What is left out of short items.
SHORTER = (", and seldom seen without {words:3}.", ".")


async def measure(line: DetailsLine, load: Load) -> dict[str, Any]:
    """Return the figures of one run."""
    await migrate(line.settings)
    await line.start_all()
    # The first batches import and connect: they are no part of it.
    await generate(line.client, Load(clients=4, seconds=3, seed=load.seed + 1))
    before = line.cpu_seconds()
    line.provider.forget_calls()
    outcome = await generate(line.client, load)
    used = {name: round(value - before[name], 1) for name, value in line.cpu_seconds().items()}
    figures = outcome.summary() | {"doubled_names": outcome.doubled[:5], "cpu_seconds": used, "ended": line.ended}
    figures |= await retry_figures(line.postgres.dsn, line.provider)
    stats = line.provider.stats()
    return figures | {"store": await store_figures(line.postgres.dsn), "calls": stats.calls, "outcomes": stats.outcomes}


def main() -> None:
    """Measure as the command line says, and print one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.details", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--least", type=int, default=10)
    parser.add_argument("--most", type=int, default=50)
    parser.add_argument("--apart", action="store_true", help="each thing in a process of its own, over Redis and Kafka")
    parser.add_argument("--workers", type=int, default=0, help="workers beside the service, which has none then")
    parser.add_argument("--agents", type=int, help="processes of agents; default: 2 with --apart, else workers write")
    parser.add_argument("--parts", type=int, default=256, help="parts that each agent writes at once")
    parser.add_argument("--fail", type=float, default=0.0, help="share of the provider's calls that fail")
    parser.add_argument("--latency", default="0.4,100")
    parser.add_argument("--short", action="store_true", help="items of about 45 tokens, where the script has 65")
    options = parser.parse_args()
    if options.agents is None and options.apart:
        options.agents = 2
    if options.agents and not (options.apart or options.workers):
        parser.error("--agents goes with --workers or --apart: a service with its worker in one process writes itself")
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="hrdetails", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        line = _line(stack, folder, options)
        stack.callback(line.end)
        load = Load(options.clients, options.seconds, options.least, options.most)
        figures = asyncio.run(measure(line, load))
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "options": vars(options)}
    print(json.dumps(machine | figures, indent=1, default=str))


def _line(stack: ExitStack, folder: Path, options: argparse.Namespace) -> DetailsLine:
    postgres = PostgresServer(durable=True)
    stack.callback(postgres.remove)
    words = [word for fault in _faults(options.fail) for word in ("--fault", fault)]
    rules = folder / "rules.json"
    rules.write_text(RULES.read_text().replace(*SHORTER) if options.short else RULES.read_text())
    provider = stack.enter_context(ProviderProcess("--latency", options.latency, "--answers", str(rules), *words))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = {"HEADRACE_LLM_TIMEOUT": CALL_DEADLINE, "HEADRACE_DETAILS_AGENT_CONCURRENCY": str(options.parts)}
    if options.agents and not options.apart:
        told["HEADRACE_WORKER_AGENTS_ENABLED"] = "false"
    line = DetailsLine(postgres, provider, folder, port, processes=_processes(options), told=told)
    if options.apart:
        line.redis, line.broker = ValkeyServer(), KafkaBroker(durable=True)
        stack.callback(line.redis.remove)
        stack.callback(line.broker.remove)
    return line


def _processes(options: argparse.Namespace) -> dict[str, Sequence[str]]:
    agents = {f"agent {number}": APART["agent"] for number in range(options.agents or 0)}
    if options.apart:
        return {name: words for name, words in APART.items() if "agent" not in name} | agents
    if options.workers:
        workers = {f"worker {number}": APART["worker"] for number in range(options.workers)}
        return {"service": APART["service"]} | workers | agents
    return dict(TOGETHER)


def _faults(share: float) -> list[str]:
    """Return the lines of the script by which this share of calls fails, a fourth of it in each way."""
    # One number is drawn for each call, and the first line whose rate is above it strikes.
    rates = [share * part / len(FAILURES) for part in range(1, len(FAILURES) + 1)]
    return [failure.format(rate=rate) for failure, rate in zip(FAILURES, rates, strict=True)] if share else []


if __name__ == "__main__":
    main()
