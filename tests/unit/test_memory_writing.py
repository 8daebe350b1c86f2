"""From messages to a profile, end to end on the scripted model, in English and Chinese."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from headrace import App, BadOutputError, Context, ProviderAuthError
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.events import Tag, gists_of
from headrace.apps.memory.data.profiles import Fact, Slot
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.samples.conversations import Sample, samples
from headrace.apps.memory.writing import NoModelError, Terms, Writer
from headrace.apps.memory.writing.terms import Limits, Term
from headrace.testing.provider import ChatRequest, Fault, FaultKind, ProviderProcess
from tests.unit.memory_writing import Steps, World, applied, blob, chat, contents, writing

WITH_TAGS = replace(
    Terms.usual(), tags=(Term("emotion", description={"en": "what the user feels", "zh": "用户的感受"}),)
)
#: One call in five is spoiled, each way as often as the others.
SPOILED = [
    Fault(kind=kind, rate=rate)
    for kind, rate in (
        (FaultKind.TRUNCATED_JSON, 0.04), (FaultKind.WRONG_JSON, 0.08), (FaultKind.BAD_ITEM, 0.12),
        (FaultKind.MALFORMED_JSON, 0.16), (FaultKind.LENGTH, 0.2),
    )
]  # fmt: skip


async def told(world: World, sample: Sample) -> tuple[list[Slot], list[FlushResult]]:
    """Work a sample's chats one after another, each as a job of its own."""
    profile: list[Slot] = []
    results = []
    for messages in sample.chats:
        writer = world.writer()
        summary = await writer.summarise([blob(messages, sample.user)])
        results.append(await writer.write(summary, profile, "auto"))
        profile = applied(profile, results[-1].changes)
    return profile, results


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.user)
async def test_a_conversation_becomes_the_profile_that_a_careful_reader_writes(sample: Sample) -> None:
    """Facts, corrections and what is added over two chats; the language is that of the messages."""
    async with writing() as world:
        profile, results = await told(world, sample)
    assert contents(profile) == list(sample.profile)
    assert [result.language for result in results] == [sample.language] * len(sample.chats)
    assert all(result.warnings == () for result in results)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.user)
async def test_a_model_without_strict_schemas_does_as_well(sample: Sample) -> None:
    """One that is told the schema in words."""
    async with writing(style="json") as world:
        profile, _ = await told(world, sample)
        assert all(request.schema is None and request.json_mode for request in world.mind.asked)
    assert contents(profile) == list(sample.profile)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.user)
async def test_two_runs_give_the_same(sample: Sample) -> None:
    """Whatever ran before: the results are equal to the letter."""
    async with writing() as one, writing() as other:
        assert await told(one, sample) == await told(other, sample)


@pytest.mark.parametrize(
    ("says", "line", "tag"),
    [("I feel glad.", "The user feels glad [mention 2026-05-02] // event", "glad"),
     ("我觉得很开心。", "用户感到很开心 [mention 2026-05-02] // event", "很开心")],
)  # fmt: skip
async def test_an_event_has_the_log_and_its_tags(says: str, line: str, tag: str) -> None:
    """The event tells what the log tells; its lines are gists; tags come from a call of their own."""
    async with writing(terms=WITH_TAGS) as world:
        writer = world.writer()
        result = await writer.write(await writer.summarise([chat(says)]), [], "auto")
        assert gists_of(result.event_tip) == (line,)
        assert result.tags == (Tag("emotion", tag),)
        assert world.mind.tasks == ["summary", "extract", "tags"]


async def test_without_tags_and_without_known_slots_two_calls_do() -> None:
    """A call that has nothing to find is not made."""
    async with writing() as world:
        writer = world.writer()
        await writer.write(await writer.summarise([chat("My name is Anna.")]), [], "auto")
        assert world.mind.tasks == ["summary", "extract"]


async def test_a_fact_that_is_known_costs_no_merge() -> None:
    """What the profile says already is no change."""
    async with writing() as world:
        known = [Slot("basic_info", "name", "anna"), Slot("interest", "likes", "rye bread; tea")]
        result = await world.writer().write(
            "- The user is called Anna // info\n- The user likes tea // info", known, "en"
        )
        assert (result.changes, world.mind.tasks) == ((), ["extract"])
        assert [fact.memo for fact in result.facts] == ["Anna", "tea"]


async def test_nothing_to_keep_costs_nothing() -> None:
    """No messages, no words in them, or blobs that no memory is made of: no call, no event, no change."""
    at = datetime(2026, 5, 2, tzinfo=UTC)
    image = Blob(uuid4(), "u", "image", {"messages": [{"role": "user", "content": "My name is Anna."}]}, 10, at)
    async with writing() as world:
        writer = world.writer()
        assert await writer.summarise([]) == await writer.summarise([chat("", "  "), image]) == ""
        assert await writer.summarise_together([("a", [image])]) == {"a": ""}
        assert await writer.write(" \n", [Slot("work", "title", "cook")], "zh") == FlushResult("zh")
        assert world.provider.count() == 0
        assert await writer.summarise([chat("Good morning!")]) == ""


