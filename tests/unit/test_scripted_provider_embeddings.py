"""The embeddings of the scripted provider: unit vectors, near for similar texts, counted and limited as calls are."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from headrace.testing.provider import Fault, FaultKind, Quota, ScriptedProvider, Span, embed


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client without proxies."""
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        yield client


async def post(client: httpx2.AsyncClient, provider: ScriptedProvider, **body: Any) -> httpx2.Response:
    """Ask for embeddings."""
    headers = {"authorization": f"Bearer {provider.api_key}"}
    return await client.post(f"{provider.base_url}/embeddings", json={"model": "m", **body}, headers=headers)


def likeness(one: str, other: str) -> float:
    """The cosine of two texts' vectors."""
    return sum(a * b for a, b in zip(embed(one), embed(other), strict=True))


def test_vectors_have_length_one_and_lie_near_for_similar_texts() -> None:
    """Spelling variants are near, other words are far, and nothing depends on the run."""
    for text in ("Apple", "…", "a much longer text about nothing in particular", "日本語"):
        assert math.isclose(sum(part * part for part in embed(text, 64)), 1.0)
    assert likeness("Golden Retriever", "golden retrievers") > 0.8
    assert likeness("Golden Retriever", "Quarterly tax return") < 0.3
    assert embed("Apple")[:3] == embed("apple")[:3]


async def test_embeddings_come_in_order_with_their_dimensions(client: httpx2.AsyncClient) -> None:
    """One vector for each text, as numbers or packed, and the tokens that were read."""
    async with ScriptedProvider() as provider:
        plain = (await post(client, provider, input=["one", "two"], dimensions=32)).json()
        packed = (await post(client, provider, input="two", dimensions=32, encoding_format="base64")).json()

    assert [entry["index"] for entry in plain["data"]] == [0, 1]
    assert plain["data"][1]["embedding"] == pytest.approx(embed("two", 32))
    unpacked = struct.unpack("<32f", base64.b64decode(packed["data"][0]["embedding"]))
    assert unpacked == pytest.approx(embed("two", 32), abs=1e-6)
    assert plain["usage"] == {"prompt_tokens": 2, "total_tokens": 2}


@pytest.mark.parametrize(
    "body", [{}, {"input": []}, {"input": [""]}, {"input": [1]}, {"input": "a", "dimensions": 0.5}]
)
async def test_a_request_for_embeddings_that_is_none_is_refused(body: Any, client: httpx2.AsyncClient) -> None:
    """Malformed requests get a 400 and are no calls."""
    async with ScriptedProvider() as provider:
        assert (await post(client, provider, **body)).status_code == 400
        assert provider.count() == 0


async def test_embeddings_are_counted_limited_and_failed_as_calls_are(client: httpx2.AsyncClient) -> None:
    """Quotas reserve the prompt alone; the script of faults and the counts hold for embeddings too."""
    quota = Quota(tokens_per_minute=600)
    async with ScriptedProvider(quota=quota, faults=[Fault(kind=FaultKind.SERVER_ERROR, calls=Span(1, 1))]) as provider:
        texts = ["x" * 20, "x" * 20, "x" * 4_000]
        statuses = [(await post(client, provider, input=text)).status_code for text in texts]
        stats = provider.stats()

    assert statuses == [500, 200, 429]
    assert stats.outcomes == {"failed": 1, "answered": 1, "refused": 1}
    assert stats.buckets["tokens_per_minute"]["used"] == 5
