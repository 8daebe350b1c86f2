"""How a provider speaks of its limits: headers beside every answer, and the refusal with status 429."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace.testing.provider.buckets import Bucket, QuotaGate, Refusal, as_wait

#: What a header calls a bucket, by the bucket's name; the first bucket that exists speaks for its kind.
_OPENAI = {"requests": ("requests_per_minute", "requests_per_day"), "tokens": ("tokens_per_minute",)}
_ANTHROPIC = {
    **_OPENAI,
    "input-tokens": ("input_tokens_per_minute",),
    "output-tokens": ("output_tokens_per_minute",),
}
_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def limit_headers(gate: QuotaGate) -> dict[str, str]:
    """The headers that tell limits, what remains of the buckets, and when they are full again."""
    style = gate.quota.headers
    if style == "none" or not gate.buckets:
        return {}
    now = gate.clock()
    headers: dict[str, str] = {}
    for kind, names in (_OPENAI if style == "openai" else _ANTHROPIC).items():
        bucket = next((gate.buckets[name] for name in names if name in gate.buckets), None)
        if bucket is None:
            continue
        prefix, suffix = ("x-ratelimit-", f"-{kind}") if style == "openai" else (f"anthropic-ratelimit-{kind}-", "")
        headers[f"{prefix}limit{suffix}"] = f"{bucket.limit:.0f}"
        headers[f"{prefix}remaining{suffix}"] = str(max(0, math.floor(bucket.level(now))))
        headers[f"{prefix}reset{suffix}"] = _reset(bucket, now, style)
    return headers


def _reset(bucket: Bucket, now: float, style: str) -> str:
    until = as_wait(bucket.until_full(now))
    if style == "openai":
        return go_duration(until)
    at = datetime.now(UTC) + until
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def go_duration(value: timedelta) -> str:
    """A duration as OpenAI writes it.

    >>> go_duration(timedelta(minutes=6)), go_duration(timedelta(seconds=8.64)), go_duration(timedelta(milliseconds=20))
    ('6m0s', '8.64s', '20ms')
    """
    milliseconds = round(value.total_seconds() * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + seconds


def refusal_response(gate: QuotaGate, refusal: Refusal, model: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of the 429 for a call that may not pass."""
    style, wait = gate.quota.retry_style, refusal.wait
    headers = {"content-type": "application/json", **limit_headers(gate)}
    if math.isinf(wait):
        return headers, _openai_body(gate, refusal, f"Request too large for {model}")
    if style in ("ms", "seconds"):
        headers["retry-after"] = str(max(1, math.ceil(as_wait(wait).total_seconds())))
    if style == "ms":
        headers["retry-after-ms"] = str(as_wait(wait) // timedelta(milliseconds=1))
    if style == "retry_info":
        return headers, _gemini_body(refusal)
    return headers, _openai_body(gate, refusal, f"Rate limit reached for {model}")


def _openai_body(gate: QuotaGate, refusal: Refusal, text: str) -> bytes:
    quota = gate.quota
    hidden = quota.headers == "none"
    limit = gate.buckets[refusal.limit].limit if refusal.limit in gate.buckets else quota.concurrency
    figures = "" if hidden else f": limit {limit:.0f}, requested {refusal.needed:.0f}"
    again = "" if math.isinf(refusal.wait) or quota.retry_style == "none" else _again(refusal)
    error = {
        "message": f"{text} on {refusal.limit.replace('_', ' ')}{figures}.{again}",
        "type": "tokens" if "tokens" in refusal.limit else "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }
    return json.dumps({"error": error}).encode()


def _again(refusal: Refusal) -> str:
    return f" Please try again in {go_duration(as_wait(refusal.wait))}."


def _gemini_body(refusal: Refusal) -> bytes:
    delay = f"{as_wait(refusal.wait).total_seconds():.3f}".rstrip("0").rstrip(".") + "s"
    details: list[Mapping[str, Any]] = [{"@type": _RETRY_INFO, "retryDelay": delay}]
    error = {"code": 429, "message": "Resource has been exhausted.", "status": "RESOURCE_EXHAUSTED", "details": details}
    return json.dumps({"error": error}).encode()
