"""The pages of memory say what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from headrace.apps.memory import editing, intake, opening
from headrace.apps.memory.changes import topic_of
from headrace.apps.memory.config import DEFAULT_FILE
from headrace.apps.memory.memory import MOST_CONTEXT
from headrace.apps.memory.rules.mode import FEW_PER_SECOND, SIZES, SLOW_MS
from headrace.apps.memory.rules.priority import KIND_WEIGHTS, LEAST_SCORES
from headrace.apps.memory.stages import sweeping
from headrace.apps.memory.writing.terms import Terms
from headrace.memory_settings import MemorySettings
from headrace.service import memory, memory_shapes, memory_users, paging
from headrace.settings import load_settings

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
HOWTO = (DOCS / "howto" / "memory.md").read_text(encoding="utf-8")
WHY = (DOCS / "explanation" / "memory.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "memory.md").read_text(encoding="utf-8")
SQL = Path(intake.__file__).parent / "tables" / "schema.sql"


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_settings_of_the_how_to_are_taken(tmp_path: Path) -> None:
    """Each block is a file that starts the app; the first one shows what is usual."""
    found = []
    for block in blocks(HOWTO, "toml"):
        (tmp_path / "headrace.toml").write_text(block, encoding="utf-8")
        found.append(load_settings(environ={}, file=tmp_path / "headrace.toml"))
    assert found[0].memory == MemorySettings()
    assert [one.memory.source for one in found] == ["trigger", "debezium"]


def test_the_connector_writes_to_the_topic_that_is_read() -> None:
    """By its prefix and table; and passes over what was there before."""
    [connector] = [json.loads(block) for block in blocks(HOWTO, "json") if "connector.class" in block]
    given = connector["config"]
    topic = topic_of(*given["table.include.list"].split(".")[:1], given["topic.prefix"])
    assert topic == f"{given['topic.prefix']}.{given['table.include.list']}"
    assert f"`{topic}`" in HOWTO
    assert given["snapshot.mode"] == "no_data"


def test_messages_and_terms_of_the_how_to_are_taken(tmp_path: Path) -> None:
    """The file of messages, and that of topics."""
    [said] = [json.loads(block) for block in blocks(HOWTO, "json") if block.startswith("[")]
    assert len(intake.parse_messages(said)) == 3
    [terms] = blocks(HOWTO, "yaml")
    (tmp_path / "terms.yaml").write_text(terms, encoding="utf-8")
    loaded = Terms.load(tmp_path / "terms.yaml")
    assert ([one.term.name for one in loaded.topics], loaded.strict) == (["food"], True)


def test_the_file_of_a_cluster_is_shown_as_it_is() -> None:
    """With all its usual values."""
    assert blocks(REFERENCE, "yaml") == [DEFAULT_FILE.read_text(encoding="utf-8")]


def test_every_table_is_named() -> None:
    """Those of the schema, and no other."""
    rows = re.findall(r"^\| `(\w+)` \|", REFERENCE.split("## Tables")[1].split("Types of blobs")[0], re.MULTILINE)
    made = re.findall(r"^CREATE TABLE \{schema\}\.(\w+)", SQL.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(made)


def test_every_route_is_named_with_its_scope() -> None:
    """Those of the service, and no other."""
    told = re.findall(r"^\| `(\w+) ([\w/{}]+)` \| `(\w+)` \|", REFERENCE, re.MULTILINE)
    there = []
    for route in [*memory.router.routes, *memory_users.router.routes]:
        assert isinstance(route, APIRoute)
        scope = next((str(one.dependency.scope) for one in route.dependencies), "read")  # type: ignore[union-attr]
        there += [(method, route.path.removeprefix("/memory/"), scope) for method in route.methods]
    assert sorted(told) == sorted(there)


@pytest.mark.parametrize(
    "row",
    [
        *(
            f"| `{queue}` | {kind} | {str(opening.SLOTS[queue])[1:-1]} | {opening.RETRIES[queue].max_attempts}, "
            for kind, queue in opening.KINDS.items()
        ),
        f"| id of a user | 1 to {intake.MOST_USER_ID} printable characters",
        f"{intake.MOST_MESSAGES:,}, each of {intake.MOST_CONTENT:,} characters",
        f"| changes of one request | {editing.MOST_CHANGES}, ",
        f"| topic and sub-topic | {editing.MOST_TOPIC} characters |",
        f"| an entry by hand | {editing.MOST_ENTRY:,} characters |",
        f"| a text to search | {memory_shapes.MOST_QUERY:,} characters |",
        f"| a context | {MOST_CONTEXT:,} tokens |",
        f"| a page | {paging.MOST} |",
    ],
)  # fmt: skip
def test_figures_of_the_reference_are_those_of_the_code(row: str) -> None:
    """Each stands there."""
    assert row in " ".join(REFERENCE.split())


@pytest.mark.parametrize(
    "figure",
    [
        f"Kinds are {', '.join(f'{kind} {weight}' for kind, weight in KIND_WEIGHTS.items())}.",
        f"class 0 from {LEAST_SCORES[0]:g}, 1 from {LEAST_SCORES[1]:g}, 2 from {LEAST_SCORES[2]:g}",
        f"8 from {LEAST_SCORES[8]:g}, else 9",
        f"{', '.join(str(size) for size in list(SIZES.values())[:2])} or {list(SIZES.values())[2]} of them",
        f"5 while a call takes more than {SLOW_MS / 1000:g} s, 20 while fewer than {FEW_PER_SECOND} buffers a second",
        f"waits up to `batch_window` ({MemorySettings().batch_window.seconds} s)",
    ],
)
def test_figures_of_the_explanation_are_those_of_the_code(figure: str) -> None:
    """Each stands there."""
    assert figure in " ".join(WHY.split())


def test_bounds_are_the_same_on_every_way_in() -> None:
    """What the service refuses by its document, the application would refuse by its rules."""
    shapes = memory_shapes
    assert (shapes.MOST_USER_ID, shapes.MOST_MESSAGES, shapes.MOST_CONTENT) == (
        intake.MOST_USER_ID, intake.MOST_MESSAGES, intake.MOST_CONTENT,
    )  # fmt: skip
    assert (shapes.MOST_CHANGES, shapes.MOST_BUDGET) == (editing.MOST_CHANGES, MOST_CONTEXT)
    assert sweeping.MOST_ROUNDS == 3 and "three times" in WHY
