"""Lines of handlers that are kept: how many, how long, without secrets, from wherever the handler runs."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from headrace import App, Backoff, Context, GatherContext, Retry, Snooze
from headrace.engine.context import engine_log
from headrace.engine.kept_lines import KeptLines, LineKeeping
from headrace.flow_settings import CredentialSettings, FlowSettings
from headrace.model.attempt_log import MAX_BYTES, MAX_LINE, AttemptLog, decode_log
from headrace.model.errors import ConfigError
from headrace.model.job import Completion, JobState
from headrace.model.redaction import Redaction
from headrace.ports.wire import decode_completion, encode_completion
from headrace.settings import load_settings
from headrace.wiring import SystemClock
from headrace.wiring.line_keeping import make_line_keeping, secrets_of
from tests.unit.engine_app import QUICK, quick_app, until_final, until_state
from tests.unit.engine_tasks import app as tasks_app
from tests.unit.engine_tasks import chat

NOW = datetime(2031, 1, 31, 12, tzinfo=UTC)
KEEPING = LineKeeping(100, lambda: NOW)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a worker: tasks may be added while it runs."""
    app = quick_app()
    # With a workflow there from the start, the worker serves those that come.
    app.workflow("seed", app.task(name="seed")(lambda: None).s())
    async with app.worker():
        yield app


async def logs_of(app: App, job_id: Any) -> list[AttemptLog]:
    """Return what was kept of a job."""
    return await app.runtime.stores.inspect.attempt_logs(job_id)


def said(log: AttemptLog) -> list[tuple[str, str]]:
    """Return levels and texts of a log."""
    return [(line.level, line.message) for line in log.lines]


# The bounds


def test_the_last_lines_are_kept_and_the_others_counted() -> None:
    """Of more lines than there is room for the last ones stay; what is dropped is told."""
    lines = KeptLines(3)
    for number in range(5):
        lines.add(KEEPING.line(logging.INFO, "line %d", (number,)))
    log = decode_log(1, lines.text)
    assert ([line.message for line in log.lines], log.dropped) == (["line 2", "line 3", "line 4"], 2)
    assert log.lines[0].at == NOW


def test_long_lines_are_cut_and_all_of_them_bounded() -> None:
    """A line has 1,000 characters at most, and all have 16 KiB as they are stored, whatever characters they are of."""
    lines = KeptLines(1_000)
    for _ in range(40):
        lines.add(KEEPING.line(logging.WARNING, "\x01\U0001f41d" * 50_000, ()))
    log = decode_log(1, lines.text)
    assert {len(line.message) for line in log.lines} == {MAX_LINE}
    assert len(log.lines) + log.dropped == 40
    assert MAX_BYTES / 2 < len(lines.text.encode()) < MAX_BYTES + 100


@pytest.mark.parametrize(
    ("message", "args", "text"),
    [
        ("%s of %s", (1, 2), "1 of 2"),
        ("%(a)s", ({"a": 1},), "1"),
        ("%d", ("x",), "%d"),
        ("100 %", (), "100 %"),
        ("\x00\ud800", (), "\\0\\ud800"),
        (ValueError("x"), (), "x"),
    ],
)
def test_whatever_is_logged_can_be_kept(message: object, args: tuple[Any, ...], text: str) -> None:
    """Arguments are put in as logging does it; what does not fit them, and what no store takes, harms nothing."""
    lines = KeptLines(1)
    lines.add(KEEPING.line(logging.INFO, message, args))
    assert [line.message for line in decode_log(1, lines.text).lines] == [text]


def test_lines_of_many_threads_are_all_counted() -> None:
    """Threads that log through one context at once lose no line, from the first one on."""
    context: Any = _context()
    barrier = threading.Barrier(8)

    def write() -> None:
        barrier.wait()
        for number in range(50):
            context.log.info("%d", number)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log = decode_log(1, context.kept_log)
    assert (len(log.lines), log.dropped) == (100, 300)


def _context(keeping: LineKeeping = KEEPING) -> Context:
    steps: Any = None
    return Context(uuid4(), "t", "q", 1, NOW, steps, keeping=keeping)


# What is kept


