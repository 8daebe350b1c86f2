"""Measure what each rule for similar names finds and mistakes, on real names that the machine has.

usage: python tools/dedupe_figures.py [--iso-codes FOLDER] [--names FILE] [--timing] [--write]

Cities and countries come from zone.tab and iso3166.tab of the time zone data (in the public domain; part of the system
or of the package `tzdata`). `--iso-codes /usr/share/iso-codes/json` adds the subdivisions (ISO 3166-2) and languages
(ISO 639-3) of Debian's package `iso-codes`; `--names` a file of yours, one name a line. No list is in the repository.
`--write` puts the tables into docs/explanation/duplicates.md.

Names are normalised first; those with equal keys are one. For each rule:
  found    part of one-edit variants that count as the name they were made of: for each name 20 variants (4 in lists
           of more than 1,000), each made at a random place by inserting, dropping or changing a letter (a to z) or
           swapping two neighbours, these four equally often
  clash    part of the real names that are taken for another real name of the list
  of 50    names wrongly rejected when 50 different real names are claimed in one batch, mean over random batches: the
           expected number of similar pairs among 50 names drawn from the list
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import string
import sys
import time
import zoneinfo
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from headrace.llm.dedupe import Similarity, normalise
from headrace.llm.dedupe.numerals import Form, form_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "duplicates.md"
BEGIN, END = "<!-- Figures: written by tools/dedupe_figures.py --write. -->\n", "<!-- End of figures. -->\n"
BATCH = 50
RULES: dict[str, Similarity] = {
    "typos (default)": Similarity(),
    "edits": Similarity("edits"),
    **{
        f"{scorer} {threshold:.2f}": Similarity(scorer, threshold)
        for scorer in ("ratio", "jaro_winkler", "token_sort")
        for threshold in (0.92, 0.95, 0.97)
    },
}


class Figures(NamedTuple):
    """What one rule does on one list."""

    found: float
    clash: float
    of_50: float


def cities() -> list[str]:
    """Return the places that time zones are named after, one for each zone of each country."""
    return [row[2].rpartition("/")[2].replace("_", " ") for row in _table("zone.tab")]


def countries() -> list[str]:
    """Return the names of countries and territories."""
    return [row[1] for row in _table("iso3166.tab")]


def keys_of(names: Iterable[str]) -> list[str]:
    """Return the different keys of names, in order."""
    return [key for key in dict.fromkeys(map(normalise, names)) if key]


def variants(keys: Sequence[str], *, seed: int = 1) -> list[tuple[Form, Form]]:
    """Return names with their one-edit variants, normalised, as they are compared."""
    chance = random.Random(seed)  # noqa: S311 # variants are no secrets
    many = 20 if len(keys) <= 1_000 else 4
    return [(form_of(key), form_of(normalise(variant(key, chance)))) for key in keys for _ in range(many)]


def measure(keys: Sequence[str], pairs: Sequence[tuple[Form, Form]], rule: Similarity) -> Figures:
    """Return the figures of a rule on a list of keys and the variants of it."""
    hits = [name == other or is_found(name, other, rule) for name, other in pairs]
    clashes = [len(places) - 1 for places in _matches([form_of(key) for key in keys], rule)]
    # Each pair was met twice; a batch has 50 * 49 ordered pairs of the n * (n - 1).
    of_50 = sum(clashes) / 2 * BATCH * (BATCH - 1) / (len(keys) * (len(keys) - 1))
    return Figures(sum(hits) / len(hits), sum(map(bool, clashes)) / len(keys), of_50)


def is_found(name: Form, other: Form, rule: Similarity) -> bool:
    """Return whether a variant counts as the name it was made of."""
    return name.numerals == other.numerals and bool(rule.matches(other.text, [name.text]))


def variant(key: str, chance: random.Random) -> str:
    """Return a key with one edit."""
    while True:
        place, letter = chance.randrange(len(key)), chance.choice(string.ascii_lowercase)
        before, sign, after = key[:place], key[place], key[place + 1 :]
        edited = chance.choice(
            [
                before + letter + sign + after,
                before + after,
                before + letter + after,
                before + after[:1] + sign + after[1:],
            ]
        )
        if edited != key and edited.strip():
            return edited


def table(keys: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table over all rules."""
    yield "| rule | found | clash | of 50 |"
    yield "|---|---|---|---|"
    pairs = variants(keys)
    for name, rule in RULES.items():
        found, clash, of_50 = measure(keys, pairs, rule)
        yield f"| {name} | {found:.3f} | {clash:.1%} | {of_50:.3f} |"


def timing() -> Iterator[str]:
    """Yield lines on what comparing 50 names with 3,000 costs, in time of this process."""
    chance = random.Random(1)  # noqa: S311 # names are no secrets
    names = ["".join(chance.choices("abcdeilnorst", k=chance.randint(5, 14))) for _ in range(3_050)]
    for name, rule in RULES.items():
        begun = time.process_time()
        for each in names[:BATCH]:
            rule.matches(each, names[BATCH:])
        yield f"50 x 3,000 by {name}: {1_000 * (time.process_time() - begun):.1f} ms"


def lists(iso_codes: Path | None, names: Path | None) -> Iterator[tuple[str, list[str]]]:
    """Yield each list with what it is."""
    yield "cities of the time zones", keys_of(cities())
    yield "countries", keys_of(countries())
    if iso_codes is not None:
        yield "subdivisions of ISO 3166-2", keys_of(_iso(iso_codes, "3166-2"))
        yield "languages of ISO 639-3", keys_of(_iso(iso_codes, "639-3"))
    if names is not None:
        yield names.stem, keys_of(names.read_text("utf-8").splitlines())


def _matches(forms: Sequence[Form], rule: Similarity) -> Iterator[list[int]]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for form in forms:
        groups[form.numerals].append(form.text)
    return (rule.matches(form.text, groups[form.numerals]) for form in forms)


def _table(name: str) -> list[list[str]]:
    """Return the rows of a table of the time zone data."""
    package = importlib.util.find_spec("tzdata")
    folders = [
        *zoneinfo.TZPATH,
        *(f"{place}/zoneinfo" for place in (package and package.submodule_search_locations) or []),
    ]
    for folder in folders:
        if (path := Path(folder, name)).is_file():
            lines = path.read_text("utf-8").splitlines()
            return [line.split("\t") for line in lines if line and not line.startswith("#")]
    raise FileNotFoundError(f"no {name} in {', '.join(folders) or 'any folder'}: install the time zone data (tzdata)")


def _iso(folder: Path, standard: str) -> list[str]:
    """Return the names of a standard; remarks in brackets are no part of them."""
    entries = json.loads((folder / f"iso_{standard}.json").read_text("utf-8"))[standard]
    return [entry["name"].partition(" (")[0] for entry in entries]


def main() -> int:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iso-codes", type=Path)
    parser.add_argument("--names", type=Path)
    parser.add_argument("--timing", action="store_true")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    lines: list[str] = []
    for title, keys in lists(chosen.iso_codes, chosen.names):
        median = sorted(map(len, keys))[len(keys) // 2]
        lines += [
            f"**{title[0].upper()}{title[1:]}**: {len(keys):,} names, median {median} characters.",
            "",
            *table(keys),
            "",
        ]
    print("\n".join([*lines, *(timing() if chosen.timing else [])]))
    if chosen.write:
        before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise ValueError(f"{PAGE.name} has lost the marks around its figures")
        PAGE.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + end + after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
