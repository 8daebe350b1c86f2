"""Adapters of the `llm` port. Choosing one loads no SDK; the first call does."""

from __future__ import annotations

from pathlib import Path

from headrace.model.errors import ConfigError
from headrace.model.llm import LLMSettings
from headrace.ports.llm import Provider

__all__ = ["open_provider"]


_PROVIDERS = ("openai", "litellm", "local")


def open_provider(settings: LLMSettings, directory: Path) -> Provider:
    """The provider these settings name; without a model the local one, whose server lives in `directory`.

    Raises ConfigError naming the setting that is wrong or missing.
    """
    if settings.provider not in _PROVIDERS:
        raise ConfigError(f"llm.provider must be one of {', '.join(_PROVIDERS)}, got {settings.provider!r}")
    if settings.provider == "litellm":
        from headrace.providers.litellm import LiteLLMProvider

        return LiteLLMProvider(settings)
    if settings.provider == "local" or settings.model is None:
        from headrace.providers.local import LocalProvider

        return LocalProvider(directory / "model", timeout=settings.timeout)
    from headrace.providers.openai import OpenAIProvider

    return OpenAIProvider(settings)
