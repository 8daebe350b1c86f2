"""Extraction from models that answer only plainly: the questions, the values, the repairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator, model_validator

from headrace.llm.coercion import coerce
from headrace.llm.fields import Kind, Question, questions
from headrace.llm.results import Provenance
from headrace.llm.validation import InvalidAnswerError
from headrace.model.llm import AnswerStyle, CompletionRequest, FinishReason
from headrace.model.provider_errors import BadOutputError
from headrace.model.usage import Usage
from headrace.stores.memory import open_memory_stores
from tests.unit.llm_answers import WrittenProvider, llm_of, said

TEXT = "Each of the 60 plants was watered. The variety Rosada did best."


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "dark_blue"


class Place(BaseModel):
    """A nested model."""

    country: str
    height: float | None = Field(None, description="height above the sea")


class Trial(BaseModel):
    """One field of each kind."""

    plants: int = Field(description="number of plants")
    variety: Annotated[str, Field(description="Which variety was best?")]
    blinded: bool = Field(description="whether it was blinded")
    colour: Colour
    design: Literal["field", "pot"] | None
    places: list[str]
    site: Place
    trees: list[Place] = Field(description="The list of trees.")


def question(kind: Kind, *choices: str, is_optional: bool = False) -> Question:
    """A question of this kind."""
    return Question(("field",), "?", kind, choices, is_optional, str)


def plain(answers: Any) -> WrittenProvider:
    """A provider that answers plainly."""
    return WrittenProvider(answers, AnswerStyle.PLAIN)


def by_question(answers: dict[str, str]) -> Callable[[CompletionRequest], str]:
    """Answer by the words of the question."""

    def answer(request: CompletionRequest) -> str:
        asked = request.messages[-1].content.rpartition("Question: ")[2]
        return next(text for words, text in answers.items() if words in asked)

    return answer


def test_each_field_becomes_one_question() -> None:
    """Kinds, words and choices come from the model; nested models are asked field by field."""
    asked = {one.path: (one.kind, one.text) for one in questions(Trial)}

    assert asked == {
        ("plants",): (Kind.NUMBER, "How many plants?"),
        ("variety",): (Kind.TEXT, "Which variety was best?"),
        ("blinded",): (Kind.YES_NO, "Is it true that it was blinded? Answer yes or no."),
        ("colour",): (Kind.CHOICE, "What is the colour? Choose from: red, dark_blue."),
        ("design",): (Kind.CHOICE, "What is the design? Choose from: field, pot."),
        ("places",): (Kind.LIST, "What is the places? Answer with a list, separated by commas."),
        ("site", "country"): (Kind.TEXT, "What is the country of the site?"),
        ("site", "height"): (Kind.NUMBER, "What is the height above the sea of the site?"),
        ("trees",): (Kind.JSON, "What is the list of trees?"),
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("60", 60),
        ("There were 60 plants.", 60),
        ("about 1,250 plants", 1250),
        ("12.5 %", 12.5),
        ("-3", -3),
        ("Answer: 7", 7),
        ("Nine participants left.", 9),
        ("twenty-four hours", 24),
        ("Nine of the 184", 9),
        ("184, of whom nine left", 184),
    ],
)
def test_a_number_is_found_in_the_words_around_it(text: str, value: float) -> None:
    """Digits with thousands and decimals, or small numbers in words; the first one counts."""
    assert coerce(question(Kind.NUMBER), text) == value


@pytest.mark.parametrize(
    ("asked", "text", "value"),
    [
        (question(Kind.YES_NO), "Yes, it was.", True),
        (question(Kind.YES_NO), "No.", False),
        (question(Kind.YES_NO), "It was not blinded.", False),
        (question(Kind.CHOICE, "red", "dark_blue"), "It was Dark blue.", "dark_blue"),
        (question(Kind.CHOICE, "pot", "pot trial"), "a pot trial", "pot trial"),
        (question(Kind.LIST), "Norway, Peru and Spain.", ["Norway", "Peru", "Spain"]),
        (question(Kind.LIST, "a", "b"), "A; b", ["a", "b"]),
        (question(Kind.TEXT), ' "Rosada." ', "Rosada"),
        (question(Kind.TEXT), "It grew. It died.", "It grew. It died."),
        (question(Kind.NUMBER, is_optional=True), "The text does not say.", None),
        (question(Kind.TEXT, is_optional=True), "Not mentioned", None),
        (question(Kind.TEXT, is_optional=True), "", None),
        (question(Kind.TEXT), "None", "None"),
    ],
)
def test_an_answer_becomes_a_value(asked: Question, text: str, value: Any) -> None:
    """Yes and no, choices, lists, texts; an optional field may be absent."""
    assert coerce(asked, text) == value


@pytest.mark.parametrize(
    ("asked", "text", "rule"),
    [
        (question(Kind.NUMBER), "many", "must hold a number"),
        (question(Kind.YES_NO), "perhaps", "must be yes or no"),
        (question(Kind.CHOICE, "red"), "reddish", "must be one of red"),
        (question(Kind.TEXT), "  ", "is empty"),
    ],
)
def test_an_answer_without_a_value_says_what_was_wanted(asked: Question, text: str, rule: str) -> None:
    """The rule goes back to the model in a repair."""
    with pytest.raises(InvalidAnswerError, match=rule):
        coerce(asked, text)


async def test_a_model_is_filled_question_by_question() -> None:
    """Each field is one ask; what is too rich for a short answer is asked for as JSON."""
    answers = {
        "How many plants": "60 plants",
        "Which variety": "Rosada",
        "blinded": "no",
        "colour": "blue, a dark blue",
        "design": "not stated",
        "places": "Valencia, Murcia",
        "country of the site": "Spain.",
        "above the sea": "not given",
        "list of trees": json.dumps({"trees": [{"country": "Peru", "height": 3}]}),
    }
    answers["colour"] = "dark blue"
    provider = plain(by_question(answers))
    extraction = await llm_of(provider).extract_detailed(Trial, prompt=TEXT)

    assert extraction.value == Trial(
        plants=60,
        variety="Rosada",
        blinded=False,
        colour=Colour.BLUE,
        design=None,
        places=["Valencia", "Murcia"],
        site=Place(country="Spain"),
        trees=[Place(country="Peru", height=3)],
    )
    assert extraction.calls == len(answers)
    assert extraction.provenance is Provenance.LLM


async def test_questions_share_their_beginning() -> None:
    """Everything but the last lines is equal between the questions on one text, so a provider reads it once."""

    class Two(BaseModel):
        """Two fields."""

        plants: int
        variety: str

    provider = plain(by_question({"plants": "60", "variety": "Rosada"}))
    await llm_of(provider).extract(Two, prompt=TEXT, system="You know plants.")

    first, second = (request.messages for request in provider.requests)
    assert first[:-1] == second[:-1]
    assert first[0].content.startswith("You know plants.")
    for turns in (first, second):
        assert turns[-1].content.startswith(f"Text: {TEXT}\n\nQuestion: ")
    assert [request.stop for request in provider.requests] == [("\n",), ("\n",)]
    assert all(request.max_tokens for request in provider.requests)


class Count(BaseModel):
    """A field with a rule."""

    plants: int = Field(ge=1)

    @field_validator("plants")
    @classmethod
    def is_even(cls, plants: int) -> int:
        """Only even counts."""
        if plants % 2:
            raise ValueError("must be even")
        return plants


@pytest.mark.parametrize(
    ("wrong", "told"), [("many", "must hold a number"), ("0", "greater than or equal to 1"), ("3", "must be even")]
)
async def test_only_the_wrong_field_is_asked_for_again(wrong: str, told: str) -> None:
    """The error of the value, or of the model's own rule, is named in a new ask for that field alone."""

    class Holder(BaseModel):
        """A right field beside the wrong one."""

        variety: str
        count: Count

    answers = iter(["Rosada", wrong, "60"])
    provider = plain(answers)
    extraction = await llm_of(provider).extract_detailed(Holder, prompt=TEXT)

    assert extraction.value == Holder(variety="Rosada", count=Count(plants=60))
    assert extraction.provenance is Provenance.REASKED
    assert told in provider.requests[-1].messages[-1].content
    assert len(provider.requests) == 3


