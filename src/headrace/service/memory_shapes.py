"""What routes of memory are sent, and what they answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictInt, StrictStr

from headrace.apps.memory.data.flushes import FlushState, Reason
from headrace.service.documents import Document
from headrace.service.paging import USUAL, Limit
from headrace.service.submitting import MOST_OWN_KEY

MOST_USER_ID, MOST_MESSAGES, MOST_CONTENT, MOST_QUERY, MOST_CHANGES = 200, 1_000, 200_000, 1_000, 100
MOST_BUDGET = 100_000


class SaidMessage(BaseModel):
    """One message of a chat."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["user", "assistant", "system"]
    content: StrictStr = Field(min_length=1, max_length=MOST_CONTENT)
    alias: StrictStr | None = Field(None, max_length=200, description="what the speaker is called, if not the user")
    created_at: StrictStr | None = Field(None, max_length=200, description="when it was said")


class InsertBlob(BaseModel):
    """What a user said."""

    model_config = ConfigDict(extra="forbid")

    messages: list[SaidMessage] | None = Field(
        None, min_length=1, max_length=MOST_MESSAGES, description="of a chat; one of this and `summary`"
    )
    summary: StrictStr | None = Field(
        None, min_length=1, max_length=MOST_CONTENT, description="what was said, told by somebody else"
    )
    created_at: AwareDatetime | None = Field(None, description="when, with its offset; now, unless given")
    idempotency_key: StrictStr | None = Field(
        None, min_length=1, max_length=MOST_OWN_KEY, description="one blob per user and key; also as the header"
    )


class PutUser(BaseModel):
    """What is noted of a user; what is not given has its usual value."""

    model_config = ConfigDict(extra="forbid")

    level: StrictInt = Field(0, ge=0, le=10, description="each raises the priority by a tenth")
    language: Literal["en", "zh"] | None = Field(None, description="of what is written; null: that of the messages")


class UserDocument(Document):
    """What is noted of a user."""

    id: str
    level: int
    language: str | None
    created_at: datetime


class InsertedBlob(Document):
    """A blob that is stored, and waits in its user's buffer."""

    blob_id: UUID
    user_id: str


class FlushDocument(Document):
    """A flush."""

    id: UUID
    user_id: str
    blob_ids: list[UUID]
    tokens: int
    number: int = Field(description="1, 2, … of each user")
    state: FlushState
    reason: Reason
    created_at: datetime
    round: int = Field(description="how often it failed for good and was taken up again")
    error: str | None = Field(description="of its last failure")


class FlushList(BaseModel):
    """Flushes."""

    flushes: list[FlushDocument]


class BufferDocument(Document):
    """What waits in a user's buffer."""

    user_id: str
    rows: int
    tokens: int
    oldest_at: datetime | None
    newest_at: datetime | None


class ProfileEntry(Document):
    """What is known under a topic and a sub-topic."""

    topic: str
    sub_topic: str
    content: str
    version: int = Field(description="a change names the one that it was made from")
    update_hits: int
    updated_at: datetime | None


class ProfileDocument(BaseModel):
    """What is known of a user."""

    user_id: str
    profile: list[ProfileEntry]


class ChangeOfProfile(BaseModel):
    """One change of a profile."""

    model_config = ConfigDict(extra="forbid")

    op: Literal["add", "update", "delete"]
    topic: StrictStr = Field(min_length=1, max_length=100)
    sub_topic: StrictStr = Field(min_length=1, max_length=100)
    content: StrictStr | None = Field(None, min_length=1, max_length=10_000)
    expected_version: StrictInt | None = Field(
        None, ge=0, le=2**31 - 1, description="the version it was made from; 0, or nothing, where there is none yet"
    )


class ChangeProfile(BaseModel):
    """Changes of a profile: all, or none."""

    model_config = ConfigDict(extra="forbid")

    changes: list[ChangeOfProfile] = Field(min_length=1, max_length=MOST_CHANGES)


class TagDocument(Document):
    """What kind of event it is."""

    tag: str
    value: str


class EventDocument(Document):
    """The event of one flush, whose id it has."""

    id: UUID
    user_id: str
    event_tip: str = Field(description='lines that begin with "- "')
    tags: list[TagDocument]
    profile_delta: list[dict[str, Any]]
    created_at: datetime


class EventList(BaseModel):
    """Events of a user, the newest first."""

    user_id: str
    events: list[EventDocument]


class FoundLine(Document):
    """A line of an event that fits."""

    event_id: UUID
    number: int
    content: str
    created_at: datetime
    score: float


class FoundLines(BaseModel):
    """Lines that fit a text, the best first."""

    user_id: str
    query: str
    gists: list[FoundLine]


class ContextDocument(BaseModel):
    """What a prompt may be told of a user."""

    user_id: str
    budget: int
    tokens: int
    context: str


class KindDocument(Document):
    """Figures of one kind of work."""

    throughput_per_min: float
    avg_latency_ms: float | None
    p50_latency_ms: float | None
    p99_latency_ms: float | None
    error_rate: float = Field(description="share of the attempts that failed, 0 to 1")
    queue_depth: int
    pool_size: int = Field(description="slots of all live workers")


class FiguresDocument(Document):
    """Figures of memory."""

    at: datetime
    kinds: dict[str, KindDocument]
    cache: dict[str, Any] | None
    counts: dict[str, int]


class EventQuery(BaseModel):
    """Which events are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = USUAL
    before: AwareDatetime | None = Field(None, description="older than this instant: `created_at` of the last one seen")
    tag: str | None = Field(None, max_length=200, description="NAME=VALUE")


class SearchQuery(BaseModel):
    """What is looked for; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field(min_length=1, max_length=MOST_QUERY)
    limit: Limit = 10


class ContextQuery(BaseModel):
    """How long a context may be; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    budget: int = Field(1_000, ge=1, le=MOST_BUDGET, description="tokens at most")
    q: str | None = Field(None, min_length=1, max_length=MOST_QUERY, description="lines that fit this come first")


class FlushQuery(BaseModel):
    """Which flushes are listed; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    user_id: str | None = Field(None, min_length=1, max_length=MOST_USER_ID)
    state: FlushState | None = None
    limit: Limit = USUAL
