"""One server's connections under callers that err, give up or come all at once: each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from headrace.stores.redis.addresses import parse_address
from headrace.stores.redis.connection import Server, ServerOptions
from tests.backends.valkey import shared_server


@pytest.fixture
async def lone() -> AsyncIterator[Server]:
    """Return a server that all callers reach over one connection."""
    server = Server(ServerOptions(parse_address(shared_server().url), size=1))
    yield server
    await server.close()


async def test_a_text_that_cannot_be_sent_shifts_no_answer(lone: Server) -> None:
    """What is no UTF-8 is refused before it is sent; those who ask next on that connection get their own answers."""
    first, second = uuid4().hex, uuid4().hex
    await lone.call("MSET", first, "1", second, "2")
    with pytest.raises(UnicodeEncodeError):
        await lone.call("SET", first, "\ud800")
    async with asyncio.timeout(5):
        assert await asyncio.gather(*(lone.call("GET", key) for key in (first, second))) == ["1", "2"]


async def test_a_newcomer_ends_no_command_of_others(lone: Server) -> None:
    """While a caller that gave up holds up the only connection, those behind it are answered, and who comes is too."""
    await lone.call("PING")
    given_up = asyncio.create_task(lone.call("DEBUG", "SLEEP", "0.3"))
    await asyncio.sleep(0)
    counter = uuid4().hex
    behind = asyncio.create_task(lone.call("INCR", counter))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await asyncio.gather(lone.call("INCR", counter), behind) == [2, 1]


async def test_a_connection_that_nobody_waits_for_makes_room(lone: Server) -> None:
    """Where all callers of the only connection gave up it may be dead: the next one gets another at once."""
    await lone.call("CLIENT", "PAUSE", "60000", "WRITE")
    try:
        given_up = asyncio.create_task(lone.call("INCR", uuid4().hex))
        await asyncio.sleep(0)
        given_up.cancel()
        async with asyncio.timeout(5):
            assert await lone.call("PING") == "PONG"
    finally:
        shared_server().call("CLIENT", "UNPAUSE")
