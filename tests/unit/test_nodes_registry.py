"""Which node types there are, those of other packages among them, and what to use instead of the others."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace import nodes
from headrace.nodes import hints, registry
from headrace.nodes.base import NodeType, Shape

#: A package with node types: `GREET` and `several` are in order, the others are not.
PACKAGE = """
from headrace.nodes.base import Named, Shape, Ports


class Greet(Named):
    async def run(self, call):
        return [[{"json": {"hello": item["json"]["name"]}} for item in call.items]]


GREET = Greet("greet", ("acme.greet",), (1, 1), "greets")


def several():
    return [Greet("wave", ("acme.wave",), (1, 1), "waves"), Greet("nod", ("acme.nod", "other.nod"), (1, 2), "nods")]


def again():
    return Greet("greet", ("acme.greet",), (1, 1), "greets again")


SHADOW = Greet("noOp", ("n8n-nodes-base.noOp",), (1, 1), "is not ours")
NUMBER = 7
LOOP = Greet("round", ("acme.round",), (1, 1), "goes round", Shape.LOOP)
NO_RUN = Named("idle", ("acme.idle",), (1, 1), "does nothing")
NO_RUN_ONE = Greet("each", ("acme.each",), (1, 1), "has the wrong method", Shape.EACH)
TEXT = Greet("text", "acme.text", (1, 1), "has no tuple of types")


def odd():
    return [Greet("odd", ("acme.odd",), (1, 1), "is beside a number"), 3]


