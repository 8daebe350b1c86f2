"""The quotas of the scripted provider: what they let in, what they tell, and how they change while it runs."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest

from headrace.model.errors import InvalidInputError
from headrace.testing.provider import (
    Fault,
    FaultKind,
    ProviderProcess,
    Quota,
    QuotaChange,
    ScriptedProvider,
    Span,
    Stats,
)
from headrace.testing.provider.buckets import Lease, QuotaGate, Refusal, as_wait
from headrace.testing.provider.limit_headers import go_duration


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def gate(*changes: QuotaChange, **limits: Any) -> tuple[QuotaGate, Clock]:
    """A gate with a clock of its own."""
    clock = Clock()
    return QuotaGate(Quota(**limits), changes, clock=clock), clock


def let_in(quotas: QuotaGate, *, calls: int = 1, prompt: int = 1, most: int | None = 1) -> int:
    """How many of so many calls are let in."""
    return sum(isinstance(quotas.admit(prompt, most), Lease) for _ in range(calls))


def lease_of(admitted: Lease | Refusal) -> Lease:
    """The lease of a call that must have been let in."""
    assert isinstance(admitted, Lease)
    return admitted


def refusal_of(admitted: Lease | Refusal) -> Refusal:
    """The refusal of a call that must not have been let in."""
    assert isinstance(admitted, Refusal)
    return admitted


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client without proxies."""
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


def headers_of(provider: ScriptedProvider) -> dict[str, str]:
    """The header every request needs."""
    return {"authorization": f"Bearer {provider.api_key}"}


async def ask(
    client: httpx2.AsyncClient, provider: ScriptedProvider, text: str = "hello", **fields: Any
) -> httpx2.Response:
    """Ask once."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return await client.post(f"{provider.base_url}/chat/completions", json=body, headers=headers_of(provider))


def test_a_bucket_lets_its_burst_in_and_then_its_rate() -> None:
    """A burst of one second's quota passes at once, later calls as the bucket fills, never more."""
    quotas, clock = gate(requests_per_minute=600)

    assert let_in(quotas, calls=50) == 10
    clock.now += 0.35
    assert let_in(quotas, calls=50) == 3
    clock.now += 3_600
    assert let_in(quotas, calls=50) == 10


def test_the_wait_that_is_told_is_true() -> None:
    """One millisecond earlier the call is refused again; after the wait it passes."""
    quotas, clock = gate(tokens_per_minute=6_000, requests_per_minute=60_000)
    assert let_in(quotas, prompt=60, most=40) == 1
    told = as_wait(refusal_of(quotas.admit(30, 40)).wait)

    assert told == timedelta(seconds=0.7)
    clock.now += told.total_seconds() - 0.001
    assert let_in(quotas, prompt=30, most=40) == 0
    clock.now += 0.001
    assert let_in(quotas, prompt=30, most=40) == 1


def test_what_was_reserved_and_not_used_comes_back() -> None:
    """Prompt and most tokens are reserved, the difference is refunded; without refund it is not."""
    for refund, level in ((True, 880), (False, 0)):
        quotas, _ = gate(tokens_per_minute=60_000, refund=refund)
        lease = lease_of(quotas.admit(100, 900))
        assert quotas.buckets["tokens_per_minute"].level(quotas.clock()) == 0
        quotas.settle(lease, 100, 20)
        quotas.settle(lease, 0, 0)
        assert quotas.buckets["tokens_per_minute"].level(quotas.clock()) == level


