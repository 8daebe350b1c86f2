"""Regular expressions of schemas: which are taken, told without the matcher that will use them.

That one matches in linear time, and has another grammar than Python's: taken is what both read alike, and what is
small enough for it once its repetitions are written out.
"""

from __future__ import annotations

import re

MAX_PATTERN = 500
#: What the parts of one expression, and of all of a schema, may weigh: a unit is about a tenth of a KiB of the matcher.
MAX_WEIGHT, MAX_WEIGHT_OF_ALL = 80_000, 200_000
_MAX_GROUPS = 50
_ESCAPE = r"\\(?:[dDwWsSnrtfv]|x[0-9A-Fa-f]{2}|u(?![dD][89A-Fa-f])[0-9A-Fa-f]{4}|[ !-/:;=?@\[-`{-~])"
_TOKEN = re.compile(
    rf"""(?P<open>\((?:\?:|\?[ims]+:|\?P<[A-Za-z_][A-Za-z0-9_]*>|(?!\?)))
    |(?P<close>\))
    |(?P<times>(?:[*+?]|\{{(?P<least>[0-9]{{1,6}})(?P<range>,(?P<most>[0-9]{{0,6}}))?\}})\??(?!\+))
    |(?P<set>\[(?:\^|(?!\^))(?:{_ESCAPE}|(?!--|&&|~~|\|\|)[^\[\]\\])+\])
    |(?P<place>[\^$|]|\\[bBA])
    |(?P<single>{_ESCAPE}|[^\\\[(){{*+?])""",
    re.VERBOSE,
)
_FLAGS = re.compile(r"\(\?[ims]+\)")
#: Kinds of characters are many ranges of them.
_HEAVY = {"d": 60, "D": 60, "w": 550, "W": 550, "s": 25, "S": 25}
_SINGLE, _ENTRY, _ANY = 2, 12, 12


def weight_of(pattern: str) -> int:
    """Return what an expression weighs. Raises ValueError saying what of it is not taken.

    >>> weight_of("^[a-z]{2,3}$"), weight_of("^a+")
    (108, 2)
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"has more than {MAX_PATTERN} characters")
    weight = _Weighing().of(pattern)
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if weight > MAX_WEIGHT:
        raise ValueError("repeats too much, such as \\w a hundred times: use smaller numbers, or * and maxLength")
    return weight


class _Weighing:
    """Reads one expression; what its open groups weigh so far, the whole first."""

    def __init__(self) -> None:
        self._groups = [0]
        #: What stands before a number of times.
        self._last = 0

    def of(self, pattern: str) -> int:
        """Return the weight. Raises ValueError."""
        flags = _FLAGS.match(pattern)
        at = flags.end() if flags else 0
        while at < len(pattern):
            token = _TOKEN.match(pattern, at)
            if token is None:
                shown = pattern[at : at + 8]
                raise ValueError(
                    f"has {shown!r} at position {at}, which is not taken: no looking around or back, no flags within, "
                    "no sets within sets; put a backslash before a sign that means itself"
                )
            self._take(token)
            at = token.end()
        return sum(self._groups)

    def _take(self, token: re.Match[str]) -> None:
        kind = token.lastgroup
        if token["open"]:
            if len(self._groups) > _MAX_GROUPS:
                raise ValueError(f"has groups within groups, more than {_MAX_GROUPS}")
            self._groups.append(0)
        elif token["close"]:
            # One too many is told by the compiler.
            self._add(self._groups.pop() if len(self._groups) > 1 else 0)
        elif token["times"]:
            self._add(self._last * (_times(token) - 1))
        else:
            self._add(0 if kind == "place" else _weight(token[0]))

    def _add(self, weight: int) -> None:
        self._groups[-1] += weight
        self._last = weight


def _times(token: re.Match[str]) -> int:
    """Return how often a part is written out; without an end it is once more than it must be there."""
    if token["least"] is None:
        return 1
    least = int(token["least"])
    if token["range"] is None:
        return max(least, 1)
    return max(int(token["most"]) if token["most"] else least + 1, 1)


def _weight(part: str) -> int:
    if part == ".":
        return _ANY
    if part[0] == "[":
        entries = re.findall(r"\\(.)|[^\\]", part[1:-1], re.DOTALL)
        return sum(_HEAVY.get(letter, _ENTRY) for letter in entries)
    return _HEAVY.get(part[1:], _SINGLE)
