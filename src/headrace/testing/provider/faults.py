"""The script of faults: what goes wrong, and for which calls."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from headrace.model.errors import InvalidInputError


class FaultKind(StrEnum):
    """What goes wrong with a call."""

    #: Status 429 (or `status`), with Retry-After when `retry_after` is set.
    RATE_LIMIT = "rate_limit"
    #: Status 500 (or `status`, for example 503, 529, 401, 400).
    SERVER_ERROR = "server_error"
    #: The request is read and never answered.
    HANG = "hang"
    #: The answer arrives at one byte per second.
    DRIP = "drip"
    #: The connection is cut in the middle of the answer.
    CUT = "cut"
    #: The body is cut JSON, though the transfer itself is whole.
    BROKEN_BODY = "broken_body"
    #: The body holds bytes that are no UTF-8.
    BAD_UTF8 = "bad_utf8"
    #: An answer of 50 MB.
    HUGE = "huge"
    #: Status 200 whose body is an error.
    ERROR_BODY = "error_body"
    #: Status 200 with no choice in it.
    EMPTY = "empty"
    #: A tool call where text was asked.
    TOOL_CALL = "tool_call"
    #: The text is JSON cut in half, while the model says it was done.
    TRUNCATED_JSON = "truncated_json"
    #: The text is JSON of another shape.
    WRONG_JSON = "wrong_json"
    #: The text is JSON of the right shape with values of the wrong type.
    WRONG_TYPE = "wrong_type"
    #: Some elements of a list break its schema: those of `items`, or a share (`item_rate`), else one.
    BAD_ITEM = "bad_item"
    #: JSON that can be mended: a trailing comma, a code fence, single quotes, keys without quotes (`style`).
    MALFORMED_JSON = "malformed_json"
    #: The text is cut, in the middle of an element where it is a list, and the finish reason says so (`length`).
    LENGTH = "length"
    #: A stream is cut after `after_items` elements or `after_characters`, else in its middle.
    STREAM_CUT = "stream_cut"
    #: The model declines to answer.
    REFUSAL = "refusal"


MALFORMED_STYLES = ("bare_keys", "code_fence", "single_quotes", "trailing_comma")
_ALIASES = {"429": FaultKind.RATE_LIMIT, "500": FaultKind.SERVER_ERROR}


@dataclass(frozen=True, slots=True)
class Span:
    """A range of numbers from 1, both ends included; no end means for ever. Written `3`, `2-5` or `4-`."""

    first: int
    last: int | None

    @classmethod
    def parse(cls, text: str) -> Span:
        """Read `3`, `2-5` or `4-`."""
        first, dash, last = text.partition("-")
        try:
            start = int(first)
            end = (int(last) if last else None) if dash else start
        except ValueError:
            raise InvalidInputError("calls", "must look like 3, 2-5 or 4-", text) from None
        return cls(start, end)

    def __contains__(self, number: int) -> bool:
        return number >= self.first and (self.last is None or number <= self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One line of the script. It strikes where every condition that is set holds.

    >>> Fault.parse("429:rate=0.3,retry_after=2").retry_after
    datetime.timedelta(seconds=2)
    """

    kind: FaultKind
    #: Numbers of calls to the whole server, from 1.
    calls: Span | None = None
    #: Numbers of calls of the same content, from 1: `Span(1, 1)` strikes each content's first call.
    attempts: Span | None = None
    #: Share of calls, 0 to 1, drawn from the seed, the content and its number: the same in every run.
    rate: float = 1.0
    #: Only contents that hold these words.
    contains: str = ""
    #: Strike at most that often.
    times: int | None = None
    #: Sent as Retry-After (and `retry-after-ms`) with `rate_limit` and `server_error`.
    retry_after: timedelta | None = None
    #: Another status than the kind's own.
    status: int | None = None
    #: `code`, `param` and `message` of the error's body.
    code: str | None = None
    param: str | None = None
    message: str = "scripted fault"
    #: Numbers of the elements that `bad_item` breaks, from 1; or the share of them, drawn for each.
    items: tuple[int, ...] = ()
    item_rate: float | None = None
    #: How `malformed_json` spoils the text; None draws one of the four.
    style: str | None = None
    #: Where `stream_cut` and `length` cut: after so many whole elements, or characters.
    after_items: int | None = None
    after_characters: int | None = None

    def __post_init__(self) -> None:
        if self.style is not None and self.style not in MALFORMED_STYLES:
            raise InvalidInputError("fault style", f"must be one of {', '.join(MALFORMED_STYLES)}", self.style)

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read `KIND[:name=value,…]`, for example `hang:calls=3-5` or `429:contains=Paper 7,times=1`.

        Raises InvalidInputError that names what was not understood.
        """
        word, _, rest = text.partition(":")
        try:
            kind = _ALIASES.get(word) or FaultKind(word)
        except ValueError:
            raise InvalidInputError("fault", f"must be one of {', '.join(FaultKind)}", word) from None
        fields: dict[str, object] = {}
        # What has no name belongs to the value before it: `items=2,5`.
        for pair in filter(None, re.split(r",(?=\s*\w+=)", rest)):
            name, _, value = pair.partition("=")
            fields[name.strip()] = _read(name.strip(), value)
        return cls(kind=kind, **fields)  # type: ignore[arg-type] # _read gives each name its type

    def strikes(self, call: Call, *, seed: int, earlier: int) -> bool:
        """Whether it strikes this call, having struck `earlier` times."""
        return (
            (self.times is None or earlier < self.times)
            and (self.calls is None or call.number in self.calls)
            and (self.attempts is None or call.attempt in self.attempts)
            and self.contains in call.text
            and (self.rate >= 1.0 or draw(seed, call) < self.rate)
        )


_READERS: Mapping[str, Callable[[str], object]] = {
    "calls": Span.parse,
    "attempts": Span.parse,
    "rate": float,
    "contains": str,
    "times": int,
    "retry_after": lambda text: timedelta(seconds=float(text)),
    "status": int,
    "code": str,
    "param": str,
    "message": str,
    "items": lambda text: tuple(int(number) for number in text.split(",")),
    "item_rate": float,
    "style": str,
    "after_items": int,
    "after_characters": int,
}


def _read(name: str, value: str) -> object:
    if name not in _READERS:
        raise InvalidInputError("fault", f"takes only {', '.join(_READERS)}", name)
    try:
        return _READERS[name](value)
    except ValueError:
        raise InvalidInputError(f"fault {name}", "must be a number", value) from None


@dataclass(frozen=True, slots=True)
class Call:
    """What the script looks at: the call's number, its number among equal contents, and its words."""

    number: int
    attempt: int
    key: str
    text: str


def draw(seed: int, call: Call, what: str = "") -> float:
    """A number from 0 to 1 that is the same for this call in every run; another one for each `what`."""
    digest = hashlib.sha256(f"{seed}:{call.key}:{call.attempt}{what and ':' + what}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that strikes one call."""

    fault: Fault
    call: Call
    seed: int

    @property
    def kind(self) -> FaultKind:
        """What goes wrong."""
        return self.fault.kind

    def draw(self, what: str) -> float:
        """A number from 0 to 1, the same in every run."""
        return draw(self.seed, self.call, what)


@dataclass(slots=True)
class FaultScript:
    """The lines of a script, in order; the first that strikes decides."""

    faults: Sequence[Fault] = ()
    seed: int = 0
    _struck: dict[int, int] = field(default_factory=dict)

    def pick(self, call: Call) -> Strike | None:
        """The fault that strikes this call, or None; counts it."""
        for index, fault in enumerate(self.faults):
            earlier = self._struck.get(index, 0)
            if fault.strikes(call, seed=self.seed, earlier=earlier):
                self._struck[index] = earlier + 1
                return Strike(fault, call, self.seed)
        return None
