"""Rules of the writing, whatever the values: nothing is lost, nothing is cut, nothing is counted wrongly."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidInputError
from headrace.apps.memory.data.events import Gist, gists_of
from headrace.apps.memory.data.profiles import Fact, Slot
from headrace.apps.memory.writing import Terms, count_tokens, language_of, pack_context
from headrace.apps.memory.writing.asking import both
from headrace.apps.memory.writing.facts import joined_facts
from headrace.apps.memory.writing.growth import crowded, memos_of, overlong, regrouped, replace_topic
from headrace.apps.memory.writing.log import log_of
from headrace.apps.memory.writing.merging import begin, changes_of, decide
from headrace.apps.memory.writing.messages import lines_of, portions
from headrace.apps.memory.writing.prompts import common, question, system_of
from headrace.apps.memory.writing.quoting import quoted
from headrace.apps.memory.writing.shapes import Decision, Group, LogLine
from headrace.apps.memory.writing.terms import unified
from headrace.apps.memory.writing.tokens import truncated
from tests.unit.memory_writing import applied, blob

NOW = datetime(2026, 5, 2, tzinfo=UTC)
TEXT = st.text(max_size=60)
WORDS = st.text(alphabet="ab 住在;；.", min_size=1, max_size=20).filter(lambda text: text.strip(" ;；."))
NAMES = st.sampled_from(["work", "Work", "工作", "interest", "pets", "my pets"])
FACTS = st.lists(st.builds(Fact, NAMES, st.sampled_from(["title", "职位", "cat", "Old Cat"]), WORDS), max_size=8)
PLACES = st.tuples(st.sampled_from(["work", "pets", "interest"]), st.sampled_from(["title", "cat", "old_cat", "x"]))
PROFILES = st.dictionaries(PLACES, st.tuples(WORDS, st.integers(1, 9)), max_size=8).map(
    lambda told: [Slot(*place, content, version) for place, (content, version) in told.items()]
)
DECISIONS = st.lists(
    st.builds(Decision, number=st.integers(1, 9), action=st.sampled_from(["append", "update", "abort"]), memo=WORDS),
    max_size=9,
)


@given(FACTS, PROFILES, DECISIONS)
def test_changes_make_the_profile_that_was_drafted(
    facts: list[Fact], profile: list[Slot], said: list[Decision]
) -> None:
    """One change a slot at most, in order, each from the version that is there; equal inputs give equal changes."""
    joined = joined_facts(facts, Terms.usual(), "; ")
    work = begin(joined, profile)
    decide(work, said, "; ")
    changes = changes_of(work.draft, profile)
    assert {slot.place: slot.content for slot in applied(profile, changes)} == work.draft
    places = [(change.topic, change.sub_topic) for change in changes]
    assert places == sorted(set(places))
    again = begin(joined_facts(facts, Terms.usual(), "; "), profile[::-1])
    decide(again, said, "; ")
    assert changes_of(again.draft, profile[::-1]) == changes


@given(FACTS, PROFILES)
def test_what_nobody_decided_is_appended(facts: list[Fact], profile: list[Slot]) -> None:
    """Every fact is in the profile in the end, beside what was there, and each one without an answer has a warning."""
    joined = joined_facts(facts, Terms.usual(), "; ")
    work = begin(joined, profile)
    warnings = decide(work, [], "; ")
    assert len(warnings) == len(work.open)
    for slot in profile:
        assert work.draft[slot.place].startswith(slot.content.rstrip())
    everything = " ".join(work.draft.values()).casefold()
    for fact in joined:
        parts = fact.memo.casefold().replace("；", ";").split(";")
        assert all(part.strip(" .") in " ".join(everything.split()) for part in parts)


@given(FACTS)
def test_names_are_unified_and_slots_are_one(facts: list[Fact]) -> None:
    """No two facts of one slot, none without words, and doing it twice changes nothing."""
    joined = joined_facts(facts, Terms.usual(), "; ")
    places = [(fact.topic, fact.sub_topic) for fact in joined]
    assert places == sorted(set(places))
    assert all(unified(name) == name for place in places for name in place)
    assert joined_facts(joined, Terms.usual(), "; ") == joined
    strict = joined_facts(facts, replace(Terms.usual(), strict=True), "; ")
    assert {(fact.topic, fact.sub_topic) for fact in strict} <= {("work", "title")}


def test_a_fact_without_words_is_none() -> None:
    """Blanks are no memo, and no name."""
    facts = [Fact("work", "title", " \n "), Fact(" ", "title", "smith"), Fact("work", "-", "smith")]
    assert joined_facts(facts, Terms.usual(), "; ") == ()


async def test_work_at_once_ends_before_its_failure_is_told() -> None:
    """What is paid is waited for, also when its neighbour fails at once."""
    ended = []

    async def fail() -> None:
        raise ValueError("at once")

    async def go_on() -> None:
        for _ in range(9):
            await asyncio.sleep(0)
        ended.append(True)

    with pytest.raises(ValueError, match="at once"):
        await both(fail(), go_on())
    assert ended == [True]


@given(st.text(max_size=200))
def test_a_unified_name_stays_as_it_is(name: str) -> None:
    """It has no gaps but `_`, and is short."""
    once = unified(name)
    assert unified(once) == once
    assert len(once) <= 64
    assert not any(sign.isspace() for sign in once)


def test_a_slot_that_others_spelt_otherwise_is_the_same() -> None:
    """A profile that was edited by hand gets no twin of a slot."""
    work = begin([Fact("my_pets", "old_cat", "Tom")], [Slot("My Pets", "Old Cat", "Bo", version=4)])
    assert [one.slot.version for one in work.open] == [4]
    assert work.draft == {("My Pets", "Old Cat"): "Bo"}


GROUPS = st.lists(
    st.builds(Group, sub_topic=WORDS, memo=WORDS, numbers=st.lists(st.integers(-1, 12), min_size=1, max_size=4)),
    max_size=12,
)


@given(st.lists(WORDS, min_size=1, max_size=10), GROUPS, st.integers(1, 8))
def test_putting_in_order_keeps_to_the_limit_and_loses_no_memo(
    memos: list[str], groups: list[Group], most: int
) -> None:
    """What no group took stands word for word."""
    told = [(f"sub{number}", f"<{number}> {memo}") for number, memo in enumerate(memos)]
    found = regrouped(told, groups, most=most, separator="; ")
    taken = {number for group in groups for number in group.numbers}
    if found is None:
        assert not any(
            unified(group.sub_topic) and set(group.numbers) & set(range(1, len(told) + 1)) for group in groups
        )
        return
    assert 1 <= len(found) <= most
    everything = "; ".join(found.values())
    assert all(memo in everything for number, (_, memo) in enumerate(told, start=1) if number not in taken)


def test_only_what_a_flush_made_grow_is_put_in_order() -> None:
    """Topics and memos that it did not touch are another flush's."""
    before = {("a", str(number)): "x" * 900 for number in range(4)}
    draft = {**before, ("b", "1"): "y" * 900}
    assert crowded(draft, before, 3) == []
    assert crowded({**draft, ("a", "0"): "z"}, before, 3) == ["a"]
    assert overlong(draft, before, 128) == [("b", "1")]
    replace_topic(draft, "a", {"all": "z"})
    assert draft == {("a", "all"): "z", ("b", "1"): "y" * 900}
    assert memos_of(draft, "a") == [("all", "z")]