def test_a_logger_logs_as_before(caplog: pytest.LogCaptureFixture) -> None:
    """Its records carry the job and name the line that wrote them; what is below `info` is kept where it is logged."""
    context = _context()
    context.log.debug("not here")
    with caplog.at_level(logging.DEBUG, logger="headrace.task"):
        context.log.debug("looked at %s", "it")
        context.log.log(logging.WARNING, "careful")
    record = caplog.records[0]
    assert (record.getMessage(), record.funcName) == ("looked at it", "test_a_logger_logs_as_before")
    assert record.__dict__["job_id"] == str(context.job_id)
    assert caplog.records[1].funcName == record.funcName
    assert context.kept_log is not None
    assert said(decode_log(1, context.kept_log)) == [("debug", "looked at it"), ("warning", "careful")]


def test_nothing_is_kept_where_none_is_wanted() -> None:
    """With `keep_log_lines = 0`, where nothing was logged, and of what the engine says, there is no log."""
    none, silent = _context(LineKeeping()), _context()
    none.log.error("gone")
    none.keep_of_node("a", "{}")
    engine_log(silent).warning("the engine's own")
    assert (none.kept_log, silent.kept_log) == (None, None)


async def test_each_attempt_of_a_job_has_its_lines(app: App) -> None:
    """Retries, snoozes and the success keep what was logged in them, from a thread too; silent attempts have no log."""

    @app.task(retry=Backoff.fixed(0, max_attempts=5))
    def work(ctx: Context) -> Any:
        if ctx.attempt == 3:
            return Snooze("1ms")
        ctx.log.info("attempt %d", ctx.attempt)
        ctx.progress("half")
        if ctx.attempt == 1:
            raise ValueError("once")
        return Retry("again", delay=0) if ctx.attempt == 2 else "done"

    job = await work.enqueue()
    await job.result(20)
    logs = await logs_of(app, job.id)
    assert [(log.attempt, said(log), log.dropped) for log in logs] == [
        (attempt, [("info", f"attempt {attempt}"), ("info", "half")], 0) for attempt in (1, 2, 4)
    ]


async def test_a_timeout_and_a_cancel_keep_what_was_logged(app: App) -> None:
    """A handler that was stopped has said something before: it is there."""

    @app.task(timeout="100ms", retry=Backoff.none())
    async def slow(ctx: Context) -> None:
        ctx.log.info("slow")
        await asyncio.Event().wait()

    @app.task
    async def wait(ctx: Context) -> None:
        ctx.log.info("waits")
        await asyncio.Event().wait()

    late, stopped = await slow.enqueue(), await wait.enqueue()
    await until_state(app, stopped, JobState.RUNNING)
    await stopped.cancel()
    await until_final(app, late)
    await until_final(app, stopped)
    assert [said(log) for job in (late, stopped) for log in await logs_of(app, job.id)] == [
        [("info", "slow")],
        [("info", "waits")],
    ]


async def test_a_call_for_several_jobs_is_told_of_each(app: App) -> None:
    """What a gathering handler logs is kept with every job of the call."""

    @app.task(batch_size=3, max_wait="1s")
    async def embed(texts: list[str], ctx: GatherContext) -> list[int]:
        ctx.log.info("%d texts", len(texts))
        return [1] * len(texts)

    batch = await app.submit(embed, ["a", "b", "c"])
    await batch.wait()
    jobs = await app.runtime.stores.inspect.list_jobs(batch_id=batch.id)
    assert [said(log) for job in jobs for log in await logs_of(app, job.id)] == [[("info", "3 texts")]] * 3


async def test_nodes_of_a_run_log_with_its_job(app: App) -> None:
    """A node that runs within the job of its run has its lines there, each try of it, with its path before them."""
    tries = 0

    @app.task(retry=Backoff.fixed(0, max_attempts=2))
    async def fetch(name: str, ctx: Context) -> str:
        nonlocal tries
        tries += 1
        ctx.log.info("try %d of %s", tries, name)
        if tries == 1:
            raise ValueError("once")
        return name

    app.workflow("flow", fetch.s(), tags=("schedule:workflow",))
    run = await app.start("flow", "x")
    assert await run.result("10s") == "x"
    jobs = await app.runtime.stores.inspect.list_jobs()
    found = [line for job in jobs for log in await logs_of(app, job.id) for line in said(log)]
    assert found == [("info", "fetch: try 1 of x"), ("info", "fetch: try 2 of x")]


async def test_a_child_process_sends_its_lines_with_the_outcome() -> None:
    """What a handler logs in a child is kept by its worker, though the child shows only warnings."""
    async with tasks_app, tasks_app.worker(grace=0):
        job = await chat.enqueue()
        await job.result(30)
        [log] = await logs_of(tasks_app, job.id)
    assert said(log) == [("info", "from the child"), ("warning", "password=***")]


