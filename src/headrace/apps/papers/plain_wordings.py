"""The worked forms that a weak model is shown before a question: two of them, for dual extraction.

What the first says is part of every question that was ever paid for; changing a letter buys all anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class PlainWording:
    """One worked form: a text, and what a form says of it."""

    #: Stands in every result; raise it with every change of the texts.
    version: str
    text: str
    form: str

    @property
    def digest(self) -> str:
        """sha256 (64 hex digits) of all its texts."""
        return hashlib.sha256("\n\0".join(astuple(self)).encode()).hexdigest()


# Every kind of question once. A weak model repeats what it cannot answer: the values are such as papers rarely hold.
PLAIN_FIRST = PlainWording(
    version="papers-1",
    text=(
        "The bridge over the Ouse was opened on 3 May 1894 for farm traffic. It is 210 metres long and made of steel."
        " About 9,000 cars cross it on a working day. It was closed for two months while the deck was replaced."
        " The repairs were paid for by the county."
    ),
    form=(
        "When the bridge was opened: 3 May 1894\nWhat the bridge was built for: farm traffic\n"
        "How long the bridge is: 210 metres\nHow many cars cross the bridge on a day: 9,000\n"
        "How long the bridge was closed: two months\nWho paid for the repairs: the county"
    ),
)
PLAIN_SECOND = PlainWording(
    version="papers-1-second",
    text=(
        "The lighthouse on the north pier was lit for the first time in October 1907. It is 31 metres high and built of"
        " brick. Some 2,400 visitors climb it in a summer. Its lamp was out for three weeks after a storm."
        " A sailing club paid for the new lamp, which can be seen from 18 kilometres."
    ),
    form=(
        "Who paid for the new lamp: a sailing club\nHow high the lighthouse is: 31 metres\n"
        "How many visitors climb the lighthouse in a summer: 2,400\nWhat the lighthouse is built of: brick\n"
        "How long the lamp was out: three weeks\nWhen the lighthouse was lit: October 1907"
    ),
)
