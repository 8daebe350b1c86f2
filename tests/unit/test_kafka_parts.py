"""The parts of the Kafka bus that need no broker."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.buses.kafka.answers import Answers, later
from headrace.buses.kafka.config import client_config, member_config, producer_config, topic_pattern
from headrace.buses.kafka.faults import kafka_error, refusal
from headrace.buses.kafka.stash import Stash
from headrace.buses.kafka.thread import OwnThread
from headrace.event_settings import EventSettings, KafkaSettings
from headrace.model.event import Message
from headrace.ports.bus import BEHIND, LATER, Delivery
from tests.waiting import wait_until


def deliveries(partition: int, *offsets: int) -> list[Delivery]:
    """Return deliveries of one partition."""
    return [Delivery(Message("t", "k", b""), partition, offset) for offset in offsets]


def places(taken: list[Delivery]) -> list[tuple[int, int]]:
    """Return partition and offset of deliveries."""
    return [(delivery.partition, delivery.offset) for delivery in taken]


def test_the_stash_hands_out_in_order_and_keeps_what_is_paused() -> None:
    """Others go past what is paused; within a partition the order stays, whatever the limit cuts."""
    stash = Stash()
    stash.put(deliveries(0, 1, 2))
    stash.put(deliveries(1, 7, 8))
    stash.pause([("t", 0)])
    assert places(stash.take(1)) == [(1, 7)]
    stash.put(deliveries(0, 3))
    stash.resume([("t", 0)])
    assert places(stash.take(2)) == [(0, 1), (0, 2)]
    assert places(stash.take(9)) == [(1, 8), (0, 3)]
    assert stash.take(9) == []


def test_the_stash_forgets_partitions_that_are_gone() -> None:
    """Their messages come again from where the group is; that they were paused is forgotten, too."""
    stash = Stash()
    stash.pause([("t", 0), ("t", 1)])
    stash.put(deliveries(0, 1) + deliveries(2, 5))
    stash.drop([("t", 0)])
    assert stash.paused == {("t", 1)}
    assert places(stash.take(9)) == [(2, 5)]


async def test_the_thread_does_calls_in_order_and_hands_on_what_they_raise() -> None:
    """One at a time, in one thread, whoever asks."""
    thread = OwnThread("test")
    seen: list[tuple[int, int]] = []

    def note(number: int) -> None:
        seen.append((number, threading.get_ident()))

    await asyncio.gather(*(thread.do(partial(note, number)) for number in range(20)))
    with pytest.raises(ZeroDivisionError):
        await thread.do(lambda: 1 // 0)
    thread.end()
    assert [number for number, _ in seen] == list(range(20))
    assert len({ident for _, ident in seen}) == 1


async def test_a_call_that_is_cancelled_before_it_began_is_left_out() -> None:
    """One that runs goes on; the next comes after it."""
    thread, begun, gate = OwnThread("test"), threading.Event(), threading.Event()
    done: list[str] = []

    def first() -> None:
        begun.set()
        gate.wait(10)
        done.append("first")

    running = asyncio.create_task(thread.do(first))
    waiting = asyncio.create_task(thread.do(partial(done.append, "second")))
    await wait_until(begun.is_set)
    running.cancel()
    waiting.cancel()
    await asyncio.gather(running, waiting, return_exceptions=True)
    gate.set()
    await thread.do(partial(done.append, "third"))
    thread.end()
    assert done == ["first", "third"]


async def test_an_ended_thread_is_gone() -> None:
    """Nothing is left behind."""
    OwnThread("test-that-ends").end()
    await wait_until(lambda: "test-that-ends" not in {thread.name for thread in threading.enumerate()})


@pytest.mark.parametrize(
    ("code", "gone_for_ever"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, True),
        (KafkaError.TOPIC_EXCEPTION, True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, False),
        (KafkaError.NOT_ENOUGH_REPLICAS, False),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (KafkaError.INVALID_REPLICATION_FACTOR, False),
        (KafkaError.SASL_AUTHENTICATION_FAILED, False),
        (KafkaError._MSG_TIMED_OUT, False),
    ],
)
def test_only_what_concerns_one_message_for_ever_is_a_refusal(code: int, gone_for_ever: bool) -> None:
    """Whatever may go by, or concerns all, is an outage: nothing is parked for it."""
    assert (refusal(KafkaError(code)) is not None) is gone_for_ever


@pytest.mark.parametrize(
    "failure", [KafkaException(KafkaError(KafkaError._STATE)), KafkaException("text"), KafkaException()]
)
def test_every_exception_of_the_client_carries_an_error(failure: KafkaException) -> None:
    """Also those that carry a text, or nothing."""
    assert isinstance(kafka_error(failure), KafkaError)


def test_what_is_not_set_is_not_told() -> None:
    """An empty user name would be sent; a password goes to the client and nowhere else."""
    plain = client_config(KafkaSettings("k:9092"))
    assert plain["security.protocol"] == "plaintext"
    assert not {"sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location"} & plain.keys()
    kafka = KafkaSettings("k:9092", "sasl_ssl", "SCRAM-SHA-512", "me", "hush", "/ca.pem")
    told = client_config(kafka)
    assert (told["sasl.username"], told["sasl.password"], told["ssl.ca.location"]) == ("me", "hush", "/ca.pem")
    assert "hush" not in repr(kafka)


def test_clients_are_told_what_the_guarantees_need() -> None:
    """All replicas confirm; offsets are committed by hand; the session is the one of the settings."""
    settings = EventSettings(kafka=KafkaSettings("k:9092", session_timeout=timedelta(seconds=30)))
    producer, member = producer_config(settings), member_config(settings, "g")
    assert (producer["acks"], producer["enable.idempotence"], producer["allow.auto.create.topics"]) == (
        "all",
        True,
        False,
    )
    assert (member["enable.auto.commit"], member["auto.offset.reset"]) == (False, "earliest")
    assert (member["session.timeout.ms"], member["heartbeat.interval.ms"]) == (30_000, 3_000)


def test_the_mechanism_may_be_written_in_small_letters() -> None:
    """The client knows it in capitals alone."""
    assert client_config(KafkaSettings("k:9092", sasl_mechanism="scram-sha-256"))["sasl.mechanism"] == "SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("keys", "told", "sent", "delivered", "answers"),
    [
        ("aba", {}, [0, 1, 2], {}, [None, None, None]),
        ("aba", {0: "bad"}, [1], {}, ["bad", None, BEHIND]),
        ("aba", {0: later("x")}, [1], {}, [later("x"), None, LATER]),
        # What came through behind one that did not has to come again behind it.
        ("aba", {}, [0, 1, 2], {0: later("x")}, [later("x"), None, LATER]),
        # Refused alone it keeps its place; what overtook it is kept by the brokers and is not sent again.
        ("aaa", {}, [0, 1, 2], {0: "bad", 2: "bad"}, ["bad", None, BEHIND]),
        # Nothing is refused behind one that may yet be taken: parked, it would hold that up.
        ("aab", {1: "large"}, [0, 2], {0: later("x")}, [later("x"), LATER, None]),
        ("aab", {1: "large"}, [0, 2], {2: later("x")}, [None, "large", later("x")]),
    ],
)
def test_answers_keep_the_order_of_a_key(
    keys: str, told: dict[int, str], sent: list[int], delivered: dict[int, str], answers: list[str | None]
) -> None:
    """Whatever becomes of the messages of one key, none is told to be kept before one that is to be sent again."""
    tried = Answers([Message("t", key, b"") for key in keys])
    tried.note(told)
    assert tried.hold_back() == sent
    tried.note(delivered)
    assert tried.settle() == answers


def test_dots_of_patterns_stand_for_themselves() -> None:
    """A star at the end is the only wildcard."""
    assert topic_pattern("*") == "^.*"
    assert topic_pattern("a.b*") == r"^a\.b.*"
    assert topic_pattern("a.b") == "a.b"