@pytest.mark.parametrize(
    ("reserve", "at_start", "while_written"),
    [
        ("max_tokens", (1_000, 100, 900), (1_000, 100, 900)),
        ("prompt", (100, 100, 0), (100, 100, 0)),
        ("actual", (0, 0, 0), (0, 0, 0)),
        ("split", (100, 100, 0), (130, 100, 30)),
    ],
)
def test_each_rule_reserves_its_own(reserve: Any, at_start: tuple[int, ...], while_written: tuple[int, ...]) -> None:
    """What is taken at the start and while the answer is written follows the rule; in the end all charge the same."""
    limits = dict.fromkeys(("tokens_per_minute", "input_tokens_per_minute", "output_tokens_per_minute"), 60_000)
    quotas, _ = gate(reserve=reserve, **limits)

    def used() -> tuple[float, ...]:
        return tuple(quotas.buckets[name].used for name in limits)

    lease = lease_of(quotas.admit(100, 900))
    assert used() == at_start
    quotas.wrote(lease, 30)
    assert used() == while_written
    quotas.settle(lease, 100, 50)
    assert used() == (150, 100, 50)


def test_an_answer_longer_than_reserved_is_owed() -> None:
    """With the rule `actual` nothing is reserved; the debt keeps the next call out until it is paid off."""
    quotas, clock = gate(tokens_per_minute=60_000, reserve="actual")
    quotas.settle(lease_of(quotas.admit(500, None)), 500, 1_499)

    assert refusal_of(quotas.admit(1, 1)).wait == pytest.approx(1.0)
    clock.now += 1.001
    assert let_in(quotas) == 1


def test_a_call_dearer_than_the_burst_passes_from_a_full_bucket() -> None:
    """It is owed; one dearer than a minute's quota can never pass, and no wait is told."""
    quotas, clock = gate(tokens_per_minute=60_000)

    assert let_in(quotas, prompt=2_000, most=1_000) == 1
    assert refusal_of(quotas.admit(2_000, 1_000)).wait == pytest.approx(3.0)
    clock.now += 3
    assert let_in(quotas, prompt=2_000, most=1_000) == 1
    assert math.isinf(refusal_of(quotas.admit(60_001, 1)).wait)


def test_refused_calls_count_only_where_the_quota_says_so() -> None:
    """By default a refusal costs nothing; with `count_refused` a storm keeps the bucket empty."""
    for count_refused, passes in ((False, 1), (True, 0)):
        quotas, clock = gate(requests_per_minute=60, count_refused=count_refused)
        let_in(quotas)
        for _ in range(12):
            clock.now += 0.09
            passed = let_in(quotas)
            if passed:
                break
        assert passed == passes


def test_calls_in_flight_are_bounded() -> None:
    """A call beyond the concurrency is refused until one ends; the wait is that of the first to end."""
    quotas, clock = gate(concurrency=2)
    first, second = lease_of(quotas.admit(1, 1)), lease_of(quotas.admit(1, 1))
    first.ends_at, second.ends_at = clock.now + 4, clock.now + 2

    assert refusal_of(quotas.admit(1, 1)).wait == pytest.approx(2.0)
    quotas.end(second)
    assert let_in(quotas) == 1


def test_a_day_has_a_bucket_of_its_own() -> None:
    """A whole day's requests may be used at once, and come back over the day."""
    quotas, clock = gate(requests_per_day=24, requests_per_minute=6_000)

    assert let_in(quotas, calls=30) == 24
    assert refusal_of(quotas.admit(1, 1)).wait == pytest.approx(3_600)
    clock.now += 3_600
    assert let_in(quotas, calls=30) == 1


def test_a_change_comes_at_its_time_or_after_its_calls() -> None:
    """Changes apply from their instant, even if nobody called then, and each counts from when it was scheduled."""
    later = QuotaChange.parse("after=10s:requests_per_minute=60")
    quotas, clock = gate(later, QuotaChange.parse("after_calls=3:requests_per_minute=120,burst=1s"), burst=timedelta(1))

    assert let_in(quotas, calls=5) == 5
    assert quotas.quota.requests_per_minute == 120
    clock.now += 12
    quotas.catch_up()
    assert quotas.quota.requests_per_minute == 60
    assert [round(at - 1_000, 3) for at, _, _ in quotas.history] == [0, 0, 10]
    quotas.schedule(QuotaChange(changes={"requests_per_minute": None}, after_calls=1))
    assert quotas.quota.requests_per_minute == 60
    assert let_in(quotas) == 1
    quotas.catch_up()
    assert quotas.quota.requests_per_minute is None


