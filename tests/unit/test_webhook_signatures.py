"""How messages are signed and verified, by vectors that were worked out with OpenSSL."""

from __future__ import annotations

import base64
import time
from datetime import timedelta

import pytest

from headrace.model import webhook
from headrace.model.errors import InvalidInputError
from headrace.webhooks import WebhookSignatureError, new_secret, verify

#: The bytes 0 to 31.
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
BODY = b'{"type":"run.ended","data":{"n":1}}'
AT = 1_900_000_000


def headers_of(signature: str, at: int = AT, message_id: str = "msg_17") -> dict[str, str]:
    """Return the headers of a message."""
    return {"webhook-id": message_id, "webhook-timestamp": str(at), "webhook-signature": signature}


#: HMAC-SHA256 of "msg_17.1900000000." and the body.
SIGNATURE = "v1,KLIpXBgPFw8H0kaxckeomu07knSJR4TitV3DJipvcbs="


def test_a_message_is_signed_as_the_standard_has_it() -> None:
    """The vector was worked out by another program."""
    assert webhook.sign(SECRET, "msg_17", AT, BODY) == SIGNATURE
    signed = webhook.signed_headers([SECRET, new_secret()], "msg_17", AT, BODY)
    assert signed["webhook-signature"].split(" ")[0] == SIGNATURE
    assert signed | {"webhook-signature": SIGNATURE} == headers_of(SIGNATURE)


@pytest.mark.parametrize(("headers", "now"), [
    (headers_of(SIGNATURE), AT),
    ({name.title(): value for name, value in headers_of(SIGNATURE).items()}, AT + 299),
    (headers_of(f"v1a,AAAA v1,QUJD {SIGNATURE}"), AT - 299),
])  # fmt: skip
def test_messages_that_are_taken(headers: dict[str, str], now: int) -> None:
    """Names of headers in any case, several signatures of several kinds, five minutes to either side."""
    assert webhook.verify(headers, BODY, SECRET, now=now) == "msg_17"
    assert webhook.verify(headers, BODY, [new_secret(), SECRET], now=now) == "msg_17"


@pytest.mark.parametrize(("headers", "body", "word"), [
    (headers_of(SIGNATURE), BODY + b" ", "signature"),
    (headers_of(SIGNATURE, at=AT + 1), BODY, "signature"),
    (headers_of(SIGNATURE, message_id="msg_18"), BODY, "signature"),
    (headers_of(SIGNATURE.replace("v1,", "v2,")), BODY, "signature"),
    (headers_of(SIGNATURE[:-1]), BODY, "signature"),
    (headers_of("v1,\u00e9"), BODY, "signature"),
    (headers_of(" ".join(["v1,QUJD"] * 16 + [SIGNATURE])), BODY, "signature"),
    (headers_of(SIGNATURE, at=AT - 301), BODY, "timestamp"),
    (headers_of(SIGNATURE, at=AT + 301), BODY, "timestamp"),
    (headers_of(SIGNATURE) | {"webhook-timestamp": "1.9e9"}, BODY, "timestamp"),
    (headers_of(SIGNATURE) | {"webhook-timestamp": "\u0661"}, BODY, "timestamp"),
    (headers_of(SIGNATURE) | {"webhook-id": ""}, BODY, "webhook-id"),
    (headers_of("") , BODY, "webhook-signature"),
    ({}, BODY, "missing"),
])  # fmt: skip
def test_messages_that_are_not(headers: dict[str, str], body: bytes, word: str) -> None:
    """Another body, id or time than was signed, another version, times of long ago or to come, headers amiss."""
    with pytest.raises(WebhookSignatureError, match=word):
        webhook.verify(headers, body, SECRET, now=AT)


def test_verify_goes_by_the_clock() -> None:
    """The public function takes messages of now, and its tolerance can be set."""
    now = int(time.time())
    old = webhook.signed_headers([SECRET], "msg_1", now - 400, BODY)
    with pytest.raises(WebhookSignatureError):
        verify(old, BODY, SECRET)
    assert verify(old, BODY, SECRET, tolerance=timedelta(minutes=10)) == "msg_1"
    with pytest.raises(WebhookSignatureError):
        verify(webhook.signed_headers([SECRET], "msg_1", now, BODY), BODY, [])


@pytest.mark.parametrize("text", [
    "", "whsec_", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "whsec_!!!!", "whsec_" + "QUJD" * 7,
    "whsec_" + base64.b64encode(bytes(65)).decode(),
])  # fmt: skip
def test_texts_that_are_no_secrets(text: str) -> None:
    """24 to 64 bytes in base64 behind the prefix; the error does not show what was given."""
    with pytest.raises(InvalidInputError, match="24 to 64 bytes") as caught:
        webhook.parse_secret(text)
    assert not text.removeprefix("whsec_") or text.removeprefix("whsec_") not in str(caught.value)


@pytest.mark.parametrize("size", [24, 64])
def test_secrets_at_both_bounds(size: int) -> None:
    """The shortest and the longest."""
    assert len(webhook.parse_secret("whsec_" + base64.b64encode(bytes(size)).decode())) == size
