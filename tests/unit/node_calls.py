"""Calls of node types without a flow: parameters and items in, items of each port out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from inspect import isawaitable
from typing import Any

from headrace.model.expressions.evaluation import evaluate
from headrace.model.expressions.scope import NodeView, Scope
from headrace.nodes.base import Call, Item, Items, NodeError, OneCall, Shape
from headrace.nodes.parameters import Parameters
from headrace.nodes.services import Credential

#: A Thursday; what `$now` is when a test names no other time.
NOW = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)


class MemoryFiles:
    """Binary data and files in memory."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = dict(files or {})
        self.data: dict[str, bytes] = {}

    async def put(self, data: bytes, *, name: str, mime: str) -> dict[str, Any]:
        """Keep data under a number of its own."""
        key = f"blob-{len(self.data)}"
        self.data[key] = data
        return {"id": key, "fileName": name, "mimeType": mime, "fileSize": len(data)}

    async def get(self, binary: Mapping[str, Any]) -> bytes:
        """Return what was put."""
        return self.data[binary["id"]]

    async def find(self, pattern: str) -> AsyncIterator[str]:
        """Yield the paths that fit."""
        for path in sorted(self.files):
            if fnmatchcase(path, pattern):
                yield path

    async def read(self, path: str) -> bytes:
        """Return a file."""
        if path not in self.files:
            raise NodeError(f"{path}: no such file")
        return self.files[path]

    async def write(self, path: str, data: bytes, *, append: bool) -> None:
        """Write a file."""
        self.files[path] = (self.files.get(path, b"") if append else b"") + data


@dataclass
class FakeServices:
    """Services of a test: files in memory, the rest as the test gives it; `waits` tells what was waited for."""

    http: Any = None
    model: Any = None
    files: Any = field(default_factory=MemoryFiles)
    readers: Any = None
    credentials: Mapping[str, Credential] = field(default_factory=dict)
    moment: datetime = NOW
    #: What signals bring, by name.
    payloads: Mapping[str, Any] = field(default_factory=dict)
    waits: list[tuple[timedelta | None, str | None]] = field(default_factory=list)

    def credential(self, name: str) -> Credential:
        """Return a credential of the test."""
        if name not in self.credentials:
            raise NodeError(f"there is no credential {name!r}")
        return self.credentials[name]

    async def now(self) -> datetime:
        """Return the time of the test."""
        return self.moment

    async def wait(self, delay: timedelta | None, *, signal: str | None = None) -> Any:
        """Write the wait down, and wait for nothing."""
        self.waits.append((delay, signal))
        return self.payloads.get(signal or "")


def as_items(rows: Sequence[Mapping[str, Any]]) -> Items:
    """Return items; a row with a member `json` is one already, others become the `json` of one."""
    return [dict(row) if isinstance(row.get("json"), dict) else {"json": dict(row)} for row in rows]


def make_call(
    kind: Any,
    parameters: Mapping[str, Any],
    *inputs: Sequence[Mapping[str, Any]],
    version: float | None = None,
    strict: bool = True,
    now: datetime = NOW,
    services: FakeServices | None = None,
    nodes: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    given: Sequence[Mapping[str, Any]] = (),
) -> Call:
    """Return a call of a type, by its highest version unless told; `nodes`: what other nodes gave, by their names."""
    ports = [as_items(rows) for rows in inputs]
    views = {name: as_items(rows) for name, rows in (nodes or {}).items()}

    def node(name: str) -> NodeView:
        if name not in views:
            raise LookupError(f"there is no node {name!r}")
        return NodeView(name, views[name], next(iter(views[name]), None))

    def scope_of(index: int, port: int) -> Scope:
        items = ports[port] if port < len(ports) else []
        item = items[index] if index < len(items) else None
        return Scope(item=item, index=index, items=items, node=node, now=now)

    chosen = kind.versions[1] if version is None else version
    return Call(
        "Node", chosen, parameters, ports, scope_of, services or FakeServices(moment=now), strict=strict,
        given=as_items(given),
    )  # fmt: skip


async def run_call(kind: Any, call: Call) -> list[Items]:
    """Run a type of the shape `whole` or `trigger`."""
    ran = kind.run(call)
    out: list[Items] = await ran if isawaitable(ran) else ran
    assert len(out) == len(kind.ports(call.parameters, call.version).outputs), "as many lists as it has ports"
    return out


async def run_each(kind: Any, call: Call) -> list[Items]:
    """Run a type of the shape `each` for every item of the first input, one after another."""
    out: Items = []
    for index, item in enumerate(call.items):
        evaluated = evaluate(dict(call.parameters), call.scope_of(index, 0), field="parameters")
        one = OneCall(call.name, call.version, Parameters(evaluated), item, call.services)
        out += [{"pairedItem": {"item": index}, **made} for made in await kind.run_one(one)]
    return [out]


async def run_type(
    kind: Any, parameters: Mapping[str, Any], *inputs: Sequence[Mapping[str, Any]], **options: Any
) -> list[Items]:
    """Run a type on rows or items, by its highest version unless told; return the items of each port."""
    call = make_call(kind, parameters, *inputs, **options)
    return await (run_each if kind.shape is Shape.EACH else run_call)(kind, call)


def jsons(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the `json` of each item."""
    return [item["json"] for item in items]


def rules(kind: Any, parameters: Mapping[str, Any], version: float | None = None) -> list[str]:
    """Return what `check` says: "parameter: message"."""
    faults = kind.check(parameters, kind.versions[1] if version is None else version)
    return [f"{fault.parameter}: {fault.message}" for fault in faults]
