"""The tests' own guards: no network beyond this machine, no settings from outside, waiting with a deadline."""

from __future__ import annotations

import asyncio
import os
import socket
from datetime import timedelta

import pytest

from tests.waiting import wait_until, wait_until_sync


def test_leaving_this_machine_fails_at_once() -> None:
    """A connection to any address but loopback is refused before a packet leaves."""
    with socket.socket() as outside, pytest.raises(AssertionError, match="loopback only"):
        outside.connect(("192.0.2.1", 80))
    with pytest.raises(AssertionError, match=r"example\.org"):
        socket.getaddrinfo("example.org", 80)


async def test_the_event_loop_is_guarded_too() -> None:
    """asyncio's own way of connecting does not slip through."""
    with pytest.raises(AssertionError, match="loopback only"):
        await asyncio.open_connection("192.0.2.1", 80)


def test_loopback_is_open() -> None:
    """Servers of the tests are reached by address and by name."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()


def test_the_environment_holds_no_settings_of_the_user() -> None:
    """A key or address the user configured for real work is not seen by tests."""
    assert [name for name in os.environ if name.startswith(("HEADRACE_", "OPENAI_"))] == []


async def test_waiting_returns_the_value_and_ends_at_its_deadline() -> None:
    """Waiting hands back what became true, and names what did not."""
    values = iter([0, 0, 7])
    assert await wait_until(lambda: next(values)) == 7
    assert wait_until_sync(lambda: "ready") == "ready"
    with pytest.raises(AssertionError, match="the moon"):
        wait_until_sync(lambda: None, timedelta(milliseconds=30), message="the moon")
