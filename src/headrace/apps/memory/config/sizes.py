"""Sizes as people write them: `32GB`, `512MiB`."""

from __future__ import annotations

import re

from headrace import InvalidInputError

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?) ?(B|[KMGT]i?B)?")
_POWERS = {letter: power for power, letter in enumerate("KMGT", 1)}


def parse_size(value: str | int, *, field: str = "size") -> int:
    """Return bytes. KB, MB, GB and TB are powers of 1,000, KiB to TiB of 1,024; a bare number is bytes.

    Raises InvalidInputError.

    >>> parse_size("32GB"), parse_size("1.5 MiB"), parse_size(8)
    (32000000000, 1572864, 8)
    """
    found = _SIZE.fullmatch(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if found is None:
        raise InvalidInputError(field, 'must be a size such as "32GB" or "512MiB"', value)
    unit = found[2] or "B"
    power = _POWERS.get(unit[0], 0)
    factor: int = (1024 if "i" in unit else 1000) ** power
    return round(float(found[1]) * factor)
