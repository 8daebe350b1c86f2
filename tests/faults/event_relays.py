"""Relays that freeze or die at a place of their work, on the bus of the store; and what left through them.

As a program it is `headrace relay` with the failpoints of $FAULTS_POINTS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from headrace import App
from headrace.cli import main
from headrace.settings import Settings, load_settings
from tests.backends.server import PostgresServer, die_with_parent
from tests.faults.event_app import ASKED
from tests.faults.failpoints import POINTS, Failpoint, format_points, install, parse_points
from tests.faults.site import ROOT
from tests.waiting import wait_until

#: Rows of a batch.
BATCH = 25
_MESSAGES = """
SELECT m.headers, convert_from(m.key, 'UTF8') AS key, m.value
FROM headrace.log_messages m JOIN headrace.log_topics t ON t.id = m.topic_id
WHERE t.name LIKE '%CampaignOrder' ORDER BY m.topic_id, m.partition, m.position
"""


@dataclass
class Relays:
    """A store, the relays on it, and other processes."""

    server: PostgresServer
    folder: Path
    environment: dict[str, str]
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    #: Ids of events by key, as they were inserted.
    written: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def settings(self) -> Settings:
        """Those of every process here."""
        return load_settings(environ=self.environment, file=self.folder / "none.toml")

    def start(self, *command: str, point: Failpoint | None = None) -> subprocess.Popen[bytes]:
        """Start a process: a relay with a point, or what the command line names."""
        armed = {} if point is None else {POINTS: format_points([point])}
        words = ["-m", "tests.faults.event_relays"] if point is not None else ["-m", "headrace"]
        with (self.folder / f"{len(self.running)}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *words, *command, "--json"], cwd=ROOT, preexec_fn=die_with_parent,
                env={**os.environ, **self.environment, **armed, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.running.append(process)
        return process

    def end(self) -> None:
        """End every process."""
        for process in self.running:
            process.kill()
            process.wait(10)

    async def ask(self, query: str) -> list[Any]:
        """Return what a statement gives."""
        connection = await asyncpg.connect(self.server.dsn)
        try:
            return list(await connection.fetch(query))
        finally:
            await connection.close()

    async def leads(self) -> None:
        """Wait until a relay leads."""
        query = "SELECT 1 FROM headrace.leader WHERE one = 'relay' AND expires_at > now()"
        await wait_until(lambda: self.ask(query), message="a relay that leads")

    async def end_term(self) -> None:
        """Let the term of who leads be over, as ten seconds of silence do."""
        await self.ask("UPDATE headrace.leader SET expires_at = now() WHERE one = 'relay'")

    async def emit(self, app: App, keys: int, numbers: range) -> None:
        """Emit an event of each key for each number."""
        for number in numbers:
            made = [app.emission.make(ASKED, {"seq": number}, {"aggregate_id": f"key-{key}"}) for key in range(keys)]
            await app.event_stores.outbox.insert_events(made)
            for outgoing in made:
                assert outgoing.event is not None
                self.written[outgoing.key].append(outgoing.event.id)

    async def came(self) -> dict[str, list[str]]:
        """Return the ids of the messages of each key, in the order they came to the bus."""
        found: dict[str, list[str]] = defaultdict(list)
        for row in await self.ask(_MESSAGES):
            found[row["key"]].append(_id_of(row))
        return found


def _id_of(row: Any) -> str:
    headers = json.loads(row["headers"])
    pairs = headers.items() if isinstance(headers, dict) else headers
    return next(value for name, value in pairs if name == "id")


if __name__ == "__main__":
    install(parse_points(os.environ[POINTS]))
    main()
