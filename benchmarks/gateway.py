"""What the gateway adds to a call: `app.llm.complete` beside the same request through the bare SDK.

    python benchmarks/gateway.py [--rounds 4] [--in-flight 64] [--latency 1.0] [--burst] [--json FILE]

Both arms ask one scripted provider in its own process. They take turns, round by round, so that both see one machine;
each keeps `--in-flight` calls under way, that come evenly, or with `--burst` all at once: then each waits for the
processor until those before it are through. Calls differ, so that the memo answers none. Shown: the time of a call
(median, p95), what the gateway's median adds to the bare one's, and processor time of the client for a call. The store
is the embedded PostgreSQL, which commits the attempt before the call and the answer after it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
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
from headrace.settings import Settings, load_settings

PROMPT = "Name a river in Norway, as one word. Question"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="rounds of each arm")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--calls", type=int, default=256, help="calls of one round")
    parser.add_argument("--burst", action="store_true", help="all begin at once, not one after the other")
    parser.add_argument("--latency", type=float, default=1.0, help="seconds the provider takes")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, scripted_provider(options.latency) as provider:
        times, cpu = asyncio.run(run_arms(options, provider, settings_for(provider, Path(directory))))
    figures = figures_of(times, cpu, options)
    print(render(figures))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


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
        "rounds": options.rounds,
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
    options: argparse.Namespace, provider: dict[str, Any], settings: Settings
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the times of all calls by arm, and the seconds of processor time of this process."""
    times: dict[str, list[float]] = {"bare": [], "gateway": []}
    cpu = dict.fromkeys(times, 0.0)
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
        for arm in arms.values():
            await round_of(arm, range(-options.in_flight, 0), options)
        for turn in range(options.rounds):
            numbers = range(turn * options.calls, (turn + 1) * options.calls)
            for name in sorted(arms, reverse=bool(turn % 2)):
                began = time.process_time()
                times[name] += await round_of(arms[name], numbers, options)
                cpu[name] += time.process_time() - began
    return times, cpu


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
    return "\n".join(lines)


if __name__ == "__main__":
    main()
