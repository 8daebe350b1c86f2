"""One run: a server, then turn after turn, each in a child process and a database of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.bench.catalogue import CONTENDERS, Entry
from headrace.bench.children import end_with_parent
from headrace.bench.machine import Quiet, installed, look
from headrace.bench.order import Answer, Order
from headrace.bench.plan import Sizes, Turn, interleave
from headrace.bench.redis_server import RedisServer
from headrace.bench.results import Result, Results
from headrace.bench.server import BenchServer

#: No measurement takes longer.
LIMIT_SECONDS = 240.0
#: A child told to end may take so long to end its worker.
END_SECONDS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run measures."""

    workloads: tuple[str, ...]
    contenders: Mapping[str, Entry]
    sizes: Sizes
    rounds: int = 3
    redis: RedisServer = field(default_factory=RedisServer)

    def turns(self) -> list[Turn]:
        """Return every measurement in its order."""
        return list(interleave(self.workloads, self.contenders, self.sizes, self.rounds))


@dataclass(slots=True)
class Run:
    """What a run has seen so far."""

    results: Results = field(default_factory=Results)
    quiet: list[Quiet] = field(default_factory=list)


async def carry_out(plan: Plan, server: BenchServer, *, told: Callable[[int, int, Turn], None]) -> Run:
    """Measure everything. `told` hears before each turn how many were done, of how many, and which is next."""
    run, turns = Run(), plan.turns()
    for index, turn in enumerate(turns):
        told(index, len(turns), turn)
        if not index or turn.round != turns[index - 1].round:
            run.quiet.append(await asyncio.to_thread(look))
        entry = plan.contenders[turn.contender]
        begun = time.monotonic()
        answer = await _measure(turn, entry, plan, server)
        result = Result(turn.workload, turn.contender, turn.jobs)
        run.results.add(result, turn.round, replace(answer, took=time.monotonic() - begun))
    return run


async def _measure(turn: Turn, entry: Entry, plan: Plan, server: BenchServer) -> Answer:
    absent = [name for name in entry.needs if installed(name) is None]
    if absent:
        return Answer(missing="not installed" if absent == list(entry.needs) else f"not installed: {', '.join(absent)}")
    if entry.redis and not plan.redis.url:
        return Answer(missing="no Redis server")
    database, dsn = await server.new_database()
    try:
        order = Order(
            contender=turn.contender.partition("@")[0], workload=turn.workload, dsn=dsn, redis=plan.redis.url,
            jobs=turn.jobs, seconds=turn.seconds, source=entry.source,
            server_pid=plan.redis.pid if entry.redis else server.pid,
        )  # fmt: skip
        return await _ask_child(order)
    finally:
        await server.drop_database(database)


def _environment(order: Order, folder: str) -> dict[str, str]:
    """Let a child keep its files in a folder; some systems read the address of their broker when they are imported."""
    return {**os.environ, "TMPDIR": folder, **({"BENCH_REDIS": order.redis} if order.redis else {})}


async def _ask_child(order: Order) -> Answer:
    # Ours, so that its files go even if it is killed.
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True) as folder:
        return await _ask_child_in(folder, order)


async def _ask_child_in(folder: str, order: Order) -> Answer:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "headrace.bench.child", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, env=_environment(order, folder), start_new_session=True,
        preexec_fn=end_with_parent,
    )  # fmt: skip
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            output, errors = await child.communicate(order.to_json().encode())
    except TimeoutError:
        return Answer(failed=f"took longer than {LIMIT_SECONDS:g} s")
    finally:
        await _end(child)
    answer = Answer.from_output(output.decode("utf-8", errors="replace"))
    if answer is None:
        return Answer(failed=f"ended with {child.returncode}: {errors.decode('utf-8', errors='replace')[-500:]}")
    return answer


async def _end(child: asyncio.subprocess.Process) -> None:
    """Let a child that still runs end its worker, then see that it is gone."""
    if child.returncode is not None:
        return
    child.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await child.wait()
    except TimeoutError:
        child.kill()
        await child.wait()


def versions(contenders: Mapping[str, Entry]) -> dict[str, str]:
    """Return the versions of Headrace, the driver and the contenders that are installed, and where Headrace lies."""
    import headrace

    names = ["asyncpg", *(name for entry in contenders.values() for name in entry.needs)]
    found = {name: installed(name) or "not installed" for name in names}
    source, here = Path(headrace.__file__).resolve().parent.parent, Path.cwd()
    shown = source.relative_to(here) if source.is_relative_to(here) else source
    return {"headrace": headrace.__version__, "headrace_source": str(shown), **found}


def with_sources(contenders: Mapping[str, Entry], sources: tuple[str, ...]) -> dict[str, Entry]:
    """Return the contenders and, for each source, the worker of that checkout as one more."""
    ours = CONTENDERS["headrace"]
    more = {
        f"headrace@{source}": replace(ours, source=source, about=f"{ours.about}, worker of {source}")
        for source in sources
    }
    return {**contenders, **more}
