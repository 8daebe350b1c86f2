"""A writer whose model is the scripted one of the samples, or says what a test gives it for a task."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from headrace import App
from headrace.apps.memory.data.blobs import Blob
from headrace.apps.memory.data.profiles import ProfileChange, Slot
from headrace.apps.memory.samples import model
from headrace.apps.memory.writing import Terms, Writer
from headrace.model_settings import ModelSettings
from headrace.testing.provider import ChatRequest, Fault, ScriptedProvider
from tests.unit.engine_app import QUICK

_TASK = re.compile(r"(?:Task: |任务：)(\w+)")
NAMESPACE = UUID(int=11)


def task_of(request: ChatRequest) -> str:
    """What a request asks for."""
    found = _TASK.search(request.text)
    return found.group(1) if found else ""


@dataclass
class Mind:
    """The model of the samples, but for the tasks that `said` has an answer for."""

    #: By task: an answer, or a function of the request; None: as the samples.
    said: Mapping[str, Any] = field(default_factory=dict)
    asked: list[ChatRequest] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> Any:
        """The answer."""
        self.asked.append(request)
        said = self.said.get(task_of(request))
        if callable(said):
            said = said(request)
        return model.answer(request) if said is None else said

    @property
    def tasks(self) -> list[str]:
        """What was asked, in order."""
        return [task_of(request) for request in self.asked]


@dataclass
class Steps:
    """Checkpoints of one job: a name is used once by each attempt, and run once."""

    stored: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    async def __call__(self, name: str, run: Callable[[], Awaitable[Any]], /) -> Any:
        """As `Context.step`."""
        assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", name)
        assert name not in self.used
        self.used.add(name)
        if name not in self.stored:
            self.stored[name] = json.dumps(await run())
        return json.loads(self.stored[name])

    def again(self) -> Steps:
        """The next attempt of the same job."""
        return Steps(self.stored)


@dataclass
class World:
    """An open app, its model, and a writer."""

    app: App
    provider: ScriptedProvider
    mind: Mind
    terms: Terms

    def writer(self, steps: Steps | None = None, *, sample: int = 0) -> Writer:
        """A writer for one job, or for one more attempt of it."""
        return Writer(self.app.llm, self.terms, steps or Steps(), sample=sample)


@asynccontextmanager
async def writing(
    said: Mapping[str, Any] | None = None,
    *,
    terms: Terms | None = None,
    faults: Sequence[Fault] = (),
    context_tokens: int | None = None,
    style: str = "strict_schema",
) -> AsyncIterator[World]:
    """Open an app whose model answers so."""
    mind = Mind(said or {})
    async with ScriptedProvider(answer=mind, faults=faults, context_tokens=context_tokens) as provider:
        given = provider.settings
        llm = ModelSettings(
            model=given.model or "",
            base_url=given.base_url or "",
            api_key=given.api_key or "",
            provider="openai",
            style=style,
            requests_per_minute=600_000,  # known, so that nothing is paced while it would be learned
        )
        async with App(settings=replace(QUICK, llm=llm)) as app:
            yield World(app, provider, mind, terms or Terms.usual())


def blob(messages: Sequence[Mapping[str, Any]], user: str = "u") -> Blob:
    """A chat."""
    at = datetime(2026, 5, 2, tzinfo=UTC)
    return Blob(uuid5(NAMESPACE, json.dumps([user, *messages])), user, "chat", {"messages": list(messages)}, 10, at)


def chat(*says: str, user: str = "u") -> Blob:
    """A chat of messages of the user."""
    return blob([{"role": "user", "content": text, "created_at": "2026-05-02"} for text in says], user)


def applied(profile: Iterable[Slot], changes: Iterable[ProfileChange]) -> list[Slot]:
    """The profile after its changes, each of which must be made from the version that is there."""
    slots = {slot.place: slot for slot in profile}
    for change in changes:
        place = (change.topic, change.sub_topic)
        old = slots.pop(place, None)
        assert change.expected_version == (old.version if old else 0)
        assert (change.op == "add") == (old is None)
        if change.content is not None:
            slots[place] = Slot(*place, change.content, change.expected_version + 1)
    return [slots[place] for place in sorted(slots)]


def contents(profile: Iterable[Slot]) -> list[tuple[str, str, str]]:
    """A profile as the samples write it."""
    return sorted((slot.topic, slot.sub_topic, slot.content) for slot in profile)
