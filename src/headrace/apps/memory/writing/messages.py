"""Blobs as lines of a prompt: each message one JSON value, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.apps.memory.data.blobs import PROCESSED, Blob
from headrace.apps.memory.writing.quoting import quoted
from headrace.apps.memory.writing.tokens import count_tokens

Line = dict[str, Any]
#: Tokens of messages that one question shows at most; a single message is cut into pieces of so many.
MOST_TOKENS = 16_384
#: What a piece takes beside its words.
_FRAME = 64
_SPEAKERS = ("user", "assistant", "system")


def lines_of(blobs: Iterable[Blob]) -> list[Line]:
    """Return what was said in blobs, without what is empty and blobs that no memory is made of."""
    lines: list[Line] = []
    for blob in blobs:
        if blob.type in PROCESSED:
            lines += [line for line in _lines(blob) if line["says"]]
    return lines


def portions(lines: Sequence[Line], most: int = MOST_TOKENS) -> list[list[Line]]:
    """Return lines in portions of at most `most` tokens, in their order; nothing is left out.

    >>> [[line["says"] for line in some] for some in portions([{"says": "one"}, {"says": "two"}], most=7)]
    [['one'], ['two']]
    """
    found: list[list[Line]] = []
    room = 0
    for piece in (piece for line in lines for piece in _pieces(line, most)):
        tokens = count_tokens(quoted(piece))
        if not found or tokens > room:
            found.append([])
            room = most
        found[-1].append(piece)
        room -= tokens
    return found


def tokens_of(lines: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens of lines as they are shown."""
    return sum(count_tokens(quoted(line)) for line in lines)


def said_in(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the words of lines: those of the user, where there are some."""
    told = list(lines)
    own = [line for line in told if line["who"] in ("user", "summary")]
    return all_said(own or told)


def all_said(lines: Iterable[Mapping[str, Any]]) -> str:
    """Return the words of lines, whoever said them."""
    return "\n".join(str(line["says"]) for line in lines)


def _lines(blob: Blob) -> Iterator[Line]:
    day = blob.created_at.date().isoformat()
    if blob.type == "summary":
        yield {"who": "summary", "at": day, "says": _text(blob.data.get("summary"))}
        return
    messages = blob.data.get("messages")
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(message, Mapping):
            yield {"who": _speaker(message), "at": _text(message.get("created_at")) or day,
                   "says": _text(message.get("content"))}  # fmt: skip


def _speaker(message: Mapping[str, Any]) -> str:
    """Return who spoke; an alias names another than the user, or what the user is called."""
    role, alias = _text(message.get("role")) or "user", _text(message.get("alias"))
    role = role if role in _SPEAKERS else "assistant"
    return f"{role} ({alias})" if alias and role != "user" else role


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _pieces(line: Line, most: int) -> Iterator[Line]:
    """Return a line, or what it says in several."""
    if count_tokens(quoted(line)) <= most:
        yield line
        return
    # A sign takes at most 12 characters of JSON, three tokens: pieces of a third fit, whatever they say.
    size = max((most - _FRAME) // 3, 1)
    says = line["says"]
    for begin in range(0, len(says), size):
        yield {**line, "says": says[begin : begin + size]}
