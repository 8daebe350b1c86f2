"""Measure how much of a provider's quota three client processes use on one key, and how often they are refused.

    python benchmarks/quota.py [--store postgres|redis] [--as calls|jobs] [--calls N] [--json FILE] [SCENARIO …]

Each scenario starts a scripted provider (a token bucket of 8,000 requests or 5.44 million tokens a minute) and three
processes that call it through the gateway, 60 calls at a time each: plainly (`app.llm.complete`), or in jobs of a task
that declares the pool. All share an embedded PostgreSQL; with `--store redis` a Valkey beside it counts the quota.
Steady: from 3 s after the first call (where something has to be learnt: 5 s after the first refusal) until no more than
180 calls are left. Recovery: seconds from the first refusal until 95 % of the quota is used over the next 3 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
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
RPM = 8_000.0
TPM = RPM * (INPUT_TOKENS + OUTPUT_TOKENS)
#: A scenario that takes longer than this has failed.
PATIENCE_SECONDS = 150.0


@dataclass(frozen=True)
class Scenario:
    """A quota of the provider, what the clients know of it, and when it changes."""

    quota: str
    limits: Mapping[str, float]
    binds: str = "accepted"
    #: units per minute in the end
    bound: float = RPM
    change: str | None = None
    learns: bool = False


def _requests(burst: int, more: str = "") -> str:
    return f"requests_per_minute={RPM:g},burst={burst}s{more}"


def _tokens(burst: int, more: str = "") -> str:
    return f"tokens_per_minute={TPM:g},burst={burst}s{more}"


HIDDEN, SECONDS = ",headers=none", ",retry_style=seconds"
_RPM, _TPM = {"requests_per_minute": RPM}, {"tokens_per_minute": TPM}
_HALF = {"bound": RPM / 2, "learns": True}
SCENARIOS = {
    "requests, burst 1 s": Scenario(_requests(1), _RPM),
    "requests, burst 10 s": Scenario(_requests(10), _RPM),
    "tokens, burst 1 s": Scenario(_tokens(1), _TPM, "tokens", TPM),
    "tokens, burst 10 s": Scenario(_tokens(10), _TPM, "tokens", TPM),
    "unknown, burst 1 s": Scenario(_requests(1, HIDDEN), {}, learns=True),
    "unknown, whole seconds": Scenario(_requests(1, HIDDEN + SECONDS), {}, learns=True),
    "unknown, told by headers": Scenario(_requests(1), {}),
    "halved, burst 1 s": Scenario(_requests(1, HIDDEN), _RPM, change=f"requests_per_minute={RPM / 2:g}", **_HALF),
    "halved, whole seconds": Scenario(
        _requests(1, HIDDEN + SECONDS), _RPM, change=f"requests_per_minute={RPM / 2:g}", **_HALF
    ),
    "halved tokens, burst 1 s": Scenario(
        _tokens(1, HIDDEN), _TPM, "tokens", TPM / 2, change=f"tokens_per_minute={TPM / 2:g}", learns=True
    ),
    "halved, burst 10 s": Scenario(_requests(10, HIDDEN), _RPM, change=f"requests_per_minute={RPM / 2:g}", **_HALF),
    "halved, told by headers": Scenario(
        _requests(1), _RPM, bound=RPM / 2, change=f"requests_per_minute={RPM / 2:g}"
    ),
}  # fmt: skip


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
    name: str, environ: Mapping[str, str], *, calls: int, arm: str = "calls", change_at: float = 0.375
) -> Figures:
    """Run a scenario with the store that `environ` names; a change comes after `change_at` of the calls."""
    scenario = SCENARIOS[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "answers.json").write_text(json.dumps({"rules": [{"contains": "word", "answer": ANSWER}]}))
        options = ["--latency", LATENCY, "--quota", scenario.quota, "--answers", str(folder / "answers.json")]
        if scenario.change:
            options += ["--quota-change", f"after_calls={int(calls * change_at)}:{scenario.change}"]
        provider = stack.enter_context(ProviderProcess(*options))
        limits = {f"HEADRACE_LLM_{key.upper()}": f"{limit:g}" for key, limit in scenario.limits.items()}
        own = {**environ, **provider.environment, **limits}
        if arm == "jobs":
            _run(own, "submit", calls)
        share = calls // PROCESSES
        arguments = [
            ("work",) if arm == "jobs" else ("call", number * share, (number + 1) * share)
            for number in range(PROCESSES)
        ]
        clients = [stack.enter_context(_child(own, *words)) for words in arguments]
        for client in clients:
            _line_of(client)
        for client in clients:
            _say(client, "go")
        if arm == "jobs":
            _await_all(provider, calls)
            for client in clients:
                _say(client, "stop")
        cpu = sum(json.loads(_line_of(client))["cpu_seconds"] for client in clients)
        return _figures(name, arm, provider.stats(), cpu)


def _await_all(provider: ProviderProcess, calls: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while provider.stats().paid < calls:
        if time.monotonic() > deadline:
            raise RuntimeError(f"after {PATIENCE_SECONDS:g} s only {provider.stats().paid} of {calls} jobs had an answer")
        time.sleep(0.5)


def _figures(name: str, arm: str, stats: Stats, cpu_seconds: float) -> Figures:
    scenario = SCENARIOS[name]
    refused = [second.second for second in stats.seconds if second.refused]
    first = refused[0] if refused else None
    begin = first + 5 if scenario.learns and first is not None else _begin(scenario, stats)
    sums = accumulate(second.accepted for second in stats.seconds)
    end = sum(1 for so_far in sums if so_far <= stats.paid - PROCESSES * WORKERS)
    end = max(begin + 1, end)
    windows = (
        at for at in range(first or 0, end - 2) if stats.per_minute(scenario.binds, at, at + 3) >= 0.95 * scenario.bound
    )
    recovered = next((at for at in windows if first is not None), None)
    return Figures(
        scenario=name,
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


def _begin(scenario: Scenario, stats: Stats) -> int:
    changed = max((int(quota["second"]) for quota in stats.quotas), default=0)
    return max(0, changed) + 3


# Client processes


def _command(*words: object) -> list[str]:
    return [sys.executable, str(Path(__file__).with_name("quota_client.py")), *(str(word) for word in words)]


def _run(environ: Mapping[str, str], *words: object) -> None:
    subprocess.run(_command(*words), check=True, env={**os.environ, **environ})


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
    """Run what counts the quota, and yield the environment that names it and an embedded PostgreSQL."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        environ = {"HEADRACE_DIRECTORY": directory, "HEADRACE_CONFIG": ""}
        if kind == "redis":
            from tests.backends.valkey import ValkeyServer

            server = ValkeyServer()
            stack.callback(server.remove)
            environ["HEADRACE_LIMITS_URL"] = server.url
        # Kept running between scenarios.
        stack.enter_context(_child(environ, "hold")).stdout.readline()  # type: ignore[union-attr]
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
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of: {'; '.join(SCENARIOS)} (default: all)")
    parser.add_argument("--store", choices=["postgres", "redis"], default="postgres")
    parser.add_argument("--as", dest="arm", choices=["calls", "jobs"], default="calls")
    parser.add_argument("--calls", type=int, default=4_000)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are: {'; '.join(SCENARIOS)}")
    rows = []
    with store(options.store) as environ:
        for number, name in enumerate(options.scenarios or SCENARIOS):
            own = {**environ, "HEADRACE_QUEUE_SCHEMA": f"quota{number}", "HEADRACE_QUEUE_STREAM_PREFIX": f"q{number}"}
            rows.append(measure(name, own, calls=options.calls // PROCESSES * PROCESSES, arm=options.arm))
            print(render(rows[-1], options.store), flush=True)
    if options.json is not None:
        figures = {"store": options.store, "rpm": RPM, "tpm": TPM, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
