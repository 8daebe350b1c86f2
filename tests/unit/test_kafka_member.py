"""A member of a group whose client does at given moments what brokers seldom do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from headrace.buses.kafka import member as members
from headrace.buses.kafka.member import Member
from headrace.buses.kafka.stash import Stash
from headrace.buses.kafka.subscription import KafkaSubscription
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.model.message_log import Partition
from headrace.ports.bus import SubscriptionOptions
from tests.waiting import wait_until

SETTINGS = EventSettings(kafka=KafkaSettings("k:9092"))


class Record:
    """What a client returns, of one partition."""

    def __init__(self, offset: int, partition: int = 0) -> None:
        """It is no error."""
        self._offset, self._partition = offset, partition

    def topic(self) -> str:
        """Where it lies."""
        return "t"

    def partition(self) -> int:
        """Where it lies."""
        return self._partition

    def offset(self) -> int:
        """Where it lies."""
        return self._offset

    def key(self) -> bytes:
        """Some key."""
        return b"k"

    def value(self) -> bytes:
        """Some value."""
        return b"v"

    def headers(self) -> None:
        """It has none."""

    def error(self) -> None:
        """It tells of none."""


class Client:
    """Does one step per poll: returns a record, or tells that partitions come or go and returns nothing."""

    def __init__(self) -> None:
        """Joining is held up until `gate` is set."""
        self.steps: list[Record | str] = []
        self.asked, self.gate, self.closed = threading.Event(), threading.Event(), threading.Event()
        self._told: dict[str, Callable[[Any, list[TopicPartition]], None]] = {}
        self.gate.set()

    def list_topics(self, timeout: float) -> None:
        """Answer when the gate is open."""
        self.asked.set()
        self.gate.wait(20)

    def subscribe(self, topics: list[str], **told: Callable[[Any, list[TopicPartition]], None]) -> None:
        """Note who is told of partitions."""
        self._told = told

    def poll(self, timeout: float) -> Record | None:
        """Do a step."""
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, str):
            self._told[step](self, [TopicPartition("t", 0)])
            return None
        return step

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        """Take any."""
        return offsets

    def close(self) -> None:
        """Note it."""
        self.closed.set()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """The client that members make."""
    made = Client()
    monkeypatch.setattr(members, "Consumer", lambda told: made)
    return made


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        (["on_assign", Record(5), Record(6)], [5, 6]),
        (["on_assign", Record(5), "on_revoke"], []),
        (["on_assign", Record(5), "on_lost"], []),
        (["on_assign", Record(5), "on_revoke", "on_assign", Record(3)], [3]),
        (["on_assign", Record(5), "on_revoke", Record(6)], []),
        (["on_assign", Record(5), Record(0, partition=1)], [5]),
    ],
)
def test_nothing_is_handed_out_of_partitions_that_went(
    client: Client, steps: list[Record | str], left: list[int]
) -> None:
    """Neither what was read before they went, nor that of before when they came back, nor what is not the member's."""
    stash = Stash()
    member = Member(SETTINGS, "g", stash, lambda places: {}, lambda places: None)
    client.steps = list(steps)
    member.open(["t"])
    while client.steps:
        member.read(10, 0.1)
    assert [delivery.offset for delivery in stash.take(10)] == left


async def test_a_member_that_is_cancelled_while_it_joins_is_closed(client: Client) -> None:
    """The client has come to be by then, in a thread that nobody awaits any more."""

    async def gone(places: Sequence[Partition]) -> dict[Partition, int]:
        return {}

    client.gate.clear()
    subscription = KafkaSubscription(SETTINGS, SubscriptionOptions("g", ("t",), gone, lambda places: None))
    joining = asyncio.create_task(subscription.open())
    await wait_until(client.asked.is_set)
    joining.cancel()
    await asyncio.gather(joining, return_exceptions=True)
    assert not client.closed.is_set()
    client.gate.set()
    await wait_until(client.closed.is_set)
