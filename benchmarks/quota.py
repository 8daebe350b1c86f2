"""Measure how much of a provider's quota three client processes use on one key, and how often they are refused.

    python benchmarks/quota.py [--store postgres|redis|beside] [--as calls|jobs] [--calls N] [--json FILE] [SCENARIO …]

Each scenario starts a scripted provider (a token bucket of 7,200 requests or 4.9 million tokens a minute) and three
processes that call it through the gateway, 60 calls at a time each: plainly (`app.llm.complete`), or in jobs of a task
that declares the pool. All share an embedded PostgreSQL, or a Valkey, or a PostgreSQL with a Valkey beside it that
counts the quota.
Steady: from 3 s after the first call (where something has to be learnt: 5 s after the first refusal) until no more than
180 calls are left. Recovery: seconds from the first refusal until 95 % of the quota is used over the next 3 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.quota_client import WORKERS
from headrace.testing.provider import ProviderProcess, Stats

PROCESSES = 3
#: 500 tokens of prompt, 180 of answer, by the provider's count of four characters each.
INPUT_TOKENS, OUTPUT_TOKENS = 500, 180
ANSWER = "word " * 144
LATENCY = "0.1,600"
RPM = 7_200.0


@dataclass(frozen=True)
class Scenario:
    """A quota of the provider, what the clients know of it, and when it changes."""

    name: str
    quota: str
    limits: Mapping[str, float]
    binds: str
    #: units per minute in the end
    bound: float
    change: str | None = None
    learns: bool = False


def scenarios(rpm: float = RPM) -> dict[str, Scenario]:
    """Return all scenarios, at so many calls a minute, by name."""
    quotas = {"requests": ("accepted", "requests_per_minute", rpm)}
    quotas["tokens"] = ("tokens", "tokens_per_minute", rpm * (INPUT_TOKENS + OUTPUT_TOKENS))

    def known(name: str, what: str, burst: str, *, half: bool = False, tells: str = "") -> Scenario:
        binds, key, rate = quotas[what]
        change, bound = (f"{key}={rate / 2:.0f}", rate / 2) if half else (None, rate)
        quota = f"{key}={rate:.0f},burst={burst}{tells}"
        return Scenario(name, quota, {key: rate}, binds, bound, change, learns=half and bool(tells))

    def unknown(name: str, what: str, *, tells: str = "") -> Scenario:
        scenario = known(name, what, "1s", tells=tells)
        return replace(scenario, limits={}, learns=bool(tells))

    hidden, seconds = ",headers=none", ",headers=none,retry_style=seconds"
    every = (
        known("requests, burst 1 s", "requests", "1s"),
        known("requests, burst 10 s", "requests", "10s"),
        known("tokens, burst 1 s", "tokens", "1s"),
        known("tokens, burst 10 s", "tokens", "10s"),
        unknown("unknown, burst 1 s", "requests", tells=hidden),
        unknown("unknown, whole seconds", "requests", tells=seconds),
        unknown("unknown, told by headers", "requests"),
        unknown("unknown tokens, burst 1 s", "tokens", tells=hidden),
        known("halved, burst 1 s", "requests", "1s", half=True, tells=hidden),
        known("halved, whole seconds", "requests", "1s", half=True, tells=seconds),
        known("halved, burst 10 s", "requests", "10s", half=True, tells=hidden),
        known("halved, told by headers", "requests", "1s", half=True),
        known("halved tokens, burst 1 s", "tokens", "1s", half=True, tells=hidden),
        known("halved tokens, whole seconds", "tokens", "1s", half=True, tells=seconds),
    )
    return {scenario.name: scenario for scenario in every}


@dataclass(frozen=True)
class Figures:
    """What a scenario gave."""

    scenario: str
    #: "calls" or "jobs"
    arm: str
    calls: int
    #: answers beyond the first to one prompt
    paid_again: int
    #: share of the quota that binds, over the steady window
    utilisation: float
    window: tuple[int, int]
    refused: int
    refused_share: float
    #: seconds; None: nothing was refused, or it never recovered
    recovery: float | None
    seconds: float
    #: processor time of the client processes
    cpu_ms_per_call: float
    accepted_by_second: Sequence[int] = field(repr=False, default=())
    refused_by_second: Sequence[int] = field(repr=False, default=())


def measure(
    scenario: Scenario, environ: Mapping[str, str], *, calls: int, arm: str = "calls", workers: int = WORKERS
) -> Figures:
    """Run a scenario with the store that `environ` names; a change comes after half of the calls."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "answers.json").write_text(json.dumps({"rules": [{"contains": "word", "answer": ANSWER}]}))
        options = ["--latency", LATENCY, "--quota", scenario.quota, "--answers", str(folder / "answers.json")]
        if scenario.change:
            options += ["--quota-change", f"after_calls={calls // 2}:{scenario.change}"]
        provider = stack.enter_context(ProviderProcess(*options))
        limits = {f"HEADRACE_LLM_{key.upper()}": f"{limit:.0f}" for key, limit in scenario.limits.items()}
        own = {**environ, **provider.environment, **limits}
        subprocess.run(_command("prepare"), check=True, stdout=subprocess.DEVNULL, env={**os.environ, **own})
        share = calls // PROCESSES
        arguments = [
            ("work", workers) if arm == "jobs" else ("call", workers, number * share, (number + 1) * share)
            for number in range(PROCESSES)
        ]
        # Who submits jobs waits for them.
        waiting = [stack.enter_context(_child(own, "submit", calls))] if arm == "jobs" else []
        clients = [stack.enter_context(_child(own, *words)) for words in arguments]
        for client in (*waiting, *clients):
            _line_of(client)
        for client in (*waiting, *clients):
            _say(client, "go")
        for submitter in waiting:
            _line_of(submitter)
            for client in clients:
                _say(client, "stop")
        cpu = sum(json.loads(_line_of(client))["cpu_seconds"] for client in clients)
        return _figures(scenario, arm, provider.stats(), cpu, in_flight=PROCESSES * workers)


