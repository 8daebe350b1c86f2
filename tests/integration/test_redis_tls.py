"""A Redis store behind TLS: a proxy that ends the encryption stands before a real server."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.model.errors import StoreUnavailableError
from headrace.stores.redis import RedisSite, create_namespace
from tests.backends.redis import new_prefix, stores_on
from tests.backends.valkey import shared_server

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of 127.0.0.1 that signs itself, and its key."""
    made, key = folder / "server.pem", folder / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@asynccontextmanager
async def encrypted(made: Path, key: Path) -> AsyncIterator[int]:
    """Pass what comes encrypted on to the shared server; yield the port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made, key)
    writers: list[asyncio.StreamWriter] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(str(shared_server().socket))
        writers.extend((writer, forth))
        await asyncio.gather(carry(reader, forth), carry(back, writer), return_exceptions=True)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listener:
        yield listener.sockets[0].getsockname()[1]
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def test_a_store_is_reached_by_tls(tmp_path: Path) -> None:
    """With the right authority everything works; without it the certificate is refused, and not looked past."""
    made, key = certificate(tmp_path)
    async with encrypted(made, key) as port:
        site = RedisSite(f"rediss://127.0.0.1:{port}?ssl_ca_certs={made}", prefix=new_prefix())
        await create_namespace(site)
        async with stores_on(site, None) as stores:
            await stores.control.set_queue_paused("default", paused=True)
            assert [queue.paused for queue in await stores.inspect.queue_stats()] == [True]
        with pytest.raises(StoreUnavailableError, match="certificate"):
            await create_namespace(RedisSite(f"rediss://127.0.0.1:{port}", prefix=site.prefix))
        assert not await create_namespace(
            RedisSite(f"rediss://127.0.0.1:{port}?ssl_cert_reqs=none", prefix=site.prefix)
        )
