"""Made-up values that are the same in every run: drawn from a seed, the list they belong to, and their place in it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from headrace.testing.provider.filler import FORMATS, bounded

_FIRST, _SECOND = (line.split() for line in (files(__package__) / "names.txt").read_text("utf-8").splitlines())
#: So many names differ from one another in one list.
NAMES = len(_FIRST) * len(_SECOND)
_PLACEHOLDER = re.compile(r"\{(\w+)(?:[.:](\w+))?\}")
_DEEPEST = 12

Schema = Mapping[str, Any]


class Inventor:
    """Makes the values of one element of a list.

    `subject` names its list, or the element itself where `depends_on_place` is False; `index` is its number, from 1.
    """

    def __init__(
        self, seed: int, subject: str, index: int, *, pool: int | None = None, depends_on_place: bool = True
    ) -> None:
        self._seed, self._subject, self.index, self._pool = seed, subject, index, pool
        self._place = index if depends_on_place else 0

    def number(self, what: str, below: int) -> int:
        """A number from 0 up to and without `below`."""
        return _hash(f"{self._seed}:{self._subject}:{self._place}:{what}") % below

    def name(self, what: str = "") -> str:
        """Two words: other ones for each of a list's first 4,096 elements, or from a pool that all lists share."""
        if self._pool is not None:
            place = _hash(f"{self._seed}:{self.number('pool', self._pool)}:{what}")
        else:
            # An odd step visits all names before it comes back to the first.
            start, step = (_hash(f"{self._seed}:{self._subject}:{what}:{part}") for part in ("start", "step"))
            place = start + self._place * (step | 1)
        return f"{_FIRST[place % NAMES // len(_SECOND)]} {_SECOND[place % len(_SECOND)]}"

    def words(self, what: str, count: int) -> str:
        """So many words."""
        return " ".join(_SECOND[self.number(f"{what}:{place}", len(_SECOND))].lower() for place in range(count))

    def fill(self, template: Any, given: Any = None) -> Any:
        """The template with its placeholders filled.

        `{index}`, `{number}` (`{number:50}`: below 50), `{name}`, `{words:4}`, `{hash}`, and from the element that was
        asked about: `{given}`, `{given.FIELD}`.
        """
        if isinstance(template, Mapping):
            return {key: self.fill(part, given) for key, part in template.items()}
        if isinstance(template, list):
            return [self.fill(part, given) for part in template]
        if not isinstance(template, str):
            return template
        whole = _PLACEHOLDER.fullmatch(template)
        if whole is not None:
            return self._placed(whole, given)
        return _PLACEHOLDER.sub(lambda match: str(self._placed(match, given)), template)

    def _placed(self, match: re.Match[str], given: Any) -> Any:
        word, detail = match.groups()
        if word == "given":
            return given.get(detail) if detail and isinstance(given, Mapping) else given
        values: dict[str, Callable[[], Any]] = {
            "index": lambda: self.index,
            "number": lambda: self.number("number", int(detail or 1_000)),
            "name": self.name,
            "words": lambda: self.words("words", int(detail or 3)),
            "hash": lambda: f"{self.number('hash', 16**8):08x}",
        }
        return values[word]() if word in values else match.group()


class SchemaInventor:
    """Makes values that follow a schema; `root` is the whole schema, for its definitions."""

    def __init__(self, root: Schema, inventor: Inventor) -> None:
        self._definitions: Mapping[str, Schema] = root.get("$defs", {})
        self._inventor = inventor

    def make(self, schema: Schema, name: str = "", depth: int = 0) -> Any:
        """A value for this schema."""
        schema = resolve(schema, self._definitions)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][self._inventor.number(name, len(schema["enum"]))]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if kind == "object":
            fields = schema.get("properties", {}) if depth < _DEEPEST else {}
            return {key: self.make(field, f"{name}.{key}", depth + 1) for key, field in fields.items()}
        if kind == "array":
            return self._array(schema, name, depth)
        return self._scalar(schema, kind, name)

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        least, most = schema.get("minItems", 1), schema.get("maxItems", max(3, schema.get("minItems", 1)))
        length = 0 if depth >= _DEEPEST else least + self._inventor.number(name, max(1, min(3, most) - least + 1))
        return [self.make(schema.get("items", {}), f"{name}.{place}", depth + 1) for place in range(min(length, most))]

    def _scalar(self, schema: Schema, kind: Any, name: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            return bool(self._inventor.number(name, 2))
        if kind in ("integer", "number"):
            return bounded(self._inventor.number(name, 100), schema)
        return FORMATS.get(schema["format"], schema["format"]) if "format" in schema else self._text(schema, name)

    def _text(self, schema: Schema, name: str) -> str:
        field = name.rpartition(".")[2]
        if field in ("", "name", "title", "label", "term"):
            text = self._inventor.name(field)
        elif field in ("id", "key", "code", "number"):
            text = f"{field[0].upper()}-{self._inventor.index:04d}"
        else:
            text = f"{field.replace('_', ' ')}: {self._inventor.words(name, 4)}"
        return text[: schema.get("maxLength", 200)].ljust(schema.get("minLength", 0), ".")


def resolve(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The schema without references, and of its choices the first that is not null."""
    for _ in range(_DEEPEST):
        if "$ref" in schema:
            schema = definitions.get(schema["$ref"].rsplit("/", 1)[-1], {})
            continue
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if options is None and isinstance(schema.get("type"), list):
            options = [{**schema, "type": kind} for kind in schema["type"]]
        if not options:
            break
        schema = next((option for option in options if option.get("type") != "null"), options[0])
    return schema


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6], "big")
