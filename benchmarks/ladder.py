"""What the ladder makes of wrong answers: items valid, what asking again costs, and whether valid items stay untouched.

    python benchmarks/ladder.py [--calls 300] [--items 10] [--wrong 0.2] [--style json] [--stream] [--json FILE]

A scripted provider answers lists, of which a fifth (of the answers to asks and to repeated asks alike) is malformed,
truncated or wrong, each by a third. The same calls are made of a provider without faults: an item counts as right where
it equals its twin there. The cost is in tokens, those of answers times four, as most prices have it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from headrace import App
from headrace.llm.items import ItemResult
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.lists import extract_items, stream_items
from headrace.model.calls import Purpose
from headrace.model.llm import Answer, AnswerStyle, CompletionRequest, Message, TextPart
from headrace.model.provider_errors import BadOutputError
from headrace.model.usage import Usage
from headrace.settings import load_settings
from headrace.testing.provider import Answers, Fault, FaultKind, ScriptedProvider, Span

OUTPUT_WEIGHT = 4
IN_FLIGHT = 16
SYSTEM = (
    "You invent places for a role-playing game that is set in a cold northern country of many small kingdoms. "
    "Each place has a name of two words that no other place has, a kind, the number of people who live there, and a "
    "description of one or two sentences that a game master can read aloud as it stands. The description names what a "
    "traveller sees, hears and smells first, and one thing that is odd about the place; it never speaks of kings, gods "
    "or wars, for the players find those out by themselves. Numbers are plausible for the kind of place: an inn has a "
    "few people, a village some hundreds, a town some thousands. Names sound as if people of that country had given "
    "them, long ago, for a reason that the description may hint at. Do not use names of real places, and none of books "
    "or films. Write in British English, in the present tense, without exclamation marks, and without any greeting."
)
#: By thirds: malformed, truncated (with the finish reason that says so, and without), wrong (an item, types, shape).
SHARES = {
    FaultKind.MALFORMED_JSON: 1 / 3,
    FaultKind.LENGTH: 1 / 6,
    FaultKind.TRUNCATED_JSON: 1 / 6,
    FaultKind.BAD_ITEM: 1 / 9,
    FaultKind.WRONG_TYPE: 1 / 9,
    FaultKind.WRONG_JSON: 1 / 9,
}


class Place(BaseModel):
    """One item."""

    name: str = Field(min_length=3, max_length=60)
    kind: Literal["inn", "village", "town"]
    people: int = Field(ge=0)
    description: str = Field(min_length=20)


TEMPLATE = {
    "name": "{name} {hash}", "kind": "village", "people": "{number:900}", "description": "A place: {words:40}.",
}  # fmt: skip


@dataclass
class Bill:
    """Tokens and calls by purpose."""

    usage: dict[Purpose, Usage] = field(default_factory=dict)

    def add(self, purpose: Purpose, usage: Usage) -> None:
        """Note a call."""
        self.usage[purpose] = self.usage.get(purpose, Usage()) + usage

    def cost(self, *purposes: Purpose) -> int:
        """Weighted tokens of these purposes; of all where none is named."""
        chosen = [self.usage[purpose] for purpose in purposes or self.usage if purpose in self.usage]
        return sum(usage.input_tokens + OUTPUT_WEIGHT * usage.output_tokens for usage in chosen)

    @property
    def share_of_repairs(self) -> float:
        """What asking again cost, of all."""
        return self.cost(Purpose.REPAIR, Purpose.REASK, Purpose.ESCALATE) / self.cost()


class Metered:
    """An exchange that notes on a bill what each call was for."""

    def __init__(self, exchange: Asking, bill: Bill, answers: list[str]) -> None:
        self._exchange, self._bill, self._answers = exchange, bill, answers

    @property
    def repairs(self) -> int:
        """Repairs that are spent."""
        return self._exchange.repairs

    @property
    def usage(self) -> Usage:
        """What it cost."""
        return self._exchange.usage

    @property
    def escalation(self) -> Asking | None:
        """No second model: two repairs must do."""
        return None

    def another(self) -> Asking:
        """The same with other repairs."""
        return Metered(self._exchange.another(), self._bill, self._answers)

    async def send(self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK) -> Answer:
        """Ask, and note it."""
        before = self._exchange.usage
        answer = await self._exchange.send(request, purpose=purpose)
        self._note(purpose, before, answer)
        return answer

    async def stream(
        self, request: CompletionRequest, *, purpose: Purpose = Purpose.ASK
    ) -> AsyncGenerator[TextPart | Answer]:
        """Stream, and note it."""
        before = self._exchange.usage
        async with aclosing(self._exchange.stream(request, purpose=purpose)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    self._note(purpose, before, part)
                yield part

    def may_repair(self) -> bool:
        """Spend a repair."""
        return self._exchange.may_repair()

    def bad_output(self, what: str, errors: Sequence[str], answer: Answer) -> BadOutputError:
        """The error."""
        return self._exchange.bad_output(what, errors, answer)

    def _note(self, purpose: Purpose, before: Usage, answer: Answer) -> None:
        after = self._exchange.usage
        self._answers.append(answer.text)
        self._bill.add(
            purpose,
            Usage(after.input_tokens - before.input_tokens, after.output_tokens - before.output_tokens, calls=1),
        )


@dataclass
class Outcome:
    """What one run gave: the items of each call, the first answers, and the bill."""

    items: list[list[ItemResult[Place]]]
    first_answers: list[str]
    bill: Bill
    #: of all answers, those to repeated asks included
    share_wrong: float = 0.0
    seconds: float = 0.0


def every_fifth(calls: int) -> list[Fault]:
    """Every fifth answer wrong, without luck: the kinds in turn, as often as `SHARES` says."""
    turns = sorted(
        (turn / round(18 * share), kind) for kind, share in SHARES.items() for turn in range(round(18 * share))
    )
    numbers = range(5, 2 * calls, 5)
    return [
        Fault(kind=turns[turn % len(turns)][1], calls=Span(number, number)) for turn, number in enumerate(numbers)
    ]  # fmt: skip


def script(wrong: float) -> list[Fault]:
    """The faults, so many in all. One draw decides about a call, so each line reaches on from the one before."""
    faults, reach = [], 0.0
    for kind, share in SHARES.items():
        reach += share * wrong
        faults.append(Fault(kind=kind, rate=reach))
    return faults


async def run(
    *, calls: int, items: int, faults: Sequence[Fault], style: AnswerStyle, streams: bool, in_flight: int = IN_FLIGHT
) -> Outcome:
    """Make the calls and return what came of them. One in flight: the same faults strike the same calls each time."""
    rules = Answers([{"contains": "places", "list": {"count": "(\\d+) places", "item": TEMPLATE}}])
    outcome = Outcome([[] for _ in range(calls)], [""] * calls, Bill())
    with tempfile.TemporaryDirectory() as directory:
        async with ScriptedProvider(faults=faults, rules=rules, seed=1) as provider:
            environ = {
                **provider.environment, "HEADRACE_URL": "memory://", "HEADRACE_LLM_REQUESTS_PER_MINUTE": "600000",
            }  # fmt: skip
            settings = load_settings(environ=environ, file=Path(directory) / "none.toml")
            async with App(settings=settings) as app:
                began = time.perf_counter()
                todo = iter(range(calls))

                async def one_after_another() -> None:
                    for number in todo:
                        answers: list[str] = []
                        exchange = Metered(app.llm._exchange(), outcome.bill, answers)
                        request = request_of(number, items, app.llm.model_name)
                        outcome.items[number] = await _items(exchange, request, items, style, streams=streams)
                        outcome.first_answers[number] = answers[0]

                await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
                outcome.seconds = time.perf_counter() - began
            outcome.share_wrong = sum(call.fault is not None for call in provider.calls) / len(provider.calls)
    return outcome


def request_of(number: int, items: int, model: str) -> CompletionRequest:
    """The request of one call."""
    prompt = f"Invent {items} places of the valley with the number {number}."
    return CompletionRequest(model=model, messages=(Message("system", SYSTEM), Message("user", prompt)))


async def _items(
    exchange: Asking, request: CompletionRequest, expected: int, style: AnswerStyle, *, streams: bool
) -> list[ItemResult[Place]]:
    if not streams:
        return list(await extract_items(exchange, Place, request, style=style, expected=expected))
    results = [one async for one in stream_items(exchange, Place, request, style=style, expected=expected)]
    return sorted((one for one in results if one.is_final), key=lambda one: one.index)


def figures_of(outcome: Outcome, twin: Outcome, options: dict[str, Any]) -> dict[str, Any]:
    """The figures of a run beside its twin without faults."""
    pairs = [
        (one, other) for ours, theirs in zip(outcome.items, twin.items, strict=True)
        for one, other in zip(ours, theirs, strict=True)
    ]  # fmt: skip
    untouched = [
        one.raw in answer
        for ours, answer in zip(outcome.items, outcome.first_answers, strict=True)
        for one in ours
        if one.provenance in ("llm", "repaired")
    ]
    bill = outcome.bill
    return {
        **options,
        "items_in_all": len(pairs),
        "valid": sum(one.value is not None for one, _ in pairs) / len(pairs),
        "right": sum(one.value is not None and one.value == other.value for one, other in pairs) / len(pairs),
        "first_answers_untouched": sum(untouched) / len(untouched),
        "repair_cost": bill.share_of_repairs,
        "share_wrong": outcome.share_wrong,
        "calls_by_purpose": {purpose.value: usage.calls for purpose, usage in sorted(bill.usage.items())},
        "provenance": dict(Counter(str(one.provenance) for one, _ in pairs).most_common()),
        "seconds": round(outcome.seconds, 2),
    }


async def measure(options: dict[str, Any]) -> dict[str, Any]:
    """Both runs, and the figures."""
    chosen = {
        "calls": options["calls"], "items": options["items"], "style": AnswerStyle(options["style"]),
        "streams": options["stream"],
    }  # fmt: skip
    outcome = await run(**chosen, faults=script(options["wrong"]))
    return figures_of(outcome, await run(**chosen, faults=()), options)


def render(figures: dict[str, Any]) -> str:
    """The figures as a table, with what is asked of them."""
    rows = [
        ("items valid after at most 2 repairs", f"{figures['valid']:.2%}", "≥ 99.5 %"),
        ("equal to those without faults", f"{figures['right']:.2%}", ""),
        ("valid ones of the first answer, byte for byte", f"{figures['first_answers_untouched']:.2%}", "100 %"),
        ("cost of asking again, of all", f"{figures['repair_cost']:.2%}", "≤ 10 %"),
        ("calls", ", ".join(f"{name} {count}" for name, count in figures["calls_by_purpose"].items()), ""),
        ("items by provenance", ", ".join(f"{name} {count}" for name, count in figures["provenance"].items()), ""),
    ]
    head = (
        f"{figures['calls']} calls × {figures['items']} items, {figures['share_wrong']:.1%} of the answers wrong, "
        f"{figures['style']}{', streamed' if figures['stream'] else ''}"
    )
    return "\n".join([head, *(f"  {name:<48}{value:<60}{goal}".rstrip() for name, value, goal in rows)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--items", type=int, default=10, help="items of one call")
    parser.add_argument("--wrong", type=float, default=0.2, help="share of answers that are not right")
    parser.add_argument("--style", choices=["strict_schema", "json"], default="strict_schema")
    parser.add_argument("--stream", action="store_true", help="read the answers as streams")
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    options = {name: value for name, value in vars(arguments).items() if name != "json"}
    figures = asyncio.run(measure(options))
    print(render(figures))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
