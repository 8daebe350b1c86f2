"""What the document of the service says of streams: their events, and what each has for `data`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MEDIA_TYPE = "text/event-stream"
_TEXT = (
    "Server-sent events: `id` is the number of an entry, `event` its type, `data` its JSON on one line. Lines that "
    "begin with `:` are signs of life."
)
_NOTHING = "the last entry was seen: nothing will follow, do not come again"
_GONE = {
    "description": "entries behind the last id seen were removed: begin without it for those that are left",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Shape(BaseModel):
    """`data` of an event; it may grow members."""

    model_config = ConfigDict(extra="allow")


class BatchItemShape(Shape):
    """An item of a batch that has ended; `result` of one that succeeded, `error` of any other."""

    index: int
    status: Literal["succeeded", "failed", "cancelled"]
    job: str
    left_out: bool = Field(False, description="its result is above 16 KiB: `/batches/ID/results` has it")


class RoundShape(Shape):
    """More items run: failed ones again, in a new round."""

    round: int


class PausedShape(Shape):
    """The batch is paused: nothing more of it starts."""

    since: str
    reason: str | None


class ResumedShape(Shape):
    """The pause is over, by a resume or a cancel."""


class ClosedShape(Shape):
    """The batch is closed: the last event."""

    round: int
    outcome: str
    total: int
    succeeded: int
    failed: int
    cancelled: int


class RunStateShape(Shape):
    """What became of a run."""

    state: str


class NodeShape(Shape):
    """A node that runs, or has ended. One that has ended runs no more: a later `running` of it was seen before that."""

    path: str
    state: str
    attempts: int
    started_at: str | None
    finished_at: str | None
    error: dict[str, str] | None


class RunEndedShape(Shape):
    """The run is over: the last event."""

    state: str
    finished_at: str | None
    error: dict[str, str] | None


class DetailsAcceptedShape(Shape):
    """What was asked for, and what can be expected."""

    type: str
    count: int
    expected_seconds: float | None
    promised: bool


class DetailShape(Shape):
    """An item of a batch of details."""

    name: str
    description: str
    attributes: dict[str, Any]


class FirstResponseShape(Shape):
    """So many items stand before this event: the first response."""

    items: int
    seconds: float


class DetailsEndedShape(Shape):
    """The batch has ended: the last event."""

    status: Literal["completed", "partial", "failed"]
    delivered: int
    seconds: float


class ReportStageShape(Shape):
    """A stage of a report, as it gets on."""

    stage: str
    status: Literal["running", "ok", "degraded", "failed"]
    percent: int
    message: str


class ReportEndedShape(Shape):
    """The report has ended: the last event."""

    status: Literal["ok", "degraded", "failed", "cancelled"]
    percent: int
    message: str
    error: str = Field("", description="why it failed")


BATCH: Mapping[str, type[Shape]] = {
    "item": BatchItemShape, "round": RoundShape, "paused": PausedShape, "resumed": ResumedShape, "closed": ClosedShape,
}  # fmt: skip
RUN: Mapping[str, type[Shape]] = {"state": RunStateShape, "node": NodeShape, "ended": RunEndedShape}
REPORT: Mapping[str, type[Shape]] = {"stage": ReportStageShape, "ended": ReportEndedShape}
DETAILS: Mapping[str, type[Shape]] = {
    "accepted": DetailsAcceptedShape, "item": DetailShape, "first_response": FirstResponseShape,
    "completed": DetailsEndedShape,
}  # fmt: skip


def responses_of(shapes: Mapping[str, type[Shape]], example: str) -> dict[int | str, dict[str, Any]]:
    r"""Return what a route answers that streams events of these shapes; `example`: such a stream.

    >>> responses_of({"round": RoundShape}, "id: 1\n")[200]["content"][MEDIA_TYPE]["x-events"]["round"]["required"]
    ['round']
    """
    about = f"{_TEXT} Events: {', '.join(shapes)}; the last of them ends the stream."
    content = {
        "schema": {"type": "string", "description": _TEXT, "contentMediaType": MEDIA_TYPE},
        "examples": {"stream": {"summary": "a stream from its beginning", "value": example}},
        "x-events": {name: shape.model_json_schema() for name, shape in shapes.items()},
    }
    return {200: {"description": about, "content": {MEDIA_TYPE: content}}, 204: {"description": _NOTHING}, 410: _GONE}
