"""When two names are too alike, and how often that is right."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from headrace.llm.dedupe import Scorer, Similarity, normalise
from headrace.llm.dedupe.meaning import Meaning, calibrate
from headrace.llm.dedupe.numerals import form_of
from headrace.model.errors import InvalidInputError
from tools import dedupe_figures

ALL = [
    Similarity(),
    Similarity("edits"),
    Similarity("ratio"),
    Similarity("ratio", 0.97),
    Similarity("jaro_winkler", 0.92),
    Similarity("token_sort", 0.95),
]
rules = st.sampled_from(ALL)
texts = st.text(alphabet="aberostk 12", min_size=1, max_size=16)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Frostkeep", "Frostkeap", True),
        ("Frostkeep", "Frostkep", True),
        ("Frostkeep", "Frotskeep", True),
        ("Frostkeep", "Frostkap", False),
        ("Emberfall Harbour", "Emberfal Harbor", True),
        ("Emberfall Harbour", "Embrfal Harbor", False),
        ("Lima", "Limma", True),
        ("Lima", "Liam", True),
        ("Lima", "Lma", True),
        ("Lima", "Lime", False),
        ("Ur", "Ul", False),
        ("Salta", "Malta", False),
        ("Saltoro", "Maltoro", True),
        ("东方明珠塔", "东方明珠楼", True),
        ("北京", "南京", False),
    ],
)
def test_the_default_rule_finds_typos(one: str, other: str, alike: bool) -> None:
    """One edit from five characters on, two from thirteen; short names and first letters are told apart."""
    assert Similarity().are_similar(one, other) is alike
    assert Similarity().are_similar(other, one) is alike


@pytest.mark.parametrize(("first", "edits"), [("lima", 0), ("limas", 1), ("l" * 12, 1), ("l" * 13, 2), ("l" * 40, 2)])
def test_the_plain_rule_counts_edits(first: str, edits: int) -> None:
    """`edits`: none below 5 characters, one up to 12, two above; the longer name counts."""
    rule = Similarity("edits")
    assert rule.are_similar(first, first.replace("l", "x", edits)) is True
    assert rule.are_similar(first, "xyz"[: edits + 1] + first[edits + 1 :]) is False


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: f"{rule.scorer} {rule.threshold}")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Budapest II kerulet", "Budapest III kerulet"),
        ("Marseille 08", "Marseille 09"),
        ("Shining Sector Seven", "Shining Sector Eleven"),
        ("Terminal A of the North", "Terminal 4 of the North"),
        ("Northern Terminal A", "Northern Terminal B"),
        ("北京市海淀区第二中学", "北京市海淀区第三中学"),
    ],
)
def test_names_with_other_numerals_are_never_alike(rule: Similarity, one: str, other: str) -> None:
    """However few letters differ, no rule takes one number for another."""
    assert not rule.are_similar(one, other)


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: f"{rule.scorer} {rule.threshold}")
def test_one_number_in_several_spellings_is_alike(rule: Similarity) -> None:
    """A numeral counts by its value, and not by how it is written."""
    for other in ("Budapest 2", "Budapest Two", "Budapest 02", "BUDAPEST Ⅱ"):
        assert rule.are_similar("Budapest II", other)


@given(rules, texts, texts)
def test_no_rule_joins_names_of_other_numerals_and_all_are_symmetric(rule: Similarity, one: str, other: str) -> None:
    """Which of two names came first does not matter; equal keys are always alike, unequal numerals never."""
    alike = rule.are_similar(one, other)
    assert alike == rule.are_similar(other, one)
    mine, theirs = form_of(normalise(one)), form_of(normalise(other))
    if mine.numerals != theirs.numerals:
        assert not alike
    elif normalise(one) == normalise(other):
        assert alike


@given(st.text(alphabet=string.ascii_lowercase, min_size=7, max_size=20), st.data())
def test_every_single_edit_of_a_longer_word_is_found(name: str, data: st.DataObject) -> None:
    """From seven letters on no typo gets past the default rule, unless it makes a numeral or an article."""
    place = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from(string.ascii_lowercase))
    start, rest = name[:place], name[place + 1 :]
    swapped = start + rest[:1] + name[place] + rest[1:]
    other = data.draw(st.sampled_from([start + letter + name[place:], start + rest, start + letter + rest, swapped]))
    assume(form_of(name).numerals == form_of(other).numerals)
    assert Similarity().are_similar(name, other)


@given(texts, texts)
def test_the_default_rule_lets_no_far_names_pass_as_one(one: str, other: str) -> None:
    """Names more than two edits apart are two names, and more than one below thirteen characters."""
    mine, theirs = form_of(normalise(one)), form_of(normalise(other))
    if Similarity().are_similar(one, other):
        longer = max(len(mine.text), len(theirs.text))
        assert OSA.distance(mine.text, theirs.text) <= (2 if longer > 12 else 1)


@pytest.mark.parametrize("scorer", ["ratio", "jaro_winkler", "token_sort"])
@pytest.mark.parametrize("threshold", [0.91, 0.98, 1, 95, -1, math.nan, "0.95", True])
def test_a_threshold_outside_the_band_is_refused(scorer: Scorer, threshold: float) -> None:
    """The error names the field, the band, the value and what to do."""
    with pytest.raises(InvalidInputError, match=r"threshold must be a number from 0.92 to 0.97 .*, got "):
        Similarity(scorer, threshold)


def test_a_threshold_for_edits_and_an_unknown_scorer_are_refused() -> None:
    """Edits are counted, so that a threshold would be ignored; scorers are those there are."""
    with pytest.raises(InvalidInputError, match=r"goes with other scorers than typos, got 0\.95"):
        Similarity("typos", 0.95)
    with pytest.raises(InvalidInputError, match=r"scorer must be one of typos, edits, .* got 'levenshtein'"):
        Similarity("levenshtein")  # type: ignore[arg-type]


@pytest.mark.parametrize("hundredths", range(92, 98))
def test_a_score_at_the_threshold_counts(hundredths: int) -> None:
    """`ratio` of 92 equal characters in 100 is 0.92: it counts at 0.92, and one character less does not."""
    rule = Similarity("ratio", hundredths / 100)
    name = "a" * hundredths
    assert rule.are_similar(name + "b" * (100 - hundredths), name + "c" * (100 - hundredths))
    assert not rule.are_similar(name + "b" * (101 - hundredths), name + "c" * (101 - hundredths))


def test_on_real_cities_the_default_rule_keeps_its_promise() -> None:
    """Of one-edit variants 95 % are found, and of 50 names at once 0.05 are rejected wrongly."""
    keys = dedupe_figures.keys_of(dedupe_figures.cities())
    assert len(keys) > 300
    pairs = dedupe_figures.variants(keys)
    figures = dedupe_figures.measure(keys, pairs, Similarity())
    assert figures.found >= 0.95
    assert figures.of_50 <= 0.05
    plain = dedupe_figures.measure(keys, pairs, Similarity("edits"))
    assert plain.found < figures.found and plain.of_50 > figures.of_50


async def _embed(names: tuple[str, ...]) -> list[list[float]]:
    """Embed a name by what stands behind its colon: the angle of its meaning, in degrees."""
    angles = [math.radians(float(name.partition(":")[2])) for name in names]
    return [[3 * math.cos(angle), 3 * math.sin(angle)] for angle in angles]


def _pairs(same: list[float], different: list[float]) -> list[tuple[str, str, bool]]:
    return [("a:0", f"b:{angle}", is_one) for angles, is_one in ((same, True), (different, False)) for angle in angles]


async def test_a_threshold_is_calibrated_on_labelled_pairs() -> None:
    """It lies between duplicates and others where these are apart; with a share of mistakes allowed it finds more."""
    apart = await calibrate(_pairs([10, 20] * 5, [60, 70] * 5), _embed)
    assert (apart.recall, apart.wrong) == (1.0, 0.0)
    assert apart.threshold == pytest.approx((math.cos(math.radians(20)) + math.cos(math.radians(60))) / 2)

    mixed = _pairs([10] * 5 + [40] * 5, [30] + [70] * 19)
    strict, loose = await calibrate(mixed, _embed, most_wrong=0.0), await calibrate(mixed, _embed, most_wrong=0.05)
    assert (strict.recall, strict.wrong) == (0.5, 0.0)
    assert (loose.recall, loose.wrong) == (1.0, 0.05)


async def test_pairs_that_say_nothing_are_refused() -> None:
    """Too few of a kind, embeddings that cannot tell, and vectors that do not fit are clear errors."""
    with pytest.raises(InvalidInputError, match="at least 10 pairs of different names, got 9"):
        await calibrate(_pairs([10] * 10, [60] * 9), _embed)
    with pytest.raises(InvalidInputError, match="must be told apart by the embeddings"):
        await calibrate(_pairs([60] * 10, [10] * 10), _embed)
    with pytest.raises(InvalidInputError, match="most_wrong must be from 0 to below 1, got 2"):
        await calibrate(_pairs([10] * 10, [60] * 10), _embed, most_wrong=2)

    async def one(names: tuple[str, ...]) -> list[list[float]]:
        return [[1.0, 0.0]]

    async def nothing(names: tuple[str, ...]) -> list[list[float]]:
        return [[0.0, 0.0] for _ in names]

    with pytest.raises(InvalidInputError, match=r"must return 2 vectors of one length, got \[2\]"):
        await Meaning(one, threshold=0.9).learn(["a", "b"])
    with pytest.raises(InvalidInputError, match="finite numbers that are not all 0"):
        await Meaning(nothing, threshold=0.9).learn(["a", "b"])


@pytest.mark.parametrize("threshold", [0, -0.5, 1.1, math.nan, True, "0.9"])
def test_a_cosine_out_of_range_is_refused(threshold: float) -> None:
    """A threshold of meaning is a cosine above 0, and there is no default."""
    with pytest.raises(InvalidInputError, match=r"threshold must be a cosine above 0 and at most 1; see calibrate"):
        Meaning(_embed, threshold=threshold)
