"""Whole documents through scripted models, capable and weak."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers import numbered, showing
from headrace.apps.papers.answer_shape import answer_model
from headrace.apps.papers.documents import Document
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.result import Alignment, DocumentResult, Status
from headrace.apps.papers.template import parse_template
from headrace.llm.schema import strict_schema
from tests.unit.papers_files import document_of
from tests.unit.papers_models import CapableModel, WeakModel, answer, silent
from tests.unit.papers_truth import assert_real

TEMPLATE = parse_template("""
name: study
version: 3
instructions: Take the values of this study.
fields:
  - {name: size, type: integer, description: How many people took part}
  - {name: country, type: text, description: Country of the study}
  - {name: length, type: number, unit: weeks, description: How long the study lasted}
  - {name: started, type: date, description: When the study began}
  - {name: design, type: enum, enum: [randomised, observational], description: Design of the study}
  - {name: blinded, type: boolean, description: Whether the study was blinded}
  - {name: harms, type: list, description: Adverse events}
""")
PAPER = document_of(
    "A study of light\n\nWe enrolled 1,200 people in Norway. They were allocated to lamps at random. The study lasted"
    " 18 days.",
    "It began on 5 March 2021. Participants were not blinded. Nausea and headache were seen.",
)


def capable(**fields: dict[str, Any]) -> CapableModel:
    """Return a model that answers these fields and is silent on the others."""
    everything = {field.name: fields.get(field.name, silent()) for field in TEMPLATE.fields}
    return CapableModel(lambda prompt: everything)


def cut(document: Document, result: DocumentResult, name: str) -> str:
    """Return what the offsets of a field cut out of the document."""
    field = result.fields[name]
    assert field.char_start is not None
    return document.text[field.char_start : field.char_end]


async def test_a_capable_model_cites_and_code_quotes() -> None:
    """Numbers of sentences become quotes, pages and offsets of the text."""
    llm = capable(
        size=answer(1200, 2),
        country=answer("Norway", 2),
        started=answer("2021-03-05", 5),
        design=answer("randomised", 3),
        blinded=answer(False, 6),
        harms=answer(["Nausea", "headache"], 7),
    )
    result = await extract_document(PAPER, TEMPLATE, llm)
    found = {name: (field.value, field.alignment) for name, field in result.fields.items()}
    assert found == {
        "size": (1200, Alignment.NORMALISED),
        "country": ("Norway", Alignment.EXACT),
        "length": (None, Alignment.NONE),
        "started": ("2021-03-05", Alignment.NORMALISED),
        "design": ("randomised", Alignment.FUZZY),
        "blinded": (False, Alignment.FUZZY),
        "harms": (["Nausea", "headache"], Alignment.EXACT),
    }
    assert result.fields["length"].status is Status.NOT_REPORTED
    assert result.fields["started"].page == 2
    assert result.fields["country"].quote == cut(PAPER, result, "country") == "We enrolled 1,200 people in Norway."


async def test_the_prompt_shows_numbered_sentences_and_the_fields() -> None:
    """One call shows every sentence with its number, the instructions, and the fields last."""
    llm = capable()
    await extract_document(PAPER, TEMPLATE, llm)
    (prompt,) = llm.prompts
    assert "[2] We enrolled 1,200 people in Norway." in prompt
    assert "Take the values of this study." in prompt
    assert "- design (one of: randomised, observational): Design of the study" in prompt
    assert "- length (number): How long the study lasted (in weeks)" in prompt
    assert prompt.index("[7]") < prompt.index("- size")


async def test_the_result_tells_what_made_it() -> None:
    """Model, versions, digest, reader, usage and sizes stand in the result, and it survives JSON."""
    result = await extract_document(PAPER, TEMPLATE, capable())
    assert (result.model, result.template, result.template_version) == ("capable-1", "study", 3)
    assert result.template_digest == TEMPLATE.digest
    assert (result.reader, result.pages, result.characters) == ("test 1", 2, len(PAPER.text))
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.calls) == (100, 10, 1)
    assert result.prompt_version
    assert DocumentResult.from_json(json.loads(json.dumps(result.to_json()))) == result


async def test_sentence_numbers_that_do_not_exist_are_no_evidence() -> None:
    """An invented number is no quote; the value is searched, and unclear where it stands nowhere."""
    llm = capable(size=answer(1200, 99), country=answer("Sweden", 99))
    result = await extract_document(PAPER, TEMPLATE, llm)
    assert result.fields["size"].quote == "We enrolled 1,200 people in Norway."
    assert (result.fields["country"].status, result.fields["country"].quote) == (Status.UNCLEAR, None)


@pytest.mark.parametrize(
    "odd",
    [
        {"status": "Found", "sentences": "[2]", "value": "1,200"},
        {"status": "found", "sentences": ["2", None, "x"], "value": 1200.0, "note": None},
        {"status": "found", "sentences": 2, "value": "1200 people"},
    ],
)
async def test_odd_answers_are_read(odd: dict[str, Any]) -> None:
    """Numbers as text, a single number for a list, another case: read leniently."""
    result = await extract_document(PAPER, TEMPLATE, capable(size=odd))
    assert (result.fields["size"].value, result.fields["size"].status) == (1200, Status.FOUND)


async def test_one_impossible_answer_costs_one_field() -> None:
    """A value of another type is unclear and leaves the other fields alone."""
    result = await extract_document(PAPER, TEMPLATE, capable(size=answer({"a": 1}, 2), country=answer("Norway", 2)))
    assert result.fields["size"].status is Status.UNCLEAR
    assert result.fields["country"].status is Status.FOUND


def test_the_answer_shape_can_be_strict() -> None:
    """The schema is what strict modes accept, with the field's own names, types and choices."""
    template = parse_template(
        "name: t\nversion: 1\nfields:\n"
        "  - {name: model_config, type: number, description: A name that models use}\n"
        "  - {name: json, type: enum, enum: [a, b], description: Another}\n"
    )
    schema = strict_schema(answer_model(template))
    assert list(schema["properties"]) == ["model_config", "json"]
    value = schema["$defs"]["Answer_json"]["properties"]["value"]
    assert value["anyOf"] == [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]
    assert schema["$defs"]["Answer_json"]["additionalProperties"] is False