async def test_what_a_log_depends_on_is_the_messages_and_the_terms() -> None:
    """Equal messages of two users share a log; other words, times or terms do not."""
    async with writing() as world, writing(terms=WITH_TAGS) as other:
        content = world.writer().summary_content([chat("I live in Lyon.", user="one")])
        assert content == world.writer().summary_content([chat("I live in Lyon.", user="two")])
        assert content != world.writer().summary_content([chat("I live in Lyon!", user="one")])
        assert content != other.writer().summary_content([chat("I live in Lyon.", user="one")])
        later = blob([{"role": "user", "content": "I live in Lyon.", "created_at": "2026-05-03"}], "one")
        assert content != world.writer().summary_content([later])
        assert hash(content)


async def test_a_blob_that_is_a_summary_is_read_as_one() -> None:
    """Summaries of other programs are memory too."""
    at = datetime(2026, 5, 2, tzinfo=UTC)
    summary = Blob(uuid4(), "u", "summary", {"summary": "- The user lives in Lyon\n- nothing else"}, 10, at)
    async with writing() as world:
        assert await world.writer().summarise([summary]) == "- The user lives in Lyon [mention 2026-05-02] // info"


async def test_an_attempt_that_goes_on_asks_nothing_again() -> None:
    """Each call is a checkpoint: a second attempt of the job pays nothing and gives the same."""
    steps, known = Steps(), [Slot("contact_info", "city", "Paris", version=7)]
    async with writing(terms=WITH_TAGS) as world:
        results = []
        for attempt in (steps, steps.again()):
            writer = world.writer(attempt)
            summary = await writer.summarise([chat("I live in Lyon. I feel glad.")])
            results.append(await writer.write(summary, known, "auto"))
            asked = world.provider.count()
        assert results[0] == results[1]
        assert asked == len(steps.stored) == 4


async def test_a_newer_profile_is_merged_with_anew() -> None:
    """Facts are not asked for again; the changes are made from the versions that are there now."""
    steps = Steps()
    async with writing() as world:
        writer = world.writer(steps)
        first = await writer.write("- The user lives in Lyon // info", [Slot("contact_info", "city", "Paris")], "en")
        newer = [Slot("contact_info", "city", "Rome", version=5), Slot("work", "title", "cook")]
        second = await writer.merge_again(first, newer)
        same = await writer.merge_again(first, newer)
        # A later attempt of the job meets yet another profile: what was decided on the old one is not taken for it.
        third = await world.writer(steps.again()).merge_again(first, [Slot("contact_info", "city", "Bonn", version=6)])
        assert [(change.content, change.expected_version) for change in first.changes] == [("Lyon", 1)]
        assert [(change.content, change.expected_version) for change in second.changes] == [("Lyon", 5)]
        assert same == second
        assert third.changes[0].expected_version == 6
        assert world.mind.tasks == ["extract", "merge", "merge", "merge"]
        assert third.facts == first.facts == (Fact("contact_info", "city", "Lyon"),)


async def test_a_topic_of_too_many_sub_topics_is_put_in_order() -> None:
    """Sixteen become at most eight, in one change each; what is gone is deleted at the version it had."""
    profile = [Slot("interest", f"thing_{number:02}", f"memo {number}", version=2) for number in range(15)]
    async with writing() as world:
        result = await world.writer().write("- The user's favourite tea is Assam // info", profile, "en")
    after = applied(profile, result.changes)
    assert len(after) <= 8
    told = " ".join(slot.content for slot in after)
    assert all(memo in told for memo in [*(slot.content for slot in profile), "Assam"])
    assert len({(change.topic, change.sub_topic) for change in result.changes}) == len(result.changes)
    assert world.mind.tasks == ["extract", "organise"]


async def test_a_topic_that_no_fact_touches_is_left_alone() -> None:
    """A flush puts in order what it made grow."""
    profile = [Slot("interest", f"thing_{number:02}", "x") for number in range(20)]
    async with writing() as world:
        result = await world.writer().write("- The user is called Anna // info", profile, "en")
    assert [change.topic for change in result.changes] == ["basic_info"]


@pytest.mark.parametrize(("language", "word", "log"), [("en", "bread ", "The user likes "), ("zh", "面包", "用户喜欢")])
async def test_a_memo_that_grew_too_long_is_made_short(language: str, word: str, log: str) -> None:
    """Above the limit the model writes it shorter."""
    async with writing() as world:
        result = await world.writer().write(f"- {log}{(word * 150).strip()} // info", [], "auto")
    [change] = result.changes
    assert result.language == language
    assert change.content is not None
    assert 0 < len(change.content) < len(word) * 64
    assert (world.mind.tasks, result.warnings) == (["extract", "shorten"], ())


async def test_a_long_conversation_is_asked_in_portions() -> None:
    """One message of more tokens than a question takes is read piece by piece: nothing is left out."""
    says = "I live in Lyon. " + "Nothing else to tell. " * 4_000 + "My name is Anna."
    async with writing() as world:
        summary = await world.writer().summarise([chat(says)])
    assert "lives in Lyon" in summary
    assert "called Anna" in summary
    assert world.mind.tasks.count("summary") == 2


