"""What the model made of equal messages: taken from the cache of the app instead of asked for again."""

from __future__ import annotations

from headrace.apps.memory.cache.keys import answer_key
from headrace.apps.memory.cache.results import NAME, ResultCache

__all__ = ["NAME", "ResultCache", "answer_key"]
