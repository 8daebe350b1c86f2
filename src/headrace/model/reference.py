"""References: what stands in a JSON value for a large one that lies in the blob storage.

A reference is the object {"$blob": {"key": …, "bytes": …, "sha256": …}} with no other key. Data that look like one are
wrapped as {"$literal": …} when they are stored and taken out again when they are loaded, so that nobody's data can name
a blob.

A file of a run, such as a PDF, is never loaded into JSON: an object with {"$file": {"bytes": …, "sha256": …}} stands
for it, and may have other members too. It says what the file is and not where it lies: that is below the folder of the
run whose value it is in, so a forged one can name no file of another run. It is data as any other, and never wrapped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Values above this many bytes of JSON are kept as blobs, ...
INLINE_BYTES = 64 * 1024
#: ... and above this many they are refused.
MAX_VALUE_BYTES = 64 * 1024 * 1024

_BLOB, _LITERAL, _FILE = "$blob", "$literal", "$file"
_MARKS = frozenset({_BLOB, _LITERAL})
#: Where none of these is in a JSON text, no key in it is a mark; any character of a key may be written as an escape.
_HINT = re.compile(r"\$blob|\$literal|\\u00", re.IGNORECASE)
_FILE_HINT = re.compile(r"\$file|\\u00", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a large value lies, and how to know that it is the same: its length in bytes and its SHA-256 in hex."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileMark:
    """What a file of a run is: its length in bytes and its SHA-256 in hex."""

    bytes: int
    sha256: str


def parse_reference(value: object) -> Reference | None:
    """Return the reference that a parsed JSON value is, or None.

    >>> parse_reference({"$blob": {"key": "runs/1/a", "bytes": 70000, "sha256": "ab" * 32}}).key
    'runs/1/a'
    """
    body = value.get(_BLOB) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(body, dict) or body.keys() != {"key", "bytes", "sha256"}:
        return None
    key, size, digest = body["key"], body["bytes"], body["sha256"]
    return Reference(key, size, digest) if isinstance(key, str) and _is_content(size, digest) else None


def _is_content(size: object, digest: object) -> bool:
    return type(size) is int and size >= 0 and isinstance(digest, str) and _SHA256.fullmatch(digest) is not None


def parse_file(value: object) -> FileMark | None:
    """Return the file that a parsed JSON value stands for, or None; members beside the mark are of no concern.

    >>> parse_file({"$file": {"bytes": 3, "sha256": "ab" * 32}, "fileName": "a.txt"}).bytes
    3
    """
    body = value.get(_FILE) if isinstance(value, Mapping) else None
    if not isinstance(body, Mapping) or body.keys() != {"bytes", "sha256"}:
        return None
    size, digest = body["bytes"], body["sha256"]
    return FileMark(size, digest) if _is_content(size, digest) else None


def file_value(file: FileMark) -> dict[str, Any]:
    """Return what stands for a file in JSON."""
    return {_FILE: {"bytes": file.bytes, "sha256": file.sha256}}


def files_in(text: str) -> set[FileMark]:
    """Return the files that a stored JSON text names, at any depth, in wrapped data too: they are user data."""
    if not _FILE_HINT.search(text):
        return set()
    found, todo = set(), [json.loads(text)]
    for one in todo:  # which grows
        if (file := parse_file(one)) is not None:
            found.add(file)
        if isinstance(one, list | dict):
            todo.extend(one.values() if isinstance(one, dict) else one)
    return found


def reference_value(reference: Reference) -> dict[str, Any]:
    """Return a reference as a JSON value."""
    return {_BLOB: {"key": reference.key, "bytes": reference.bytes, "sha256": reference.sha256}}


def reference_text(reference: Reference) -> str:
    """Return a reference as JSON text.

    >>> reference_text(Reference("runs/1/a", 70000, "ab"))
    '{"$blob":{"key":"runs/1/a","bytes":70000,"sha256":"ab"}}'
    """
    return json_text(reference_value(reference))


def json_text(value: Any) -> str:
    """Return compact JSON text of a value that was parsed from JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def may_be_marked(text: str) -> bool:
    """Whether a JSON text can hold references or wrapped data: a quick look, which may say yes for nothing."""
    # A pattern that looks at each character takes ten times as long as these, which nearly all texts end with.
    return ("$" in text or "\\u00" in text) and _HINT.search(text) is not None