@given(st.text(max_size=120), st.text(max_size=120))
def test_tokens_of_two_texts_are_at_most_those_of_each(one: str, other: str) -> None:
    """So a prompt that is packed line by line fits."""
    assert max(count_tokens(one), count_tokens(other)) <= count_tokens(one + other)
    assert count_tokens(one + other) <= count_tokens(one) + count_tokens(other)


@pytest.mark.parametrize(
    ("text", "least", "most"), [("the user lives in Lyon and bakes bread", 8, 11), ("用户住在里昂", 5, 7)]
)
def test_tokens_are_about_those_of_real_models(text: str, least: int, most: int) -> None:
    """English four letters a token, Chinese one character."""
    assert least <= count_tokens(text) <= most


@given(st.text(max_size=400), st.integers(1, 80))
def test_a_text_that_is_cut_fits_and_is_its_beginning(text: str, most: int) -> None:
    """Whatever the text is made of."""
    cut = truncated(text, most)
    assert count_tokens(cut) <= most or cut == text
    assert cut == text or not cut or text.startswith(cut.removesuffix("…"))


SLOTS = st.lists(
    st.builds(Slot, st.just("interest"), st.text(max_size=9), TEXT, st.just(1), st.integers(0, 9)), max_size=12
)
GISTS = st.lists(
    st.builds(Gist, st.just(UUID(int=1)), st.integers(0, 9), st.text(min_size=1, max_size=80), st.just(NOW)),
    max_size=12,
)


@given(SLOTS, GISTS, st.integers(-1, 200), st.sampled_from(["en", "zh", "auto"]))
def test_a_context_keeps_to_its_budget_and_cuts_no_line(
    profile: list[Slot], gists: list[Gist], budget: int, language: Literal["en", "zh", "auto"]
) -> None:
    """Every line is a heading, or one of those that a budget without end would have."""
    text = pack_context(profile, gists, budget=budget, language=language)
    assert count_tokens(text) <= max(budget, 0)
    assert set(text.split("\n")) <= {"", *pack_context(profile, gists, budget=10**6, language=language).split("\n")}


