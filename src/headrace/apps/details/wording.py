"""What a model is asked: what all calls share first, what tells parallel calls apart last.

Calls of one batch run side by side and know nothing of one another: each gets another slant, so that their names
seldom collide. The last line names the subtask and the ask, so that no two asks of anybody share a stored answer.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.apps.details.kinds import Kind, even_parts, kind_of

#: Names to avoid in one prompt; the newest are told.
MOST_AVOIDED = 100
#: How freely names are invented.
TEMPERATURE = 0.9

SYSTEM = (
    "You invent details for stories and games. Answer with a list of objects: name (never empty, unlike all others), "
    "description (one or two sentences) and attributes (two or three facts, each a word with a plain value). "
    "Give exactly as many as you are asked for, and nothing else."
)
_THEMES = (
    *("the sea", "mountains and mines", "forests", "a city at night", "deserts", "frost and snow", "trade and money"),
    *(
        "war and its end",
        "crafts and tools",
        "faith and ritual",
        "music and song",
        "books and secrets",
        "herbs and food",
    ),
    *(
        "beasts",
        "the dead",
        "stars and weather",
        "fire and forge",
        "rivers and rain",
        "law and crime",
        "children's play",
    ),
    *("courts and nobles", "travel and roads", "dreams", "machines", "farms", "healing", "ruins", "festivals"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One call of a subtask, with the asks for what is missing of it."""

    #: The subtask's own where that is one call.
    subtask_id: str
    type: str
    count: int
    style: str = ""
    #: Which of the batch's calls it is, from 0, and how many there are.
    batch_index: int = 0
    batches: int = 1
    #: Which ask of the call it is, from 0: a further one must not find the stored answer of an earlier one.
    ask: int = 0


def parallel_calls(whole: Slice, calls: int) -> tuple[Slice, ...]:
    """Return the calls that write a subtask side by side; `whole` is what one call would write.

    >>> [(call.subtask_id, call.count) for call in parallel_calls(Slice(subtask_id="7:3", type="skill", count=5), 2)]
    [('7:3.0', 3), ('7:3.1', 2)]
    """
    if calls == 1:
        return (whole,)
    return tuple(
        replace(whole, subtask_id=f"{whole.subtask_id}.{number}", count=size, batch_index=whole.batch_index + number)
        for number, size in enumerate(even_parts(whole.count, calls))
    )


@dataclass(frozen=True, slots=True)
class Wording:
    """System message and prompt of one ask."""

    system: str
    prompt: str


def word(part: Slice, avoid: Sequence[str] = ()) -> Wording:
    """Return how to ask for a part of a batch; `avoid`: names that are taken, oldest first.

    >>> print(word(Slice(subtask_id="7:0", type="skill", count=3, style="grim"), ["Ember Step"]).prompt)
    Kind: skills
    Style: grim
    Count: 3
    Slant: as unlike one another as can be
    Taken names, which are not to be used, nor any like them: "Ember Step"
    Request 7:0/0
    """
    kind = kind_of(part.type)
    lines = [f"Kind: {kind.plural}"]
    if part.style:
        lines.append(f"Style: {' '.join(part.style.split())}")
    lines += [f"Count: {part.count}", f"Slant: {slant(kind, part.batch_index, part.batches)}"]
    if avoid:
        taken = ", ".join(f'"{name}"' for name in avoid[-MOST_AVOIDED:])
        lines.append(f"Taken names, which are not to be used, nor any like them: {taken}")
    return Wording(SYSTEM, "\n".join([*lines, f"Request {part.subtask_id}/{part.ask}"]))


def slant(kind: Kind, index: int, batches: int) -> str:
    """Return what tells one of parallel calls from the others: letters of its own, or a theme.

    >>> slant(kind_of("character_name"), 1, 13), slant(kind_of("item"), 1, 13)
    ('names that begin with B or O', 'mountains and mines')
    """
    if batches == 1:
        return "as unlike one another as can be"
    if not kind.by_initials:
        second = f", and {_THEMES[(index + 1) % len(_THEMES)]}" if index >= len(_THEMES) else ""
        return f"{_THEMES[index % len(_THEMES)]}{second}"
    letters = string.ascii_uppercase[index % len(string.ascii_uppercase) :: batches]
    theme = f", and think of {_THEMES[index % len(_THEMES)]}" if batches > len(string.ascii_uppercase) else ""
    return f"names that begin with {' or '.join(letters)}{theme}"
