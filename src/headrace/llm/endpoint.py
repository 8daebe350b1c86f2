"""One configured model: who answers, under which quota, at which price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headrace.model.quota import Pool
from headrace.ports.llm import Provider
from headrace.ports.prices import Prices


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the gateway needs to know of a model."""

    #: opens the provider; called once, on first use
    open: Callable[[], Provider]
    pool: Pool
    prices: Prices
    #: its name among the configured models; empty: the default one
    name: str = ""
    #: length of answers, in tokens, assumed for calls that give no `max_tokens`
    expected_tokens: int = 1_024
    #: name of the model that is asked what this one could not answer; None: none is
    escalate_to: str | None = None
    #: which server the memo's keys name (`LLMSettings.memo_endpoint`)
    memo_endpoint: str = ""
