"""Claims against the text: a value is found only where it stands, and the quote is always cut from the text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.chunks import estimated_tokens, split_chunks
from headrace.apps.papers.evidence import Claim, settle
from headrace.apps.papers.merge import merge_field
from headrace.apps.papers.result import Alignment, FieldResult, Status
from headrace.apps.papers.template import FieldType, TemplateField, Value
from tests.unit.papers_files import sentences_of

TEXT = sentences_of(
    "The trial was randomised. We enrolled 64 adults in Norway. It lasted 18 months. Ages ranged from 25 to 64 years.",
    "Nausea was seen in 3 people. Headache was rare. Nobody paid us.",
)


def field_of(kind: FieldType, unit: str | None = None, *choices: str) -> TemplateField:
    """Return a field of a type."""
    return TemplateField(name="field", type=kind, unit=unit, enum=choices, description="What is asked")


def claim(value: object, *numbers: int, status: Status = Status.FOUND, note: str = "") -> Claim:
    """Return a claim that cites sentences by number."""
    return Claim(status, value, tuple(TEXT[number - 1] for number in numbers), note)


def test_a_cited_value_is_found_with_its_quote() -> None:
    """Value, quote, page and offsets come together."""
    result = settle(field_of("integer"), claim(64, 2), TEXT)
    assert (result.status, result.value, result.alignment) == (Status.FOUND, 64, Alignment.EXACT)
    assert (result.quote, result.page) == ("We enrolled 64 adults in Norway.", 1)


def test_of_several_cited_sentences_the_best_is_quoted() -> None:
    """The quote is the cited sentence in which the value stands."""
    assert settle(field_of("text"), claim("Norway", 1, 2), TEXT).quote == "We enrolled 64 adults in Norway."


@pytest.mark.parametrize(
    ("field", "made", "note"),
    [
        (field_of("integer"), claim(65), "does not hold"),
        (field_of("integer"), claim("many"), "not a number"),
        (field_of("number", "weeks"), claim(18, 3), "18 months"),
        (field_of("integer"), claim(64, 7), "does not stand"),
        (field_of("text"), claim("Sweden", 2), "does not stand"),
        (field_of("text"), claim(""), "no value"),
        (field_of("enum", None, "a", "b"), claim("c", 1), "none of a, b"),
        (field_of("enum", None, "parallel", "crossover"), claim("parallel"), "does not hold"),
        (field_of("list"), claim(["fever"], 5), "not in the text: 'fever'"),
        (field_of("text"), claim("Norway", 2, status=Status.UNCLEAR, note="two countries"), "two countries"),
    ],
)
def test_what_the_text_does_not_bear_out_is_unclear(field: TemplateField, made: Claim, note: str) -> None:
    """A claim without evidence is never found, and the note says what is wrong with it."""
    result = settle(field, made, TEXT)
    assert result.status is Status.UNCLEAR
    assert note in result.note


def test_an_unfounded_value_without_a_place_is_not_shown() -> None:
    """A value that stands nowhere stays in the note; next to a cited sentence a person can judge it."""
    assert settle(field_of("integer"), claim(65), TEXT).value is None
    beside = settle(field_of("integer"), claim(65, 2), TEXT)
    assert (beside.value, beside.quote, beside.status) == (65, "We enrolled 64 adults in Norway.", Status.UNCLEAR)


def test_a_wrong_citation_is_mended_only_close_by() -> None:
    """A number beside the cited sentence is found; the same number far away is another quantity."""
    assert settle(field_of("integer"), claim(64, 1), TEXT).quote == "We enrolled 64 adults in Norway."
    assert settle(field_of("integer"), claim(3, 1), TEXT).status is Status.UNCLEAR
    mended = settle(field_of("text"), claim("Headache", 1), TEXT)
    assert (mended.quote, mended.status) == ("Headache was rare.", Status.FOUND)
    assert "beside" in mended.note


def test_categories_and_yes_no_need_a_sentence_and_no_word() -> None:
    """For these the cited sentence is the evidence; the alignment says whether the value stands in it."""
    design = field_of("enum", None, "parallel group", "randomised")
    assert settle(design, claim("randomised", 1), TEXT).alignment is Alignment.EXACT
    described = settle(design, claim("parallel group", 1), TEXT)
    assert (described.status, described.alignment) == (Status.FOUND, Alignment.NONE)
    assert settle(field_of("boolean"), claim(True, 1), TEXT).status is Status.FOUND
    assert settle(field_of("boolean"), claim(True), TEXT).status is Status.UNCLEAR


@pytest.mark.parametrize("status", [Status.NOT_REPORTED, Status.NOT_APPLICABLE])
def test_silence_has_neither_value_nor_quote(status: Status) -> None:
    """What is not reported carries nothing along, even where the model adds something."""
    result = settle(field_of("text"), claim("Norway", 2, status=status), TEXT)
    assert result == FieldResult(status=status)


def test_a_list_keeps_what_stands_in_the_text() -> None:
    """Items that stand nowhere are dropped and named; the others are found."""
    result = settle(field_of("list"), claim(["Nausea", "fever", "headache"], 5, 6), TEXT)
    assert (result.value, result.status, result.quote) == (
        ["Nausea", "headache"],
        Status.FOUND,
        "Nausea was seen in 3 people.",
    )
    assert "fever" in result.note
    assert "2 sentences" in result.note


VALUES: st.SearchStrategy[object] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text(), max_size=4),
    st.sampled_from(["64", "Norway", "18 months", "64 adults in Norway", "yes", "randomised", ["Nausea", "x"]]),
)  # fmt: skip
FIELDS = st.sampled_from(
    [
        *(field_of("text"), field_of("integer"), field_of("number", "weeks"), field_of("date"), field_of("boolean")),
        *(field_of("list"), field_of("enum", None, "randomised", "observational")),
    ]
)


@given(FIELDS, VALUES, st.lists(st.integers(1, len(TEXT)), max_size=3), st.sampled_from(Status))
def test_no_claim_makes_up_evidence(field: TemplateField, value: object, cited: list[int], status: Status) -> None:
    """Whatever is claimed: quotes are sentences of the text, and found means value and quote."""
    result = settle(field, claim(value, *cited, status=status), TEXT)
    if result.quote is not None:
        assert (result.quote, result.char_start, result.char_end, result.page) in [
            (sentence.text, sentence.char_start, sentence.char_end, sentence.page) for sentence in TEXT
        ]
    if result.status is Status.FOUND:
        assert result.value is not None
        assert result.quote is not None
        assert result.alignment is not Alignment.NONE or field.type in ("enum", "boolean")
    FieldResult.model_validate_json(result.model_dump_json())


def result_of(
    value: Value | None, page: int = 1, alignment: Alignment = Alignment.EXACT, **rest: Status
) -> FieldResult:
    """Return the result of one part."""
    status = rest.get("status", Status.FOUND)
    return FieldResult(value=value, status=status, quote=f"q{page}", page=page, alignment=alignment)


UNCLEAR = FieldResult(status=Status.UNCLEAR, note="hm")
SILENT = FieldResult(status=Status.NOT_REPORTED)
MOOT = FieldResult(status=Status.NOT_APPLICABLE)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([SILENT, result_of(3), UNCLEAR], result_of(3)),
        ([SILENT, UNCLEAR, MOOT], UNCLEAR),
        ([SILENT, MOOT], MOOT),
        ([SILENT, SILENT], SILENT),
        ([result_of("a", 1, Alignment.FUZZY), result_of("A", 2)], result_of("A", 2)),
        ([result_of("a", 1), result_of("a", 2)], result_of("a", 1)),
    ],
)
def test_parts_are_merged_by_rank(parts: list[FieldResult], expected: FieldResult) -> None:
    """Found beats unclear beats not applicable beats not reported; equal values keep their best place."""
    assert merge_field(field_of("text"), parts) == expected


def test_a_conflict_is_unclear_and_names_the_values() -> None:
    """Two values of equal standing are not decided by code."""
    merged = merge_field(field_of("integer"), [result_of(120, 1), result_of(112, 5)])
    assert (merged.status, merged.value) == (Status.UNCLEAR, None)
    assert "120 (page 1) or 112 (page 5)" in merged.note


def test_a_conflict_is_decided_by_better_evidence() -> None:
    """The only exact value beats a fuzzy one, and the note names both."""
    merged = merge_field(field_of("text"), [result_of("a b c d", 1, Alignment.FUZZY), result_of("e", 2)])
    assert (merged.value, merged.status) == ("e", Status.FOUND)
    assert "a b c d" in merged.note


def test_lists_of_parts_are_joined() -> None:
    """The items of all parts are kept once, with the worst alignment among them."""
    merged = merge_field(field_of("list"), [result_of(["a"], 1), result_of(["A", "b"], 2, Alignment.FUZZY)])
    assert (merged.value, merged.alignment) == (["a", "b"], Alignment.FUZZY)


@given(st.integers(1, 60), st.integers(5, 200), st.integers(0, 5))
def test_chunks_cover_everything_and_overlap(count: int, budget: int, overlap: int) -> None:
    """Every sentence is in a part, parts overlap, and none is above the budget but single sentences."""
    sentences = sentences_of(" ".join(f"Sentence number {n} is here." for n in range(count)))
    chunks = split_chunks(sentences, budget=budget, overlap=overlap)
    assert {sentence.number for chunk in chunks for sentence in chunk} == set(range(1, count + 1))
    for chunk in chunks:
        numbers = [sentence.number for sentence in chunk]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert len(chunk) == 1 or sum(estimated_tokens(sentence.line) for sentence in chunk) <= budget
    for before, after in pairwise(chunks):
        assert before[0].number < after[0].number <= before[-1].number + 1
        assert len(before) <= overlap + 1 or len(set(before) & set(after)) == overlap
