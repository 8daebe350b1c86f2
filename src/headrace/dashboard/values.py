"""Values of runs as pages show them: JSON texts of the store, and what lies in the blob storage within bounds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headrace.dashboard.page import View
from headrace.model.errors import HeadraceError
from headrace.model.reference import parse_reference

#: Characters of JSON that are fetched for a page, which shows the first of them.
MOST_FETCHED = 1 << 18


@dataclass(frozen=True, slots=True)
class Shown:
    """A value, or why it does not stand on the page."""

    value: Any = None
    #: Whether there is one.
    there: bool = False
    #: Bytes of one that is too large to be fetched; None where they are not known.
    left_out: bool = False
    bytes: int | None = None
    #: Why it cannot be read.
    trouble: str = ""


async def shown(view: View, stored: str | None) -> Shown:
    """Return a value of a run as a page shows it; `stored`: JSON text, or a reference."""
    if stored is None:
        return Shown()
    try:
        text = await view.app.runtime.means.values.load_text(stored, most=MOST_FETCHED)
    except HeadraceError as error:
        return Shown(there=True, trouble=str(error))
    if text is None:
        reference = parse_reference(json.loads(stored))
        return Shown(there=True, left_out=True, bytes=None if reference is None else reference.bytes)
    return Shown(json.loads(text), there=True)
