"""One test case of JUnit XML as a case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.apps.report.data.cases import Case, Source, Status
from headrace.apps.report.ingest.cells import key_of, text_of
from headrace.apps.report.ingest.ids import Ids
from headrace.apps.report.ingest.issues import IssueBook, Place
from headrace.apps.report.ingest.limits import MAX_TEXT
from headrace.apps.report.ingest.values.dates import when_of
from headrace.apps.report.ingest.values.durations import seconds_of
from headrace.apps.report.ingest.values.levels import status_of

#: Names that runners give to every suite: they tell nothing.
_GENERIC = frozenset(("", "pytest", "junit", "nunit", "jest tests", "test", "tests", "root suite", "default"))
#: Attributes of cases that may say how they ended, and what they say of any that did.
_RESULTS = ("status", "result")
_RAN = frozenset(("", "run", "ran", "completed", "complete", "executed", "finished", "done"))
#: Characters of the output of a case that are kept: its end, where failures show.
_OUTPUT = 4_000


@dataclass
class JUnitCase:
    """What a file says of one case: attributes of its own and of the suites around it, how it ended, texts."""

    attributes: dict[str, str]
    suites: list[Mapping[str, str]]
    endings: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def status(self) -> Status:
        """How it ended; a failure counts before anything else that it may say, and a word that says nothing is none."""
        kinds = {kind for kind, _ in self.endings}
        said = {status_of(self.attributes[name], "") for name in self.telling()}
        if kinds & {"failure", "error"} or Status.FAILED in said:
            return Status.FAILED
        if Status.BLOCKED in said or "skipped" in kinds:
            return Status.BLOCKED if Status.BLOCKED in said else Status.SKIPPED
        if None in said:
            return Status.UNKNOWN
        return Status.SKIPPED if Status.SKIPPED in said else Status.PASSED

    def telling(self) -> list[str]:
        """Return the attributes that say how it ended: "run" says only that it did."""
        return [name for name in _RESULTS if key_of(self.attributes.get(name, "")) not in _RAN]

    def of_suite(self, name: str) -> str:
        """Return an attribute of the innermost suite that has it."""
        return next((suite[name] for suite in reversed(self.suites) if suite.get(name)), "")

    def text(self, *kinds: str) -> str:
        """Return the texts of some kinds."""
        return "\n".join(text for kind, text in self.texts if kind in kinds and text.strip())


def case_of(one: JUnitCase, number: int, sheet: str, ids: Ids, book: IssueBook) -> Case:
    """Return the n-th test case of a file; what is wrong with it is put into the book."""
    class_name, name = (one.attributes.get(key, "").strip() for key in ("classname", "name"))
    suite = one.of_suite("name").strip()
    module = class_name if suite.lower() in _GENERIC else suite
    place = Place(sheet, number)
    messages = [attributes.get("message", "") for kind, attributes in one.endings if kind != "skipped"]
    status = one.status
    if status is Status.UNKNOWN:
        _report_unknown(one, place, book)
    output = one.text("system-out", "system-err").strip()[-_OUTPUT:]
    extra = {"classname": class_name, "suite": suite, "output": output}
    return Case(
        case_id=ids.given(".".join(part for part in (class_name, name) if part), place._replace(column="name")),
        title=text_of(name),
        module=text_of(module),
        status=status,
        actual=text_of("\n".join(message for message in messages if message)),
        error=_error(one, place, book),
        remark=text_of("\n".join(given.get("message", "") for kind, given in one.endings if kind == "skipped")),
        executed_at=_when(one, place, book),
        duration_seconds=_seconds(one, place, book),
        environment=text_of(one.of_suite("hostname")),
        source=Source(sheet=sheet, row=number),
        extra={key: text_of(value) for key, value in extra.items() if value},
    )


def _report_unknown(one: JUnitCase, place: Place, book: IssueBook) -> None:
    for name in one.telling():
        if status_of(one.attributes[name], "") is None:
            book.add("unknown_status", place._replace(column=name), one.attributes[name])


def _error(one: JUnitCase, place: Place, book: IssueBook) -> str:
    """Return type and message of a failure, and its trace, which often begins with both."""
    trace = one.text("failure", "error").strip()
    heads = [
        ": ".join(part for part in (given.get("type", ""), given.get("message", "")) if part)
        for kind, given in one.endings
        if kind != "skipped"
    ]
    whole = "\n".join(part for part in (*(head for head in heads if head not in trace), trace) if part)
    if len(whole) > MAX_TEXT:
        book.add("text_cut", place._replace(column="failure"), whole)
    return text_of(whole)


def _when(one: JUnitCase, place: Place, book: IssueBook) -> str | None:
    given = one.attributes.get("timestamp") or one.of_suite("timestamp")
    found = when_of(given, day_first=False)
    if found is None and given:
        book.add("bad_date", place._replace(column="timestamp"), given)
    return found.text if found else None


def _seconds(one: JUnitCase, place: Place, book: IssueBook) -> float | None:
    given = one.attributes.get("time", "")
    found = seconds_of(given)
    if found is None and given:
        book.add("bad_duration", place._replace(column="time"), given)
    return found
