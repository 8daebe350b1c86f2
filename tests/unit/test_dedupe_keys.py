"""Normalised keys of names, and the numbers in them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.llm.dedupe import ARTICLES, Normalisation, normalise
from headrace.llm.dedupe.number_words import NUMBER_WORDS
from headrace.llm.dedupe.numerals import form_of
from headrace.model.errors import InvalidInputError


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Frost-Keep!", "frost keep"),
        ("ＦＲＯＳＴ　ＫＥＥＰ", "Frost Keep"),
        ("Straße", "STRASSE"),
        ("Málaga", "malaga"),
        ("Malmö", "Malmo\u0308"),
        ("Łódź", "lodz"),
        ("İstanbul", "ISTANBUL"),
        ("L'Île d’Or", "ile d'or"),
        ("Der Turm der Nacht", "Turm Nacht"),
        ("O’Brien", "OBrien"),
        ("Frost\u200bkeep", "Frostkeep"),
        ("soft\u00adhyphen", "softhyphen"),
        ("a  tab\tand\x00a nul", "tab and a nul"),
        ("1,000 Isles", "1000 isles"),
        ("Ward ①", "Ward 1"),
        ("ガンダム", "ｶﾞﾝﾀﾞﾑ"),
        ("東京・タワー", "東京 タワー"),
    ],
)
def test_spellings_of_one_name_share_a_key(one: str, other: str) -> None:
    """Unicode form, width, case, diacritics, punctuation, articles and spaces do not tell names apart."""
    assert normalise(one) == normalise(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Marseille 08", "Marseille 09"),
        ("Budapest II", "Budapest III"),
        ("Plan A", "Plan"),
        ("Hepatitis A virus", "Hepatitis virus"),
        ("The", "Die"),
        ("C", "C++"),
        ("C++", "C#"),
        ("か", "が"),
        ("й", "и"),
        ("北京", "南京"),
        ("서울", "부산"),
        ("हिन्दी", "हन्दी"),
        ("🏰", "🐉"),
        ("?!", "!?"),
    ],
)
def test_other_names_keep_other_keys(one: str, other: str) -> None:
    """Digits, labels, letters of every script, and signs where there is nothing else tell names apart."""
    assert normalise(one) != normalise(other)


def test_languages_and_diacritics_are_the_callers_choice() -> None:
    """Articles of other languages stay, none are dropped without languages, and marks count where they are to."""
    assert normalise("De Haan") == "de haan"
    assert normalise("De Haan", languages=["nl"]) == "haan"
    assert normalise("The Haan", languages=["nl"]) == "the haan"
    assert normalise("L'Or", languages=()) == "lor"
    assert normalise("Málaga", keep_diacritics=True) == "málaga"
    with pytest.raises(InvalidInputError, match=r"languages must be of en, fr, .* got 'xx'"):
        Normalisation(("en", "xx"))


@given(st.text(max_size=40))
@example("the a the the")
@example("\u04bd\u01ff\u239f")
@example("\u02a7u'\u0361")
def test_a_key_is_its_own_key_and_empty_only_without_a_visible_sign(name: str) -> None:
    """Normalising twice changes nothing, and no name with something to see is lost."""
    key = normalise(name)
    assert normalise(key) == key
    assert key == " ".join(key.split())
    assert bool(key) or not any(sign.isprintable() and not sign.isspace() for sign in name)


@given(st.lists(st.sampled_from([*sorted(frozenset[str]().union(*ARTICLES.values())), "keep", "Ice"]), min_size=1))
def test_a_name_never_loses_its_last_word(words: list[str]) -> None:
    """Whatever articles it is made of, what remains ends with the word the name ends with."""
    last = words[-1].casefold().rstrip("'")
    assert normalise(" ".join(words), languages=list(ARTICLES)).split(" ")[-1] == last


@given(st.text(max_size=12), st.sampled_from([str.upper, str.title, "  {}  ".format, "“{}”".format, "The {}".format]))
def test_respelling_keeps_the_key(name: str, respell: object) -> None:
    """Capitals, spaces, quotes and an article in front make no other name of ordinary letters."""
    assert callable(respell)
    word = "x" + "".join(sign for sign in name if sign.isascii() and (sign.isalnum() or sign == " "))
    assert normalise(respell(word)) == normalise(word)


@pytest.mark.parametrize(
    ("key", "numerals"),
    [
        ("budapest iii", ("3",)),
        ("budapest 03", ("3",)),
        ("budapest three", ("3",)),
        ("third budapest", ("3",)),
        ("louis xiv", ("14",)),
        ("anno mcmxciv", ("1994",)),
        ("twenty one pilots", ("21",)),
        ("turm drei", ("3",)),
        ("2 towers of 3", ("2", "3")),
        ("r2d2", ("2", "2")),
        ("第二十三中学", ("23",)),
        ("一百零五", ("105",)),
        ("三万二千", ("32000",)),
        ("二〇二四", ("2024",)),
        ("م٣", ("3",)),
        ("terminal b", ("b",)),
        ("mix di li", ()),
        ("iiii ic vx", ()),
        ("civil", ()),
        ("b", ()),
        ("", ()),
    ],
)
def test_numbers_are_read_from_names(key: str, numerals: tuple[str, ...]) -> None:
    """Digits, roman numerals as whole words, number words, Chinese numerals and a letter at the end are numerals."""
    assert form_of(key).numerals == numerals


@given(st.integers(1, 3999))
@example(509)  # dix: ten in French
def test_every_roman_numeral_has_its_value(number: int) -> None:
    """All but those that are everyday words, or number words, are read, and equal the number in digits."""
    rest, roman = number, ""
    for value, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    ):
        roman, rest = roman + sign * (rest // value), rest % value
    form = form_of(f"king {roman} keep")
    if roman in NUMBER_WORDS:
        assert form.numerals == (str(NUMBER_WORDS[roman]),)
    else:
        assert form.numerals in ((str(number),), ()) and (form.numerals or len(roman) <= 3)


@given(st.text(alphabet="零一二三四五六七八九十百千万十", min_size=1, max_size=5_000))
def test_no_numeral_is_too_long(number: str) -> None:
    """However long a numeral is, the form of its name can be told."""
    assert form_of(number).text.isdigit()
