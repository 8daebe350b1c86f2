"""Dual extraction: what two answers agree on is found, what they do not agree on waits for a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidInputError
from headrace.apps.papers.dual import NO_SUCH_ROW, Second, agree, queue_of, second_of
from headrace.apps.papers.errors import DualError
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.plainly import NO_ROWS
from headrace.apps.papers.result import DocumentResult, Finding, Status
from headrace.apps.papers.rows import row_name
from headrace.apps.papers.sameness import same_value
from headrace.apps.papers.template import FieldType, TemplateField
from tests.unit.papers_models import CapableModel, WeakModel, answer, silent
from tests.unit.papers_truth import assert_real
from tests.unit.test_papers_rows import CELL, ROW, TEMPLATE, TRIAL, arm


def said(country: Any, *rows: Any, name: str = "capable-1") -> CapableModel:
    """Return a model that answers a country and rows."""
    return CapableModel(lambda prompt: {"country": country, "arm": list(rows)}, model_name=name)


async def both(first: CapableModel, second: Any, *, other_words: bool = False) -> DocumentResult:
    """Extract with two models and check what must always hold."""
    result = await extract_document(TRIAL, TEMPLATE, first, second=Second(second, other_words))
    assert_real(TRIAL, TEMPLATE, result)
    return result


async def test_agreement_is_found_and_marked() -> None:
    """Two models that say the same in other notation give one value with its quote, and nothing to review."""
    first = said(answer("Norway", 1), arm(answer("aspirin", 2), answer(40, 2), answer("100 mg", 2)))
    second = said(answer(" norway.", 1), arm(answer("the aspirin", 2), answer("forty", 2), answer("0.1 g")))
    result = await both(first, second)
    assert {cell.found.agreed for cell in result.cells()} == {True}
    assert (result.fields["country"].value, result.fields["country"].status) == ("Norway", Status.FOUND)
    assert [found.value for found in result.rows["arm"][0].values()] == ["aspirin", 40, 100]
    assert queue_of([result]) == ()


async def test_disagreement_keeps_both_with_their_quotes() -> None:
    """Two located values that differ are no value: both wait in the queue, each with its sentence and who said it."""
    first = said(silent(), arm(answer("aspirin", 2), answer(40, 2)), name="one")
    second = said(silent(), arm(answer("aspirin", 2), answer(38, 3)), name="two")
    result = await both(first, second)
    found = result.rows["arm"][0]["size"]
    assert (found.status, found.value, found.quote, found.agreed) == (Status.NEEDS_REVIEW, None, None, False)
    (entry,) = queue_of([result])
    assert (entry.document_id, entry.group, entry.row, entry.field) == (TRIAL.document_id, "arm", 1, "size")
    assert (entry.first.value, entry.first.quote) == (40, "Forty people took aspirin, 100 mg a day.")
    assert (entry.second.value, entry.second.quote) == (38, "Another 38 people took placebo.")
    assert (entry.first.by, entry.second.by) == ("one, papers-1", "two, papers-1")
    assert found.note == "40 (one, papers-1) or 38 (two, papers-1)"


async def test_silence_against_a_value_is_a_disagreement() -> None:
    """One says it, the other says that the document does not: a person decides."""
    result = await both(said(answer("Norway", 1)), said(silent()))
    (entry,) = queue_of({TRIAL.document_id: result})
    assert (entry.first.value, entry.second.status) == ("Norway", Status.NOT_REPORTED)


async def test_a_row_that_only_one_sees_is_reviewed() -> None:
    """The lonely row is there with its candidates, and what people call it."""
    lonely = arm(answer("placebo", 3), answer(38, 3))
    result = await both(said(silent(), arm(answer("aspirin", 2))), said(silent(), lonely, arm(answer("aspirin", 2))))
    row = result.rows["arm"][1]
    assert [found.status for found in row.values()] == [
        Status.NEEDS_REVIEW, Status.NEEDS_REVIEW, Status.NOT_REPORTED,
    ]  # fmt: skip
    assert row["drug"].candidates[0].note == NO_SUCH_ROW
    assert row_name(TEMPLATE.rows[0], row) == "placebo"
    assert row_name(TEMPLATE.rows[0], result.rows["arm"][0]) == "aspirin"


async def test_one_located_value_is_enough_for_agreement() -> None:
    """Where both name the value and one of them the right sentence, the value is found there."""
    result = await both(said(answer("Norway", 3)), said(answer("Norway", 1, status="unclear", note="hm")))
    assert result.fields["country"].status is Status.FOUND
    assert result.fields["country"].quote == "The trial was done in Norway."


async def test_two_values_that_stand_nowhere_are_not_found_by_agreeing() -> None:
    """Agreement is no evidence: what the text does not hold stays unclear."""
    result = await both(said(answer("Sweden")), said(answer("Sweden", 2)))
    assert result.fields["country"].status is not Status.FOUND


async def test_the_second_wording_asks_the_same_in_other_words() -> None:
    """One model is asked twice: other texts, fields before the text and in another order, the same schema of fields."""
    llm = said(answer("Norway", 1), arm(answer("aspirin", 2)))
    result = await both(llm, llm, other_words=True)
    one, two = llm.prompts
    assert one.index("[1]") < one.index("- country")
    assert two.index("- drug") < two.index("- dose") < two.index("- size") < two.index("[1]")
    assert [asking.prompt_version for asking in result.asked] == ["papers-1", "papers-1-second"]
    assert len({asking.prompt_digest for asking in result.asked}) == 2
    assert (result.usage.calls, result.usage.input_tokens) == (2, 200)
    assert list(result.rows["arm"][0]) == ["drug", "size", "dose"]


async def test_a_weak_second_says_nothing_of_rows() -> None:
    """Rows that the second was not asked for are the first's own, and the note tells."""
    weak = WeakModel(lambda label, text: "Norway")
    result = await both(said(answer("Norway", 1), arm(answer("aspirin", 2))), weak)
    assert result.fields["country"].agreed is True
    assert (result.rows["arm"][0]["drug"].value, result.rows["arm"][0]["drug"].agreed) == ("aspirin", None)
    assert result.row_notes == {"arm": NO_ROWS}


