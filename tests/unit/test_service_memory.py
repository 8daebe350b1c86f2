"""Memory over HTTP: what users say goes in, and profiles, events and contexts come out."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2

from headrace.apps.memory import exposition, means
from tests.unit.memory_world import ADA, FLUSHES, USERS, WEI, memory_made, memory_served, settings_of, settled
from tests.unit.service_calls import JSON, code_of, served
from tests.waiting import wait_until


async def insert(client: httpx2.AsyncClient, user: str, messages: Any, key: str | None = None) -> httpx2.Response:
    """Put messages in."""
    headers = {} if key is None else {"idempotency-key": key}
    return await client.post(f"{USERS}/{user}/blobs", json={"messages": messages}, headers=headers)


async def remember(client: httpx2.AsyncClient, user: str, messages: Any) -> None:
    """Put messages in, flush them, and wait until they are memory."""
    assert (await insert(client, user, messages)).status_code == 201
    begun = await client.post(f"{USERS}/{user}/flush", headers=JSON)
    assert begun.status_code == 202, begun.text
    assert len(begun.json()["flushes"]) == 1

    async def done() -> bool:
        found = (await client.get(FLUSHES, params={"user_id": user})).json()["flushes"]
        return all(one["state"] == "done" for one in found)

    await wait_until(done, timedelta(seconds=30), message="the flush to be done")


async def entries(client: httpx2.AsyncClient, user: str) -> dict[str, dict[str, Any]]:
    """Return a profile by its entries."""
    found = (await client.get(f"{USERS}/{user}/profile")).json()
    return {f"{one['topic']}/{one['sub_topic']}": one for one in found["profile"]}


async def test_what_is_said_is_remembered(tmp_path: Path) -> None:
    """Two users, in two languages: profile, event, search, context; and nothing of one with the other."""
    async with memory_made(tmp_path) as (client, _):
        await remember(client, "ada", ADA)
        await remember(client, "wei", WEI)
        known = await entries(client, "ada")
        assert (known["contact_info/city"]["content"], known["work/title"]["version"]) == ("Lyon", 1)
        assert (await entries(client, "wei"))["contact_info/city"]["content"] == "北京"
        [event] = (await client.get(f"{USERS}/ada/events")).json()["events"]
        assert "lives in Lyon" in event["event_tip"]
        [found, *_] = (await client.get(f"{USERS}/ada/search", params={"q": "lives"})).json()["gists"]
        assert ("Lyon" in found["content"], found["event_id"]) == (True, event["id"])
        assert (await client.get(f"{USERS}/wei/search", params={"q": "绿茶"})).json()["gists"]
        assert (await client.get(f"{USERS}/wei/search", params={"q": "Lyon"})).json()["gists"] == []
        told = (await client.get(f"{USERS}/ada/context", params={"budget": 60})).json()
        assert "baker" in told["context"] and 0 < told["tokens"] <= 60
        assert (await client.get(f"{USERS}/ada/buffer")).json()["rows"] == 0


async def test_a_key_is_one_blob(tmp_path: Path) -> None:
    """The same again is the same; other messages under it are a conflict; another user's key is their own."""
    async with memory_served(tmp_path) as client:
        first = await insert(client, "ada", ADA, "k-1")
        again = await insert(client, "ada", ADA, "k-1")
        assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())
        assert code_of(await insert(client, "ada", WEI, "k-1")) == "idempotency_conflict"
        other = await insert(client, "wei", WEI, "k-1")
        assert other.json()["blob_id"] != first.json()["blob_id"]
        found = (await client.get(f"{USERS}/ada/buffer")).json()
        assert (found["rows"], found["tokens"] > 5) == (1, True)


async def test_a_profile_is_changed_by_its_version(tmp_path: Path) -> None:
    """All changes or none: one of an old version is a conflict, and nothing of its request is done."""
    async with memory_served(tmp_path) as client:
        await insert(client, "ada", ADA)
        profile = f"{USERS}/ada/profile"
        add = {"op": "add", "topic": "work", "sub_topic": "title", "content": "baker"}
        made = await client.patch(profile, json={"changes": [add]})
        assert (made.status_code, made.json()["profile"][0]["version"]) == (200, 1), made.text
        update = add | {"op": "update", "content": "smith", "expected_version": 1}
        assert (await client.patch(profile, json={"changes": [update]})).json()["profile"][0]["version"] == 2
        both = [add | {"sub_topic": "company", "content": "Forge"}, update]
        stale = await client.patch(profile, json={"changes": both})
        assert (stale.status_code, code_of(stale)) == (409, "version_conflict")
        known = await entries(client, "ada")
        assert {name: one["content"] for name, one in known.items()} == {"work/title": "smith"}
        gone = {"op": "delete", "topic": "work", "sub_topic": "title", "expected_version": 2}
        assert (await client.patch(profile, json={"changes": [gone]})).json()["profile"] == []


