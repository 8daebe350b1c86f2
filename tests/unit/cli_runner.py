"""The command line in this process, on one memory store that lives as long as a test."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from headrace import App
from headrace.cli.logs import TALKATIVE
from headrace.cli.root import cli
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from tests.unit.engine_app import QUICK

T = TypeVar("T")

#: Looks durable to commands that ask the settings; the store itself is replaced.
NOWHERE = "postgresql://127.0.0.1:9/nowhere"


class CommandLine:
    """Runs `headrace …`; every command opens the same stores."""

    def __init__(self) -> None:
        self.stores = replace(open_memory_stores(), close=_leave_open)

    def __call__(self, *arguments: object, given: str | None = None) -> Result:
        """Run one command line and return its output, its errors and its exit code."""
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=given)

    def text(self, *arguments: object) -> str:
        """Run a command that must succeed and return what it wrote for people."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object) -> Any:
        """Run a command with --json that must succeed and return its document."""
        return json.loads(self.text(*arguments, "--json"))

    def lines(self, *arguments: object) -> list[Any]:
        """Run a command that must succeed and return its JSON lines."""
        return [json.loads(line) for line in self.text(*arguments).splitlines()]

    def refusal(self, *arguments: object) -> tuple[int, dict[str, Any]]:
        """Run a command with --json that must fail; return its exit code and its error."""
        result = self(*arguments, "--json")
        assert result.stdout == ""
        error: dict[str, Any] = json.loads(result.stderr.splitlines()[-1])["error"]
        return result.exit_code, error

    def app(self) -> App:
        """Return an app without tasks on the same stores, with short intervals."""
        return App(settings=QUICK)

    def wait_for(self, *jobs: UUID) -> None:
        """Wait until jobs are final, whoever works on them."""
        app = self.app()

        async def wait() -> None:
            async with asyncio.timeout(20):
                for job in jobs:
                    await app.runtime.waiters.final(job)

        as_client(app, wait)

    def finish(self, app: App, *jobs: UUID) -> None:
        """Work the jobs of `app` until `jobs` are final."""
        with working(app):
            self.wait_for(*jobs)

    async def open_stores(self, *_: object) -> Stores:
        """Stand in for `wiring.open_stores`."""
        return self.stores


async def _leave_open() -> None:
    """The stores end with the test, not with a command."""


@contextmanager
def command_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """Run commands on stores of their own, and undo what they did to this process."""
    line = CommandLine()
    monkeypatch.setenv("HEADRACE_QUEUE_URL", NOWHERE)
    # Set first: only what was set here is taken back when a command sets it.
    monkeypatch.setenv("HEADRACE_CONFIG", "")
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("headrace.wiring.open_stores", line.open_stores)
    modules, root = set(sys.modules), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield line
    finally:
        root.handlers[:], root.level = handlers, level
        for name in (*TALKATIVE, "headrace.jobs"):
            logging.getLogger(name).setLevel(logging.NOTSET)
        for name in set(sys.modules) - modules:
            if getattr(sys.modules[name], "app", None).__class__ is App:
                del sys.modules[name]


def as_client(app: App, work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` while nobody works."""

    async def all_of_it() -> T:
        async with app:
            return await work()

    return asyncio.run(all_of_it())


@contextmanager
def working(app: App) -> Iterator[None]:
    """Work the app's jobs in a thread while the block runs."""
    started, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def work() -> None:
        async with app.worker():
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    try:
        assert started.wait(20), "the worker did not start"
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
