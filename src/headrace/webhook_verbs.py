"""What the façade does with webhooks: check where messages go, and let the app's workers deliver them."""

from __future__ import annotations

from typing import Any


class WebhookVerbs:
    """The part of `App` that is for webhooks."""

    def settle_webhooks(self: Any) -> None:
        """Let the app's workers deliver messages, where something signs them."""
        if self.settings.webhooks.secrets:
            from headrace.webhooks.delivering import register

            register(self)

    async def check_webhook(self: Any, url: str | None) -> None:
        """Check where a message is to be sent before anything is stored. Raises InvalidInputError."""
        if url is not None:
            from headrace.webhooks.submitting import check_target

            await check_target(self, url)
