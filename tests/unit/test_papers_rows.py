"""Rows: several of a kind in one document, each value with its own quote, none twice, no bad one spoiling others."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.apps.papers import answer_shape, numbered
from headrace.apps.papers.answer_shape import answer_model, silent_answer
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.plainly import NO_ROWS
from headrace.apps.papers.result import DocumentResult, FieldResult, RowResult, Status
from headrace.apps.papers.rows import merge_rows, pair_rows
from headrace.apps.papers.template import parse_template
from headrace.apps.papers.wordings import FIRST
from headrace.llm.schema import strict_schema
from tests.unit.papers_files import document_of
from tests.unit.papers_models import CapableModel, WeakModel, answer, silent
from tests.unit.papers_truth import assert_real
from tests.unit.test_papers_extract import PAPER, capable, weak
from tests.unit.test_papers_extract import TEMPLATE as PLAIN_TEMPLATE

TEMPLATE = parse_template("""
name: arms
version: 1
fields:
  - {name: country, type: text, description: Country of the study}
rows:
  - name: arm
    description: An arm of the trial
    fields:
      - {name: drug, type: text, description: What was given}
      - {name: size, type: integer, description: How many were allocated}
      - {name: dose, type: number, unit: mg, description: Daily dose}
""")
KEYED = parse_template("""
name: outcomes
version: 1
fields: [{name: country, type: text, description: Country}]
rows:
  - name: outcome
    description: An outcome at a time
    key: [measure, at]
    fields:
      - {name: measure, type: text, description: What was measured}
      - {name: at, type: text, description: When}
      - {name: mean, type: number, description: Mean}
""")
TRIAL = document_of(
    "The trial was done in Norway. Forty people took aspirin, 100 mg a day. Another 38 people took placebo. Pain"
    " fell by 3.5 points at 6 weeks. Pain fell by 4.1 points at 12 weeks."
)


def arm(drug: Any = None, size: Any = None, dose: Any = None) -> dict[str, Any]:
    """Return a row as a model gives it."""
    return {"drug": drug or silent(), "size": size or silent(), "dose": dose or silent()}


def rows_model(*rows: Any) -> CapableModel:
    """Return a model that answers these rows."""
    return CapableModel(lambda prompt: {"country": answer("Norway", 1), "arm": list(rows)})


def values(result: DocumentResult, group: str = "arm") -> list[tuple[Any, ...]]:
    """Return the values of the found fields of each row."""
    return [
        tuple(found.value if found.status is Status.FOUND else None for found in row.values())
        for row in result.rows[group]
    ]


async def test_every_value_of_a_row_has_its_own_quote() -> None:
    """Two arms become two rows, and each value is quoted from the sentence of its arm."""
    llm = rows_model(arm(answer("aspirin", 2), answer(40, 2), answer(100, 2)), arm(answer("placebo", 3), answer(38, 3)))
    result = await extract_document(TRIAL, TEMPLATE, llm)
    assert values(result) == [("aspirin", 40, 100), ("placebo", 38, None)]
    first, second = result.rows["arm"]
    assert first["size"].quote == "Forty people took aspirin, 100 mg a day."
    assert second["size"].quote == "Another 38 people took placebo."
    assert second["dose"].status is Status.NOT_REPORTED
    assert result.fields["country"].value == "Norway"
    assert_real(TRIAL, TEMPLATE, result)


async def test_a_value_of_a_row_that_stands_nowhere_is_never_found() -> None:
    """An invented number of one row is unclear; the rest of the row and its siblings stand."""
    llm = rows_model(arm(answer("aspirin", 2), answer(41, 2)), arm(answer("placebo", 3), answer(38, 3)))
    result = await extract_document(TRIAL, TEMPLATE, llm)
    assert result.rows["arm"][0]["size"].status is Status.UNCLEAR
    assert values(result) == [("aspirin", None, None), ("placebo", 38, None)]


@pytest.mark.parametrize("bad", ["no row", 7, None, [], {}, {"other": 1}, [arm()]])
async def test_a_bad_row_spoils_no_other(bad: Any) -> None:
    """What is no row is counted and told; the rows around it are kept."""
    good = arm(answer("aspirin", 2), answer(40, 2)), arm(answer("placebo", 3), answer(38, 3))
    result = await extract_document(TRIAL, TEMPLATE, rows_model(good[0], bad, good[1]))
    assert values(result) == [("aspirin", 40, None), ("placebo", 38, None)]
    assert result.row_notes == {"arm": "1 rows of the answer could not be read and are left out"}


@pytest.mark.parametrize("odd", [{"status": 3}, ["a"], {"sentences": {}}, None])
async def test_a_bad_field_spoils_no_row(odd: Any) -> None:
    """A field of a row that cannot be read is unclear and says so."""
    row: dict[str, Any] = {**arm(answer("aspirin", 2)), "size": odd}
    result = await extract_document(TRIAL, TEMPLATE, rows_model(row))
    assert values(result) == [("aspirin", None, None)]
    assert result.rows["arm"][0]["size"].status is Status.UNCLEAR
    assert result.rows["arm"][0]["size"].note


async def test_fields_left_out_and_bare_values_are_read() -> None:
    """A bare value is looked for in the text; a field that is left out is unclear, not silent."""
    result = await extract_document(TRIAL, TEMPLATE, rows_model({"drug": "placebo", "size": "38 people"}))
    assert values(result) == [("placebo", 38, None)]
    assert result.rows["arm"][0]["dose"].status is Status.UNCLEAR


async def test_rows_that_say_nothing_and_rows_twice_are_left_out() -> None:
    """A row without any answer is none, and a row given twice is one."""
    one = arm(answer("aspirin", 2), answer(40, 2))
    result = await extract_document(TRIAL, TEMPLATE, rows_model(one, arm(), arm(answer("Aspirin", 2), None), one))
    assert values(result) == [("aspirin", 40, None)]


async def test_a_single_row_and_none_are_read() -> None:
    """An object in the place of the list is one row, null is no row."""
    one = CapableModel(lambda prompt: {"country": silent(), "arm": arm(answer("aspirin", 2))})
    assert values(await extract_document(TRIAL, TEMPLATE, one)) == [("aspirin", None, None)]
    none = CapableModel(lambda prompt: {"country": silent(), "arm": None})
    assert (await extract_document(TRIAL, TEMPLATE, none)).rows == {"arm": []}


async def test_endless_rows_are_cut_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that does not stop costs a bounded number of rows, and the note says that some are missing."""
    for module in (answer_shape, numbered):
        monkeypatch.setattr(module, "MAX_ROWS", 3)
    rows = [arm(answer("placebo", 3), answer(number, 3)) for number in range(9)]
    result = await extract_document(TRIAL, TEMPLATE, rows_model(*rows))
    assert len(result.rows["arm"]) == 3
    assert "beyond the first 3" in result.row_notes["arm"]


