"""Rules that count edits: an edit inserts, drops or changes a character, or swaps two neighbours."""

from __future__ import annotations

#: One edit is let pass in names of so many characters, two in longer ones.
ONE_EDIT_FROM, ONE_EDIT_TO = 5, 12
#: The most that any rule lets pass.
MOST_EDITS = 2
#: Up to this length a changed first letter makes another name: Salta and Malta.
OWN_INITIAL_TO = 6


def edits_allowed(length: int) -> int:
    """Return how many edits apart two names may be and still count as one; `length`: that of the longer.

    >>> [edits_allowed(length) for length in (4, 5, 12, 13)]
    [0, 1, 1, 2]
    """
    return (length >= ONE_EDIT_FROM) + (length > ONE_EDIT_TO)


def few_edits(first: str, second: str, edits: int) -> bool:
    """Whether two names so many edits apart are one by the plain rule."""
    return edits <= edits_allowed(max(len(first), len(second)))


def is_typo(first: str, second: str, edits: int) -> bool:
    """Whether two names so many edits apart are one by the rule that knows where short names differ by one letter.

    Names of four characters may have a letter more or two swapped, but none changed; a changed first letter tells names
    of up to six apart. Measured, this finds more typos and mistakes fewer real names than the plain rule.

    >>> is_typo("lima", "lma", 1), is_typo("lima", "lome", 2), is_typo("doha", "noha", 1), is_typo("salta", "malta", 1)
    (True, False, False, False)
    """
    if edits == 0:
        return True
    length, is_as_long = max(len(first), len(second)), len(first) == len(second)
    if is_as_long and length <= OWN_INITIAL_TO and first[1:] == second[1:]:
        return False
    if length == ONE_EDIT_FROM - 1:
        return edits == 1 and (not is_as_long or sorted(first) == sorted(second))
    return few_edits(first, second, edits)
