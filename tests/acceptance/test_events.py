"""Relay, agent and callback service as processes of their own, on a real PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import App
from tests.acceptance.command_runs import Place, Process, place
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.acceptance

ORDERS, SHOPS = 20, 4
TOPIC = "outbox.event.ShopOrder"

SHOP = """
import asyncio
import os
from pathlib import Path
from headrace import App
from headrace.events import Agent, AgentContext, Event, OnError

app = App()
biller = Agent(app, "order_biller", aliases=["bills"], classify=lambda event, error: OnError.DEAD_LETTER)
watcher = Agent(app, "watcher")

@watcher.on("Shop.Order.Refused")
async def watch(event: Event, ctx: AgentContext) -> None:
    ctx.emit("Shop.Order.Watched")

@biller.on("Shop.Order.Refused")
async def refuse(event: Event, ctx: AgentContext) -> None:
    if not Path("mended").exists():
        raise ValueError("no such customer")
    ctx.emit("Shop.Order.Billed", {"n": event.payload["n"]})

@biller.on("Shop.Order.Paid")
async def bill(event: Event, ctx: AgentContext) -> None:
    with Path(f"{event.aggregate_id}.log").open("a") as log:
        print(event.payload["n"], file=log)
    if event.payload["n"] == 7 and not Path("go").exists():
        Path("begun").write_text(str(os.getpid()))
        await asyncio.sleep(3600)
    ctx.emit("Shop.Order.Billed", {"n": event.payload["n"]})
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Return a place with an app that has an agent; who dies there loses its partitions soon."""
    monkeypatch.setenv("HEADRACE_EVENTS_MEMBER_LEASE", "1s")
    with place(tmp_path) as made:
        (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
        yield made


def started(process: Process) -> Process:
    """Return a process once it works."""
    assert process.line()["event"] == "started"
    return process


async def pay(app: App) -> None:
    """Wait for the bills of all orders, and let them be paid."""
    await app.handles.register("c-1", "Shop.Order.Billed", timeout="5m", count=ORDERS)
    for n in range(ORDERS):
        await app.emit("Shop.Order.Paid", {"n": n}, aggregate_id=f"shop-{n % SHOPS}", correlation_id="c-1")


async def ask_for_refusals(app: App) -> None:
    """Emit what the agent cannot handle yet."""
    for n in range(3):
        await app.emit("Shop.Order.Refused", {"n": n}, aggregate_id="o", correlation_id="c-1")


async def letters(app: App) -> int:
    """Return how many dead letters there are."""
    log, partitions = app.event_stores.log, range(app.settings.events.partitions)
    return sum([len(await log.read_messages({(f"{TOPIC}.dlt", n): 0}, limit=10)) for n in partitions])


async def billed(app: App) -> Counter[int]:
    """Return how often each order was billed."""
    events = await app.event_stores.outbox.list_events(correlation_id="c-1", limit=1_000)
    return Counter(event.payload["n"] for event in events if event.type == "Shop.Order.Billed")


async def state_of(app: App) -> str:
    """Return the state of the handle."""
    return (await app.handles.show("c-1")).state.value


def test_an_agent_that_is_killed_loses_and_repeats_nothing(shop: Place) -> None:
    """Killed in the middle of its work, its successor goes on: each bill is written once, and who waits is woken.

    Two relays and two callback services at once do no harm.
    """
    others = [shop.start(part, "--json") for part in ("relay", "relay", "callback", "callback")]
    agent = shop.start("agent", "shop:app", "bills", "--json")
    for process in (*others, agent):
        started(process)
    shop.ask(pay)
    wait_until_sync((shop.folder / "begun").exists, message="the agent to begin with order 7")
    assert int((shop.folder / "begun").read_text() or agent.popen.pid) == agent.popen.pid
    os.kill(agent.popen.pid, signal.SIGKILL)
    assert agent.end() == -signal.SIGKILL
    assert shop.ask(state_of) == "waiting"

    (shop.folder / "go").touch()
    others.append(started(shop.start("agent", "shop.py", "--json")))
    wait_until_sync(lambda: shop.ask(state_of) == "resolved", message="the handle to be resolved")
    assert shop.ask(billed) == Counter(range(ORDERS))
    for number in range(SHOPS):
        seen = [int(line) for line in (shop.folder / f"shop-{number}.log").read_text().split()]
        assert list(dict.fromkeys(seen)) == list(range(number, ORDERS, SHOPS))
        assert (seen.count(7) > 1) is (number == 7 % SHOPS)
    for process in others:
        process.tell(signal.SIGTERM)
    for process in others:
        out, err = process.popen.communicate(timeout=30)
        assert (process.popen.returncode, json.loads(out)["event"]) == (0, "stopped"), err


def test_dead_letters_are_put_back_by_a_command(shop: Place) -> None:
    """They are listed with their cause, and billed once their agent is mended."""
    for words in (["relay"], ["agent", "shop:app"]):
        started(shop.start(*words, "--json"))
    shop.ask(ask_for_refusals)
    wait_until_sync(lambda: shop.ask(letters) == 3, message="three dead letters")
    found = shop.json("events", "dead-letters", "list", TOPIC)["letters"]
    assert {(one["agent"], one["kind"], one["error"]) for one in found} == {
        ("orderbiller", "ValueError", "no such customer")
    }
    (shop.folder / "mended").touch()
    assert shop.json("events", "dead-letters", "redrive", TOPIC)["redriven"] == 3
    wait_until_sync(lambda: shop.ask(billed) == Counter(range(3)), message="all to be billed")
    assert shop.json("events", "dead-letters", "redrive", TOPIC)["redriven"] == 0
    listed = [one["type"] for one in shop.json("events", "list", "--correlation", "c-1")]
    assert listed.count("Shop.Order.Watched") == 3, "another agent had no trouble with them"
    status = shop.json("events", "status", "shop:app")
    assert (status["waiting"], status["parked"]) == (0, 0)
    assert set(status["backlog"]) == {"headrace.callback", "headrace.agent.orderbiller", "headrace.agent.watcher"}


def test_a_store_that_is_away_ends_each_at_once(shop: Place) -> None:
    """Exit code 3 and one line, no trace."""
    away = shop.at("postgresql://postgres@127.0.0.1:9/postgres")
    processes = [away.start("relay"), away.start("callback"), away.start("agent", "shop:app")]
    for process in processes:
        out, err = process.popen.communicate(timeout=60)
        assert (process.popen.returncode, out) == (3, "")
        assert "Traceback" not in err
