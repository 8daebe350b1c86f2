"""What is asked, how and for whom; and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from headrace.llm.switches import MemoUse, OnBudget
from headrace.model.calls import Origin, Purpose
from headrace.model.llm import Answer, CompletionRequest
from headrace.model.usage import Usage

#: Name of the schema of requests for embeddings: no answer to a conversation has it.
EMBEDDING = "headrace.embedding"


class Manner(Enum):
    """How the provider is asked."""

    WHOLE = auto()
    #: the answer is wanted part by part
    STREAM = auto()
    #: each message is a text of which a vector is wanted; the answer's text is the list of them, as JSON
    EMBED = auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, and how it is to be bought."""

    request: CompletionRequest
    key: str
    purpose: Purpose
    origin: Origin
    memo: MemoUse
    #: whether a handler's slot is kept while it waits
    keeps_slot: bool
    #: key whose stored answer the new one replaces as well; empty: none
    renews: str = ""
    manner: Manner = Manner.WHOLE
    on_budget: OnBudget = OnBudget.WAIT


class Watcher(Protocol):
    """Who is told how a call gets on."""

    def note_sent(self, sent: bool) -> None:
        """It is sent, and has to be seen to its end; or it was refused, and is not sent any more."""
        ...

    def note_part(self, text: str) -> None:
        """A part of the answer came."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer and what it cost this asker."""

    answer: Answer
    usage: Usage
