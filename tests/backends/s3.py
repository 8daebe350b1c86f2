"""A real server of the S3 protocol for tests: moto's, in a process of its own on a free loopback port.

Each test process starts its own on first use, and it dies with that process.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener
from uuid import uuid4

from headrace.blobs.s3 import S3Site
from tests.backends.server import die_with_parent
from tests.backends.valkey import free_port
from tests.waiting import wait_until_sync

_OPENER = build_opener(ProxyHandler({}))


@cache
def shared_endpoint() -> str:
    """Return the address of this process's server, which runs by then; it ends with the thread that asked first."""
    port, root = free_port(), Path(tempfile.mkdtemp(prefix="hrs3"))
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (root / "log").open("ab") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=die_with_parent)
    atexit.register(_end, server, root)
    endpoint = f"http://127.0.0.1:{port}"
    wait_until_sync(lambda: _answers(endpoint), message="an S3 server to start")
    return endpoint


def _end(server: subprocess.Popen[bytes], root: Path) -> None:
    server.kill()
    server.wait()
    shutil.rmtree(root, ignore_errors=True)


def new_site() -> S3Site:
    """Return a bucket that is empty and no one else's."""
    bucket = f"test-{uuid4().hex[:16]}"
    _OPENER.open(Request(f"{shared_endpoint()}/{bucket}", method="PUT")).close()
    return S3Site(bucket, shared_endpoint(), access_key="access", secret_key="hush-hush")


def _answers(endpoint: str) -> bool:
    try:
        _OPENER.open(endpoint).close()
    except (URLError, OSError):
        return False
    return True
