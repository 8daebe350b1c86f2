"""JUnit XML: its test cases, read without ever holding a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace.apps.report.data.cases import Case, Ingested, SheetReport
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import IssueBook, Place
from headrace.apps.report.ingest.junit_cases import JUnitCase, case_of
from headrace.apps.report.ingest.junit_suites import Suites, suite_warnings
from headrace.apps.report.ingest.libraries import safe_xml
from headrace.apps.report.ingest.limits import MAX_DEPTH, MAX_ROWS, MAX_TEXT
from headrace.apps.report.ingest.refusing import short, unreadable, unsafe
from headrace.apps.report.ingest.validation import validated

_BLOCK = 256 * 1024
#: What a case may hold, and how it ended then; a flaky one passed in the end.
_ENDINGS = ("failure", "error", "skipped")
_TEXTS = (*_ENDINGS, "system-out", "system-err")
#: Attributes that are looked at, with the characters that are kept of each.
_ATTRIBUTES = {
    **dict.fromkeys(("name", "classname", "type", "timestamp", "time", "hostname", "status", "result"), 500),
    **dict.fromkeys(("tests", "failures", "errors", "skipped", "disabled"), 20),
    "message": MAX_TEXT,
}
#: Columns of sheets that these files do not have.
_WITHOUT = frozenset(("priority", "severity", "executor", "expected"))
#: Of a text: more than a case may have, so that it shows where one is cut.
_KEPT = MAX_TEXT + 1_000
_FIX = "Give an XML file whose root is testsuites or testsuite"


class _TooDeep(Exception):
    """Elements stand within more elements than any test run has."""


class _TooMany(Exception):
    """There are more test cases than are read."""


class _NoJUnit(Exception):
    """The root is another; the argument is its name."""


class _Target:
    """Takes what the parser finds."""

    def __init__(self) -> None:
        self.found: list[JUnitCase] = []
        self._path: list[str] = []
        self.suites = Suites()
        self._case: JUnitCase | None = None
        self._text: list[str] | None = None
        self._chars = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the beginning of an element."""
        name = tag.rpartition("}")[2]
        if not self._path and name not in ("testsuites", "testsuite"):
            raise _NoJUnit(name)
        self._path.append(name)
        if len(self._path) > MAX_DEPTH:
            raise _TooDeep
        if name in ("testsuites", "testsuite"):
            self.suites.open(_known(attributes))
        elif name == "testcase":
            self._case = JUnitCase(_known(attributes), self.suites.around())
        elif self._case and name in _TEXTS:
            self._text, self._chars = [], 0
            if name in _ENDINGS:
                self._case.endings.append((name, _known(attributes)))

    def data(self, text: str) -> None:
        """Take a piece of text; what is too long is let go."""
        if self._text is not None and self._chars < _KEPT:
            self._text.append(text[:_KEPT])
            self._chars += len(text)

    def end(self, tag: str) -> None:
        """Take the end of an element."""
        name = self._path.pop()
        if self._case and self._text is not None and name in _TEXTS:
            self._case.texts.append((name, "".join(self._text)))
            self._text = None
        if name in ("testsuites", "testsuite"):
            self.suites.close()
        if name == "testcase" and self._case:
            self.found.append(self._case)
            self.suites.add(self._case)
            self._case = None
            if len(self.found) > MAX_ROWS:
                raise _TooMany

    def close(self) -> None:
        """Nothing is left to do."""


def _known(attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes that are looked at, none longer than it may be."""
    return {name: attributes[name][:most] for name, most in _ATTRIBUTES.items() if name in attributes}


def read_junit(path: Path) -> Ingested:
    """Return the test cases of a file. Raises UnsafeFileError for entities, UnreadableFileError for what is no such."""
    book = IssueBook()
    ids = Ids(book)
    target = _taken(path)
    cases: list[Case] = [case_of(one, number, path.stem, ids, book) for number, one in enumerate(target.found, 1)]
    for one in target.suites.differing:
        book.add("suite_counts", Place(path.stem, column=one.attributes), f"{one.suite}: {one.said}, read {one.read}")
    sheet = SheetReport(name=path.stem, used=bool(cases), columns={}, rows=len(cases), cases=len(cases))
    also = suite_warnings(target.suites.differing)
    report = validated(cases, [sheet], book, also=also, without=_WITHOUT)
    return Ingested(cases=tuple(cases), issues=book.kept(), validation=report)


def _taken(path: Path) -> _Target:
    xml: Any = safe_xml()
    target = _Target()
    parser = xml.DefusedXMLParser(target=target, forbid_dtd=True)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                parser.feed(block)
        parser.close()
    except _NoJUnit as error:
        raise unreadable(path, "it must be JUnit XML", f"the root {short(str(error))!r}", _FIX) from None
    except _TooDeep:
        raise unreadable(path, f"elements must be at most {MAX_DEPTH} deep", "more", _FIX) from None
    except _TooMany:
        raise unreadable(path, f"it must have at most {MAX_ROWS:,} test cases", "more", "Split it") from None
    except xml.ParseError as error:
        raise unreadable(path, "it must be whole XML", short(str(error)), "Make the file anew") from None
    except (xml.DTDForbidden, xml.EntitiesForbidden, xml.ExternalReferenceForbidden) as error:
        what = short(f"{type(error).__name__} {getattr(error, 'name', '')}")
        raise unsafe(path, "it must not declare a document type or entities", what, "Leave it out") from None
    except (ValueError, LookupError) as error:
        raise unreadable(path, "it must be UTF-8 or UTF-16", short(str(error)), "Save it anew as UTF-8") from None
    return target
