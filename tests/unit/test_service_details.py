"""`/details` over HTTP: requests, batches, events, and the mode."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest

from headrace import App, ConflictError
from headrace.apps.details.desk import Details, register
from headrace.model_settings import ModelSettings
from headrace.service.details_waiting import Switch, first_items, preferred_wait
from headrace.service.stream_shapes import DETAILS
from headrace.testing.provider import Answers, ScriptedProvider
from tests.unit.engine_app import QUICK
from tests.unit.service_calls import code_of, served, shop

PATH = "/api/v1/details"
ASKED = {"type": "skill", "count": 3, "style": "grim", "session_id": "s-1"}
RULES = Answers([
    {"contains": "You invent details", "list": {
        "count": "Count: (\\d+)", "about": "\\nRequest ([^\\n]+)",
        "item": {"name": "{name} of {words:1}", "description": "{words:3}", "attributes": {"age": "{number:900}"}},
    }},
])  # fmt: skip


@asynccontextmanager
async def details_served(
    *, worker: bool = True, rules: Answers = RULES, **llm: Any
) -> AsyncIterator[tuple[httpx2.AsyncClient, Details]]:
    """Serve an app with details, and a scripted provider where somebody works."""
    async with AsyncExitStack() as stack:
        model = ModelSettings(model="nobody", base_url="http://127.0.0.1:9/v1", api_key="none", **llm)
        if worker:
            provider = await stack.enter_async_context(ScriptedProvider(rules=rules))
            model = ModelSettings(model=provider.model, base_url=provider.base_url, api_key=provider.api_key)
        app = App(settings=replace(QUICK, llm=model))
        desk = register(app)
        yield await stack.enter_async_context(served(app, worker=worker)), desk


async def make(client: httpx2.AsyncClient, *, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
    """Ask for a batch."""
    return await client.post(PATH, json=ASKED | more, headers=headers)


def events_of(answer: httpx2.Response) -> list[tuple[int, str, Any]]:
    """Return number, type and data of the events of a stream that has ended."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "id" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


async def test_a_request_is_accepted_made_and_followed() -> None:
    """The answer has the ids, what can be expected, and links; events are those of the feed and end with the batch."""
    async with details_served() as (client, _):
        answer = await make(client)
        accepted = answer.json()
        assert answer.status_code == 202
        assert accepted["batch_id"] == accepted["correlation_id"]
        assert (accepted["attention"], accepted["existing"]) == ("", False)
        assert {"expected_seconds", "promised", "detail"} < accepted.keys() and "items" not in accepted
        assert answer.headers["location"] == accepted["links"]["self"] == f"{PATH}/{accepted['batch_id']}"

        events = events_of(await client.get(accepted["links"]["events"]))
        assert [seq for seq, _, _ in events] == list(range(1, len(events) + 1))
        types = [kind for _, kind, _ in events]
        assert (types[0], types[-1], types.count("item"), types.count("first_response")) == (
            "accepted",
            "completed",
            3,
            1,
        )

        batch = (await client.get(accepted["links"]["self"])).json()
        names = [item["name"] for item in batch["items"]]
        assert (batch["status"], batch["delivered"], batch["type"], len(set(names))) == ("completed", 3, "skill", 3)
        assert batch["items"] == [data for _, kind, data in events if kind == "item"]
        for _, kind, data in events:
            DETAILS[kind].model_validate(data)


async def test_events_go_on_behind_the_last_one_that_was_seen() -> None:
    """By the header or the query; behind the end there is nothing, and what is no number is refused."""
    async with details_served() as (client, _):
        events = (await make(client)).json()["links"]["events"]
        whole = events_of(await client.get(events))
        assert events_of(await client.get(events, headers={"last-event-id": "2"})) == whole[2:]
        assert events_of(await client.get(events, params={"after": 3})) == whole[3:]
        assert (await client.get(events, headers={"last-event-id": str(len(whole))})).status_code == 204
        assert (await client.get(events, headers={"last-event-id": "x"})).status_code == 400


