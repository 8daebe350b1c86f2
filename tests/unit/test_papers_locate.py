"""Whether a value stands in a text: numbers in every notation, units, dates, words."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers.dates import dates_in, parse_date
from headrace.apps.papers.locate import align, align_text, locate
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.result import Alignment
from headrace.apps.papers.template import FieldType, TemplateField, Value
from headrace.apps.papers.units import in_unit
from headrace.apps.papers.values import UnfitValueError, fit
from tests.unit.papers_files import sentences_of

EXACT, NORMALISED, FUZZY, NONE = Alignment


def field_of(kind: FieldType, unit: str | None = None, *choices: str, name: str = "field") -> TemplateField:
    """Return a field of a type."""
    return TemplateField(name=name, type=kind, unit=unit, enum=choices, description="What is asked")


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("double-blind", "a double-blind trial", EXACT),
        ("Double blind", "a double-blind trial", NORMALISED),
        ("double–blind", "A DOUBLE-BLIND trial", NORMALISED),
        ("6 weeks", "lasted six weeks", NORMALISED),
        ("1200 people", "about 1,200 people", NORMALISED),
        ("Parus major", "great tits (*Parus major*)", EXACT),
        ("oil seed", "oil\nseed rape", EXACT),
        ("“care” homes", 'in "care" homes', NORMALISED),
        ("10² m²", "10² m² of land", EXACT),
        ("randomised plots", "plots were randomised", NONE),
        ("randomised", "allocated at random", FUZZY),
        ("nine homes for old people", "nine care homes for old people", FUZZY),
        ("12 weeks of light training", "10 weeks of light training", NONE),
        ("was not blinded at all", "was blinded at all", NONE),
        ("the of a", "the cat of a dog", NONE),
        ("a b c d", "a x x x x x b x x x x x c x x x x d", NONE),
        ("1", "about 1,900 people", NONE),
        ("9", "1.9 falls", NONE),
        ("art", "a start", NONE),
        ("", "anything", NONE),
        ("…", "anything …", EXACT),
    ],
)
def test_words(value: str, text: str, expected: Alignment) -> None:
    """A text is found exactly, in another notation, by most of its words, or not at all."""
    assert align_text(value, text).alignment is expected


@pytest.mark.parametrize(
    ("value", "unit", "text", "expected"),
    [
        (64, None, "We saw 64 adults.", EXACT),
        (1200, None, "We saw 1,200 adults.", NORMALISED),
        (1200, None, "We saw 1 200 adults.", NORMALISED),
        (1200, None, "We saw 1\u202f200 adults.", NORMALISED),
        (24, None, "twenty-four rats", NORMALISED),
        (120, None, "one hundred and twenty rats", NORMALISED),
        (-5.2, None, "a change of −5.2 points", NORMALISED),
        (20, None, "10–20 days", EXACT),
        (0.03, None, "3 × 10⁻² mol", NORMALISED),
        (1200000, None, "1.2 million people", NORMALISED),
        (0.62, None, "0,62 g", NORMALISED),
        (0.05, None, "p < .05", NORMALISED),
        (81, "%", "81 % of the sessions", EXACT),
        (81, "%", "81 per cent", EXACT),
        (1200, "mg", "1.2 g a day", NORMALISED),
        (1.5, "h", "for 90 min", NORMALISED),
        (18, "weeks", "18 months", NONE),
        (78, "weeks", "18 months", NONE),
        (118, "m²/g", "118 m2 g-1", EXACT),
        (118, "participants", "118 adults", EXACT),
        (19, None, "COVID-19 and IL-19", NONE),
        (65, None, "We saw 64 adults.", NONE),
        (2, None, "H2O and CO2", NONE),
        (12, None, "week 12 200 people", EXACT),
    ],
)
def test_numbers(value: float, unit: str | None, text: str, expected: Alignment) -> None:
    """A number is found in every usual notation and in convertible units, and not in names or other units."""
    assert align(field_of("number", unit), value, text).alignment is expected


def test_a_clash_of_units_is_explained() -> None:
    """The same number in another unit is no evidence, and the note says why."""
    found = align(field_of("number", "weeks"), 18, "It lasted 18 months.")
    assert found.alignment is NONE
    assert "18 months" in found.note


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_every_number_is_found_where_it_was_written(number: Decimal) -> None:
    """A number formatted plainly, with commas and with a minus sign is read back."""
    for text in (f"{number}", f"{number:,}", f"{number}".replace("-", "−")):
        assert number in [found.value for found in numbers_in(f"It was {text} in all.")]


@given(st.text())
def test_no_text_makes_numbers_or_dates_fail(text: str) -> None:
    """Any text can be searched, and what is found lies in it."""
    assert all(text[found.start : found.end] for found in numbers_in(text))
    assert all(found.text in text for found in dates_in(text))


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("2021-03-05", "registered 2021-03-05", EXACT),
        ("2021-03-05", "on 5 March 2021", NORMALISED),
        ("2021-03-05", "on March 5th, 2021", NORMALISED),
        ("2021-03-05", "on 05/03/2021", NORMALISED),
        ("2021-03", "on 5 March 2021", NORMALISED),
        ("2021", "in Sept. 2021", EXACT),
        ("2021-03-05", "in March 2021", NONE),
        ("2021-03-05", "on 6 March 2021", NONE),
        ("2021", "sample 20217", NONE),
    ],
)
def test_dates(value: str, text: str, expected: Alignment) -> None:
    """A date is found in every usual form, unless the text is less precise than the value."""
    assert align(field_of("date"), value, text).alignment is expected


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("5 March 2021", "2021-03-05"),
        ("March 2021", "2021-03"),
        ("2021-13-45", None),
        ("31 February 2020", None),
        ("in 2017-2018", "2017"),
        ("no date", None),
    ],
)
def test_a_date_is_parsed_or_refused(text: str, iso: str | None) -> None:
    """A date that does not exist is no date."""
    assert parse_date(text) == iso


def test_the_relevant_sentence_wins_between_equals() -> None:
    """Of two sentences with the same number the one that speaks of the field is the place."""
    sentences = sentences_of("There were 24 rainy days. Twenty-four plots were used.")
    place = locate(field_of("integer"), 24, sentences, relevance=[0.0, 1.0])
    assert place is not None
    assert place[0].text == "Twenty-four plots were used."
    first = locate(field_of("integer"), 24, sentences)
    assert first is not None
    assert first[0].text == "There were 24 rainy days."


def test_a_better_alignment_beats_relevance() -> None:
    """A fuzzy match in a relevant sentence does not beat the value itself elsewhere."""
    sentences = sentences_of("Homes in old villages for poor people. Homes for old people.")
    place = locate(field_of("text"), "homes for old people", sentences, relevance=[1.0, 0.0])
    assert place is not None
    assert place[0].number == 2


@pytest.mark.parametrize(
    ("field", "raw", "value"),
    [
        (field_of("integer"), "1,200 adults", 1200),
        (field_of("integer"), 64.0, 64),
        (field_of("integer"), "about twenty-four or so", 24),
        (field_of("number", "mg"), "1.5 g", 1500),
        (field_of("number"), "−5.2", -5.2),
        (field_of("text"), ' "Norway." ', "Norway"),
        (field_of("text"), "Smith et al.", "Smith et al."),
        (field_of("text"), "a\x00b\ud800", "ab"),
        (field_of("text"), "  ", None),
        (field_of("text"), None, None),
        (field_of("boolean"), "Yes, it was", True),
        (field_of("boolean"), False, False),
        (field_of("date"), "5 March 2021", "2021-03-05"),
        (field_of("enum", None, "randomised", "observational"), "Randomised", "randomised"),
        (field_of("enum", None, "randomised", "observational"), "a randomized trial", "randomised"),
        (field_of("list"), "nausea, headache and rash", ["nausea", "headache", "rash"]),
        (field_of("list"), ["a", "A", " "], ["a"]),
        (field_of("list"), [], None),
    ],
)
def test_answers_are_brought_to_their_type(field: TemplateField, raw: object, value: Value | None) -> None:
    """What a model says becomes a value of the field's type."""
    assert fit(field, raw) == value
    assert type(fit(field, raw)) is type(value)


@pytest.mark.parametrize(
    ("field", "raw"),
    [
        (field_of("integer"), 1.5),
        (field_of("integer"), True),
        (field_of("number"), float("nan")),
        (field_of("number"), float("inf")),
        (field_of("number", "weeks"), "18 months"),
        (field_of("number"), "many"),
        (field_of("boolean"), "perhaps"),
        (field_of("date"), "some day"),
        (field_of("enum", None, "a", "b"), "c"),
    ],
)
def test_answers_that_do_not_fit_are_refused(field: TemplateField, raw: object) -> None:
    """An answer of another type is refused with the reason, never bent into shape."""
    with pytest.raises(UnfitValueError):
        fit(field, raw)


def test_units_convert_only_where_they_can() -> None:
    """Grams become milligrams; months do not become weeks; unknown words are no units."""
    assert in_unit(Decimal("1.2"), "g", "mg") == 1200
    assert in_unit(Decimal(18), "months", "weeks") is None
    assert in_unit(Decimal(1), "year", "months") == 12
    assert in_unit(Decimal(5), "plots", "m") == 5
