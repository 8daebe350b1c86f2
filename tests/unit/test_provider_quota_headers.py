"""What providers say of their quotas is understood, and nothing that a server may send does harm."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.model.quota import NO_HINT, Dimension, QuotaHint
from headrace.providers.quota_headers import LONGEST_WAIT, read_hint

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
REQUESTS, TOKENS = Dimension.REQUESTS, Dimension.TOKENS
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
NAMES = [
    *(f"x-ratelimit-{kind}-{name}" for kind in ("limit", "remaining", "reset") for name in ("requests", "tokens")),
    *(f"anthropic-ratelimit-input-tokens-{kind}" for kind in ("limit", "remaining", "reset")),
    *("retry-after", "retry-after-ms"),
]


def seconds(number: float) -> timedelta:
    """A span."""
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after-ms": "250", "retry-after": "9"}, seconds(0.25)),
        ({"retry-after": "2"}, seconds(2)),
        ({"Retry-After": "1.5"}, seconds(1.5)),
        ({"retry-after-ms": "soon", "retry-after": "3"}, seconds(3)),
        ({"retry-after": "Wed, 01 May 2024 12:00:30 GMT"}, seconds(30)),
        ({"retry-after": "Wed, 01 May 2024 12:00:30 -0000"}, seconds(30)),
        ({"retry-after": "Wed, 01 May 2024 11:00:00 GMT"}, seconds(0)),
        ({"retry-after": "172800"}, LONGEST_WAIT),
        ({"retry-after": "Sun, 05 May 2024 12:00:00 GMT"}, LONGEST_WAIT),
        *(({"retry-after": hostile}, None) for hostile in ("-5", "nan", "inf", "1e999", "1e3", "9" * 400, "1_0", "٣")),
        *(({"retry-after": hostile}, None) for hostile in ("soon", "", "1714564830", "Wed, 99 May 2024 12:00:30 GMT")),
        ({"retry-after": "Sat, 01 May 9999 12:00:30 GMT"}, None),
        ({"x-should-retry": "true"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_is_asked_for(headers: dict[str, str], wait: timedelta | None) -> None:
    """Milliseconds first, then seconds, then a date; a day at most, and None where it is no wait that can be meant."""
    assert read_hint(headers, now=NOW).retry_after == wait


def test_openai_headers() -> None:
    """Limits, what is left, and when the bucket is whole again; the last is no wait."""
    hint = read_hint(
        {
            "X-RateLimit-Limit-Requests": "60", "X-RateLimit-Remaining-Requests": "59",
            "X-RateLimit-Reset-Requests": "1s", "x-ratelimit-limit-tokens": "150000",
            "x-ratelimit-remaining-tokens": "149984", "x-ratelimit-reset-tokens": "6m0s",
        },
        now=NOW,
    )  # fmt: skip

    assert hint == QuotaHint(
        limits={REQUESTS: 60, TOKENS: 150_000},
        remaining={REQUESTS: 59, TOKENS: 149_984},
        resets={REQUESTS: seconds(1), TOKENS: timedelta(minutes=6)},
    )


def test_anthropic_headers() -> None:
    """Input and output apart, resets as instants."""
    names = ("requests", "tokens", "input-tokens", "output-tokens")
    headers = {f"anthropic-ratelimit-{name}-limit": str(100 * place) for place, name in enumerate(names, 1)}
    headers |= {f"anthropic-ratelimit-{name}-remaining": str(place) for place, name in enumerate(names, 1)}
    headers |= {f"anthropic-ratelimit-{name}-reset": f"2024-05-01T12:00:0{place}Z" for place, name in enumerate(names)}
    hint = read_hint({**headers, "retry-after": "3"}, now=NOW)

    dimensions = (REQUESTS, TOKENS, Dimension.INPUT_TOKENS, Dimension.OUTPUT_TOKENS)
    assert hint.limits == {dimension: 100 * place for place, dimension in enumerate(dimensions, 1)}
    assert hint.remaining == {dimension: place for place, dimension in enumerate(dimensions, 1)}
    assert hint.resets == {dimension: seconds(place) for place, dimension in enumerate(dimensions)}
    assert hint.retry_after == seconds(3)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1s", seconds(1)),
        ("6m0s", seconds(360)),
        ("250ms", seconds(0.25)),
        ("2m59.56s", seconds(179.56)),
        ("1h2m3s", seconds(3723)),
        ("7", seconds(7)),
        ("2024-05-01T14:00:30+02:00", seconds(30)),
        ("2024-05-01T11:59:00.5Z", seconds(0)),
        *((hostile, None) for hostile in ("", "s", "-1s", "1x", "1s2", "nan", "9" * 60 + "s", "2024-13-01T00:00:00Z")),
    ],
)
def test_a_reset_in_each_of_its_forms(text: str, span: timedelta | None) -> None:
    """Spans as Go writes them, bare seconds, and instants; anything else is as if it were not said."""
    resets = read_hint({"x-ratelimit-reset-requests": text}, now=NOW).resets

    assert resets == ({} if span is None else {REQUESTS: span})


def test_geminis_wait_lies_in_the_body() -> None:
    """RetryInfo is the wait; where a header says longer, that counts."""
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []},
        {"@type": RETRY_INFO, "retryDelay": "34.5s"},
    ]
    assert read_hint({}, now=NOW, details=details).retry_after == seconds(34.5)
    assert read_hint({"retry-after": "60"}, now=NOW, details=details).retry_after == seconds(60)
    for hostile in ("-1s", 34, None, "soon", "9" * 50 + "s"):
        assert read_hint({}, now=NOW, details=[{"@type": RETRY_INFO, "retryDelay": hostile}]) == NO_HINT


def test_a_limit_of_nothing_is_none() -> None:
    """It would hold the pool for ever; nothing left is what a server may say."""
    hint = read_hint({"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0"}, now=NOW)

    assert hint == QuotaHint(remaining={REQUESTS: 0})


@given(st.dictionaries(st.sampled_from(NAMES), st.text() | st.floats().map(str) | st.integers().map(str)))
@example({"retry-after": "0001-01-01T00:00:00Z", "x-ratelimit-reset-requests": "0001-01-01T00:00:00+14:00"})
@example({"x-ratelimit-reset-tokens": "9999-12-31T23:59:59-14:00", "retry-after": "Mon, 01 Jan 0001 00:00:00 +1400"})
def test_whatever_a_server_sends_a_hint_is_sane(headers: dict[str, str]) -> None:
    """No header raises; every number is finite and not negative, every wait between nothing and a day."""
    hint = read_hint(headers, now=NOW)

    assert all(0 < value <= 1e12 for value in hint.limits.values())
    assert all(0 <= value <= 1e12 for value in hint.remaining.values())
    waits = [*hint.resets.values(), *([] if hint.retry_after is None else [hint.retry_after])]
    assert all(timedelta() <= wait <= LONGEST_WAIT for wait in waits)
