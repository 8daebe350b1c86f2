"""What the gateway adds to a call: `app.llm.complete` beside the same request through the bare SDK.

    python benchmarks/gateway.py [--rounds 5] [--in-flight 64] [--latency 1.0] [--burst] [--together] [--json FILE]

Both arms ask one scripted provider in its own process. They take turns, round by round, so that both see one machine;
each keeps `--in-flight` calls under way, that come evenly, or with `--burst` all at once: then each waits for the
processor until those before it are through. Calls differ, so that the memo answers none. Shown: the time of a call
(median, p95), what the gateway's median adds to the bare one's, and processor time of the client for a call. The store
is the embedded PostgreSQL, which commits the attempt before the call and the answer after it.

In use, provider and server are other machines. So in both arms the client has the first core to itself, and the
provider and PostgreSQL share the others; with `--together` all share all cores. Before each round the machine is looked
at while it should be idle: what other programs use then stands beside the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai

from headrace import App
from headrace.bench.machine import look
from headrace.bench.validity import BUSY_CORES
from headrace.settings import Settings, load_settings

PROMPT = "Name a river in Norway, as one word. Question"
#: After so long a round has left nothing to do behind, such as quota to give back.
SETTLING_SECONDS = 0.5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each arm")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--calls", type=int, default=256, help="calls of one round")
    parser.add_argument("--burst", action="store_true", help="all begin at once, not one after the other")
    parser.add_argument("--together", action="store_true", help="client and servers share all cores")
    parser.add_argument("--latency", type=float, default=1.0, help="seconds the provider takes")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    options.together = options.together or not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2
    mine, theirs = cores(options)
    # Whoever is started from here on stays on these, with all that it starts.
    keep_to(theirs)
    with tempfile.TemporaryDirectory() as directory, scripted_provider(options.latency) as provider:
        settings = settings_for(provider, Path(directory))
        times, cpu, busy = asyncio.run(run_arms(options, provider, settings, mine))
    figures = {**figures_of(times, cpu, options), "others_busy_cores": [round(used, 2) for used in busy]}
    print(render(figures))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


def cores(options: argparse.Namespace) -> tuple[set[int], set[int]]:
    """Return the cores of the client, and those of the servers; nothing where they are not told apart."""
    if options.together:
        return set(), set()
    first, *others = sorted(os.sched_getaffinity(0))
    return {first}, set(others)


def keep_to(allowed: set[int]) -> None:
    """Keep this thread, and what it starts, to these cores; none: to those that it has."""
    if allowed:
        os.sched_setaffinity(0, allowed)


@contextmanager
def scripted_provider(latency: float) -> Iterator[dict[str, Any]]:
    """Run a provider in a process of its own, and say where it is."""
    command = [sys.executable, "-m", "headrace.testing.provider", "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()


def figures_of(times: dict[str, list[float]], cpu: dict[str, float], options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of both arms, in milliseconds, and what the gateway adds, round by round."""
    pairs = zip(by_round(times["gateway"], options), by_round(times["bare"], options), strict=True)
    added = [statistics.median(ours) - statistics.median(bare) for ours, bare in pairs]
    return {
        "in_flight": options.in_flight, "latency_ms": options.latency * 1000, "burst": options.burst,
        "rounds": options.rounds, "together": options.together,
        "arms": {arm: {**describe(values), "cpu_ms": cpu[arm] * 1000 / len(values)} for arm, values in times.items()},
        "added_p50_ms": statistics.median(added), "added_least_ms": min(added), "added_most_ms": max(added),
    }  # fmt: skip