def fails():
    raise RuntimeError("no licence")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return what puts a package with these entry points where Python finds it, until the test ends."""

    def put(**entries: str) -> None:
        (tmp_path / "acme_nodes.py").write_text(PACKAGE)
        facts = tmp_path / "acme_nodes-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-nodes\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (facts / "entry_points.txt").write_text("\n".join(["[headrace.nodes]", *lines, ""]))
        monkeypatch.syspath_prepend(tmp_path)
        registry.forget()

    yield put
    sys.modules.pop("acme_nodes", None)
    monkeypatch.undo()
    registry.forget()


def test_every_module_with_a_type_is_known() -> None:
    """No type of ours is forgotten, and none is named twice."""
    folder = Path(nodes.__path__[0])
    written = {path.stem for path in folder.glob("*.py") if "\nTYPE = " in path.read_text()}
    assert written == set(registry.MODULES)
    assert len(registry.MODULES) == len(set(registry.MODULES))
    names = [one.name for one in registry.all_types()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", registry.all_types(), ids=lambda kind: kind.name)
def test_facts_of_each_type(kind: NodeType) -> None:
    """Each type has names of its own, a range of versions, a summary of one line, and the method of its shape."""
    assert kind.types
    assert all(registry.find_type(one, {}) is not None or not kind.fits({}) for one in kind.types)
    assert 0 < kind.versions[0] <= kind.versions[1]
    assert kind.summary
    assert "\n" not in kind.summary
    assert not kind.summary.endswith(".")
    verb = {Shape.WHOLE: "run", Shape.TRIGGER: "run", Shape.EACH: "run_one"}.get(kind.shape)
    assert verb is None or callable(getattr(kind, verb))
    assert verb != "run_one" or inspect.iscoroutinefunction(kind.run_one)
    assert all(isinstance(fault.message, str) for fault in kind.check({}, kind.versions[1]))
    assert kind.ports({}, kind.versions[1]).inputs >= 0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("n8n-nodes-base.splitOut", "splitOut"),
        ("headrace.splitOut", "splitOut"),
        ("n8n-nodes-base.start", "manual"),
        ("n8n-nodes-base.code", None),
        ("splitOut", None),
        ("", None),
    ],
)
def test_find_type(kind: str, name: str | None) -> None:
    """A type is found by its whole name."""
    found = registry.find_type(kind, {})
    assert (found.name if found else None) == name


def test_types_that_share_a_name() -> None:
    """What reads and what writes files has one name in n8n: the parameters tell which is meant."""
    read, write = (
        registry.find_type("n8n-nodes-base.readWriteFile", {"operation": operation}) for operation in ("read", "write")
    )
    assert (read and read.name, write and write.name) == ("readFile", "writeFile")


def test_types_of_other_packages(install: Callable[..., None]) -> None:
    """An entry point is a type, or a function that returns some; all of them are found by their names."""
    count = len(registry.all_types())
    install(greet="acme_nodes:GREET", more="acme_nodes:several")
    assert registry.broken_entries() == ()
    assert [one.name for one in registry.all_types()[count:]] == ["greet", "wave", "nod"]
    found = registry.find_type("other.nod", {})
    assert found is not None
    assert found.versions == (1, 2)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("acme_nodes:SHADOW", "its type 'n8n-nodes-base.noOp' is one of Headrace already: give it a name of its own"),
        ("acme_nodes:again", "its type 'acme.greet' is one of acme-nodes already: give it a name of its own"),
        ("acme_nodes:NUMBER", "acme_nodes:NUMBER fails with TypeError: "),
        ("acme_nodes:odd", "3 is no node type: it must have what headrace.nodes.base.NodeType asks for"),
        ("acme_nodes:fails", "acme_nodes:fails fails with RuntimeError: no licence"),
        ("acme_nodes:nothing", "acme_nodes:nothing fails with AttributeError: "),
        ("acme_missing:TYPE", "acme_missing:TYPE fails with ModuleNotFoundError: "),
        ("acme_nodes:LOOP", "the shape of 'round' must be whole, each or trigger"),
        ("acme_nodes:NO_RUN", "'idle' has no method run"),
        ("acme_nodes:NO_RUN_ONE", "'each' has no method run_one"),
        ("acme_nodes:TEXT", "the types of 'text' must be a tuple of texts"),
    ],
)
def test_broken_entry_points(install: Callable[..., None], value: str, why: str) -> None:
    """One that cannot be used is named with its package and the reason, and the others can be used all the same."""
    install(a_good="acme_nodes:GREET", b_broken=value)
    [broken] = registry.broken_entries()
    assert (broken.name, broken.package) == ("b_broken", "acme-nodes")
    assert broken.why.startswith(why)
    assert registry.find_type("acme.greet", {}) is not None
    assert registry.find_type("acme.odd", {}) is None
    own = registry.find_type("n8n-nodes-base.noOp", {})
    assert own is not None
    assert own.summary != "is not ours"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("n8n-nodes-base.code", ("set", "splitOut", "entry point")),
        ("n8n-nodes-base.functionItem", ("set", "entry point")),
        ("n8n-nodes-base.googleSheets", ("httpRequest", "credential")),
        ("n8n-nodes-base.gmail", ("httpRequest", "credential")),
        ("n8n-nodes-base.gmailTrigger", ("schedule", "httpRequest")),
        ("n8n-nodes-base.formTrigger", ("webhook",)),
        ("n8n-nodes-base.respondToWebhook", ("lastNode",)),
        ("n8n-nodes-base.itemLists", ("splitOut", "removeDuplicates")),
        ("n8n-nodes-base.httpRequestTool", ("agents",)),
        ("n8n-nodes-base.openAi", ("headrace.llmChat",)),
        ("@n8n/n8n-nodes-langchain.lmChatOpenAi", ("headrace.llmChat", "model")),
        ("@n8n/n8n-nodes-langchain.agent", ("headrace.llmChat", "headrace.llmExtract")),
        ("@n8n/n8n-nodes-langchain.chainLlm", ("headrace.llmChat",)),
        ("@n8n/n8n-nodes-langchain.outputParserStructured", ("headrace.llmExtract", "schema")),
        ("@n8n/n8n-nodes-langchain.textClassifier", ("headrace.llmExtract", "switch")),
        ("@n8n/n8n-nodes-langchain.memoryBufferWindow", ("headrace.llmChat", "prompt")),
        ("@n8n/n8n-nodes-langchain.chatTrigger", ("webhook",)),
        ("@n8n/n8n-nodes-langchain.brandNew", ("headrace.llmChat",)),
        ("n8n-nodes-acme.invoice", ("entry point", "httpRequest")),
        ("", ("entry point",)),
    ],
)
def test_hints(kind: str, words: tuple[str, ...]) -> None:
    """Of each unknown type it is told what to use instead."""
    hint = hints.hint_of(kind)
    assert all(word in hint for word in words), hint


def test_hints_are_for_what_there_is_not() -> None:
    """A hint for a type that we have would never be read."""
    known = {kind for one in registry.all_types() for kind in one.types}
    assert known.isdisjoint(f"n8n-nodes-base.{name}" for name in hints.BY_NAME)


def test_hints_name_types_that_there_are() -> None:
    """What is to be used instead can be used: each word in the form of a type's name is one, or a parameter."""
    names = {one.name for one in registry.all_types()} | {"responseMode", "lastNode", "groupByFields"}
    texts = " ".join([*hints.BY_NAME.values(), *hints.BY_BEGINNING.values()])
    assert set(re.findall(r"\b[a-z]+[A-Z]\w+", texts)) <= names