async def test_a_conversation_that_is_too_long_for_the_model_is_halved() -> None:
    """A model of a small context reads it in pieces; several users' are asked alone."""
    says = [f"I like thing{at}. {'Nothing else to tell. ' * 20}" for at in range(40)]
    async with writing(context_tokens=3_500) as world:
        summary = await world.writer().summarise([chat(*says)])
        assert all(f"likes thing{at} " in summary for at in range(40))
        assert world.mind.tasks == ["summary"] * 2
        assert await world.writer().summarise_together([("a", [chat(*says)]), ("b", [chat("I live in Lyon.")])]) == {
            "a": None, "b": None,
        }  # fmt: skip


async def test_a_call_that_fails_leaves_its_neighbour_its_answer() -> None:
    """Facts and tags are asked for at once: what came is kept for the next attempt."""
    steps = Steps()
    async with writing(
        terms=WITH_TAGS, faults=[Fault(kind=FaultKind.SERVER_ERROR, status=401, contains="Task: tags ")]
    ) as world:
        with pytest.raises(ProviderAuthError):
            await world.writer(steps).write("- The user is called Anna // info", [], "en")
    assert [name.partition("-")[0] for name in steps.stored] == ["extract"]


async def test_with_one_answer_in_five_spoiled_all_facts_are_found() -> None:
    """Forty users, five ways of spoiling: the facts are those of a model that never errs."""
    said = [
        chat(f"My name is Name{at}, I live in Town{at}. I like thing{at}; I speak tongue{at}.", user=f"u{at}")
        for at in range(40)
    ]
    async with writing() as world:
        wanted = [await _facts(world, one) for one in said]
    async with writing(faults=SPOILED) as world:
        found = [await _facts(world, one) for one in said]
        assert world.provider.count() > 90  # some were asked again
    assert found == wanted
    assert all(len(facts) == 4 for facts in found)


async def _facts(world: World, one: Blob) -> tuple[Fact, ...]:
    """A flush that fails for good is taken up again with another sample."""
    for sample in range(3):
        writer = world.writer(sample=sample)
        try:
            return (await writer.write(await writer.summarise([one]), [], "auto")).facts
        except BadOutputError:
            continue
    raise AssertionError("three rounds gave nothing")


async def test_the_language_that_is_set_rules() -> None:
    """A user who writes Chinese may have an English memory."""
    asked: list[str] = []

    def say(request: ChatRequest) -> dict[str, list[dict[str, str | None]]]:
        asked.append(request.messages[0][1])
        return {"items": [{"text": "The user lives in Beijing", "kind": "info", "mention": None, "event": None}]}

    async with writing({"summary": say}, terms=replace(Terms.usual(), language="en")) as world:
        assert await world.writer().summarise([chat("我住在北京")]) == "- The user lives in Beijing // info"
    assert asked[0].startswith("Task: summary (memory-")


async def test_limits_of_the_terms_rule() -> None:
    """How large a topic may grow is the terms' to say."""
    terms = replace(Terms.usual(), limits=Limits(sub_topics=2, sub_topics_after=1))
    log = "\n".join(f"- The user's favourite {name} is {name}y // info" for name in ("tea", "band", "poem"))
    async with writing(terms=terms) as world:
        result = await world.writer().write(log, [], "en")
    assert [(change.op, change.content) for change in result.changes] == [("add", "bandy; poemy; teay")]


async def test_a_model_that_answers_plainly_is_refused() -> None:
    """The built-in model could not make memory: that is said before anything is asked."""
    async with App("memory://") as app:
        with pytest.raises(NoModelError):
            await Writer(app.llm, Terms.usual(), Steps()).summarise([chat("My name is Anna.")])


async def test_in_a_job_the_calls_are_its_steps() -> None:
    """On an app's own steps: a job that fails after the calls runs again without paying anew."""
    async with writing(terms=WITH_TAGS) as world:
        app, seen = world.app, []

        @app.task
        async def work(ctx: Context) -> dict[str, object]:
            writer = Writer(app.llm, WITH_TAGS, ctx.step)
            summary = await writer.summarise([chat("I live in Lyon. I feel glad.")])
            result = await writer.write(summary, [Slot("contact_info", "city", "Paris")], "auto")
            seen.append((ctx.attempt, world.provider.count()))
            if ctx.attempt == 1:
                raise RuntimeError("a crash")
            return result.to_json()

        async with app.worker():
            handle = await work.enqueue()
            result = FlushResult.from_json(await handle.result(timeout=30))
    assert [change.content for change in result.changes] == ["Lyon"]
    assert seen == [(1, 4), (2, 4)]


def test_the_scripted_model_runs_as_a_process_of_its_own() -> None:
    """A benchmark has it apart from what it measures; a function that is none is refused."""
    with ProviderProcess("--answer", "headrace.apps.memory.samples.model:answer") as provider:
        assert provider.stats().calls == 0
    for name in ("headrace.apps.memory.samples.model:nothing", "no_such_module:answer", "headrace", ":"):
        with (
            pytest.raises(Exception, match="must name a function as MODULE:FUNCTION"),
            ProviderProcess("--answer", name),
        ):
            pass