def settings_for(provider: dict[str, Any], directory: Path) -> Settings:
    """Return settings of an embedded store, and of this provider."""
    environ = {
        "HEADRACE_DIRECTORY": str(directory),
        "HEADRACE_LLM_MODEL": provider["model"],
        "HEADRACE_LLM_BASE_URL": provider["base_url"],
        "HEADRACE_LLM_API_KEY": provider["api_key"],
        "HEADRACE_LLM_REQUESTS_PER_MINUTE": "600000",
        "HEADRACE_LLM_INPUT_PRICE": "0.15",
        "HEADRACE_LLM_OUTPUT_PRICE": "0.60",
    }
    return load_settings(environ=environ, file=directory / "none.toml")


async def run_arms(
    options: argparse.Namespace, provider: dict[str, Any], settings: Settings, mine: set[int]
) -> tuple[dict[str, list[float]], dict[str, float], list[float]]:
    """Return the times of all calls by arm, seconds of processor time of this process, and cores others used."""
    times: dict[str, list[float]] = {"bare": [], "gateway": []}
    cpu = dict.fromkeys(times, 0.0)
    busy: list[float] = []
    sdk = openai.AsyncOpenAI(base_url=provider["base_url"], api_key=provider["api_key"], max_retries=0)
    async with sdk, App(settings=settings) as app:

        async def bare(number: int) -> None:
            await sdk.chat.completions.create(
                model=provider["model"], temperature=0.0, max_tokens=20,
                messages=[{"role": "user", "content": f"{PROMPT} {number}"}],
            )  # fmt: skip

        async def gateway(number: int) -> None:
            await app.llm.complete(f"{PROMPT} {number}", max_tokens=20)

        arms = {"bare": bare, "gateway": gateway}
        await gateway(-options.in_flight - 1)
        # The server is started by now.
        keep_to(mine)
        for arm in arms.values():
            await round_of(arm, range(-options.in_flight, 0), options)
        for turn in range(options.rounds):
            numbers = range(turn * options.calls, (turn + 1) * options.calls)
            for name in sorted(arms, reverse=bool(turn % 2)):
                await asyncio.sleep(SETTLING_SECONDS)
                busy.append(look().busy_cores)
                began = time.process_time()
                times[name] += await round_of(arms[name], numbers, options)
                cpu[name] += time.process_time() - began
    return times, cpu, busy


async def round_of(call: Callable[[int], Awaitable[None]], numbers: range, options: argparse.Namespace) -> list[float]:
    """Make calls, so many at a time, and return how long each took, in milliseconds."""
    todo = iter(numbers)
    times: list[float] = []

    async def one_after_another(place: int) -> None:
        if not options.burst:
            await asyncio.sleep(options.latency * place / options.in_flight)
        for number in todo:
            began = time.perf_counter()
            await call(number)
            times.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(one_after_another(place) for place in range(options.in_flight)))
    return times


def by_round(times: list[float], options: argparse.Namespace) -> list[list[float]]:
    """Cut the times of an arm into its rounds."""
    return [times[start : start + options.calls] for start in range(0, len(times), options.calls)]


def describe(times: list[float]) -> dict[str, float]:
    """Return the figures of one arm."""
    return {"calls": len(times), "p50_ms": statistics.median(times), "p95_ms": statistics.quantiles(times, n=20)[-1]}


def render(figures: dict[str, Any]) -> str:
    """Return the figures as a table."""
    lines = [f"{'arm':<10}{'calls':>8}{'p50 ms':>10}{'p95 ms':>10}{'cpu ms':>10}"]
    for name, arm in figures["arms"].items():
        lines.append(f"{name:<10}{arm['calls']:>8}{arm['p50_ms']:>10.1f}{arm['p95_ms']:>10.1f}{arm['cpu_ms']:>10.2f}")
    added = "added by the gateway, median of rounds"
    spread = f"({figures['added_least_ms']:.1f}–{figures['added_most_ms']:.1f})"
    lines.append(f"{added}: {figures['added_p50_ms']:.1f} ms {spread}, at {figures['in_flight']} in flight")
    busy = statistics.median(figures["others_busy_cores"])
    if busy > BUSY_CORES:
        lines.append(f"not to be quoted: other programs used {busy:.1f} cores between the rounds")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
