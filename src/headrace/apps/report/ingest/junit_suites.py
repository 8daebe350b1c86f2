"""What suites of JUnit XML say of their cases, against the cases that stand in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from headrace.apps.report.data.cases import DataWarning, Status
from headrace.apps.report.ingest.junit_cases import JUnitCase

#: Suites that are named in warnings for what they say of one thing; of more there is one warning.
MOST_NAMED = 3


class Difference(NamedTuple):
    """A suite, the attributes that say a number, that number, and the number that was read."""

    suite: str
    attributes: str
    said: int
    read: int

    @property
    def what(self) -> str:
        """What the number is of."""
        return f"{self.suite}: {self.attributes}"


class _Open(NamedTuple):
    attributes: Mapping[str, str]
    #: Of the suite alone, and with the suites in it.
    own: Counter[str]
    all: Counter[str]
    #: What suites in it differ in: it differs for the same reason.
    told: set[str]


class Suites:
    """The suites that are open, and what was wrong with those that are closed."""

    def __init__(self) -> None:
        self.differing: list[Difference] = []
        self._open: list[_Open] = []

    def open(self, attributes: dict[str, str]) -> None:
        """Take the beginning of a suite."""
        self._open.append(_Open(attributes, Counter(), Counter(), set()))

    def around(self) -> list[Mapping[str, str]]:
        """Return the attributes of the innermost suites."""
        return [one.attributes for one in self._open[-2:]]

    def add(self, case: JUnitCase) -> None:
        """Take a case of the innermost suite."""
        counts = _counts(case)
        if self._open:
            self._open[-1].own.update(counts)

    def close(self) -> None:
        """Take the end of a suite."""
        one = self._open.pop()
        one.all.update(one.own)
        found = [each for each in _differences(one) if each.attributes not in one.told]
        self.differing += found
        if self._open:
            self._open[-1].all.update(one.all)
            self._open[-1].told.update(one.told, (each.attributes for each in found))


def _counts(case: JUnitCase) -> Counter[str]:
    kinds = Counter(kind for kind, _ in case.endings)
    status = case.status
    return Counter(
        tests=1, skipped=int(status is Status.SKIPPED), failed=int(status is Status.FAILED),
        elements=kinds["failure"] + kinds["error"],
    )  # fmt: skip


def _differences(one: _Open) -> Iterator[Difference]:
    """Yield what differs. Runners count in several ways; one that explains the number is enough."""
    name = one.attributes.get("name", "").strip() or "testsuite"
    disabled = _number(one, "disabled") or 0
    ways = (one.all, one.own)
    tests = [count for way in ways for count in (way["tests"], way["tests"] - way["skipped"])]
    failing = [way[kind] for way in ways for kind in ("failed", "elements")]
    skipped = [way["skipped"] - less for way in ways for less in (0, disabled)]
    for attributes, said, read in (
        ("tests", _number(one, "tests"), tests),
        ("failures+errors", _sum(one, "failures", "errors"), failing),
        ("skipped", _number(one, "skipped"), skipped),
    ):
        if said is not None and said not in read:
            yield Difference(name, attributes, said, read[0])


def _number(one: _Open, name: str) -> int | None:
    text = one.attributes.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _sum(one: _Open, *names: str) -> int | None:
    numbers = [number for name in names if (number := _number(one, name)) is not None]
    return sum(numbers) if numbers else None


def suite_warnings(differing: list[Difference]) -> list[DataWarning]:
    """Return the warnings: for each of a few suites its own, for many one of all."""
    found = []
    for attributes in dict.fromkeys(one.attributes for one in differing):
        those = [one for one in differing if one.attributes == attributes]
        if len(those) > MOST_NAMED:
            said, read = sum(one.said for one in those), sum(one.read for one in those)
            those = [Difference(f"{len(those):,} × testsuite", attributes, said, read)]
        found += [DataWarning(rule="suite_counts", count=one.read, of=one.said, what=one.what) for one in those]
    return found
