"""Shapes of the model's answers: what is checked of each item, so that only wrong ones are asked for again."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, create_model, model_validator

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]


class LogLine(BaseModel):
    """One line of a log."""

    text: Text = Field(description="the fact")
    kind: Literal["info", "event", "schedule"]
    mention: str | None = Field(None, description="day of the message, YYYY-MM-DD")
    event: str | None = Field(None, description="when it happened or will happen, YYYY-MM-DD, YYYY-MM or YYYY")


class PartLog(BaseModel):
    """The log of one part of a shared question."""

    part: Name = Field(description="name of the part")
    lines: list[LogLine]


class FoundFact(BaseModel):
    """A fact for the profile."""

    topic: Name
    sub_topic: Name
    memo: Text


class FoundTag(BaseModel):
    """A tag of an event."""

    tag: Name
    value: Name


class Decision(BaseModel):
    """What becomes of a slot."""

    number: int = Field(ge=1, description="number of the slot")
    action: Literal["append", "update", "abort"]
    memo: str | None = Field(None, max_length=4_000, description="of an update: the whole memo")

    @model_validator(mode="after")
    def _has_memo(self) -> Decision:
        if self.action == "update" and not (self.memo and self.memo.strip()):
            raise ValueError("memo: must be the whole memo, since the action is update")
        return self


class Group(BaseModel):
    """Memos that go under one sub-topic."""

    sub_topic: Name
    memo: Text
    numbers: list[int] = Field(min_length=1, description="numbers of the memos that went into it")


class ShortMemo(BaseModel):
    """A memo made short."""

    memo: Text


@lru_cache(maxsize=64)
def decision_of(slots: int) -> type[Decision]:
    """Return the shape of decisions on so many slots: a number beyond them is wrong."""
    number: Any = (int, Field(ge=1, le=slots, description="number of the slot"))
    return create_model("Decision", __base__=Decision, number=number)
