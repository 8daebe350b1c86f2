"""One object: mended, asked for again in its wrong parts or whole, given to the second model, or to the rule."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel, Field, model_validator

from headrace.llm.first_requests import json_request, strict_request
from headrace.llm.items import OnFail
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.objects import extract_object
from headrace.llm.plain import extract_plain
from headrace.llm.results import Extraction, Provenance
from headrace.model.calls import Purpose
from headrace.model.llm import CompletionRequest
from headrace.model.provider_errors import BadOutputError, RefusedError
from tests.unit.llm_asking import REQUEST, WrittenExchange, cut

M = TypeVar("M", bound=BaseModel)


async def extract_strict(
    exchange: Asking, model: type[M], request: CompletionRequest, *, on_fail: OnFail | None = None
) -> Extraction[M]:
    """Ask with the schema beside the request."""
    return await extract_object(exchange, model, strict_request(model, request), on_fail=on_fail)


async def extract_json(
    exchange: Asking, model: type[M], request: CompletionRequest, *, on_fail: OnFail | None = None
) -> Extraction[M]:
    """Ask with the schema in words."""
    return await extract_object(exchange, model, json_request(model, request), on_fail=on_fail)


class Row(BaseModel):
    """An element."""

    arm: str
    patients: int = Field(ge=0)


class Trial(BaseModel):
    """An object with lists."""

    title: str
    year: int = Field(alias="published", ge=1900)
    rows: list[Row]
    notes: list[str] = []


ROWS = [{"arm": f"Arm {number} of the trial, as it is named in its table", "patients": number} for number in range(9)]
GOOD = {"title": "A trial", "published": 1999, "rows": ROWS, "notes": ["one", "two"]}


def but(**changes: Any) -> str:
    """The good object with these fields."""
    return json.dumps({**GOOD, **changes})


def rows(**changes: Any) -> list[dict[str, Any]]:
    """The rows, the third of them with these fields."""
    return [*ROWS[:2], {**ROWS[2], **changes}, *ROWS[3:]]


async def test_wrong_parts_alone_are_asked_for_again() -> None:
    """A field and an element of a list, under keys of their own with their rules; the rest stays as it was said."""
    exchange = WrittenExchange(
        [but(rows=rows(patients="few"), published=12), '{"published": 1999, "rows_2": {"arm": "B", "patients": 7}}']
    )
    extraction = await extract_strict(exchange, Trial, REQUEST)

    assert extraction.value.year == 1999
    assert extraction.value.rows[2] == Row(arm="B", patients=7)
    assert [row.model_dump() for row in extraction.value.rows[3:]] == ROWS[3:]
    assert extraction.provenance is Provenance.REASKED
    assert exchange.purposes == [Purpose.ASK, Purpose.REASK]
    asked = exchange.asked[1][1]
    assert asked.schema is not None
    assert asked.schema["required"] == ["published", "rows_2"]
    assert asked.messages[: len(REQUEST.messages)] == REQUEST.messages
    assert json.loads(asked.messages[-2].content) == {"published": 12, "rows_2": {**ROWS[2], "patients": "few"}}
    words = asked.messages[-1].content
    assert "rows.2.patients: Input should be a valid integer" in words
    assert "published: Input should be greater than or equal to 1900" in words
    assert "Arm 5" not in "".join(message.content for message in asked.messages)


async def test_a_missing_field_is_a_part() -> None:
    """It is asked for alone, in JSON mode too."""
    without = json.dumps({name: value for name, value in GOOD.items() if name != "title"})
    exchange = WrittenExchange([without, '{"title": "A trial"}'])
    extraction = await extract_json(exchange, Trial, REQUEST)

    assert extraction.value.title == "A trial"
    assert exchange.asked[1][1].json_mode
    assert 'just "title"' in exchange.last_words[1]


async def test_a_second_ask_for_parts_is_another_ask() -> None:
    """Else the memo would give the first answer again; after two it ends."""
    bad = but(published=12)
    exchange = WrittenExchange([bad, '{"published": 12}', '{"published": 13}'])
    with pytest.raises(BadOutputError, match="greater than or equal to 1900"):
        await extract_strict(exchange, Trial, REQUEST)

    assert len({request.memo_key("p") for _, request in exchange.asked}) == 3


async def test_an_answer_that_says_all_again_is_taken_whole() -> None:
    """A model may not listen."""
    full = json.dumps({"title": "A trial", "year": 0, **GOOD})
    exchange = WrittenExchange([but(published=12), full])
    assert (await extract_strict(exchange, Trial, REQUEST)).value.year == 1999


async def test_parts_that_do_not_come_are_asked_for_again() -> None:
    """An answer to something else changes nothing."""
    exchange = WrittenExchange([but(published=12), '{"other": 1}', '{"published": 2001}'])
    extraction = await extract_strict(exchange, Trial, REQUEST)
    assert (extraction.value.year, extraction.value.title) == (2001, "A trial")


@pytest.mark.parametrize("wrong", ['{"title": "A trial", "published": 1}', but(rows=[{"arm": 1}] * 9)])
async def test_what_is_small_or_mostly_wrong_is_asked_for_whole(wrong: str) -> None:
    """Its parts would cost as much."""
    exchange = WrittenExchange([wrong, but()])
    extraction = await extract_strict(exchange, Trial, REQUEST)

    assert extraction.provenance is Provenance.REASKED
    assert exchange.purposes == [Purpose.ASK, Purpose.REPAIR]
    assert exchange.asked[1][1].schema == exchange.asked[0][1].schema


async def test_a_rule_of_the_whole_is_told_and_the_whole_asked_for() -> None:
    """No part is to blame."""

    class Pair(Trial):
        @model_validator(mode="after")
        def has_two_notes(self) -> Pair:
            """Two."""
            if len(self.notes) != 2:
                raise ValueError("there must be two notes")
            return self

    exchange = WrittenExchange([but(notes=["one"]), but()])
    assert (await extract_strict(exchange, Pair, REQUEST)).value.notes == ["one", "two"]
    assert "there must be two notes" in exchange.last_words[1]


async def test_small_mistakes_cost_no_call() -> None:
    """JSON that code can read without adding anything."""
    exchange = WrittenExchange([f"```json\n{but()[:-1]},}}\n```"])
    extraction = await extract_json(exchange, Trial, REQUEST)

    assert extraction.value.year == 1999
    assert (extraction.provenance, exchange.purposes) == (Provenance.REPAIRED, [Purpose.ASK])


async def test_a_cut_object_is_never_mended() -> None:
    """It is asked for again with more room, though json-repair would close it."""
    exchange = WrittenExchange([cut(but()), but()])
    extraction = await extract_strict(exchange, Trial, replace(REQUEST, max_tokens=300))

    assert extraction.provenance is Provenance.REASKED
    assert [request.max_tokens for _, request in exchange.asked] == [300, 600]
    assert exchange.purposes[1] is Purpose.REPAIR


async def test_the_second_model_is_asked_the_first_question() -> None:
    """Once, after two repairs, without the first model's mistakes."""
    above = WrittenExchange([but()])
    exchange = WrittenExchange(["?"] * 3, above=above)
    extraction = await extract_strict(exchange, Trial, REQUEST)

    assert extraction.provenance is Provenance.ESCALATED
    assert above.purposes == [Purpose.ESCALATE]
    assert above.asked[0][1] == exchange.asked[0][1]