def _figures(scenario: Scenario, arm: str, stats: Stats, cpu_seconds: float, *, in_flight: int) -> Figures:
    changed = max([0, *(int(quota["second"]) for quota in stats.quotas)])
    refused = [second.second for second in stats.seconds if second.refused and second.second >= changed]
    first = refused[0] if refused else None
    begin = first + 5 if scenario.learns and first is not None else changed + 3
    sums = accumulate(second.accepted for second in stats.seconds)
    end = sum(1 for so_far in sums if so_far <= stats.paid - in_flight)
    end = max(begin + 1, end)
    windows = (
        at for at in range(first or 0, end - 2) if stats.per_minute(scenario.binds, at, at + 3) >= 0.95 * scenario.bound
    )
    recovered = next((at for at in windows if first is not None), None)
    return Figures(
        scenario=scenario.name,
        arm=arm,
        calls=stats.paid,
        paid_again=stats.paid_again,
        utilisation=round(stats.per_minute(scenario.binds, begin, end) / scenario.bound, 4),
        window=(begin, end),
        refused=stats.rate_limited,
        refused_share=round(stats.rate_limited / (stats.paid + stats.rate_limited), 5),
        recovery=None if recovered is None or first is None else float(recovered - first),
        seconds=float(len(stats.seconds)),
        cpu_ms_per_call=round(1000 * cpu_seconds / stats.paid, 2),
        accepted_by_second=[second.accepted for second in stats.seconds],
        refused_by_second=[second.refused for second in stats.seconds],
    )


# Client processes


def _command(*words: object) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("quota_client.py")), *(str(word) for word in words)]


@contextmanager
def _child(environ: Mapping[str, str], *words: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        _command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ}
    )
    try:
        yield process
        # The end of its input tells it to end.
        process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()


def _say(client: subprocess.Popen[str], word: str) -> None:
    assert client.stdin is not None
    client.stdin.write(f"{word}\n")
    client.stdin.flush()


def _line_of(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        raise RuntimeError("a client process ended early; its error is above")
    return line


# The command line


@contextmanager
def store(kind: str) -> Iterator[dict[str, str]]:
    """Run a store, and yield the environment that names it."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        environ = {"HEADRACE_DIRECTORY": directory, "HEADRACE_CONFIG": ""}
        if kind != "postgres":
            from tests.backends.valkey import ValkeyServer

            server = ValkeyServer()
            stack.callback(server.remove)
            environ["HEADRACE_LIMITS_URL" if kind == "beside" else "HEADRACE_URL"] = server.url
        if kind != "redis":
            # Kept running between scenarios.
            _line_of(stack.enter_context(_child(environ, "hold")))
        yield environ


def render(figures: Figures, kind: str) -> str:
    """Return a scenario's figures in one line."""
    recovery = "" if figures.recovery is None else f"recovered in {figures.recovery:.0f} s"
    return (
        f"{kind:8s} {figures.arm:5s} {figures.scenario:26s} {figures.utilisation:7.1%} of the quota in {figures.window}"
        f"  {figures.refused:3d} refused ({figures.refused_share:.2%})  {figures.seconds:.0f} s"
        f"  {figures.cpu_ms_per_call:.1f} ms/call  {recovery}"
    )


def main() -> None:
    """Run scenarios and print a line for each; `--json` writes all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of: {'; '.join(scenarios())} (default: all)")
    parser.add_argument("--store", choices=["postgres", "redis", "beside"], default="postgres")
    parser.add_argument("--as", dest="arm", choices=["calls", "jobs"], default="calls")
    parser.add_argument("--calls", type=int, default=4_000)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    known = scenarios()
    unknown = [name for name in options.scenarios if name not in known]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are: {'; '.join(known)}")
    rows = []
    with store(options.store) as environ:
        for number, name in enumerate(options.scenarios or known):
            own = {**environ, "HEADRACE_QUEUE_SCHEMA": f"quota{number}", "HEADRACE_QUEUE_STREAM_PREFIX": f"q{number}"}
            rows.append(measure(known[name], own, calls=options.calls // PROCESSES * PROCESSES, arm=options.arm))
            print(render(rows[-1], options.store), flush=True)
    if options.json is not None:
        figures = {"store": options.store, "requests_per_minute": RPM, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
