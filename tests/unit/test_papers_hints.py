"""Section hints: where to look first, with the whole document behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace.apps.papers import numbered
from headrace.apps.papers.asking import Material
from headrace.apps.papers.documents import Document
from headrace.apps.papers.documents.sections import Section
from headrace.apps.papers.documents.titles import SectionKind
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.result import Status
from headrace.apps.papers.template import parse_template
from tests.unit.papers_files import document_of
from tests.unit.papers_models import CapableModel, WeakModel, answer
from tests.unit.papers_truth import assert_real

TEMPLATE = parse_template("""
name: t
version: 1
fields:
  - {name: size, type: integer, description: How many took part, section: methods}
  - {name: country, type: text, description: Country, section: [funding, methods]}
  - {name: colour, type: text, description: Colour}
""")
FILLER = "There was rain on that day too. "


def paper(*chapters: tuple[SectionKind, str]) -> Document:
    """Return a document of these sections."""
    document = document_of("\n\n".join(text for _, text in chapters))
    sections, at = [], 0
    for kind, text in chapters:
        start = document.text.index(text, at)
        at = start + len(text)
        sections.append(Section(kind.value.title(), kind, start, at))
    return replace(document, sections=tuple(sections))


TEXT = (
    (SectionKind.ABSTRACT, "We saw 64 adults in Norway. It was green."),
    (SectionKind.METHODS, "In all 64 adults were enrolled. They live in Norway."),
    (SectionKind.RESULTS, "Nothing happened to 63 of the adults."),
)
PAPER = paper(*TEXT)


def said(**fields: Any) -> CapableModel:
    """Return a model that answers these fields."""
    silence = {"status": "not_reported", "sentences": [], "value": None}
    everything = {field.name: fields.get(field.name, silence) for field in TEMPLATE.fields}
    return CapableModel(lambda prompt: everything)


async def test_the_model_is_told_where_to_look_first() -> None:
    """Fields with a hint name the sentences of their sections; the others, and unknown sections, name none."""
    llm = said()
    await extract_document(PAPER, TEMPLATE, llm)
    (prompt,) = llm.prompts
    assert "- size (whole number): How many took part (look first at sentences 3-4)" in prompt
    assert prompt.endswith("- colour (text): Colour")
    bare = said()
    await extract_document(replace(PAPER, sections=()), TEMPLATE, bare)
    assert "look first" not in bare.prompts[0]


async def test_of_equal_evidence_the_hinted_section_is_quoted() -> None:
    """A number that stands in the abstract and in the methods is quoted from the methods, cited or not."""
    for cited in ((1, 3), ()):
        result = await extract_document(PAPER, TEMPLATE, said(size=answer(64, *cited)))
        assert result.fields["size"].quote == "In all 64 adults were enrolled."
        assert result.fields["size"].section == "Methods"
        assert_real(PAPER, TEMPLATE, result)


async def test_the_whole_document_stands_behind_a_hint() -> None:
    """What stands only elsewhere is found there."""
    result = await extract_document(PAPER, TEMPLATE, said(size=answer(63, 5)))
    assert (result.fields["size"].status, result.fields["size"].section) == (Status.FOUND, "Results")


async def test_of_two_values_of_a_long_document_the_one_of_the_section_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where parts disagree, the value from the hinted section wins; without a hint the field is unclear."""
    monkeypatch.setattr(numbered, "CHUNK_TOKENS", 300)
    document = paper(
        (SectionKind.ABSTRACT, "We saw 60 adults in Norway. It was green. " + FILLER * 60),
        (SectionKind.METHODS, "In all 64 adults were enrolled, all blue. " + FILLER * 60),
    )

    def script(prompt: str) -> dict[str, Any]:
        early = "We saw 60" in prompt
        shown = early or "In all 64" in prompt
        silence: dict[str, Any] = {"status": "not_reported", "sentences": []}
        values = (60, "green") if early else (64, "blue")
        return {"size": answer(values[0]) if shown else silence, "country": silence,
                "colour": answer(values[1]) if shown else silence}  # fmt: skip

    result = await extract_document(document, TEMPLATE, CapableModel(script))
    assert (result.fields["size"].value, result.fields["size"].status) == (64, Status.FOUND)
    assert "chosen for its section" in result.fields["size"].note
    assert result.fields["colour"].status is Status.UNCLEAR


async def test_a_weak_model_sees_the_hinted_sections_of_a_long_document() -> None:
    """Behind the beginning, the sentences of the hinted section are shown before equally relevant ones."""
    document = paper(
        (SectionKind.ABSTRACT, FILLER * 80),
        (SectionKind.RESULTS, "Took part: many. " * 60),
        (SectionKind.METHODS, "Took part: 64 adults. " + FILLER),
    )
    llm = WeakModel(lambda label, text: "64" if "64 adults" in text else "none")
    result = await extract_document(document, TEMPLATE, llm)
    asked = dict(reversed(llm.asked))
    assert "64 adults" in asked["How many took part:"]
    assert result.fields["size"].value == 64


def test_a_hint_that_no_section_answers_to_prefers_nothing() -> None:
    """Looking for the funding of a paper without one looks everywhere."""
    field = TEMPLATE.field("country").model_copy(update={"section": ("funding",)})
    material = Material.of(PAPER)
    assert material.hints.numbers(field) == frozenset()
    assert material.hints.numbers(TEMPLATE.field("size")) == {3, 4}