def test_a_log_travels_beside_the_completion() -> None:
    """A worker of the release before takes no field that it does not know; one of this release gets the log."""
    done = Completion(_context().job_id, 1, JobState.SUCCEEDED, result="1")
    message = json.loads(encode_completion(replace(done, log='{"dropped":0,"lines":[]}')))
    assert "log" not in message["completion"]
    assert decode_completion(message).log == '{"dropped":0,"lines":[]}'
    assert decode_completion(json.loads(encode_completion(done))) == done


# Secrets

CANARY = "canary-7f3a-secret"


@pytest.mark.parametrize(
    "text",
    [
        f"password={CANARY}", f"Password: {CANARY}, next", f'{{"api_key": "{CANARY}"}}',
        f"{{'client_secret': '{CANARY}'}}",
        f"Authorization: Bearer {CANARY}", f"authorization=Basic {CANARY}", f"sent bearer {CANARY} on",
        f"postgresql://app:{CANARY}@db/x", f"https://{CANARY}@git.example.org/a", f"aws_secret_access_key = {CANARY}",
        f"sk-{CANARY}", f"whsec_{CANARY}", f"hra_{CANARY}", f"?access_token={CANARY}&page=2", f"X-Api-Key:{CANARY}",
        f"-----BEGIN RSA PRIVATE KEY-----\nabc\n{CANARY}\n-----END",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_not_kept(text: str) -> None:
    """Values of names that mean secrets, tokens, and logins of URLs are taken out."""
    clean = Redaction().clean(text)
    assert "canary" not in clean
    assert "***" in clean


@pytest.mark.parametrize(
    "text", ["used 12 tokens=340", "max_tokens: 5", "https://example.org/a?page=2", "the secretary came", "a@b.example"]
)
def test_other_words_are_left(text: str) -> None:
    """Counts of tokens, addresses and words that only begin alike stay."""
    assert Redaction().clean(text) == text


def test_secrets_of_the_settings_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What settings hold hidden, passwords of their URLs, and what credentials name in the environment, is known."""
    monkeypatch.setenv("SHOP_KEY", "shop-key-1234")
    flows = FlowSettings(
        credentials={
            "Shop": CredentialSettings("bearer", secret_env="SHOP_KEY"),
            "None": CredentialSettings("bearer", secret_env="NOT_SET_HERE"),
        }
    )
    settings = load_settings(
        environ={
            "HEADRACE_QUEUE_URL": "postgresql://app:p%40ssword1@127.0.0.1:9/x", "HEADRACE_LLM_API_KEY": "llm-key-1234",
            "HEADRACE_WEBHOOKS_SECRETS": "whsec_" + "A" * 32,
        }
    )  # fmt: skip
    settings = replace(settings, flows=flows)
    assert {"p@ssword1", "p%40ssword1", "llm-key-1234", "shop-key-1234", "whsec_" + "A" * 32} <= set(
        secrets_of(settings)
    )
    line = make_line_keeping(settings, SystemClock()).line(
        logging.INFO, "%s p@ssword1", ("llm-key-1234/shop-key-1234",)
    )
    assert json.loads(line)[2] == "***/*** ***"


def test_a_secret_is_taken_out_before_the_cut() -> None:
    """One that stands across the end of a long line leaves no part of it."""
    keeping = replace(KEEPING, redaction=Redaction.of({CANARY}))
    line = keeping.line(logging.INFO, "x" * (MAX_LINE - 5) + CANARY, ())
    assert "canar" not in line


@pytest.mark.parametrize("lines", ["-1", "1001"])
def test_the_number_of_lines_has_bounds(lines: str) -> None:
    """A number out of its range is refused, with the key and the rule."""
    with pytest.raises(ConfigError, match=r"worker\.keep_log_lines must be from 0 to 1000"):
        load_settings(environ={"HEADRACE_WORKER_KEEP_LOG_LINES": lines})


async def test_a_worker_that_keeps_none_writes_none() -> None:
    """`[worker] keep_log_lines = 0`: handlers log, and nothing is stored."""
    app = App(settings=replace(QUICK, worker=replace(QUICK.worker, keep_log_lines=0)))

    @app.task
    async def talk(ctx: Context) -> None:
        ctx.log.info("something")

    async with app.worker():
        job = await talk.enqueue()
        await job.result(20)
        assert await logs_of(app, job.id) == []
