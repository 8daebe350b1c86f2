"""Signed webhooks as Standard Webhooks 1.0 has them: how secrets are written, how a message is signed and verified.

What is signed is `id.timestamp.body`, by HMAC-SHA256; the header has a signature for each live secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets as random_secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.model.job import JobSpec, NewJob
from headrace.model.payload import hash_text

PREFIX, VERSION = "whsec_", "v1"
#: Bytes of a secret.
LEAST_BYTES, MOST_BYTES = 24, 64
#: Most bytes of a message's body.
MOST_BODY = 64 * 1024
#: How far the clocks of sender and receiver may differ, the way included.
TOLERANCE = timedelta(minutes=5)
#: Signatures of one header that are looked at: more than any sender has secrets.
MOST_SIGNATURES = 16
TASK, QUEUE = "headrace_webhook", "webhooks"
#: What delivers one message: an attempt for each try, as many as a job may have.
WEBHOOK_SPEC = JobSpec(TASK, QUEUE, max_attempts=100, timeout=timedelta(minutes=2))


def order(url: str, **more: Any) -> dict[str, Any]:
    """Return what the job of a delivery is told beside its subject.

    >>> order("https://example.com", type="batch.closed")
    {'url': 'https://example.com', 'type': 'batch.closed'}
    """
    return {"url": url, **more}


def batch_order(url: str) -> str:
    """Return the second argument of a batch's callback as JSON text.

    >>> batch_order("https://example.com")
    '{"url": "https://example.com", "type": "batch.closed"}'
    """
    return json.dumps(order(url, type="batch.closed"))


def run_job(run_id: UUID, url: str, *, asked: float | None = None) -> NewJob:
    """Return the job that tells of the end of a run; with `asked`, when its cancel was, only if that is how it ends."""
    told = order(url, type="run.ended") | ({} if asked is None else {"cancelled": asked})
    text = json.dumps({"args": [str(run_id), told], "kwargs": {}})
    key = None if asked is None else f"cancelled:{run_id}"
    return NewJob(WEBHOOK_SPEC, text, key=key, body_hash="" if key is None else hash_text(TASK, url))


class WebhookSignatureError(HeadraceError):
    """The message is not signed as it has to be. Do not trust it, and answer with 401."""

    code = "bad_signature"


def new_secret() -> str:
    """Return a secret of 32 random bytes, as it stands in settings.

    >>> len(parse_secret(new_secret()))
    32
    """
    return PREFIX + base64.b64encode(random_secrets.token_bytes(32)).decode()


def parse_secret(text: str, *, field: str = "secret") -> bytes:
    """Return the bytes of a secret. Raises InvalidInputError, never with the secret in it.

    >>> parse_secret("whsec_" + "QUJD" * 8)[:3]
    b'ABC'
    """
    rule = f"must be {PREFIX} and the base64 of {LEAST_BYTES} to {MOST_BYTES} bytes"
    if not text.startswith(PREFIX):
        raise InvalidInputError(field, rule, "a text that begins otherwise")
    try:
        raw = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInputError(field, rule, "a text that is no base64") from None
    if not LEAST_BYTES <= len(raw) <= MOST_BYTES:
        raise InvalidInputError(field, rule, f"{len(raw)} bytes")
    return raw


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message by one secret, such as "v1,…"."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(parse_secret(secret), signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"


def signed_headers(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message, with a signature by each secret."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, message_id, timestamp, body) for secret in secrets),
    }


def verify(
    headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str], *, now: float,
    tolerance: timedelta = TOLERANCE,
) -> str:  # fmt: skip
    """Return the id of a message that one of the secrets signed, at about this time (seconds since 1970).

    Raises WebhookSignatureError naming what is wrong, InvalidInputError for a secret that is none.
    """
    given = {name.lower(): value for name, value in headers.items()}
    message_id, signatures = _header(given, "webhook-id"), _header(given, "webhook-signature")
    timestamp = _timestamp(_header(given, "webhook-timestamp"))
    if abs(now - timestamp) > tolerance.total_seconds():
        seconds = f"{tolerance.total_seconds():g} s"
        raise WebhookSignatureError(
            f"webhook-timestamp must be within {seconds} of now: it is old, or a clock is wrong"
        )
    live = [secrets] if isinstance(secrets, str) else list(secrets)
    expected = [sign(secret, message_id, timestamp, body).encode() for secret in live]
    came = [text.encode() for text in signatures.split(" ")[:MOST_SIGNATURES]]
    # All of them are compared, so that the time tells nothing of which one fits.
    fits = [hmac.compare_digest(one, other) for one in expected for other in came]
    if not any(fits):
        raise WebhookSignatureError("webhook-signature is of none of the secrets: do not trust the message")
    return message_id


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "")
    if not value:
        raise WebhookSignatureError(f"the header {name} is missing: the message is not signed")
    return value


def _timestamp(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise WebhookSignatureError("webhook-timestamp must be whole seconds since 1970, in digits")
    return int(text)
