"""What every kind of call has in common."""

from __future__ import annotations

from typing import Protocol


class Asked(Protocol):
    """What is known of every call, whatever it asks for."""

    @property
    def key(self) -> str:
        """Of its content: equal requests have equal keys."""

    @property
    def model(self) -> str:
        """The name of the model it asks."""

    @property
    def text(self) -> str:
        """All of its words."""

    @property
    def input_tokens(self) -> int:
        """Tokens of the prompt."""

    @property
    def max_tokens(self) -> int | None:
        """Most tokens of the answer; None: it does not say."""