@pytest.mark.parametrize(
    "text",
    [
        "requests_per_minute=0",
        "requests_per_minute=many",
        "tokens_per_minute=inf",
        "burst=0s",
        "burst=soon",
        "concurrency=0",
        "concurrency=1.5",
        "reserve=all",
        "refund=perhaps",
        "headers=acme",
        "speed=3",
        "requests_per_minute",
    ],
)
def test_a_quota_that_is_not_understood_is_named(text: str) -> None:
    """Mistakes are told with the name of the field."""
    with pytest.raises(InvalidInputError, match="quota"):
        Quota.parse(text)


@pytest.mark.parametrize(
    "text", ["requests_per_minute=1", "after=1s", "after=1s,after_calls=2:burst=1s", "x=1:burst=1s"]
)
def test_a_change_that_is_not_understood_is_named(text: str) -> None:
    """A change needs exactly one time and known values."""
    with pytest.raises(InvalidInputError, match="quota"):
        QuotaChange.parse(text)


def test_durations_look_as_a_provider_writes_them() -> None:
    """The forms that OpenAI's headers have."""
    seconds = (0, 0.02, 1, 8.64, 60, 360, 3_661.5)
    shown = [go_duration(timedelta(seconds=value)) for value in seconds]
    assert shown == ["0ms", "20ms", "1s", "8.64s", "1m0s", "6m0s", "1h1m1.5s"]


async def test_a_refusal_tells_its_wait_in_the_style_asked_for(client: httpx2.AsyncClient) -> None:
    """Milliseconds and whole seconds rounded up, seconds alone, RetryInfo in the body, or nothing."""
    async with ScriptedProvider(quota=Quota(requests_per_minute=5)) as provider:
        await ask(client, provider)
        told = {}
        for style in ("ms", "seconds", "retry_info", "none"):
            provider.set_quota(retry_style=style)
            told[style] = await ask(client, provider)

    assert {response.status_code for response in told.values()} == {429}
    milliseconds = int(told["ms"].headers["retry-after-ms"])
    assert 6_000 < milliseconds <= 12_000
    assert int(told["ms"].headers["retry-after"]) == math.ceil(milliseconds / 1_000)
    assert told["ms"].json()["error"]["code"] == "rate_limit_exceeded"
    assert 6 < int(told["seconds"].headers["retry-after"]) <= 12
    assert "retry-after-ms" not in told["seconds"].headers
    details = told["retry_info"].json()["error"]["details"][0]
    assert details["@type"] == "type.googleapis.com/google.rpc.RetryInfo"
    assert 6 < float(details["retryDelay"].removesuffix("s")) <= 12
    assert "retry-after" not in told["retry_info"].headers
    assert "retry-after" not in told["none"].headers
    assert "again" not in told["none"].text


async def test_answers_carry_the_limits_as_openai_tells_them(client: httpx2.AsyncClient) -> None:
    """Limit, what remains, and when all is there again; refunded before the answer is out."""
    quota = Quota(requests_per_minute=6, tokens_per_minute=6_000, burst=timedelta(seconds=100))
    async with ScriptedProvider(quota=quota, answer=lambda request: "yes") as provider:
        headers = (await ask(client, provider, "x" * 400, max_tokens=500)).headers
        used = provider.stats().buckets["tokens_per_minute"]["used"]

    assert headers["x-ratelimit-limit-requests"] == "6"
    assert headers["x-ratelimit-remaining-requests"] == "9"
    assert 5 < float(headers["x-ratelimit-reset-requests"].removesuffix("s")) <= 10
    assert headers["x-ratelimit-limit-tokens"] == "6000"
    assert 9_400 <= int(headers["x-ratelimit-remaining-tokens"]) < 9_800
    assert used == 101


