"""Make extracted characters searchable without changing what a reader sees.

Ligatures are spelled out, letters composed (NFC), soft hyphens and invisible characters removed, words that were
broken at the end of a line joined. Not NFKC: it would turn 10² into 102 and µ into another letter.
"""

from __future__ import annotations

import re
import unicodedata

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_BREAK = re.compile(r"((?<![^\W\d_])[^\W\d_]++|(?<!\d)\d++)[-\u2010]\n(\w+)")
_INVISIBLE = re.compile("[\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: First parts that keep their hyphen: "double-blind" broken at its hyphen is not "doubleblind".
_KEEPS_HYPHEN = re.compile(
    "all|anti|cross|double|ex|full|half|high|large|long|low|mid|near|non|one|open|post|quasi|self|semi|short|single"
    "|small|two|three|four|five|six|seven|eight|nine|ten|well"
)


def clean_characters(text: str) -> str:
    """Line ends, ligatures, composed letters, invisible and control characters, spaces at line ends.

    >>> clean_characters("An e\\ufb03cient co\\u00adfactor \\r\\n\\r\\n\\r\\n\\r\\nCafe\\u0301")
    'An efficient cofactor\\n\\nCafé'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_LIGATURES)
    text = _INVISIBLE.sub("", re.sub("\u00ad\n?", "", text))
    text = unicodedata.normalize("NFC", text)
    text = "".join(char for char in text if _is_kept(char))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![^\S\n])[^\S\n]++\n", "\n", text)).strip()


def join_broken_words(text: str, vocabulary: str | None = None) -> str:
    """Undo hyphens at line ends. `vocabulary` is the text that shows how words are written elsewhere.

    >>> join_broken_words("The partici-\\npants of the double-\\nblind trial in COVID-\\n19")
    'The participants of the double-blind trial in COVID-19'
    """
    known = words_of(vocabulary or text)
    while cuts := line_end_cuts(text, known):
        edges = [0, *(edge for cut in cuts for edge in cut), len(text)]
        text = "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    return text


def words_of(text: str) -> frozenset[str]:
    """The words of a text, in lower case and with the hyphens within them."""
    return frozenset(re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.casefold()))


def line_end_cuts(text: str, known: frozenset[str]) -> list[tuple[int, int]]:
    """What to cut out so that words broken at line ends are whole; again afterwards, since a word may be broken twice.

    >>> line_end_cuts("The partici-\\npants", frozenset())
    [(11, 13)]
    """
    cuts = []
    for match in _BREAK.finditer(text):
        left, right = match.groups()
        keep = not right[0].islower() or not left.isalpha() or _keeps_hyphen(left.casefold(), right.casefold(), known)
        cuts.append((match.end(1) + keep, match.start(2)))
    return cuts


def _keeps_hyphen(left: str, right: str, known: frozenset[str]) -> bool:
    if left + right in known:
        return False
    return f"{left}-{right}" in known or bool(_KEEPS_HYPHEN.fullmatch(left))


def _is_kept(char: str) -> bool:
    # Databases and spreadsheets refuse controls and lone surrogates; private characters are debris of symbol fonts.
    return char in "\n\t" or (unicodedata.category(char) not in ("Cc", "Cs", "Co") and char not in "\ufffe\uffff")
