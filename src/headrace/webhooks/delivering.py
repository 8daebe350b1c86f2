"""The task that delivers messages: one job for each, tried again until the receiver took it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from headrace.engine.context import Context
from headrace.model.backoff import Backoff
from headrace.model.durations import format_duration
from headrace.model.errors import HeadraceError, NotFoundError
from headrace.model.http import HttpAnswer, HttpError, HttpRequest
from headrace.model.outcome import Cancel, Fail, Outcome, Snooze
from headrace.model.targets import ForbiddenTargetError
from headrace.model.webhook import QUEUE, TASK, WEBHOOK_SPEC, signed_headers
from headrace.outbound import client as outbound
from headrace.outbound.client import OutboundClient
from headrace.webhooks.messages import Gone, NotYet, message_of

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.webhook_settings import WebhookSettings

#: Bytes of an answer that are read; what they say does not matter.
MOST_ANSWER = 64 * 1024
GONE = 410
#: A run that is to be cancelled is looked at so often until it is.
AGAIN = "1s"
_MESSAGES = UUID("0b1f5f0a-6f0e-5d6b-9a3e-5b1f3b0d7c11")


class DeliveryError(HeadraceError):
    """The receiver did not take the message. It is tried again; see the log of the receiver."""

    code = "webhook_failed"
    transient = True

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def register(app: App) -> None:
    """Register the task with an app, unless it has it."""
    if app.registry.get(TASK) is not None:
        return
    settings = app.settings.webhooks
    retry = Backoff.exponential(
        max_attempts=WEBHOOK_SPEC.max_attempts, base=settings.first_retry, cap=settings.longest_retry
    )
    client = OutboundClient(settings.targets, resolve=lambda host, port: outbound.resolve_host(host, port))

    @app.task(name=TASK, queue=QUEUE, retry=retry, timeout=WEBHOOK_SPEC.timeout or "2m")
    async def headrace_webhook(
        subject: str, order: dict[str, Any], closed: dict[str, Any] | None = None, *, ctx: Context
    ) -> Any:
        """Deliver one message; `subject` is what it tells of, `order` where it goes and what it says.

        `closed`: how the round of a batch ended that it tells of.
        """

        async def freeze() -> dict[str, Any]:
            body = await message_of(app, subject, order, closed)
            return {"body": json.dumps(body, ensure_ascii=False, separators=(",", ":")), "began": time.time()}

        try:
            # Each try sends the same, so that the same id means the same message.
            kept = await ctx.step("message", freeze)
        except NotYet:
            return Snooze(AGAIN)
        except (Gone, NotFoundError) as error:
            return Cancel(str(error))
        told = told_of(subject or order.get("id", ""), json.loads(kept["body"]))
        sending = _Sending(client, settings, message_id(told, order["url"], ctx.job_id), kept["body"].encode())
        return await sending.deliver(order["url"], datetime.fromtimestamp(kept["began"], UTC))


def told_of(subject: str, body: dict[str, Any]) -> str:
    """Return what a message tells of: a batch closes once more after each round, which is another message.

    >>> told_of("7", {"type": "run.ended"}), told_of("8", {"type": "batch.closed", "data": {"round": 2}})
    ('7', '8 2')
    """
    return f"{subject} {body['data']['round']}" if body["type"] == "batch.closed" else subject


def message_id(subject: str, url: str, job_id: UUID) -> str:
    """Return the id of a message: that of what it tells of, so that a dead letter that is sent again has the same one.

    A message without a subject has that of its job.

    >>> len({message_id("details/7", "https://example.com/", UUID(int=job)) for job in (1, 2)})
    1
    """
    return f"msg_{(uuid5(_MESSAGES, f'{subject} {url}') if subject else job_id).hex}"


class _Sending:
    """One try of one message."""

    def __init__(self, client: OutboundClient, settings: WebhookSettings, message_id: str, body: bytes) -> None:
        self._client, self._settings = client, settings
        self._id, self._body = message_id, body

    async def deliver(self, url: str, began: datetime) -> dict[str, Any] | Outcome:
        """Return the status of the answer. Raises DeliveryError while it is worth trying again."""
        try:
            answer = await self._post(url)
        except DeliveryError as error:
            if datetime.now(UTC) - began < self._settings.retry_for:
                raise
            return Fail(f"{error}; it was tried for {format_duration(self._settings.retry_for)}")
        if answer.status == GONE:
            return Cancel("the receiver answers 410: it wants no messages at this URL any more")
        return {"status": answer.status}

    async def _post(self, url: str) -> HttpAnswer:
        # The time of this try: receivers refuse messages of long ago.
        headers = signed_headers(self._settings.secrets, self._id, int(time.time()), self._body)
        request = HttpRequest(
            "POST", url, (("Content-Type", "application/json"), *headers.items()), body=self._body,
            timeout=self._settings.timeout, max_redirects=0, max_bytes=MOST_ANSWER, cut=True,
        )  # fmt: skip
        try:
            answer = await self._client.send(request)
        except (HttpError, ForbiddenTargetError) as error:
            raise DeliveryError(str(error)) from None
        if not (200 <= answer.status < 300 or answer.status == GONE):
            after = _retry_after(answer.headers.get("retry-after", ""), self._settings.longest_retry)
            raise DeliveryError(f"the receiver answers {answer.status}, and not 2xx", retry_after=after)
        return answer


def _retry_after(text: str, most: timedelta) -> timedelta | None:
    """Return how long a receiver asks to be left alone, at most `most`; None for what is no number of seconds."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return None
    return min(timedelta(seconds=int(text)), most)
