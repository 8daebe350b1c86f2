"""Money as whole nanodollars: 1 USD is 1,000,000,000. Sums are exact in every store; a token is rarely less than one.

A price that is not known is None and is shown as unknown, never as 0.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

#: Nanodollars of one US dollar.
NANO = 1_000_000_000
UNKNOWN = "unknown"


def to_nano(dollars: Decimal | float | str) -> int:
    """Return US dollars as nanodollars, rounded half up.

    >>> to_nano("0.0375")
    37500000
    """
    return int((Decimal(str(dollars)) * NANO).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def to_dollars(nano: int) -> Decimal:
    """Return nanodollars as US dollars, exactly.

    >>> to_dollars(37_500_000)
    Decimal('0.0375')
    """
    return (Decimal(nano) / NANO).normalize() if nano else Decimal(0)


def show_money(nano: int | None) -> str:
    """Return money as people read it: cents where there are any, else two digits that say something.

    >>> show_money(1_234_500_000), show_money(37_500), show_money(0), show_money(None)
    ('$1.23', '$0.000038', '$0.00', 'unknown')
    """
    if nano is None:
        return UNKNOWN
    dollars = Decimal(nano) / NANO
    digits = 2 if nano == 0 else max(2, 1 - dollars.adjusted())
    return f"{'-' if nano < 0 else ''}${abs(dollars):,.{digits}f}"
