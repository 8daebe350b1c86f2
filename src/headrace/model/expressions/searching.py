"""What it takes to go through texts: known before it is done, since one search cannot be stopped on its way."""

from __future__ import annotations

from headrace.model.expressions.budget import MAX_SIZE, Run
from headrace.model.expressions.errors import LimitFault
from headrace.model.expressions.values import text_size, width

#: Characters that are searched or told apart, and that are compared one by one, in the time of one element.
_SEARCHED, _COMPARED = 100, 16
#: A text of this length is told apart from another in no time.
_SHORT = 1_000


def check_search(run: Run, text: str, *others: str) -> None:
    """Count a search for others in a text. Raises LimitFault for texts that no search may have, however short it is.

    What is looked for is made as wide as the text.
    """
    for one in (text, *others):
        check_size(one)
    run.work((len(text) + sum(map(len, others))) / _SEARCHED)
    run.charge(sum(len(one) * width(text, one) for one in others if width(one) != width(text)))


def check_size(text: str) -> None:
    """Raise LimitFault for a text that is larger than all that an expression may make."""
    if text_size(text) > MAX_SIZE:
        size = f"{MAX_SIZE // 1_000_000} MB"
        raise LimitFault(f"a text of more than {size} is passed on as it is, and not worked on: split it before")


def check_comparison(run: Run, left: str, right: str) -> None:
    """Count the comparison of two texts, character by character. Raises LimitFault."""
    run.work(min(len(left), len(right)) / _COMPARED)


def check_equality(run: Run, text: str) -> None:
    """Count how long it takes to tell a text from another of its length. Raises LimitFault."""
    if len(text) > _SHORT:
        run.work(len(text) / _SEARCHED)
