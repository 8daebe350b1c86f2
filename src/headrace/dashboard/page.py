"""What a page of the dashboard is, and what it is made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from headrace.app import App
from headrace.dashboard.history import History
from headrace.dashboard.memory import Memory
from headrace.model.api_token import Scope

T = TypeVar("T")
#: What a template is given.
Context = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is shown: whoever has an equal look sees the same live parts."""

    #: where the dashboard lies, such as "/jobs"; empty: at the root
    base: str = ""
    #: language: "en" or "zh"
    locale: str = "en"
    #: what whoever looks may do
    scopes: frozenset[Scope] = frozenset(Scope)
    read_only: bool = False

    @property
    def may_submit(self) -> bool:
        """Whether work may be brought."""
        return Scope.SUBMIT in self.scopes and not self.read_only

    @property
    def may_operate(self) -> bool:
        """Whether jobs, queues and all else may be changed."""
        return Scope.OPERATE in self.scopes and not self.read_only


@dataclass(frozen=True, slots=True)
class View:
    """One request for a page: what it is made from."""

    app: App
    look: Look = field(default_factory=Look)
    #: what stands in the path of the page, by name
    params: Mapping[str, str] = field(default_factory=dict)
    #: what stands in the query of the address, by name
    query: Mapping[str, str] = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: what this process keeps: figures of a while, and answers that are not asked for again at once
    memory: Memory = field(default_factory=Memory)
    #: whether it is for what is live of the page, and not for a page that somebody asked for, maybe after an action
    live: bool = False

    async def answer(self, key: Hashable, ask: Callable[[], Awaitable[T]], *, seconds: float, dear: bool = False) -> T:
        """Return the answer to a question: a new one for a page that is asked for; what is live has one of a while.

        `dear`: it costs so much that pages that are asked for have one of a while too.
        """
        fresh = not (self.live or dear)
        return await self.memory.answer(key, ask, seconds=0.0 if fresh else seconds, renew=fresh)

    def history(self, name: str) -> History:
        """Return what is remembered under a name."""
        return self.memory.kept(("history", name), History)


def always(_: App) -> bool:
    """Every app has the page."""
    return True


@dataclass(frozen=True, slots=True)
class Page:
    """A page: where it lies, what makes it, and what of it is live.

    `make` returns what the template is given, and raises NotFoundError or InvalidInputError as the queries do.
    """

    #: also the name of its template, `NAME.html`, unless `template` names another
    name: str
    #: such as "/queues/{name}"
    path: str
    make: Callable[[View], Awaitable[Context]]
    #: what it is called in the list of pages, in English, and the group it stands in there; None: it is not listed
    title: str | None = None
    group: str = ""
    scope: Scope = Scope.READ
    #: names that its address may have in the query; others are refused
    query: frozenset[str] = frozenset()
    #: seconds between two looks at what is live
    every: float = 1.0
    #: texts of what the template is given that are sent as they change, by name: one character per thing, so that a
    #: change is a few characters
    texts: Mapping[str, Callable[[Context], str]] = field(default_factory=dict)
    #: whether an app has this page
    belongs: Callable[[App], bool] = always
    template: str = ""
