"""The rule for whole numbers that people give: True and 1.0 are none."""

from __future__ import annotations

from headrace.model.errors import InvalidInputError


def check_whole(field: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return `value` if it is a whole number from `least` to `most` (None: any). Raises InvalidInputError.

    >>> check_whole("batch_size", 50, most=1_000)
    50
    """
    if isinstance(value, int) and not isinstance(value, bool) and least <= value and (most is None or value <= most):
        return value
    bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
    raise InvalidInputError(field, f"must be a whole number {bounds}", value)
