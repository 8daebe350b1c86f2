"""events.md: events on the bus as they are written and read, dead letters, and the streams of the service."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from headrace.apps.details import names
from headrace.model.envelopes import encode
from headrace.model.envelopes.dead_letters import PREFIX, dead_letter
from headrace.model.event import TOPIC, Event, Message
from headrace.service.stream_shapes import MEDIA_TYPE
from tools.reference.http import by_tag, whole_document
from tools.reference.json_schema import members
from tools.reference.text import NOTE, comments, table

EVENTS = f"""{NOTE}
# Events

What is sent, member by member. How to emit and handle events is told in [Emit events](../howto/events.md), what keeps
them from being lost in [Events](../explanation/events.md), messages that tell of ends in
[webhooks](../howto/webhooks.md).

## The event

What `app.emit` and `ctx.emit` write into the outbox, and what handlers get. It goes to the topic
`{TOPIC}` unless `[events] topic` says otherwise, under the key of its aggregate.
"""

FORMS = """## On the bus

The value is written in one of two forms, by `[events] format`. Either is read, and so are CloudEvents in binary mode
and what Debezium writes.
"""

DEAD = """## Dead letters

A message that an agent gave up goes to `TOPIC.dlt`, with the key, the value and the headers that it came with, and
these:
"""

OWN = """## Events of applications

Headrace itself emits none: what is on the bus comes from apps. Those that are part of it emit these.
"""

STREAMS = """## Streams

Server-sent events of the [HTTP service](http.md). `id` counts from 1 without gaps, `event` is the type, `data` JSON on
one line, which may grow members. [How to follow them](../howto/serve.md#follow-batches-and-runs).
"""

#: What the headers of dead letters say.
_FACTS = {
    "topic": "where it lay",
    "partition": "in which partition",
    "offset": "at which offset",
    "agent": "who gave it up",
    "error-kind": "the kind of the last error",
    "error": "its text",
    "attempts": "how often it was tried",
}
_OWN = (
    (names.REQUESTED, "a part of a batch of details is asked for"),
    (names.CREATED, "an agent has written it"),
    (names.COMPLETED, "the batch has ended"),
)
_SAMPLE = Event(
    "Shop.Order.Paid", "ShopOrder", "o-1", {"cents": 1200}, correlation_id="c-1",
    id="01980000-0000-7000-8000-000000000001", time=datetime(2026, 1, 31, 12, tzinfo=UTC),
)  # fmt: skip


def events() -> str:
    """Return the page of events."""
    about = comments(inspect.getsource(Event)) | {"payload": "any JSON"}
    rows = [[f"`{one.name}`", usual(one), about[one.name]] for one in dataclasses.fields(Event)]
    parts = [EVENTS, table(["member", "", "meaning"], rows), "", FORMS]
    parts += [written(form) for form in ("headrace", "cloudevents")]
    parts += [DEAD, table(["header", "meaning"], dead_headers()), "", OWN]
    parts += [
        table(["type", "aggregate", "when"], ([f"`{one}`", f"`{names.AGGREGATE}`", when] for one, when in _OWN)),
        "",
    ]
    return "\n".join([*parts, STREAMS, *streams()])


def usual(member: dataclasses.Field[Any]) -> str:
    """Return whether a member must be given, or what it is where it is not."""
    if member.default_factory is not dataclasses.MISSING:
        return "made"
    if member.default is dataclasses.MISSING:
        return "always"
    return "may be null" if member.default is None else f"default `{member.default}`"


def written(form: str) -> str:
    """Return the section of one form: a message as it is on the bus."""
    message = encode(_SAMPLE, form, "/shop", "outbox.event.ShopOrder")
    body = json.dumps(json.loads(message.value or b""), indent=2)
    heads = table(["header", ""], ([f"`{name}`", f"`{value}`"] for name, value in message.headers))
    return f"### `{form}`\n\n{heads}\n\n```json\n{body}\n```\n"


def dead_headers() -> Iterator[list[str]]:
    """Yield the headers that a dead letter has beside its own. Raises KeyError: one is not told here."""
    row = dead_letter(
        Message("t", "k", None), partition=0, offset=0, agent="a", kind="", error="", attempts=1, suffix=".dlt"
    )
    for name, _ in row.message.headers if row.message else ():
        yield [f"`{name}`", _FACTS[name.removeprefix(PREFIX)]]


def streams() -> Iterator[str]:
    """Yield the section of each stream: its events, with the members of their data, and how one looks."""
    for method, path, operation in operations():
        content = operation["responses"]["200"]["content"].get(MEDIA_TYPE)
        if content is not None:
            yield f"### `{method} {path}`\n\n{operation['description']}\n"
            yield from (one_event(name, shape) for name, shape in content["x-events"].items())
            yield f"```text\n{content['examples']['stream']['value'].strip()}\n```\n"


def one_event(name: str, shape: dict[str, Any]) -> str:
    """Return what is said of one type of event of a stream."""
    return f"**`{name}`**: {shape['description']}\n\n{members(shape)}"


def operations() -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Return every operation of the service that answers with something."""
    found = (one for group in by_tag(whole_document()).values() for one in group)
    return (one for one in found if "200" in one[2]["responses"] and "content" in one[2]["responses"]["200"])
