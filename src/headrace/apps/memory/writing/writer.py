"""What the model makes of a flush: a log of what was told, and from it facts, tags, and changes of the profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.profiles import Slot
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.writing import summary as summaries
from headrace.apps.memory.writing.asking import USELESS, Asking, Step, all_of, ask_for, both
from headrace.apps.memory.writing.finding import find_facts, find_tags
from headrace.apps.memory.writing.growth import crowded, memos_of, overlong, regrouped, replace_topic
from headrace.apps.memory.writing.language import SEPARATOR, Language, language_of
from headrace.apps.memory.writing.log import told_in
from headrace.apps.memory.writing.merging import Draft, Place, Work, begin, changes_of, decide
from headrace.apps.memory.writing.shapes import Group, ShortMemo, decision_of
from headrace.apps.memory.writing.terms import Terms
from headrace.apps.memory.writing.tokens import count_tokens, truncated

if TYPE_CHECKING:
    from headrace.llm.gateway import LLM

#: Tokens of an answer, at most.
ORGANISE_ROOM, SHORTEN_ROOM = 2_000, 300
#: Of a merge: for each slot, and at most.
SLOT_ROOM, MERGE_ROOM = 200, 4_000


class Writer:
    """Asks the model about one flush. Make one for each job: its questions are checkpoints of that job.

        writer = Writer(app.llm, Terms.usual(), ctx.step)
        summary = await writer.summarise(blobs)
        result = await writer.write(summary, profile, "auto")

    Its methods raise NoModelError where the model is one that answers only plainly, such as the built-in one.
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

    def summary_content(self, blobs: Sequence[Blob]) -> tuple[str, ...]:
        """Return all that the log of a conversation depends on: what a cache of logs is keyed by.

        It says nothing of the user, and equal messages of two users have equal contents. Raises ConfigError where the
        model is not configured rightly.
        """
        llm = self._asking.llm
        return (llm.provider_name, llm.model_name, *summaries.content_of(self._terms, blobs))

    async def summarise_together(
        self, parts: Sequence[tuple[str, Sequence[Blob]]], languages: Mapping[str, str] | None = None
    ) -> dict[str, str | None]:
        """Return the logs of several users' conversations from one call, by the keys of `parts`.

        `languages`: of the parts whose language is not that of the terms, by key.
        None: that one is to be asked alone, for the answer left it out, was not valid, was in the wrong language, or
        told of another part. The model sees no key. Raises ProviderErrors other than RefusedError, BadOutputError and
        ContextTooLongError.
        """
        return await summaries.summarise_together(self._asking, self._terms, parts, languages or {})

    async def write(self, summary: str, profile: Sequence[Slot], language: str) -> FlushResult:
        """Return what a log makes of a profile: its event, tags, facts, and changes that name the versions they are
        made from. `language`: "en", "zh", or "auto", that of the terms, else of the log.

        Raises BadOutputError where nothing of the facts can be read, RefusedError, other ProviderErrors.
        """
        lang = language_of(told_in(summary), self._terms.language if language == "auto" else language)
        if not summary.strip():
            return FlushResult(lang)
        # The one that fails lets the other end: its answer is paid, and kept.
        found, seen = await both(
            find_facts(self._asking, self._terms, summary, profile, lang),
            find_tags(self._asking, self._terms, summary, lang),
        )
        result = FlushResult(lang, summary, seen.values, found.values, (), (*found.warnings, *seen.warnings))
        return await self._changed(result, profile)

    async def merge_again(self, result: FlushResult, profile: Sequence[Slot]) -> FlushResult:
        """Return the result with changes made from a newer profile. Facts and tags are not asked for again."""
        return await self._changed(replace(result, changes=()), profile)

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
        ask = ask_for(self._terms, "merge", lang, min(SLOT_ROOM * (count + 1), MERGE_ROOM), slots)
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
        ask = ask_for(self._terms, "organise", lang, ORGANISE_ROOM, shown, most=most)
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
        # Two of the same words are one question.
        memos = list(dict.fromkeys(draft[place] for place in places))
        found = dict(zip(memos, await all_of([self._short(memo, lang) for memo in memos]), strict=True))
        cut = [f"shorten: {topic}/{sub} was cut by rule" for topic, sub in places if found[draft[topic, sub]][1]]
        draft.update({place: found[draft[place]][0] for place in places})
        return cut

    async def _short(self, memo: str, lang: Language) -> tuple[str, bool]:
        most = self._terms.limits.memo_tokens_after
        # Fewer words than tokens: a model counts words badly, and those of English take more than one.
        words = most if lang == "zh" else most * 2 // 3
        ask = ask_for(self._terms, "shorten", lang, SHORTEN_ROOM, [{"memo": memo}], words=words)
        try:
            said = " ".join((await self._asking.one(ask, ShortMemo)).memo.split())
        except USELESS:
            said = memo
        return truncated(said, most), count_tokens(said) > most