async def test_rows_of_the_parts_of_a_document_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that two parts see is one row with the fields of both."""
    monkeypatch.setattr(numbered, "CHUNK_TOKENS", 300)
    filler = "There was rain on that day too. " * 60
    document = document_of(f"Aspirin was given to 40 people. {filler} The aspirin group took 100 mg. Placebo: nothing.")

    def script(prompt: str) -> dict[str, Any]:
        rows = []
        if "[1] Aspirin was given" in prompt:
            rows.append(arm(answer("Aspirin", 1), answer(40, 1)))
        if "[62] The aspirin group" in prompt:
            rows += [arm(answer("aspirin", 62), None, answer(100, 62)), arm(answer("Placebo", 63))]
        return {"country": silent(), "arm": rows}

    result = await extract_document(document, TEMPLATE, CapableModel(script))
    assert result.chunks > 2
    assert values(result) == [("Aspirin", 40, 100), ("Placebo", None, None)]
    assert_real(document, TEMPLATE, result)


def said(value: Any) -> FieldResult:
    """Return a field that says something, or is silent."""
    return FieldResult(value=value, status=Status.NOT_REPORTED if value is None else Status.FOUND)


def outcome(measure: str | None, at: str | None, mean: float | None) -> RowResult:
    """Return a settled row of outcomes."""
    return {"measure": said(measure), "at": said(at), "mean": said(mean)}


def test_a_key_tells_rows_apart() -> None:
    """Rows that agree in the whole key are one, and a contradiction within is unclear; other keys are other rows."""
    rows = [outcome("Pain", "6 weeks", 3.5), outcome("pain", "12 weeks", 4.1), outcome("pain", "6 weeks", 3.6)]
    merged = merge_rows(KEYED.rows[0], rows)
    assert [(row["at"].value, row["mean"].status) for row in merged] == [
        ("6 weeks", Status.UNCLEAR),
        ("12 weeks", Status.FOUND),
    ]


def test_without_a_key_a_contradiction_makes_two_rows() -> None:
    """Nothing is lost where the template does not say what tells rows apart."""
    group = KEYED.rows[0].model_copy(update={"key": ()})
    rows = [outcome("pain", "6 weeks", 3.5), outcome("pain", "12 weeks", 4.1), outcome("pain", "6 weeks", None)]
    assert [row["mean"].value for row in merge_rows(group, rows)] == [3.5, 4.1]


def test_rows_that_nothing_names_are_one_only_when_equal() -> None:
    """Two rows without a name and with other values stay two."""
    group = TEMPLATE.rows[0]
    rows: list[RowResult] = [{"drug": said(None), "size": said(size), "dose": said(None)} for size in (40, 38, 40)]
    assert [row["size"].value for row in merge_rows(group, rows)] == [40, 38]


def test_rows_are_paired_by_key_and_then_by_agreement() -> None:
    """Of several rows with the same name the one that agrees most is the partner; what is left stands alone."""
    group = KEYED.rows[0].model_copy(update={"key": ("measure",)})
    first = [outcome("pain", "6 weeks", 3.5), outcome("pain", "12 weeks", 4.1)]
    second = [outcome("Pain", "12 weeks", 4.1), outcome("Pain", "6 weeks", 9), outcome("sleep", None, 1)]
    assert pair_rows(group, first, second) == [(first[0], second[1]), (first[1], second[0]), (None, second[2])]


async def test_a_weak_model_is_not_asked_for_rows() -> None:
    """Rows of a weak model are none, and the note says that nobody asked."""
    result = await extract_document(TRIAL, TEMPLATE, WeakModel(lambda label, text: "Norway"))
    assert result.rows == {"arm": []}
    assert result.row_notes == {"arm": NO_ROWS}
    assert_real(TRIAL, TEMPLATE, result)


def test_the_answer_shape_of_rows_can_be_strict() -> None:
    """Strict modes get a list of objects with every field of the group."""
    schema = strict_schema(answer_model(TEMPLATE))
    assert list(schema["properties"]) == ["country", "arm"]
    assert schema["properties"]["arm"]["items"] == {"$ref": "#/$defs/Row_arm"}
    row = schema["$defs"]["Row_arm"]
    assert row["required"] == ["drug", "size", "dose"]
    assert row["additionalProperties"] is False


async def test_the_prompt_tells_what_a_row_stands_for() -> None:
    """The table, its description and its fields are asked for behind the fields of the document."""
    llm = rows_model()
    await extract_document(TRIAL, TEMPLATE, llm)
    (prompt,) = llm.prompts
    assert "the table arm, one row for each: An arm of the trial" in prompt
    assert "- dose (number): Daily dose (in mg)" in prompt
    assert prompt.index("- country") < prompt.index("table arm") < prompt.index("- drug")


#: Of all questions of the first version. Who changes it makes every user pay for every answer again.
ASKED_IN_VERSION_1 = "aa5a0d7e2572c24517823ac6fcd8c18227f8ae9ae718f4ca86138a79e381228a"
ASKED_PLAINLY_IN_VERSION_1 = "3b80c7758e0c090210d9da17058b22a419ac4741b1e6ee8356a5491573a987e2"


async def test_templates_without_rows_ask_what_they_always_asked() -> None:
    """System message, prompt and schema are those of the first version, so that answers paid then are reused."""
    llm, plain = capable(), weak()
    await extract_document(PAPER, PLAIN_TEMPLATE, llm)
    await extract_document(PAPER, PLAIN_TEMPLATE, plain)
    shape = answer_model(PLAIN_TEMPLATE)
    asked = [FIRST.system_for(PLAIN_TEMPLATE), llm.prompts, strict_schema(shape), shape.model_json_schema()]
    assert digest([*asked, shape.__name__]) == ASKED_IN_VERSION_1
    assert digest(plain.asked) == ASKED_PLAINLY_IN_VERSION_1


def digest(data: Any) -> str:
    """Return the sha256 of a JSON-able value."""
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def test_the_silent_answer_is_valid() -> None:
    """What planning answers in the model's place fits every template."""
    for template in (TEMPLATE, KEYED, PLAIN_TEMPLATE):
        answer_model(template).model_validate(silent_answer(template))


