"""Which units measure the same thing, so that "1.2 g" supports 1200 mg and "18 months" does not support 18 weeks."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

_PREFIXED = {
    "mass in g": {"kg": "1000", "g": "1", "mg": "1e-3", "µg": "1e-6", "ug": "1e-6", "mcg": "1e-6", "ng": "1e-9"},
    "length in m": {"km": "1000", "m": "1", "dm": "0.1", "cm": "0.01", "mm": "1e-3", "µm": "1e-6", "nm": "1e-9"},
    "volume in l": {"l": "1", "dl": "0.1", "cl": "0.01", "ml": "1e-3", "µl": "1e-6"},
    "time in s": {
        "ms": "1e-3",
        "s": "1",
        "sec": "1",
        "second": "1",
        "min": "60",
        "minute": "60",
        "h": "3600",
        "hr": "3600",
        "hour": "3600",
        "d": "86400",
        "day": "86400",
        "wk": "604800",
        "week": "604800",
        "fortnight": "1209600",
    },
    # A month has no fixed number of days: months and weeks are both times, and cannot be converted.
    "time in months": {"mo": "1", "month": "1", "yr": "12", "year": "12"},
    "pressure in Pa": {"pa": "1", "kpa": "1e3", "mpa": "1e6", "gpa": "1e9", "bar": "1e5"},
    "share": {"%": "0.01", "percent": "0.01", "per cent": "0.01", "‰": "1e-3"},
    "°C": {"°c": "1"},
    "K": {"k": "1"},
    "°F": {"°f": "1"},
}
_BY_NAME = {name: (kind, Decimal(factor)) for kind, names in _PREFIXED.items() for name, factor in names.items()}


def measure(unit: str) -> tuple[str, Decimal] | None:
    """What a unit measures and its size in the base unit of that; None for a word that is no known unit.

    A compound such as m²/g measures only itself, in whatever notation.

    >>> measure("weeks"), measure("participants"), measure("m² g⁻¹") == measure("m2/g")
    (('time in s', Decimal('604800')), None, True)
    """
    name = unit.strip().replace("μ", "µ").replace("° ", "°").rstrip(".")
    for candidate in (name.lower(), name.lower().removesuffix("s")):
        if candidate in _BY_NAME and not (candidate == "mpa" and name != "MPa"):
            return _BY_NAME[candidate]
    compound = _compound(name)
    return (compound, Decimal(1)) if compound is not None else None


def _compound(unit: str) -> str | None:
    plain = unicodedata.normalize("NFKC", unit).replace("−", "-").replace("^", "")
    plain = re.sub(r"[\s·]([^\W\d]+)-1\b", r"/\1", plain)
    return re.sub(r"\s*([/·])\s*", r"\1", plain) if re.search(r"[/·]|\d", plain) else None


def in_unit(value: Decimal, unit: str, wanted: str | None) -> Decimal | None:
    """`value unit` expressed in `wanted`; the value itself where one of them is no known unit; None where they clash.

    >>> in_unit(Decimal("1.2"), "g", "mg") == 1200, in_unit(Decimal(24), "plots", "m")
    (True, Decimal('24'))
    >>> in_unit(Decimal(18), "months", "weeks") is None
    True
    """
    have, want = measure(unit), measure(wanted or "")
    if have is None or want is None:
        return value
    if have[0] != want[0]:
        return None
    return value * have[1] / want[1]