async def test_a_user_is_forgotten(tmp_path: Path) -> None:
    """Once; then there is nobody to forget."""
    async with memory_served(tmp_path) as client:
        await insert(client, "ada", ADA)
        assert (await client.delete(f"{USERS}/ada", headers=JSON)).status_code == 204
        assert (await client.get(f"{USERS}/ada/buffer")).json()["rows"] == 0
        assert code_of(await client.delete(f"{USERS}/ada", headers=JSON)) == "not_found"


async def test_a_user_is_noted_and_what_failed_is_taken_up_again(tmp_path: Path) -> None:
    """Before anything was said; what is not given has its usual value, and nobody is not found."""
    async with memory_served(tmp_path) as client:
        assert code_of(await client.get(f"{USERS}/ada")) == "not_found"
        noted = await client.put(f"{USERS}/ada", json={"level": 5, "language": "zh"})
        assert (noted.status_code, noted.json()["level"], noted.json()["language"]) == (200, 5, "zh")
        again = (await client.put(f"{USERS}/ada", json={"level": 2})).json()
        assert again == (await client.get(f"{USERS}/ada")).json()
        assert (again["level"], again["language"], again["created_at"]) == (2, None, noted.json()["created_at"])
        await insert(client, "ada", ADA)
        [flush] = (await client.post(f"{USERS}/ada/flush", headers=JSON)).json()["flushes"]
        assert await means.TABLES.fail_flush(UUID(flush["id"]), "no answer")
        [failed] = (await client.get(FLUSHES, params={"state": "failed"})).json()["flushes"]
        assert (failed["id"], failed["error"]) == (flush["id"], "no answer")
        retried = await client.post(f"{USERS}/ada/retry", headers=JSON)
        [taken] = retried.json()["flushes"]
        assert (retried.status_code, taken["id"], taken["state"], taken["round"]) == (202, flush["id"], "waiting", 1)


async def test_nobody_who_is_not_known_has_anything(tmp_path: Path) -> None:
    """Lists are empty, and a context too."""
    async with memory_served(tmp_path) as client:
        assert await entries(client, "nobody") == {}
        assert (await client.get(f"{USERS}/nobody/events")).json()["events"] == []
        assert (await client.get(f"{USERS}/nobody/context")).json()["context"] == ""
        assert (await client.get(FLUSHES)).json() == {"flushes": []}


BLOBS = f"{USERS}/ada/blobs"
BAD_BODIES: dict[str, tuple[str, str, Any]] = {
    "nothing said": ("post", BLOBS, {}),
    "no messages": ("post", BLOBS, {"messages": []}),
    "both": ("post", BLOBS, {"messages": ADA, "summary": "x"}),
    "role": ("post", BLOBS, {"messages": [{"role": "god", "content": "x"}]}),
    "empty content": ("post", BLOBS, {"messages": [{"role": "user", "content": " "}]}),
    "content of a number": ("post", BLOBS, {"messages": [{"role": "user", "content": 7}]}),
    "other member": ("post", BLOBS, {"messages": [{"role": "user", "content": "x", "who": "y"}]}),
    "too many": ("post", BLOBS, {"messages": [{"role": "user", "content": "x"}] * 1_001}),
    "no zone": ("post", BLOBS, {"messages": ADA, "created_at": "2026-05-01T12:00:00"}),
    "long user": ("post", f"{USERS}/{'u' * 201}/blobs", {"messages": ADA}),
    "user of a control character": ("post", f"{USERS}/a%07b/blobs", {"messages": ADA}),
    "level": ("put", f"{USERS}/ada", {"level": 11}),
    "level of a text": ("put", f"{USERS}/ada", {"level": "5"}),
    "language": ("put", f"{USERS}/ada", {"language": "fr"}),
    "other note": ("put", f"{USERS}/ada", {"priority": 1}),
    "no changes": ("patch", f"{USERS}/ada/profile", {"changes": []}),
    "operation": ("patch", f"{USERS}/ada/profile", {"changes": [{"op": "drop", "topic": "a", "sub_topic": "b"}]}),
    "no version": (
        "patch", f"{USERS}/ada/profile",
        {"changes": [{"op": "update", "topic": "a", "sub_topic": "b", "content": "c"}]},
    ),
    "twice": (
        "patch", f"{USERS}/ada/profile",
        {"changes": [{"op": "add", "topic": "a", "sub_topic": "b", "content": "c"}] * 2},
    ),
    "content of a deletion": (
        "patch", f"{USERS}/ada/profile",
        {"changes": [{"op": "delete", "topic": "a", "sub_topic": "b", "content": "c", "expected_version": 1}]},
    ),
}  # fmt: skip


