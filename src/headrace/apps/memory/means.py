"""What all stages work with: the tables, the terms of writing, and the cache of what the model made."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from headrace.apps.memory.opening import app
from headrace.apps.memory.tables import MemoryTables
from headrace.apps.memory.writing.terms import Terms

if TYPE_CHECKING:
    from headrace.memory_settings import MemorySettings

TABLES = MemoryTables(app)


def settings() -> MemorySettings:
    """Return `[memory]`."""
    return app.settings.memory


def language_for(own: str | None) -> str:
    """Return in what a user is written of: as `[memory] language` says, else their own, else "auto"."""
    wanted = terms().language
    return own or wanted if wanted == "auto" else wanted


@cache
def terms() -> Terms:
    """Return what may be known of a user, as `[memory] profile` says. Raises ConfigError."""
    profile, language = settings().profile, settings().language
    found = Terms.load(profile) if profile else Terms.usual()
    return found if language == "auto" else replace(found, language=language)
