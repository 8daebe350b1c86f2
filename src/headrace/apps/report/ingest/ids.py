"""Ids of cases: each stands once in a report."""

from __future__ import annotations

import re

from headrace.apps.report.ingest.issues import IssueBook, Place

MAX_ID = 200
#: A number that a sheet shows with a decimal point is a whole one.
_WHOLE = re.compile(r"(\d+)\.0+")


class Ids:
    """Gives ids, and remembers which it gave."""

    def __init__(self, book: IssueBook) -> None:
        self._book = book
        self._given: dict[str, int] = {}

    def given(self, text: str, place: Place) -> str:
        """Return the id for a case whose sheet says `text`: itself, with "#2" behind it, or made of sheet and row."""
        plain = " ".join(text.split())[:MAX_ID]
        whole = _WHOLE.fullmatch(plain)
        if whole:
            plain = whole[1]
        if not plain:
            self._book.add("missing_id", place)
            return self._free(f"{place.sheet}-{place.row}")
        found = self._free(plain)
        if found != plain:
            self._book.add("duplicate_id", place, plain)
        return found

    def _free(self, wanted: str) -> str:
        """Return the id, or the first of its numbers that no case has."""
        number, found = self._given.get(wanted, 0) + 1, wanted
        while number > 1 and (found := f"{wanted}#{number}") in self._given:
            number += 1
        self._given[wanted] = number
        if found != wanted:
            self._given[found] = 1
        return found
