"""Compare the candidates of one claim with what is taken and with one another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from headrace.llm.dedupe.claims import Claimed, Reason, Rejected
from headrace.llm.dedupe.known import Entry, KnownNames
from headrace.llm.dedupe.meaning import Meaning
from headrace.llm.dedupe.normalising import Normalisation
from headrace.llm.dedupe.numerals import Form, form_of
from headrace.llm.dedupe.similarity import Similarity

#: Longer texts are no names, and comparing them would take long.
LONGEST_NAME = 200
#: After so many comparisons others have their turn: about 5 ms.
_TURN = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When two names count as one. Books of one scope should share a rule.

    By their normalised keys always; then by their letters (`similarity`, None for exact matches alone); then, where
    `meaning` is given, by what they mean.
    """

    normalisation: Normalisation = field(default_factory=Normalisation)
    similarity: Similarity | None = field(default_factory=Similarity)
    meaning: Meaning | None = None


@dataclass(slots=True)
class Candidate:
    """A name to be judged, and what is known of it so far."""

    index: int
    name: str
    key: str
    form: Form
    #: the first taken name that is too alike
    match: Entry | None = None
    #: how many names with its numerals it was compared with
    looked: int = 0


class Batch:
    """The candidates of one claim. `look` may be repeated as names become known; each pair is compared once."""

    def __init__(self, names: Sequence[str], rule: Rule) -> None:
        self._rule = rule
        self._candidates: list[Candidate] = []
        for index, name in enumerate(names):
            key = rule.normalisation(name) if len(name) <= LONGEST_NAME else ""
            self._candidates.append(Candidate(index, name, key, form_of(key)))

    async def look(self, known: KnownNames) -> None:
        """Compare every candidate that is still free with the names it was not compared with yet."""
        compared = 0
        for candidate in self._candidates:
            if not candidate.key or candidate.match is not None:
                continue
            group = known.group(candidate.form.numerals)
            texts, entries = group.texts[candidate.looked :], group.entries[candidate.looked :]
            names = [entry.name for entry in entries]
            place = await self._first_match(candidate, texts, names)
            candidate.match = None if place is None else entries[place]
            candidate.looked = len(group.texts)
            compared += len(texts)
            if compared > _TURN:
                compared = 0
                await asyncio.sleep(0)

    def forget_after(self, known: KnownNames, order: int) -> None:
        """Take back what was compared with names behind a place in the order, which are known no more."""
        for candidate in self._candidates:
            candidate.looked = min(candidate.looked, len(known.group(candidate.form.numerals).texts))
            if candidate.match is not None and candidate.match.order > order:
                candidate.match = None

    def settle(self, known: KnownNames, owner: UUID, limit: int | None) -> tuple[Claimed, list[Candidate]]:
        """Return the answer there will be if nobody else takes a name meanwhile, and the candidates it accepts."""
        accepted: list[Candidate] = []
        ours = KnownNames()
        rejected: list[Rejected] = []
        spare: list[str] = []
        for candidate in self._candidates:
            if limit is not None and len(accepted) >= limit:
                spare.append(candidate.name)
            elif refusal := self._refusal(candidate, known, ours, owner):
                because, reason = refusal
                rejected.append(Rejected(candidate.name, because, reason, candidate.index))
            else:
                accepted.append(candidate)
                ours.add(candidate.key, candidate.name, owner)
        places = tuple(each.index for each in accepted)
        return Claimed(tuple(ours.names()), tuple(rejected), tuple(spare), places), accepted

    def _refusal(
        self, candidate: Candidate, known: KnownNames, ours: KnownNames, owner: UUID
    ) -> tuple[str, Reason] | None:
        """Return what stands in the way of a candidate, and how; `ours`: what this claim has accepted so far."""
        if not candidate.key:
            return "", Reason.NOT_A_NAME
        if twin := ours.find(candidate.key):
            return twin.name, Reason.WITHIN_BATCH
        if holder := known.find(candidate.key):
            # Its owner asks again, after a crash: it was compared when it was taken.
            return None if holder.owner == owner else (holder.name, Reason.EXACT)
        if match := candidate.match:
            return match.name, Reason.WITHIN_BATCH if ours.find(match.key) else Reason.SIMILAR
        peers = ours.group(candidate.form.numerals)
        places = self._matches(candidate, peers.texts, [each.name for each in peers.entries])
        return (peers.entries[places[0]].name, Reason.WITHIN_BATCH) if places else None

    async def _first_match(self, candidate: Candidate, texts: Sequence[str], names: Sequence[str]) -> int | None:
        if self._rule.meaning is not None:
            await self._rule.meaning.learn([each.name for each in self._candidates if each.key])
            await self._rule.meaning.learn(names)
        return min(self._matches(candidate, texts, names), default=None)

    def _matches(self, candidate: Candidate, texts: Sequence[str], names: Sequence[str]) -> list[int]:
        """Return the places of the names that are too alike by letters or meaning, in order."""
        similarity, meaning = self._rule.similarity, self._rule.meaning
        found = similarity.matches(candidate.form.text, texts) if similarity else []
        return sorted({*found, *(meaning.matches(candidate.name, names) if meaning else [])})
