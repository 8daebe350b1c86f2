"""What a text is found by. The server makes stems of English words; Chinese has no spaces to tell words by.

So Chinese (and Japanese, and Korean) is taken out of the text and given to the server in pieces: each character, and
each pair of neighbours. A query of one character finds it alone; of a longer one, the pairs count.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_CHINESE = re.compile(
    "[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
#: Characters of a text that it is found by; the rest of a longer one is kept, and not found.
MOST_INDEXED = 20_000
#: Characters of a query that count.
MOST_ASKED = 1_000


@dataclass(frozen=True, slots=True)
class Words:
    """A text for the index or the query of one."""

    #: the text without Chinese, for the server to take apart
    words: str
    #: pieces of the Chinese, with spaces between
    pieces: str


def words_of(text: str) -> Words:
    """Return what a text is to be found by.

    >>> words_of("Likes 绿茶 and rye")
    Words(words='likes   and rye', pieces='绿 茶 绿茶')
    """
    text = _plain(text[:MOST_INDEXED])
    runs = _CHINESE.findall(text)
    pieces = [piece for run in runs for piece in (*run, *_pairs(run))]
    return Words(_CHINESE.sub(" ", text), " ".join(pieces))


def asked_of(query: str) -> Words:
    """Return what a query asks for.

    >>> asked_of("喜欢绿茶 tea")
    Words(words='  tea', pieces='喜欢 欢绿 绿茶')
    >>> asked_of("茶").pieces
    '茶'
    """
    text = _plain(query[:MOST_ASKED])
    pieces = [piece for run in _CHINESE.findall(text) for piece in (_pairs(run) or [run])]
    return Words(_CHINESE.sub(" ", text), " ".join(pieces))


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)]


def _plain(text: str) -> str:
    """Full-width letters as plain ones; lower case here, as not every database knows it beyond ASCII.

    What the database cannot hold parts words.
    """
    storable = text.replace("\x00", " ").encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFKC", storable).lower()
