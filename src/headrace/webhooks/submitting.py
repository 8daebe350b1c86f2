"""Before a message is sent: whether its target may be, and the job that delivers it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from headrace.model.errors import InvalidInputError, PayloadTooLargeError
from headrace.model.names import check_key
from headrace.model.payload import encode_json
from headrace.model.webhook import MOST_BODY, TASK, order

if TYPE_CHECKING:
    from headrace.app import App

#: A name is looked up this long before its message is taken; one that is not known then may be later.
LOOK_UP_SECONDS = 2.0
#: Types of messages that are made when work ends, of what it came to.
_OWN_TYPES = frozenset({"batch.closed", "run.ended"})
_TYPE_RULE = "must be words with dots between them, such as order.packed"


async def delivery(app: App, url: str, type: str, data: Any, key: str | None = None) -> UUID:
    """Let a message be delivered, and return the id of the job that does it once that is stored.

    `type`: such as "order.packed"; `data`: any JSON, with both and a time at most 64 KiB; `key`: the same key gives
    the same message. Raises InvalidInputError (`forbidden_target` for a URL that must not be asked),
    PayloadTooLargeError, ConflictError, StoreUnavailableError.
    """
    checked = await check_target(app, url)
    at = datetime.now(UTC).isoformat()
    message = {"type": _other_type(check_type(type)), "data": data}
    size = len(encode_json({**message, "timestamp": at}, field="data", most=4 * MOST_BODY).encode())
    if size > MOST_BODY:
        raise PayloadTooLargeError("data", f"must make a message of at most {MOST_BODY} bytes", size)
    call = app.find_task(TASK)
    subject = "" if key is None else check_key("key", key)
    made = call if key is None else call.options(key=subject)
    # Without the time, so that the same key goes with the same message; what has no key is known by an id of its own.
    own = {"id": str(uuid4())} if key is None else {}
    handle = await made.enqueue(subject, order(checked, **message, **own))
    return handle.id


async def check_target(app: App, url: Any, *, field: str = "webhook") -> str:
    """Return a URL that messages may go to, as far as that is known now; it is checked again with each try.

    Raises InvalidInputError where no secret is set, ForbiddenTargetError.
    """
    settings = app.settings.webhooks
    if not isinstance(url, str):
        raise InvalidInputError(field, "must be a URL such as https://example.com/hook", url)
    if not settings.secrets:
        rule = "needs a secret that signs its messages: set [webhooks] secrets, for the workers too"
        raise InvalidInputError(field, rule, "none")
    target = settings.targets.parse(url, field=field)
    if target.address is None:
        settings.targets.check(target, await _addresses(target.host, target.port), field=field)
    return url


async def _addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host, none where it is not known by now."""
    from headrace.outbound.client import resolve_host

    try:
        async with asyncio.timeout(LOOK_UP_SECONDS):
            return await resolve_host(host, port)
    except (OSError, TimeoutError, UnicodeError):
        return []


def _other_type(type: str) -> str:
    if type in _OWN_TYPES:
        rule = "must not be one that Headrace sends of itself: submit or start with webhook= for it, or use another one"
        raise InvalidInputError("type", rule, type)
    return type


def check_type(type: str) -> str:
    """Return the type of a message. Raises InvalidInputError.

    >>> check_type("batch.closed")
    'batch.closed'
    """
    words = type.split(".") if isinstance(type, str) else []
    fits = words and all(word.replace("_", "").isalnum() and word.isascii() for word in words) and len(type) <= 100
    if not fits:
        raise InvalidInputError("type", _TYPE_RULE, type)
    return type
