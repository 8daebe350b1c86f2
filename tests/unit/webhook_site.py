"""A receiver of webhooks on this machine, and apps whose workers deliver to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headrace import App, Backoff, chain
from headrace.settings import QueueSettings, Settings, WorkerSettings
from headrace.webhook_settings import WebhookSettings
from headrace.webhooks import new_secret

OLD, NEW = new_secret(), new_secret()
OK = b"HTTP/1.1 204 No Content\r\n\r\n"

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Message:
    """A request as it came."""

    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """What it says."""
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass
class Receiver:
    """A server that answers each request with the next of its answers, the last one again and again."""

    answers: list[bytes | Write]
    came: list[Message] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        """Where messages go."""
        return f"http://127.0.0.1:{self.port}/hook?token=secret"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and close."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.came.append(Message(headers, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiver(*answers: bytes | Write) -> AsyncIterator[Receiver]:
    """Run a receiver; without answers it takes everything."""
    made = Receiver(list(answers or (OK,)))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


def status(code: int, *headers: str) -> bytes:
    """Return an answer without a body."""
    return "\r\n".join((f"HTTP/1.1 {code} Said", "content-length: 0", *headers, "", "")).encode()


def sending_app(*, queue: QueueSettings | None = None, directory: Path = Path(".headrace"), **webhooks: Any) -> App:
    """Return an app, on the memory store unless told, that signs with one secret and tries again at once."""
    usual: dict[str, Any] = {
        "secrets": (NEW,),
        "allow_private": True,
        "first_retry": timedelta(milliseconds=10),
        "longest_retry": timedelta(milliseconds=20),
    }
    settings = Settings(
        directory=directory,
        queue=queue or QueueSettings(type="memory"),
        worker=WorkerSettings(poll_interval=timedelta(milliseconds=20)),
        webhooks=WebhookSettings(**{**usual, **webhooks}),
    )
    app = App(settings=settings)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    return app


def add_flows(app: App) -> None:
    """Add a workflow that fails for negative numbers, and one that waits for a signal."""

    @app.task(retry=Backoff.none())
    async def positive(number: int) -> int:
        if number < 0:
            raise ValueError("negative")
        return number

    @app.task
    async def wait(number: int) -> Any:
        return await app.wait_for("never", "1m")

    app.workflow("positive", chain(positive.s(), app.find_task("double").s()))
    app.workflow("waiting", chain(wait.s()))