async def test_a_key_gives_one_batch() -> None:
    """Also without a session, which is made from the key; another request of the key is a conflict."""
    async with details_served() as (client, _):
        key = {"idempotency-key": "k-1"}
        body = {name: value for name, value in ASKED.items() if name != "session_id"}
        first, again = [(await client.post(PATH, json=body, headers=key)).json() for _ in range(2)]
        assert first | {"existing": True} == again
        other = await client.post(PATH, json=body | {"count": 4}, headers=key)
        assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")
        assert len((await client.get(PATH)).json()["batches"]) == 1


async def test_the_first_response_can_be_waited_for() -> None:
    """Its items are in the answer, which says so; who does not ask for it has its answer at once."""
    async with details_served() as (client, _):
        answer = await make(client, headers={"prefer": "wait=20"}, count=4, first_response=2)
        assert (answer.status_code, answer.headers["preference-applied"]) == (202, "wait=20")
        assert len(answer.json()["items"]) >= 2 and all(item["name"] for item in answer.json()["items"])


async def test_a_first_response_that_is_late_is_left_out() -> None:
    """The batch goes on; nobody works here."""
    async with details_served(worker=False) as (client, desk):
        accepted = await desk.submit(ASKED)
        assert await first_items(desk.feed(accepted.batch_id), 0.05) is None
        assert (await client.get(f"{PATH}/{accepted.batch_id}")).json()["status"] == "waiting"


async def test_batches_are_listed_by_pages() -> None:
    """The newest first, without items."""
    async with details_served(worker=False) as (client, desk):
        made = [(await desk.submit({**ASKED, "priority": number})).batch_id for number in range(5)]
        first = (await client.get(PATH, params={"limit": 3})).json()
        second = (await client.get(PATH, params={"limit": 3, "cursor": first["next_cursor"]})).json()
        assert [one["batch_id"] for one in first["batches"] + second["batches"]] == made[::-1]
        assert second["next_cursor"] is None and "items" not in first["batches"][0]


async def test_a_quota_that_binds_is_told_at_once_with_its_name() -> None:
    """Each request is told what those before it leave: when it can be expected, and which limit makes it wait."""
    async with details_served(worker=False, requests_per_minute=60) as (client, _):
        first, second = [(await make(client, count=30)).json() for _ in range(2)]
        for told in (first, second):
            assert not told["promised"] and "60 requests per minute of openai:" in told["detail"]
        assert second["expected_seconds"] > first["expected_seconds"] + 2.0
        assert f"expected {second['expected_seconds']:.1f} s" in second["detail"]


async def test_a_webhook_that_nothing_would_sign_is_refused_with_the_fix() -> None:
    """And nothing is stored."""
    async with details_served(worker=False) as (client, _):
        answer = await make(client, webhook="https://example.org/hook")
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
        assert "[webhooks] secrets" in answer.json()["detail"]
        assert (await client.get(PATH)).json()["batches"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 0}, {"count": 1_001}, {"count": "3"}, {"count": True}, {"count": 2.5}, {"type": ""}, {"type": "A B"},
        {"type": None}, {"priority": 11}, {"priority": -1}, {"style": "x" * 501}, {"style": "\u0007"}, {"scope": ""},
        {"session_id": "x" * 129}, {"first_response": 0}, {"first_response": 26}, {"webhook": "ftp://x"}, {"size": 3},
    ],
)  # fmt: skip
async def test_what_breaks_a_rule_is_refused_naming_the_field(wrong: dict[str, Any]) -> None:
    """And nothing is stored."""
    async with details_served(worker=False) as (client, _):
        answer = await make(client, **wrong)
        assert (answer.status_code, code_of(answer)) == (422, "invalid_input")
        assert next(iter(wrong)) in answer.text
        assert (await client.get(PATH)).json()["batches"] == []