def wrap(value: Any) -> Any:
    """Return user data with whatever looks like a reference, or like wrapped data, wrapped.

    >>> wrap([{"$blob": 1}])
    [{'$literal': {'$blob': 1}}]
    """
    if isinstance(value, dict):
        if _is_marked(value):
            return {_LITERAL: value}
        return {key: wrap(item) for key, item in value.items()}
    return [wrap(item) for item in value] if isinstance(value, list) else value


def references(value: Any) -> set[Reference]:
    """Return the references in a stored value, at any depth; wrapped data hold none."""
    found, todo = set(), [value]
    for one in todo:  # which grows
        if isinstance(one, list):
            todo.extend(one)
        elif (reference := parse_reference(one)) is not None:
            found.add(reference)
        elif isinstance(one, dict) and not _is_literal(one):
            todo.extend(one.values())
    return found


def unwrap(value: Any, texts: Mapping[Reference, str]) -> Any:
    """Return the user data of a stored value. `texts` has what lies behind every reference, stored JSON texts too.

    >>> unwrap({"a": {"$literal": {"$blob": 1}}}, {})
    {'a': {'$blob': 1}}
    """
    if isinstance(value, list):
        return [unwrap(item, texts) for item in value]
    if not isinstance(value, dict):
        return value
    if _is_literal(value):
        return value[_LITERAL]
    reference = parse_reference(value)
    if reference is None:
        return {key: unwrap(item, texts) for key, item in value.items()}
    return unwrap(json.loads(texts[reference]), texts)


def spell(text: str) -> list[str | Reference]:
    """Return a stored JSON text in parts, which make that of the user data with what lies behind the references.

    >>> spell('[{"$literal":{"$blob":1}}]')
    ['[', '{"$blob":1}', ']']
    """
    return list(_spelled(json.loads(text))) if may_be_marked(text) else [text]


def _spelled(value: Any) -> Iterator[str | Reference]:
    if isinstance(value, list):
        return _joined("[]", [("", item) for item in value])
    if not isinstance(value, dict):
        return iter([json_text(value)])
    if _is_literal(value):
        return iter([json_text(value[_LITERAL])])
    reference = parse_reference(value)
    if reference is None:
        return _joined("{}", [(f"{json_text(key)}:", item) for key, item in value.items()])
    return iter([reference])


def _joined(brackets: str, members: Sequence[tuple[str, Any]]) -> Iterator[str | Reference]:
    """Yield the parts of a list or object: of each member what stands before its value, and that."""
    for place, (name, value) in enumerate(members):
        yield f"{',' if place else brackets[0]}{name}"
        yield from _spelled(value)
    yield brackets[1] if members else brackets


def replace_references(value: Any, others: Mapping[Reference, Reference]) -> Any:
    """Return a stored value with other references in the place of its own."""
    if isinstance(value, list):
        return [replace_references(item, others) for item in value]
    if not isinstance(value, dict) or _is_literal(value):
        return value
    reference = parse_reference(value)
    if reference is None:
        return {key: replace_references(item, others) for key, item in value.items()}
    return reference_value(others[reference])


def _is_marked(value: dict[str, Any]) -> bool:
    return len(value) == 1 and not _MARKS.isdisjoint(value)


def _is_literal(value: dict[str, Any]) -> bool:
    return len(value) == 1 and _LITERAL in value and isinstance(value[_LITERAL], dict) and _is_marked(value[_LITERAL])
