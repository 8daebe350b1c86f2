"""Checks of nodes that read files or ask models: whatever JSON their parameters are, they answer with faults."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headrace.nodes import (
    extract_from_file,
    information_extractor,
    llm_chat,
    llm_extract,
    read_binary_files,
    read_file,
    write_file,
)
from headrace.nodes.base import Fault

KINDS = (
    extract_from_file.TYPE, information_extractor.TYPE, llm_chat.TYPE, llm_extract.TYPE, read_binary_files.TYPE,
    read_file.TYPE, write_file.TYPE,
)  # fmt: skip
CALLS = 20_000
NAMES = (
    "operation", "options", "rawData", "readAsString", "keepSource", "fileSelector", "filePath", "fileName", "format",
    "text", "append", "prompt", "maxTokens", "temperature", "schema", "attributes", "schemaType", "inputSchema",
    "jsonSchemaExample", "name", "required", "description",
)  # fmt: skip
RULES = (
    "type", "properties", "required", "items", "anyOf", "enum", "const", "$ref", "$defs", "pattern", "format",
    "minLength", "minimum", "multipleOf", "uniqueItems", "additionalProperties", "title", "description", "a",
)  # fmt: skip
LEAVES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.5, 10**400, 1e308, float("nan"), float("inf"), "", "a", "\0", "\ud800", "=x", "{",
    '{"type": "object", "properties": {"a": {}}}', "[[", "object", "string", "array", "integer", "null", "date",
    "#/properties/a", "(", "[[]", "a{2}", "\\", "x" * 600, "read", "write", "csv", "json", "text", "fromIcs", "manual",
    "fromJson", "fromAttributes", "9" * 30,
)  # fmt: skip


def value_of(draw: random.Random, names: tuple[str, ...], depth: int = 0) -> Any:
    """Return a random JSON value whose objects have these names."""
    chance = draw.random()
    if depth > 3 or chance < 0.55:
        return draw.choice(LEAVES)
    size = draw.randrange(4)
    if chance < 0.7:
        return [value_of(draw, names, depth + 1) for _ in range(size)]
    return {draw.choice(names): value_of(draw, names, depth + 1) for _ in range(size)}


def parameters_of(draw: random.Random) -> dict[str, Any]:
    """Return random parameters; a schema among them is often nearly one."""
    found = {draw.choice(NAMES): value_of(draw, NAMES) for _ in range(draw.randrange(1, 4))}
    if draw.random() < 0.4:
        part = {draw.choice(RULES): value_of(draw, RULES, 1) for _ in range(draw.randrange(1, 4))}
        found[draw.choice(("schema", "inputSchema"))] = {"type": "object", "properties": {"a": part}}
    return found


@pytest.mark.parametrize("seed", [1])
def test_checks_answer_whatever_they_are_asked(seed: int) -> None:
    """Twenty thousand times: a list of faults, each with a text, and nothing raised."""
    draw = random.Random(seed)
    for number in range(CALLS // len(KINDS) + 1):
        parameters = parameters_of(draw)
        for kind in KINDS:
            for fault in kind.check(parameters, kind.versions[number % 2]):
                assert isinstance(fault, Fault)
                assert isinstance(fault.message, str)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_deep_parameters_are_answered_too(kind: Any) -> None:
    """As deep as JSON is read at all."""
    deep: Any = "={{ 1 }}"
    for _ in range(400):
        deep = [deep, {"a": deep}] if isinstance(deep, str) else [deep]
    for name in NAMES:
        kind.check({name: deep, "schemaType": "manual"}, kind.versions[1])
