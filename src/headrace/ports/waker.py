"""The waker port: wakes what is paused elsewhere, such as a suspended flow run of Prefect."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Woken(StrEnum):
    """What became of a try to wake something."""

    #: it goes on now, or has gone on before, or has ended: there is no more to do
    DONE = "done"
    #: it is not paused yet, or nobody answers: to be tried again
    AGAIN = "again"


class Waker(Protocol):
    """Wakes targets of one kind, `Waker.kind:rest`."""

    @property
    def kind(self) -> str:
        """The kind of targets, such as "prefect"."""
        ...

    async def wake(self, target: str) -> Woken:
        """Wake a target, named without its kind. Never raises for what the other side answers."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...