async def test_bad_bodies_are_refused_by_field(tmp_path: Path) -> None:
    """With 422, and words that name it; and nothing of them is stored."""
    async with memory_served(tmp_path) as client:
        for name, (method, path, body) in BAD_BODIES.items():
            answer = await client.request(method.upper(), path, json=body)
            assert (answer.status_code, code_of(answer)) == (422, "invalid_input"), (name, answer.text)
            assert answer.json()["field"], name
        assert (await client.get(f"{USERS}/ada/buffer")).json()["rows"] == 0


BAD_QUERIES = (
    f"{USERS}/ada/events?limit=0", f"{USERS}/ada/events?limit=1000000000", f"{USERS}/ada/events?tag=x",
    f"{USERS}/ada/events?before=yesterday", f"{USERS}/ada/events?colour=red", f"{USERS}/ada/search",
    f"{USERS}/ada/search?q=", f"{USERS}/ada/search?q={'x' * 1001}", f"{USERS}/ada/search?q=%20",
    f"{USERS}/ada/context?budget=0", f"{USERS}/ada/context?budget=100001", f"{USERS}/ada/context?budget=many",
    f"{FLUSHES}?state=lost", f"{USERS}/a%07b/profile", f"{USERS}/a%07b/context", f"{FLUSHES}?user_id=a%07b",
)  # fmt: skip
#: Texts that a language of searches would take for something else.
TEXTS = ("'; DROP TABLE users; --", "a & b | !", "\\", "%", "((((", "<->", "🦊", "a:*b", "the", "x" * 1000)


async def test_bad_queries_are_refused(tmp_path: Path) -> None:
    """With 422."""
    async with memory_served(tmp_path) as client:
        for path in BAD_QUERIES:
            answer = await client.get(path)
            assert (answer.status_code, code_of(answer)) == (422, "invalid_input"), (path, answer.text)


async def test_any_text_may_be_looked_for(tmp_path: Path) -> None:
    """It is a text, and no language of a database."""
    async with memory_served(tmp_path) as client:
        for text in TEXTS:
            answer = await client.get(f"{USERS}/ada/search", params={"q": text})
            assert (answer.status_code, answer.json()["gists"]) == (200, []), text


async def test_figures_tell_what_waits(tmp_path: Path) -> None:
    """Of each kind of work, and of the tables."""
    async with memory_served(tmp_path) as client:
        await insert(client, "ada", ADA)
        found = (await client.get(f"{USERS.rpartition('/')[0]}/figures")).json()
        assert set(found["kinds"]) == {"consume", "buffer", "process", "storage"}
        assert (found["counts"]["rows_idle"], found["counts"]["flushes_waiting"]) == (1, 0)
        exposition._SAID.pop(means.app, None)
        assert 'memory_items{what="rows_idle"} 1' in (await client.get("/metrics")).text


async def test_tables_that_are_not_there_are_told(tmp_path: Path) -> None:
    """As something for whoever runs the service to do."""
    with settled(settings_of(tmp_path)) as app:
        async with served(app, worker=False) as client:
            answer = await client.get(f"{USERS}/ada/profile")
            assert (answer.status_code, code_of(answer)) == (503, "store_version")
            assert "headrace memory" in answer.json()["detail"]
            exposition._SAID.pop(app, None)
            told = (await client.get("/metrics")).text
            assert "memory_queue_depth" in told and "memory_items" not in told
