"""What can be wrong with a review. A class's docstring is its default message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace import ConfigError

#: So many mistakes are told at once.
MAX_TOLD = 50
_MAX_VALUE_CHARS = 80


class ReviewError(ConfigError):
    """The review cannot be read back. Name a sheet of the run, and with --out the folder that the run wrote."""

    code = "invalid_input"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong with a sheet."""

    #: As spreadsheet programs count: the header is line 1.
    line: int
    column: str
    rule: str
    value: object = None
    #: Where many lines share it: how many, and what to do.
    advice: str = ""

    def __str__(self) -> str:
        """The mistake as a line for people.

        >>> str(Mistake(4, "accept", "must be yes or no", "maybe"))
        "line 4, column accept: must be yes or no, got 'maybe'"
        """
        if self.value is None or self.value == "":
            got = "nothing"
        else:
            said = repr(self.value)
            got = said if len(said) <= _MAX_VALUE_CHARS else said[: _MAX_VALUE_CHARS - 1] + "…"
        advice = self.advice and f"; {self.advice}"
        return f"line {self.line}, column {self.column}: {self.rule}, got {got}{advice}"


class SheetError(ConfigError):
    """The review sheet breaks a rule, and nothing was changed. Correct the named cells and read it again."""

    code = "invalid_sheet"

    def __init__(self, sheet: str, mistakes: Sequence[Mistake]) -> None:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        told = [f"\n  {mistake}" for mistake in mistakes[:MAX_TOLD]]
        more = f"\n  … and {len(mistakes) - MAX_TOLD} more" if len(mistakes) > MAX_TOLD else ""
        super().__init__(f"{sheet} has {count}, and nothing was changed:{''.join(told)}{more}")
        self.mistakes = tuple(mistakes)
        #: Of the first, for machines.
        self.field = mistakes[0].column
        self.rule = mistakes[0].rule
