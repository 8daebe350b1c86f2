"""Publishing on a real broker of the Kafka protocol: what arrives, what is refused, and what faults cost."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError

from headrace.buses.kafka import KafkaBus
from headrace.buses.kafka.config import ENVELOPE_BYTES, PUBLISH_SECONDS
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.model.errors import BusUnavailableError
from headrace.model.event import MAX_EVENT_BYTES, Message
from headrace.ports.bus import BEHIND, LATER
from tests.backends.kafka import KafkaBroker, kafka_broker, kafka_settings, shared_broker
from tests.backends.kafka_mock import METADATA, PRODUCE, mock_cluster
from tests.backends.valkey import free_port
from tests.integration.kafka_reading import new_topic, numbered, numbers, reading
from tests.waiting import wait_until


@pytest.fixture
async def bus() -> AsyncIterator[KafkaBus]:
    """A bus on the broker of this process."""
    bus = KafkaBus(kafka_settings(shared_broker()))
    yield bus
    await bus.close()


async def test_messages_arrive_as_they_were_sent(bus: KafkaBus) -> None:
    """Keys, headers, tombstones and order within a key come through; nothing is added."""
    topic = new_topic()
    sent = [
        Message(topic, "größe", "naïve".encode(), (("id", "1"), ("type", "Ä.B.C"), ("id", "2"))),
        Message(topic, "größe", None),
        Message(topic, "größe", b""),
        Message(topic, "", b"keyless"),
    ]
    assert await bus.publish(sent) == [None] * 4
    async with reading(kafka_settings(shared_broker()), topic) as reader:
        got = await reader.read_count(4)
    assert [delivery.message for delivery in got if delivery.message.key] == sent[:3]
    assert [delivery.message for delivery in got if not delivery.message.key] == sent[3:]
    offsets = [delivery.offset for delivery in got if delivery.message.key]
    assert offsets == list(range(offsets[0], offsets[0] + 3))


async def test_keys_have_the_partitions_that_clients_of_java_give_them(bus: KafkaBus) -> None:
    """Who writes a key decides nothing: the known values of Kafka's murmur2, and their number of partitions."""
    topic = new_topic()
    known = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    await bus.publish([Message(topic, key, b"x") for key in known])
    async with reading(kafka_settings(shared_broker()), topic) as reader:
        got = await reader.read_count(3)
    partitions = EventSettings().partitions
    assert {delivery.message.key: delivery.partition for delivery in got} == {
        key: (value & 0x7FFFFFFF) % partitions for key, value in known.items()
    }


_LARGE = b"x" * (MAX_EVENT_BYTES + ENVELOPE_BYTES)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message("no topic", "k", b""), "1 to 249 letters"),
        (Message("", "k", b""), "1 to 249 letters"),
        (Message("..", "k", b""), "not be . or .."),
        (Message("x" * 250, "k", b""), "1 to 249 letters"),
        (Message("large", "k", _LARGE), "at most 1024000 are sent: see events.max_bytes"),
    ],
)
async def test_what_will_never_be_taken_is_refused_and_the_others_are_sent(
    bus: KafkaBus, message: Message, reason: str
) -> None:
    """The answer names the reason; it stands at the place of its message."""
    topic = new_topic()
    others = [Message(topic, "a", b"1"), Message(topic, "b", b"2")]
    [before, refused, behind, after] = await bus.publish([others[0], message, replace(message, value=b""), others[1]])
    assert (before, behind, after) == (None, BEHIND, None)
    assert reason in (refused or "")


async def test_the_largest_message_is_taken(bus: KafkaBus) -> None:
    """The bound counts value, key and headers alike, as librdkafka does."""
    sent = Message(new_topic(), "k", _LARGE[:-6], (("name", "v"),))
    assert await bus.publish([sent]) == [None]


async def test_topics_are_not_made_where_that_is_forbidden() -> None:
    """The broker is not let to make them either; one that was made by hand is found."""
    topic, broker = new_topic(), shared_broker()
    bus, maker = KafkaBus(kafka_settings(broker, create_topics=False)), KafkaBus(kafka_settings(broker))
    refused = await bus.publish([Message(topic, "k", b"1")])
    await maker.publish([Message(topic, "k", b"2")])
    taken = await bus.publish([Message(topic, "k", b"3")])
    await bus.close()
    await maker.close()
    assert "events.kafka.create_topics is false" in (refused[0] or "")
    assert taken == [None]


async def test_without_a_broker_publishing_says_so_in_time() -> None:
    """The error names what was tried and the setting to look at; nothing waits for ever."""
    server = f"127.0.0.1:{free_port()}"
    bus = KafkaBus(EventSettings(kafka=KafkaSettings(server)), publish_seconds=1)
    with pytest.raises(BusUnavailableError, match=rf"\[events.kafka\] servers \({server}\)"):
        await bus.publish([Message("t", "k", b"1")])
    await bus.close()