async def test_answers_carry_the_limits_as_anthropic_tells_them(client: httpx2.AsyncClient) -> None:
    """Four kinds, with instants instead of durations; hidden limits tell nothing at all."""
    limits = {"input_tokens_per_minute": 6_000, "output_tokens_per_minute": 600}
    quota = Quota(requests_per_minute=60, headers="anthropic", reserve="split", **limits)  # type: ignore[arg-type]
    async with ScriptedProvider(quota=quota) as provider:
        headers = (await ask(client, provider)).headers
        provider.set_quota(headers="none")
        hidden = await ask(client, provider)

    for kind in ("requests", "input-tokens", "output-tokens"):
        assert float(headers[f"anthropic-ratelimit-{kind}-limit"]) > 0
        assert "anthropic-ratelimit-tokens-limit" not in headers
        reset = headers[f"anthropic-ratelimit-{kind}-reset"]
        assert reset.endswith("Z")
        assert datetime.fromisoformat(reset).tzinfo is not None
    assert hidden.status_code == 429
    assert not [name for name in hidden.headers if "ratelimit" in name]
    assert "60" not in hidden.text.partition("again")[0]


async def test_a_prompt_that_was_seen_is_cached(client: httpx2.AsyncClient) -> None:
    """Whole blocks of a prompt that was answered before are told as cached and cost nothing."""
    quota = Quota(input_tokens_per_minute=600_000, cached_prefix=True)
    async with ScriptedProvider(quota=quota) as provider:
        first, second = [await ask(client, provider, "x" * 2_000 + end) for end in ("one", "two")]
        stats = provider.stats()

    assert "prompt_tokens_details" not in first.json()["usage"]
    assert second.json()["usage"]["prompt_tokens_details"] == {"cached_tokens": 384}
    assert stats.tokens["cached"] == 384
    assert stats.buckets["input_tokens_per_minute"]["used"] == 501 * 2 - 384


async def test_another_process_can_look_and_change(client: httpx2.AsyncClient) -> None:
    """The same doors over HTTP, with the same key: see, change, schedule, replace, count anew; mistakes get a 400."""
    async with ScriptedProvider(quota=Quota(requests_per_minute=60, concurrency=3)) as provider:
        url, headers = provider.base_url.removesuffix("/v1") + "/scripted", headers_of(provider)
        assert (await client.get(f"{url}/stats")).status_code == 401
        changed = await client.post(f"{url}/quota", json={"requests_per_minute": 600, "burst": "2s"}, headers=headers)
        scheduled = {"after_calls": 1, "requests_per_minute": 120}
        await client.post(f"{url}/quota", json=scheduled, headers=headers)
        before = (await client.get(f"{url}/quota", headers=headers)).json()
        await ask(client, provider)
        after = (await client.get(f"{url}/quota", headers=headers)).json()
        stats = Stats.read((await client.get(f"{url}/stats", headers=headers)).json())
        replaced = (await client.put(f"{url}/quota", json={"tokens_per_minute": 5}, headers=headers)).json()
        wrong = await client.post(f"{url}/quota", json={"speed": 1}, headers=headers)
        no_json = await client.post(f"{url}/quota", content=b"[1", headers=headers)
        emptied = (await client.delete(f"{url}/stats", headers=headers)).json()

    assert changed.json()["requests_per_minute"] == 600
    assert (before["concurrency"], before["requests_per_minute"], before["burst"]) == (3, 600, "2s")
    assert after["requests_per_minute"] == 120
    assert [entry["quota"]["requests_per_minute"] for entry in stats.quotas] == [60, 600, 120]
    assert (stats.calls, stats.paid, stats.seconds[0].accepted) == (1, 1, 1)
    assert (replaced["requests_per_minute"], replaced["tokens_per_minute"]) == (None, 5)
    assert (wrong.status_code, no_json.status_code) == (400, 400)
    assert "takes only" in wrong.text
    assert (emptied["calls"], emptied["seconds"]) == (0, [])