@pytest.mark.parametrize("said", ["?", RefusedError(), BadOutputError()])
async def test_then_the_caller_s_rule_decides(said: Any) -> None:
    """With what was said and what is wrong with it; without a rule it is an error."""
    default = Trial(title="none", published=1900, rows=[])

    def rule(raw: str, errors: tuple[str, ...]) -> Trial | None:
        return default if raw == "?" and errors == ("the answer holds no JSON object",) else None

    def exchange() -> WrittenExchange:
        return WrittenExchange(["?"] * 3, above=WrittenExchange([said]))

    extraction = await extract_strict(exchange(), Trial, REQUEST, on_fail=rule)
    assert (extraction.value, extraction.provenance) == (default, Provenance.RULE)
    assert (extraction.errors, extraction.raw) == (("the answer holds no JSON object",), "?")
    extraction = await extract_json(exchange(), Trial, REQUEST, on_fail=default)
    assert extraction.provenance is Provenance.FALLBACK
    for on_fail in (None, "needs_review", lambda raw, errors: None):
        with pytest.raises(BadOutputError):
            await extract_strict(exchange(), Trial, REQUEST, on_fail=on_fail)


async def test_a_plain_model_s_wrong_field_goes_to_the_second_model() -> None:
    """That field alone; then the rule."""

    class Plants(BaseModel):
        """Two fields."""

        plants: int
        variety: str

    above = WrittenExchange(["60"])
    exchange = WrittenExchange(["many", "Rosada", "many", "many"], above=above)
    extraction = await extract_plain(exchange, Plants, REQUEST)
    assert (extraction.value.plants, extraction.provenance) == (60, Provenance.ESCALATED)
    assert exchange.purposes == [Purpose.ASK, Purpose.ASK, Purpose.REASK, Purpose.REASK]
    assert above.purposes == [Purpose.ESCALATE]

    exchange = WrittenExchange(["many", "Rosada", "many", "many"], above=WrittenExchange(["lots"]))
    extraction = await extract_plain(exchange, Plants, REQUEST, on_fail=Plants(plants=0, variety=""))
    assert extraction.provenance is Provenance.FALLBACK
    assert extraction.raw == "plants: lots\nvariety: Rosada"