async def test_a_field_is_repaired_twice_at_most_and_the_end_costs_nothing_twice() -> None:
    """Three wrong answers name the field; the same ask again makes no call."""
    stores = open_memory_stores()
    provider = plain(["many"] * 3)
    for _ in range(2):
        with pytest.raises(BadOutputError, match="plants: the answer must hold a number"):
            await llm_of(provider, stores).extract(Count, prompt=TEXT)

    assert len({request.memo_key("written") for request in provider.requests}) == len(provider.requests) == 3


async def test_a_rule_of_the_whole_model_cannot_be_repaired() -> None:
    """Where no field is to blame, the rule is named at once."""

    class Pair(BaseModel):
        """Two fields and a rule between them."""

        low: int
        high: int

        @model_validator(mode="after")
        def is_ordered(self) -> Pair:
            """Low first."""
            if self.low > self.high:
                raise ValueError("low must be below high")
            return self

    provider = plain(by_question({"low": "5", "high": "3"}))
    with pytest.raises(BadOutputError, match="low must be below high"):
        await llm_of(provider).extract(Pair, prompt=TEXT)
    assert len(provider.requests) == 2


async def test_of_a_cut_answer_only_what_surely_ended_counts() -> None:
    """A number at the cut may go on; a text keeps its whole sentences, or is asked for again."""

    class Two(BaseModel):
        """A number and a text."""

        plants: int
        variety: str

    cut = FinishReason.LENGTH
    provider = plain([said("60 of the 1", cut), said("Rosada did best. It also", cut)])
    assert await llm_of(provider).extract(Two, prompt=TEXT) == Two(plants=60, variety="Rosada did best")
    provider = plain([said("6", cut), said("The variety that", cut), "60", "Rosada"])
    assert await llm_of(provider).extract(Two, prompt=TEXT) == Two(plants=60, variety="Rosada")


