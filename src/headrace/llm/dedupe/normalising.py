"""The normalised form of a name: two names that share it are one name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from headrace.model.errors import InvalidInputError

#: Articles by language; elided ones end with an apostrophe. A one-letter article counts at the beginning only, where
#: `A` cannot be the label of `Hepatitis A virus`. The Italian `i` is missing: it would be the numeral of `Otto I`.
ARTICLES: Mapping[str, frozenset[str]] = {
    "en": frozenset({"the", "a", "an"}),
    "fr": frozenset({"le", "la", "les", "un", "une", "l'"}),
    "de": frozenset({"der", "die", "das", "den", "dem", "des", "ein", "eine", "einer", "eines"}),
    "es": frozenset({"el", "la", "los", "las", "un", "una"}),
    "it": frozenset({"il", "lo", "la", "gli", "le", "un", "uno", "una", "l'"}),
    "nl": frozenset({"de", "het", "een"}),
    "pt": frozenset({"o", "a", "os", "as", "um", "uma"}),
}
DEFAULT_LANGUAGES = ("en", "fr", "de", "es", "it")

_APOSTROPHES = "'’‘ʼ`´′"
#: Letters that are letters of their own to Unicode and variants of others to people who type names.
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ё": "е"}
)
_THOUSANDS = re.compile(r"(?<=\d)[,'’](?=\d{3}(?!\d))")
#: C++ and C# are no C: signs at the end of a word belong to it.
_CLINGING = re.compile(r"(?<=\w)[+#]+(?!\w)")


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How names are normalised. Books of one scope should share it: stored keys are made with it."""

    #: whose articles are dropped, of `ARTICLES`; () keeps all
    languages: tuple[str, ...] = DEFAULT_LANGUAGES
    #: whether é and e tell names apart
    keep_diacritics: bool = False

    def __post_init__(self) -> None:
        for language in self.languages:
            if language not in ARTICLES:
                raise InvalidInputError("languages", f"must be of {', '.join(ARTICLES)}", language)

    def __call__(self, name: str) -> str:
        """Return the key of a name; empty only where the name has no visible character. A key is its own key."""
        return _key_of(self, name)

    def key_of(self, name: str) -> str:
        """Return the key of a name, worked out anew."""
        key = self._once(name)
        while (again := self._once(key)) != key:  # a sign that goes may bring a mark to a letter, or an article forward
            key = again
        return key

    def _once(self, name: str) -> str:
        visible = "".join(_visible(name)).strip()
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
        if not self.keep_diacritics:
            folded = without_diacritics(folded)
        words = _words(_THOUSANDS.sub("", self._without_elisions(folded)))
        # A name of signs alone is its signs.
        return " ".join(self._without_articles(words)) if words else " ".join(folded.split())

    def _without_elisions(self, text: str) -> str:
        elided = _elisions_of(self.languages)
        return elided.sub("", text) if elided else text

    def _without_articles(self, words: Sequence[str]) -> list[str]:
        """Drop articles, but never the last word: it is what the name is about, and `Plan A` ends with a label."""
        articles = _articles_of(self.languages)
        kept: list[str] = []
        for word in words[:-1]:
            if word not in articles or (len(word) == 1 and kept):
                kept.append(word)
        return [*kept, words[-1]]


def normalise(name: str, *, languages: Sequence[str] = DEFAULT_LANGUAGES, keep_diacritics: bool = False) -> str:
    """Return the key of a name: Unicode form (NFKC), case, punctuation, articles and spaces do not count.

    `languages`: whose articles are dropped ("en", "fr", "de", "es", "it", "nl", "pt"; default the first five; () keeps
    all). `keep_diacritics`: whether é and e differ (default: they do not). Digits, numerals and letters of any script
    stay; only a name without a visible character gives "". Raises InvalidInputError for an unknown language.

    >>> normalise("The  Frost-Keep!"), normalise("ＦＲＯＳＴ keep"), normalise("L'Île d'Or")
    ('frost keep', 'frost keep', 'ile dor')
    >>> normalise("The"), normalise("Marseille 08"), normalise("东京 タワー"), normalise("?!")
    ('the', 'marseille 08', '东京 タワー', '?!')
    """
    return Normalisation(tuple(languages), keep_diacritics)(name)


@lru_cache(maxsize=100)
def _articles_of(languages: tuple[str, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(ARTICLES[language] for language in languages))


@lru_cache(maxsize=100)
def _elisions_of(languages: tuple[str, ...]) -> re.Pattern[str] | None:
    """What finds the elided articles of languages before their words; None: they have none."""
    elided = [word[:-1] for language in languages for word in ARTICLES[language] if word[-1] == "'"]
    return re.compile(rf"\b(?:{'|'.join(elided)})[{_APOSTROPHES}](?=\w)") if elided else None


@lru_cache(maxsize=20_000)
def _key_of(normalisation: Normalisation, name: str) -> str:
    """The key of a name: each name is asked for several times on its way."""
    return normalisation.key_of(name)


@lru_cache(maxsize=100_000)
def without_diacritics(text: str) -> str:
    """Return text without the marks on Latin and Greek letters. Marks of other scripts are letters: が is not か."""
    if text.isascii():
        return text
    bare: list[str] = []
    for sign in unicodedata.normalize("NFD", text):
        is_mark = "\u0300" <= sign <= "\u036f"
        if not (is_mark and bare and _takes_marks(bare[-1])):
            bare.append(sign)
    return unicodedata.normalize("NFC", "".join(bare)).translate(_PLAIN_LETTERS)


def _takes_marks(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("LATIN", "GREEK"))


def _visible(name: str) -> list[str]:
    """The signs that can be seen: no control, zero-width or direction marks; controls and separators are spaces."""
    categories = [(sign, unicodedata.category(sign)) for sign in name]
    return [" " if kind[0] == "Z" or kind == "Cc" else sign for sign, kind in categories if kind != "Cf"]


def _words(text: str) -> list[str]:
    """The words of a text: letters, marks and digits; apostrophes inside a word vanish, other punctuation parts."""
    clinging = {place for found in _CLINGING.finditer(text) for place in range(*found.span())}
    signs: list[str] = []
    for place, sign in enumerate(text):
        if sign in _APOSTROPHES:
            continue
        parts = unicodedata.category(sign)[0] in "PSZ" and place not in clinging
        signs.append(" " if parts else sign)
    return "".join(signs).split()
