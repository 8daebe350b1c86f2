"""Dead letters: messages that an agent could not handle, as they were, with what became of them in their headers."""

from __future__ import annotations

from headrace.model.envelopes import EnvelopeError, decode
from headrace.model.event import Message, Outgoing
from headrace.model.resume_handle import NotedEvent

PREFIX = "dlt-"
#: Characters of an error that are kept.
MOST_ERROR = 2_000


def dead_letter(  # noqa: PLR0913 - the facts of a dead letter
    delivery_message: Message, *, partition: int, offset: int, agent: str, kind: str, error: str, attempts: int,
    suffix: str,
) -> Outgoing:  # fmt: skip
    """Return the row for the outbox of a message that `agent` gave up: key, value and headers as they came.

    >>> row = dead_letter(Message("t", "k", b"?"), partition=0, offset=7, agent="a", kind="bad_envelope", error="no",
    ...                   attempts=1, suffix=".dlt")
    >>> row.topic, row.message.header("dlt-offset")
    ('t.dlt', '7')
    """
    facts = {
        "topic": delivery_message.topic, "partition": str(partition), "offset": str(offset), "agent": agent,
        "error-kind": kind, "error": _clean(error), "attempts": str(attempts),
    }  # fmt: skip
    headers = _own_headers(delivery_message) + tuple((PREFIX + name, value) for name, value in facts.items())
    topic = delivery_message.topic + suffix
    letter = Message(topic, delivery_message.key, delivery_message.value, headers)
    return Outgoing(topic, delivery_message.key, message=letter)


def original_message(message: Message) -> Message | None:
    """Return the message that became a dead letter, without what was noted then; None when it is no dead letter.

    >>> original_message(Message("t.dlt", "k", b"?", (("a", "1"), ("dlt-topic", "t")))).headers
    (('a', '1'),)
    """
    topic = message.header(f"{PREFIX}topic")
    return Message(topic, message.key, message.value, _own_headers(message)) if topic else None


def read_dead_letter(message: Message) -> NotedEvent | None:
    """Return the event of a dead letter, and who gave it up; None when it is no dead letter, or not of an event."""
    original = original_message(message)
    if original is None:
        return None
    try:
        event = decode(original)
    except EnvelopeError:
        return None
    if event is None:
        return None
    agent, error = message.header(f"{PREFIX}agent") or "", message.header(f"{PREFIX}error") or ""
    return NotedEvent(event, dead=True, agent=agent, error=error)


def _own_headers(message: Message) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in message.headers if not name.startswith(PREFIX))


def _clean(error: str) -> str:
    """Return a text that stores and brokers take."""
    return error[:MOST_ERROR].replace("\0", "�").encode(errors="replace").decode()