async def test_reasoning_is_no_plain_answer() -> None:
    """What stands before the answer is passed over; where nothing else came the field is asked for again."""

    class Variety(BaseModel):
        """A text."""

        variety: str

    provider = plain(["<think>Elba, or Nadine?</think>\nRosada"])
    assert await llm_of(provider).extract(Variety, prompt=TEXT) == Variety(variety="Rosada")
    provider = plain(["<think>Elba, or Nadine?", "Rosada"])
    extraction = await llm_of(provider).extract_detailed(Variety, prompt=TEXT)
    assert (extraction.value.variety, extraction.provenance) == ("Rosada", Provenance.REASKED)


async def test_an_equal_plain_ask_costs_nothing() -> None:
    """Each field's answer is in the memo for itself."""
    stores = open_memory_stores()
    provider = plain(["60"])
    await llm_of(provider, stores).extract(Count, prompt=TEXT)
    again = await llm_of(provider, stores).extract_detailed(Count, prompt=TEXT)

    assert again.usage == Usage(reused=1)


async def test_dates_and_decimals_are_read_by_the_model_s_own_rules() -> None:
    """What code cannot tell from words, the model's types validate."""

    class Paid(BaseModel):
        """Typed fields."""

        on: date
        amount: Decimal

    provider = plain(by_question({"on": "2024-05-01", "amount": "12.50 euros"}))
    assert await llm_of(provider).extract(Paid, prompt=TEXT) == Paid(on=date(2024, 5, 1), amount=Decimal("12.5"))


class Tree(BaseModel):
    """A model that lies in itself."""

    name: str
    child: Tree | None = None


def test_a_model_that_lies_in_itself_is_asked_for_as_json_there() -> None:
    """Recursion ends in one JSON question."""
    assert [(one.path, one.kind) for one in questions(Tree)] == [(("name",), Kind.TEXT), (("child",), Kind.JSON)]