@pytest.mark.parametrize("more", ["", "/events"])
async def test_a_batch_that_there_is_not_is_told(more: str) -> None:
    """Nobody waits for its events."""
    async with details_served(worker=False) as (client, _):
        answer = await client.get(f"{PATH}/01980000-0000-7000-8000-000000000000{more}")
        assert (answer.status_code, code_of(answer)) == (404, "not_found")


@pytest.mark.parametrize("path", ["nonsense", "nonsense/events"])
async def test_what_is_no_id_is_refused(path: str) -> None:
    """As everywhere."""
    async with details_served(worker=False) as (client, _):
        assert (await client.get(f"{PATH}/{path}")).status_code == 422


async def test_the_mode_is_changed_and_batches_are_made_in_it() -> None:
    """One call makes a whole batch then, and its events are the same."""
    async with details_served() as (client, _):
        assert (await client.get(f"{PATH}/mode")).json()["mode"] == "normal"
        changed = await client.put(f"{PATH}/mode", json={"mode": "single-call"})
        assert (changed.status_code, changed.json()["mode"]) == (200, "single-call")
        events = events_of(await client.get((await make(client, count=12)).json()["links"]["events"]))
        assert (len([1 for _, kind, _ in events if kind == "item"]), events[-1][2]["calls"]) == (12, 1)
        assert (await client.put(f"{PATH}/mode", json={"mode": "normal"})).json()["mode"] == "normal"
        assert (await client.put(f"{PATH}/mode", json={"mode": "fast"})).status_code == 422


async def test_a_change_that_takes_long_is_joined_by_the_same_request() -> None:
    """It goes on meanwhile; another change is a conflict."""
    switch, ended, begun = Switch(), asyncio.Event(), 0

    async def change(progress: Any) -> None:
        nonlocal begun
        begun += 1
        progress("3 are left")
        await ended.wait()

    assert not await switch.make("single-call", change, 0.01)
    assert (switch.runs, switch.wanted, switch.left) == (True, "single-call", "3 are left")
    with pytest.raises(ConflictError, match="being changed to single-call"):
        await switch.make("normal", change, 0.01)
    ended.set()
    assert await switch.make("single-call", change, 5)
    assert (begun, switch.runs) == (1, False)


async def test_a_change_that_fails_says_so_and_can_be_made_again() -> None:
    """Whoever waits for it is told."""
    switch = Switch()

    async def fail(_: Any) -> None:
        raise ConflictError("not now")

    async def change(_: Any) -> None:
        return None

    with pytest.raises(ConflictError, match="not now"):
        await switch.make("normal", fail, 5)
    assert await switch.make("normal", change, 5)


async def test_an_app_without_details_has_no_such_routes() -> None:
    """They are those of apps that registered them."""
    async with served(shop(), worker=False) as client:
        assert (await client.get(PATH)).status_code == 404


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, 0), ("", 0), ("wait=5", 5), ('wait="5"', 5), ("respond-async,wait = 7", 7), ("wait=31", 30), ("await=5", 0),
     ("wait=-5", 0), ("wait=5s", 0), ("wait=9999999999", 0)],
)  # fmt: skip
def test_a_preference_is_read_or_passed_over(header: str | None, seconds: int) -> None:
    """As RFC 7240 has it: what is not understood changes nothing."""
    assert preferred_wait(header) == seconds


async def test_priorities_are_ten_for_the_most_urgent() -> None:
    """10 waits behind nobody, 0 behind all."""
    async with details_served(worker=False) as (client, desk):
        classes = {}
        for priority in (10, 5, 0):
            batch = (await make(client, priority=priority)).json()["batch_id"]
            view = await desk.app.runtime.stores.inspect.get_job(UUID(batch))
            assert view is not None
            classes[priority] = view.priority
        assert classes == {10: 0, 5: 5, 0: 9}
