"""Webhooks out: what senders and receivers of signed messages use."""

from headrace.model.webhook import WebhookSignatureError, new_secret
from headrace.webhooks.receiving import verify
from headrace.webhooks.submitting import delivery

__all__ = ["WebhookSignatureError", "delivery", "new_secret", "verify"]