async def test_a_broker_that_forgot_everything_is_published_to_again() -> None:
    """The producer is refused for ever after, so it is made anew, and so are the topics."""
    with kafka_broker() as broker:
        bus = KafkaBus(kafka_settings(broker))
        topic = new_topic()
        await bus.publish(numbered(topic, 10))
        broker.stop()
        broker.start()
        await publish_at_last(bus, numbered(topic, 10, first=10))
        async with reading(kafka_settings(broker), topic) as reader:
            got = await reader.read_count(10)
        await bus.close()
        assert sorted(numbers(got)) == list(range(10, 20))


async def publish_at_last(bus: KafkaBus, messages: list[Message]) -> None:
    """Publish messages, again and again until the bus is there and has taken all."""
    deadline = time.monotonic() + 60
    while messages and time.monotonic() < deadline:
        try:
            answers = await bus.publish(messages)
        except BusUnavailableError:
            await asyncio.sleep(0.05)
        else:
            assert all(answer is None or answer.startswith(LATER) for answer in answers)
            messages = [message for message, answer in zip(messages, answers, strict=True) if answer is not None]
    assert not messages, "the bus did not come back"


@pytest.mark.faults
async def test_nothing_published_is_lost_when_the_broker_is_killed_and_frozen() -> None:
    """On durable storage, again and again under load: no message is missing and keys are in order at first sight."""
    with kafka_broker(durable=True) as broker:
        bus, topic, count = KafkaBus(kafka_settings(broker), publish_seconds=3), new_topic(), 0
        disturbing = asyncio.create_task(_disturb(broker))
        while not disturbing.done():
            await publish_at_last(bus, numbered(topic, 200, first=count))
            count += 200
        await disturbing
        async with reading(kafka_settings(broker), topic) as reader:
            await reader.read_until(lambda: len(set(numbers(reader.got))) == count)
        await bus.close()
        first_seen = list(dict.fromkeys(numbers(reader.got)))
        assert sorted(first_seen) == list(range(count))
        for key in range(7):
            of_key = [number for number in first_seen if number % 7 == key]
            assert of_key == sorted(of_key)


async def _disturb(broker: KafkaBroker) -> None:
    for how in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL):
        await asyncio.sleep(0.5)
        if how is signal.SIGSTOP:
            broker.signal(signal.SIGSTOP)
            await asyncio.sleep(0.5)
            broker.signal(signal.SIGCONT)
        else:
            await asyncio.to_thread(broker.stop)
            await asyncio.to_thread(broker.start)


async def test_a_frozen_broker_is_told_and_used_again() -> None:
    """What was sent to it before may come twice, and nothing is missing."""
    with kafka_broker() as broker:
        bus, topic = KafkaBus(kafka_settings(broker), publish_seconds=3), new_topic()
        await wait_until(lambda: taken(bus, numbered(topic, 5)))
        broker.signal(signal.SIGSTOP)
        with pytest.raises(BusUnavailableError):
            pytest.fail(f"a frozen broker answered {await bus.publish(numbered(topic, 5, first=5))}")
        broker.signal(signal.SIGCONT)
        await wait_until(lambda: taken(bus, numbered(topic, 5, first=5)))
        async with reading(kafka_settings(broker), topic) as reader:
            await reader.read_until(lambda: len(set(numbers(reader.got))) == 10)
        await bus.close()


async def test_batches_of_the_relay_are_published_one_after_another() -> None:
    """Confirmed by the broker; how fast is printed, and does not decide."""
    bus, topic = KafkaBus(kafka_settings(shared_broker())), new_topic()
    messages = [Message(topic, f"k-{number % 97}", b"x" * 600) for number in range(500)]
    await bus.publish(messages)
    began = time.monotonic()
    for _ in range(8):
        assert set(await bus.publish(messages)) == {None}
    print(f"{4_000 / (time.monotonic() - began):.0f} events a second")
    await bus.close()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "max.message.bytes"),
        (KafkaError.INVALID_RECORD, "does not take such a record"),
        (KafkaError.POLICY_VIOLATION, "a policy of the broker"),
    ],
)
async def test_a_batch_that_is_refused_is_taken_apart(error: int, reason: str) -> None:
    """Kafka refuses a batch whole; only the message that is refused alone is told, the rest is sent."""
    with mock_cluster() as cluster:
        cluster.make_topic("t")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        await bus.publish(numbered("t", 1))
        cluster.fail_requests(PRODUCE, error, 0, error, 0)
        answers = await bus.publish([*numbered("t", 3), Message("t", "k-1", b"behind")])
        await bus.close()
    assert [answer is None for answer in answers] == [True, False, True, False]
    assert answers[3] == BEHIND
    assert reason in (answers[1] or "")


async def test_errors_that_go_by_are_ridden_out() -> None:
    """A leader that moves and replicas that are missing cost time, and are no one's business."""
    with mock_cluster() as cluster:
        cluster.make_topic("t")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        errors = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.REQUEST_TIMED_OUT)
        cluster.fail_requests(PRODUCE, *errors)
        assert await bus.publish(numbered("t", 3)) == [None] * 3
        await bus.close()


