"""The shapes of answers about jobs and batches, for OpenAPI; the documents themselves are those of the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from headrace.model.batch import BatchOutcome, BatchState
from headrace.model.job import CancelAnswer, JobState


class Document(BaseModel):
    """A document that may grow members."""

    model_config = ConfigDict(extra="allow")


class SubmittedJob(Document):
    """A job that is stored."""

    job: UUID
    location: str = Field(examples=["/api/v1/jobs/01980000-0000-7000-8000-000000000000"])


class ErrorDocument(Document):
    """Why an attempt ended without a result."""

    kind: str
    message: str
    trace: str = ""


class JobRow(Document):
    """A job in a list."""

    id: UUID
    task: str
    queue: str
    state: JobState
    priority: int
    attempt: int
    created_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    batch_id: UUID | None
    retry_of: UUID | None
    cancel_requested: bool


class AttemptDocument(Document):
    """An attempt that failed or crashed, or the one that ended the job."""

    attempt: int
    outcome: str
    finished_at: datetime
    error: ErrorDocument | None


class JobDocument(JobRow):
    """A job as a whole."""

    args: Any = Field(description='`{"args": […], "kwargs": {…}}`')
    result: Any
    error: ErrorDocument | None
    why: str | None = Field(description="why it is not running; null once it has ended")
    attempts: list[AttemptDocument]


class JobPage(BaseModel):
    """A page of jobs."""

    jobs: list[JobRow]
    next_cursor: str | None


class ExplainedJob(Document):
    """Why a job is not running."""

    job: UUID
    state: JobState
    reason: str
    sentence: str


class LineDocument(Document):
    """A line that a handler logged."""

    at: datetime
    level: str = Field(examples=["info"])
    message: str


class LogDocument(Document):
    """The last lines of an attempt."""

    attempt: int
    lines: list[LineDocument]
    dropped: int = Field(description="lines before them that were not kept")


class JobLogs(Document):
    """What the handler of a job logged, by attempt."""

    job: UUID
    attempts: list[LogDocument]


class Cancelled(Document):
    """What a cancel did."""

    job: UUID
    answer: CancelAnswer


class Retried(Document):
    """The new job of one that is run again."""

    job: UUID
    retry_of: UUID


class SubmittedBatch(Document):
    """A batch that is stored."""

    batch: UUID
    location: str = Field(examples=["/api/v1/batches/01980000-0000-7000-8000-000000000000"])
    total: int


class BatchRow(Document):
    """A batch in a list."""

    id: UUID
    key: str | None
    task: str
    queue: str
    state: BatchState
    outcome: BatchOutcome | None
    total: int | None
    round: int
    created_at: datetime
    sealed_at: datetime | None
    closed_at: datetime | None
    paused_at: datetime | None
    paused_reason: str | None


class Counts(Document):
    """How far a batch is."""

    total: int | None
    succeeded: int
    failed: int
    cancelled: int
    running: int
    waiting: int
    done: int
    percent: int


class BatchDocument(BatchRow):
    """A batch and how far it is."""

    progress: Counts


class BatchPage(BaseModel):
    """A page of batches."""

    batches: list[BatchRow]
    next_cursor: str | None


class ItemDocument(Document):
    """A finished item: `result` of one that succeeded, `error` of any other."""

    index: int
    status: JobState
    job: UUID
    cost: Any


class ResultPage(BaseModel):
    """Finished items."""

    items: list[ItemDocument]
    cursor: str = Field(description="reads on from here, now or later")
    state: BatchState
    complete: bool = Field(description="the batch is closed, and nothing comes after this page")


class BatchStatesDocument(Document):
    """What consecutive items of a batch are."""

    first: int = Field(description="index of the first letter")
    states: str = Field(
        description="a letter per item: s scheduled, w waiting, r running, p parked, o succeeded, f failed, "
        "c cancelled, . not there", examples=["ooofrrww"]
    )  # fmt: skip
    end: int = Field(description="index behind the last item that was appended")


class BatchFault(Document):
    """Failures of one fingerprint."""

    fingerprint: str
    kind: str = Field(description="class of the error")
    message: str = Field(description="that of the newest")
    count: int
    first_at: datetime
    last_at: datetime
    examples: list[UUID] = Field(description="the newest jobs, three at most")


class BatchFaultsDocument(Document):
    """Why items of a batch failed, what most failed of first."""

    batch: UUID
    faults: list[BatchFault]
    looked_at: int = Field(description="failures that were looked at: all counts and times are of these")
    sampled: bool = Field(description="there are more failures")
    left_out: int = Field(description="smaller faults that are not among these")
