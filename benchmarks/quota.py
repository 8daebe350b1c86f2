"""Measure how much of a provider's quota three client processes use on one key, and how often they are refused.

Run ``python benchmarks/quota.py [--store postgres|redis] [--calls N] [--json] [SCENARIO …]``. Each scenario starts a
scripted provider (a token bucket: 6,000 requests or 4.08 million tokens a minute) and three processes that share a
limiter on a PostgreSQL or Valkey of its own; each process calls with 60 workers over plain connections and
`headrace.llm.quota.Quotas`. Steady: from 3 s after the first call (where something has to be learnt: 5 s after the
first refusal) until the first process has nothing left to send. Recovery: seconds from the first refusal until 95 % of
the quota is used over the next 3 s. The figures of docs/explanation/quota-pools.md come from here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headrace.llm.quota import Quotas
from headrace.model.quota import Estimate, Pool, PoolLimits
from headrace.model.usage import Usage
from headrace.ports.limiter import Limiter
from headrace.providers.quota_headers import read_hint
from headrace.stores.postgres import open_postgres_stores
from headrace.stores.redis import open_redis_limiter
from headrace.testing.provider import ProviderProcess, Stats

PROCESSES, WORKERS = 3, 60
#: 500 tokens of prompt, 180 of answer, by the provider's count of four characters each.
PROMPT, ANSWER, MAX_TOKENS = "word " * 400, "word " * 144, 1_000
INPUT_TOKENS, OUTPUT_TOKENS = 500, 180
LATENCY = "0.1,600"
RPM = 6_000.0
TPM = RPM * (INPUT_TOKENS + OUTPUT_TOKENS)


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
    calls: int
    #: share of the quota that binds, over the steady window
    utilisation: float
    window: tuple[int, int]
    refused: int
    refused_share: float
    #: seconds; None: nothing was refused, or it never recovered
    recovery: float | None
    seconds: float
    accepted_by_second: Sequence[int] = field(repr=False, default=())
    refused_by_second: Sequence[int] = field(repr=False, default=())


def measure(name: str, address: Mapping[str, str], *, calls: int, change_at: float = 0.375) -> Figures:
    """Run a scenario against a limiter (`kind`, `url`, `key`); a change comes after `change_at` of the calls."""
    scenario = SCENARIOS[name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "answers.json").write_text(json.dumps({"rules": [{"contains": "word", "answer": ANSWER}]}))
        options = ["--latency", LATENCY, "--quota", scenario.quota, "--answers", str(folder / "answers.json")]
        if scenario.change:
            options += ["--quota-change", f"after_calls={int(calls * change_at)}:{scenario.change}"]
        provider = stack.enter_context(ProviderProcess(*options))
        job = {
            "address": dict(address), "limits": dict(scenario.limits), "calls": calls // PROCESSES,
            "base_url": provider.base_url, "api_key": provider.settings.api_key,
        }  # fmt: skip
        command = [sys.executable, str(Path(__file__)), "client", json.dumps(job)]
        clients = [stack.enter_context(_child(command)) for _ in range(PROCESSES)]
        for client in clients:
            _line_of(client)
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        ends = [json.loads(_line_of(client))["supplied_until"] for client in clients]
        return _figures(name, scenario, provider.stats(), min(ends))


def _figures(name: str, scenario: Scenario, stats: Stats, supplied_until: float) -> Figures:
    assert stats.first_accepted_at is not None
    refused = [second.second for second in stats.seconds if second.refused]
    first = refused[0] if refused else None
    begin = first + 5 if scenario.learns and first is not None else _begin(scenario, stats)
    end = max(begin + 1, int(supplied_until - stats.first_accepted_at["monotonic"]))
    windows = (
        at for at in range(first or 0, end - 2) if stats.per_minute(scenario.binds, at, at + 3) >= 0.95 * scenario.bound
    )
    recovered = next((at for at in windows if first is not None), None)
    sends = stats.paid + stats.rate_limited
    return Figures(
        scenario=name,
        calls=stats.paid,
        utilisation=round(stats.per_minute(scenario.binds, begin, end) / scenario.bound, 4),
        window=(begin, end),
        refused=stats.rate_limited,
        refused_share=round(stats.rate_limited / sends, 5),
        recovery=None if recovered is None or first is None else float(recovered - first),
        seconds=round(len(stats.seconds), 1),
        accepted_by_second=[second.accepted for second in stats.seconds],
        refused_by_second=[second.refused for second in stats.seconds],
    )


def _begin(scenario: Scenario, stats: Stats) -> int:
    changed = max((int(quota["second"]) for quota in stats.quotas), default=0)
    return max(0, changed) + 3


@contextmanager
def _child(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _line_of(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        raise RuntimeError("a client process ended early; its error is above")
    return line


# One client process


@asynccontextmanager
async def _limiter(address: Mapping[str, str]) -> AsyncIterator[Limiter]:
    if address["kind"] == "redis":
        beside = await open_redis_limiter(address["url"], prefix=address["key"])
        try:
            yield beside
        finally:
            await beside.close()
    else:
        stores = await open_postgres_stores(address["url"], schema=address["key"], max_pool_size=4, listen=False)
        try:
            yield stores.limiter
        finally:
            await stores.close()


class Connection:
    """A connection to the provider that is kept."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._url, self._key = urlsplit(base_url), api_key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, text: str) -> tuple[int, dict[str, str], Any]:
        """Send one chat completion; return status, headers and body."""
        body = json.dumps(
            {"model": "m", "max_tokens": MAX_TOKENS, "messages": [{"role": "user", "content": text}]}
        ).encode()
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._url.hostname, self._url.port)
        reader, writer = self._streams
        writer.write(
            f"POST {self._url.path}/chat/completions HTTP/1.1\r\nhost: {self._url.netloc}\r\n"
            f"authorization: Bearer {self._key}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        answer = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            writer.close()
            self._streams = None
        return int(head[0].split()[1]), headers, json.loads(answer)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()


async def _client(job: Mapping[str, Any]) -> None:
    async with _limiter(job["address"]) as limiter:
        quotas, pool = Quotas(limiter), Pool("scripted:bench:m", PoolLimits(**job["limits"]))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        supply = iter(range(job["calls"]))
        ends = await asyncio.gather(*(_worker(job, quotas, pool, supply) for _ in range(WORKERS)))
        await quotas.close()
        print(json.dumps({"supplied_until": min(ends)}), flush=True)


async def _worker(job: Mapping[str, Any], quotas: Quotas, pool: Pool, supply: Iterator[int]) -> float:
    connection = Connection(job["base_url"], job["api_key"])
    for _ in supply:
        while not await _ask(connection, quotas, pool):
            pass
    connection.close()
    return time.monotonic()


async def _ask(connection: Connection, quotas: Quotas, pool: Pool) -> bool:
    reservation = await quotas.reserve(pool, Estimate(INPUT_TOKENS, MAX_TOKENS))
    status, headers, body = await connection.ask(PROMPT)
    hint = read_hint(headers, now=datetime.now(UTC))
    if status == 429:
        reservation.refuse(hint.retry_after, hint)
        return False
    if status != 200:
        raise RuntimeError(f"{status}: {body}")
    usage = body["usage"]
    reservation.settle(Usage(usage["prompt_tokens"], usage["completion_tokens"], calls=1), hint)
    return True


# The command line


@contextmanager
def _server(store: str) -> Iterator[dict[str, str]]:
    if store == "redis":
        sys.path.insert(0, str(Path(__file__).parent.parent))
        from tests.backends.valkey import ValkeyServer

        server = ValkeyServer()
        try:
            yield {"kind": "redis", "url": server.url}
        finally:
            server.remove()
    else:
        from spike_hot_path import postgres

        with postgres() as dsn:
            yield {"kind": "postgres", "url": dsn}


async def _prepared(address: dict[str, str], number: int) -> dict[str, str]:
    """Return the address with a key of its own, its schema filled."""
    own = {**address, "key": f"quota{number}"}
    if own["kind"] == "postgres":
        stores = await open_postgres_stores(own["url"], schema=own["key"], auto_migrate=True, listen=False)
        await stores.close()
    return own


def main() -> None:
    """Run scenarios and print a table, or JSON."""
    if sys.argv[1:2] == ["client"]:
        asyncio.run(_client(json.loads(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of: {'; '.join(SCENARIOS)} (default: all)")
    parser.add_argument("--store", choices=["postgres", "redis"], default="postgres")
    parser.add_argument("--calls", type=int, default=4_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]!r}; there are: {'; '.join(SCENARIOS)}")
    rows = []
    with _server(options.store) as address:
        for number, name in enumerate(options.scenarios or SCENARIOS):
            figures = measure(name, asyncio.run(_prepared(address, number)), calls=options.calls)
            rows.append(figures)
            if not options.json:
                recovery = "" if figures.recovery is None else f"recovered in {figures.recovery:.0f} s"
                print(
                    f"{options.store}  {name:26s} {figures.utilisation:7.1%} of the quota in {figures.window}  "
                    f"{figures.refused:3d} refused ({figures.refused_share:.2%})  {figures.seconds:.0f} s  {recovery}",
                    flush=True,
                )
    if options.json:
        print(json.dumps({"store": options.store, "rows": [asdict(row) for row in rows]}))


if __name__ == "__main__":
    main()
