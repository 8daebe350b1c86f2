"""Several users in one call: each gets what is his, or is asked alone."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.apps.memory.writing.apart import leaking
from headrace.testing.provider import Fault, FaultKind
from tests.unit.memory_writing import chat, writing

PARTS = [
    ("u-anna", [chat("My name is Anna. I live in Lyon.", user="u-anna")]),
    ("u-ming", [chat("我叫王小明，我住在北京。", user="u-ming")]),
    ("u-tom", [chat("My name is Tom. I work at Acme.", user="u-tom")]),
]
ANNA = "- The user is called Anna [mention 2026-05-02] // info\n- The user lives in Lyon [mention 2026-05-02] // info"
MING = "- 用户叫王小明 [mention 2026-05-02] // info\n- 用户住在北京 [mention 2026-05-02] // info"
TOM = "- The user is called Tom [mention 2026-05-02] // info\n- The user works at Acme [mention 2026-05-02] // info"


def line(text: str) -> dict[str, Any]:
    """One line of a log."""
    return {"text": text, "kind": "info", "mention": None, "event": None}


def part(name: str, *texts: str) -> dict[str, Any]:
    """The log of a part."""
    return {"part": name, "lines": [line(text) for text in texts]}


GOOD = part("p1", "The user is called Anna"), part("p2", "用户叫王小明"), part("p3", "The user works at Acme")


async def together(*said: Any) -> dict[str, str | None]:
    """What stands of an answer."""
    async with writing({"shared": {"items": list(said)}} if said else None) as world:
        return await world.writer().summarise_together(PARTS)


async def test_one_call_gives_each_what_is_his() -> None:
    """Both languages in one call, under neutral names."""
    async with writing() as world:
        found = await world.writer().summarise_together(PARTS)
        assert found == {"u-anna": ANNA, "u-ming": MING, "u-tom": TOM}
        [asked] = world.mind.asked
        assert not any(key in asked.text for key, _ in PARTS)
        alone = {key: await world.writer().summarise(blobs) for key, blobs in PARTS}
    assert found == alone


async def test_a_user_may_have_a_language_of_his_own() -> None:
    """Whatever the messages are in; what does not keep to it is asked alone."""
    said = {"shared": {"items": [part("p1", "用户叫安娜"), *GOOD[1:]]}}
    async with writing(said) as world:
        found = await world.writer().summarise_together(PARTS, {"u-anna": "zh", "u-tom": "zh"})
        assert found == {"u-anna": "- 用户叫安娜 // info", "u-ming": "- 用户叫王小明 // info", "u-tom": None}
        assert '"part":"p1","language":"zh"' in world.mind.asked[0].last.replace(": ", ":").replace(", ", ",")


async def test_who_has_nothing_to_say_is_not_asked_about() -> None:
    """An empty buffer has an empty log, and takes no place in the question."""
    async with writing() as world:
        found = await world.writer().summarise_together([("u-none", [chat(" ")]), PARTS[2]])
        assert found == {"u-none": "", "u-tom": TOM}
        assert '"p2"' not in world.mind.asked[0].last


@pytest.mark.parametrize(
    "second",
    [
        None,
        part("p9", "用户叫王小明"),
        part("p2", "The user is called Ming"),
        part("p2", "用户叫王小明", "用户住在 Lyon"),
        {"part": "p2", "lines": "用户叫王小明"},
        {"part": "p2", "lines": [{**line("用户叫王小明"), "kind": "rumour"}]},
    ],
    ids=["missing", "unknown name", "wrong language", "another's", "no list", "no such kind"],
)
async def test_a_part_that_is_not_valid_is_asked_alone(second: dict[str, Any] | None) -> None:
    """Its siblings stand."""
    found = await together(GOOD[0], *([] if second is None else [second]), GOOD[2])
    assert found == {
        "u-anna": "- The user is called Anna // info", "u-ming": None, "u-tom": "- The user works at Acme // info",
    }  # fmt: skip


async def test_a_part_that_is_said_twice_is_asked_alone() -> None:
    """Which of the two is right, code cannot know."""
    found = await together(*GOOD, part("P1", "The user lives in Lyon"))
    assert (found["u-anna"], found["u-tom"]) == (None, "- The user works at Acme // info")


async def test_a_part_without_lines_is_empty_and_not_asked_again() -> None:
    """The model looked, and found nothing worth keeping."""
    assert (await together(part("p1"), *GOOD[1:]))["u-anna"] == ""


async def test_names_of_parts_are_read_however_they_are_spelt() -> None:
    """A capital letter costs no second call."""
    assert (await together(part("P1", "The user is called Anna"), *GOOD[1:]))["u-anna"] is not None


@pytest.mark.parametrize("kind", [FaultKind.REFUSAL, FaultKind.WRONG_JSON, FaultKind.TRUNCATED_JSON])
async def test_an_answer_that_is_of_no_use_leaves_all_to_be_asked_alone(kind: FaultKind) -> None:
    """What is wrong with one user's messages is no other's fault."""
    async with writing(faults=[Fault(kind=kind, contains="Task: shared ")]) as world:
        found = await world.writer().summarise_together(PARTS)
        assert set(found) == {key for key, _ in PARTS}
        if kind is not FaultKind.TRUNCATED_JSON:
            assert set(found.values()) == {None}


@pytest.mark.parametrize(
    ("text", "own", "other"),
    [
        ("The user is called Anna", "My name is Tom.", "My name is Anna."),
        ("The user knows Anna", "My name is Tom, and I know the way.", "My name is Anna."),
        ("The user paid 4711 for it", "I paid for it.", "My number is 4711."),
        ("用户住在上海", "我住在北京", "我住在上海"),
        ("The user breeds goats", "I live in Lyon.", "I breed goats, and goats breed."),
    ],
)
def test_a_line_that_tells_of_another_leaks(text: str, own: str, other: str) -> None:
    """By a name or number that only the other said, or by more of the other's words than of its own."""
    assert leaking([text], own, [other, "Nothing of note."]) == [text]


@pytest.mark.parametrize(
    ("text", "own", "other"),
    [
        ("The user lives in Lyon and likes tea", "I live in Lyon, I like tea.", "I like tea, and live in Paris."),
        ("The user has a job as a baker", "I bake: I am a baker.", "I have no job."),
        ("用户在北京上班", "我在北京工作", "我上班很累，在上海"),
        ("The user plans a trip", "A trip would be nice.", "I plan my garden."),
        ("The user is well", "Fine, thanks", "Hello there"),
    ],
)
def test_a_line_of_ones_own_does_not(text: str, own: str, other: str) -> None:
    """Words that both said, and words of the model's own, are no leak."""
    assert leaking([text], own, [other]) == []