async def test_a_topic_that_may_not_be_written_to_is_told() -> None:
    """That the account lacks the right concerns this topic, not the bus."""
    with mock_cluster() as cluster:
        cluster.make_topic("closed")
        cluster.make_topic("open")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        cluster.fail_topic("closed", KafkaError.TOPIC_AUTHORIZATION_FAILED)
        answers = await bus.publish([*numbered("closed", 1), *numbered("open", 1)])
        await bus.close()
    assert "may not write" in (answers[0] or "")
    assert answers[1] is None


@pytest.mark.slow
async def test_a_topic_without_leader_keeps_no_other_back() -> None:
    """It is told to be tried again, soon and sooner, alone too, and is taken, once and in order, when it can be."""
    with mock_cluster() as cluster:
        cluster.make_topic("stuck")
        cluster.make_topic("free")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        cluster.set_leader("stuck", 0, -1)
        stuck, seconds = numbered("stuck", 4, keys=2), list[float]()
        for batch in ([*stuck, *numbered("free", 3)], [*stuck, *numbered("free", 3)], stuck):
            began = time.monotonic()
            answers = await bus.publish(batch)
            seconds.append(time.monotonic() - began)
            assert all((answer or "").startswith(LATER) for answer in answers[:4])
            assert answers[4:] == [None] * len(batch[4:])
        assert max(seconds[1:]) < seconds[0] < PUBLISH_SECONDS
        cluster.set_leader("stuck", 0, 1)
        # As the relay does it: a machine that is busy may need longer than a topic that was stuck is waited for.
        await wait_until(lambda: taken(bus, stuck))
        async with reading(EventSettings(kafka=KafkaSettings(cluster.servers)), "stuck") as reader:
            await reader.read_count(4)
        await bus.close()
    assert numbers(reader.got) == [0, 1, 2, 3]


async def taken(bus: KafkaBus, messages: Sequence[Message]) -> bool:
    """Publish once more and return whether all are kept."""
    return await bus.publish(messages) == [None] * len(messages)


async def test_a_topic_that_cannot_be_made_for_now_keeps_no_other_back() -> None:
    """The mocked cluster makes none: the reason is told, and the topic is tried again when it is sent to again."""
    with mock_cluster() as cluster:
        cluster.make_topic("there")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        answers = await bus.publish([*numbered("missing", 2, keys=1), *numbered("there", 1)])
        cluster.make_topic("missing")
        assert await bus.publish(numbered("missing", 2)) == [None] * 2
        await bus.close()
    assert (answers[0] or "").startswith(f"{LATER}: topic missing cannot be made (")
    assert answers[1:] == [LATER, None]


async def test_what_is_taken_apart_stops_where_its_topic_does() -> None:
    """What was refused with others is not taken for refused when it cannot be tried alone."""
    with mock_cluster() as cluster:
        cluster.make_topic("t")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        await bus.publish(numbered("t", 1))
        too_large = KafkaError.MSG_SIZE_TOO_LARGE
        cluster.fail_requests(PRODUCE, too_large, too_large, KafkaError.UNKNOWN)
        answers = await bus.publish(numbered("t", 4, keys=3))
        await bus.close()
    assert "max.message.bytes" in (answers[0] or "")
    assert (answers[1] or "").startswith(LATER)
    assert answers[2:] == [LATER, BEHIND]


async def test_a_broken_producer_is_replaced() -> None:
    """What no producer can go on after is told as an outage; the next call begins anew."""
    with mock_cluster() as cluster:
        cluster.make_topic("t")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)), publish_seconds=5)
        await bus.publish(numbered("t", 1))
        cluster.fail_requests(PRODUCE, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)
        with pytest.raises(BusUnavailableError, match="OUT_OF_ORDER"):
            await bus.publish(numbered("t", 3))
        assert await bus.publish(numbered("t", 3)) == [None] * 3
        await bus.close()


async def test_what_a_broker_takes_for_a_repetition_is_not_taken_for_kept() -> None:
    """It may have lost the messages and kept their numbers: they are published once more, by another producer."""
    with mock_cluster() as cluster:
        cluster.make_topic("t")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        await bus.publish(numbered("t", 1))
        cluster.fail_requests(PRODUCE, KafkaError.DUPLICATE_SEQUENCE_NUMBER)
        with pytest.raises(BusUnavailableError, match="DUPLICATE_SEQUENCE_NUMBER"):
            await bus.publish(numbered("t", 3))
        assert await bus.publish(numbered("t", 3)) == [None] * 3
        await bus.close()


async def test_topics_that_cannot_be_listed_are_an_outage() -> None:
    """Nothing is refused for an answer that the broker could not give."""
    with mock_cluster() as cluster:
        cluster.make_topic("t")
        bus = KafkaBus(EventSettings(kafka=KafkaSettings(cluster.servers)))
        cluster.fail_requests(METADATA, *[KafkaError.UNKNOWN] * 50)
        with pytest.raises(BusUnavailableError):
            await bus.publish(numbered("t", 1))
        await bus.close()
