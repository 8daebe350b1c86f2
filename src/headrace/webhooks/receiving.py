"""For receivers: whether a message is from whom it says."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import timedelta

from headrace.model import webhook
from headrace.model.webhook import TOLERANCE


def verify(
    headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str], *, tolerance: timedelta = TOLERANCE
) -> str:
    """Return the id of a message that one of the secrets signed within `tolerance` of now.

    `headers`: those of the request, in any case; `body`: its bytes as they came. A message may come twice, then with
    the same id: keep the ids that were handled for 5 minutes or longer. Raises WebhookSignatureError.

    >>> from headrace.model.webhook import new_secret, signed_headers
    >>> secret, body = new_secret(), b'{"type":"run.ended"}'
    >>> verify(signed_headers([secret], "msg_1", int(time.time()), body), body, secret)
    'msg_1'
    """
    return webhook.verify(headers, body, secrets, now=time.time(), tolerance=tolerance)
