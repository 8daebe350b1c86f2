"""Conversations of four people, two in English and two in Chinese, and the profiles that come of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """What one person says, chat by chat, and what is known in the end."""

    user: str
    language: str
    #: each a list of messages as a blob has them
    chats: tuple[tuple[Mapping[str, Any], ...], ...]
    #: topic, sub-topic and content, in order
    profile: tuple[tuple[str, str, str], ...]


@lru_cache(maxsize=1)
def samples() -> tuple[Sample, ...]:
    """Return the samples.

    >>> [(sample.user, sample.language, len(sample.chats)) for sample in samples()][:2]
    [('anna', 'en', 2), ('tom', 'en', 2)]
    """
    told = json.loads((files(__package__) / "conversations.json").read_text(encoding="utf-8"))
    return tuple(
        Sample(one["user"], one["language"], tuple(map(tuple, one["chats"])), tuple(map(tuple, one["profile"])))
        for one in told
    )