async def test_a_weak_model_is_asked_with_another_form() -> None:
    """The second wording of a plain model shows another worked form before the same question."""
    seen: list[str] = []

    @dataclass
    class Watched(WeakModel):
        async def complete_detailed(self, **options: Any) -> Any:
            seen.append(options["messages"][1]["content"])
            return await super().complete_detailed(**options)

    weak = Watched(lambda label, text: "Norway")
    result = await extract_document(TRIAL, TEMPLATE, weak, second=Second(weak, other_words=True))
    assert len(set(seen)) == 2
    assert result.fields["country"].agreed is True


@dataclass
class Several(CapableModel):
    """A model beside others, as a gateway with several configured models."""

    others: dict[str, CapableModel] = field(default_factory=dict)

    def using(self, model: str) -> CapableModel:
        """Return another model, or refuse its name."""
        if model not in self.others:
            raise InvalidInputError("model", "must be configured", model)
        return self.others[model]


def test_dual_names_a_wording_or_a_model() -> None:
    """`prompts` is the same model in other words, a name is a configured model, anything else is refused."""
    other = said(silent(), name="other")
    llm = Several(lambda prompt: {}, others={"strong": other})
    assert second_of(llm, None) is None
    assert second_of(llm, "prompts") == Second(llm, other_words=True)
    assert second_of(llm, "strong") == Second(other)
    for lacking in (llm, other):
        with pytest.raises(DualError, match=r"'prompts'.*got 'weird'"):
            second_of(lacking, "weird")


def test_a_model_is_no_second_opinion_on_itself() -> None:
    """An empty name, and another name for the same model, are refused: agreement with oneself says nothing."""
    llm = Several(lambda prompt: {}, others={"": said(silent()), "same": said(silent())})
    with pytest.raises(DualError, match=r"got ''"):
        second_of(llm, "")
    with pytest.raises(DualError, match=r"another model than that of \[llm\].*got 'same' \(capable-1\)"):
        second_of(llm, "same")


@pytest.mark.parametrize(
    ("kind", "one", "other", "same"),
    [
        ("number", 1200, 1200.0, True),
        ("number", 2.5714285714, 2.571428571, True),
        ("number", 18, 18.1, False),
        ("integer", 0, None, False),
        ("text", "Adults with type 2 diabetes", "adults with type 2 diabetes.", True),
        ("text", "< 5 mm", "> 5 mm", False),
        ("text", "arm A", "arm B", False),
        ("text", "A", "the", False),
        ("text", "double–blind", "double-blind", True),
        ("list", ["nausea", "Headache"], ["headache", "nausea"], True),
        ("list", ["nausea"], ["nausea", "headache"], False),
        ("date", "2021-03", "2021-03-05", False),
        ("boolean", True, True, True),
        ("boolean", False, None, False),
        ("text", None, None, True),
    ],
)
def test_what_counts_as_the_same_value(kind: FieldType, one: Any, other: Any, same: bool) -> None:
    """Notation does not matter; digits, signs and precision do; both ways round."""
    item = TemplateField(name="n", type=kind, description="d")
    assert same_value(item, one, other) is same_value(item, other, one) is same


@pytest.mark.parametrize(
    ("one", "other", "agreed"),
    [
        (Status.NOT_REPORTED, Status.NOT_REPORTED, True),
        (Status.UNCLEAR, Status.UNCLEAR, True),
        (Status.NOT_REPORTED, Status.NOT_APPLICABLE, False),
        (Status.UNCLEAR, Status.NOT_REPORTED, False),
    ],
)
def test_without_values_the_status_must_agree(one: Status, other: Status, agreed: bool) -> None:
    """No value twice is agreement only for the same reason."""
    item = TemplateField(name="n", type="text", description="d")
    assert agree(item, Finding(status=one), Finding(status=other)) is agreed


@given(st.tuples(CELL, CELL), st.tuples(st.lists(ROW, max_size=4), st.lists(ROW, max_size=4)))
async def test_no_two_models_make_evidence_up(fields: tuple[Any, Any], rows: tuple[Any, Any]) -> None:
    """Any two answers give located findings or none, and every disagreement has its two candidates in the queue."""
    countries = [one if isinstance(one, dict) else answer(one, 1) for one in fields]
    result = await both(said(countries[0], *rows[0]), said(countries[1], *rows[1]))
    disputed = [cell for cell in result.cells() if cell.found.agreed is False]
    assert len(queue_of([result])) == len(disputed) == result.count(Status.NEEDS_REVIEW)
