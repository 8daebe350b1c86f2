"""Groups on a real broker of the Kafka protocol: who reads what, what is committed, and what happens when one goes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from headrace.buses.kafka import KafkaBus
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.model.errors import BusUnavailableError
from headrace.model.event import Message
from headrace.model.message_log import Partition
from tests.backends.kafka import KafkaBroker, kafka_broker, kafka_settings, shared_broker
from tests.backends.server import die_with_parent
from tests.backends.valkey import free_port
from tests.integration.kafka_reading import Reader, new_topic, numbered, numbers, reading


async def publish(broker: KafkaBroker, messages: list[Message], partitions: int = 8) -> None:
    """Publish messages by a bus of their own."""
    bus = KafkaBus(kafka_settings(broker, partitions=partitions))
    assert set(await bus.publish(messages)) == {None}
    await bus.close()


async def test_a_group_goes_on_behind_what_it_committed() -> None:
    """Another member after the first begins there; another group begins at the first message."""
    settings, topic, group = kafka_settings(shared_broker()), new_topic(), new_topic()
    await publish(shared_broker(), numbered(topic, 20), partitions=1)
    async with reading(settings, topic, group=group) as first:
        await first.read_count(20)
        await first.subscription.commit({(topic, 0): 15, ("a topic of others", 0): 3})
    async with reading(settings, topic, group=group) as second, reading(settings, topic) as other:
        await asyncio.gather(second.read_count(5), other.read_count(20))
    assert numbers(second.got) == list(range(15, 20))
    assert numbers(other.got) == list(range(20))


async def test_a_member_that_leaves_ends_its_work_and_commits_it() -> None:
    """What `on_revoked` returns is noted before the membership ends; closing again does nothing."""
    settings, topic, group = kafka_settings(shared_broker()), new_topic(), new_topic()
    await publish(shared_broker(), numbered(topic, 10), partitions=1)
    async with reading(settings, topic, group=group) as first:
        await first.read_count(10)
        first.offsets[topic, 0] = 7
        await first.subscription.close()
        await first.subscription.close()
    async with reading(settings, topic, group=group) as second:
        await second.read_count(3)
    assert first.revoked == [(topic, 0)]
    assert numbers(second.got) == [7, 8, 9]


async def test_partitions_that_move_are_committed_first_and_the_others_stay() -> None:
    """A second member takes some; it begins where the first said to be, and nothing is handed out twice."""
    settings, topic, group = kafka_settings(shared_broker()), new_topic(), new_topic()
    await publish(shared_broker(), numbered(topic, 40, keys=40), partitions=4)
    async with reading(settings, topic, group=group) as first:
        await first.read_count(40)
        first.offsets.update({delivery.place: delivery.offset + 1 for delivery in first.got})
        async with reading(settings, topic, group=group) as second:
            while not first.revoked:
                await asyncio.gather(first.read(), second.read())
            await publish(shared_broker(), numbered(topic, 40, first=40, keys=40), partitions=4)
            both = Pair(first, second)
            await asyncio.gather(*(reader.read_until(lambda: both.count == 80) for reader in (first, second)))
    assert sorted(numbers(first.got) + numbers(second.got)) == list(range(80))
    assert 0 < len(set(first.revoked[:2])) < 4
    assert {delivery.place for delivery in second.got} <= set(first.revoked)


class Pair:
    """Two readers and what they have got together."""

    def __init__(self, *readers: Reader) -> None:
        """Of one group."""
        self._readers = readers

    @property
    def count(self) -> int:
        """How many messages."""
        return sum(len(reader.got) for reader in self._readers)


@pytest.mark.faults
async def test_what_a_killed_member_did_not_commit_goes_to_the_others() -> None:
    """Its partitions come over when its session ends, from the last commit on."""
    broker, topic, group = shared_broker(), new_topic(), new_topic()
    await publish(broker, numbered(topic, 40, keys=40), partitions=4)
    command = [sys.executable, "-m", "tests.integration.kafka_member", broker.servers, topic, group]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    assert child.stdout is not None
    await asyncio.to_thread(child.stdout.readline)
    async with reading(kafka_settings(broker), topic, group=group) as reader:
        child.kill()
        child.wait()
        child.stdout.close()
        await reader.read_until(lambda: len(set(numbers(reader.got))) == 40)


async def test_topics_that_begin_as_wanted_are_found_also_later() -> None:
    """A pattern takes what is there and what comes; its dots are no wildcards, and a topic may be missing at first."""
    settings, stem = kafka_settings(shared_broker()), new_topic()
    late = f"{new_topic()}.late"
    await publish(shared_broker(), [*numbered(f"{stem}.a", 1), *numbered(stem.replace(".", "-") + "-b", 1, first=9)])
    async with reading(settings, f"{stem}.*", late) as reader:
        await reader.read_count(1)
        await publish(shared_broker(), [*numbered(f"{stem}.c", 1, first=1), *numbered(late, 1, first=2)])
        await reader.read_count(3)
    assert sorted(numbers(reader.got)) == [0, 1, 2]


async def test_paused_partitions_wait_and_go_on_where_they_were() -> None:
    """Nothing of them is received, nothing is lost, nothing comes twice; the others go on."""
    topic = new_topic()
    await publish(shared_broker(), numbered(topic, 40, keys=40), partitions=2)
    async with reading(kafka_settings(shared_broker()), topic) as reader:
        reader.got += await reader.subscription.receive(limit=1, timeout=20)
        place: Partition = reader.got[0].place
        reader.subscription.pause([place])
        await reader.read_until(lambda: len(reader.got) > 1)
        await publish(shared_broker(), numbered(topic, 40, first=40, keys=40), partitions=2)
        others = await _others(reader, place)
        assert [delivery.offset for delivery in reader.got if delivery.place == place] == [0]
        reader.subscription.resume([place])
        await reader.read_count(80)
    assert others > 0
    assert sorted(numbers(reader.got)) == list(range(80))
    for number in (0, 1):
        offsets = [delivery.offset for delivery in reader.got if delivery.partition == number]
        assert offsets == list(range(len(offsets)))


async def _others(reader: Reader, place: Partition) -> int:
    """Read until nothing comes of other partitions any more; return how many came."""
    before, seen = -1, 0
    while seen != before:
        await reader.read(1)
        before, seen = seen, sum(delivery.place != place for delivery in reader.got)
    return seen


async def test_a_receive_that_is_cancelled_loses_nothing() -> None:
    """What its thread still reads is there at the next call."""
    settings, topic = kafka_settings(shared_broker(), partitions=1), new_topic()
    bus = KafkaBus(settings)
    await bus.publish(numbered(topic, 1))
    async with reading(settings, topic) as reader:
        await reader.read_count(1)
        for number in range(1, 21):
            await bus.publish(numbered(topic, 1, first=number))
            with suppress(TimeoutError):
                async with asyncio.timeout(0.001 * (number % 5)):
                    await reader.read(5)
        await reader.read_count(21)
    await bus.close()
    assert numbers(reader.got) == list(range(21))


async def test_messages_of_others_are_read() -> None:
    """No key, headers without a value or of other bytes than UTF-8: all come, with what can be said of them."""
    topic = new_topic()
    await publish(shared_broker(), numbered(topic, 1), partitions=1)
    foreign = Producer({"bootstrap.servers": shared_broker().servers, "log_level": 0})
    foreign.produce(topic, None, None, headers=[("none", None), ("raw", b"\xff\x41"), ("raw", b"\xc3\xa9")])
    assert foreign.flush(10) == 0
    async with reading(kafka_settings(shared_broker()), topic) as reader:
        [_, delivery] = await reader.read_count(2)
    expected = Message(topic, "", None, (("none", ""), ("raw", "\ufffdA"), ("raw", "é")))
    assert delivery.message == expected


@pytest.mark.faults
async def test_members_survive_the_broker() -> None:
    """It is killed and comes back: what was committed is known, what is published comes, once more at most."""
    with kafka_broker(durable=True) as broker:
        settings, topic, group = kafka_settings(broker), new_topic(), new_topic()
        await publish(broker, numbered(topic, 20), partitions=1)
        async with reading(settings, topic, group=group) as reader:
            await reader.read_count(20)
            await reader.subscription.commit({(topic, 0): 20})
            await asyncio.to_thread(broker.stop)
            with pytest.raises(BusUnavailableError, match=f"let group {group}"):
                await reader.read_until(lambda: False)
            await asyncio.to_thread(broker.start)
            await publish(broker, numbered(topic, 10, first=20), partitions=1)
            await _read_through(reader, 30)
        assert sorted(set(numbers(reader.got))) == list(range(30))
        assert numbers(reader.got)[:20] == list(range(20))
        assert min(numbers(reader.got)[20:]) == 20


async def _read_through(reader: Reader, count: int) -> None:
    """Receive until so many different messages came, whatever errors are told meanwhile."""
    while len(set(numbers(reader.got))) < count:
        with suppress(BusUnavailableError):
            await reader.read_until(lambda: len(set(numbers(reader.got))) >= count)


@pytest.mark.faults
async def test_a_group_is_left_also_when_its_broker_is_gone() -> None:
    """Closing ends the work and does not wait for a broker that will not answer."""
    with kafka_broker() as broker:
        topic = new_topic()
        await publish(broker, numbered(topic, 1), partitions=1)
        reader = Reader(kafka_settings(broker), topic)
        await reader.open()
        await reader.read_count(1)
        await asyncio.to_thread(broker.stop)
        began = time.monotonic()
        await reader.bus.close()
        assert time.monotonic() - began < 30
        assert reader.revoked == [(topic, 0)]


async def test_work_that_does_not_end_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """The partition is given up without a commit, and that is said."""
    settings, topic, group = kafka_settings(shared_broker()), new_topic(), new_topic()
    await publish(shared_broker(), numbered(topic, 3), partitions=1)
    stuck = Reader(settings, topic, group=group)
    stuck.options = replace(stuck.options, on_revoked=_never, revoke_seconds=0.2)
    await stuck.open()
    await stuck.read_count(3)
    await stuck.bus.close()
    async with reading(settings, topic, group=group) as second:
        await second.read_count(3)
    assert "does not end, its messages come again" in caplog.text


async def _never(places: Sequence[Partition]) -> dict[Partition, int]:
    await asyncio.Event().wait()
    return dict.fromkeys(places, 3)


async def test_joining_without_a_broker_says_so() -> None:
    """The error names the group and the setting to look at."""
    settings = EventSettings(kafka=KafkaSettings(f"127.0.0.1:{free_port()}"))
    reader = Reader(settings, "t", group="readers")
    with pytest.raises(BusUnavailableError, match=r"let group readers be joined .*\[events.kafka\] servers"):
        await reader.open()
    await reader.bus.close()
