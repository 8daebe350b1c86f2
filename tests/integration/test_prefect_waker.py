"""Waking suspended flow runs over HTTP: which answers end it, and which are tried again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.outbound.prefect import PrefectWaker
from headrace.ports.waker import Woken

RUN = "24c964c1-3b94-4435-a69c-2b8daa2e9c73"
OURS, THEIRS = "headrace:c-1:0", "1"


def answer(status: int, body: Any) -> bytes:
    """Return a whole answer, with JSON or, of bytes, with these."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} Said\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw


def run_in(type_: str, key: str | None = None) -> bytes:
    """Return a flow run in a state."""
    return answer(200, {"id": RUN, "state": {"type": type_, "name": "Some", "state_details": {"pause_key": key}}})


def resumed(status: str, code: int = 200) -> bytes:
    """Return the answer of a resume."""
    return answer(code, {"state": None, "status": status, "details": {}})


@dataclass
class Api:
    """A server that gives its answers in turn, and keeps what it was asked."""

    answers: list[bytes]
    asked: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        await reader.readexactly(2 if head.startswith("POST") else 0)
        self.asked.append(head.partition(" HTTP")[0])
        self.keys += [line[15:] for line in head.split("\r\n") if line.lower().startswith("authorization: ")]
        writer.write(self.answers.pop(0))
        writer.close()


@asynccontextmanager
async def api(*answers: bytes) -> AsyncIterator[Api]:
    """Run a server with these answers, all of which must be asked for."""
    running = Api(list(answers))
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api"
    try:
        yield running
        assert running.answers == []
    finally:
        server.close()


@pytest.mark.parametrize(
    ("answers", "woken"),
    [
        pytest.param([run_in("PAUSED", OURS), resumed("ACCEPT", 201)], Woken.DONE, id="suspended"),
        pytest.param([run_in("PAUSED", OURS), resumed("ABORT")], Woken.AGAIN, id="resumed by another meanwhile"),
        pytest.param([run_in("PAUSED", OURS), resumed("REJECT", 201)], Woken.AGAIN, id="its time passed meanwhile"),
        pytest.param([run_in("PAUSED", THEIRS)], Woken.AGAIN, id="suspended for something else"),
        pytest.param([run_in("PAUSED", None)], Woken.AGAIN, id="paused by hand"),
        pytest.param([run_in("RUNNING", OURS)], Woken.AGAIN, id="not suspended yet"),
        *(
            pytest.param([run_in(type_)], Woken.DONE, id=type_.lower())
            for type_ in ("SCHEDULED", "PENDING", "COMPLETED", "FAILED", "CRASHED", "CANCELLING", "CANCELLED")
        ),
        pytest.param([answer(404, {"detail": "Flow run not found"})], Woken.DONE, id="unknown"),
        pytest.param([run_in("PAUSED", OURS), answer(404, {})], Woken.AGAIN, id="removed meanwhile"),
        pytest.param([answer(500, {"exception_message": "Internal Server Error"})], Woken.AGAIN, id="broken"),
        pytest.param([answer(401, {})], Woken.AGAIN, id="wrong key"),
        pytest.param([answer(307, b"")], Woken.AGAIN, id="leads elsewhere"),
        pytest.param([answer(200, b"<html>")], Woken.AGAIN, id="no JSON"),
        pytest.param([answer(200, b"[" * 100_000)], Woken.AGAIN, id="endless JSON"),
        pytest.param([answer(200, [])], Woken.AGAIN, id="no object"),
        pytest.param([answer(200, {"state": None})], Woken.AGAIN, id="no state"),
    ],
)
async def test_the_state_of_the_run_decides(answers: list[bytes], woken: Woken) -> None:
    """Only what waits for us is resumed; what may still suspend itself is tried again."""
    async with api(*answers) as running:
        waker = PrefectWaker(running.url)
        assert await waker.wake(RUN) is woken
        await waker.close()
    whole = [f"GET /api/flow_runs/{RUN}", f"POST /api/flow_runs/{RUN}/resume"]
    assert running.asked == whole[: len(answers)]
    assert running.keys == []


async def test_the_key_is_sent_with_both_requests_and_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """The key is a bearer token; nothing that is logged contains it."""
    async with api(run_in("PAUSED", OURS), answer(403, {})) as running:
        waker = PrefectWaker(running.url + "/", "pnu_secret")
        assert await waker.wake(RUN) is Woken.AGAIN
    assert running.keys == ["Bearer pnu_secret"] * 2
    [record] = caplog.records
    assert "answers 403" in record.message
    assert "[events] prefect_api_key" in record.message
    assert "pnu_secret" not in caplog.text


async def test_trouble_is_told_once_until_it_passes(caplog: pytest.LogCaptureFixture) -> None:
    """A server that is away is told of once, however often it is asked, and again after it was there."""
    broken, fine = answer(500, {}), run_in("RUNNING")
    async with api(broken, broken, fine, broken) as running:
        waker = PrefectWaker(running.url)
        assert [await waker.wake(RUN) for _ in range(4)] == [Woken.AGAIN] * 4
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


async def test_nobody_there_is_tried_again(unused_tcp_port: int) -> None:
    """A refused connection is no answer."""
    assert await PrefectWaker(f"http://127.0.0.1:{unused_tcp_port}/api").wake(RUN) is Woken.AGAIN


async def test_a_target_that_is_no_id_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is asked for it, so that no path of the API can be named by it."""
    async with api() as running:
        assert await PrefectWaker(running.url).wake(f"{RUN}/../../admin") is Woken.DONE
    assert running.asked == []
    assert "names no flow run" in caplog.text


@pytest.mark.parametrize(
    "url", ["ftp://x/api", "http://user:hunter2@prefect/api", "http://prefect:99999/api", "http:///"]
)
def test_a_url_that_cannot_be_asked_is_refused_at_once(url: str) -> None:
    """The error names the setting and never a password."""
    with pytest.raises(InvalidInputError, match="prefect_api_url") as error:
        PrefectWaker(url)
    assert "hunter2" not in str(error.value)
