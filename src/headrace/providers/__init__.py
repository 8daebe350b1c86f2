"""Adapters of the `llm` port. Choosing one loads no SDK; the first call does."""

from __future__ import annotations

from pathlib import Path

from headrace.model.llm import LLMSettings
from headrace.ports.llm import Provider

__all__ = ["open_provider"]


def open_provider(settings: LLMSettings, directory: Path) -> Provider:
    """The provider these settings name; without a model the local one, whose server lives in `directory`.

    Raises ConfigError naming the setting that is wrong or missing.
    """
    if settings.model is None:
        from headrace.providers.local import LocalProvider

        return LocalProvider(directory / "model", timeout=settings.timeout)
    from headrace.providers.openai import OpenAIProvider

    return OpenAIProvider(settings)
