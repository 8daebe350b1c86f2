"""The words of errors: every one names the file, the rule and what was found, and says what to do."""

from __future__ import annotations

from pathlib import Path

from headrace.apps.report.errors import FileTypeError, NoCasesError, UnreadableFileError, UnsafeFileError

#: Characters of a name out of a file that an error shows.
_SHOWN = 80


def unsafe(path: Path, rule: str, value: object, fix: str) -> UnsafeFileError:
    """Return the error of a file that could do harm."""
    return UnsafeFileError(_words(path, rule, value, fix))


def unreadable(path: Path, rule: str, value: object, fix: str) -> UnreadableFileError:
    """Return the error of a file that is damaged, or of a kind that is not read."""
    return UnreadableFileError(_words(path, rule, value, fix))


def wrong_type(path: Path, rule: str, value: object, fix: str) -> FileTypeError:
    """Return the error of a file whose content is not what its name says."""
    return FileTypeError(_words(path, rule, value, fix))


def no_cases(path: Path, rule: str, value: object, fix: str) -> NoCasesError:
    """Return the error of a file in which there are no cases."""
    return NoCasesError(_words(path, rule, value, fix))


def short(text: str) -> str:
    """Return a text out of a file as errors show it: on one line, and not too long.

    >>> short("a" * 100)[-3:], short("x" + chr(10) + "y")
    ('aa…', 'x y')
    """
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return plain if len(plain) <= _SHOWN else plain[: _SHOWN - 1] + "…"


def _words(path: Path, rule: str, value: object, fix: str) -> str:
    return f"{short(path.name)}: {rule}, got {value}. {fix}"
