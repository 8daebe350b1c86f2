"""Default answers: a JSON schema filled from the words of the prompt, the same at every run.

Texts and numbers come from the sentence that shares most words with the field's name and description. A field that may
be null is null where no sentence shares a word with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_WORD = re.compile(r"[a-z]{3,}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DEEPEST = 12
#: A value for each format of a text.
FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}

Schema = Mapping[str, Any]


def fill_schema(schema: Schema, text: str) -> Any:
    """A value for this JSON schema, taken from `text` where it can be.

    >>> fill_schema({"type": "object", "properties": {"plants": {"type": "integer"}}}, "We grew 60 plants.")
    {'plants': 60}
    """
    return _Filler(schema, text).fill(schema, name="", depth=0)


def schema_in(text: str) -> tuple[Schema, str] | None:
    """The first JSON schema of an object that stands in the text, as JSON mode has it, and the text without it."""
    decoder = json.JSONDecoder()
    for opening in re.finditer(r"\{", text):
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except ValueError:
            continue
        if isinstance(value, dict) and "properties" in value:
            return value, text[: opening.start()] + text[end:]
    return None


class _Filler:
    def __init__(self, root: Schema, text: str) -> None:
        self._definitions: Mapping[str, Schema] = root.get("$defs", {})
        self._seed = text
        sentences = [match.group().strip() for match in _SENTENCE.finditer(text)]
        self._sentences = [(sentence, set(_WORD.findall(sentence.lower()))) for sentence in sentences if sentence]

    def fill(self, schema: Schema, *, name: str, depth: int) -> Any:
        schema = self._resolve(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choose(schema["enum"], name)
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        return self._scalar(schema, name)

    def _resolve(self, schema: Schema) -> Schema:
        """The schema without references and choices; a null choice is taken where nothing is found."""
        hints = {key: value for key, value in schema.items() if key in ("title", "description")}
        for _ in range(_DEEPEST):
            if "$ref" in schema:
                schema = {**self._definitions.get(schema["$ref"].rsplit("/", 1)[-1], {}), **hints}
                continue
            options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if options is None and not isinstance(schema.get("type"), list):
                break
            options = options or [{**schema, "type": kind} for kind in schema["type"]]
            schema = {**self._pick(options, hints), **hints}
        return schema

    def _pick(self, options: list[Schema], hints: Schema) -> Schema:
        nulls = [option for option in options if option.get("type") == "null"]
        if nulls and self._evidence(_words(hints)) is None:
            return nulls[0]
        return next((option for option in options if option.get("type") != "null"), options[0])

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        if depth >= _DEEPEST:
            return {}
        fields = schema.get("properties", {})
        return {name: self.fill({"title": name, **field}, name=name, depth=depth + 1) for name, field in fields.items()}

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        if depth >= _DEEPEST or schema.get("maxItems") == 0:
            return []
        item = {"title": name, **schema.get("items", {"type": "string"})}
        return [self.fill(item, name=name, depth=depth + 1) for _ in range(schema.get("minItems", 1) or 1)]

    def _scalar(self, schema: Schema, name: str) -> Any:
        kind = schema.get("type", "string")
        if kind == "null":
            return None
        if kind == "boolean":
            return self._number(name) % 2 == 0
        evidence = self._evidence(_words({**schema, "name": name}))
        if kind in ("integer", "number"):
            return bounded(self._numeral(kind, evidence, name), schema)
        if "format" in schema:
            return FORMATS.get(schema["format"], schema["format"])
        text = evidence or f"{name or 'answer'} {self._number(name):06x}"
        return text[: schema.get("maxLength", 200)].ljust(schema.get("minLength", 0), ".")

    def _numeral(self, kind: str, evidence: str | None, name: str) -> int | float:
        found = _NUMBER.search(evidence or "")
        value = float(found.group()) if found else float(self._number(name) % 100)
        return int(value) if kind == "integer" else value

    def _evidence(self, words: set[str]) -> str | None:
        shared = [(len(words & own), -index) for index, (_, own) in enumerate(self._sentences)]
        best, position = max(shared, default=(0, 0))
        return self._sentences[-position][0] if best else None

    def _choose(self, options: list[Any], name: str) -> Any:
        lowered = self._seed.lower()
        present = (option for option in options if isinstance(option, str) and option.lower() in lowered)
        return next(present, options[self._number(name) % len(options)])

    def _number(self, name: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{name}:{self._seed}".encode()).digest()[:3], "big")


def _words(hints: Schema) -> set[str]:
    spoken = " ".join(str(hints.get(key, "")) for key in ("name", "title", "description"))
    return set(_WORD.findall(spoken.replace("_", " ").lower()))


def bounded(value: int | float, schema: Schema) -> int | float:
    """The number, or the nearest that the schema's bounds allow."""
    low: float = schema.get("minimum", schema.get("exclusiveMinimum", value - 1) + 1)
    high: float = schema.get("maximum", schema.get("exclusiveMaximum", value + 1) - 1)
    return min(max(value, low), max(low, high))