async def test_long_documents_are_split_and_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is one call that names itself, sentence numbers go on, and the parts' answers become one."""
    monkeypatch.setattr(numbered, "CHUNK_TOKENS", 300)
    text = "There was rain on that day too. " * 60 + "We enrolled 64 adults. " + "There was sun on that day. " * 60
    document = document_of(text)

    def script(prompt: str) -> dict[str, Any]:
        fields = {field.name: silent() for field in TEMPLATE.fields}
        if "[61] We enrolled 64 adults." in prompt:
            fields["size"] = answer(64, 61)
        return fields

    llm = CapableModel(script)
    result = await extract_document(document, TEMPLATE, llm)
    assert result.chunks == len(llm.prompts) > 3
    assert all(prompt.startswith(f"Part {n} of {result.chunks}") for n, prompt in enumerate(llm.prompts, start=1))
    assert (result.fields["size"].value, cut(document, result, "size")) == (64, "We enrolled 64 adults.")
    assert result.usage.calls == result.chunks


LINES = {
    "How many people took part": "1,200 people, 1,200 men and 12 dogs",
    "Country of the study": "The study was done in Norway, which is cold.",
    "How long the study lasted": "18 days",
    "When the study began": "5 March 2021",
    "Adverse events": "nausea, headache, fever",
}


def weak(**changed: str) -> WeakModel:
    """Return a model that goes on with the known lines; `changed` names fields."""
    labels = {field.name: field.plain_label for field in TEMPLATE.fields}
    lines = LINES | {labels[name]: line for name, line in changed.items()}
    return WeakModel(lambda label, text: lines[label.rstrip(":")])


async def test_a_weak_model_is_asked_plainly_and_code_finds_the_place() -> None:
    """Rambling short answers become typed values with their sentences; categories and yes/no are read by code."""
    llm = weak()
    result = await extract_document(PAPER, TEMPLATE, llm)
    values = {name: (field.value, field.status) for name, field in result.fields.items()}
    found = Status.FOUND
    assert values == {
        "size": (1200, found),
        "country": ("Norway", found),
        "length": (pytest.approx(18 / 7), found),
        "started": ("2021-03-05", found),
        "design": ("randomised", found),
        "blinded": (False, found),
        "harms": (["nausea", "headache"], found),
    }
    for name, field in result.fields.items():
        assert field.quote == cut(PAPER, result, name)
    assert result.usage.calls == len(llm.asked) == 5


async def test_the_whole_short_text_stands_before_the_question() -> None:
    """What all fields of a document share comes first, so that servers can cache it."""
    llm = weak()
    await extract_document(PAPER, TEMPLATE, llm)
    texts = dict(llm.asked)
    assert texts["How many people took part:"] == texts["Country of the study:"]
    assert "A study of light We enrolled 1,200 people in Norway." in texts["Country of the study:"]


