"""What all stages work with: the tables, the terms of writing, and the cache of what the model made."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from headrace.apps.memory.opening import app
from headrace.apps.memory.tables import MemoryTables
from headrace.apps.memory.writing.terms import Terms

if TYPE_CHECKING:
    from headrace.apps.memory.tables.values import User
    from headrace.memory_settings import MemorySettings

TABLES = MemoryTables(app)


def settings() -> MemorySettings:
    """Return `[memory]`."""
    return app.settings.memory


def language_for(user: User | None) -> str:
    """Return in what a user is written of: as `[memory] language` says, else their own, else "auto"."""
    wanted = terms().language
    own = None if user is None else user.language
    return own or wanted if wanted == "auto" else wanted


def level_of(user: User | None) -> int:
    """Return how urgent a user is, 0 of one who is not known, or any more."""
    return 0 if user is None else user.level


@cache
def terms() -> Terms:
    """Return what may be known of a user, as `[memory] profile` says. Raises ConfigError."""
    profile, language = settings().profile, settings().language
    found = Terms.load(profile) if profile else Terms.usual()
    return found if language == "auto" else replace(found, language=language)