def test_a_context_shows_what_matters_most_first() -> None:
    """What was changed most often, then lately; gists in their order; what one part leaves the other may take."""
    profile = [
        Slot("work", "title", "smith", update_hits=2),
        Slot("interest", "food", "rye", updated_at=NOW - timedelta(days=9)),
        Slot("pets", "cat", "Tom", updated_at=NOW),
    ]
    gists = [Gist(UUID(int=1), number, f"gist number {number}", NOW) for number in range(3)]
    assert pack_context(profile, gists, budget=100, language="zh").split("\n") == [
        "# 关于用户的已知信息", "- 工作/职位：smith", "- pets/cat：Tom", "- 兴趣/饮食：rye",
        "# 发生过的事", "- gist number 0", "- gist number 1", "- gist number 2",
    ]  # fmt: skip
    small = pack_context(profile, gists, budget=26, language="en").split("\n")
    assert small == [
        "# Known about the user", "- work/title: smith", "- pets/cat: Tom", "# What happened", "- gist number 0",
    ]  # fmt: skip
    assert "pets" not in pack_context(profile, gists, budget=24, language="en")
    assert pack_context([], gists, budget=15).split("\n") == ["# What happened", "- gist number 0", "- gist number 1"]
    assert pack_context(profile, [], budget=3) == ""


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)))
def test_quoted_data_is_one_line_without_marks_and_says_the_same(value: object) -> None:
    """Nothing of what users wrote is lost, and nothing of it can be taken for a mark."""
    line = quoted(value)
    assert json.loads(line) == value
    assert len(line.splitlines()) == 1
    assert not set(line) & set("<>＜＞﹤﹥‹›〈〉")


LOG_LINES = st.builds(
    LogLine, text=st.text(min_size=1, max_size=60).filter(str.strip),
    kind=st.sampled_from(["info", "event", "schedule"]), mention=st.none() | st.text(max_size=12),
    event=st.none() | st.text(max_size=12),
)  # fmt: skip


@given(st.lists(LOG_LINES, max_size=5))
def test_a_log_has_a_gist_for_each_item(items: list[LogLine]) -> None:
    """However the text is broken into lines, an item is one line; equal ones are one."""
    log = log_of(items)
    lines = log.split("\n") if log else []
    assert len(lines) == len(set(lines)) <= len(items)
    assert len(gists_of(log)) == len(lines)
    assert all(line.rpartition(" // ")[2] in ("info", "event", "schedule") for line in lines)


@pytest.mark.parametrize(
    ("said", "told"),
    [("2026-05-02", "2026-05-02"), ("2026-05", "2026-05"), ("2026", "2026"), ("2026-05-02T10:00:00Z", "2026-05-02"),
     ("2026-13-02", None), ("2026-02-30", None), ("yesterday", None), ("", None), (None, None), ("0000", None)],
)  # fmt: skip
def test_dates_of_a_log_are_dates(said: str | None, told: str | None) -> None:
    """What is none of the calendar is left out; the fact stays."""
    line = log_of([LogLine(text="The user moved", kind="event", mention=None, event=said)])
    assert line == f"- The user moved{f' [event {told}]' if told else ''} // event"


@given(st.lists(st.text(min_size=1, max_size=300), max_size=6), st.integers(80, 200))
def test_portions_leave_nothing_out_and_fit(says: list[str], most: int) -> None:
    """In order, each within its tokens."""
    lines = lines_of([blob([{"role": "user", "content": text, "created_at": "2026-05-02"} for text in says])])
    found = portions(lines, most)
    assert "".join(line["says"] for some in found for line in some) == "".join(line["says"] for line in lines)
    assert all(sum(count_tokens(quoted(line)) for line in some) <= most for some in found)


@pytest.mark.parametrize(
    "messages",
    [None, "text", 7, [None, 3, "text"], [{}], [{"content": 4}], [{"role": "user"}], {"role": "user", "content": "x"}],
)
def test_a_blob_of_another_shape_says_nothing(messages: object) -> None:
    """Other programs may write the table: what is no message is passed over."""
    assert lines_of([replace(blob([]), data={"messages": messages})]) == []


def test_who_speaks_is_told_and_an_alias_is_no_user() -> None:
    """Only `user` is the user; an unknown role is somebody else."""
    messages = [
        {"role": "user", "content": "a", "alias": "Ann"}, {"role": "assistant", "content": "b", "alias": "Bo"},
        {"role": "developer", "content": "c"}, {"content": "d"},
    ]  # fmt: skip
    assert [line["who"] for line in lines_of([blob(messages)])] == ["user", "assistant (Bo)", "assistant", "user"]
    assert lines_of([blob(messages)])[0]["at"] == "2026-05-02"


def test_the_language_is_that_of_the_words() -> None:
    """Names and product words of the other language do not turn it; a wish for none that there is gets an error."""
    assert [language_of(text) for text in ("我在 Google 工作", "I met 小明 in 北京 with friends there", "", "🙂")] == [
        "zh", "en", "en", "en",
    ]  # fmt: skip
    with pytest.raises(InvalidInputError, match="language must be auto, en or zh, got 'fr'"):
        language_of("bonjour", "fr")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["summary", "shared", "extract", "tags", "merge", "organise", "shorten"])
def test_every_question_is_whole_in_both_languages(
    name: Literal["summary", "shared", "extract", "tags", "merge", "organise", "shorten"], language: Literal["en", "zh"]
) -> None:
    """It says its task and version, that data are data, and leaves no place unfilled."""
    system = system_of(name, language, Terms.usual(), most=8, words=40)
    assert f"{name} (memory-" in system or f"{name}（memory-" in system
    assert common(language)["data_rule"] in system
    assert "$" not in system
    assert question(name, language, [{"log": "x"}]).startswith('<data>\n{"log": "x"}\n</data>\n')
    assert set(common("en")) == set(common("zh"))
