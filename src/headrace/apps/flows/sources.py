"""Flows in files: one export, lists and wrappers of several, whole folders; and what else was there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.apps.flows.checks import Find
from headrace.apps.flows.form import Flow, parse_flow
from headrace.apps.flows.naming import workflow_name
from headrace.apps.flows.reading import FlowError, read_json

#: Members within which exports of several flows, and of services that collect them, have these.
_WRAPPERS = ("data", "workflow", "workflows")
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Source:
    """A flow that was found, or why it cannot be read."""

    #: The file, and which of its flows where it has several: "all.json[3]".
    place: str
    flow: Flow | None
    #: What it is called, as far as that is known.
    name: str = ""
    fault: FlowError | None = None


@dataclass(frozen=True, slots=True)
class Sources:
    """All that was found."""

    flows: tuple[Source, ...]
    #: Files of folders that are JSON and no flows.
    passed_over: tuple[str, ...] = ()
    #: Files of folders that cannot be read, and why.
    unreadable: tuple[tuple[str, str], ...] = ()


def read_sources(paths: Iterable[Path]) -> Sources:
    """Return the flows of files and of folders, whose files *.json are read however deep they lie.

    Raises FlowError for a file that was named and is not there, no JSON, or no flow.
    """
    flows: list[Source] = []
    passed_over: list[str] = []
    unreadable: list[tuple[str, str]] = []
    for path, named in _files(paths):
        try:
            found = list(sources_in(read_json(path), str(path)))
        except FlowError as error:
            if named:
                raise
            unreadable.append((str(path), str(error)))
            continue
        if not found and named:
            raise FlowError(str(path), "must be a flow, with nodes and connections", "other JSON")
        flows += found
        passed_over += [] if found else [str(path)]
    return Sources(tuple(flows), tuple(passed_over), tuple(unreadable))


def read_flow(path: Path) -> Flow:
    """Return the only flow of a file. Raises FlowError."""
    found = read_sources([path]).flows
    if len(found) > 1:
        names = ", ".join(repr(source.name) for source in found[:5])
        raise FlowError(str(path), "must hold one flow; import them and name one", f"{len(found)}: {names}")
    if found[0].flow is None:
        assert found[0].fault is not None
        raise found[0].fault
    return found[0].flow


def beside(path: Path) -> Find:
    """Return what finds the flows of the folder that a file lies in, by name or id; they are read when one is asked."""
    known: list[Source] = []

    def find(wanted: str) -> Flow | None:
        if not known:
            known.extend(read_sources([path.parent]).flows)
        found = [source for source in known if source.flow is not None and wanted in _names(source.flow)]
        if len(found) > 1:
            places = ", ".join(Path(source.place).name for source in found)
            raise FlowError(str(path), f"runs {wanted!r}, which must be in one file beside it alone", places)
        return found[0].flow if found else None

    return find


def either(*finds: Find) -> Find:
    """Return what asks several, one after the other.

    >>> either(lambda _: None, lambda name: parse_flow({"name": name, "nodes": []}))("A").name
    'A'
    """

    def find(wanted: str) -> Flow | None:
        return next(filter(None, (ask(wanted) for ask in finds)), None)

    return find


def _names(flow: Flow) -> tuple[str, ...]:
    return flow.name, workflow_name(flow.name), *filter(None, [flow.id])


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield each file once, and whether it was named itself."""
    seen: set[Path] = set()
    for path in paths:
        folder = path.is_dir()
        for file in _below(path) if folder else [path]:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file, not folder


def _below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.json") if file.is_file())


def sources_in(data: Any, place: str) -> Iterator[Source]:
    """Yield the flows of JSON that stands at a place, such as a file."""
    documents = list(documents_in(data))
    for number, document in enumerate(documents):
        at = place if len(documents) == 1 else f"{place}[{number}]"
        name = document.get("name")
        try:
            flow = parse_flow(document)
        except FlowError as error:
            yield Source(at, None, name if isinstance(name, str) else "", error)
        else:
            yield Source(at, flow, flow.name)


def documents_in(data: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the flows of JSON: of a single one, of a list of them, of one or several within a wrapper.

    >>> [one["name"] for one in documents_in({"data": [{"name": "A", "nodes": [], "connections": {}}, {"n": 1}]})]
    ['A']
    """
    if isinstance(data, list):
        for one in data if depth < _DEEPEST else ():
            yield from documents_in(one, depth + 1)
    elif isinstance(data, dict) and "nodes" in data and ("connections" in data or _have_types(data["nodes"])):
        yield data
    elif isinstance(data, dict) and depth < _DEEPEST:
        for name in _WRAPPERS:
            yield from documents_in(data.get(name), depth + 1)


def _have_types(nodes: Any) -> bool:
    """Whether these are nodes of a flow, and not those of another kind of graph."""
    return isinstance(nodes, list) and all(isinstance(one, dict) and "type" in one for one in nodes)
