"""Blobs in S3 when something is wrong: every failure is a BlobStoreError that tells where and why, and no key."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headrace.blobs.s3 import S3Blobs, S3Site
from headrace.model.errors import BlobStoreError
from tests.backends.s3 import new_site
from tests.backends.valkey import free_port

#: What S3 answers to a wrong signature: it repeats what was sent.
REFUSED = b"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>who</AWSAccessKeyId><Sent>hush</Sent></Error>"


class RefusingServer(ThreadingHTTPServer):
    """Refuses everything, and keeps the headers that came."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Refuse)


class _Refuse(BaseHTTPRequestHandler):
    server: RefusingServer

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(403)
        self.send_header("Content-Length", str(len(REFUSED)))
        self.end_headers()
        self.wfile.write(REFUSED)

    do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def refusing() -> Iterator[RefusingServer]:
    """Return a server that refuses."""
    server = RefusingServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def listed(blobs: S3Blobs) -> list[str]:
    """Return all keys."""
    found: AsyncIterator[tuple[str, object]] = blobs.list_blobs("")
    return [key async for key, _ in found]


CALLS: dict[str, Callable[[S3Blobs], Awaitable[object]]] = {
    "written": lambda blobs: blobs.put_blob("runs/1/a", b"x"),
    "read": lambda blobs: blobs.get_blob("runs/1/a"),
    "removed": lambda blobs: blobs.delete_blob("runs/1/a"),
    "listed": listed,
}


@pytest.mark.parametrize("done", CALLS)
async def test_a_refusal_tells_where_and_why_and_no_key(done: str, refusing: RefusingServer) -> None:
    """A server that refuses and repeats what was sent: bucket, address and code are told, keys are not."""
    site = S3Site("big", f"http://127.0.0.1:{refusing.server_port}", access_key="who", secret_key="hush")
    with pytest.raises(
        BlobStoreError, match=f"bucket big at http://127.* cannot be {done}.*SignatureDoesNotMatch"
    ) as no:
        await CALLS[done](S3Blobs(site))
    told = f"{no.value!r} {no.value.__cause__} {site!r}"
    assert "hush" not in told
    assert "who" not in told


@pytest.mark.parametrize("done", CALLS)
async def test_a_missing_bucket_is_no_missing_blob(done: str) -> None:
    """A bucket that does not exist is a fault of the storage for every call, also for reading."""
    site = replace(new_site(), bucket="not-there")
    with pytest.raises(BlobStoreError, match=f"cannot be {done}.*NoSuchBucket"):
        await CALLS[done](S3Blobs(site))


@pytest.mark.parametrize("done", CALLS)
async def test_a_server_that_is_gone_is_told(done: str) -> None:
    """Nobody listens: after a few tries the error says so."""
    site = S3Site("big", f"http://127.0.0.1:{free_port()}", access_key="who", secret_key="hush")
    with pytest.raises(BlobStoreError, match=f"cannot be {done}") as gone:
        await CALLS[done](S3Blobs(site))
    assert gone.value.transient


async def test_no_token_of_somebody_else_is_sent(refusing: RefusingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where keys are given, what the environment has of another account stays there."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    site = S3Site("big", f"http://127.0.0.1:{refusing.server_port}", access_key="who", secret_key="hush")
    with pytest.raises(BlobStoreError):
        await S3Blobs(site).put_blob("runs/1/a", b"x")
    [headers] = refusing.headers
    assert "Credential=who/" in headers["authorization"]
    assert "x-amz-security-token" not in headers
    assert "hush" not in str(headers)
