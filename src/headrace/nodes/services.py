"""What nodes may ask of the outside: each a small port, given by whoever runs the flow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from headrace.model.http import HttpAnswer, HttpRequest


class HttpClient(Protocol):
    """Sends requests to no address but allowed ones."""

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Return the answer, whatever its status. Raises ForbiddenTargetError, HttpError."""
        ...


class Model(Protocol):
    """A model that is asked for text and for data; an equal ask is never paid twice."""

    async def chat(
        self, prompt: str, *, system: str | None, model: str | None, max_tokens: int | None, temperature: float
    ) -> Mapping[str, Any]:
        """Return {"text", "model", "input_tokens", "output_tokens", "cost"?}."""
        ...

    async def extract(  # noqa: PLR0913 - keyword-only
        self, schema: Mapping[str, Any], prompt: str, *, system: str | None, model: str | None,
        max_tokens: int | None, temperature: float,
    ) -> Any:  # fmt: skip
        """Return a value that is valid by a JSON Schema. Raises BadOutputError."""
        ...


class Files(Protocol):
    """Binary data of the run, by reference, and the files of the folder that flows may use."""

    async def put(self, data: bytes, *, name: str, mime: str) -> dict[str, Any]:
        """Store data for the run; return what stands for it in an item's `binary`, never the data itself."""
        ...

    async def get(self, binary: Mapping[str, Any]) -> bytes:
        """Return the data that stands behind a member of an item's `binary`. Raises InvalidInputError."""
        ...

    def find(self, pattern: str) -> AsyncIterator[str]:
        """Yield the paths below the folder that fit a pattern such as "in/*.csv", in order."""
        ...

    async def read(self, path: str) -> bytes:
        """Return a file of the folder. Raises NodeError for one outside of it, missing or too large."""
        ...

    async def write(self, path: str, data: bytes, *, append: bool) -> None:
        """Write a file of the folder, whole or not at all; `append`: behind what it has. Raises NodeError."""
        ...


class Readers(Protocol):
    """Readers of formats that need a library."""

    async def pdf(self, data: bytes, *, password: str | None, max_pages: int | None) -> list[str]:
        """Return the text of each page. Raises NodeError."""
        ...

    async def sheet(self, data: bytes, *, name: str | None) -> list[list[Any]]:
        """Return the rows of a sheet of xlsx, xls or ods: texts, numbers, truth values, ISO dates, None."""
        ...


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret that is named in a flow and never stands in one: `kind` is header, basic, bearer or query."""

    kind: str
    name: str = ""
    user: str = ""
    secret: str = ""

    def __repr__(self) -> str:
        """Return its kind alone: a secret must not reach a log."""
        return f"Credential({self.kind!r})"


class Services(Protocol):
    """All of them."""

    @property
    def http(self) -> HttpClient:
        """Requests to the outside."""
        ...

    @property
    def model(self) -> Model:
        """Models."""
        ...

    @property
    def files(self) -> Files:
        """Binary data and files."""
        ...

    @property
    def readers(self) -> Readers:
        """Readers of formats."""
        ...

    def credential(self, name: str) -> Credential:
        """Return a credential by its name. Raises NodeError naming where to write it."""
        ...

    async def now(self) -> datetime:
        """Return the time of this node's first call (aware): the same in all its tries."""
        ...

    async def wait(self, delay: timedelta | None, *, signal: str | None = None) -> Any:
        """Wait without a slot, until the delay is over or the signal comes; return its payload, None without one.

        Within loops the key of the signal has the rounds behind it: "RUN/NODE/2", "RUN/NODE/2/0".
        """
        ...
