"""The feed of a run: its nodes as they start and end, its states, and its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from uuid import UUID

from headrace.engine.feeds.hub import FeedHub
from headrace.engine.queries import to_json
from headrace.engine.workflows.maps import Begun
from headrace.engine.workflows.means import Means
from headrace.model.errors import NotFoundError
from headrace.model.feed import Entry, NewEntry
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import Container, LoopNode, MapNode
from headrace.model.graph.paths import input_of, join_path, split_entry
from headrace.model.job import JobState
from headrace.model.payload import encode_json, hash_text
from headrace.model.run import LiveNode, NodeEnding, NodeState, RunView

STATE, NODE, ENDED = "state", "node", "ended"
#: Paths that one read asks for, and paths that may be watched while it is still asked which of them run.
SLICE, MOST_LIVE = 200, 1_000
#: Slices of one look: other feeds have their turn between. And entries that are looked through for the end.
MOST_SLICES, LAST_ENTRIES = 10, 50
#: Characters of an error that stands in an entry.
MOST_ERROR = 4_000
#: Characters of a path that stands in a key.
MOST_PATH = 200


def run_feed(run_id: UUID) -> str:
    """Return the name of the feed of a run.

    >>> run_feed(UUID(int=7))
    'run:00000000-0000-0000-0000-000000000007'
    """
    return f"run:{run_id}"


class RunGrower:
    """Lets the feed of one run grow until the run is over. Nodes are asked for in slices, however many there are."""

    def __init__(self, means: Means, hub: FeedHub, run_id: UUID) -> None:
        self._means, self._hub, self._run_id = means, hub, run_id
        self._watched: Watched | None = None
        #: Keys of what this process has told of what goes on.
        self._told: set[str | None] = set()
        #: Slices in a row that brought nothing.
        self._in_vain = 0
        self.over = self.behind = False

    async def look(self) -> bool:
        """Append what has happened; return whether that was something. Raises NotFoundError."""
        view = await self._means.stores.runs.get_run(self._run_id)
        if view is None:
            raise NotFoundError(f"no run {self._run_id}")
        if self._watched is None:
            if view.state.final and await self._is_told():
                self.over = True
                return False
            self._watched = Watched(await self._means.known.layout(view.snapshot))
        grew = False if view.state.final else await self._going_on(self._watched, view)
        grew |= await self._ended(self._watched, all_of_them=view.state.final)
        if view.state.final and not self.behind:
            await self._append([_ended_entry(view)])
            self.over = True
        return grew

    async def _is_told(self) -> bool:
        """Whether the feed tells the end of the run: what was pruned of it must not come behind that."""
        name = run_feed(self._run_id)
        end = await self._hub.end(name)
        last = await self._hub.read(name, after=max(end - LAST_ENTRIES, 0), limit=LAST_ENTRIES)
        return any(map(is_last, last))

    async def _going_on(self, watched: Watched, view: RunView) -> bool:
        """Tell the state of the run, and which nodes run, unless that was told."""
        entries = [_state_entry(view)]
        if len(watched) <= MOST_LIVE:
            live = await self._means.stores.runs.live_nodes(self._run_id)
            entries += [_running_entry(one) for one in live if one.state is JobState.RUNNING and watched.has(one.node)]
        fresh = [entry for entry in entries if entry.key not in self._told]
        await self._append(fresh)
        self._told |= {entry.key for entry in fresh}
        return bool(fresh)

    async def _ended(self, watched: Watched, *, all_of_them: bool) -> bool:
        """Ask for watched paths until a slice brings nothing, or, of a run that is over, until all of them do.

        What is over when it is looked at has no nodes that end later. `behind` says whether there is more to ask for.
        """
        grew, self.behind = False, True
        for _ in range(MOST_SLICES):
            asked = watched.first(SLICE)
            endings = await self._means.stores.runs.read_nodes(self._run_id, asked)
            await self._append([_node_entry(one) for one in endings if not one.path.endswith("@")])
            # Once that is stored: what was not told is asked for again.
            watched.note(asked, endings)
            self._in_vain = 0 if endings else self._in_vain + 1
            grew |= bool(endings)
            if self._in_vain >= (watched.slices if all_of_them else 1):
                self.behind = False
                break
        if not all_of_them:
            self._in_vain = 0
        return grew

    async def _append(self, entries: Sequence[NewEntry]) -> None:
        if entries:
            await self._hub.append_all(run_feed(self._run_id), entries)


class Watched:
    """The paths of a run that may still end: those of its graph, and of graphs within once they have begun."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._paths: deque[str] = deque(_paths(layout, ""))
        self._open = set(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def slices(self) -> int:
        """How many reads it takes to ask for all of them."""
        return len(self._paths) // SLICE + 1

    def has(self, path: str | None) -> bool:
        """Whether a path is watched."""
        return path in self._open

    def first(self, count: int) -> list[str]:
        """Return the paths whose turn it is, until `note` tells of them."""
        return list(islice(self._paths, count))

    def note(self, asked: Iterable[str], endings: Iterable[NodeEnding]) -> None:
        """Watch on what was asked for and has not ended, behind all others, and what has begun."""
        ended = {ending.path: ending for ending in endings}
        for _ in asked:
            self._paths.popleft()
        self._open.difference_update(ended)
        self._paths.extend(path for path in asked if path not in ended)
        for path, ending in ended.items():
            if path.endswith("@"):
                found = list(self._within(path.removesuffix("@"), ending))
                self._open.update(found)
                # In front: what has begun lately ends next.
                self._paths.extendleft(reversed(found))

    def _within(self, scope: str, ending: NodeEnding) -> Iterator[str]:
        """Yield the paths within what has begun: all entries of a map, one round of a loop, or a graph."""
        container, index = split_entry(scope)
        if index is not None:
            yield from _paths(self._layout.at(scope), scope)
            yield input_of(f"{container}[{index + 1}]")
            return
        place = self._layout.place(scope)
        if not isinstance(place.node, MapNode):
            yield from _paths(self._layout.at(scope), scope)
            return
        for entry in range(Begun.parse(ending.output or "[0]").count):
            yield from _paths(self._layout.at(f"{scope}[{entry}]"), f"{scope}[{entry}]")


def _paths(layout: Layout, scope: str) -> Iterator[str]:
    """Yield the paths of the nodes of a graph, and of what tells that a graph within has begun."""
    for name, node in layout.nodes.items():
        path = join_path(scope, name)
        yield path
        if isinstance(node, LoopNode):
            yield input_of(f"{path}[0]")
        elif isinstance(node, Container):
            yield input_of(path)


def _state_entry(view: RunView) -> NewEntry:
    return NewEntry(STATE, encode_json({"state": view.state}, field="data"), f"state/{view.state}")


def _running_entry(node: LiveNode) -> NewEntry:
    data = {"path": node.node, "state": NodeState.RUNNING, "attempts": node.failures,
            "started_at": to_json(node.started_at), "finished_at": None, "error": None}  # fmt: skip
    return NewEntry(NODE, encode_json(data, field="data"), _key("running", node.node or ""))


def _node_entry(ending: NodeEnding) -> NewEntry:
    error = ending.error
    data = {
        "path": ending.path,
        "state": ending.state,
        "attempts": ending.attempts,
        "started_at": to_json(ending.started_at),
        "finished_at": to_json(ending.finished_at),
        "error": None if error is None else {"kind": error.kind, "message": error.message[:MOST_ERROR]},
    }
    return NewEntry(NODE, encode_json(data, field="data"), _key("node", ending.path))


def _key(kind: str, path: str) -> str:
    """Return the key of an entry; paths may be longer than keys."""
    return f"{kind}/{path if len(path) <= MOST_PATH else hash_text(path)}"


def _ended_entry(view: RunView) -> NewEntry:
    error = view.error
    data = {
        "state": view.state,
        "finished_at": to_json(view.finished_at),
        "error": None if error is None else {"kind": error.kind, "message": error.message[:MOST_ERROR]},
    }
    return NewEntry(ENDED, encode_json(data, field="data"), "ended")


def is_last(entry: Entry) -> bool:
    """Whether an entry says that a run is over."""
    return entry.type == ENDED