async def test_the_stats_tell_what_happened(client: httpx2.AsyncClient) -> None:
    """Outcomes, 429s of both kinds, tokens, payments and the seconds of acceptance add up."""
    faults = [Fault(kind=FaultKind.SERVER_ERROR, calls=Span(1, 1)), Fault(kind=FaultKind.RATE_LIMIT, calls=Span(2, 2))]
    quota = Quota(requests_per_minute=1, burst=timedelta(seconds=240))
    async with ScriptedProvider(quota=quota, faults=faults, answer=lambda request: "y" * 40) as provider:
        statuses = [(await ask(client, provider, "x" * 80)).status_code for _ in range(5)]
        stats = provider.stats()
        provider.forget_calls()
        nothing = provider.stats()

    assert statuses == [500, 429, 200, 200, 429]
    assert stats.outcomes == {"failed": 2, "answered": 2, "refused": 1}
    assert (stats.calls, stats.rate_limited, stats.refused_by) == (5, 2, {"requests_per_minute": 1})
    assert (stats.paid, stats.paid_again, stats.contents, stats.peak_in_flight) == (2, 1, 1, 1)
    assert stats.tokens == {"input": 40, "output": 20, "cached": 0}
    assert sum(second.accepted for second in stats.seconds) == 4
    assert sum(second.refused for second in stats.seconds) == 1
    assert sum(second.tokens for second in stats.seconds) == 60
    assert stats.per_minute("tokens", last=1) == 60 * stats.seconds[0].tokens
    assert stats.first_accepted_at is not None
    assert stats.first_accepted_at["monotonic"] <= stats.now["monotonic"]
    assert json.loads(json.dumps(stats.to_json()))["calls"] == 5
    assert (nothing.calls, nothing.rate_limited, nothing.first_accepted_at) == (0, 0, None)


async def test_a_refused_call_uses_up_no_fault(client: httpx2.AsyncClient) -> None:
    """The script of faults numbers the calls that were let in, so that a run's faults do not hang on its timing."""
    faults = [Fault(kind=FaultKind.SERVER_ERROR, attempts=Span(2, 2))]
    async with ScriptedProvider(quota=Quota(requests_per_minute=1), faults=faults) as provider:
        statuses = [(await ask(client, provider)).status_code for _ in range(2)]
        provider.set_quota(requests_per_minute=None)
        statuses += [(await ask(client, provider)).status_code for _ in range(2)]

        assert statuses == [200, 429, 500, 200]
        assert [call.attempt for call in provider.calls] == [1, 2, 3, 4]


async def test_a_process_of_its_own_is_asked_and_changed_from_outside(client: httpx2.AsyncClient) -> None:
    """The command line's quotas rule there; its counts are read and its quota is changed from this process."""
    options = ["--quota", "requests_per_minute=1,burst=2m", "--quota-change", "after_calls=1:headers=none"]
    with ProviderProcess(*options, "--quota", "retry_style=seconds") as provider:
        headers = {"authorization": f"Bearer {provider.settings.api_key}"}
        url = f"{provider.base_url}/chat/completions"
        body = {"messages": [{"role": "user", "content": "Paper 7"}]}
        answers = [await client.post(url, json=body, headers=headers) for _ in range(3)]
        stats = provider.stats()
        changed = provider.set_quota(requests_per_minute=5, concurrency=2)
        with pytest.raises(InvalidInputError, match="takes only"):
            provider.set_quota(speed=1)
        calls, none = provider.calls("Paper 7"), provider.calls("Paper 8")
        provider.forget_calls()
        emptied = provider.stats()

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert ["x-ratelimit-limit-requests" in answer.headers for answer in answers] == [True, False, False]
    assert "retry-after-ms" not in answers[2].headers
    assert (stats.paid, stats.paid_again, stats.rate_limited) == (2, 1, 1)
    assert (changed["requests_per_minute"], changed["concurrency"]) == (5, 2)
    assert [(entry["calls"], entry["answered"]) for entry in calls] == [(3, 2)]
    assert none == []
    assert emptied.calls == 0


def test_wrong_options_of_a_process_are_told() -> None:
    """What the process complained of is in the error."""
    with pytest.raises(InvalidInputError, match="speed"), ProviderProcess("--quota", "speed=3"):
        pass
