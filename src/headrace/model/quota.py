"""Quotas of a provider's account: what they count, what a call reserves, and what the provider says of them.

A pool is one quota: of a provider, an account there, and a class of models that share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from headrace.model.errors import InvalidInputError
from headrace.model.usage import Usage

#: The name of a pool is part of the name of a bucket, which stores bound.
MAX_POOL_NAME = 128
POOL_NAME_RULE = f"1 to {MAX_POOL_NAME} printable characters"


class Dimension(StrEnum):
    """What flows: each has a token bucket of its own."""

    REQUESTS = "requests"
    #: prompt and answer together
    TOKENS = "tokens"
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"


class ChargePolicy(StrEnum):
    """What a provider takes from a quota of tokens when a call begins, and what it gives back when it ends."""

    #: prompt and the most tokens of the answer; what was not used comes back (OpenAI, Cerebras, Azure)
    MAX_TOKENS = "max_tokens"
    #: what was used, known only at the end: the estimate is reserved, and corrected (vLLM, most gateways)
    ACTUAL = "actual"
    #: input when the call begins, output as it is written, apart (Anthropic)
    SPLIT = "split"
    #: as `split`, and cached input is free
    UNCACHED = "uncached"


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of a pool; None is no limit. Where none of the flows is given they are unknown, and learnt."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    input_tokens_per_minute: float | None = None
    output_tokens_per_minute: float | None = None
    requests_per_day: int | None = None
    #: most calls in flight over all processes
    concurrency: int | None = None
    #: how much of a quota may be used at once after a pause
    burst: timedelta = timedelta(seconds=1)
    charge: ChargePolicy = ChargePolicy.MAX_TOKENS

    @property
    def flows(self) -> Mapping[Dimension, float]:
        """Units per second of each dimension that is limited.

        >>> PoolLimits(requests_per_minute=600).flows
        {<Dimension.REQUESTS: 'requests'>: 10.0}
        """
        per_minute = {
            Dimension.REQUESTS: self.requests_per_minute,
            Dimension.TOKENS: self.tokens_per_minute,
            Dimension.INPUT_TOKENS: self.input_tokens_per_minute,
            Dimension.OUTPUT_TOKENS: self.output_tokens_per_minute,
        }
        return {dimension: rate / 60 for dimension, rate in per_minute.items() if rate is not None}

    @property
    def given(self) -> bool:
        """Whether anything is limited.

        >>> PoolLimits().given, PoolLimits(concurrency=8).given
        (False, True)
        """
        return bool(self.flows) or self.requests_per_day is not None or self.concurrency is not None


def pool_gate(pool: str) -> str:
    """Return the name of the bucket that is closed while jobs of a pool need not start: it has no calls to give.

    >>> pool_gate("openai:gpt-x")
    'jobs:openai:gpt-x'
    """
    return f"jobs:{pool}"


def is_pool_bucket(name: str) -> bool:
    """Whether a bucket of the limiter is one in which calls of models are counted, not a rate limit of jobs.

    >>> is_pool_bucket("llm:openai:gpt-x:requests"), is_pool_bucket("openai")
    (True, False)
    """
    return name.startswith(("llm:", "pool:", "jobs:"))


def is_pool_name(value: object) -> bool:
    """Whether a pool can have this name: `POOL_NAME_RULE`.

    >>> is_pool_name("openai:gpt-x"), is_pool_name("two\\nlines")
    (True, False)
    """
    return isinstance(value, str) and 1 <= len(value) <= MAX_POOL_NAME and value.isprintable()


def check_pools(value: object) -> tuple[str, ...]:
    """Return the names of pools that a task declares. Raises InvalidInputError."""
    names = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
    for name in names:
        if not is_pool_name(name):
            rule = f'must be a list of names of {POOL_NAME_RULE}, such as ["openai:gpt-x"]'
            raise InvalidInputError("pools", rule, value)
    return names


@dataclass(frozen=True, slots=True)
class Pool:
    """A quota and its name, "provider:account:model class"."""

    name: str
    limits: PoolLimits = field(default_factory=PoolLimits)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call will use, as far as is known before it: tokens of the prompt, and the most of the answer."""

    input_tokens: int
    max_tokens: int
    #: what it may cost at most, in nanodollars; None: the price is not known
    cost_nano: int | None = None

    @property
    def tokens(self) -> int:
        """Both together."""
        return self.input_tokens + self.max_tokens

    def units(self, policy: ChargePolicy, *, usual_output: float | None = None) -> Mapping[Dimension, float]:
        """Return what is reserved of each dimension before the call.

        `usual_output`: tokens that answers have; a provider that charges answers as they are written reserves nothing
        for them, so that what they usually need is enough. None: not known.

        >>> Estimate(500, 1_000).units(ChargePolicy.MAX_TOKENS, usual_output=180)[Dimension.TOKENS]
        1500.0
        >>> Estimate(500, 1_000).units(ChargePolicy.SPLIT, usual_output=180)[Dimension.OUTPUT_TOKENS]
        180.0
        """
        if policy is ChargePolicy.MAX_TOKENS or usual_output is None:
            return _units(self.input_tokens, self.max_tokens)
        return _units(self.input_tokens, min(self.max_tokens, usual_output))


def used_units(usage: Usage, policy: ChargePolicy) -> Mapping[Dimension, float]:
    """Return what a call that was answered used of each dimension, by the provider's own count."""
    free = usage.cached_tokens if policy is ChargePolicy.UNCACHED else 0
    return _units(usage.input_tokens - free, usage.output_tokens)


def _units(input_tokens: float, output_tokens: float) -> Mapping[Dimension, float]:
    return {
        Dimension.REQUESTS: 1.0,
        Dimension.TOKENS: float(input_tokens + output_tokens),
        Dimension.INPUT_TOKENS: float(input_tokens),
        Dimension.OUTPUT_TOKENS: float(output_tokens),
    }


@dataclass(frozen=True, slots=True)
class QuotaHint:
    """What a provider says of its quota beside an answer or a refusal. It may only lower what we think we have."""

    #: how long to wait before the next call; None: it does not say
    retry_after: timedelta | None = None
    #: units per minute
    limits: Mapping[Dimension, float] = field(default_factory=dict)
    #: units left now
    remaining: Mapping[Dimension, float] = field(default_factory=dict)
    #: time until the quota is whole again
    resets: Mapping[Dimension, timedelta] = field(default_factory=dict)


NO_HINT = QuotaHint()
