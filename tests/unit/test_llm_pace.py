"""How fast a model answered, as `app.llm.pace` tells: measured from streamed calls that were paid for."""

from __future__ import annotations

from dataclasses import astuple
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from pydantic import BaseModel

from headrace import App, ModelPace
from headrace.llm.pace import MOST_CALLS, Paces
from headrace.model.calls import NewCall
from headrace.model.llm import Answer, CompletionRequest
from headrace.model.quota import Estimate
from headrace.model.usage import Usage
from headrace.ports.call_observer import CallReport
from headrace.settings import load_settings
from headrace.testing.provider import Answers, Latency, ScriptedProvider

_SECOND = 1_000_000_000


def report(first: float = 0.4, writing: float = 1.0, tokens: int = 100, **changes: Any) -> CallReport:
    """A call that took so many seconds to the first token, and then to the last."""
    call = NewCall(
        id=uuid4(), key="k", pool="p", provider="openai", model=changes.pop("model", "m"), estimate=Estimate(1, 1),
    )  # fmt: skip
    sent = 1_000 * _SECOND
    part = sent + int(first * _SECOND)
    values: dict[str, Any] = {
        "call": call, "request": cast(CompletionRequest, None),
        "answer": Answer(text="x", usage=Usage(10, tokens, calls=1)),
        "error": "", "reused": False, "asked_at": sent, "sent_at": sent, "first_part_at": part,
        "ended_at": part + int(writing * _SECOND),
    }  # fmt: skip
    return CallReport(**{**values, **changes})


def test_half_and_nine_of_ten_calls_are_as_fast() -> None:
    """The first figures are those of the middle call, the others those that nine of ten calls keep."""
    paces = Paces()
    for number in range(1, 11):
        paces.ended(report(first=0.1 * number, writing=0.5 * number))
    pace = paces.of("openai", "m")
    assert isinstance(pace, ModelPace)
    assert astuple(pace) == pytest.approx((0.6, 100 / 3.0, 1.0, 20.0, 10, 0.2, 100.0))


@pytest.mark.parametrize(
    "untold",
    [
        report(reused=True),
        report(answer=None, error="timeout"),
        report(first_part_at=0),
        report(sent_at=0),
        report(tokens=19),
        report(writing=0.0),
        report(model="another"),
    ],
    ids=["reused", "failed", "whole", "not sent", "short", "no time", "another model"],
)
def test_other_calls_tell_nothing(untold: CallReport) -> None:
    """What was not streamed, not answered, not paid for, or is too short to tell leaves the pace unknown."""
    paces = Paces()
    paces.ended(untold)
    assert paces.of("openai", "m") is None


def test_only_the_latest_calls_count() -> None:
    """A model that became slower is known to be: old calls are forgotten."""
    paces = Paces()
    for _ in range(MOST_CALLS):
        paces.ended(report(first=0.1))
    for _ in range(MOST_CALLS):
        paces.ended(report(first=2.0))
    pace = paces.of("openai", "m")
    assert pace is not None
    assert pace.calls == MOST_CALLS
    assert pace.first_token_seconds == pytest.approx(2.0)


class River(BaseModel):
    """What is asked for."""

    name: str


async def test_an_app_measures_its_model(tmp_path: Path) -> None:
    """Streamed items tell the pace of the model; an equal ask, which costs nothing, tells nothing."""
    rules = Answers([{"list": {"count": 8, "item": {"name": "{name} {hash}"}}}])
    latency = Latency(timedelta(seconds=0.1), tokens_per_second=400)
    async with ScriptedProvider(rules=rules, latency=latency) as provider:
        environ = {"HEADRACE_URL": "memory://", **provider.environment}
        async with App(settings=load_settings(environ=environ, file=tmp_path / "none.toml")) as app:
            before = app.llm.pace
            for _ in range(2):
                async for _ in app.llm.stream_items(River, prompt="Name rivers.", expected=8):
                    pass
            pace = app.llm.pace
    assert before is None
    assert pace is not None
    assert pace.calls == 1
    assert 0.1 <= pace.first_token_seconds < 5
    assert 10 < pace.tokens_per_second < 600