WORDS = st.sampled_from(["aspirin", "placebo", "Norway", "the", "40", "100 mg", "3.5", "38 people", "", "=1+1", "\x00"])
VALUE: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), WORDS
)
CELL: st.SearchStrategy[Any] = st.one_of(
    VALUE,
    st.fixed_dictionaries(
        {
            "status": st.sampled_from([*Status, "odd", None, 3]),
            "sentences": st.one_of(st.lists(st.integers(-2, 9), max_size=3), VALUE),
        },
        optional={"value": st.one_of(VALUE, st.lists(VALUE, max_size=2)), "note": VALUE, "more": VALUE},
    ),
)
ROW: st.SearchStrategy[Any] = st.one_of(
    VALUE, st.dictionaries(st.sampled_from(["drug", "size", "dose", "x"]), CELL, max_size=4), st.lists(CELL, max_size=2)
)


@given(st.one_of(st.lists(ROW, max_size=6), ROW))
async def test_nothing_a_model_says_of_rows_makes_evidence_up(rows: Any) -> None:
    """Any answer in the place of rows gives located quotes or no finding, and costs no field of the document."""
    said = {"country": answer("Norway", 1), "arm": rows}
    result = await extract_document(TRIAL, TEMPLATE, CapableModel(lambda prompt: said))
    assert_real(TRIAL, TEMPLATE, result)
    assert result.fields["country"].status is Status.FOUND