async def test_dates_and_measures_are_asked_beside_their_sentences() -> None:
    """A weak model sees only sentences that can hold the answer, so it cannot mistake another number for it."""
    llm = weak()
    await extract_document(PAPER, TEMPLATE, llm)
    texts = dict(llm.asked)
    assert texts["When the study began:"] == "Text: It began on 5 March 2021."
    assert texts["How long the study lasted:"] == "Text: The study lasted 18 days."


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("Sweden", Status.UNCLEAR),
        ("not reported", Status.NOT_REPORTED),
        ("The text does not say where.", Status.NOT_REPORTED),
        ("N/A", Status.NOT_REPORTED),
        ("not applicable", Status.NOT_APPLICABLE),
        ("", Status.NOT_REPORTED),
    ],
)
async def test_answers_of_a_weak_model_that_find_nothing(line: str, status: Status) -> None:
    """What stands nowhere is unclear, what says so is not reported; neither has a value."""
    result = await extract_document(PAPER, TEMPLATE, weak(country=line))
    assert (result.fields["country"].status, result.fields["country"].value) == (status, None)


async def test_an_unfounded_answer_is_asked_once_more_closely() -> None:
    """The second question shows the most relevant sentence, and its answer counts."""
    llm = WeakModel(lambda label, text: "Norway" if "of light We" not in text else "Atlantis")
    template = parse_template("name: t\nversion: 1\nfields: [{name: country, type: text, description: People of}]")
    result = await extract_document(PAPER, template, llm)
    assert [text for _, text in llm.asked][1] == "Text: We enrolled 1,200 people in Norway."
    assert result.fields["country"].value == "Norway"


async def test_what_the_text_cannot_hold_is_not_asked() -> None:
    """Without any date in the text no call is spent on dates."""
    llm = weak()
    result = await extract_document(document_of("We enrolled 64 adults in Norway."), TEMPLATE, llm)
    assert "When the study began:" not in [label for label, _ in llm.asked]
    assert result.fields["started"].status is Status.NOT_REPORTED
    assert "no date" in result.fields["started"].note


async def test_a_weak_model_that_repeats_itself_is_not_believed() -> None:
    """The same words for another field count only where a sentence ties them to it."""
    template = parse_template(
        "name: t\nversion: 1\nfields:\n  - {name: material, type: text, description: What was made}\n"
        "  - {name: purpose, type: text, description: Intended use}\n"
    )
    document = document_of("Zinc oxide rods were made. The rods are long. Gas is sensed with them.")
    result = await extract_document(document, template, WeakModel(lambda label, text: "zinc oxide"))
    assert result.fields["material"].status is Status.FOUND
    assert result.fields["purpose"].status is Status.UNCLEAR


async def test_a_weak_model_never_sees_more_than_it_can_read() -> None:
    """Of a long document the beginning and the most relevant sentences are shown."""
    filler = "There was rain on that day too. " * 400
    document = document_of(f"A long study. {filler} The country of the study is Norway. {filler}")
    llm = weak()
    result = await extract_document(document, TEMPLATE, llm)
    assert all(len(text) < 5 * showing.SHOWN_TOKENS for _, text in llm.asked)
    assert result.fields["country"].quote == "The country of the study is Norway."


LINE = st.one_of(st.text(max_size=60), st.sampled_from([*LINES.values(), "18", "2021", "yes", "1,200", "Norway."]))


@given(LINE, st.booleans())
async def test_nothing_a_weak_model_says_makes_evidence_up(line: str, twice: bool) -> None:
    """Any line gives a result whose quotes are cut from the text, and found only with a quote."""
    result = await extract_document(PAPER, TEMPLATE, WeakModel(lambda label, text: line * (1 + twice)))
    assert_real(PAPER, TEMPLATE, result)


VALUE: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), LINE
)


@given(st.lists(st.fixed_dictionaries(
    {"status": st.sampled_from([*Status, "odd"]), "sentences": st.lists(st.integers(-2, 12), max_size=3),
     "value": st.one_of(VALUE, st.lists(VALUE, max_size=3)), "note": st.none() | st.text(max_size=10)}
), min_size=7, max_size=7))  # fmt: skip
async def test_nothing_a_capable_model_says_makes_evidence_up(answers: list[dict[str, Any]]) -> None:
    """Any answers give a result whose quotes are cut from the text, and found only with a quote."""
    said = dict(zip((field.name for field in TEMPLATE.fields), answers, strict=True))
    result = await extract_document(PAPER, TEMPLATE, CapableModel(lambda prompt: said))
    assert_real(PAPER, TEMPLATE, result)
