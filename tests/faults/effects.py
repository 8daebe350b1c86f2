"""The effect log: what handlers did, kept by a process of its own that knows neither the engine nor the database.

Handlers send a line and wait for its receipt. The process gives each line its time, appends it, and answers once the
file is on disk; it outlives every kill of the campaign. `python -m tests.faults.effects FILE` prints its port.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.backends.server import die_with_parent

#: The port of the log, for the processes of a campaign.
PORT = "FAULTS_EFFECTS_PORT"
ROOT = Path(__file__).resolve().parent.parent.parent


class _Keeper:
    """Appends lines, many per fsync."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def keep(self, line: bytes) -> None:
        """Return once a line is on disk."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((line, kept))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        await kept

    async def _write(self) -> None:
        while self._waiting:
            part, self._waiting = self._waiting, []
            os.write(self._file, b"".join(line for line, _ in part))
            await asyncio.to_thread(os.fsync, self._file)
            for _, kept in part:
                if not kept.done():
                    kept.set_result(None)
        self._writing = None


async def _serve(path: Path) -> None:
    keeper = _Keeper(path)

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                if not line.endswith(b"\n"):
                    break  # its sender was killed in the middle of it
                stamped = {**json.loads(line), "at": time.time()}
                await keeper.keep(json.dumps(stamped).encode() + b"\n")
                writer.write(b"\n")
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class EffectServer:
    """The process that keeps the log, while a test runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.effects", str(path)], cwd=ROOT, stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def stop(self) -> None:
        """End the process; the file stays."""
        self._process.kill()
        self._process.communicate()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log; a last line that was cut by a kill does not count."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]


class EffectClient:
    """Sends lines from one process; a link of its own per line under way, kept for the next."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def note(self, event: str, **facts: Any) -> None:
        """Return once the line is on disk."""
        link = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = link
        try:
            writer.write(json.dumps({"event": event, "pid": os.getpid(), **facts}).encode() + b"\n")
            receipt = await reader.readline()
        except BaseException:
            writer.transport.abort()  # its receipt may still come, and nobody could tell for which line
            raise
        assert receipt == b"\n", "the effect log is gone"
        self._idle.append(link)

    def close(self) -> None:
        """Close the links."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
