"""Instants as expressions have them: aware, in the zone of the flow; ISO text as soon as they leave."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo

from headrace.model.expressions.errors import Fault


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant in a zone. Raises Fault in the first and in the last year: other zones would lead out of them."""

    at: datetime

    def __post_init__(self) -> None:
        if not 2 <= self.at.year <= 9998:
            raise Fault("leads beyond the years 2 to 9998")

    @property
    def iso(self) -> str:
        """The instant as text: "2026-03-01T09:00:00.000+01:00", and with Z in UTC."""
        text = self.at.isoformat(timespec="milliseconds")
        return text.removesuffix("+00:00") + "Z" if self.at.tzinfo is UTC or self.at.tzname() == "UTC" else text

    @property
    def milliseconds(self) -> int:
        """Milliseconds since the first of January 1970."""
        return round(self.at.timestamp() * 1000)


def moment_of(value: object, zone: tzinfo) -> Moment:
    """Return the instant that a date value or an ISO text is, in a zone. Raises Fault.

    >>> moment_of("2026-03-01", UTC).iso
    '2026-03-01T00:00:00.000Z'
    """
    found = moment_or_none(value, zone)
    if found is None:
        raise Fault('needs a date: $now, or an ISO text such as "2026-03-01" or "2026-03-01T09:00:00Z"')
    return found


def moment_or_none(value: object, zone: tzinfo) -> Moment | None:
    """Return the instant that a date value or an ISO text is; None where it is neither."""
    if isinstance(value, Moment):
        return value
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return None
    try:
        if len(value) == 10:
            return Moment(datetime.combine(date.fromisoformat(value), time(), zone))
        found = datetime.fromisoformat(value)
        return Moment(found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone))
    except (ValueError, OverflowError, Fault):
        return None
