"""Tags of events as people write them."""

from __future__ import annotations

from headrace import InvalidInputError
from headrace.apps.memory.data.events import Tag


def parse_tag(field: str, text: str) -> Tag:
    """Return a tag that was given as NAME=VALUE. Raises InvalidInputError.

    >>> parse_tag("tag", "emotion=glad")
    Tag(tag='emotion', value='glad')
    """
    name, _, value = text.partition("=")
    if not name.strip() or not value.strip():
        raise InvalidInputError(field, "must be NAME=VALUE, such as emotion=happy", text)
    return Tag(name.strip(), value.strip())
