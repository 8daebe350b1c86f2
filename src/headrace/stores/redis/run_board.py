"""The run board port on a Redis server beside the store: what it holds may be thrown away at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from headrace.model.run import NodeState, RunChange, RunState, RunStatus
from headrace.ports.clock import Clock
from headrace.stores.redis.addresses import LIMITER_URL, parse_address
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import parse_id, to_json


class RedisRunBoard:
    """Statuses of runs, with connections of its own."""

    def __init__(self, server: Server, clock: Clock | None = None) -> None:
        self._server, self._namespace = server, Namespace(server, server.options.root, None, clock)

    async def read_status(self, run_id: UUID) -> RunStatus | None:
        """Return the status of a run, None where the board has none."""
        found = await self._namespace.run("read_status", run_id.hex)
        if not found:
            return None
        state, nodes, waits = found
        states = {path: NodeState(one) for path, one in _pairs(nodes).items()}
        return RunStatus(RunState(state), states, _pairs(waits))

    async def read_counts(self, run_id: UUID) -> dict[NodeState, int] | None:
        """Return how many paths of a run are in each state, None where the board does not have the run."""
        found = await self._namespace.run("read_counts", run_id.hex)
        return {NodeState(state): int(count) for state, count in _pairs(found).items() if int(count)} if found else None

    async def put_status(self, run_id: UUID, status: RunStatus) -> None:
        """Keep a status that was read from the store; a final state of a path that is there already stays."""
        words = (to_json(_in_turn(status.nodes)), to_json(_in_turn(status.waits)))
        await self._namespace.run("put_status", run_id.hex, str(status.state), *words)

    async def note_changes(self, changes: Sequence[RunChange]) -> None:
        """Change statuses that the board has. A final state of a path, or of a run, never changes."""
        rows = [[one.run_id.hex, str(one.state or ""), _in_turn(one.nodes), _in_turn(one.waits)] for one in changes]
        await self._namespace.run("note_changes", to_json(rows))

    async def waiting_for(self, key: str) -> dict[UUID, list[str]]:
        """Return the runs that wait for a signal, as far as the board has them, with the paths that do."""
        found: dict[UUID, list[str]] = {}
        for member in sorted(await self._namespace.run("waiting_for", key)):
            run, _, path = member.partition(" ")
            found.setdefault(parse_id(run), []).append(path)
        return found

    async def close(self) -> None:
        """End its connections."""
        await self._server.close()


def _pairs(words: Sequence[str]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=True))


def _in_turn(values: Mapping[str, str]) -> list[str]:
    return [str(word) for pair in values.items() for word in pair]


def make_run_board(url: str, *, prefix: str = "headrace", clock: Clock | None = None) -> RedisRunBoard:
    """Return a board on the Redis server, service or cluster at `url`; it connects when it is first asked.

    All its keys begin with `{PREFIX::runs}:`, which no namespace of a store can be. Raises ConfigError for a URL that
    cannot be read.

    >>> board = make_run_board("redis://localhost/0")  # doctest: +SKIP
    """
    options = ServerOptions(parse_address(url, setting=LIMITER_URL), root=f"{{{prefix}::runs}}")
    return RedisRunBoard(Server(options), clock)
