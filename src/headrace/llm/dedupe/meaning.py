"""Names that mean the same with other letters, `Frost Keep` and `Icehold`: told by embeddings, where some are given."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.model.errors import InvalidInputError
from headrace.model.llm import Embeddings

#: Takes names and returns a vector for each: `app.llm.embed`, or any function of your own.
Embed: TypeAlias = Callable[[tuple[str, ...]], Awaitable[Embeddings | Sequence[Sequence[float]]]]

#: So many names are embedded in one call.
_CALL_SIZE = 256
#: Fewer labelled pairs of either kind say nothing about a threshold.
_LEAST_PAIRS = 10


class Meaning:
    """When two names mean the same: their vectors are at least so close.

    `embed`: takes a tuple of names, returns a vector for each. `threshold`: the least cosine, above 0 and at most 1. It
    has no default, since no value fits two models: take it from `calibrate`. Vectors are kept for the life of this
    object, about 32 bytes per dimension and name; comparing takes about 5 ms per 1,000 names of 1,024 dimensions and
    candidate, so scopes should be of some thousand names. Raises InvalidInputError for another threshold.
    """

    def __init__(self, embed: Embed, *, threshold: float) -> None:
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
            raise InvalidInputError("threshold", "must be a cosine above 0 and at most 1; see calibrate()", threshold)
        self.threshold = threshold
        self._embed = embed
        self._vectors: dict[str, tuple[float, ...]] = {}
        # Of unit vectors a cosine of c is a distance of sqrt(2 - 2c), which the standard library computes in C.
        self._distance = math.sqrt(2 - 2 * threshold) + 1e-9

    async def learn(self, names: Iterable[str]) -> None:
        """Get the vectors of names without one. Raises what `embed` raises, InvalidInputError for bad vectors."""
        missing = [name for name in dict.fromkeys(names) if name not in self._vectors]
        for start in range(0, len(missing), _CALL_SIZE):
            part = tuple(missing[start : start + _CALL_SIZE])
            self._vectors.update(zip(part, await _unit_vectors(self._embed, part), strict=True))

    def matches(self, name: str, others: Sequence[str]) -> list[int]:
        """Return the places of the names that mean the same, in order. All have been learnt."""
        vector = self._vectors[name]
        return [
            place for place, other in enumerate(others) if math.dist(vector, self._vectors[other]) <= self._distance
        ]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold, and how it does on the pairs it was taken from."""

    #: the least cosine of a duplicate
    threshold: float
    #: part of the duplicates that it finds
    recall: float
    #: part of the different pairs that it takes for duplicates
    wrong: float


async def calibrate(pairs: Iterable[tuple[str, str, bool]], embed: Embed, *, most_wrong: float = 0.05) -> Calibration:
    """Return the threshold for `Meaning` that finds most duplicates and mistakes few different names.

    `pairs`: two names and whether they are one, at least 10 of either kind: names of your own scope, labelled by hand,
    different ones that are close included. `most_wrong`: the largest part of the different pairs that may be taken for
    duplicates (default 0.05). Raises InvalidInputError for too few pairs, or where no threshold finds any duplicate.

    >>> import asyncio
    >>> async def embed(names: tuple[str, ...]) -> list[list[float]]:
    ...     return [[1.0, 0.1] if name.startswith(("Frost", "Ice")) else [0.1, 1.0] for name in names]
    >>> same = [("Frost Keep", f"Icehold {n}", True) for n in range(10)]
    >>> other = [("Frost Keep", f"Emberfall {n}", False) for n in range(10)]
    >>> found = asyncio.run(calibrate([*same, *other], embed))
    >>> round(found.threshold, 2), found.recall, found.wrong
    (0.6, 1.0, 0.0)
    """
    if isinstance(most_wrong, bool) or not 0 <= most_wrong < 1:
        raise InvalidInputError("most_wrong", "must be from 0 to below 1", most_wrong)
    labelled = list(pairs)
    for label in (True, False):
        count = sum(is_one is label for _, _, is_one in labelled)
        if count < _LEAST_PAIRS:
            kind = "duplicates" if label else "different names"
            raise InvalidInputError("pairs", f"must hold at least {_LEAST_PAIRS} pairs of {kind}", count)
    names = list(dict.fromkeys(name for first, second, _ in labelled for name in (first, second)))
    vectors = dict(zip(names, await _unit_vectors(embed, tuple(names)), strict=True))
    cosines = [(_cosine(vectors[first], vectors[second]), is_one) for first, second, is_one in labelled]
    return _best(cosines, most_wrong)


def _best(cosines: Sequence[tuple[float, bool]], most_wrong: float) -> Calibration:
    """The lowest threshold that mistakes few enough, halfway to the next pair below it."""
    same = sorted(cosine for cosine, is_one in cosines if is_one)
    different = sorted(cosine for cosine, is_one in cosines if not is_one)
    worst = different[-1 - int(most_wrong * len(different))]  # may be reached by none that count as different
    found = [cosine for cosine in same if cosine > max(worst, 0.0)]
    if not found:
        raise InvalidInputError("pairs", "must be told apart by the embeddings; no threshold does", f"{worst:.3f}")
    threshold = min((found[0] + max(worst, 0.0)) / 2, 1.0)
    wrong = sum(cosine >= threshold for cosine in different) / len(different)
    return Calibration(threshold, len(found) / len(same), wrong)


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    return 1 - math.dist(first, second) ** 2 / 2


async def _unit_vectors(embed: Embed, names: tuple[str, ...]) -> list[tuple[float, ...]]:
    answer: Any = await embed(names)
    vectors = answer.vectors if isinstance(answer, Embeddings) else answer
    if len(vectors) != len(names) or len({len(vector) for vector in vectors}) > 1:
        raise InvalidInputError("embed", f"must return {len(names)} vectors of one length", [len(v) for v in vectors])
    return [_unit(tuple(vector)) for vector in vectors]


def _unit(vector: tuple[float, ...]) -> tuple[float, ...]:
    length = math.hypot(*vector)
    if not math.isfinite(length) or length == 0:
        raise InvalidInputError("embed", "must return vectors of finite numbers that are not all 0", vector[:3])
    return tuple(number / length for number in vector)
