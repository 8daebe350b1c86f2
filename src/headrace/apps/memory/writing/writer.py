"""What the model makes of a flush: a log of what was told, and from it facts, tags, and changes of the profile."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace import BadOutputError
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.events import Tag
from headrace.apps.memory.data.profiles import Fact, Slot
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.writing import summary as summaries
from headrace.apps.memory.writing.asking import USELESS, Answered, Ask, Asking, Step, all_of
from headrace.apps.memory.writing.facts import joined_facts
from headrace.apps.memory.writing.growth import crowded, memos_of, overlong, regrouped, replace_topic
from headrace.apps.memory.writing.language import SEPARATOR, Language, is_written_in, language_of
from headrace.apps.memory.writing.merging import Draft, Place, Work, begin, changes_of, decide
from headrace.apps.memory.writing.prompts import question, system_of
from headrace.apps.memory.writing.shapes import FoundFact, FoundTag, Group, ShortMemo, decision_of
from headrace.apps.memory.writing.terms import Terms
from headrace.apps.memory.writing.tokens import count_tokens, truncated

if TYPE_CHECKING:
    from headrace.llm.gateway import LLM

EXTRACT_ROOM, TAGS_ROOM, ORGANISE_ROOM, SHORTEN_ROOM = 1_500, 300, 2_000, 300
#: Of a merge: for each slot, and at most.
SLOT_ROOM, MERGE_ROOM = 200, 4_000
#: Slots of a profile whose names the model is shown.
_MOST_NAMES = 200


class Writer:
    """Asks the model about one flush. Make one for each job: its questions are checkpoints of that job.

    writer = Writer(app.llm, Terms.usual(), ctx.step)
    summary = await writer.summarise(blobs)
    result = await writer.write(summary, profile, language_of(summary))
    """

    def __init__(self, llm: LLM, terms: Terms, step: Step, *, sample: int = 0) -> None:
        """`step`: runs a function once per job, such as `Context.step`. `sample`: of a flush that failed before, how
        often: answers that were of no use are bought anew."""
        self._asking, self._terms = Asking(llm, step, sample), terms

    async def summarise(self, blobs: Sequence[Blob]) -> str:
        """Return the log of a conversation, a line for each fact; "" where nothing of it is worth keeping.

        Lines read `- fact [mention DATE, event DATE] // info|event|schedule`. Depends on the messages and the terms
        alone. Raises BadOutputError where nothing of the answer can be read, RefusedError, other ProviderErrors.
        """
        return await summaries.summarise(self._asking, self._terms, blobs)

    async def summarise_together(self, parts: Sequence[tuple[str, Sequence[Blob]]]) -> dict[str, str | None]:
        """Return the logs of several users' conversations from one call, by the keys of `parts`.

        None: that one is to be asked alone, for the answer left it out, was not valid, was in the wrong language, or
        told of another part. The model sees no key. Raises ProviderErrors other than RefusedError and BadOutputError.
        """
        return await summaries.summarise_together(self._asking, self._terms, parts)

    async def write(self, summary: str, profile: Sequence[Slot], language: str) -> FlushResult:
        """Return what a log makes of a profile: its event, tags, facts, and changes that name the versions they are
        made from. `language`: "en", "zh", or "auto", that of the log.

        Raises BadOutputError where nothing of the facts can be read, RefusedError, other ProviderErrors.
        """
        lang = language_of(summary, language)
        if not summary.strip():
            return FlushResult(lang)
        (facts, warnings), (tags, more) = await _both(
            self._facts(summary, profile, lang), self._tags(summary, lang)
        )  # fmt: skip
        result = FlushResult(lang, summary, tags, facts, (), (*warnings, *more))
        return await self._changed(result, profile)

    async def merge_again(self, result: FlushResult, profile: Sequence[Slot]) -> FlushResult:
        """Return the result with changes made from a newer profile. Facts and tags are not asked for again."""
        return await self._changed(replace(result, changes=()), profile)

    async def _facts(
        self, summary: str, profile: Sequence[Slot], lang: Language
    ) -> tuple[tuple[Fact, ...], tuple[str, ...]]:
        ask = self._ask("extract", lang, EXTRACT_ROOM, _names(profile), _log(summary))
        found = await self._asking.items(ask, FoundFact)
        warnings = list(_losses("facts", found))
        if found.values and not _are_in(found.values, lang):
            again = await self._asking.items(summaries.reminded(ask, lang), FoundFact)
            is_better = again.values and _are_in(again.values, lang)
            found = again if is_better else found
            warnings = [*_losses("facts", found), *([] if is_better else ["facts: not in the language asked for"])]
        if found.is_empty_handed:
            raise BadOutputError("Nothing of the facts could be read. The flush is tried again later.")
        told = (Fact(one.topic, one.sub_topic, one.memo) for one in found.values)
        return joined_facts(told, self._terms, SEPARATOR[lang]), tuple(warnings)

    async def _tags(self, summary: str, lang: Language) -> tuple[tuple[Tag, ...], tuple[str, ...]]:
        if not self._terms.tags:
            return (), ()
        try:
            found = await self._asking.items(self._ask("tags", lang, TAGS_ROOM, _log(summary)), FoundTag)
        except USELESS as error:
            return (), (f"tags: no answer of use ({error.code})",)
        named = ((self._terms.tag(one.tag), one.value) for one in found.values)
        tags = dict.fromkeys(Tag(name, value) for name, value in named if name is not None)
        return tuple(sorted(tags, key=lambda tag: (tag.tag, tag.value))), tuple(_losses("tags", found))

    async def _changed(self, result: FlushResult, profile: Sequence[Slot]) -> FlushResult:
        lang: Language = "zh" if result.language == "zh" else "en"
        work = begin(result.facts, profile)
        before = {slot.place: slot.content for slot in profile}
        warnings = list(result.warnings)
        if work.open:
            warnings += await self._merge(work, lang)
        for topic in crowded(work.draft, before, self._terms.limits.sub_topics):
            if self._terms.may_grow(topic):
                warnings += await self._organise(work.draft, topic, lang)
        warnings += await self._shorten(work.draft, overlong(work.draft, before, self._terms.limits.memo_tokens), lang)
        changes = changes_of(work.draft, profile)
        return replace(result, changes=changes, warnings=tuple(dict.fromkeys(warnings)))

    async def _merge(self, work: Work, lang: Language) -> list[str]:
        slots = [
            {"number": number, "topic": one.slot.topic, "sub_topic": one.slot.sub_topic, "current": one.slot.content,
             "new": one.memo}
            for number, one in enumerate(work.open, start=1)
        ]  # fmt: skip
        count = len(slots)
        ask = self._ask("merge", lang, min(SLOT_ROOM * (count + 1), MERGE_ROOM), slots)
        try:
            found: Iterable[Any] = (await self._asking.items(ask, decision_of(count), expected=count)).values
        except USELESS:
            found = ()
        return decide(work, found, SEPARATOR[lang])

    async def _organise(self, draft: Draft, topic: str, lang: Language) -> list[str]:
        memos, most = memos_of(draft, topic), self._terms.limits.sub_topics_after
        shown = [
            {"number": number, "topic": topic, "sub_topic": sub, "memo": memo}
            for number, (sub, memo) in enumerate(memos, start=1)
        ]
        ask = self._ask("organise", lang, ORGANISE_ROOM, shown, most=most)
        try:
            groups = (await self._asking.items(ask, Group)).values
        except USELESS:
            groups = ()
        named = (
            group.model_copy(update={"sub_topic": place[1]})
            for group in groups
            if (place := self._terms.place(topic, group.sub_topic)) is not None
        )
        found = regrouped(memos, named, most=most, separator=SEPARATOR[lang])
        if found is None:
            return [f"organise: no answer of use on {topic}; left as it is"]
        replace_topic(draft, topic, found)
        return []

    async def _shorten(self, draft: Draft, places: Sequence[Place], lang: Language) -> list[str]:
        found = await all_of([self._short(draft[place], lang) for place in places])
        draft.update(zip(places, (text for text, _ in found), strict=True))
        return [
            f"shorten: {topic}/{sub} was cut by rule"
            for (topic, sub), (_, is_cut) in zip(places, found, strict=True)
            if is_cut
        ]

    async def _short(self, memo: str, lang: Language) -> tuple[str, bool]:
        most = self._terms.limits.memo_tokens_after
        # Fewer words than tokens: a model counts words badly, and those of English take more than one.
        words = most if lang == "zh" else most * 2 // 3
        ask = self._ask("shorten", lang, SHORTEN_ROOM, [{"memo": memo}], words=words)
        try:
            said = " ".join((await self._asking.one(ask, ShortMemo)).memo.split())
        except USELESS:
            said = memo
        return truncated(said, most), count_tokens(said) > most

    def _ask(self, name: Any, lang: Language, room: int, *data: Iterable[Mapping[str, Any]], **told: object) -> Ask:
        return Ask(name, system_of(name, lang, self._terms, **told), question(name, lang, *data), room)


def _names(profile: Iterable[Slot]) -> list[dict[str, Any]]:
    """Return the slots that a profile has, most often changed first."""
    slots = sorted(profile, key=lambda slot: (-slot.update_hits, slot.place))[:_MOST_NAMES]
    return [{"topic": topic, "sub_topic": sub} for topic, sub in sorted(slot.place for slot in slots)]


def _log(summary: str) -> list[dict[str, Any]]:
    return [{"log": line} for line in summary.splitlines() if line.strip()]


def _are_in(facts: Iterable[FoundFact], lang: Language) -> bool:
    return is_written_in([fact.memo for fact in facts], lang)


def _losses(what: str, found: Answered[Any]) -> Iterable[str]:
    if found.lost:
        yield f"{what}: {found.lost} of the answer could not be read"
    if not found.is_complete:
        yield f"{what}: the answer was cut, and its rest could not be had"


async def _both(first: Coroutine[Any, Any, Any], second: Coroutine[Any, Any, Any]) -> tuple[Any, Any]:
    one, two = await all_of([first, second])
    return one, two
